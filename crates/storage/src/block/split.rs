//! Floats that are no decimals, cut in two: ALP-RD of Afroozeh, Kuffo and Boncz, "ALP: Adaptive Lossless
//! floating-Point Compression", SIGMOD 2023, section 3.4 (real doubles).
//!
//! The idea. The sign, the exponent and the first bits of the mantissa of neighbouring values are few
//! patterns; the other bits are noise. So the bits of a value are cut: the *head* on the left, of at most 16
//! bits, becomes a code of up to 3 bits in a table of up to 8 heads, and the *tail* on the right is packed as
//! it is. A value whose head is not in the table is a patch: its head stands beside the block, its tail among
//! the others.
//!
//! 1. [`Cut::best`] tries every place to cut and every size of the table, and takes the smallest block. It
//!    counts the heads of all values, so that sizes are known before anything is encoded.
//! 2. [`Split::new`] cuts the values there.
//! 3. [`Split::decode`] unpacks codes and tails and joins them; then patches get their heads.
//!
//! A range is tested on heads first. Values with one head lie between two numbers, so a head is within the
//! range, outside of it, or in part: only then are tails unpacked and values compared. The slow twin decodes
//! one value after the other.
//!
//! Invariants: every value comes back bit for bit, NaN payloads included. Tails of doubles have 48 to 63
//! bits, those of floats 17 to 31, so that their lanes are as wide as the values.
//!
//! Unlike in the paper, each block has its own cut and table, found from all of its values: blocks are read
//! independently. Not here: decimals, which [`super::scaled`] makes much smaller.

use super::codec::{Chosen, Codec, FixedCodec, Planned};
use super::codes::bits_of;
use super::example::{Example, scattered};
use super::floats::FloatRange;
use super::packed::{FEW, Lane, Packed, Room};
use super::patches::Patches;
use super::reading::{HeldSlots, Selected};
use super::serialized::{BlockWriter, Flaw, Reader};
use super::unencoded::Unencoded;
use super::{Fixed, search};
use crate::BLOCK_ROWS;
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::simd::widest;
use entasis_vector::{Buffer, Native, PhysicalType, Value};
use std::cmp::Reverse;

/// The most bits of a head.
const HEAD_BITS: usize = 16;
/// The most heads of a table.
const MOST_HEADS: usize = 8;
/// The most bits of a code.
const CODE_BITS: usize = 3;

/// The bits of a float of this type: 64, or 32.
fn bits_of_type<T>() -> usize {
    size_of::<T>() * 8
}

/// The bits of a tail, at least: a head has at most [`HEAD_BITS`], and lanes of tails are as wide as values.
fn least_tail(bits: usize) -> usize {
    (bits - HEAD_BITS).max(bits / 2 + 1)
}

/// Where values are cut, and the heads that get codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bits of a tail.
    tail: usize,
    /// The most frequent heads first: 1, 2, 4 or 8, or fewer if there are no more.
    heads: Vec<u16>,
    /// Bytes of the block besides its header.
    bytes: usize,
}

impl Cut {
    /// The cut that makes up to 1024 floats smallest; `None` if there are none, or if they are no floats.
    fn best<T: Fixed>(values: &[T]) -> Option<Cut> {
        if !T::IS_FLOAT || values.is_empty() {
            return None;
        }
        let bits = bits_of_type::<T>();
        let least = least_tail(bits);
        let mut heads: Vec<u16> = values.iter().map(|value| (value.bits() >> least) as u16).collect();
        heads.sort_unstable();
        let mut counts: Vec<(u16, u32)> = heads.iter().map(|&head| (head, 1)).collect();
        let mut best: Option<Cut> = None;
        for tail in least..bits {
            merge_equal(&mut counts);
            let smallest = smallest_table(values.len(), tail, &counts);
            if best.as_ref().is_none_or(|best| smallest.bytes < best.bytes) {
                best = Some(smallest);
            }
            // The next cut is one bit further on the left.
            counts.iter_mut().for_each(|(head, _)| *head >>= 1);
        }
        best
    }
}

