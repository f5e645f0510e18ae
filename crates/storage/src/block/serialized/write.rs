//! A block to bytes: its header, and then what its encoding writes.

use super::writer::BlockWriter;
use super::{Column, HAS_VALIDITY, IS_ASCENDING, PHYSICAL, VERSION};
use crate::block::{Block, Values};
use entasis_vector::Value;
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
    out.extend([VERSION, block.values.code(), flags, physical]);
    out.extend((slots as u16).to_le_bytes());
    let mut writer = BlockWriter { column, slots, live, out };
    writer.value(&block.zone.min);
    writer.value(&block.zone.max);
    writer.number(block.zone.nulls.to_le_bytes());
    if let Some(words) = validity {
        for word in 0..slots.div_ceil(64) {
            let valid = words.get(word).map_or(0, |word| word.load(Relaxed));
            writer.number((valid & live.get(word).copied().unwrap_or(0)).to_le_bytes());
        }
    }
    match &block.values {
        Values::Null => writer.value(&Value::Null),
        Values::Fixed(values) => values.write(&mut writer),
        Values::Text(values) => values.write(&mut writer),
    }
}

/// Takes the note that the values ascend away from a block that was written.
pub(crate) fn forget_order(block: &mut [u8]) {
    block[FLAGS_AT] &= !IS_ASCENDING;
}
