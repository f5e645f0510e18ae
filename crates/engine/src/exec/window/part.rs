//! Some rows of a [stored partition](super::stored_partition) with everything that their results depend on.
//!
//! The inside of a frame is never read, only its ends: the rest is known from summaries. So a part has the
//! blocks of its own rows, those in which one of their frames begins or ends, and those with a row that a
//! function returns; everything else is [gaps](super::gaps). Which blocks these are is found by trial:
//! 1. The blocks that are certain are loaded: the part's own, and those where their peers begin and end.
//! 2. Bounds of frames are searched, then rows that functions return. If some are in gaps, their blocks are
//!    loaded too, and the step is repeated.
//! 3. What functions need is prepared, as for any section: a gap counts as one row that stands for all its
//!    rows.
//!
//! Functions that need all rows of their frames, like medians and those of distinct values, miss the blocks
//! of all gaps in them. So these rows must fit into memory; otherwise there is an error.
//!
//! Parts do not depend on each other: workers compute them in any order.

use super::kept::KeptOrder;
use super::layout::{Call, WindowLayout};
use super::prepared::{Prepared, Scratch};
use super::section::Section;
use super::stored_partition::StoredPartition;
use super::view::View;
use crate::context::QueryContext;
use crate::exec::operator::Alone;
use crate::memory::Reservation;
use entasis_vector::{CHUNK_ROWS, Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// See the module.
pub struct WindowPart {
    /// The prepared section.
    pub prepared: Arc<Prepared>,
    /// The positions of the part's rows.
    pub rows: Range<usize>,
    /// The number of its blocks.
    pub blocks: usize,
    /// The memory of its rows.
    pub memory: Reservation,
}

impl WindowPart {
    /// The rows of some blocks of `partition`.
    ///
    /// # Errors
    /// Resource, if there is no memory for it; I/O; those of the functions; interrupted.
    pub fn new(
        partition: &StoredPartition,
        own: Range<usize>,
        layout: &WindowLayout,
        context: &QueryContext,
    ) -> Result<WindowPart> {
        let alone = Alone(context);
        let peers = layout.peers.as_deref();
        let mut blocks: BTreeSet<usize> = own.clone().collect();
        if peers.is_some() {
            blocks.extend(partition.index.around(&own));
        }
        let mut memory = Reservation::new(&context.memory);
        let mut scratch = Scratch::default();
        loop {
            let loaded = partition.load(&blocks, &mut memory, context);
            let (rows, gaps) = loaded.map_err(|error| explain(error, partition, &blocks, layout))?;
            let first = gaps.position_of_block(own.start);
            let rows = (Arc::new(KeptOrder::in_place(rows)), first..first + partition.index.rows_in(&own));
            let section = Section::with_gaps(rows.0, gaps, peers, &alone)?;
            let summaries = Some(&partition.summaries);
            let mut prepared = Prepared::start(layout, section, summaries, context, &alone)?;
            let mut look = |prepared: &Prepared, wanted: Wanted, blocks: &mut BTreeSet<usize>| {
                look(prepared, layout, &rows.1, wanted, &mut scratch, blocks, context)
            };
            let mut is_complete =
                look(&prepared, Wanted::Bounds, &mut blocks)? && look(&prepared, Wanted::Rows, &mut blocks)?;
            if is_complete {
                let done = prepared.complete(layout, summaries, context, &alone);
                done.map_err(|error| explain(error, partition, &blocks, layout))?;
                is_complete = look(&prepared, Wanted::CountedRows, &mut blocks)?;
            }
            if is_complete {
                let blocks = blocks.len();
                return Ok(WindowPart { prepared: Arc::new(prepared), rows: rows.1, blocks, memory });
            }
        }
    }
}

/// What is searched: each step depends on the blocks of the one before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The bounds of frames.
    Bounds,
    /// The rows that functions return, and all rows of frames, for functions that need them.
    Rows,
    /// The rows that functions return among those that count: `prepared` is complete.
    CountedRows,
}

/// Searches what the results of `rows` depend on. Adds missed blocks to `blocks`; true if there are none.
fn look(
    prepared: &Prepared,
    layout: &WindowLayout,
    rows: &Range<usize>,
    wanted: Wanted,
    scratch: &mut Scratch,
    blocks: &mut BTreeSet<usize>,
    context: &QueryContext,
) -> Result<bool> {
    let section = &prepared.section;
    let Some(gaps) = section.gaps() else { return Ok(true) };
    let is_wanted = |(_, call): &&(_, Call)| match call {
        Call::Shift(shift) => shift.counted.is_some() == (wanted == Wanted::CountedRows),
        Call::Pick(pick) => pick.counted.is_some() == (wanted == Wanted::CountedRows),
        _ => false,
    };
    let calls = || layout.calls.iter().filter(is_wanted).filter(|_| wanted != Wanted::Bounds);
    let readers = if wanted == Wanted::Rows { &layout.readers[..] } else { &[] };
    if wanted != Wanted::Bounds && calls().next().is_none() && readers.is_empty() {
        return Ok(true);
    }
    let (mut ids, mut defaulted) = (Vec::new(), Vec::new());
    for start in rows.clone().step_by(CHUNK_ROWS) {
        context.check()?;
        prepared.find(layout, start..rows.end.min(start + CHUNK_ROWS), scratch)?;
        let (places, frames) = scratch.found();
        let view = View { section, places, frames, context };
        for (_, call) in calls() {
            ids.clear();
            defaulted.clear();
            match call {
                Call::Shift(shift) => {
                    let counted = prepared.counted(shift.counted)?;
                    shift.find(counted, section, places, &mut ids, &mut defaulted)?;
                }
                Call::Pick(pick) => pick.find(prepared.counted(pick.counted)?, &view, &mut ids)?,
                _ => {}
            }
        }
        for (_, frame) in readers {
            for row in 0..places.rows.len() {
                for piece in frames[*frame].pieces(row).iter() {
                    gaps.within(piece).for_each(|(_, gap)| gaps.miss(gap.clone()));
                }
            }
        }
    }
    let missed = gaps.take_missed();
    let before = blocks.len();
    let is_complete = missed.is_empty();
    blocks.extend(missed);
    if !is_complete && blocks.len() == before {
        return Err(Error::internal("a window function misses rows that are there"));
    }
    Ok(is_complete)
}

/// Names, in an error of lack of memory, the function that needs it.
fn explain(
    error: Error,
    partition: &StoredPartition,
    blocks: &BTreeSet<usize>,
    layout: &WindowLayout,
) -> Error {
    if error.kind() != ErrorKind::Resource {
        return error;
    }
    let Some((name, _)) = layout.readers.first() else { return error };
    let index = &partition.index;
    let rows: usize = blocks.iter().map(|&block| index.rows_in(&(block..block + 1))).sum();
    Error::resource(format!(
        "{name} over a window needs {rows} rows of a partition of {} rows in memory at once: {}",
        index.rows(),
        error.message()
    ))
    .with_hint(
        "raise memory_limit (SET memory_limit = '…'), or give the window shorter frames or smaller partitions",
    )
}