/// Adds the counts of adjacent heads that are equal.
fn merge_equal(counts: &mut Vec<(u16, u32)>) {
    counts.dedup_by(|next, first| {
        let is_same = next.0 == first.0;
        first.1 += if is_same { next.1 } else { 0 };
        is_same
    });
}

/// The smallest block of values with such tails, of whose heads these are the counts.
fn smallest_table(values: usize, tail: usize, counts: &[(u16, u32)]) -> Cut {
    let mut most: Vec<(u16, u32)> = counts.to_vec();
    let order = |&(head, count): &(u16, u32)| (Reverse(count), head);
    if most.len() > MOST_HEADS {
        most.select_nth_unstable_by_key(MOST_HEADS - 1, order);
        most.truncate(MOST_HEADS);
    }
    most.sort_unstable_by_key(order);
    let sizes = (0..=CODE_BITS).map(|bits| {
        let heads = most.len().min(1 << bits);
        let covered: u32 = most[..heads].iter().map(|(_, count)| count).sum();
        (size(tail, heads, values - covered as usize), heads)
    });
    let (bytes, heads) = sizes.min().expect("there are sizes");
    Cut { tail, heads: most[..heads].iter().map(|(head, _)| *head).collect(), bytes }
}

/// Bytes of 1024 values with such tails, codes for so many heads, and so many patches.
fn size(tail: usize, heads: usize, patches: usize) -> usize {
    let codes = code_bits(heads).map_or(0, Packed::size);
    size_of::<Split>() + Packed::size(tail) + codes + patches * Patches::<u16>::SIZE
}

