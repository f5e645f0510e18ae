//! Rows of an aggregation that wait for their groups, by partition: because groups hardly repeat, so that
//! looking them up twice would be a waste, or because there is no memory for more groups.
//!
//! ```text
//! chunk → program → do groups repeat? ── no → [Writer], by low bits of the tags of their groups → [Store]
//!                     └─ yes → is there memory? ── yes → partial, as usual
//!                                └─ no → groups that the worker's last partial knows → that partial
//!                                        the others → [Writer] → [Store], in a file
//! later, partition by partition: groups of all partials, then rows that wait → a partial of its own → result ([`super::late`])
//! ```
//! Waiting rows are outputs of the layout's program: when they are read back they are folded in like any
//! others, whatever the states are. With files this is a hybrid hash aggregation (Graefe, *Query Evaluation
//! Techniques for Large Databases*, ACM Computing Surveys 1993, section 4.4), by the same bits of the hash as
//! partitions in memory.
//!
//! 1. Memory is short for a worker if it cannot reserve any, or would be by the policy of all operators
//!    ([`crate::exec::spill::policy`]) if its partial doubled. The worker keeps its partials and creates no
//!    more groups; rows that waited in memory are written.
//! 2. Frequent groups are likely to be in a partial, so rows are looked up in the last one, as long as one
//!    row in [`WORTH_KNOWN`] is found there.
//!
//! Invariants: a group may be in several partials and among the rows that wait, but in one partition only.
//! What a writing worker buffers for all partitions together is bounded; a little of it, some hundred rows of
//! each, need not be reserved.
//!
//! Not here: aggregations without keys, or with external functions that take rows as they come (these are
//! merged whole).

use super::layout::AggregateLayout;
use super::partial::Partial;
use super::writer::{PARTITIONS, Writer};
use crate::context::QueryContext;
use crate::exec::group_table::Partition;
use crate::exec::spill::policy::SpillPolicy;
use crate::exec::spill::store::{Medium, Store};
use crate::memory::Reservation;
use crate::settings::Spilling;
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// What a writer buffers: at most this, and at most this share of what is left to others.
const MOST_HELD: usize = 16 << 20;
const HELD_PART: usize = 8;
/// Groups that fit when tests ask that few do.
const FEW_GROUPS: usize = 8;
/// Rows are looked up while at least one in `WORTH_KNOWN` is found, which is checked every `TRIAL_ROWS` rows.
const WORTH_KNOWN: usize = 8;
const TRIAL_ROWS: usize = 64 << 10;

/// The shared state of an aggregation whose rows may wait.
pub struct Spill {
    /// When rows are written.
    setting: Spilling,
    /// Rows that wait.
    pub(crate) store: Arc<Store>,
    /// When memory is short.
    policy: SpillPolicy,
    context: QueryContext,
}

impl Spill {
    /// The state for a layout; `None` if rows cannot wait.
    pub fn new(layout: &AggregateLayout, context: &QueryContext) -> Option<Spill> {
        let program = layout.program.as_ref().filter(|_| layout.may_wait())?;
        Some(Spill {
            setting: context.settings.aggregate_spill,
            store: Store::new(program.outputs(), PARTITIONS, Medium::Memory, context),
            policy: SpillPolicy::new(&context.memory),
            context: context.clone(),
        })
    }

    /// True if rows may be written.
    pub fn may_write(&self) -> bool {
        self.store.may_write()
    }

    /// Measures the free memory and sets a share of it aside for others. To be called before the first group
    /// is created.
    pub fn set_memory_aside(&self) {
        self.policy.set_memory_aside();
    }

    /// True if a worker with `bytes` in all, whose last partial is `partial`, must create no more groups.
    pub fn is_short(&self, partial: &Partial, bytes: usize) -> bool {
        match self.setting {
            Spilling::Auto => {
                let fixed = partial.table.fixed_bytes();
                // Growing memory may double with the next chunk, and so may that of other workers.
                let next = partial.reservation.bytes().saturating_sub(fixed) * self.context.settings.threads;
                self.policy.is_short(bytes.saturating_sub(fixed), next)
            }
            Spilling::All => partial.table.groups() >= FEW_GROUPS,
            Spilling::Deep => true,
        }
    }

    /// True if `groups` groups of `bytes` bytes are too large for `room` bytes.
    pub fn is_too_large(&self, groups: usize, bytes: usize, room: usize) -> bool {
        match self.setting {
            Spilling::Auto | Spilling::All => bytes > room,
            Spilling::Deep => groups > FEW_GROUPS,
        }
    }

    /// Why rows are written.
    pub fn reason(&self) -> String {
        match self.setting {
            Spilling::Auto => "they did not fit into memory".into(),
            forced => format!("aggregate_spill = {forced}"),
        }
    }

    /// A worker's writer of the rows of a partition to `store`, by the parts of the partition. It begins in
    /// memory.
    pub(crate) fn writer(&self, store: &Arc<Store>, whole: Partition) -> Writer {
        let threads = self.context.settings.threads.max(1);
        let most = (self.policy.left() / HELD_PART / threads).min(MOST_HELD);
        Writer::new(store, whole, most, Reservation::new(&self.context.memory))
    }
}

/// How a worker that creates no more groups treats rows of groups that its last partial knows.
pub struct Known {
    /// Rows are looked up there.
    looks_up: bool,
    /// Since the last check: rows, and how many were found.
    rows: usize,
    found: usize,
}

impl Known {
    /// For a worker whose last partial is `partial`.
    pub fn new(layout: &AggregateLayout, partial: &mut Partial) -> Known {
        // Deferred rows grow with every row.
        let mut looks_up = layout.deferred.is_empty();
        if looks_up && !partial.table.is_hashed() {
            partial.table.hash_from_now();
            looks_up = partial.reserve().is_ok();
        }
        Known { looks_up, rows: 0, found: 0 }
    }

    /// Folds rows of `chunk`, the outputs of the layout's program, into `partial`, and lets the others wait.
    ///
    /// # Errors
    /// Those of the states and of writing.
    pub fn take(
        &mut self,
        layout: &AggregateLayout,
        partial: &mut Partial,
        chunk: &mut Chunk,
        waiting: &mut Writer,
    ) -> Result<()> {
        if !self.looks_up {
            return partial.take_none(chunk, waiting);
        }
        self.rows += chunk.len();
        self.found += partial.take_known(layout, chunk, waiting)?;
        if self.rows >= TRIAL_ROWS {
            self.looks_up = self.found >= self.rows / WORTH_KNOWN;
            (self.rows, self.found) = (0, 0);
        }
        // Texts of extremes may have become longer.
        self.looks_up &= partial.reserve().is_ok();
        Ok(())
    }
}
