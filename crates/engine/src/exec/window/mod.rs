//! Window functions: rows in, the same rows with more columns out, partition by partition.
//!
//! ```text
//! chunk → columns that functions read → sort → sections of whole partitions → states → results, a chunk at a time
//! ```
//! 1. The calls are [decomposed](decompose) into a [`layout`], once.
//! 2. Rows are [kept](sink) and put in order as a [sort](crate::exec::sort) does: by the partition's keys,
//!    then by its order. Columns are [permuted to it](kept). So rows that come in that order cost only the
//!    check, and rows for which there is no memory go to temporary files.
//! 3. Rows of several partitions are [cut](morsels) into [sections](section) of whole partitions, some ten
//!    thousand rows each.
//! 4. A worker takes a section, [prepares](prepared) what its calls need (counts, sums, trees), and
//!    [outputs](source) its rows chunk by chunk. Time does not depend on the length of frames, except for
//!    aggregates that are computed [frame by frame](by_frame).
//! 5. Where there are few partitions, so that workers would wait for each other, all of them prepare the
//!    large ones together at the end of the sink, and then share their rows.
//!
//! Rows come out partition by partition, each in its order. Peers keep the order of the input.
//!
//! Where rows are in files, or fill the memory, sections are formed [one after the other](stream). A
//! partition that does not fit is [stored](stored_partition) block by block and computed [in parts](part):
//! between the rows that matter to a part are [gaps](gaps), of which only [summaries](summaries) are known.

mod block_states;
mod by_frame;
mod columns;
mod copied;
mod counted;
mod counting;
mod decompose;
mod distinct;
mod equal_rows;
mod extreme;
mod fold;
mod frame;
mod gaps;
mod kept;
pub mod layout;
mod morsels;
mod operand;
mod part;
mod prepared;
mod previous;
mod range;
mod ranked;
mod ranking;
mod scan;
mod section;
mod shift;
mod sink;
mod source;
mod state_tree;
mod stored_partition;
mod stream;
mod summaries;
mod sums;
#[cfg(test)]
mod tests;
mod tree;
#[cfg(test)]
mod twin;
mod value;
mod view;
mod wavelet;

use crate::context::QueryContext;
use crate::exec::operator::Blocking;
use crate::exec::profile::Recorder;
use crate::exec::sort::{SortShared as Sort, SortSink};
use crate::sync::OnceLock;
use entasis_vector::Result;
use layout::WindowLayout;
use morsels::Shared;
use sink::WindowSink;
use source::WindowSource;
use std::sync::Arc;

/// The operator that returns the rows of its input, which are as `layout` keeps them, with the columns of its
/// calls.
///
/// # Errors
/// Those of compiling the keys.
pub(crate) fn window(
    layout: WindowLayout,
    context: &QueryContext,
    recorder: &Arc<Recorder>,
) -> Result<Blocking> {
    let sort = Sort::new(&layout.stored, &layout.keys, None, context, recorder)?;
    let sort = Arc::new(sort.with_firsts(layout.firsts()));
    let shared = Arc::new(Shared {
        layout,
        sort: sort.clone(),
        context: context.clone(),
        recorder: recorder.clone(),
        ready: OnceLock::new(),
    });
    let sink = WindowSink { rows: SortSink { shared: sort }, shared: shared.clone() };
    Ok(Blocking { sink: Arc::new(sink), source: Arc::new(WindowSource { shared }) })
}
