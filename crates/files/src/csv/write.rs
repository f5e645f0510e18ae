//! Writes rows as separated values.
//!
//! A field is quoted if it would otherwise be read as something else: if it contains a delimiter, a quote or
//! a line end, or is written like NULL. So `NULL` and the empty string are different in the file.

use super::TimeFormats;
use super::text::{PART_BYTES, Parts, Special, Take, Text};
use super::time_format::TimeFormat;
use crate::delimiter::Delimiter;
use crate::option_values::{byte_option, delimiter_option, flag_option, text_option};
use crate::strings::{LONG, reserve_value};
use entasis_functions::Argument;
use entasis_vector::expr::calendar::micros_of;
use entasis_vector::types::INFINITE_TIMESTAMP;
use entasis_vector::{Chunk, DataType, PhysicalType, Result, Schema, StringView, Value, Vector, statement};
use std::fmt::{self, Write};

/// How values are written.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    delimiter: Delimiter,
    quote: u8,
    header: bool,
    null: String,
    formats: TimeFormats,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            delimiter: Delimiter::byte(b','),
            quote: b'"',
            header: true,
            null: String::new(),
            formats: TimeFormats::default(),
        }
    }
}

impl WriteOptions {
    /// Sets an option by its SQL name, in lower case. False if there is no such option.
    pub(crate) fn set(&mut self, name: &str, value: &Argument) -> Result<bool> {
        match name {
            "delim" | "delimiter" | "sep" | "separator" => self.delimiter = delimiter_option(name, value)?,
            "quote" => self.quote = byte_option(name, value)?,
            "header" => self.header = flag_option(name, value)?,
            "nullstr" | "null" => self.null = text_option(name, value)?.to_owned(),
            "dateformat" | "date_format" => self.formats.date = TimeFormat::of_option(name, value)?,
            "timestampformat" | "timestamp_format" => {
                self.formats.timestamp = TimeFormat::of_option(name, value)?
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes the names of the columns, if the options say so.
    pub(crate) fn header(&self, schema: &Schema, out: &mut Text) {
        if !self.header {
            return;
        }
        let special = self.special();
        for (column, field) in schema.iter().enumerate() {
            if column > 0 {
                out.plain(self.delimiter.as_bytes());
            }
            self.text(field.name.as_bytes(), &special, out);
        }
        out.byte(b'\n');
    }

    /// Writes the rows of a chunk, and hands on what has been written part by part.
    ///
    /// # Errors
    /// Those of `take`; interrupted; resource, if there is not enough memory for a long value.
    pub(crate) fn rows(&self, chunk: &Chunk, schema: &Schema, out: &mut Text, take: Take<'_>) -> Result<()> {
        let special = self.special();
        // Numbers and times need no quotes, unless a byte of theirs is special or NULL is written like one.
        let within = |byte: &u8| byte.is_ascii_alphanumeric() || b" +-.:()".contains(byte);
        let check = [self.delimiter.first(), self.quote].iter().any(within) || !self.null.is_empty();
        let columns: Vec<Column<'_>> = schema
            .iter()
            .enumerate()
            .map(|(i, field)| Column::new(chunk.vector(i), chunk.positions(i), field.ty, &self.formats))
            .collect();
        for row in 0..chunk.len() {
            for (number, column) in columns.iter().enumerate() {
                if number > 0 {
                    out.plain(self.delimiter.as_bytes());
                }
                match column.place(row) {
                    None => out.plain(self.null.as_bytes()),
                    Some((_, at)) if let Cells::Text(views) = column.cells => match views[at].as_bytes() {
                        long if long.len() > LONG => self.long_text(long, &special, out, take)?,
                        text => self.text(text, &special, out),
                    },
                    Some((position, at)) if let Cells::Other(vector, ty, values) = column.cells => {
                        let length = match values.physical() {
                            PhysicalType::Str => values.values::<StringView>()[at].len(),
                            _ => 0,
                        };
                        let _memory = reserve_value(length, ty)?;
                        let value = vector.value(position, ty);
                        match length > LONG {
                            true => self.long_other(&value, ty, &special, out, take)?,
                            false => self.other(&value, ty, &special, out),
                        }
                    }
                    Some((_, at)) => {
                        let start = out.len();
                        column.cells.write(at, out);
                        if check {
                            self.quote_where_needed(start, &special, out);
                        }
                    }
                }
            }
            out.byte(b'\n');
            out.hand_on(take)?;
        }
        Ok(())
    }

    fn special(&self) -> Special {
        Special::new([self.delimiter.first(), self.quote, b'\n', b'\r'])
    }

    /// Writes a value of a type that is rare in files, or in a format of the options.
    fn other(&self, value: &Value, ty: DataType, special: &Special, out: &mut Text) {
        let formatted = match value {
            Value::Integer(number) => self.formatted(*number, ty),
            _ => None,
        };
        let text = formatted.unwrap_or_else(|| value.display(ty).to_string());
        self.text(text.as_bytes(), special, out);
    }

    /// Writes a text that is too long to be written and then looked at.
    #[cold]
    fn long_text(&self, text: &[u8], special: &Special, out: &mut Text, take: Take<'_>) -> Result<()> {
        let mut is_special = text == self.null.as_bytes();
        for part in text.chunks(PART_BYTES) {
            statement::check()?;
            is_special |= special.within(part);
        }
        if !is_special {
            for part in text.chunks(PART_BYTES) {
                out.plain(part);
                out.hand_on(take)?;
            }
            return Ok(());
        }
        out.byte(self.quote);
        for part in text.chunks(PART_BYTES) {
            self.doubled(part, out);
            out.hand_on(take)?;
        }
        out.byte(self.quote);
        Ok(())
    }

    /// Writes a long value of a type that is rare in files: first to see whether it needs quotes.
    #[cold]
    fn long_other(
        &self,
        value: &Value,
        ty: DataType,
        special: &Special,
        out: &mut Text,
        take: Take<'_>,
    ) -> Result<()> {
        let mut nowhere = Looked { special, null: Some(self.null.as_bytes()), is_special: false };
        // It is stopped at the first byte that needs quotes.
        let _ = write!(nowhere, "{}", value.display(ty));
        let is_quoted = nowhere.is_special || nowhere.null.is_some_and(<[u8]>::is_empty);
        if !is_quoted {
            return Parts::new(out, take).write(|parts| write!(parts, "{}", value.display(ty)));
        }
        out.byte(self.quote);
        let quote = char::from(self.quote);
        Parts::new(out, take).write(|parts| write!(Doubling { parts, quote }, "{}", value.display(ty)))?;
        out.byte(self.quote);
        Ok(())
    }

    /// A date or timestamp in the format of the options, if there is one.
    fn formatted(&self, number: i128, ty: DataType) -> Option<String> {
        let number = i64::try_from(number).ok()?;
        let mut text = String::new();
        let written = match (ty, &self.formats) {
            (DataType::Date, TimeFormats { date: Some(format), .. }) => format.write_date(number, &mut text),
            (DataType::Timestamp | DataType::TimestampTz, TimeFormats { timestamp: Some(format), .. }) => {
                format.write_timestamp(number, &mut text)
            }
            (DataType::TimestampNs, TimeFormats { timestamp: Some(format), .. }) => {
                format.write_timestamp(micros_of(number), &mut text)
            }
            _ => false,
        };
        written.then_some(text)
    }

    #[inline(always)]
    fn text(&self, text: &[u8], special: &Special, out: &mut Text) {
        let start = out.len();
        if out.bytes(text, special) || text == self.null.as_bytes() {
            self.quote_from(start, out);
        }
    }

    /// Encloses the output from `start` on in quotes, if it would be read as something else.
    fn quote_where_needed(&self, start: usize, special: &Special, out: &mut Text) {
        let written = &out.as_bytes()[start..];
        if special.within(written) || written == self.null.as_bytes() {
            self.quote_from(start, out);
        }
    }

    /// Encloses the output from `start` on in quotes, and doubles quotes within it.
    fn quote_from(&self, start: usize, out: &mut Text) {
        out.again(start, |out, text| {
            out.byte(self.quote);
            self.doubled(text, out);
            out.byte(self.quote);
        });
    }

    /// Writes a text with each quote doubled.
    fn doubled(&self, text: &[u8], out: &mut Text) {
        for &byte in text {
            if byte == self.quote {
                out.byte(self.quote);
            }
            out.byte(byte);
        }
    }
}

/// Keeps nothing of what is written, but whether it needs quotes.
struct Looked<'a> {
    special: &'a Special,
    /// What is left of the text for NULL; `None` if something else has been written.
    null: Option<&'a [u8]>,
    is_special: bool,
}

impl Write for Looked<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.null = self.null.and_then(|null| null.strip_prefix(text.as_bytes()));
        self.is_special |= self.special.within(text.as_bytes());
        if self.is_special { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Writes each quote twice.
struct Doubling<'a, 'b> {
    parts: &'a mut Parts<'b>,
    quote: char,
}

impl Write for Doubling<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(self.quote) {
            self.parts.write_str(part)?;
            if part.ends_with(self.quote) {
                self.parts.write_char(self.quote)?;
            }
        }
        Ok(())
    }
}

/// A column of a chunk: where its values are, and how they are written.
struct Column<'a> {
    vector: &'a Vector,
    positions: Option<&'a [u16]>,
    /// Of a dictionary vector.
    codes: Option<&'a [u32]>,
    cells: Cells<'a>,
}

