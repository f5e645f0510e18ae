//! Which strategy a join takes, and why.
//!
//! | strategy | what is done | taken if | decided when |
//! |---|---|---|---|
//! | in memory, one pass | rows are kept as they come, then get their table | nothing else is | |
//! | in memory, two passes | keys are counted, then rows put in place | [`passes`] says so | it is planned, keys are counted |
//! | partitioned in memory | both sides are split, a table for each partition | [`partitions`] says so | all build rows are there |
//! | partitioned in files | the same of what there is no memory for | [`files`] says so | memory is short |
//!
//! Here is what a join's kind, its keys and the settings rule out. What pays of the rest depends on numbers
//! of rows and bytes, expected ones or counted ones, and is decided by functions of these numbers in the
//! modules below, which give the reason too. Whoever asks them gathers the numbers, does what they say, and
//! notes the reason in the profile. All thresholds are in [`tuning`](super::tuning).
//!
//! Not here: which table the rows get ([`super::table::choose`]), and whether sides are swapped
//! ([`super::swap`]).

pub(crate) mod files;
pub(crate) mod partitions;
pub(crate) mod passes;

use super::build_spec::BuildSpec;
use crate::settings::TableKind;

/// What the plan says of a join beside its [`BuildSpec`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planned {
    /// Build rows that are expected.
    pub rows: f64,
    /// Bytes of one of them.
    pub width: usize,
    /// Pairs must satisfy conditions beside the keys.
    pub has_conditions: bool,
    /// Its sides are swapped while the statement runs.
    pub is_swapped: bool,
    /// There is another join below its probe side.
    pub probes_join: bool,
}

/// The strategies that are open to a join when it is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    /// Rows may be partitioned at all.
    pub partitions: bool,
    /// Rows with different keys need not meet, so that there may be several partitions.
    pub apart: bool,
    /// Whether partitions in memory pay, or a filter before them, is to be asked.
    pub in_memory: bool,
    /// The input of the build side may be read twice.
    pub two_passes: bool,
}

impl Open {
    /// What is open to a join.
    pub(crate) fn of(spec: &BuildSpec, planned: &Planned) -> Open {
        Open {
            // The nearest row of all is to be found: no block of them may be apart.
            partitions: !spec.lookup.is_some_and(|lookup| lookup.nearest),
            // A probe row with a NULL may match every build row, and if there is more to compare, each must
            // be looked at.
            apart: !spec.null_aware || (spec.null_equals_null.len() == 1 && !planned.has_conditions),
            // A probe side of another join is not kept, one that is in memory not moved.
            in_memory: match spec.table {
                TableKind::BloomRadix => true,
                TableKind::Auto => {
                    let size = spec.context.settings.join_partition_size as f64;
                    planned.rows * planned.width as f64 >= size && !planned.is_swapped && !planned.probes_join
                }
                _ => false,
            },
            // Rows that are swapped have come, and those of an order are put into it.
            two_passes: !planned.is_swapped && spec.lookup.is_none(),
        }
    }
}
