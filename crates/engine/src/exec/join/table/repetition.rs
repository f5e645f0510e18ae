//! How often keys of a build side are repeated, from a sample of their hashes.

use crate::exec::key_filter::{BuildInput, KeyHashes};
use crate::sync::{Mutex, PoisonError, lock};
use entasis_vector::Result;
use entasis_vector::hash::hash_u64;

/// The approximate number of rows whose hashes are sampled to learn how often keys are repeated.
const HASH_SAMPLE: usize = 2 << 10;

/// How often keys are repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Repetition {
    /// Average rows per key, over the keys whose hashes fall into a small share of all hashes. Rows that
    /// cannot match do not count; without any others it is 0.
    pub per_key: f64,
    /// The share of rows that the most frequent key has, estimated from one random row of each chunk.
    pub most: f64,
}

/// How often the keys of these rows are repeated.
///
/// # Errors
/// Those of the tasks.
pub(super) fn repetition(input: &BuildInput<'_>) -> Result<Repetition> {
    let part = (input.rows.rows() / HASH_SAMPLE).max(1).next_power_of_two() as u64;
    let all = Mutex::new((0, Vec::new(), Vec::new()));
    input.tasks.run(input.rows.segments(), &|segment| {
        let (mut drawn, mut picked) = (Vec::new(), Vec::new());
        let rows = input.rows.segment_rows(segment);
        KeyHashes::new(input).for_each(input, segment, 0..rows, |first, hashes, nulls| {
            // At random, so that keys that recur periodically do not all hit themselves.
            let chance = hash_u64(((segment as u64) << 32) + first as u64);
            picked.push(hashes[(chance % hashes.len() as u64) as usize]);
            let mut nulls = nulls.iter().peekable();
            for (i, &hash) in hashes.iter().enumerate() {
                let is_null = nulls.next_if(|&&null| null as usize == i).is_some();
                if hash >> 16 & (part - 1) == 0 && !is_null {
                    drawn.push(hash);
                }
            }
        });
        let mut all = lock(&all);
        all.0 += drawn.len();
        // For a key that most rows have, one hash per segment is kept.
        drawn.sort_unstable();
        drawn.dedup();
        all.1.append(&mut drawn);
        all.2.append(&mut picked);
        Ok(())
    })?;
    let (rows, mut keys, mut picked) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    keys.sort_unstable();
    keys.dedup();
    picked.sort_unstable();
    let most = picked.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0);
    let per_key = rows as f64 / keys.len().max(1) as f64;
    Ok(Repetition { per_key, most: most as f64 / picked.len().max(1) as f64 })
}
