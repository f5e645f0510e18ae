//! Disjunctions of ranges: which rows satisfy a condition of `AND`s and `OR`s over integer columns that are
//! compared with constants.
//!
//! Only the rows that pass are wanted, so NULL is as good as false, and two values are enough. Each
//! comparison gives a bit per position, 64 to a word, whether or not the position is still in question;
//! the junctions are operations on words. That takes a fraction of a nanosecond per row and comparison:
//! less than to list the rows that each part leaves, unless that is hardly any.

use super::Rows;
use super::select::positions;
use crate::buffer::Native;
use crate::simd::{Kernel, widest_of};
use crate::types::PhysicalType;
use crate::vector::Vector;
use crate::{CHUNK_ROWS, bitmap};

/// A step of a condition, which works on a stack of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Pushes whether an operand, told by its number, is within inclusive bounds.
    Within { operand: usize, low: i64, high: i64 },
    /// Combines the two results on top.
    Junction { or: bool },
}

/// The most results on the stack.
pub const DEPTH: usize = 8;

/// Words of positions that are computed before any is written.
const WORDS: usize = CHUNK_ROWS / 64;

/// A bit per position, from the lowest bit of the first word on.
type Words = [u64; WORDS];

/// True if [`Step::Within`] takes operands of this type.
pub fn is_supported(physical: PhysicalType) -> bool {
    use PhysicalType::{I8, I16, I32, I64};
    matches!(physical, I8 | I16 | I32 | I64)
}

/// A condition as text.
pub fn in_words(steps: &[Step], operand: impl Fn(usize) -> String) -> String {
    // Each with whether it is a disjunction.
    let mut stack: Vec<(String, bool)> = Vec::new();
    let enclosed = |(text, is_or): (String, bool)| if is_or { format!("({text})") } else { text };
    for step in steps {
        let text = match *step {
            Step::Within { operand: number, low, high } => match (low, high) {
                (i64::MIN, _) => format!("{} <= {high}", operand(number)),
                (_, i64::MAX) => format!("{} >= {low}", operand(number)),
                _ if low == high => format!("{} = {low}", operand(number)),
                _ => format!("{} in {low}..={high}", operand(number)),
            },
            Step::Junction { or } => {
                let (right, left) = (stack.pop().unwrap_or_default(), stack.pop().unwrap_or_default());
                match or {
                    true => format!("{} or {}", left.0, right.0),
                    false => format!("{} and {}", enclosed(left), enclosed(right)),
                }
            }
        };
        stack.push((text, matches!(step, Step::Junction { or: true })));
    }
    stack.pop().unwrap_or_default().0
}

/// Writes to `out` the positions of `rows` that satisfy the condition, in order. Operands are flat or
/// constant.
pub fn select<'v>(steps: &[Step], operand: impl Fn(usize) -> &'v Vector, rows: Rows<'_>, out: &mut Vec<u16>) {
    // Room for eight positions past the end, so that stores need no test.
    out.resize(rows.len().max(CHUNK_ROWS) + 8, 0);
    let (mut end, mut left) = (0, rows);
    for start in (0..rows.limit()).step_by(CHUNK_ROWS) {
        let count = (rows.limit() - start).min(CHUNK_ROWS);
        let bits = truths(steps, &operand, start, count);
        match left {
            Rows::Dense(_) => end = positions(&bits, start..start + count, out, end),
            Rows::Sparse(list, limit) => {
                let (these, others) =
                    list.split_at(list.partition_point(|&p| usize::from(p) < start + count));
                for &p in these {
                    out[end] = p;
                    end += usize::from(bitmap::get(&bits, usize::from(p) - start));
                }
                left = Rows::Sparse(others, limit);
            }
        }
    }
    out.truncate(end);
}

/// Which of `count` positions from `start` on satisfy the condition. Bits of others mean nothing.
fn truths<'v>(steps: &[Step], operand: impl Fn(usize) -> &'v Vector, start: usize, count: usize) -> Words {
    let mut stack = [[0; WORDS]; DEPTH];
    let mut top = 0;
    for step in steps {
        match *step {
            Step::Within { operand: number, low, high } => {
                within(operand(number), low, high, start, count, &mut stack[top]);
                top += 1;
            }
            Step::Junction { or } => {
                top -= 1;
                let (below, above) = stack.split_at_mut(top);
                let pairs = below[top - 1].iter_mut().zip(&above[0]);
                pairs.for_each(|(a, b)| *a = if or { *a | b } else { *a & b });
            }
        }
    }
    stack[0]
}

