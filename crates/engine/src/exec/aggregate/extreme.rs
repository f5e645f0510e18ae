//! `min` and `max`: the best value of each group so far.
//!
//! All integers up to 64 bits are kept as `i64` in an order-preserving way, floats as `f64`, so there are
//! five kinds of array and not fourteen. A group that has seen nothing holds the worst value; a separate
//! count tells whether it has. Strings are kept as views, long transient ones in a heap of their own, which
//! is rebuilt when most of it is dead.

use crate::exec::aggregate::rows::{Rows, accumulate, combine, permute};
use entasis_vector::simd::widest;
use entasis_vector::value::cmp_float;
use entasis_vector::{Interval, PhysicalType, Stored, StringHeap, StringView, Vector};
use std::cmp::Ordering;
use std::sync::Arc;

/// The smallest or largest values of all groups.
pub struct Extreme {
    physical: PhysicalType,
    largest: bool,
    values: Values,
}

enum Values {
    /// Booleans and integers up to 64 bits; `U64` with its top bit flipped.
    Integer(Vec<i64>),
    Wide(Vec<i128>),
    Float(Vec<f64>),
    /// Absent until seen.
    Interval(Vec<Option<Interval>>),
    Text(Texts),
}

/// Strings by group.
struct Texts {
    /// Absent until seen.
    views: Vec<Option<StringView>>,
    heap: Arc<StringHeap>,
    /// No view points into the heap.
    stable: bool,
    /// Heap size at which it is rebuilt.
    limit: usize,
}

/// A heap below this is not worth rebuilding.
const SMALL_HEAP: usize = 1 << 20;

impl Extreme {
    /// Nothing seen yet, of values held as `physical`.
    pub fn new(physical: PhysicalType, largest: bool) -> Extreme {
        let values = match physical {
            PhysicalType::I128 => Values::Wide(Vec::new()),
            PhysicalType::F32 | PhysicalType::F64 => Values::Float(Vec::new()),
            PhysicalType::Interval => Values::Interval(Vec::new()),
            PhysicalType::Str => Values::Text(Texts {
                views: Vec::new(),
                heap: Arc::default(),
                stable: true,
                limit: SMALL_HEAP,
            }),
            _ => Values::Integer(Vec::new()),
        };
        Extreme { physical, largest, values }
    }

    /// Makes room for `groups` groups.
    pub fn resize(&mut self, groups: usize) {
        let largest = self.largest;
        match &mut self.values {
            Values::Integer(values) => values.resize(groups, if largest { i64::MIN } else { i64::MAX }),
            Values::Wide(values) => values.resize(groups, if largest { i128::MIN } else { i128::MAX }),
            Values::Float(values) => {
                values.resize(groups, if largest { f64::NEG_INFINITY } else { f64::NAN })
            }
            Values::Interval(values) => values.resize(groups, None),
            Values::Text(texts) => texts.views.resize(groups, None),
        }
    }

    /// Makes group `ids[i]` group i.
    pub fn reorder(&mut self, ids: &[u32]) {
        match &mut self.values {
            Values::Integer(values) => permute(values, ids),
            Values::Wide(values) => permute(values, ids),
            Values::Float(values) => permute(values, ids),
            Values::Interval(values) => permute(values, ids),
            Values::Text(texts) => permute(&mut texts.views, ids),
        }
    }

    /// Bytes of a group, without those of texts.
    pub fn width(&self) -> usize {
        match &self.values {
            Values::Integer(_) | Values::Float(_) => 8,
            Values::Wide(_) => 16,
            Values::Interval(_) => size_of::<Option<Interval>>(),
            Values::Text(_) => size_of::<Option<StringView>>(),
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Integer(values) => values.capacity() * 8,
            Values::Wide(values) => values.capacity() * 16,
            Values::Float(values) => values.capacity() * 8,
            Values::Interval(values) => values.capacity() * size_of::<Option<Interval>>(),
            Values::Text(texts) => {
                texts.views.capacity() * size_of::<Option<StringView>>() + texts.heap.bytes()
            }
        }
    }

