//! Digests: what a scan reads of a block that nobody has written since its row group was put together.
//!
//! A slice and a block's header have half a kilobyte, which a scan would read beside a kilobyte or two of
//! codes; and to look at one header after the other keeps the processor from reading the codes ahead. A
//! digest is what a range of integers asks of a block: its bounds, what codes mean, and where they are. Those
//! of a column stand side by side.
//!
//! A row group of a table without a layout key has digests from the time that it is put together or has been
//! encoded anew until it is given out for writing ([`crate::tree::Node::open`]). Of blocks that are not
//! integers without NULLs in plain or packed codes it says nothing. The slow twin is the block itself.
//!
//! This is a leaf module with `unsafe`: codes are read where a digest says they are.
#![allow(unsafe_code)]

use crate::block::cells::{self, Slots};
use crate::block::masks::WORDS;
use crate::block::packed::{self, with_lanes};
use crate::block::{Block, Codes, Fixed, Values, search};
use crate::node::prefetch;
use entasis_vector::{Buffer, Native, PhysicalType, Value};

/// The first bytes of codes, which are asked for with the codes of the block before: a kernel has read as
/// many when those behind arrive.
const HEAD: usize = 768;

/// Slots of packed codes from which on a block is read as a whole rather than here and there.
// PERF: measured with some 20 of 1024 (TPC-H Q6); fewer were not.
const MANY: usize = 8;
/// Cache lines of a block.
const LINE: usize = 64;

/// How codes stand.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CodeWidth {
    /// Not known here.
    Other,
    /// Plain, of so many bytes each.
    Plain(u8),
    /// Packed, of so many bits each.
    Packed(u8),
}

/// See the module. A value is `base + factor * code`.
#[derive(Debug, PartialEq)]
pub(crate) struct Digest {
    /// The least and the greatest value.
    low: i64,
    high: i64,
    base: i64,
    factor: u64,
    codes: *const u8,
    bytes: u32,
    width: CodeWidth,
}

// SAFETY: what it points to is only read, by whoever can read the row group.
unsafe impl Send for Digest {}
// SAFETY: as above.
unsafe impl Sync for Digest {}

const _: () = assert!(size_of::<Digest>() == 48);

impl Digest {
    /// Of a block of a column that is held as `physical`.
    fn of(block: &Block, physical: PhysicalType) -> Digest {
        let known = || {
            let (Value::Integer(low), Value::Integer(high)) = (&block.zone.min, &block.zone.max) else {
                return None;
            };
            let (base, factor, codes) = match &block.values {
                Values::FrameOfReference { base, codes } => (*base, 1, codes),
                Values::Multiples(multiples) => (multiples.least(), multiples.factor(), multiples.codes()),
                Values::Flat(buffer) => {
                    return Digest::new(
                        (*low, *high),
                        (0, 1),
                        buffer,
                        CodeWidth::Plain(physical.width() as u8),
                    );
                }
                _ => return None,
            };
            let (buffer, width) = match codes {
                Codes::U8(buffer) => (buffer, CodeWidth::Plain(1)),
                Codes::U16(buffer) => (buffer, CodeWidth::Plain(2)),
                Codes::U32(buffer) => (buffer, CodeWidth::Plain(4)),
                Codes::Packed(packed) => (packed.buffer(), CodeWidth::Packed(packed.width() as u8)),
            };
            debug_assert!(
                base <= *low && (*high - base) / i128::from(factor) <= codes.max().into(),
                "bounds have codes"
            );
            Digest::new((*low, *high), (base, factor), buffer, width)
        };
        let unknown = Digest {
            low: 0,
            high: 0,
            base: 0,
            factor: 1,
            codes: std::ptr::null(),
            bytes: 0,
            width: CodeWidth::Other,
        };
        let may_be_known = physical.is_integer() && physical.width() <= 8 && !block.may_be_null();
        may_be_known.then(known).flatten().unwrap_or(unknown)
    }

    fn new(
        (low, high): (i128, i128),
        (base, factor): (i128, u64),
        buffer: &Buffer,
        width: CodeWidth,
    ) -> Option<Digest> {
        let [low, high, base] = [low, high, base].map(i64::try_from);
        let (low, high, base) = (low.ok()?, high.ok()?, base.ok()?);
        let bytes = u32::try_from(buffer.capacity()).ok()?;
        Some(Digest { low, high, base, factor, codes: buffer.as_ptr(), bytes, width })
    }

    /// True if it says what is in the block.
    pub(crate) fn is_known(&self) -> bool {
        self.width != CodeWidth::Other
    }

