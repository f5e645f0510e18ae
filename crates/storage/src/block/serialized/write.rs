//! A block to bytes.

use super::{Column, HAS_VALIDITY, IS_ASCENDING, PACKED, PHYSICAL, VERSION, code_of, texts};
use crate::backend::bytes::push_counted;
use crate::block::packed::Packed;
use crate::block::{Block, Codes, StringBytes, Values, cells, with_fixed};
use entasis_vector::{Buffer, Native, Value, bitmap};
use std::sync::atomic::Ordering::Relaxed;

/// Where the flags of a block are.
const FLAGS_AT: usize = 2;

/// Appends a block of a column. Slots whose bit in `live` is not set, and those beyond the bits, come back as
/// zeros wherever others may write them while this looks: so the bytes, and their checksum, are those of the
/// version that the bits belong to.
pub fn write(block: &Block, column: Column, live: &[u64], out: &mut Vec<u8>) {
    let is_held = |physical: &_| *physical == column.physical;
    let physical = PHYSICAL.iter().position(is_held).unwrap_or_default() as u8;
    let (validity, slots) = (block.validity.as_ref(), block.slots());
    let flags =
        if validity.is_some() { HAS_VALIDITY } else { 0 } | if block.ascending { IS_ASCENDING } else { 0 };
    out.extend([VERSION, code_of(&block.values), flags, physical]);
    out.extend((slots as u16).to_le_bytes());
    write_value(&block.zone.min, out);
    write_value(&block.zone.max, out);
    out.extend(block.zone.nulls.to_le_bytes());
    if let Some(words) = validity {
        for word in 0..slots.div_ceil(64) {
            let valid = words.get(word).map_or(0, |word| word.load(Relaxed));
            out.extend((valid & live.get(word).copied().unwrap_or(0)).to_le_bytes());
        }
    }
    Slots { column, slots, live }.write(&block.values, out);
}

/// Takes the note that the values ascend away from a block that was written.
pub(crate) fn forget_order(block: &mut [u8]) {
    block[FLAGS_AT] &= !IS_ASCENDING;
}

/// What values are written of.
#[derive(Clone, Copy)]
struct Slots<'a> {
    column: Column,
    slots: usize,
    live: &'a [u64],
}

