//! Digests: what a scan reads instead of block headers, where no block has been written since its row group
//! was built.
//!
//! A slice and a block's header take half a kilobyte, which a scan would read beside a kilobyte or two of
//! codes; and jumping from header to header defeats the processor's prefetcher. A digest has what a range
//! condition on integers needs to know of a block: its bounds, what codes mean, and where they are. The
//! digests of a column are stored contiguously.
//!
//! A row group of a table without a layout key has digests from the time when it is built or encoded again
//! until it is opened for writing ([`crate::tree::Node::open`]). They cover blocks of integers without NULLs
//! whose codes are plain or packed; of lines they have the bounds; other blocks are marked as unknown. The
//! slow twin is the block itself.
//!
//! This is a leaf module with `unsafe`: codes are read where a digest says they are.
#![allow(unsafe_code)]

use crate::block::cells::{self, Slots};
use crate::block::masks::WORDS;
use crate::block::packed::{self, with_lanes};
use crate::block::{Block, Codes, Fixed, Meaning, search};
use crate::node::prefetch;
use entasis_vector::{Buffer, Native, PhysicalType, Value};

/// The first bytes of codes, which are prefetched along with the codes of the block before. While a kernel
/// reads them, the rest arrives.
const HEAD: usize = 768;

/// Slots of packed codes from which on a block is read as a whole rather than here and there.
// If so many slots of packed codes are read, or more, the block is unpacked as a whole.
const MANY: usize = 8;
/// Cache lines of a block.
const LINE: usize = 64;

/// How codes are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CodeWidth {
    /// The digest does not say.
    Other,
    /// The digest has bounds, and the block is read through its header.
    Bounds,
    /// Plain codes of so many bytes.
    Plain(u8),
    /// Bit-packed codes of so many bits.
    Packed(u8),
}

/// The digest of a block. A value is `base + factor * code`.
#[derive(Debug, Clone, PartialEq)]
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
    /// The digest of a block whose column is held as `physical`.
    fn of(block: &Block, physical: PhysicalType) -> Digest {
        let known = || {
            let (Value::Integer(low), Value::Integer(high)) = (&block.zone.min, &block.zone.max) else {
                return None;
            };
            let (base, factor, codes) = match block.values.meaning() {
                Meaning::Linear { base, factor, codes } => (base, factor, codes),
                Meaning::Numbers(buffer) => {
                    return Digest::new(
                        (*low, *high),
                        (0, 1),
                        buffer,
                        CodeWidth::Plain(physical.width() as u8),
                    );
                }
                Meaning::Bounds => {
                    let (low, high) = (i64::try_from(*low).ok()?, i64::try_from(*high).ok()?);
                    return Some(Digest { low, high, width: CodeWidth::Bounds, ..Digest::UNKNOWN });
                }
                Meaning::Other => return None,
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
        let may_be_known = physical.is_integer() && physical.width() <= 8 && !block.may_be_null();
        may_be_known.then(known).flatten().unwrap_or(Digest::UNKNOWN)
    }

    /// The digest of a block that it does not describe.
    const UNKNOWN: Digest = Digest {
        low: 0,
        high: 0,
        base: 0,
        factor: 1,
        codes: std::ptr::null(),
        bytes: 0,
        width: CodeWidth::Other,
    };

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

    /// True if it describes the block, and not only its bounds.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.width, CodeWidth::Other | CodeWidth::Bounds)
    }

    /// The bounds; `None` if it does not describe the block.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        (self.width != CodeWidth::Other).then_some((self.low, self.high))
    }

    /// Narrows `masks`, a bit for each slot, to the slots with a value from `low` to `high`, and returns the
    /// bitwise OR of what is left. `None` if what it says of the block does not decide that. `next` is
    /// prefetched: the digest of the block that comes next, if that is going to be read.
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
        // Every value between the bounds has a code; dead slots may have any code.
        let (low, high) = (low.max(self.low.into()), high.min(self.high.into()));
        if low > high {
            masks.fill(0);
            return Some(0);
        }
        let (low, high) = (low as i64, high as i64);
        if (low, high) == (self.low, self.high) {
            return Some(masks.iter().fold(0, |any, mask| any | mask));
        }
        if self.width == CodeWidth::Bounds {
            return None;
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
            CodeWidth::Other | CodeWidth::Bounds => unreachable!("it has no codes"),
        }
    }

    /// Writes the values of some slots, one for each element of `out`. `next` is prefetched, as by
    /// [`Digest::narrow`]. The digest must be known.
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
            CodeWidth::Other | CodeWidth::Bounds => unreachable!("it has no codes"),
        }
    }

    fn each_of<C: Native + Into<u64>>(&self, slots: impl Iterator<Item = usize>, mut each: impl FnMut(u64)) {
        slots.for_each(|slot| each(cells::load::<C>(self.slots(), slot).into()));
    }

    // PERF: requests for consecutive lines start the processor's stream prefetcher; requests in the order in
    // which a kernel reads do not. The first lines are requested along with the block before.
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
        // SAFETY: the row group of the digest shows the block until it is opened for writing, and then has no
        // digest any more. Until then live slots are not written; dead ones may be, which `Slots` allow.
        unsafe { Slots::at(self.codes, self.bytes as usize) }
    }

    /// Packed codes, which are never written in place.
    fn words<T: packed::Lane>(&self) -> &[T] {
        // SAFETY: as above, and no slot of them is ever written; buffers are aligned for all numbers.
        unsafe { std::slice::from_raw_parts(self.codes.cast::<T>(), self.bytes as usize / size_of::<T>()) }
    }
}

/// The digests of a row group, by column and block; empty for columns without any.
#[derive(Debug, PartialEq)]
pub(crate) struct Digests(Box<[Box<[Digest]>]>);

impl Digests {
    /// The digests of columns, each given by its physical type and its blocks.
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

    /// The same digests for a row group with other columns: `None` for those whose blocks are constant.
    pub(crate) fn with_columns(&self, columns: impl Iterator<Item = Option<usize>>) -> Digests {
        Digests(columns.map(|old| old.map_or_else(Box::default, |old| self.0[old].clone())).collect())
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|column| size_of_val(column) + size_of_val(&**column)).sum()
    }

    /// The digest of a block.
    #[inline]
    pub(crate) fn of(&self, column: usize, block: usize) -> Option<&Digest> {
        self.0[column].get(block)
    }
}