    /// Folds the rows of a flat vector in.
    pub fn update(&mut self, vector: &Vector, rows: &Rows<'_>) {
        let largest = self.largest;
        match &mut self.values {
            Values::Integer(values) => {
                macro_rules! fold {
                    ($t:ty) => {{
                        let given = vector.values::<$t>();
                        match largest {
                            // PERF: values of a single group are compared in their narrow type, several at a
                            // time.
                            _ if rows.groups.is_none() && rows.positions.is_none() && rows.count > 0 => {
                                let (first, rest) = given[..rows.count].split_first().expect("just counted");
                                let best = match largest {
                                    true => widest(|| rest.iter().fold(*first, |a, &v| a.max(v))),
                                    false => widest(|| rest.iter().fold(*first, |a, &v| a.min(v))),
                                };
                                let value = &mut values[0];
                                *value = if largest {
                                    (*value).max(best as i64)
                                } else {
                                    (*value).min(best as i64)
                                };
                            }
                            true => accumulate(given, rows, values, |a, v| a.max(v as i64)),
                            false => accumulate(given, rows, values, |a, v| a.min(v as i64)),
                        }
                    }};
                }
                match vector.physical() {
                    PhysicalType::Bool | PhysicalType::U8 => fold!(u8),
                    PhysicalType::I8 => fold!(i8),
                    PhysicalType::I16 => fold!(i16),
                    PhysicalType::U16 => fold!(u16),
                    PhysicalType::I32 => fold!(i32),
                    PhysicalType::U32 => fold!(u32),
                    PhysicalType::U64 => match largest {
                        true => accumulate(vector.values::<u64>(), rows, values, |a, v| a.max(flip(v))),
                        false => accumulate(vector.values::<u64>(), rows, values, |a, v| a.min(flip(v))),
                    },
                    _ => fold!(i64),
                }
            }
            Values::Wide(values) => match largest {
                true => accumulate(vector.values::<i128>(), rows, values, i128::max),
                false => accumulate(vector.values::<i128>(), rows, values, i128::min),
            },
            Values::Float(values) => match (vector.physical(), largest) {
                (PhysicalType::F32, true) => {
                    accumulate(vector.values::<f32>(), rows, values, |a, v| max(a, v.into()))
                }
                (PhysicalType::F32, false) => {
                    accumulate(vector.values::<f32>(), rows, values, |a, v| min(a, v.into()));
                }
                (_, true) => accumulate(vector.values::<f64>(), rows, values, max),
                (_, false) => accumulate(vector.values::<f64>(), rows, values, min),
            },
            Values::Interval(values) => {
                accumulate(vector.values::<Interval>(), rows, values, |a, v| Some(better(a, v, largest)));
            }
            Values::Text(texts) => texts.update(vector, rows, largest),
        }
    }

    /// Folds stored integers into the only group.
    pub fn fold(&mut self, stored: &dyn Stored, column: usize) {
        let Values::Integer(values) = &mut self.values else {
            unreachable!("only integers are folded where they are stored")
        };
        let best = &mut values[0];
        *best = match self.physical {
            PhysicalType::U64 => flip(stored.extreme(column, self.largest, unflip(*best).into()) as u64),
            _ => stored.extreme(column, self.largest, (*best).into()) as i64,
        };
    }

    /// Combines `other`'s group `ids[i]` into the own group `map[i]`.
    pub fn merge(&mut self, other: &Extreme, ids: &[u32], map: &[u32]) {
        let largest = self.largest;
        match (&mut self.values, &other.values) {
            (Values::Integer(own), Values::Integer(other)) => {
                combine(own, other, ids, map, |a, b| if largest { a.max(b) } else { a.min(b) });
            }
            (Values::Wide(own), Values::Wide(other)) => {
                combine(own, other, ids, map, |a, b| if largest { a.max(b) } else { a.min(b) });
            }
            (Values::Float(own), Values::Float(other)) => {
                combine(own, other, ids, map, |a, b| if largest { max(a, b) } else { min(a, b) });
            }
            (Values::Interval(own), Values::Interval(other)) => {
                combine(own, other, ids, map, |a, b| match b {
                    Some(b) => Some(better(a, b, largest)),
                    None => a,
                })
            }
            (Values::Text(own), Values::Text(other)) => {
                for (&id, &to) in ids.iter().zip(map) {
                    if let Some(view) = other.views[id as usize] {
                        own.offer(to as usize, view, other.stable, largest);
                    }
                }
            }
            _ => unreachable!("states of one aggregate have one kind"),
        }
    }