impl Slots<'_> {
    fn is_live(&self, slot: usize) -> bool {
        slot / 64 < self.live.len() && bitmap::get(self.live, slot)
    }

    fn write(&self, values: &Values, out: &mut Vec<u8>) {
        match values {
            Values::Constant(value) => write_value(value, out),
            Values::FrameOfReference { base, codes } => {
                out.extend(base.to_le_bytes());
                self.write_codes(codes, out);
            }
            Values::Flat(buffer) => with_fixed!(
                self.column.physical,
                T => self.write_buffer::<T>(buffer, out),
                unreachable!("strings have no fixed width")
            ),
            Values::Dictionary { codes, .. } => self.write_codes(codes, out),
            Values::Strings(strings) => texts::write(strings, out),
            Values::Views(views) => {
                let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(self.slots));
                for slot in 0..self.slots {
                    // Views of other slots may be half written.
                    bytes.extend_from_slice(if self.is_live(slot) { views.get(slot) } else { &[] });
                    ends.push(bytes.len() as u32);
                }
                texts::write(&StringBytes::new(&ends, &bytes), out);
            }
            Values::Sequence(sequence) => {
                let (first, step) = sequence.parts();
                out.extend(first.to_le_bytes());
                out.extend(step.to_le_bytes());
            }
            Values::Runs(runs) => {
                let (ends, heads) = runs.parts();
                out.extend((ends.len() as u16).to_le_bytes());
                ends.iter().for_each(|end| out.extend(end.to_le_bytes()));
                out.push(code_of(heads));
                Slots { slots: ends.len(), live: &[u64::MAX; crate::BLOCK_ROWS / 64], ..*self }
                    .write(heads, out);
            }
            Values::Patched(patched) => {
                let (least, patches) = patched.patches();
                let (base, codes) = patched.codes();
                out.extend(least.to_le_bytes());
                out.extend(base.to_le_bytes());
                self.write_codes(codes, out);
                write_patches(patches.within(0, self.slots), u64::to_le_bytes, out);
            }
            Values::Scaled(scaled) => {
                let (scale, patches) = scaled.parts();
                let (exponent, factor) = scale.parts();
                out.extend([exponent, factor, code_of(scaled.digits())]);
                let column = Column { physical: entasis_vector::PhysicalType::I64, is_text: false };
                Slots { column, ..*self }.write(scaled.digits(), out);
                write_patches(patches.within(0, self.slots), f64::to_le_bytes, out);
            }
            Values::Singles(singles) => self.write_buffer::<f32>(singles.buffer(), out),
            Values::Split(split) => {
                let (heads, codes, tails, patches) = split.parts();
                out.push(heads.len() as u8);
                heads.iter().for_each(|head| out.extend(head.to_le_bytes()));
                codes.into_iter().chain([tails]).for_each(|packed| write_packed(packed, out));
                write_patches(patches.within(0, self.slots), u16::to_le_bytes, out);
            }
            Values::Line(line) => {
                let (base, slope, codes) = line.parts();
                out.extend(base.to_le_bytes());
                out.extend(slope.to_le_bytes());
                write_packed(codes, out);
            }
            Values::Fsst(fsst) => texts::write_plain(fsst.codes(), out),
            Values::Multiples(multiples) => {
                out.extend(multiples.least().to_le_bytes());
                out.extend(multiples.factor().to_le_bytes());
                self.write_codes(multiples.codes(), out);
            }
        }
    }

    fn write_codes(&self, codes: &Codes, out: &mut Vec<u8>) {
        match codes {
            Codes::U8(buffer) => {
                out.push(1);
                self.write_buffer::<u8>(buffer, out);
            }
            Codes::U16(buffer) => {
                out.push(2);
                self.write_buffer::<u16>(buffer, out);
            }
            Codes::U32(buffer) => {
                out.push(4);
                self.write_buffer::<u32>(buffer, out);
            }
            // These are never written in place, so no slot changes.
            Codes::Packed(packed) => write_packed(packed, out),
        }
    }

    /// The slots of a buffer, with zeros for those that are not live.
    fn write_buffer<T: Native>(&self, buffer: &Buffer, out: &mut Vec<u8>) {
        let mut copy = cells::copy::<T>(buffer, self.slots, self.slots);
        let dead = (0..self.slots).filter(|slot| !self.is_live(*slot));
        dead.for_each(|slot| copy.as_mut_slice::<T>()[slot] = T::default());
        out.extend_from_slice(&copy.as_slice::<u8>()[..self.slots * size_of::<T>()]);
    }
}

fn write_packed(packed: &Packed, out: &mut Vec<u8>) {
    out.push(PACKED + packed.width() as u8);
    out.extend_from_slice(packed.buffer().as_slice::<u8>());
}

fn write_patches<V: Copy, const BYTES: usize>(
    patches: impl Iterator<Item = (usize, V)>,
    bytes: impl Fn(V) -> [u8; BYTES],
    out: &mut Vec<u8>,
) {
    let patches: Vec<(usize, V)> = patches.collect();
    out.extend((patches.len() as u16).to_le_bytes());
    patches.iter().for_each(|(slot, _)| out.extend((*slot as u16).to_le_bytes()));
    patches.iter().for_each(|(_, value)| out.extend(bytes(*value)));
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Boolean(value) => out.push(1 + u8::from(*value)),
        Value::Integer(value) => {
            out.push(3);
            out.extend(value.to_le_bytes());
        }
        Value::Float(value) => {
            out.push(4);
            out.extend(value.to_le_bytes());
        }
        Value::Text(text) => {
            out.push(5);
            push_counted(out, text.as_bytes());
        }
        Value::Bytes(bytes) => {
            out.push(6);
            push_counted(out, bytes);
        }
        Value::Interval(interval) => {
            out.push(7);
            out.extend(interval.months.to_le_bytes());
            out.extend(interval.days.to_le_bytes());
            out.extend(interval.micros.to_le_bytes());
        }
    }
}
