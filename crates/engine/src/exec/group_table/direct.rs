//! Direct groups: keys with few values form one index by mixed radix, and an array maps it to the group id.
//!
//! An integer key contributes `value - min` if its column's range is known and small. A string key
//! contributes a small number that this module gives each distinct string, looked up once per dictionary
//! entry and then by code; so it takes part only as long as its vectors come with small dictionaries (or
//! constant), and as long as there are not more distinct strings than its share of the array. A boolean
//! contributes itself. NULL is one more value of each key.
//!
//! Where most positions of a chunk are rows, indexes are made for all of them, which is a vector loop, and
//! looked up by the rows; at positions that are no rows they do not matter. As long as groups are few, they
//! are not even looked up: each index is compared with those of all groups, which gives the positions' marks
//! ([`super::marked`]).
//!
//! No hashing, no comparisons: one array access per row once the index is computed. The array mostly stays in
//! the second-level cache; a single integer key may have a larger one if so many of its values are expected
//! that the array is no larger than a hash table would be. Callers must expect a refusal at any chunk
//! ([`Direct::find`]) and continue with a hash table.

use super::marked::{self, MASKED_GROUPS, NO_GROUP, ascend, unmark_others};
use crate::exec::materialized::Materialized;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{
    Chunk, Dictionary, Encoding, Native, PhysicalType, StringView, Vector, selection, simd,
};
use std::collections::HashMap;

/// The most entries of the array.
const MOST_INDEXES: u64 = 1 << 16;
/// The span that a single integer key may always have.
const WIDE_SINGLE: u64 = 1 << 18;
/// The span that a single integer key may have if one in [`SPARSEST`] of its values is expected.
const WIDEST_SINGLE: u64 = 1 << 24;
/// See [`WIDEST_SINGLE`].
const SPARSEST: u64 = 8;
/// The most distinct strings of one key.
const MOST_STRINGS: u64 = 1 << 12;
/// The strings of one key for which there must be room; with less, direct groups are pointless.
const FEWEST_STRINGS: u64 = 16;
/// Dictionaries with more entries are not looked up whole.
const LARGEST_DICTIONARY: usize = 1 << 12;

/// Entries of a dictionary whose numbers are looked up without a test of bounds.
const SHORT: usize = 1 << 8;
/// Indexes are computed for all positions if at least one in this many is a row.
const DENSE: usize = 2;

/// No group has this index yet.
const NONE: u32 = u32::MAX;

/// Keys to groups without hashing. See the module.
pub struct Direct {
    keys: Vec<Key>,
    /// Maps indexes to groups.
    slots: Vec<u32>,
    /// The index of each group, up to [`MASKED_GROUPS`] of them.
    few: Vec<u32>,
    groups: usize,
    indexes: Vec<u32>,
    new_rows: Vec<u16>,
    flat: Vector,
}

struct Key {
    /// The number of values, including one for NULL.
    span: u32,
    /// What each step of this key adds to the index.
    stride: u32,
    kind: KeyKind,
}

enum KeyKind {
    /// `value - min`; NULL is the last.
    Integer { min: i128 },
    /// By look-up; NULL is 0.
    Text(Texts),
}

/// Numbers for strings.
#[derive(Default)]
struct Texts {
    numbers: HashMap<Box<[u8]>, u32>,
    /// The dictionary that `by_code` belongs to.
    dictionary: Option<u64>,
    /// Number times stride, by code; [`SHORT`] entries at least.
    by_code: Vec<u32>,
}

