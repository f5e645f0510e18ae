//! The fences of partitions, or of other ranges of keys, as bytes and back.

use super::source::Source;
use crate::backend::bytes::push_counted;
use crate::tree::Shape;
use crate::tree::key::Fences;
use entasis_vector::Result;
use std::sync::Arc;

/// Appends what [`fences`] reads.
pub(super) fn push_fences(out: &mut Vec<u8>, fences: &Fences) {
    match fences {
        Fences::Words(words) => words.iter().for_each(|word| out.extend(word.to_le_bytes())),
        Fences::Bytes(keys) => keys.iter().for_each(|key| push_counted(out, key)),
    }
}

/// `count` fences, of the kind that the table has.
pub(super) fn fences(source: &mut Source<'_>, shape: &Shape, count: usize) -> Result<Fences> {
    let (fences, are_ascending) = match shape.no_fences() {
        Fences::Words(mut words) => {
            for _ in 0..count {
                words.push(source.u64()?);
            }
            let are_ascending = words.is_sorted();
            (Fences::Words(words), are_ascending)
        }
        Fences::Bytes(mut keys) => {
            for _ in 0..count {
                keys.push(Arc::from(source.counted()?));
            }
            let are_ascending = keys.is_sorted();
            (Fences::Bytes(keys), are_ascending)
        }
    };
    source.check(are_ascending, "fences that do not ascend")?;
    Ok(fences)
}