    /// Writes the values of groups `start` to `start + rows` to `out`, of the argument's physical type.
    pub fn write(&self, start: usize, rows: usize, out: &mut Vector) {
        let range = start..start + rows;
        match &self.values {
            Values::Integer(values) => {
                macro_rules! narrow {
                    ($t:ty) => {
                        fill(out.begin_flat::<$t>(rows), &values[range], |v| v as $t)
                    };
                }
                match self.physical {
                    PhysicalType::Bool => {
                        fill(out.begin_flat::<u8>(rows), &values[range], |v| (v == 1).into())
                    }
                    PhysicalType::U8 => narrow!(u8),
                    PhysicalType::I8 => narrow!(i8),
                    PhysicalType::I16 => narrow!(i16),
                    PhysicalType::U16 => narrow!(u16),
                    PhysicalType::I32 => narrow!(i32),
                    PhysicalType::U32 => narrow!(u32),
                    PhysicalType::U64 => {
                        fill(out.begin_flat::<u64>(rows), &values[range], unflip);
                    }
                    _ => narrow!(i64),
                }
            }
            Values::Wide(values) => fill(out.begin_flat::<i128>(rows), &values[range], |v| v),
            Values::Float(values) if self.physical == PhysicalType::F32 => {
                fill(out.begin_flat::<f32>(rows), &values[range], |v| v as f32);
            }
            Values::Float(values) => fill(out.begin_flat::<f64>(rows), &values[range], |v| v),
            Values::Interval(values) => {
                fill(out.begin_flat::<Interval>(rows), &values[range], Option::unwrap_or_default);
            }
            Values::Text(texts) => {
                fill(out.begin_flat::<StringView>(rows), &texts.views[range], Option::unwrap_or_default);
                out.set_strings_stable(texts.stable);
                if !texts.stable {
                    out.share_heap(&texts.heap);
                }
            }
        }
    }
}

fn fill<S: Copy, T>(out: &mut [T], values: &[S], convert: impl Fn(S) -> T) {
    out.iter_mut().zip(values).for_each(|(o, &v)| *o = convert(v));
}

fn flip(v: u64) -> i64 {
    (v ^ 1 << 63) as i64
}

/// The inverse of [`flip`].
fn unflip(v: i64) -> u64 {
    v as u64 ^ 1 << 63
}

#[inline(always)]
fn max(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

#[inline(always)]
fn min(a: f64, b: f64) -> f64 {
    if cmp_float(b, a) == Ordering::Less { b } else { a }
}

fn better(old: Option<Interval>, new: Interval, largest: bool) -> Interval {
    match old {
        None => new,
        Some(old) if largest => old.max(new),
        Some(old) => old.min(new),
    }
}

impl Texts {
    fn update(&mut self, vector: &Vector, rows: &Rows<'_>, largest: bool) {
        let views = vector.values::<StringView>();
        let stable = vector.strings_are_stable();
        for row in 0..rows.count {
            let group = rows.groups.map_or(0, |groups| groups[row] as usize);
            let position = rows.positions.map_or(row, |at| at[row] as usize);
            self.offer(group, views[position], stable, largest);
        }
    }

    #[inline]
    fn offer(&mut self, group: usize, view: StringView, stable: bool, largest: bool) {
        let is_better = match &self.views[group] {
            None => true,
            Some(old) => view.cmp(old) == if largest { Ordering::Greater } else { Ordering::Less },
        };
        if is_better {
            self.views[group] = Some(if stable { view } else { self.keep(view) });
        }
    }

    fn keep(&mut self, view: StringView) -> StringView {
        self.stable = false;
        if self.heap.bytes() > self.limit {
            let mut live = StringHeap::new();
            self.views.iter_mut().flatten().for_each(|view| *view = live.push(view.as_bytes()));
            self.limit = (live.bytes() * 2).max(SMALL_HEAP);
            self.heap = Arc::new(live);
        }
        Arc::get_mut(&mut self.heap).expect("results are read after the last update").push(view.as_bytes())
    }
}
