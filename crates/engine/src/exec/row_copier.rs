//! Copies the rows of many chunks together into flat vectors.
//!
//! A result that leaves the engine must not refer to a snapshot or to an operator's memory, so it owns its
//! strings. Within a statement, stable strings are shared.

use entasis_vector::bitmap;
use entasis_vector::{
    Buffer, CHUNK_ROWS, Chunk, Encoding, Native, PhysicalType, Selection, StringView, Vector,
};
use std::sync::Arc;

/// A chunk that is being filled.
pub(crate) struct RowCopier {
    columns: Vec<Vector>,
    rows: usize,
    /// Stable strings are copied too.
    owning: bool,
}

impl RowCopier {
    /// No rows so far, of columns of these physical types; all strings will be copied.
    pub(crate) fn owning(types: &[PhysicalType]) -> RowCopier {
        RowCopier { columns: types.iter().map(|&ty| Vector::new(ty)).collect(), rows: 0, owning: true }
    }

    /// No rows so far, of columns of these physical types; stable strings will be shared.
    pub(crate) fn sharing(types: &[PhysicalType]) -> RowCopier {
        RowCopier { owning: false, ..RowCopier::owning(types) }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Copies rows of `chunk` from row `from` on, as many as there is room for; returns how many.
    pub(crate) fn append(&mut self, chunk: &Chunk, from: usize) -> usize {
        let count = (chunk.len() - from).min(CHUNK_ROWS - self.rows);
        for (i, own) in self.columns.iter_mut().enumerate() {
            let shared = !self.owning && chunk.vector(i).strings_are_stable();
            if self.rows == 0 {
                own.begin(CHUNK_ROWS);
                own.set_strings_stable(shared);
            }
            let range =
                Range { vector: chunk.vector(i), positions: chunk.positions(i), from, count, to: self.rows };
            match own.physical() {
                PhysicalType::Str if shared => range.copy::<StringView>(own.values_mut()),
                PhysicalType::Str => {
                    own.set_strings_stable(false);
                    range.copy_strings(own);
                }
                ty => match ty.width() {
                    1 => range.copy::<u8>(own.values_mut()),
                    2 => range.copy::<u16>(own.values_mut()),
                    4 => range.copy::<u32>(own.values_mut()),
                    8 => range.copy::<u64>(own.values_mut()),
                    _ => range.copy::<i128>(own.values_mut()),
                },
            }
            range.copy_validity(own);
        }
        self.rows += count;
        count
    }

    /// Moves the rows so far to `chunk`, and starts again. The vectors remain shared with `chunk`, which must
    /// be cleared before the next row comes.
    pub(crate) fn lend(&mut self, chunk: &mut Chunk) {
        chunk.reset(std::mem::take(&mut self.rows));
        let group = chunk.push_group(Selection::ALL);
        for own in &self.columns {
            chunk.push_column(own.clone(), group);
        }
    }

    /// The rows so far as a chunk, and its bytes; starts again. Half-empty vectors are shrunk.
    pub(crate) fn take(&mut self) -> (Chunk, usize) {
        let rows = std::mem::take(&mut self.rows);
        let mut chunk = Chunk::new();
        chunk.reset(rows);
        let group = chunk.push_group(Selection::ALL);
        let mut bytes = 0;
        for own in &mut self.columns {
            let ty = own.physical();
            let capacity = if rows > CHUNK_ROWS / 2 { CHUNK_ROWS } else { rows };
            let mut full = std::mem::replace(own, Vector::new(ty));
            if capacity < CHUNK_ROWS {
                full = shrink(&full, rows);
            }
            bytes += capacity * ty.width() + full.heap().map_or(0, |heap| heap.bytes());
            chunk.push_column(full, group);
        }
        (chunk, bytes)
    }
}

/// A flat vector cut to its first `rows` positions.
fn shrink(full: &Vector, rows: usize) -> Vector {
    let ty = full.physical();
    let mut values = Buffer::zeroed(rows * ty.width());
    macro_rules! copy {
        ($t:ty) => {
            values.as_mut_slice::<$t>()[..rows].copy_from_slice(&full.values::<$t>()[..rows])
        };
    }
    match ty.width() {
        1 => copy!(u8),
        2 => copy!(u16),
        4 => copy!(u32),
        8 => copy!(u64),
        _ => copy!(i128),
    }
    let validity =
        full.validity().map(|words| Arc::new(Buffer::from_slice(&words[..bitmap::words_for(rows)])));
    let mut cut = Vector::from_buffer(ty, Arc::new(values), validity);
    cut.share_strings(full);
    cut
}

/// Rows `from` … `from + count` of a column, to be written at `to`.
struct Range<'a> {
    vector: &'a Vector,
    positions: Option<&'a [u16]>,
    from: usize,
    count: usize,
    to: usize,
}

