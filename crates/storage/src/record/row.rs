//! Rows and names of rows as bytes: a bit for each column, which is 1 for NULL, then the values of the other
//! columns.

use super::Flaw;
use crate::backend::bytes::{Cursor, push_counted, push_varint, push_zigzag};
use crate::scan::row::datum;
use crate::tree::{Piece, Root, RowId, Shape};
use crate::value::Datum;
use entasis_vector::{DataType, Interval, PhysicalType};

/// The flaw of a record that ends too early.
pub(super) const SHORT: Flaw = "it ends too early";

/// What identifies the rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Their hidden row numbers.
    Numbers,
    /// The columns of the layout key, which is unique.
    Key(Vec<usize>),
    /// All their values, of so many columns.
    Rows(usize),
}

impl Wording {
    /// What identifies the rows of a table of this shape.
    pub(crate) fn of(shape: &Shape) -> Wording {
        let key = &shape.options.layout_key;
        match &shape.key {
            None => Wording::Numbers,
            // A key with a NULL equals no other, so that it is unique; but it cannot be looked up.
            Some(_) if shape.options.is_distinct() && key.iter().all(|&c| !shape.schema[c].nullable) => {
                Wording::Key(key.clone())
            }
            Some(_) => Wording::Rows(shape.schema.len()),
        }
    }

    /// The columns whose values are in a name.
    pub(crate) fn columns(&self) -> Vec<usize> {
        match self {
            Wording::Numbers => Vec::new(),
            Wording::Key(key) => key.clone(),
            Wording::Rows(columns) => (0..*columns).collect(),
        }
    }

    /// The name of a row with a row number, where `value` gives the value of each column.
    pub(crate) fn name<'a>(&self, number: u64, mut value: impl FnMut(usize) -> Datum<'a>) -> RowName<'a> {
        match self {
            Wording::Numbers => RowName::Number(number),
            Wording::Key(key) => RowName::Key(key.iter().map(|&column| value(column)).collect()),
            Wording::Rows(columns) => RowName::Row((0..*columns).map(value).collect()),
        }
    }

    /// The name of a row of a version.
    pub(crate) fn name_of<'a>(&self, row: RowId, root: &'a Root, shape: &Shape) -> RowName<'a> {
        self.name(root.number_of(row), |column| datum(root, row, column, shape.schema[column].ty))
    }
}

/// Identifies a row, wherever it is stored.
#[derive(Debug, Clone)]
pub(crate) enum RowName<'a> {
    /// The values of the layout key.
    Key(Vec<Datum<'a>>),
    /// All values; any row with equal values will do.
    Row(Vec<Datum<'a>>),
    /// The hidden row number.
    Number(u64),
}

/// The names of many rows.
#[derive(Debug)]
pub(crate) enum Names {
    /// Runs of consecutive row numbers, ascending: the first of each run, and its length.
    Numbers(Vec<(u64, u64)>),
    /// Values of the layout key, or of all columns.
    Columns(Piece),
}

/// Some or all columns of a table.
pub(super) struct Columns<'a> {
    pub(super) shape: &'a Shape,
    pub(super) columns: &'a [usize],
}

impl Columns<'_> {
    pub(super) fn types(&self) -> impl Iterator<Item = DataType> + '_ {
        self.columns.iter().map(|&column| self.shape.schema[column].ty)
    }

    /// Appends a row, which has a datum for each column.
    pub(super) fn push<'d>(&self, row: impl Iterator<Item = Datum<'d>> + Clone, out: &mut Vec<u8>) {
        push_bits(row.clone().map(Datum::is_null), out);
        row.zip(self.types()).for_each(|(datum, ty)| push_value(datum, ty, out));
    }

    /// Reads the next row.
    pub(super) fn read<'a>(&self, cursor: &mut Cursor<'a>) -> Result<Vec<Datum<'a>>, Flaw> {
        let mut row = Vec::with_capacity(self.columns.len());
        self.each(cursor, |_, datum| row.push(datum))?;
        Ok(row)
    }

    /// Reads the next row, each value with its column.
    pub(super) fn read_pairs<'a>(&self, cursor: &mut Cursor<'a>) -> Result<Vec<(usize, Datum<'a>)>, Flaw> {
        let mut pairs = Vec::with_capacity(self.columns.len());
        self.each(cursor, |column, datum| pairs.push((column, datum)))?;
        Ok(pairs)
    }

    /// Calls `each` with the columns and the values of the next row.
    fn each<'a>(&self, cursor: &mut Cursor<'a>, mut each: impl FnMut(usize, Datum<'a>)) -> Result<(), Flaw> {
        let nulls = read_bits(self.columns.len(), cursor)?;
        for (at, (&column, ty)) in self.columns.iter().zip(self.types()).enumerate() {
            let datum = match nulls[at / 8] >> (at % 8) & 1 {
                0 => read_value(ty, cursor)?,
                _ => Datum::Null,
            };
            each(column, datum);
        }
        Ok(())
    }
}

