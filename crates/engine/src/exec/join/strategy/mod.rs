//! The strategy of a join, and the reason for it.
//!
//! | strategy | what is done | taken if | decided when |
//! |---|---|---|---|
//! | in memory, one pass | rows are kept as they arrive, then get their table | no other strategy is | |
//! | in memory, two passes | keys are counted, then rows put in place | [`passes`] says so | it is planned, keys are counted |
//! | partitioned in memory | both sides are split, a table for each partition | [`partitions`] says so | all build rows are there |
//! | partitioned in files | partitions without memory are written, and joined later | [`files`] says so | memory is short |
//!
//! This module decides what a join's kind, its keys and the settings rule out. Which of the remaining
//! strategies pays off depends on numbers of rows and bytes, estimated or counted; functions of these numbers
//! in the modules below decide it, and return the reason too. Their callers gather the numbers, carry out the
//! decision and record the reason in the profile. All thresholds are in [`tuning`](super::tuning).
//!
//! Not here: the choice of the table ([`super::table::choose`]), and whether sides are swapped
//! ([`super::swap`]).

pub(crate) mod files;
pub(crate) mod partitions;
pub(crate) mod passes;

use super::build_spec::BuildSpec;
use crate::settings::TableKind;

/// What the plan tells of a join beside its [`BuildSpec`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planned {
    /// The expected number of build rows.
    pub rows: f64,
    /// Bytes of a build row.
    pub width: usize,
    /// Pairs must satisfy residual conditions.
    pub has_conditions: bool,
    /// The sides are swapped while the statement runs.
    pub is_swapped: bool,
    /// There is another join below the probe side.
    pub probes_join: bool,
}

/// The strategies that are open to a join when it is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    /// Rows may be partitioned at all.
    pub partitions: bool,
    /// Rows with different keys need not meet, so there may be several partitions.
    pub apart: bool,
    /// Partitions in memory, or a filter before them, are to be considered.
    pub in_memory: bool,
    /// The input of the build side may be read twice.
    pub two_passes: bool,
}

impl Open {
    /// What is open to a join.
    pub(crate) fn of(spec: &BuildSpec, planned: &Planned) -> Open {
        Open {
            // The nearest row overall is wanted, so no block of rows may be joined separately.
            partitions: !spec.lookup.is_some_and(|lookup| lookup.nearest),
            // A probe row with a NULL may match every build row, and with more than one comparison each of
            // these must be tested.
            apart: !spec.null_aware || (spec.null_equals_null.len() == 1 && !planned.has_conditions),
            // A probe side with another join below is not kept, and one that is in memory already is not
            // moved.
            in_memory: match spec.table {
                TableKind::BloomRadix => true,
                TableKind::Auto => {
                    let size = spec.settings.join_partition_size as f64;
                    planned.rows * planned.width as f64 >= size && !planned.is_swapped && !planned.probes_join
                }
                _ => false,
            },
            // Rows of a swapped side have arrived already, and ordered rows are sorted anyway.
            two_passes: !planned.is_swapped && spec.lookup.is_none(),
        }
    }
}