/// The values of a flat vector or of a dictionary.
enum Cells<'a> {
    Boolean(&'a [u8]),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt8(&'a [u8]),
    UInt16(&'a [u16]),
    UInt32(&'a [u32]),
    UInt64(&'a [u64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Decimal(&'a [i64], u8),
    WideDecimal(&'a [i128], u8),
    Date(&'a [i32]),
    Time(&'a [i64]),
    Timestamp(&'a [i64]),
    TimestampTz(&'a [i64]),
    Text(&'a [StringView]),
    /// Written by way of a [`Value`] of the vector; then the flat vector with its values.
    Other(&'a Vector, DataType, &'a Vector),
}

impl<'a> Column<'a> {
    fn new(
        vector: &'a Vector,
        positions: Option<&'a [u16]>,
        ty: DataType,
        formats: &TimeFormats,
    ) -> Column<'a> {
        let values = vector.dictionary().map_or(vector, |dictionary| dictionary.values());
        let cells = match (ty, vector.physical()) {
            (DataType::Boolean, PhysicalType::Bool) => Cells::Boolean(values.values()),
            (DataType::Int8, PhysicalType::I8) => Cells::Int8(values.values()),
            (DataType::Int16, PhysicalType::I16) => Cells::Int16(values.values()),
            (DataType::Int32, PhysicalType::I32) => Cells::Int32(values.values()),
            (DataType::Int64, PhysicalType::I64) => Cells::Int64(values.values()),
            (DataType::UInt8, PhysicalType::U8) => Cells::UInt8(values.values()),
            (DataType::UInt16, PhysicalType::U16) => Cells::UInt16(values.values()),
            (DataType::UInt32, PhysicalType::U32) => Cells::UInt32(values.values()),
            (DataType::UInt64, PhysicalType::U64) => Cells::UInt64(values.values()),
            (DataType::Float32, PhysicalType::F32) => Cells::Float32(values.values()),
            (DataType::Float64, PhysicalType::F64) => Cells::Float64(values.values()),
            (DataType::Decimal { scale, .. }, PhysicalType::I64) => Cells::Decimal(values.values(), scale),
            (DataType::Decimal { scale, .. }, PhysicalType::I128) => {
                Cells::WideDecimal(values.values(), scale)
            }
            (DataType::Date, PhysicalType::I32) if formats.date.is_none() => Cells::Date(values.values()),
            (DataType::Time, PhysicalType::I64) => Cells::Time(values.values()),
            (DataType::Timestamp, PhysicalType::I64) if formats.timestamp.is_none() => {
                Cells::Timestamp(values.values())
            }
            (DataType::TimestampTz, PhysicalType::I64) if formats.timestamp.is_none() => {
                Cells::TimestampTz(values.values())
            }
            (DataType::Varchar | DataType::Json, PhysicalType::Str) => Cells::Text(values.values()),
            _ => Cells::Other(vector, ty, values),
        };
        Column { vector, positions, codes: vector.dictionary().map(|_| vector.codes()), cells }
    }

    /// Where the value of a row is: its position in the vector, and its place in the cells. `None` for NULL.
    #[inline(always)]
    fn place(&self, row: usize) -> Option<(usize, usize)> {
        let position = self.positions.map_or(row, |positions| positions[row] as usize);
        self.vector.is_valid(position).then(|| match self.codes {
            Some(codes) => (position, codes[position] as usize),
            None if self.vector.is_constant() => (position, 0),
            None => (position, position),
        })
    }
}

impl Cells<'_> {
    #[inline(always)]
    fn write(&self, at: usize, out: &mut Text) {
        match self {
            Cells::Boolean(values) => out.plain(if values[at] != 0 { b"true" } else { b"false" }),
            Cells::Int8(values) => out.integer(values[at].into()),
            Cells::Int16(values) => out.integer(values[at].into()),
            Cells::Int32(values) => out.integer(values[at].into()),
            Cells::Int64(values) => out.integer(values[at]),
            Cells::UInt8(values) => out.digits(values[at].into(), 1),
            Cells::UInt16(values) => out.digits(values[at].into(), 1),
            Cells::UInt32(values) => out.digits(values[at].into(), 1),
            Cells::UInt64(values) => out.digits(values[at], 1),
            Cells::Float32(values) => out.single(values[at]),
            Cells::Float64(values) => out.double(values[at]),
            Cells::Decimal(values, scale) => out.decimal(values[at].into(), *scale),
            Cells::WideDecimal(values, scale) => out.decimal(values[at], *scale),
            Cells::Date(values) => out.date(values[at].into()),
            Cells::Time(values) => out.time(values[at]),
            Cells::Timestamp(values) => out.timestamp(values[at]),
            Cells::TimestampTz(values) => {
                out.timestamp(values[at]);
                out.plain(if values[at].unsigned_abs() < INFINITE_TIMESTAMP as u64 { b"+00" } else { b"" });
            }
            Cells::Text(..) | Cells::Other(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::handed_on;
    use super::*;
    use entasis_vector::{Dictionary, Field, Interval, Selection};

    /// The slow twin: a value as it is displayed, in quotes if it is like NULL or has something in it.
    fn field(options: &WriteOptions, value: &Value, ty: DataType) -> String {
        if matches!(value, Value::Null) {
            return options.null.clone();
        }
        let formatted = match value {
            Value::Integer(number) => options.formatted(*number, ty),
            _ => None,
        };
        let text = formatted.unwrap_or_else(|| value.display(ty).to_string());
        let (delimiter, quote) = (options.delimiter.first() as char, options.quote as char);
        if text != options.null && !text.contains([delimiter, quote, '\n', '\r']) {
            return text;
        }
        format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
    }

    /// Columns of all types, of NULL and some values, extremes among them.
    fn columns() -> Vec<(DataType, Vec<Value>)> {
        let integers = |min: i128, max: i128| {
            let values = [min, max, 0, 1, 12, 345, -1, -67, 8901, 234_567];
            values.into_iter().filter(|v| (min..=max).contains(v)).map(Value::Integer).collect::<Vec<_>>()
        };
        let bits = |bits: u32| integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
        let floats = [0.5, -0.0, 1e-5, 1e16, 123.25, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let floats: Vec<Value> = floats.into_iter().map(Value::Float).collect();
        let texts =
            ["", "a", "NA", "a,b", "\"", "1.5", "more than twelve bytes", "two\nlines of text", "-5\r"];
        let texts = texts.map(|text| Value::Text(text.into())).to_vec();
        let blob = Value::Bytes((*b"a\0,\"").into());
        let decimal = |precision, scale| DataType::Decimal { precision, scale };
        let interval = Value::Interval(Interval { months: 14, days: -3, micros: 1_500_000 });
        let mut columns = vec![
            (DataType::Boolean, vec![Value::Boolean(true), Value::Boolean(false)]),
            (DataType::Int8, bits(8)),
            (DataType::Int16, bits(16)),
            (DataType::Int32, bits(32)),
            (DataType::Int64, bits(64)),
            (DataType::UInt8, integers(0, u8::MAX.into())),
            (DataType::UInt16, integers(0, u16::MAX.into())),
            (DataType::UInt32, integers(0, u32::MAX.into())),
            (DataType::UInt64, integers(0, u64::MAX.into())),
            (DataType::Float32, floats.clone()),
            (DataType::Float64, floats),
            (decimal(18, 0), bits(60)),
            (decimal(18, 4), bits(60)),
            (decimal(18, 12), bits(60)),
            (decimal(38, 2), bits(120)),
            (DataType::Date, bits(32)),
            (DataType::Time, integers(0, 86_400_000_000)),
            (DataType::Timestamp, bits(64)),
            (DataType::TimestampTz, bits(64)),
            (DataType::Interval, vec![interval]),
            (DataType::Uuid, bits(127)),
            (DataType::Varchar, texts),
            (DataType::Blob, vec![blob]),
        ];
        columns.iter_mut().for_each(|(_, values)| values.insert(1, Value::Null));
        columns
    }

    #[test]
    fn rows_of_all_types_are_written_as_field_by_field() {
        let argument = |text: &str| crate::option_values::plain(&Value::Text(text.into()));
        let all = [
            vec![],
            vec![("delim", "|"), ("nullstr", "NA")],
            vec![("delim", "5"), ("nullstr", "-1")],
            vec![("quote", "-"), ("dateformat", "%d/%m/%Y"), ("timestampformat", "%H, %y")],
        ];
        for settings in all {
            let mut options = WriteOptions::default();
            for (name, value) in settings {
                assert!(options.set(name, &argument(value)).unwrap());
            }
            for (ty, values) in columns() {
                let schema = vec![Field::new("a", ty), Field::new("b", ty), Field::new("c", ty)];
                let rows = values.len();
                let flat = entasis_arrow::vector_of(&values, ty).unwrap();
                let reversed: Vec<u16> = (0..rows as u16).rev().collect();
                let mut coded = Vector::new(ty.physical());
                // Every other value by its code, and NULL in between.
                let present: Vec<Value> = values.iter().filter(|value| !value.is_null()).cloned().collect();
                let entries = entasis_arrow::vector_of(&present, ty).unwrap();
                let dictionary = Dictionary::new(entries, present.len());
                for (row, code) in coded.begin_codes(&dictionary, rows).iter_mut().enumerate() {
                    *code = (row % present.len()) as u32;
                }
                (0..rows).filter(|row| row % 2 == 1).for_each(|row| coded.set_null(row));
                let coded_value = |row: usize| {
                    if row % 2 == 1 { Value::Null } else { present[row % present.len()].clone() }
                };
                for constant in &values {
                    let mut chunk = Chunk::new();
                    chunk.reset(rows);
                    let (all, backwards) = (
                        chunk.push_group(Selection::ALL),
                        chunk.push_group(Selection::from_indices(&reversed)),
                    );
                    chunk.push_column(flat.clone(), backwards);
                    let mut vector = entasis_arrow::vector_of(std::slice::from_ref(constant), ty).unwrap();
                    vector.make_constant();
                    chunk.push_column(vector, backwards);
                    chunk.push_column(coded.clone(), all);
                    let mut out = Text::default();
                    options.rows(&chunk, &schema, &mut out, &mut |_| Ok(())).unwrap();
                    let mut expected = String::new();
                    for row in 0..rows {
                        let fields = [values[rows - 1 - row].clone(), constant.clone(), coded_value(row)];
                        let fields = fields.map(|value| field(&options, &value, ty));
                        expected +=
                            &(fields.join(std::str::from_utf8(options.delimiter.as_bytes()).unwrap()) + "\n");
                    }
                    assert_eq!(String::from_utf8_lossy(out.as_bytes()), expected, "{ty} {options:?}");
                }
            }
        }
    }

    #[test]
    fn long_values_are_handed_on_part_by_part_as_short_ones_are_written() {
        let argument = |text: &str| crate::option_values::plain(&Value::Text(text.into()));
        for length in [LONG - 1, LONG + 1, PART_BYTES + 3, 3 * PART_BYTES + 7] {
            let text = |unit: &str| unit.repeat(length.div_ceil(unit.len()));
            let at_end = |end: &str| text("x") + end;
            let texts =
                [text("x"), text("\""), text("ü\"y"), at_end(","), at_end("\""), at_end("\n"), text("a,b\r")];
            let element = DataType::list(DataType::Varchar);
            let list = |text: &String| {
                let mut bytes = Vec::new();
                for part in [&Value::Text(text.as_str().into()), &Value::Null] {
                    entasis_vector::value::nested::encode_part(part, DataType::Varchar, &mut bytes).unwrap();
                }
                entasis_vector::value::nested::end_list(&mut bytes);
                Value::Bytes(bytes.into())
            };
            let columns = [
                (
                    DataType::Varchar,
                    texts.iter().map(|text| Value::Text(text.as_str().into())).collect::<Vec<_>>(),
                ),
                (DataType::Blob, texts.iter().map(|text| Value::Bytes(text.as_bytes().into())).collect()),
                (element, texts.iter().map(list).collect()),
            ];
            for (ty, values) in columns {
                // NULL is written as one of the values is, too.
                for null in ["", &texts[0]] {
                    let mut options = WriteOptions::default();
                    options.set("null", &argument(null)).unwrap();
                    let (written, most) = handed_on(&values, ty, |chunk, schema, out, take| {
                        options.rows(chunk, schema, out, take)
                    });
                    let expected: String =
                        values.iter().map(|value| field(&options, value, ty) + "\n").collect();
                    assert!(written == expected.as_bytes(), "{ty} of {length} bytes");
                    assert!(most <= 3 * PART_BYTES, "{most} bytes of {ty} at once");
                }
            }
        }
    }
}
