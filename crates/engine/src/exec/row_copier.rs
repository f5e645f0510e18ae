//! Copies the rows of many chunks together into flat vectors.
//!
//! A result that leaves the engine must not refer to a snapshot or to an operator's memory, so it owns its
//! strings. Within a statement, stable strings are shared, and a column whose chunks all have the same
//! dictionary keeps its codes.

use entasis_vector::bitmap;
use entasis_vector::{
    Buffer, CHUNK_ROWS, Chunk, Encoding, Native, PhysicalType, Selection, StringView, Vector,
};
use std::sync::Arc;

/// Bytes of long strings with which a chunk is full.
const MOST_BYTES: usize = 4 << 20;

/// A chunk that is being filled.
pub(crate) struct RowCopier {
    columns: Vec<Vector>,
    rows: usize,
    /// Stable strings are copied too.
    owning: bool,
}

impl RowCopier {
    /// No rows yet, of columns of these physical types; all strings will be copied.
    pub(crate) fn owning(types: &[PhysicalType]) -> RowCopier {
        RowCopier { columns: types.iter().map(|&ty| Vector::new(ty)).collect(), rows: 0, owning: true }
    }

    /// No rows yet, of columns of these physical types; stable strings will be shared.
    pub(crate) fn sharing(types: &[PhysicalType]) -> RowCopier {
        RowCopier { owning: false, ..RowCopier::owning(types) }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// True if there is no room for another row.
    pub(crate) fn is_full(&self) -> bool {
        self.rows == CHUNK_ROWS || self.heap_bytes() >= MOST_BYTES
    }

    fn heap_bytes(&self) -> usize {
        self.columns.iter().filter_map(Vector::heap).map(|heap| heap.bytes()).sum()
    }

    /// True if the strings of `chunk` are so short that its rows are copied together.
    pub(crate) fn fits(&self, chunk: &Chunk) -> bool {
        self.together(chunk, 0, chunk.len()) == chunk.len()
    }

    /// The rows of `chunk` from row `from`, at most `count`, whose strings are to be copied together: few, if
    /// they are long.
    fn together(&self, chunk: &Chunk, from: usize, count: usize) -> usize {
        let mut count = count;
        for (i, _) in self.columns.iter().enumerate().filter(|(_, own)| own.physical() == PhysicalType::Str) {
            let vector = chunk.vector(i);
            if !self.owning && (vector.strings_are_stable() || vector.dictionary().is_some()) {
                continue;
            }
            let positions = chunk.positions(i);
            // PERF: one loop over lengths, those of NULLs included, tells nearly always.
            if positions.is_none() && vector.encoding() == Encoding::Flat {
                let views = &vector.values::<StringView>()[from..from + count];
                if views.iter().map(StringView::len).sum::<usize>() < MOST_BYTES {
                    continue;
                }
            }
            let range = Range { vector, positions, from, count, to: 0 };
            let (mut bytes, mut rows) = (0, 0);
            while rows < count && bytes < MOST_BYTES {
                bytes += range.string_length(rows);
                rows += 1;
            }
            count = rows;
        }
        count
    }

    /// Copies rows of `chunk` from row `from`, as many as there is room for; returns how many.
    pub(crate) fn append(&mut self, chunk: &Chunk, from: usize) -> usize {
        let count = self.together(chunk, from, (chunk.len() - from).min(CHUNK_ROWS - self.rows));
        for (i, own) in self.columns.iter_mut().enumerate() {
            let vector = chunk.vector(i);
            let range = Range { vector, positions: chunk.positions(i), from, count, to: self.rows };
            let dictionary = vector.dictionary().filter(|_| !self.owning);
            match (self.rows, dictionary) {
                (0, Some(dictionary)) => {
                    own.begin_codes(dictionary, CHUNK_ROWS);
                }
                (0, None) => {
                    own.begin(CHUNK_ROWS);
                    own.set_strings_stable(!self.owning && vector.strings_are_stable());
                }
                (rows, other) => {
                    if own.dictionary().is_some_and(|own| other.is_none_or(|other| !Arc::ptr_eq(own, other)))
                    {
                        flatten(own, rows);
                    }
                }
            }
            if own.dictionary().is_some() {
                range.copy_codes(own.values_mut());
                range.copy_validity(own);
            } else {
                range.copy_to(own, !self.owning && vector.strings_are_stable());
            }
        }
        self.rows += count;
        count
    }

    /// Moves the rows so far to `chunk`, and starts again. The vectors remain shared with `chunk`, which must
    /// be cleared before the next row is appended.
    pub(crate) fn lend(&mut self, chunk: &mut Chunk) {
        chunk.reset(std::mem::take(&mut self.rows));
        let group = chunk.push_group(Selection::ALL);
        for own in &self.columns {
            chunk.push_column(own.clone(), group);
        }
    }

    /// The rows so far as a chunk, and its bytes, which its owner is to count; starts again. Half-empty
    /// vectors are shrunk.
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
            full.end_charge();
            bytes += capacity * ty.width() + full.heap().map_or(0, |heap| heap.bytes());
            chunk.push_column(full, group);
        }
        (chunk, bytes)
    }
}

