//! Physical planning of joins.
//!
//! The input with the lower estimated cost as the build side ([`crate::cost::join`]) ends in a build sink;
//! the other one is the join's stream and passes its operators. A build tail and a join phase are further
//! parts of the stream.
//!
//! If the number of build rows is only an estimate, the join is also planned [with its sides
//! swapped](crate::exec::join::swap):
//!
//! ```text
//! build side → [build] ─┬─ table                      probe side → [probe] → …
//!                       └─ far more than expected:    probe side → [build] → table;  rows that were kept → [probe] → …
//! ```
//! Pipelines of the way that is not taken are skipped when their turn comes. The probe side is planned once:
//! both ways share its operators, and only one of them runs. Each way is a join of the physical plan.

use super::needed::{Needed, with};
use super::physical_plan::{OperatorKind, PlannedPart, SinkKind, SourceKind};
use super::planned_join::{PlannedJoin, PlannedPartitions, PlannedProbe, PlannedWay};
use super::planned_work::PlannedWork;
use super::planner::Planner;
use super::stream::Stream;
use crate::bounds::{Bounds, Searched};
use crate::estimate::estimate_rows;
use crate::exec::join::build_spec::BuildSpec;
use crate::exec::join::limits::JoinLimit;
use crate::exec::join::partitioned::Partitioning;
use crate::exec::join::partitioned::skew::StoredKeys;
use crate::exec::join::probe::Residual;
use crate::exec::join::side::Weighed;
use crate::exec::join::strategy::{Open, Planned};
use crate::exec::join::swap::Swap;
use crate::exec::join::table::LookupKind;
use crate::exec::join::two_pass::{self, TwoReadings};
use crate::exec::join::{BuildTail, Computed, ProbeOutput, Shape, side};
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::key_filter::{Expected, PlannedTest};
use crate::plan::tree::ColumnSet;
use crate::plan::{self, JoinKind, Node};
use crate::settings::{FilterKind, Searching, Settings};
use entasis_vector::expr::{ColumnMeta, Expr, Program};
use entasis_vector::{ColumnId, DataType, Error, Result};
use std::sync::Arc;

/// A join, one side of which is the build side.
struct Joined<'p, 'j> {
    join: &'p plan::Join,
    /// Its number among the joins of the plan, as `EXPLAIN` prints them, from 1.
    number: usize,
    keeps_left: bool,
    shape: Shape,
    null_equals_null: Vec<bool>,
    /// How ordered rows are searched, if they are.
    searched: Option<Searched>,
    /// Conditions on pairs besides the keys and the search.
    residual: Vec<Expr>,
    /// Columns that are read above.
    needed: &'j Needed,
    /// Columns that are read above or by residual conditions.
    both: Needed,
    node: usize,
}

/// A side of a join.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The side that is kept in the table.
    Build,
    /// The side that streams by.
    Probe,
}

/// What is read of the probe side.
struct Probing {
    keys: Computed,
    /// The bounds that are searched in the ordered build side.
    bounds: Option<Computed>,
    /// Columns that are kept if its rows have to wait.
    waiting: Vec<ColumnId>,
    /// The table that the keys come from, if known.
    stored: Option<StoredKeys>,
}

impl Probing {
    /// What the join reads of its probe side, which has these columns.
    fn of(
        joined: &Joined<'_, '_>,
        keys: &[Expr],
        needed: &Needed,
        columns: &[ColumnMeta],
    ) -> Result<Probing> {
        let bounds = joined.searched(Side::Probe);
        Ok(Probing {
            keys: Computed::new(keys, columns)?,
            bounds: (!bounds.is_empty()).then(|| Computed::new(bounds, columns)).transpose()?,
            waiting: columns.iter().map(|meta| meta.id).filter(|id| needed.contains(id)).collect(),
            stored: StoredKeys::of(joined.input(Side::Probe), keys),
        })
    }
}

impl<'p, 'j> Joined<'p, 'j> {
    fn is_left(&self, side: Side) -> bool {
        self.keeps_left == (side == Side::Build)
    }