/// Whether the values of a vector are within bounds.
fn within(x: &Vector, low: i64, high: i64, start: usize, count: usize, out: &mut Words) {
    macro_rules! by_distance {
        ($t:ty, $u:ty) => {{
            let (least, greatest) = (i64::from(<$t>::MIN), i64::from(<$t>::MAX));
            let is_some = low.max(least) <= high.min(greatest);
            let (low, high) = (low.clamp(least, greatest) as $t, high.clamp(least, greatest) as $t);
            let span = high.wrapping_sub(low) as $u;
            let values = x.values::<$t>();
            let test = move |v: $t| is_some & (v.wrapping_sub(low) as $u <= span);
            if x.is_constant() {
                let all = if x.is_valid(0) && test(values[0]) { !0 } else { 0 };
                out.fill(all);
            } else {
                widest_of(Bits { values: &values[start..start + count], test, out });
            }
        }};
    }
    match x.physical() {
        PhysicalType::I8 => by_distance!(i8, u8),
        PhysicalType::I16 => by_distance!(i16, u16),
        PhysicalType::I32 => by_distance!(i32, u32),
        _ => by_distance!(i64, u64),
    }
    if let Some(validity) = x.validity().filter(|_| !x.is_constant()) {
        out.iter_mut().zip(&validity[start / 64..]).for_each(|(bits, valid)| *bits &= valid);
    }
}

/// A test of values, a bit each.
struct Bits<'a, T, F> {
    values: &'a [T],
    test: F,
    out: &'a mut Words,
}

impl<T: Native, F: Fn(T) -> bool + Copy> Kernel for Bits<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Bits { values, test, out } = self;
        let (blocks, rest) = values.as_chunks::<64>();
        for (bits, block) in out.iter_mut().zip(blocks) {
            let mut bytes = [0u8; 64];
            bytes.iter_mut().zip(block).for_each(|(byte, &v)| *byte = u8::from(test(v)));
            // PERF: the product moves the bit of byte i to bit 56 + i.
            let ones = |eight: [u8; 8]| u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            let (eights, _) = bytes.as_chunks::<8>();
            *bits = eights.iter().rev().fold(0, |bits, eight| bits << 8 | ones(*eight));
        }
        if !rest.is_empty() {
            out[blocks.len()] = rest.iter().rev().fold(0, |bits, &v| bits << 1 | u64::from(test(v)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    /// Numbers from 0 to 99, NULL where divisible by 7.
    fn numbers(physical: PhysicalType, step: usize) -> Vector {
        let number = |p: usize| (p * step) % 100;
        let value = |p: usize| {
            if number(p).is_multiple_of(7) { Value::Null } else { Value::Integer(number(p) as i128) }
        };
        Vector::from_values(physical, &(0..1500).map(value).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn bits_are_what_each_row_says() {
        use PhysicalType::{I8, I16, I32, I64};
        let within = |operand: usize, low: i64, high: i64| Step::Within { operand, low, high };
        let (and, or) = (Step::Junction { or: false }, Step::Junction { or: true });
        let steps = [
            within(0, 0, 9),
            within(1, 50, 60),
            within(2, 1, 1),
            or,
            and,
            within(0, 10, 19),
            within(1, 5, 90),
            and,
            or,
            within(1, 9, 8),
            or,
            within(1, i64::MIN, -1000),
            or,
            within(0, 1000, i64::MAX),
            or,
        ];
        for physical in [I8, I16, I32, I64] {
            let constant = Vector::constant(physical, &Value::Integer(1)).unwrap();
            let vectors = [numbers(physical, 3), numbers(physical, 11), constant];
            let value = |v: usize, p: usize| {
                let number = (p * [3, 11][v]) % 100;
                (!number.is_multiple_of(7)).then_some(number)
            };
            let is = |v: usize, p: usize, low, high| value(v, p).is_some_and(|x| (low..=high).contains(&x));
            let expected = |p: &u16| {
                let p = usize::from(*p);
                is(0, p, 0, 9) || is(0, p, 10, 19) && is(1, p, 5, 90)
            };
            for count in [0, 1, 63, 64, 65, 1499, 1500] {
                let all: Vec<u16> = (0..count).filter(expected).collect();
                let mut out = Vec::new();
                select(&steps, |v| &vectors[v], Rows::Dense(usize::from(count)), &mut out);
                assert_eq!(out, all, "{count} of {physical:?}");
                let list: Vec<u16> = (0..count).filter(|p| p % 3 == 0).collect();
                select(&steps, |v| &vectors[v], Rows::Sparse(&list, usize::from(count)), &mut out);
                assert_eq!(out, list.iter().copied().filter(expected).collect::<Vec<_>>());
            }
        }
    }
}
