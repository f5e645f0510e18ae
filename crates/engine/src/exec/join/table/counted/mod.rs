//! Tables of build sides that are read twice ([`twice`](super::super::twice)): the first reading counts keys, the second one asks
//! for the id of each row (Barber et al., section 2.3: two passes, of which the first one sets bits and the second one moves rows).
//!
//! Each worker counts in bits of its own, since an atomic instruction would take three times as long; then all are put together.
//! Nothing is spread over partitions, so none can be larger than others.

mod buckets;
mod places;

pub(crate) use buckets::BucketCount;
pub(crate) use places::{CountedPlaces, PlaceCount};

use super::{BuildInput, JoinTable, NO_ROW, ProbeKeys};
use entasis_vector::Result;

/// Tells rows their ids in the second reading, and finds them by key after it.
pub(crate) trait Placer: Send + Sync {
    /// Appends the [part](super::super::held_back) of each row of a chunk: rows of one part have ids near each other.
    fn parts(&self, keys: &mut ProbeKeys, parts: &mut Vec<u8>);
    /// Writes the id of each row of a chunk; [`NO_ROW`] for one that no key equals. No id is given twice.
    fn ids(&self, keys: &mut ProbeKeys, ids: &mut Vec<u32>);
    /// The table, when all rows are in their places.
    ///
    /// # Errors
    /// Those of the tasks.
    fn finish(self: Box<Self>, input: &BuildInput<'_>) -> Result<Box<dyn JoinTable>>;
}

/// Takes the ids from rows that cannot match; `rows` are those that can (`None`: all).
fn without_unmatchable(rows: Option<&[u16]>, ids: &mut [u32]) {
    let Some(rows) = rows else { return };
    let mut matchable = rows.iter().copied().peekable();
    for (row, id) in ids.iter_mut().enumerate() {
        if matchable.next_if(|&next| usize::from(next) == row).is_none() {
            *id = NO_ROW;
        }
    }
}