    /// The bounds; `None` if they are not known here.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        (self.width != CodeWidth::Other).then_some((self.low, self.high))
    }

    /// Narrows `masks`, a bit a slot, to the slots with a value from `low` to `high`; all bits that are left,
    /// or-ed. `None` if it does not know. The next block, if that is going to be asked, is asked for.
    #[inline]
    pub(crate) fn narrow(
        &self,
        low: i128,
        high: i128,
        masks: &mut [u64; WORDS],
        next: Option<&Digest>,
    ) -> Option<u64> {
        if self.width == CodeWidth::Other {
            return None;
        }
        // What is between the bounds has a code; dead slots may have any.
        let (low, high) = (low.max(self.low.into()), high.min(self.high.into()));
        if low > high {
            masks.fill(0);
            return Some(0);
        }
        let (low, high) = (low as i64, high as i64);
        if (low, high) == (self.low, self.high) {
            return Some(masks.iter().fold(0, |any, mask| any | mask));
        }
        self.prefetch(next);
        Some(self.narrow_codes(low, high, masks))
    }

    fn narrow_codes(&self, low: i64, high: i64, masks: &mut [u64; WORDS]) -> u64 {
        // Distances from the base fit: codes do.
        let [mut low, mut high] = [low, high].map(|value| value.wrapping_sub(self.base) as u64);
        if self.factor > 1 {
            (low, high) = (low.div_ceil(self.factor), high / self.factor);
            if low > high {
                masks.fill(0);
                return 0;
            }
        }
        let span = high.wrapping_sub(low);
        match self.width {
            CodeWidth::Plain(1) => search::narrow(self.slots(), masks, low as u8, span as u8),
            CodeWidth::Plain(2) => search::narrow(self.slots(), masks, low as u16, span as u16),
            CodeWidth::Plain(4) => search::narrow(self.slots(), masks, low as u32, span as u32),
            CodeWidth::Plain(_) => search::narrow(self.slots(), masks, low, span),
            CodeWidth::Packed(width) => with_lanes!(width, T => {
                packed::narrow::<T>(self.words(), width.into(), low, high, masks)
            }),
            CodeWidth::Other => unreachable!("it has no codes"),
        }
    }

    /// Writes the values in some slots, one for each of `out`. The next block, if that is going to be asked,
    /// is asked for. It must be known.
    pub(crate) fn gather<T: Fixed>(
        &self,
        slots: impl ExactSizeIterator<Item = usize>,
        out: &mut [T],
        next: Option<&Digest>,
    ) {
        // Of plain codes, if they stand in half of the lines.
        let many =
            if matches!(self.width, CodeWidth::Packed(_)) { MANY } else { self.bytes as usize / LINE / 2 };
        if slots.len() >= many {
            self.prefetch(next);
        }
        let (base, factor) = (self.base.into(), self.factor);
        let mut out = out.iter_mut();
        let value = |code: u64| {
            out.next().into_iter().for_each(|o| *o = T::of_code(base, code.wrapping_mul(factor)));
        };
        match self.width {
            CodeWidth::Plain(1) => self.each_of::<u8>(slots, value),
            CodeWidth::Plain(2) => self.each_of::<u16>(slots, value),
            CodeWidth::Plain(4) => self.each_of::<u32>(slots, value),
            CodeWidth::Plain(_) => self.each_of::<u64>(slots, value),
            CodeWidth::Packed(width) => {
                with_lanes!(width, L => packed::each_of::<L>(self.words(), width.into(), slots, value))
            }
            CodeWidth::Other => unreachable!("it has no codes"),
        }
    }

    fn each_of<C: Native + Into<u64>>(&self, slots: impl Iterator<Item = usize>, mut each: impl FnMut(u64)) {
        slots.for_each(|slot| each(cells::load::<C>(self.slots(), slot).into()));
    }

    // PERF: asked for one after the other, lines are read ahead as a stream is; in the order of a kernel they
    // are not. The first ones come with the block before.
    #[inline(always)]
    fn prefetch(&self, next: Option<&Digest>) {
        let bytes = self.bytes as usize;
        let head = HEAD.min(bytes);
        prefetch::prefetch_all(self.codes.wrapping_add(head), bytes - head);
        if let Some(next) = next.filter(|next| !next.codes.is_null()) {
            prefetch::prefetch_all(next.codes, HEAD.min(next.bytes as usize));
        }
    }

    fn slots(&self) -> Slots<'_> {
        // SAFETY: the block hangs in the row group that this digest is of until the row group is given out
        // for writing and has no digest any more. Until then live slots are not written; dead ones may be,
        // which `Slots` are made for.
        unsafe { Slots::at(self.codes, self.bytes as usize) }
    }

    /// Packed codes, which are never written in place.
    fn words<T: packed::Lane>(&self) -> &[T] {
        // SAFETY: as above, and no slot of them is ever written; buffers are aligned for all numbers.
        unsafe { std::slice::from_raw_parts(self.codes.cast::<T>(), self.bytes as usize / size_of::<T>()) }
    }
}

/// The digests of a row group, by column and block; of columns that have any.
#[derive(Debug, PartialEq)]
pub(crate) struct Digests(Box<[Box<[Digest]>]>);

impl Digests {
    /// Of columns that are held as these.
    pub(crate) fn new<'b, B: Iterator<Item = &'b Block>>(
        columns: impl Iterator<Item = (PhysicalType, B)>,
    ) -> Digests {
        let of_column = |(physical, blocks): (PhysicalType, B)| -> Box<[Digest]> {
            let digests: Vec<Digest> = blocks.map(|block| Digest::of(block, physical)).collect();
            let is_known = digests.iter().any(|digest| digest.width != CodeWidth::Other);
            if is_known { digests.into() } else { Box::default() }
        };
        Digests(columns.map(of_column).collect())
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|column| size_of_val(column) + size_of_val(&**column)).sum()
    }

    /// That of a block.
    #[inline]
    pub(crate) fn of(&self, column: usize, block: usize) -> Option<&Digest> {
        self.0[column].get(block)
    }
}