impl Range<'_> {
    fn position(&self, i: usize) -> usize {
        self.positions.map_or(self.from + i, |at| at[self.from + i] as usize)
    }

    fn copy<T: Native>(&self, out: &mut [T]) {
        let Range { vector, from, count, to, .. } = *self;
        let out = &mut out[to..to + count];
        match (vector.encoding(), self.positions) {
            (Encoding::Constant, _) => out.fill(vector.values::<T>()[0]),
            (Encoding::Flat, None) => out.copy_from_slice(&vector.values::<T>()[from..from + count]),
            (Encoding::Flat, Some(at)) => {
                let values = vector.values::<T>();
                for (out, &position) in out.iter_mut().zip(&at[from..from + count]) {
                    *out = values[position as usize];
                }
            }
            (Encoding::Dictionary, _) => {
                let entries =
                    vector.dictionary().expect("a dictionary vector has one").values().values::<T>();
                let codes = vector.codes();
                for (i, out) in out.iter_mut().enumerate() {
                    *out = entries[codes[self.position(i)] as usize];
                }
            }
        }
    }

    fn copy_strings(&self, own: &mut Vector) {
        let strings = own.strings_mut();
        self.copy::<StringView>(strings.views);
        for (i, view) in strings.views[self.to..self.to + self.count].iter_mut().enumerate() {
            if view.is_inline() {
                continue;
            }
            // A view at a NULL position may refer to freed memory.
            let valid = self.vector.is_valid(self.position(i));
            *view = if valid { strings.heap.push(view.as_bytes()) } else { StringView::default() };
        }
    }

    fn copy_validity(&self, own: &mut Vector) {
        if self.vector.validity().is_none() {
            return;
        }
        let words = own.validity_mut(CHUNK_ROWS);
        for i in 0..self.count {
            bitmap::set(words, self.to + i, self.vector.is_valid(self.position(i)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::{DataType, Dictionary, Value};

    #[test]
    fn rows_of_all_encodings_are_copied() {
        let text = |s: &str| Value::Text(s.into());
        let long = "a string that does not fit into its view";
        let strings = Vector::from_values(PhysicalType::Str, &[text("a"), Value::Null, text(long)]).unwrap();
        let entries = Vector::from_values(PhysicalType::Str, &[text(long), text("x")]).unwrap();
        let mut coded = Vector::new(PhysicalType::Str);
        coded.begin_codes(&Dictionary::new(entries, 2), 3)[..3].copy_from_slice(&[1, 0, 1]);
        let constant = Vector::constant(PhysicalType::I64, &Value::Integer(7)).unwrap();
        let mut chunk = Chunk::new();
        chunk.reset(2);
        let group = chunk.push_group(Selection::from_indices(&[2, 1]));
        for vector in [strings, coded, constant] {
            chunk.push_column(vector, group);
        }
        let mut rows = RowCopier::owning(&[PhysicalType::Str, PhysicalType::Str, PhysicalType::I64]);
        assert_eq!(rows.append(&chunk, 0), 2);
        assert_eq!(rows.append(&chunk, 1), 1);
        drop(chunk);
        let (out, _) = rows.take();
        let column = |c, ty| (0..3).map(|r| out.value(r, c, ty)).collect::<Vec<_>>();
        assert_eq!(column(0, DataType::Varchar), [text(long), Value::Null, Value::Null]);
        assert_eq!(column(1, DataType::Varchar), [text("x"), text(long), text(long)]);
        assert_eq!(column(2, DataType::Int64), [Value::Integer(7), Value::Integer(7), Value::Integer(7)]);
    }
}