/// Bits of a code for so many heads; `None` if there is nothing to tell apart.
fn code_bits(heads: usize) -> Option<usize> {
    (heads > 1).then(|| bits_of(heads as u64 - 1))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Split {
    /// What codes stand for; zeros behind the last one.
    heads: [u16; MOST_HEADS],
    /// How many heads there are.
    count: u8,
    /// The code of each slot's head, unless there is one head only.
    codes: Option<Packed>,
    tails: Packed,
    /// Heads that have no code.
    patches: Patches<u16>,
}

impl Split {
    /// Cuts up to 1024 floats.
    fn new<T: Fixed>(values: &[T], cut: &Cut) -> Split {
        let mut heads = [0; MOST_HEADS];
        heads[..cut.heads.len()].copy_from_slice(&cut.heads);
        let (mut codes, mut patches) = (Vec::with_capacity(values.len()), Vec::new());
        for (slot, value) in values.iter().enumerate() {
            let head = (value.bits() >> cut.tail) as u16;
            let code = cut.heads.iter().position(|own| *own == head);
            if code.is_none() {
                patches.push((slot as u16, head));
            }
            codes.push(code.unwrap_or(0) as u64);
        }
        let tails = values.iter().map(|value| value.bits() & (u64::MAX >> (64 - cut.tail)));
        Split {
            heads,
            count: cut.heads.len() as u8,
            codes: code_bits(cut.heads.len()).map(|bits| Packed::new(bits, codes.into_iter())),
            tails: Packed::new(cut.tail, tails),
            patches: Patches::new(&patches),
        }
    }

    /// The heads that codes stand for, the codes, the tails, and the heads without a code, of values held as
    /// `physical`; `None` if these are no such parts.
    fn of_parts(
        heads: &[u16],
        codes: Option<Packed>,
        tails: Packed,
        patches: &[(u16, u16)],
        physical: PhysicalType,
    ) -> Option<Split> {
        let bits = physical.width() * 8;
        let tail = tails.width();
        let is_head = |head: u16| bits_of(head.into()) <= bits - tail;
        let is_right = (1..=MOST_HEADS).contains(&heads.len())
            && (least_tail(bits)..bits).contains(&tail)
            && codes.as_ref().map(Packed::width) == code_bits(heads.len())
            && heads.iter().chain(patches.iter().map(|(_, head)| head)).all(|head| is_head(*head));
        let mut all = [0; MOST_HEADS];
        is_right.then(|| {
            all[..heads.len()].copy_from_slice(heads);
            Split { heads: all, count: heads.len() as u8, codes, tails, patches: Patches::new(patches) }
        })
    }

    /// The bits of the value in `slot`.
    fn bits(&self, slot: usize) -> u64 {
        let code = || self.codes.as_ref().map_or(0, |codes| codes.get(slot));
        let head = self.patches.get(slot).unwrap_or_else(|| self.heads[code() as usize % MOST_HEADS]);
        self.joined(head, slot)
    }

    /// A head, and the tail in `slot`.
    fn joined(&self, head: u16, slot: usize) -> u64 {
        u64::from(head) << self.tails.width() | self.tails.get(slot)
    }

    /// Writes the values from `from` on to all of `out`.
    fn decode_lanes<T: Fixed, L: Lane>(&self, from: usize, out: &mut [T]) {
        self.decode_coded::<T, L>(from, out);
        for (at, head) in self.patches.within(from, from + out.len()) {
            out[at] = T::of_bits(self.joined(head, from + at));
        }
    }

    /// The same as if no slot had a patch.
    fn decode_coded<T: Fixed, L: Lane>(&self, from: usize, out: &mut [T]) {
        let mut room = Room::<L>::new();
        let tails = &self.tails.unpack_all(&mut room)[from..];
        let width = self.tails.width();
        let Some(codes) = &self.codes else {
            let head = u64::from(self.heads[0]) << width;
            return widest(move || {
                out.iter_mut().zip(tails).for_each(|(o, tail)| *o = T::of_bits(head | tail.code()));
            });
        };
        let mut room = Room::<u8>::new();
        let codes = &codes.unpack_all(&mut room)[from..];
        let mut heads = [0; BLOCK_ROWS];
        let heads = &mut heads[..out.len()];
        look_up(&self.heads, codes, heads);
        let heads = &*heads;
        widest(move || {
            out.iter_mut().zip(heads.iter().zip(tails)).for_each(|(o, (&head, tail))| {
                *o = T::of_bits(u64::from(head) << width | tail.code());
            });
        });
    }

    /// Narrows `masks` to the values of a range, as if no slot had a patch.
    fn narrow_coded<T, L>(&self, range: FloatRange, masks: &mut [u64], physical: PhysicalType)
    where
        T: Fixed + Native + Into<f64>,
        L: Lane,
    {
        let (mut some, mut all) = (0u32, 0u32);
        for (code, &head) in self.heads[..self.count.into()].iter().enumerate() {
            let within = self.within(head, range, physical);
            some |= u32::from(within != Within::None) << code;
            all |= u32::from(within == Within::All) << code;
        }
        match &self.codes {
            _ if some == 0 => return masks.fill(0),
            Some(codes) if some.count_ones() < self.count.into() => {
                let mut room = Room::<u8>::new();
                let codes = codes.unpack(&mut room);
                search::narrow_where(codes, masks, move |code: u8| some >> (code & 7) & 1 != 0);
            }
            _ => {}
        }
        if some == all {
            return;
        }
        let left: u32 = masks.iter().map(|mask| mask.count_ones()).sum();
        if left == 0 {
            return;
        }
        if (left as usize) < FEW {
            let value = |slot: usize| float_of(self.bits(slot), physical);
            return super::masks::keep(masks, |slot| range.holds(value(slot)));
        }
        let mut values = [T::default(); BLOCK_ROWS];
        self.decode_coded::<T, L>(0, &mut values);
        range.narrow::<T>(&values[..], masks);
    }

    /// How many of the values with a head are in a range: they lie between those whose tails are all zeros
    /// and all ones.
    fn within(&self, head: u16, range: FloatRange, physical: PhysicalType) -> Within {
        let tail = self.tails.width();
        let first = u64::from(head) << tail;
        let ends = [first, first | u64::MAX >> (64 - tail)].map(|bits| float_of(bits, physical));
        match ends.map(|end| range.holds(end)) {
            _ if ends.iter().any(|end| end.is_nan()) => Within::Some,
            [true, true] => Within::All,
            _ if ends.iter().all(|end| *end < range.low) || ends.iter().all(|end| *end > range.high) => {
                Within::None
            }
            _ => Within::Some,
        }
    }
}

impl Codec for Split {
    const NAME: &'static str = "split floats";
    const EXAMPLES: &'static [Example] =
        &[Example::of_doubles(Self::NAME, Compression::Split, 0.35, |row| {
            Value::Float((scattered(row) as f64).sin())
        })];

    fn bytes(&self) -> usize {
        let codes = self.codes.as_ref().map_or(0, Packed::bytes);
        size_of::<Split>() + self.tails.bytes() + codes + self.patches.bytes()
    }

    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        Some(self.tails.buffer_mut())
    }

    fn ahead(&self, _: usize) -> Ahead {
        self.tails.ahead()
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.number([self.count]);
        self.heads[..self.count.into()].iter().for_each(|head| out.number(head.to_le_bytes()));
        self.codes.iter().chain([&self.tails]).for_each(|packed| out.packed(packed));
        out.patches(&self.patches, u16::to_le_bytes);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Split, Flaw> {
        let physical = reader.column.physical;
        let are_floats = matches!(physical, PhysicalType::F32 | PhysicalType::F64);
        reader.check(are_floats, "heads of what are no floats")?;
        let count = usize::from(reader.u8()?);
        let mut heads = Vec::with_capacity(count);
        for _ in 0..count {
            heads.push(reader.u16()?);
        }
        let codes = if count > 1 { Some(reader.packed(slots)?) } else { None };
        let tails = reader.packed(slots)?;
        let patches = reader.patches(slots, Reader::u16)?;
        Split::of_parts(&heads, codes, tails, &patches, physical).ok_or("its heads")
    }
}

impl FixedCodec for Split {
    fn datum(&self, slot: usize, held: PhysicalType) -> Datum<'_> {
        Datum::Float(float_of(self.bits(slot), held))
    }

    fn decode<T: Fixed>(&self, _: PhysicalType, from: usize, out: &mut [T]) {
        match size_of::<T>() {
            8 => self.decode_lanes::<T, u64>(from, out),
            _ => self.decode_lanes::<T, u32>(from, out),
        }
    }

    fn is_read_singly<T: Fixed>(&self, _: PhysicalType, selected: Selected) -> bool {
        selected.slots < FEW
    }

    fn each_of<T: Fixed>(
        &self,
        _: PhysicalType,
        slots: impl ExactSizeIterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        slots.for_each(|slot| put(T::of_bits(self.bits(slot))));
    }

    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], of: HeldSlots) {
        let (range, physical) = (FloatRange::of_ordinals(low, high), of.physical);
        let holds = |slot, head| range.holds(float_of(self.joined(head, slot), physical));
        self.patches.narrow(masks, holds, |masks| match physical {
            PhysicalType::F32 => self.narrow_coded::<f32, u32>(range, masks, physical),
            _ => self.narrow_coded::<f64, u64>(range, masks, physical),
        });
    }
}