/// Appends a row of some columns of a table, which has a datum for each.
pub(crate) fn push_values<'d>(
    shape: &Shape,
    columns: &[usize],
    row: impl Iterator<Item = Datum<'d>> + Clone,
    out: &mut Vec<u8>,
) {
    Columns { shape, columns }.push(row, out);
}

/// Reads a row of some columns of a table, behind which nothing is left.
pub(crate) fn read_values<'a>(
    shape: &Shape,
    columns: &[usize],
    bytes: &'a [u8],
) -> Result<Vec<Datum<'a>>, Flaw> {
    let mut cursor = Cursor::new(bytes);
    let row = Columns { shape, columns }.read(&mut cursor)?;
    if cursor.left() == 0 { Ok(row) } else { Err("more bytes than it has") }
}

/// Appends bits, and zeros up to a whole byte.
pub(super) fn push_bits(bits: impl Iterator<Item = bool>, out: &mut Vec<u8>) {
    for (at, bit) in bits.enumerate() {
        if at % 8 == 0 {
            out.push(0);
        }
        if let Some(last) = out.last_mut() {
            *last |= u8::from(bit) << (at % 8);
        }
    }
}

/// The bytes with a bit for each of so many columns.
pub(super) fn read_bits<'a>(columns: usize, cursor: &mut Cursor<'a>) -> Result<&'a [u8], Flaw> {
    let bytes = cursor.take(columns.div_ceil(8)).ok_or(SHORT)?;
    let left = columns % 8;
    match bytes.last() {
        Some(last) if left > 0 && last >> left != 0 => Err("bits of columns that are not there"),
        _ => Ok(bytes),
    }
}

fn push_value(datum: Datum<'_>, ty: DataType, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Integer(v) if ty == DataType::Boolean => out.push(v as u8),
        Datum::Integer(v) if ty == DataType::Uuid => out.extend(v.to_le_bytes()),
        Datum::Integer(v) => push_zigzag(out, v),
        Datum::Float(v) if ty.physical() == PhysicalType::F32 => out.extend((v as f32).to_le_bytes()),
        Datum::Float(v) => out.extend(v.to_le_bytes()),
        Datum::Interval(Interval { months, days, micros }) => {
            [months.into(), days.into(), micros.into()].into_iter().for_each(|part| push_zigzag(out, part));
        }
        Datum::Bytes(v) => push_counted(out, v),
    }
}

fn read_value<'a>(ty: DataType, cursor: &mut Cursor<'a>) -> Result<Datum<'a>, Flaw> {
    Ok(match ty.physical() {
        PhysicalType::Str => {
            let bytes = cursor.counted().ok_or(SHORT)?;
            if ty.is_text() && std::str::from_utf8(bytes).is_err() {
                return Err("a text that is not UTF-8");
            }
            Datum::Bytes(bytes)
        }
        PhysicalType::F32 => Datum::Float(f32::from_bits(cursor.u32().ok_or(SHORT)?).into()),
        PhysicalType::F64 => Datum::Float(cursor.f64().ok_or(SHORT)?),
        PhysicalType::Interval => {
            let mut part = || cursor.zigzag().ok_or(SHORT);
            let [months, days, micros] = [part()?, part()?, part()?];
            let fit = (months.try_into(), days.try_into(), micros.try_into());
            let (Ok(months), Ok(days), Ok(micros)) = fit else { return Err("an interval out of range") };
            Datum::Interval(Interval { months, days, micros })
        }
        _ if ty == DataType::Uuid => Datum::Integer(cursor.i128().ok_or(SHORT)?),
        _ => {
            let number = match ty {
                DataType::Boolean => cursor.u8().map(i128::from),
                _ => cursor.zigzag(),
            };
            let number = number.ok_or(SHORT)?;
            let is_inside = |(least, most)| least <= number && number <= most;
            if !ty.integer_range().is_some_and(is_inside) {
                return Err("a number out of the range of its type");
            }
            Datum::Integer(number)
        }
    })
}

/// Appends a name.
pub(super) fn push_name(name: &RowName<'_>, shape: &Shape, wording: &Wording, out: &mut Vec<u8>) {
    match name {
        RowName::Number(number) => push_varint(out, *number),
        RowName::Key(values) | RowName::Row(values) => {
            let columns = &wording.columns();
            Columns { shape, columns }.push(values.iter().copied(), out);
        }
    }
}

/// Reads the next name, whose values, if it has any, are those of the columns `named`.
pub(super) fn read_name<'a>(
    named: &Columns<'_>,
    wording: &Wording,
    cursor: &mut Cursor<'a>,
) -> Result<RowName<'a>, Flaw> {
    Ok(match wording {
        Wording::Numbers => RowName::Number(cursor.varint().ok_or(SHORT)?),
        Wording::Key(_) => RowName::Key(named.read(cursor)?),
        Wording::Rows(_) => RowName::Row(named.read(cursor)?),
    })
}
