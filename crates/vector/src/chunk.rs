//! Chunks: up to [`crate::CHUNK_ROWS`] rows of several columns, in groups that share a selection; or any
//! number of rows that are still stored ([`crate::stored`]).
//!
//! ```text
//! group 0: selection [0, 5, 5, 9]     columns a, b      row 2 = (a[5], b[5], c[2])
//! group 1: selection all              column  c
//! ```
//! A scan makes one group. A filter narrows each group's selection once, however many columns it has. A join
//! leaves the probe side's columns where they are, composes their selection with the rows that matched, and
//! adds the build side's columns as a group of its own. So columns are copied only when a kernel needs them
//! aligned.

use crate::buffer::Buffer;
use crate::selection::Selection;
use crate::stored::Stored;
use crate::types::DataType;
use crate::value::Value;
use crate::vector::Vector;
use std::sync::Arc;

/// A vector and the group whose selection maps the chunk's rows to its positions.
#[derive(Debug, Clone)]
pub struct Column {
    /// The values.
    pub vector: Vector,
    /// Index of the group.
    pub group: usize,
}

/// Rows of several columns. Reused from chunk to chunk: clearing keeps the memory.
#[derive(Debug, Default, Clone)]
pub struct Chunk {
    len: usize,
    groups: Vec<Selection>,
    columns: Vec<Column>,
    stored: Option<Arc<dyn Stored>>,
}

impl Chunk {
    /// A chunk without rows, columns and groups.
    pub fn new() -> Chunk {
        Chunk::default()
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.len
    }
    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Drops columns and groups (their memory stays with other holders of the vectors) and sets the row
    /// count.
    pub fn reset(&mut self, len: usize) {
        self.columns.clear();
        self.groups.clear();
        self.stored = None;
        self.len = len;
    }
    /// Declares that the rows are still stored. There are no columns and there may be any number of rows;
    /// only a sink that has requested such chunks gets them, and operators that pass them on.
    pub fn push_stored(&mut self, stored: Arc<dyn Stored>) {
        self.stored = Some(stored);
    }
    /// The rows, if they are still stored.
    pub fn stored(&self) -> Option<&dyn Stored> {
        self.stored.as_deref()
    }
    /// Sets the row count; each group's selection must cover it.
    pub fn set_len(&mut self, len: usize) {
        self.len = len;
    }
    /// Adds a group and returns its index.
    pub fn push_group(&mut self, selection: Selection) -> usize {
        self.groups.push(selection);
        self.groups.len() - 1
    }
    /// Adds a column to an existing group.
    pub fn push_column(&mut self, vector: Vector, group: usize) {
        debug_assert!(group < self.groups.len());
        self.columns.push(Column { vector, group });
    }
    /// The columns, in the order of the producing operator's output.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
    /// Column `i`.
    #[inline]
    pub fn column(&self, i: usize) -> &Column {
        &self.columns[i]
    }
    /// The vector of column `i`.
    #[inline]
    pub fn vector(&self, i: usize) -> &Vector {
        &self.columns[i].vector
    }
    /// The selections of the groups.
    pub fn groups(&self) -> &[Selection] {
        &self.groups
    }
    /// The positions of the rows in column `i`, or `None` if row r is at position r.
    #[inline]
    pub fn positions(&self, i: usize) -> Option<&[u16]> {
        self.groups[self.columns[i].group].indices(self.len)
    }
    /// The value of column `column`, which holds `ty`, in row `row`.
    pub fn value(&self, row: usize, column: usize, ty: DataType) -> Value {
        let column = &self.columns[column];
        column.vector.value(self.groups[column.group].position(row), ty)
    }

    /// Keeps the rows that `picks` names, in that order; a row may be named again. `spares` are the buffers
    /// that selections are written to, one per group, grown as needed; they belong to the calling operator.
    pub fn select(&mut self, picks: &[u16], spares: &mut Vec<Arc<Buffer>>) {
        while spares.len() < self.groups.len() {
            spares.push(Arc::new(Buffer::zeroed(0)));
        }
        for (group, spare) in self.groups.iter_mut().zip(spares) {
            group.compose(picks, spare);
        }
        self.len = picks.len();
    }

    /// Writes column `i` to `out`: flat, row r at position r.
    pub fn flatten_column(&self, i: usize, out: &mut Vector) {
        self.columns[i].vector.flatten_into(self.positions(i), self.len, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_narrowed_together() {
        let mut chunk = Chunk::new();
        chunk.reset(4);
        let left = chunk.push_group(Selection::from_indices(&[0, 5, 5, 9]));
        let right = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::from_slice(&[0i64, 1, 2, 3, 4, 5, 6, 7, 8, 9]), left);
        chunk.push_column(Vector::from_slice(&[10i64, 11, 12, 13]), right);
        chunk.select(&[3, 1], &mut Vec::new());
        let row = |r| [chunk.value(r, 0, DataType::Int64), chunk.value(r, 1, DataType::Int64)];
        assert_eq!(row(0), [Value::Integer(9), Value::Integer(13)]);
        assert_eq!(row(1), [Value::Integer(5), Value::Integer(11)]);
    }
}