impl Chosen for Split {
    const FORCED_BY: Compression = Compression::Split;
    type Plan = Cut;

    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<Cut>> {
        let plan = Cut::best(of.slots)?;
        Some(Planned { bytes: plan.bytes, plan })
    }

    fn pays(bytes: usize, smallest: usize) -> bool {
        bytes * 5 <= smallest * 4
    }

    fn propose<T: Fixed>(of: &Unencoded<'_, T>, smallest: usize) -> Option<Planned<Cut>> {
        // PERF: finding the best cut takes long, and tails alone are too much beside floats in four bytes.
        let tails = |bits| Packed::size(least_tail(bits));
        let may_pay = T::IS_FLOAT && Split::pays(tails(bits_of_type::<T>()), smallest);
        let planned = if may_pay { Split::plan(of) } else { None };
        planned.filter(|planned| Split::pays(planned.bytes, smallest))
    }

    fn encode<T: Fixed>(of: &Unencoded<'_, T>, cut: Cut, _: bool) -> Split {
        Split::new(of.slots, &cut)
    }
}

/// Writes the entries of a table that codes stand for to all of `out`.
// PERF: the compiler makes no vectors of indices into a table, which ran at 2 values a nanosecond. Each bit
// of a code chooses between two halves of what is left of the table, in 16 bits a value.
fn look_up(table: &[u16; MOST_HEADS], codes: &[u8], out: &mut [u16]) {
    let [a, b, c, d, e, f, g, h] = *table;
    widest(move || {
        for (o, &code) in out.iter_mut().zip(codes) {
            let bit = |number: u16| 0u16.wrapping_sub(u16::from(code) >> number & 1);
            let choose = |bit: u16, no: u16, yes: u16| no ^ ((no ^ yes) & bit);
            let (low, middle, high) = (bit(0), bit(1), bit(2));
            let first = choose(middle, choose(low, a, b), choose(low, c, d));
            let last = choose(middle, choose(low, e, f), choose(low, g, h));
            *o = choose(high, first, last);
        }
    });
}

