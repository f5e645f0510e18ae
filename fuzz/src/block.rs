//! Any bytes as a block, behind what it shares with others. What was read is written and read once more, and
//! must have the same values.
//!
//! ```text
//! u8 1 if the column's strings are texts │ u16 bytes of what is shared │ these │ the block
//! ```
//! The column's type is that which the block says: another one is refused at once.

use crate::samples::Sample;
use crate::{seal, without_numbers};
use entasis_storage::Datum;
use entasis_storage::block::Block;
use entasis_storage::block::serialized::{self, Column, PHYSICAL, Shared};
use entasis_vector::{DataType, PhysicalType, Result};

/// Where a block says its physical type.
const PHYSICAL_AT: usize = 3;

/// The target: see the module.
pub fn run(bytes: &[u8]) -> String {
    let Some((&[is_text, low, high], rest)) = bytes.split_first_chunk() else { return "too short".into() };
    let Some((shared, block)) = rest.split_at_checked(u16::from_le_bytes([low, high]).into()) else {
        return "too short".into();
    };
    match read(is_text & 1 == 1, shared, block) {
        Ok(encoding) => encoding,
        Err(error) => without_numbers(error.message()),
    }
}

fn read(is_text: bool, shared: &[u8], bytes: &[u8]) -> Result<String> {
    let number = bytes.get(PHYSICAL_AT).copied().unwrap_or_default();
    let physical = PHYSICAL.get(usize::from(number)).copied().unwrap_or(PhysicalType::I64);
    let column = Column { physical, is_text };
    let shared = match shared {
        [] => Shared::Nothing,
        bytes => Shared::read(bytes, if is_text { DataType::Varchar } else { DataType::Blob })?,
    };
    let block = serialized::read(bytes, column, &shared)?;
    let live = vec![u64::MAX; block.slots().div_ceil(64)];
    let mut again = Vec::new();
    serialized::write(&block, column, &live, &mut again);
    let other = serialized::read(&again, column, &block.shared()).expect("what was written is read");
    assert_eq!(values(&block, physical), values(&other, physical), "read, written and read");
    Ok(format!("code {} of {physical:?}", bytes[1]))
}

/// The values as text, as floats that are no numbers are not equal.
fn values(block: &Block, physical: PhysicalType) -> Vec<String> {
    let text = |datum: Datum<'_>| match datum {
        Datum::Float(float) => format!("{:x}", float.to_bits()),
        other => format!("{other:?}"),
    };
    (0..block.slots()).map(|slot| text(block.datum(slot, physical))).collect()
}

/// All blocks of some files, one of each kind.
pub fn seeds(samples: &[Sample]) -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for sample in samples {
        for (block, shared) in seal::blocks(&sample.file) {
            for is_text in [0, 1] {
                let length = (shared.len() as u16).to_le_bytes();
                let seed = [&[is_text][..], &length, &shared, &block].concat();
                if seed.len() < 4096 && seen.insert(run(&seed)) {
                    seeds.push(seed);
                }
            }
        }
    }
    seeds
}
