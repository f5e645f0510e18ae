//! Reads changes from records. Whatever the bytes are, the result is a change that fits the table, or what is
//! wrong. Whether the table has the rows that are named is for the caller to find out.

use super::row::{Columns, Names, RowName, SHORT, Wording, read_bits, read_name};
use super::{Flaw, damaged, kind};
use crate::backend::bytes::Cursor;
use crate::file::Extent;
use crate::tree::{Piece, Shape};
use crate::value::Datum;
use entasis_vector::Result;

/// An iterator over the records of a commit.
pub(crate) struct Records<'a>(Cursor<'a>);

/// What is the same for all records of a table, and is made once for many of them.
pub(crate) struct RecordReader<'s> {
    shape: &'s Shape,
    wording: Wording,
    /// All columns.
    all: Vec<usize>,
    /// The columns whose values are in a name.
    named: Vec<usize>,
}

/// A record whose body has not been looked at.
#[derive(Clone)]
pub(crate) struct Record<'a> {
    kind: u8,
    body: Cursor<'a>,
}

/// What a record does to a table.
#[derive(Debug)]
pub(crate) enum Change<'a> {
    /// A row is inserted.
    Insert {
        /// Its row number, in a table without a layout key; otherwise 0.
        number: u64,
        /// Its values.
        row: Vec<Datum<'a>>,
    },
    /// A row is deleted.
    Delete(RowName<'a>),
    /// Columns of a row change.
    Update(RowName<'a>, Vec<(usize, Datum<'a>)>),
    /// Many rows are inserted.
    InsertMany {
        /// The row number of the first, in a table without a layout key; otherwise 0.
        first: u64,
        /// The rows.
        piece: Piece,
    },
    /// Many rows are inserted that are in the data file.
    Load {
        /// The row number of the first, in a table without a layout key; otherwise 0.
        first: u64,
        /// Their number.
        rows: u64,
        /// The extent that leads to them.
        index: Extent,
    },
    /// Columns of many rows change.
    UpdateMany {
        /// The rows.
        names: Names,
        /// The columns.
        columns: Vec<usize>,
        /// Their new values.
        values: Piece,
    },
    /// Many rows are deleted.
    DeleteMany(Names),
    /// All rows are deleted.
    Clear,
}

impl<'s> RecordReader<'s> {
    /// For records of a table of this shape.
    pub(crate) fn of(shape: &'s Shape) -> RecordReader<'s> {
        let wording = Wording::of(shape);
        let (all, named) = (Vec::from_iter(0..shape.schema.len()), wording.columns());
        RecordReader { shape, wording, all, named }
    }

    /// What identifies the rows of the table.
    pub(crate) fn wording(&self) -> &Wording {
        &self.wording
    }
}

impl<'a> Records<'a> {
    /// The records that consist of these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Records<'a> {
        Records(Cursor::new(bytes))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    fn next(&mut self) -> Option<Result<Record<'a>>> {
        if self.0.left() == 0 {
            return None;
        }
        let record = |cursor: &mut Cursor<'a>| {
            Some(Record { kind: cursor.u8()?, body: Cursor::new(cursor.counted()?) })
        };
        let record = record(&mut self.0);
        if record.is_none() {
            // It is not known where the next one begins.
            self.0 = Cursor::new(&[]);
        }
        Some(record.ok_or_else(|| damaged(SHORT)))
    }
}

impl<'a> Record<'a> {
    /// Its kind.
    pub(crate) fn kind(&self) -> u8 {
        self.kind
    }

    /// True if it is about many rows of one table, and has their names or values.
    pub(crate) fn has_many(&self) -> bool {
        [kind::INSERT_MANY, kind::UPDATE_MANY, kind::DELETE_MANY].contains(&self.kind)
    }

    /// True if it is about the rows of one table.
    pub(crate) fn is_of_rows(&self) -> bool {
        ![kind::PUT, kind::DROP, kind::SEQUENCE, kind::INHERIT].contains(&self.kind)
    }

    /// Its body, for a record that is not about rows.
    pub(crate) fn body(self) -> Cursor<'a> {
        self.body
    }

    /// The id of the table whose rows it is about.
    ///
    /// # Errors
    /// Corruption, if the record ends too early.
    pub(crate) fn table(&mut self) -> Result<u64> {
        self.body.varint().ok_or_else(|| damaged(SHORT))
    }

    /// What it does to the table, for which there is a reader. To be called after [`Record::table`].
    ///
    /// # Errors
    /// Corruption, if it is no record of such a table.
    pub(crate) fn change(mut self, reader: &RecordReader<'_>) -> Result<Change<'a>> {
        let change = self.read(reader).map_err(damaged)?;
        match self.body.left() {
            0 => Ok(change),
            _ => Err(damaged("more bytes than it has")),
        }
    }

    fn read(&mut self, reader: &RecordReader<'_>) -> Result<Change<'a>, Flaw> {
        let (shape, wording) = (reader.shape, &reader.wording);
        let all = Columns { shape, columns: &reader.all };
        let named = &Columns { shape, columns: &reader.named };
        let body = &mut self.body;
        Ok(match self.kind {
            kind::INSERT => Change::Insert { number: number(wording, body)?, row: all.read(body)? },
            kind::DELETE => Change::Delete(read_name(named, wording, body)?),
            kind::UPDATE => {
                let name = read_name(named, wording, body)?;
                let columns = &columns(shape, body)?;
                Change::Update(name, Columns { shape, columns }.read_pairs(body)?)
            }
            kind::INSERT_MANY => {
                Change::InsertMany { first: number(wording, body)?, piece: all.read_piece(body)? }
            }
            kind::LOAD => {
                let (first, rows) = (number(wording, body)?, body.varint().ok_or(SHORT)?);
                let index = body.take(Extent::SIZE).and_then(|bytes| bytes.try_into().ok()).ok_or(SHORT)?;
                Change::Load { first, rows, index: Extent::from_bytes(index) }
            }
            kind::UPDATE_MANY => {
                let names = Names::read(shape, wording, body)?;
                let columns = columns(shape, body)?;
                let values = Columns { shape, columns: &columns }.read_piece(body)?;
                if names.len() != values.rows as u64 {
                    return Err("it has not a value for each row");
                }
                Change::UpdateMany { names, columns, values }
            }
            kind::DELETE_MANY => Change::DeleteMany(Names::read(shape, wording, body)?),
            kind::CLEAR => Change::Clear,
            _ => return Err("its kind is not known: a newer version of Entasis may have written it"),
        })
    }
}

fn number(wording: &Wording, body: &mut Cursor<'_>) -> Result<u64, Flaw> {
    match wording {
        Wording::Numbers => body.varint().ok_or(SHORT),
        _ => Ok(0),
    }
}

fn columns(shape: &Shape, body: &mut Cursor<'_>) -> Result<Vec<usize>, Flaw> {
    let bits = read_bits(shape.schema.len(), body)?;
    Ok((0..shape.schema.len()).filter(|column| bits[column / 8] >> (column % 8) & 1 == 1).collect())
}