    fn input(&self, side: Side) -> &'p Node {
        if self.is_left(side) { &self.join.left } else { &self.join.right }
    }

    fn keys(&self, side: Side) -> Vec<Expr> {
        let is_left = self.is_left(side);
        self.join.on.iter().map(|key| if is_left { key.left.clone() } else { key.right.clone() }).collect()
    }

    /// The filters from above that may go into one side.
    fn passing(&self, filters: &[Pushed], side: Side) -> Vec<Pushed> {
        let passes = |filter: &&Pushed| side == Side::Probe || filter.comes_first();
        let filters = filters.iter().filter(passes);
        let is_left = self.is_left(side);
        let passes = |filter: &Pushed| {
            filter.in_side(self.join, is_left).or_else(|| filter.across(self.join, is_left))
        };
        filters.filter_map(passes).collect()
    }

    /// The columns that are read above.
    fn wanted(&self, metas: &[ColumnMeta]) -> Vec<usize> {
        (0..metas.len()).filter(|&i| self.needed.contains(&metas[i].id)).collect()
    }

    /// The columns of the output, from those of the probe side and those of the build side; and the columns
    /// of the probe side that are NULL for rows of a build tail.
    fn output(&self, probe: &[ColumnMeta], build: &[ColumnMeta]) -> (Vec<ColumnMeta>, Vec<ColumnMeta>) {
        let shape = self.shape;
        let wanted = |metas: &[ColumnMeta], has_nulls: bool| -> Vec<ColumnMeta> {
            let nullable = |i: usize| metas[i].nullable || has_nulls;
            let meta = |i: usize| ColumnMeta { nullable: nullable(i), ..metas[i].clone() };
            self.wanted(metas).into_iter().map(meta).collect()
        };
        let build_nulls = matches!(shape.probe, ProbeOutput::PairsOrNulls | ProbeOutput::OneOrNulls);
        let of_probe = wanted(probe, shape.tail == BuildTail::Unmatched);
        let of_build = wanted(build, build_nulls);
        match (shape.probe, self.join.kind) {
            (ProbeOutput::Nothing, _) => (of_build, Vec::new()),
            (ProbeOutput::Mark { null_aware }, JoinKind::Mark { mark, .. }) => {
                let mark = ColumnMeta { nullable: null_aware, ..ColumnMeta::new(mark, DataType::Boolean) };
                ([probe, &[mark]].concat(), Vec::new())
            }
            _ if shape.gives_pairs() => ([&of_probe[..], &of_build].concat(), of_probe),
            _ => (probe.to_vec(), Vec::new()),
        }
    }

    fn is_null_aware(&self) -> bool {
        matches!(self.join.kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. })
    }

    /// The build spec, for a build side kept with the columns `metas`.
    fn build_spec(
        &self,
        metas: &[ColumnMeta],
        is_key: &[bool],
        expected: Expected,
        settings: Arc<Settings>,
    ) -> BuildSpec {
        let wanted = self.wanted(metas);
        let null_aware = self.is_null_aware();
        // NULLs are compared in the key columns.
        let in_residual = with(&Needed::default(), &self.residual);
        let read = |(i, meta): (usize, &ColumnMeta)| {
            wanted.contains(&i) || in_residual.contains(&meta.id) || (null_aware && is_key[i])
        };
        let plain =
            wanted.is_empty() && self.residual.is_empty() && !(null_aware && self.null_equals_null.len() > 1);
        BuildSpec {
            shape: self.shape,
            null_equals_null: self.null_equals_null.clone(),
            null_aware,
            marks: self.shape.tail != BuildTail::Nothing,
            table: settings.join_table,
            asked: LookupKind::of(self.shape, plain),
            read: metas.iter().enumerate().map(read).collect(),
            expected,
            lookup: self.searched.as_ref().map(|searched| searched.lookup),
            settings,
        }
    }

    /// What the plan tells of the join, whose build side has these columns and `rows` rows.
    fn planned(&self, metas: &[ColumnMeta], rows: f64, is_swapped: bool) -> Planned {
        Planned {
            rows,
            width: metas.iter().map(|meta| meta.physical.width()).sum(),
            has_conditions: !self.residual.is_empty(),
            is_swapped,
            probes_join: has_join(self.input(Side::Probe)),
        }
    }

    /// The expressions of one side that are searched or searched for.
    fn searched(&self, side: Side) -> &[Expr] {
        let searched = self.searched.as_ref();
        searched.map_or(&[], |searched| if side == Side::Build { &searched.kept } else { &searched.bounds })
    }

    /// The limits that the build side sets to the probe side.
    fn limits(&self) -> Vec<JoinLimit> {
        if !self.shape.drops_unmatched_probe_rows() {
            return Vec::new();
        }
        let columns = |side| -> ColumnSet { self.input(side).columns().into_iter().collect() };
        let (probe, build) = (columns(Side::Probe), columns(Side::Build));
        let limit = |condition| JoinLimit::of(condition, |id| probe.contains(id), |id| build.contains(id));
        self.residual.iter().filter_map(limit).collect()
    }

    /// The same join with the sides swapped, if that is possible.
    fn other_way(&self) -> Option<Joined<'p, 'j>> {
        if self.searched.is_some() {
            return None;
        }
        let keeps_left = !self.keeps_left;
        Some(Joined {
            shape: Shape::of(self.join.kind, keeps_left)?,
            keeps_left,
            null_equals_null: self.null_equals_null.clone(),
            searched: None,
            residual: self.residual.clone(),
            both: self.both.clone(),
            ..*self
        })
    }
}