impl Direct {
    /// A direct table for keys like `keys`, if they allow it, and about `expected` groups.
    pub fn new(keys: &[ColumnMeta], expected: usize) -> Option<Direct> {
        let widest_single = (expected as u64 * SPARSEST).clamp(WIDE_SINGLE, WIDEST_SINGLE);
        let span_of = |meta: &ColumnMeta| match meta.physical {
            PhysicalType::Str | PhysicalType::I128 | PhysicalType::Interval => None,
            PhysicalType::F32 | PhysicalType::F64 => None,
            _ => {
                let (min, max) = meta.range?;
                u64::try_from(max.checked_sub(min)?)
                    .ok()?
                    .checked_add(2)
                    .filter(|&span| span <= widest_single)
            }
        };
        let mut product: u64 = 1;
        let mut texts = 0;
        for meta in keys {
            match meta.physical {
                PhysicalType::Str => texts += 1,
                _ => product = product.checked_mul(span_of(meta)?)?,
            }
        }
        let most = if keys.len() == 1 && texts == 0 { widest_single } else { MOST_INDEXES };
        let strings = match texts {
            0 => 1,
            _ => ((MOST_INDEXES / product.min(MOST_INDEXES)) as f64).powf(1.0 / texts as f64) as u64,
        };
        let strings = strings.min(MOST_STRINGS);
        if product > most || (texts > 0 && strings < FEWEST_STRINGS) {
            return None;
        }
        let mut stride = 1;
        let make = |meta: &ColumnMeta| {
            let (span, kind) = match meta.physical {
                PhysicalType::Str => (strings as u32, KeyKind::Text(Texts::default())),
                _ => (span_of(meta)? as u32, KeyKind::Integer { min: meta.range?.0 }),
            };
            let key = Key { span, stride, kind };
            stride *= span;
            Some(key)
        };
        let keys = keys.iter().map(make).collect::<Option<Vec<Key>>>()?;
        Some(Direct {
            keys,
            slots: vec![NONE; stride as usize],
            few: Vec::new(),
            groups: 0,
            indexes: Vec::new(),
            new_rows: Vec::new(),
            flat: Vector::new(PhysicalType::I64),
        })
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let texts = self.keys.iter().map(|key| match &key.kind {
            KeyKind::Integer { .. } => 0,
            KeyKind::Text(texts) => texts.numbers.len() * 48 + texts.by_code.capacity() * 4,
        });
        self.slots.len() * 4 + texts.sum::<usize>()
    }

    /// Finds or creates the group of each row; new keys go to `keys`. False, and nothing is done, if these
    /// rows' keys have no index.
    pub fn find(
        &mut self,
        chunk: &Chunk,
        columns: &[usize],
        keys: &mut Materialized,
        groups: &mut [u32],
    ) -> bool {
        let dense = self.dense_positions(chunk, columns);
        self.indexes.clear();
        self.indexes.resize(dense.map_or(chunk.len(), |(_, limit)| limit), 0);
        for (key, &column) in self.keys.iter_mut().zip(columns) {
            let positions = if dense.is_some() { None } else { chunk.positions(column) };
            if !key.add_to(&mut self.indexes, chunk, column, positions, &mut self.flat) {
                return false;
            }
        }
        let dense = dense.map(|(at, _)| at);
        match dense {
            Some(at) => self.look_up(at.iter().map(|&at| self.indexes[at as usize]), groups),
            None => self.look_up(self.indexes.iter().copied(), groups),
        }
        if groups[..chunk.len()].contains(&NONE) {
            self.new_rows.clear();
            let mut next = keys.rows() as u32;
            for (row, group) in groups[..chunk.len()].iter_mut().enumerate() {
                let index = self.indexes[dense.map_or(row, |at| at[row] as usize)];
                let slot = &mut self.slots[index as usize];
                if *slot == NONE {
                    *slot = next;
                    self.few.extend((next < MASKED_GROUPS as u32).then_some(index));
                    next += 1;
                    self.new_rows.push(row as u16);
                }
                *group = *slot;
            }
            keys.append(chunk, columns, Some(&self.new_rows));
            self.groups = next as usize;
        }
        true
    }

    /// Marks the positions of the rows with their groups. False, and nothing is done, if groups are not few,
    /// a row's group is new, or keys are not at the same positions, ascending and mostly rows.
    pub fn mark(&mut self, chunk: &Chunk, columns: &[usize], marks: &mut Vec<u8>) -> bool {
        if self.few.is_empty() || self.few.len() < self.groups {
            return false;
        }
        let all_rows = columns.iter().all(|&column| chunk.positions(column).is_none());
        let (positions, limit) = match self.dense_positions(chunk, columns) {
            _ if all_rows => (None, chunk.len()),
            Some((positions, limit)) if ascend(positions) => (Some(positions), limit),
            _ => return false,
        };
        self.indexes.clear();
        self.indexes.resize(limit, 0);
        for (key, &column) in self.keys.iter_mut().zip(columns) {
            if !key.add_to(&mut self.indexes, chunk, column, None, &mut self.flat) {
                return false;
            }
        }
        marks.clear();
        marks.resize(limit, NO_GROUP);
        for (group, &index) in self.few.iter().enumerate() {
            let pairs = marks.iter_mut().zip(&self.indexes);
            simd::widest(|| {
                pairs.for_each(|(mark, &other)| *mark = if other == index { group as u8 } else { *mark })
            });
        }
        if let Some(positions) = positions {
            unmark_others(positions, marks);
        }
        limit - marked::count(marks, NO_GROUP) == chunk.len()
    }

    fn look_up(&self, indexes: impl Iterator<Item = u32>, groups: &mut [u32]) {
        groups.iter_mut().zip(indexes).for_each(|(group, index)| *group = self.slots[index as usize]);
    }