/// Which of some values are in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    None,
    /// Perhaps.
    Some,
    All,
}

/// The float that has these bits in a column held as `physical`.
fn float_of(bits: u64, physical: PhysicalType) -> f64 {
    match physical {
        PhysicalType::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;
    use entasis_vector::value::{cmp_float, float_ordinal};

    /// Floats of many kinds: some all alike, some without any order in their bits.
    fn kinds() -> Vec<(&'static str, Vec<f64>)> {
        let mut random = Random(7);
        let mut uniform = move || (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let mut of = |name, value: &mut dyn FnMut(usize, f64) -> f64| {
            (name, (0..BLOCK_ROWS).map(|i| value(i, uniform())).collect::<Vec<f64>>())
        };
        let odd = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, f64::MAX];
        vec![
            of("uniform", &mut |_, v| v),
            of("on both sides of zero", &mut |_, v| v - 0.5),
            of("sines", &mut |i, _| (i as f64).sin()),
            of("close together", &mut |_, v| 48.0 + v),
            of("any bits", &mut |_, v| f64::from_bits(v.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15))),
            of("what is no number", &mut |i, v| if i % 7 == 0 { odd[i / 7 % odd.len()] } else { v }),
            of("payloads", &mut |i, v| {
                f64::from_bits(0x7ff0_0000_0000_0001 + i as u64 + (v.to_bits() >> 20))
            }),
            of("equal", &mut |_, _| 1.0 / 3.0),
        ]
    }

    fn split<T: Fixed>(values: &[T]) -> Split {
        Split::new(values, &Cut::best(values).expect("there are values"))
    }

    fn check<T: Fixed + Into<f64>>(values: &[T], what: &str) {
        let physical = T::PHYSICAL;
        for rows in [1, 2, 3, 64, 700, values.len()] {
            let values = &values[..rows];
            let cut = Cut::best(values).expect("there are values");
            let split = Split::new(values, &cut);
            assert_eq!(split.bytes(), cut.bytes, "{what}: the size is known beforehand");
            for (from, to) in [(0, rows), (rows / 3, rows), (rows - 1, rows)] {
                let mut out = vec![T::default(); to - from];
                split.decode(T::PHYSICAL, from, &mut out);
                let same = out.iter().zip(&values[from..]).all(|(a, b)| a.bits() == b.bits());
                assert!(same, "{what}, {from} to {to}");
            }
            let is_same = |slot: usize| T::of_bits(split.bits(slot)).bits() == values[slot].bits();
            assert!((0..rows).all(is_same), "{what}, one by one");
            let ends = values.iter().step_by(rows / 5 + 1).map(|&value| value.into());
            let ends: Vec<i64> = ends.chain([0.25, f64::INFINITY]).map(float_ordinal).collect();
            for (&low, &high) in ends.iter().flat_map(|low| ends.iter().map(move |high| (low, high))) {
                let mut masks = vec![0x7777_7777_7777_7777; rows.div_ceil(64)];
                masks[rows / 64..].iter_mut().for_each(|mask| *mask &= (1 << (rows % 64)) - 1);
                let twin: Vec<u64> = (0..masks.len())
                    .map(|word| {
                        let kept = |bit: &usize| {
                            let is_in = |&value: &T| {
                                let ordinal = float_ordinal(value.into());
                                low <= ordinal && ordinal <= high
                            };
                            masks[word] >> bit & 1 != 0 && values.get(word * 64 + bit).is_some_and(is_in)
                        };
                        (0..64).filter(kept).map(|bit| 1 << bit).sum()
                    })
                    .collect();
                split.narrow(low.into(), high.into(), &mut masks, HeldSlots { physical, slots: rows });
                assert_eq!(masks, twin, "{what}, {rows} rows, from {low} to {high}");
            }
        }
    }

    #[test]
    fn floats_come_back_and_ranges_find_them() {
        for (what, values) in kinds() {
            check(&values, what);
            let floats: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            check(&floats, what);
            // Payloads that a conversion to doubles would change.
            let bits = values.iter().map(|value| f32::from_bits((value.to_bits() >> 9) as u32));
            check(&bits.collect::<Vec<f32>>(), what);
        }
    }

    /// Every cut and every table, tried out.
    #[test]
    fn the_cut_is_the_best_of_all() {
        for (what, values) in kinds() {
            for values in [&values[..], &values[..90]] {
                let best = Cut::best(values).expect("there are values");
                let mut least = usize::MAX;
                for tail in 48..64 {
                    let mut heads: Vec<u16> = values.iter().map(|v| (v.to_bits() >> tail) as u16).collect();
                    heads.sort_unstable();
                    let mut counts: Vec<(usize, u16)> =
                        heads.chunk_by(|one, next| one == next).map(|run| (run.len(), run[0])).collect();
                    counts.sort_unstable_by_key(|&(count, head)| (Reverse(count), head));
                    for most in [1, 2, 4, 8] {
                        let heads: Vec<u16> = counts.iter().take(most).map(|(_, head)| *head).collect();
                        let split = Split::new(values, &Cut { tail, heads, bytes: 0 });
                        least = least.min(split.bytes());
                    }
                }
                assert_eq!(best.bytes, least, "{what}");
            }
        }
    }

    #[test]
    fn entries_are_looked_up_as_by_indices() {
        let table = [3, 0xFFFF, 7, 0x8000, 1, 0, 0x1234, 9];
        let codes: Vec<u8> = (0..BLOCK_ROWS).map(|i| (i * i % 11 % 8) as u8).collect();
        for rows in [BLOCK_ROWS, 1000, 1, 0] {
            let mut out = vec![0; rows];
            look_up(&table, &codes, &mut out);
            assert!(out.iter().zip(&codes).all(|(entry, &code)| *entry == table[usize::from(code)]));
        }
    }

    #[test]
    fn reals_take_fewer_bits_than_they_have() {
        let kinds = kinds();
        let bits = |name: &str| {
            let (_, values) = kinds.iter().find(|(own, _)| *own == name).expect("it is there");
            (split(values).bytes() - size_of::<Split>()) as f64 * 8.0 / BLOCK_ROWS as f64
        };
        assert!(bits("uniform") < 55.5, "{}", bits("uniform"));
        assert!(bits("close together") < 52.5, "{}", bits("close together"));
        assert!(bits("any bits") >= 63.0, "{}", bits("any bits"));
    }

    #[test]
    fn heads_are_in_part_within_a_range_that_ends_among_them() {
        let values: Vec<f64> = (0..BLOCK_ROWS).map(|i| 1.0 + i as f64 / BLOCK_ROWS as f64).collect();
        let split = split(&values);
        let head = split.heads[0];
        let within = |low: f64, high: f64| {
            let range = FloatRange::of_ordinals(float_ordinal(low).into(), float_ordinal(high).into());
            split.within(head, range, PhysicalType::F64)
        };
        assert_eq!(within(0.0, 9.0), Within::All);
        assert_eq!(within(5.0, 9.0), Within::None);
        assert_eq!(within(-5.0, 0.9), Within::None);
        assert_eq!(within(f64::from_bits(u64::from(head) << split.tails.width() | 1), 9.0), Within::Some);
        assert!(cmp_float(values[0], 1.0).is_eq());
    }
}