/// Gives the first `rows` rows of a dictionary vector their values, with room for a chunk.
fn flatten(own: &mut Vector, rows: usize) {
    let coded = std::mem::replace(own, Vector::new(own.physical()));
    own.begin(CHUNK_ROWS);
    own.set_strings_stable(coded.strings_are_stable());
    let range = Range { vector: &coded, positions: None, from: 0, count: rows, to: 0 };
    range.copy_to(own, coded.strings_are_stable());
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

    /// Copies the rows to a flat vector. `shared`: strings need not be copied.
    fn copy_to(&self, own: &mut Vector, shared: bool) {
        match own.physical() {
            PhysicalType::Str if shared => self.copy::<StringView>(own.values_mut()),
            PhysicalType::Str => {
                own.set_strings_stable(false);
                self.copy_strings(own);
            }
            ty => match ty.width() {
                1 => self.copy::<u8>(own.values_mut()),
                2 => self.copy::<u16>(own.values_mut()),
                4 => self.copy::<u32>(own.values_mut()),
                8 => self.copy::<u64>(own.values_mut()),
                _ => self.copy::<i128>(own.values_mut()),
            },
        }
        self.copy_validity(own);
    }

    /// The length of a string, 0 for NULL.
    fn string_length(&self, row: usize) -> usize {
        let at = if self.vector.is_constant() { 0 } else { self.position(row) };
        if !self.vector.is_valid(at) {
            return 0;
        }
        match self.vector.dictionary() {
            Some(dictionary) => {
                dictionary.values().values::<StringView>()[self.vector.codes()[at] as usize].len()
            }
            None => self.vector.values::<StringView>()[at].len(),
        }
    }

    /// Copies the rows' codes.
    fn copy_codes(&self, out: &mut [u32]) {
        let codes = self.vector.codes();
        for (i, out) in out[self.to..self.to + self.count].iter_mut().enumerate() {
            *out = codes[self.position(i)];
        }
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
                // Codes at NULL positions may be of another dictionary.
                for (i, out) in out.iter_mut().enumerate() {
                    *out = entries.get(codes[self.position(i)] as usize).copied().unwrap_or_default();
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

    #[test]
    fn codes_are_kept_as_long_as_their_dictionary_is_the_same() {
        let text = |s: &str| Value::Text(s.into());
        let dictionary = |words: [&str; 2]| {
            Dictionary::new(Vector::from_values(PhysicalType::Str, &words.map(text)).unwrap(), 2)
        };
        let (one, other) = (dictionary(["a long string of the first", "b"]), dictionary(["c", "b"]));
        let coded = |dictionary: &Arc<Dictionary>, codes: [u32; 3]| {
            let mut vector = Vector::new(PhysicalType::Str);
            vector.begin_codes(dictionary, 3)[..3].copy_from_slice(&codes);
            vector.set_null(2);
            let mut chunk = Chunk::new();
            chunk.reset(3);
            let group = chunk.push_group(Selection::from_indices(&[1, 0, 2]));
            chunk.push_column(vector, group);
            chunk
        };
        // Codes at NULL positions mean nothing.
        let chunks = [coded(&one, [0, 1, 77]), coded(&one, [1, 1, 1]), coded(&other, [0, 1, 77])];
        let expected = ["b", "a long string of the first", "", "b", "b", "", "b", "c", ""];
        for count in 1..=3 {
            for owning in [false, true] {
                let types = [PhysicalType::Str];
                let mut rows = if owning { RowCopier::owning(&types) } else { RowCopier::sharing(&types) };
                chunks[..count].iter().for_each(|chunk| assert_eq!(rows.append(chunk, 0), 3));
                let mut out = Chunk::new();
                rows.lend(&mut out);
                let is_coded = out.vector(0).encoding() == Encoding::Dictionary;
                assert_eq!(is_coded, !owning && count < 3);
                for (row, expected) in expected[..3 * count].iter().enumerate() {
                    let expected = if expected.is_empty() { Value::Null } else { text(expected) };
                    assert_eq!(out.value(row, 0, DataType::Varchar), expected);
                }
            }
        }
    }
}