    /// The positions of the rows and the end of all positions, if all keys have the same, most of them are
    /// rows, and every key tolerates those that are not.
    fn dense_positions<'c>(&self, chunk: &'c Chunk, columns: &[usize]) -> Option<(&'c [u16], usize)> {
        let positions = chunk.positions(*columns.first()?)?;
        let is_one = |&column: &usize| chunk.positions(column).is_some_and(|at| std::ptr::eq(at, positions));
        let bears = |(key, &column): (&Key, &usize)| match (&key.kind, chunk.vector(column).encoding()) {
            (KeyKind::Integer { .. }, encoding) => encoding == Encoding::Flat,
            (KeyKind::Text(_), Encoding::Dictionary) => {
                chunk.vector(column).dictionary().is_some_and(|dictionary| dictionary.len() <= SHORT)
            }
            (KeyKind::Text(_), _) => true,
        };
        // Joins and sorts leave positions in any order.
        let limit = selection::limit(positions);
        let is_dense = limit <= positions.len() * DENSE;
        (is_dense && columns.iter().all(is_one) && self.keys.iter().zip(columns).all(bears))
            .then_some((positions, limit))
    }
}

impl Key {
    /// Adds what this key contributes to the indexes of the positions given; `None`: of all positions.
    fn add_to(
        &mut self,
        indexes: &mut [u32],
        chunk: &Chunk,
        column: usize,
        positions: Option<&[u16]>,
        flat: &mut Vector,
    ) -> bool {
        let vector = chunk.vector(column);
        let (span, stride) = (self.span, self.stride);
        match &mut self.kind {
            KeyKind::Integer { min } => {
                let (vector, positions) = match vector.encoding() {
                    Encoding::Flat => (vector, positions),
                    _ => {
                        chunk.flatten_column(column, flat);
                        (&*flat, None)
                    }
                };
                let min = *min as i64;
                macro_rules! add {
                    ($t:ty) => {
                        add_integers(indexes, vector, positions, span, stride, |v: $t| {
                            (v as i64).wrapping_sub(min)
                        })
                    };
                }
                match vector.physical() {
                    PhysicalType::Bool | PhysicalType::U8 => add!(u8),
                    PhysicalType::I8 => add!(i8),
                    PhysicalType::I16 => add!(i16),
                    PhysicalType::I32 => add!(i32),
                    PhysicalType::I64 => add!(i64),
                    PhysicalType::U16 => add!(u16),
                    PhysicalType::U32 => add!(u32),
                    PhysicalType::U64 => add!(u64),
                    _ => return false,
                }
                true
            }
            KeyKind::Text(texts) => texts.add_to(indexes, vector, positions, span, stride),
        }
    }
}

#[inline(always)]
fn add_integers<T: Native>(
    indexes: &mut [u32],
    vector: &Vector,
    positions: Option<&[u16]>,
    span: u32,
    stride: u32,
    offset: impl Fn(T) -> i64,
) {
    let values = vector.values::<T>();
    // Positions that are no rows hold arbitrary values.
    let step =
        |index: &mut u32, value: T| *index = index.wrapping_add((offset(value) as u32).wrapping_mul(stride));
    match (vector.validity(), positions) {
        (None, None) => simd::widest(|| indexes.iter_mut().zip(values).for_each(|(i, &v)| step(i, v))),
        (None, Some(at)) => indexes.iter_mut().zip(at).for_each(|(i, &p)| step(i, values[p as usize])),
        (Some(_), _) => {
            for (row, index) in indexes.iter_mut().enumerate() {
                let position = positions.map_or(row, |at| at[row] as usize);
                let offset =
                    if vector.is_valid(position) { offset(values[position]) as u32 } else { span - 1 };
                *index = index.wrapping_add(offset.wrapping_mul(stride));
            }
        }
    }
}

impl Texts {
    /// The number of a string, if there is one left.
    fn number(&mut self, text: StringView, span: u32) -> Option<u32> {
        if let Some(&number) = self.numbers.get(text.as_bytes()) {
            return Some(number);
        }
        let number = self.numbers.len() as u32 + 1;
        if number >= span {
            return None;
        }
        self.numbers.insert(text.as_bytes().into(), number);
        Some(number)
    }

    fn learn(&mut self, dictionary: &Dictionary, span: u32, stride: u32) -> bool {
        if self.dictionary == Some(dictionary.id()) {
            return true;
        }
        if dictionary.len() > LARGEST_DICTIONARY {
            return false;
        }
        self.dictionary = None;
        self.by_code.clear();
        for &text in &dictionary.values().values::<StringView>()[..dictionary.len()] {
            match self.number(text, span) {
                Some(number) => self.by_code.push(number * stride),
                None => return false,
            }
        }
        self.by_code.resize(self.by_code.len().max(SHORT), 0);
        self.dictionary = Some(dictionary.id());
        true
    }

