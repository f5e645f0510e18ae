//! A join as it is planned: its build side, and its probe side. It is one of the things that parts of several
//! pipelines share.

use crate::exec::join::Computed;
use crate::exec::join::build_spec::BuildSpec;
use crate::exec::join::limits::JoinLimit;
use crate::exec::join::partitioned::skew::StoredKeys;
use crate::exec::join::probe::Residual;
use crate::exec::join::side::Weighed;
use crate::exec::join::two_pass::TwoReadings;
use crate::exec::key_filter::Expected;
use entasis_vector::ColumnId;
use entasis_vector::expr::ColumnMeta;

/// A join, or one of the two ways in which it is planned.
#[derive(Debug)]
pub(crate) struct PlannedJoin {
    /// Its number among the joins of the plan, as `EXPLAIN` prints them, from 1.
    pub number: usize,
    /// Its node.
    pub node: usize,
    /// The left input is the build side.
    pub keeps_left: bool,
    /// Which of its ways this is.
    pub way: PlannedWay,
    /// How the table is built.
    pub spec: BuildSpec,
    /// The columns of the build side as they are computed: keys, what is searched, payload.
    pub computed: Computed,
    /// The same columns as they are kept.
    pub kept: Vec<ColumnMeta>,
    /// How many of them are not payload.
    pub ordering: usize,
    /// The expected number of build rows.
    pub rows: f64,
    /// The test that learns of the keys.
    pub filter: Option<usize>,
    /// What else the build rows say of the probe side, with the tests that learn of it.
    pub limits: Vec<(JoinLimit, usize)>,
    /// How the build side is read twice, if it is.
    pub readings: Option<TwoReadings>,
    /// How rows may be partitioned, if they may.
    pub partitions: Option<PlannedPartitions>,
    /// What is done with probe rows. Build sides are planned first.
    pub probe: Option<PlannedProbe>,
}

/// Which of the two ways of a join is planned.
#[derive(Debug)]
pub(crate) enum PlannedWay {
    /// The only one.
    Only,
    /// The one that is taken unless far more build rows arrive than expected; the costs of both.
    AsPlanned(Box<Weighed>),
    /// The one with the sides of that join swapped.
    Swapped(usize),
}

/// How rows of a join may be partitioned.
#[derive(Debug)]
pub(crate) struct PlannedPartitions {
    /// Rows with different keys need not meet.
    pub apart: bool,
    /// What is expected of the probe side, if partitions in memory are considered.
    pub expected: Expected,
}

/// The probe side of a join.
#[derive(Debug)]
pub(crate) struct PlannedProbe {
    /// Its columns.
    pub input: Vec<ColumnMeta>,
    /// The keys.
    pub keys: Computed,
    /// The bounds that are searched in the ordered build side.
    pub bounds: Option<Computed>,
    /// Columns that are kept if its rows have to wait.
    pub waiting: Vec<ColumnId>,
    /// The table that the keys come from, if known.
    pub stored: Option<StoredKeys>,
    /// Conditions on pairs.
    pub residual: Option<Residual>,
    /// Columns of the probe side that are output for pairs.
    pub probe_columns: Vec<usize>,
    /// Columns of the kept rows that are output for pairs, after those.
    pub build_columns: Vec<usize>,
    /// The columns of the probe side that are NULL for rows of a build tail.
    pub nulls: Vec<ColumnMeta>,
    /// The columns that come out.
    pub output: Vec<ColumnMeta>,
}
