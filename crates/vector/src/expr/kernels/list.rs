//! `x IN (constants)`.

use super::{Rows, as_held, operand, strict, unary};
use crate::expr::kernels::arithmetic::{Integer, Wide, with_integer};
use crate::hash::hash_bytes;
use crate::types::PhysicalType;
use crate::value::canonical_bits;
use crate::vector::Vector;
use crate::{DataType, Error, Result, StringView, Value};
use std::collections::HashSet;

/// The constants of a list, ready for look-up. NULLs are left out; whether there was one is kept.
#[derive(Debug, PartialEq, Eq)]
pub struct List {
    members: Members,
    has_null: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Members {
    /// Integers within a short span, as bits from the lowest on.
    Bits { low: i128, words: Vec<u64> },
    /// Integers.
    Integers(HashSet<i128>),
    /// Floats, by canonical bits.
    Floats(HashSet<u64>),
    /// Strings: a power-of-two table of slots, each 0 or 1 + the index of a string. At most half of them are
    /// taken.
    Strings { slots: Vec<u32>, strings: Vec<Box<[u8]>> },
    /// Intervals, by estimated length.
    Intervals(HashSet<i128>),
}

/// Longest span of integers that is kept as bits: one kilobyte.
const BITS_SPAN: i128 = 8192;

impl List {
    /// The constants `values` of type `ty`, to be searched in vectors of `physical`.
    ///
    /// # Errors
    /// Internal, if a value is of another type.
    pub fn new(values: &[Value], ty: DataType, physical: PhysicalType) -> Result<List> {
        let has_null = values.iter().any(Value::is_null);
        let mut integers = HashSet::new();
        let mut floats = HashSet::new();
        let mut strings: Vec<Box<[u8]>> = Vec::new();
        for value in values {
            match &as_held(value.clone(), ty) {
                Value::Null => {}
                Value::Boolean(v) => drop(integers.insert(i128::from(*v))),
                Value::Integer(v) => drop(integers.insert(*v)),
                Value::Float(v) if physical == PhysicalType::F32 => {
                    floats.insert(canonical_bits(f64::from(*v as f32)));
                }
                Value::Float(v) => drop(floats.insert(canonical_bits(*v))),
                Value::Text(v) => strings.push(v.as_bytes().into()),
                Value::Bytes(v) => strings.push(v.to_vec().into()),
                Value::Interval(v) => drop(integers.insert(v.estimate())),
            }
        }
        // Constants that do not fit the vectors' type do not occur in them.
        with_integer!(physical, T => integers.retain(|v| T::try_from(*v).is_ok()), ());
        let members = match physical {
            PhysicalType::F32 | PhysicalType::F64 => Members::Floats(floats),
            PhysicalType::Interval => Members::Intervals(integers),
            PhysicalType::Str => string_table(strings),
            _ => match (integers.iter().min(), integers.iter().max()) {
                (Some(&low), Some(&high)) if high.checked_sub(low).is_some_and(|span| span < BITS_SPAN) => {
                    let mut words = vec![0u64; crate::bitmap::words_for((high - low) as usize + 1)];
                    integers.iter().for_each(|v| crate::bitmap::set(&mut words, (v - low) as usize, true));
                    Members::Bits { low, words }
                }
                _ => Members::Integers(integers),
            },
        };
        Ok(List { members, has_null })
    }
}

fn string_table(strings: Vec<Box<[u8]>>) -> Members {
    let mut slots = vec![0u32; (strings.len() * 2).next_power_of_two().max(4)];
    let mask = slots.len() - 1;
    for (i, string) in strings.iter().enumerate() {
        let mut slot = hash_bytes(string) as usize & mask;
        while slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        slots[slot] = i as u32 + 1;
    }
    Members::Strings { slots, strings }
}

#[inline]
fn contains(slots: &[u32], strings: &[Box<[u8]>], text: &[u8]) -> bool {
    let mask = slots.len() - 1;
    let mut slot = hash_bytes(text) as usize & mask;
    while slots[slot] != 0 {
        if *strings[slots[slot] as usize - 1] == *text {
            return true;
        }
        slot = (slot + 1) & mask;
    }
    false
}

/// `a IN list`.
///
/// # Errors
/// Internal, if the list is of another type.
pub fn in_list(list: &List, a: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    strict(&[a], rows, out, |rows, out| {
        let found = out.values_mut::<u8>();
        match &list.members {
            Members::Floats(set) => match a.physical() {
                PhysicalType::F32 => {
                    unary(operand(a), rows, found, |v: f32| {
                        u8::from(set.contains(&canonical_bits(v.into())))
                    });
                }
                _ => unary(operand(a), rows, found, |v: f64| u8::from(set.contains(&canonical_bits(v)))),
            },
            Members::Intervals(set) => {
                unary(operand(a), rows, found, |v: crate::Interval| u8::from(set.contains(&v.estimate())));
            }
            Members::Strings { slots, strings } => {
                unary(operand(a), rows, found, |v: StringView| {
                    u8::from(contains(slots, strings, v.as_bytes()))
                });
            }
            Members::Bits { low, words } => with_integer!(
                a.physical(),
                T => {
                    let low = T::from_wide(*low);
                    let bits = words.len() as u64 * 64;
                    unary(operand::<T>(a), rows, found, |v: T| {
                        // The distance, wrapped, as an unsigned number of this width.
                        let far = T::wrapping(crate::expr::ArithmeticOp::Subtract, v, low);
                        let far = Into::<Wide>::into(far).0 as u128 & (u128::MAX >> (128 - T::BITS));
                        u8::from(far < u128::from(bits) && words[far as usize / 64] >> (far % 64) & 1 == 1)
                    });
                },
                return Err(Error::internal("a list of another type"))
            ),
            Members::Integers(set) => with_integer!(
                a.physical(),
                T => unary(operand::<T>(a), rows, found, |v: T| {
                    u8::from(set.contains(&Into::<Wide>::into(v).0))
                }),
                return Err(Error::internal("a list of another type"))
            ),
        }
        if list.has_null {
            // A value that equals no constant might equal the NULL.
            let mut nulls = Vec::new();
            rows.each(|p| {
                if found[p] == 0 {
                    nulls.push(p);
                }
            });
            nulls.into_iter().for_each(|p| out.set_null(p));
        }
        Ok(())
    })
}