    fn add_to(
        &mut self,
        indexes: &mut [u32],
        vector: &Vector,
        positions: Option<&[u16]>,
        span: u32,
        stride: u32,
    ) -> bool {
        match vector.encoding() {
            Encoding::Flat => false,
            Encoding::Constant => {
                let number = match vector.is_valid(0) {
                    true => self.number(vector.values::<StringView>()[0], span),
                    false => Some(0),
                };
                let Some(number) = number else { return false };
                indexes.iter_mut().for_each(|index| *index = index.wrapping_add(number * stride));
                true
            }
            Encoding::Dictionary => {
                if !self.learn(vector.dictionary().expect("a dictionary vector has one"), span, stride) {
                    return false;
                }
                let codes = vector.codes();
                // Positions that are no rows hold any code, and have any index.
                let by_code = |code: u32| self.by_code.get(code as usize).copied().unwrap_or(0);
                let step = |index: &mut u32, number: u32| *index = index.wrapping_add(number);
                let short = self.by_code.first_chunk::<SHORT>().filter(|_| self.by_code.len() == SHORT);
                match (vector.validity(), positions, short) {
                    // PERF: a table of known length needs no bounds check, which would prevent vectorization.
                    (None, None, Some(short)) => simd::widest(|| {
                        indexes
                            .iter_mut()
                            .zip(codes)
                            .for_each(|(i, &code)| step(i, short[code as usize % SHORT]));
                    }),
                    (None, Some(at), _) => {
                        indexes.iter_mut().zip(at).for_each(|(i, &p)| step(i, by_code(codes[p as usize])));
                    }
                    _ => {
                        for (row, index) in indexes.iter_mut().enumerate() {
                            let position = positions.map_or(row, |at| at[row] as usize);
                            if vector.is_valid(position) {
                                step(index, by_code(codes[position]));
                            }
                        }
                    }
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::{ColumnId, DataType, Selection, Value};

    /// Positions that are no rows hold codes that no dictionary has, and numbers out of range.
    #[test]
    fn what_is_no_row_does_not_matter() {
        let texts = ["a", "b", "c"].map(|text| Value::Text(text.into()));
        let dictionary = Dictionary::new(Vector::from_values(PhysicalType::Str, &texts).unwrap(), 3);
        let selected: Vec<u16> = (0..100).filter(|position| position % 4 != 1).collect();
        for nullable in [false, true] {
            let mut text = Vector::new(PhysicalType::Str);
            let codes = text.begin_codes(&dictionary, 100);
            codes[..100].fill(70_000);
            selected.iter().for_each(|&position| codes[position as usize] = u32::from(position) % 3);
            if nullable {
                text.set_null(6);
            }
            let number =
                |position: u16| if selected.contains(&position) { i64::from(position) / 50 + 5 } else { -1 };
            let number = Vector::from_slice(&(0..100).map(number).collect::<Vec<i64>>());
            let mut chunk = Chunk::new();
            chunk.reset(selected.len());
            let group = chunk.push_group(Selection::from_indices(&selected));
            chunk.push_column(number, group);
            chunk.push_column(text, group);
            let mut metas = [DataType::Int64, DataType::Varchar].map(|ty| ColumnMeta::new(ColumnId(0), ty));
            metas[0].range = Some((5, 6));
            let mut direct = Direct::new(&metas, 10).unwrap();
            let mut keys = Materialized::new(&metas);
            let mut groups = vec![0; selected.len()];
            let mut marks = vec![1, 2, 3];
            assert!(!direct.mark(&chunk, &[0, 1], &mut marks), "all groups are new");
            for _ in 0..2 {
                assert!(direct.dense_positions(&chunk, &[0, 1]).is_some());
                assert!(direct.find(&chunk, &[0, 1], &mut keys, &mut groups));
                for (row, &group) in groups.iter().enumerate() {
                    assert_eq!(keys.value(group, 0), chunk.value(row, 0, DataType::Int64));
                    assert_eq!(keys.value(group, 1), chunk.value(row, 1, DataType::Varchar));
                }
            }
            assert_eq!(keys.rows(), if nullable { 7 } else { 6 });
            assert!(direct.mark(&chunk, &[0, 1], &mut marks));
            let mut expected = [NO_GROUP; 100];
            selected
                .iter()
                .zip(&groups)
                .for_each(|(&position, &group)| expected[usize::from(position)] = group as u8);
            assert_eq!(marks, &expected[..marks.len()]);
            assert!(expected[marks.len()..].iter().all(|&mark| mark == NO_GROUP));
        }
    }
}