impl<'p> Planner<'_, 'p> {
    pub(super) fn join(
        &mut self,
        node: &'p Node,
        join: &'p plan::Join,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let (joined, weighed) = self.joined(node, join, needed)?;
        let keeps_left = joined.keeps_left;
        let (build_keys, probe_keys) = (joined.keys(Side::Build), joined.keys(Side::Probe));

        // The build side.
        // What goes into the table keeps its physical type.
        let read_of_build = build_keys.iter().chain(joined.searched(Side::Build));
        let build_needed = with(&Needed::kept(joined.both.ids()), read_of_build);
        let build_filters = joined.passing(filters, Side::Build);
        let build = self.input(joined.input(Side::Build), 0, &build_needed, &build_filters)?;
        let build_node = build.node;
        let (slot, limited) = self.pushed_by(&joined, &probe_keys);
        let other_way = joined.other_way();
        let may_swap =
            || Swap::is_wanted(joined.input(Side::Build), &weighed, self.context.settings.join_swap);
        let other_way = other_way.filter(|_| may_swap());
        let mut probe_filters = joined.passing(filters, Side::Probe);
        probe_filters.extend(slot.iter().cloned().chain(limited.iter().map(|(_, pushed)| pushed.clone())));
        let limits = limited.into_iter().map(|(limit, pushed)| (limit, pushed.number)).collect();
        let is_filtered = !build_filters.is_empty();
        let number = self.keep(&joined, build, (slot.as_ref(), limits), is_filtered, PlannedWay::Only)?;

        // The probe side.
        let read_of_probe = || probe_keys.iter().chain(joined.searched(Side::Probe));
        let probe_needed = with(&joined.both, read_of_probe());
        let operators = self.behind + 1;
        let stream = self.input(joined.input(Side::Probe), operators, &probe_needed, &probe_filters)?;
        let children = [stream.node, build_node];
        let (left, right) = if keeps_left { (children[1], children[0]) } else { (children[0], children[1]) };
        [left, right].into_iter().for_each(|child| self.add_child(joined.node, child));
        let stream = self.compacted(joined.input(Side::Probe), stream, operators, joined.node);
        let is_read_once = self.made.joins[number].readings.is_none();
        let may_swap = is_read_once && stream.parts.iter().all(|part| !part.ordered);
        let other_way = other_way.filter(|_| may_swap).map(|other_way| (other_way, stream.clone()));
        let probing = Probing::of(&joined, &probe_keys, &probe_needed, &stream.columns)?;
        let stream = self.probe(&joined, number, stream, probing)?;
        match other_way {
            None => Ok(stream),
            Some((other_way, probe)) => {
                self.made.joins[number].way = PlannedWay::AsPlanned(Box::new(weighed));
                self.swap(stream, &other_way, number, probe)
            }
        }
    }

    /// A join whose build side is chosen, and what the choice was made of.
    fn joined<'j>(
        &mut self,
        node: &'p Node,
        join: &'p plan::Join,
        needed: &'j Needed,
    ) -> Result<(Joined<'p, 'j>, Weighed)> {
        let bounds = match self.context.settings.join_bounds {
            Searching::Auto => Bounds::of(join, self.columns),
            Searching::Always => Bounds::possible(join),
            Searching::Off => Bounds::possible(join).filter(|bounds| bounds.nearest),
        };
        if matches!(join.kind, JoinKind::AsOf { .. }) && bounds.is_none() {
            return Err(Error::internal("an as-of join has no inequality between its sides"));
        }
        let above = needed.ids().collect();
        let weighed = Weighed::new(join, bounds.is_some(), self.columns, &above, self.context);
        let chosen = weighed.choose();
        let keeps_left = chosen.keeps_left;
        let residual = bounds.as_ref().map_or(&join.residual, |bounds| &bounds.rest).clone();
        let joined = Joined {
            join,
            number: self.number_of(join)?,
            keeps_left,
            shape: Shape::of(join.kind, keeps_left).ok_or_else(|| {
                Error::internal(format!("{:?} joins cannot keep their left input", join.kind))
            })?,
            null_equals_null: join.on.iter().map(|key| key.null_equals_null).collect(),
            searched: bounds.map(|bounds| bounds.searched(keeps_left)),
            needed,
            both: with(needed, &residual),
            residual,
            node: self.add_node(PlannedWork::Node(node)),
        };
        self.note(joined.node, || format!("join {}", joined.number));
        if let Some(reason) = side::reason(&chosen) {
            self.note(joined.node, || reason);
        }
        Ok((joined, weighed))
    }

    /// What the build side tells the probe side, whose keys are these: its keys, and limits.
    fn pushed_by(
        &mut self,
        joined: &Joined<'p, '_>,
        probe_keys: &[Expr],
    ) -> (Option<Pushed>, Vec<(JoinLimit, Pushed)>) {
        let settings = &self.context.settings;
        let columns = match joined.shape.drops_unmatched_probe_rows() {
            true => Pushed::columns_of(probe_keys, &joined.null_equals_null, settings),
            false => None,
        };
        let keys = columns.map(|columns| {
            let test = PlannedTest::Keys(side::expected(joined.join, self.columns, joined.keeps_left));
            Pushed::new(columns, self.add_test(test), test)
        });
        let limits = match settings.join_filter {
            FilterKind::Off => Vec::new(),
            _ => joined.limits(),
        };
        let pushed = |limit: JoinLimit| {
            let test = limit.test();
            let pushed = Pushed::new(vec![limit.column()], self.add_test(test), test);
            (limit, pushed)
        };
        (keys, limits.into_iter().map(pushed).collect())
    }

    /// Ends `build` in the sink that keeps its rows, and returns the number of the join. `slot` receives the
    /// keys, and `limits` what else it says; `is_filtered`: join filters go into this side.
    fn keep(
        &mut self,
        joined: &Joined<'p, '_>,
        build: Stream,
        (slot, limits): (Option<&Pushed>, Vec<(JoinLimit, usize)>),
        is_filtered: bool,
        way: PlannedWay,
    ) -> Result<usize> {
        let node = joined.input(Side::Build);
        let keys = joined.keys(Side::Build);
        let (columns, metas, ordering) = self.kept_columns(joined, &build.columns)?;
        let is_key: Vec<bool> = (0..metas.len()).map(|i| i < ordering).collect();
        let expected = side::expected(joined.join, self.columns, joined.keeps_left);
        let filtered = Expected { is_filtered: slot.is_some(), ..expected };
        let spec = joined.build_spec(&metas, &is_key, filtered, self.settings_of(joined.number));
        let rows = estimate_rows(node, self.columns);
        let is_swapped = matches!(way, PlannedWay::Swapped(_));
        let open = Open::of(&spec, &joined.planned(&metas, rows, is_swapped));
        let expected = if open.in_memory { expected } else { Expected::default() };
        let may_be_partitioned = open.partitions && Partitioning::is_possible(&spec, open.apart);
        let read = two_pass::Input { node, keys: &keys, rows, is_filtered, columns: &columns, kept: &metas };
        let readings = match open.two_passes {
            true => TwoReadings::of(&read, &spec, self.context),
            false => Err(None),
        };
        if let Err(Some(once)) = readings {
            self.note(joined.node, || once.to_string());
        }
        let join = self.made.joins.len();
        self.made.joins.push(PlannedJoin {
            number: joined.number,
            node: joined.node,
            keeps_left: joined.keeps_left,
            way,
            spec,
            computed: columns,
            kept: metas,
            ordering,
            rows,
            filter: slot.map(|pushed| pushed.number),
            limits,
            readings: readings.ok(),
            partitions: may_be_partitioned.then_some(PlannedPartitions { apart: open.apart, expected }),
            probe: None,
        });
        if self.made.joins[join].readings.is_some() {
            self.count(node, &keys, join)?;
        }
        self.end(build, SinkKind::Build { join }, joined.node);
        Ok(join)
    }

    /// The settings of the build side of join `number`.
    fn settings_of(&self, number: usize) -> Arc<Settings> {
        let settings = &self.context.settings;
        match settings.join_tables.iter().find(|(own, _)| *own == number) {
            None => settings.clone(),
            Some(&(_, join_table)) => Arc::new(Settings { join_table, ..(**settings).clone() }),
        }
    }

    /// Ends the `keys` of `node` in the sink that counts them, before the rows are read.
    fn count(&mut self, node: &'p Node, keys: &[Expr], join: usize) -> Result<()> {
        let needed = with(&Needed::default(), keys);
        let stream = self.input(node, 0, &needed, &[])?;
        let keys = Computed::new(keys, &stream.columns)?;
        let own = self.made.joins[join].node;
        self.end(stream, SinkKind::CountKeys { join, keys }, own);
        Ok(())
    }

    /// The columns that a build side is kept with (keys, what it is ordered by, payload): computed from
    /// `input`, and as they are kept; and how many are not payload.
    fn kept_columns(
        &self,
        joined: &Joined<'p, '_>,
        input: &[ColumnMeta],
    ) -> Result<(Computed, Vec<ColumnMeta>, usize)> {
        let keys = joined.keys(Side::Build);
        let ids = joined.input(Side::Build).columns();
        let payload = joined.both.ids().filter(|id| ids.contains(id));
        let count = keys.len();
        let mut exprs = keys;
        exprs.extend_from_slice(joined.searched(Side::Build));
        let ordering = exprs.len();
        for id in payload {
            let column = Expr::column(id, self.columns.ty(id));
            if !exprs[..ordering].contains(&column) {
                exprs.push(column);
            }
        }
        let columns = Computed::new(&exprs, input)?;
        let kept = |(i, (meta, expr)): (usize, (&ColumnMeta, &Expr))| ColumnMeta {
            id: if let Expr::Column { id, .. } = expr { *id } else { meta.id },
            // Keys of both sides are compared in one physical type.
            physical: if i < count { meta.ty.physical() } else { meta.physical },
            ..meta.clone()
        };
        let metas = columns.metas().iter().zip(&exprs).enumerate().map(kept).collect();
        Ok((columns, metas, ordering))
    }

    /// The output of a join whose build side is planned: `stream`, the probe side, after the operators of
    /// planned join `join`.
    fn probe(
        &mut self,
        joined: &Joined<'p, '_>,
        join: usize,
        stream: Stream,
        probing: Probing,
    ) -> Result<Stream> {
        let (own, shape) = (joined.node, joined.shape);
        let planned = &mut self.made.joins[join];
        let (columns, nulls) = joined.output(&stream.columns, &planned.kept);
        let may_be_partitioned = planned.partitions.is_some();
        planned.probe = Some(PlannedProbe {
            keys: probing.keys,
            bounds: probing.bounds,
            waiting: probing.waiting,
            stored: probing.stored,
            residual: residual(&joined.residual, &stream.columns, &planned.kept)?,
            probe_columns: joined.wanted(&stream.columns),
            build_columns: joined.wanted(&planned.kept),
            nulls,
            input: stream.columns.clone(),
            output: columns.clone(),
        });
        let ordered = stream.parts.iter().any(|part| part.ordered);
        let mut stream = stream;
        if may_be_partitioned {
            stream = self.then(stream, OperatorKind::Route { join }, own);
        }
        if !ordered && self.context.settings.join_stride > 0 && joined.searched.is_none() {
            stream = self.then(stream, OperatorKind::BufferedProbe { join }, own);
        }
        stream = Stream { columns, ..self.then(stream, OperatorKind::Probe { join }, own) }.sparse();
        if shape.tail != BuildTail::Nothing {
            let tail = self.add_source(SourceKind::BuildTail { join }, own);
            stream.parts.push(PlannedPart { ordered, ..PlannedPart::of(tail) });
        }
        if may_be_partitioned {
            let partitions = self.add_source(SourceKind::Partitions { join }, own);
            let part = PlannedPart { ordered, sparse: true, ..PlannedPart::of(partitions) };
            let late = Stream { parts: vec![part], columns: Vec::new(), node: own };
            stream.parts.extend(self.extend(late, OperatorKind::JoinPhase { join }, own).parts);
        }
        Ok(stream)
    }

    /// `stream`, the output of planned join `join`, together with that of the join with swapped sides: there
    /// the rows of `probe` are kept, and those that were kept stream by.
    fn swap(
        &mut self,
        stream: Stream,
        joined: &Joined<'p, '_>,
        join: usize,
        probe: Stream,
    ) -> Result<Stream> {
        let own = joined.node;
        let way = PlannedWay::Swapped(join);
        let swapped = self.keep(joined, probe.only_if(join, true), (None, Vec::new()), false, way)?;
        let source = self.add_source(SourceKind::KeptRows { join }, own);
        let rows = Stream::of(source, self.made.joins[join].kept.clone(), own);
        let keys: Vec<usize> = (0..joined.null_equals_null.len()).collect();
        let probing = Probing {
            keys: Computed::of_columns(&keys, &rows.columns),
            bounds: None,
            waiting: rows.columns.iter().map(|meta| meta.id).collect(),
            stored: None,
        };
        let swapped = self.probe(joined, swapped, rows, probing)?.only_if(join, true);
        // Both have the columns that are read above, in the same order.
        let columns =
            joined.wanted(&stream.columns).into_iter().map(|i| stream.columns[i].clone()).collect::<Vec<_>>();
        let mut both = self.align(stream.only_if(join, false), &columns, own)?;
        both.parts.extend(self.align(swapped, &columns, own)?.parts);
        Ok(both)
    }
}

/// True if there is a join in this part of a plan.
fn has_join(node: &Node) -> bool {
    matches!(node, Node::Join(_)) || node.children().into_iter().any(has_join)
}

/// The residual conditions of a join, over the columns of both sides that they read.
fn residual(conditions: &[Expr], probe: &[ColumnMeta], kept: &[ColumnMeta]) -> Result<Option<Residual>> {
    if conditions.is_empty() {
        return Ok(None);
    }
    let read = with(&Needed::default(), conditions);
    let places = |metas: &[ColumnMeta]| -> Vec<usize> {
        (0..metas.len()).filter(|&i| read.contains(&metas[i].id)).collect()
    };
    let (probe_columns, build_columns) = (places(probe), places(kept));
    let from_probe = probe_columns.iter().map(|&i| probe[i].clone());
    let metas: Vec<ColumnMeta> = from_probe.chain(build_columns.iter().map(|&i| kept[i].clone())).collect();
    let program = Program::compile(conditions, &metas)?;
    Ok(Some(Residual { program, probe_columns, build_columns }))
}
