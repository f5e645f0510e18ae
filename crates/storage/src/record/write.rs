//! Writes records of changes.

use super::kind;
use super::row::{Columns, Names, RowName, Wording, push_bits, push_name};
use crate::backend::bytes::{push_counted, push_varint};
use crate::file::Extent;
use crate::tree::{Piece, Shape};
use crate::value::Datum;

/// Appends a record.
pub(crate) fn push_record(kind: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    push_counted(out, body);
}

/// Appends the records of changes of one table.
pub(crate) struct Recorder<'a> {
    /// The id of the table.
    table: u64,
    shape: &'a Shape,
    wording: &'a Wording,
    out: &'a mut Vec<u8>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(table: u64, shape: &'a Shape, wording: &'a Wording, out: &'a mut Vec<u8>) -> Self {
        Recorder { table, shape, wording, out }
    }

    /// What identifies the rows of the table.
    pub(crate) fn wording(&self) -> &'a Wording {
        self.wording
    }

    fn record(&mut self, kind: u8, write: impl FnOnce(&Self, &mut Vec<u8>)) {
        let mut body = Vec::new();
        push_varint(&mut body, self.table);
        write(self, &mut body);
        push_record(kind, &body, self.out);
    }

    fn push_number(&self, number: u64, body: &mut Vec<u8>) {
        if *self.wording == Wording::Numbers {
            push_varint(body, number);
        }
    }

    /// A row is inserted, with a datum for each column. `number` is its row number, if the table has no
    /// layout key.
    pub(crate) fn insert(&mut self, number: u64, row: &[Datum<'_>]) {
        self.record(kind::INSERT, |own, body| {
            own.push_number(number, body);
            let columns = &Vec::from_iter(0..row.len());
            Columns { shape: own.shape, columns }.push(row.iter().copied(), body);
        });
    }

    /// A row is deleted.
    pub(crate) fn delete(&mut self, name: &RowName<'_>) {
        self.record(kind::DELETE, |own, body| push_name(name, own.shape, own.wording, body));
    }

    /// Columns of a row change. If a column is given twice, the last value counts.
    pub(crate) fn update(&mut self, name: &RowName<'_>, changes: &[(usize, Datum<'_>)]) {
        self.record(kind::UPDATE, |own, body| {
            push_name(name, own.shape, own.wording, body);
            let new = |column: usize| changes.iter().rev().find(|(changed, _)| *changed == column);
            let columns = &own.push_columns(|column| new(column).is_some(), body);
            let values = columns.iter().filter_map(|&column| new(column)).map(|(_, datum)| *datum);
            Columns { shape: own.shape, columns }.push(values, body);
        });
    }

    fn push_columns(&self, is_one: impl Fn(usize) -> bool, body: &mut Vec<u8>) -> Vec<usize> {
        let all = 0..self.shape.schema.len();
        push_bits(all.clone().map(&is_one), body);
        all.filter(|&column| is_one(column)).collect()
    }

    /// Many rows are inserted. `first` is the row number of the first one, if the table has no layout key.
    pub(crate) fn insert_many(&mut self, first: u64, piece: &Piece) {
        self.record(kind::INSERT_MANY, |own, body| {
            own.push_number(first, body);
            let columns = &Vec::from_iter(0..own.shape.schema.len());
            Columns { shape: own.shape, columns }.push_piece(piece, body);
        });
    }

    /// Many rows are inserted that are in the data file, where the extent of their index leads to. `first` as
    /// in [`Recorder::insert_many`].
    pub(crate) fn load(&mut self, first: u64, rows: u64, index: Extent) {
        self.record(kind::LOAD, |own, body| {
            own.push_number(first, body);
            push_varint(body, rows);
            body.extend(index.to_bytes());
        });
    }

    /// Some columns of many rows change, in ascending order; `values` has the new values.
    pub(crate) fn update_many(&mut self, names: &Names, columns: &[usize], values: &Piece) {
        debug_assert!(columns.is_sorted() && names.len() == values.rows as u64);
        self.record(kind::UPDATE_MANY, |own, body| {
            names.push(own.shape, own.wording, body);
            own.push_columns(|column| columns.contains(&column), body);
            Columns { shape: own.shape, columns }.push_piece(values, body);
        });
    }

    /// Many rows are deleted.
    pub(crate) fn delete_many(&mut self, names: &Names) {
        self.record(kind::DELETE_MANY, |own, body| names.push(own.shape, own.wording, body));
    }

    /// All rows are deleted.
    pub(crate) fn clear(&mut self) {
        self.record(kind::CLEAR, |_, _| ());
    }
}
