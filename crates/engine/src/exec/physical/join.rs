//! Physical planning of joins.
//!
//! The input with the lower estimated cost as the build side ([`crate::cost::join`]) ends in a [`BuildSink`];
//! the other one is the join's stream and passes its operators. A build tail and a join phase are further
//! parts of the stream.
//!
//! If the number of build rows is only an estimate, the join is also planned [with its sides
//! swapped](crate::exec::join::swap):
//!
//! ```text
//! build side → [BuildSink] ─┬─ table                      probe side → [Probe] → …
//!                           └─ far more than expected:    probe side → [BuildSink] → table;  rows that were kept → [Probe] → …
//! ```
//! Pipelines of the way that is not taken are skipped when their turn comes. The probe side is planned once:
//! both ways share its operators, and only one of them runs.

use super::builder::Builder;
use super::needed::{Needed, with};
use super::stream::{Stream, align};
use crate::bounds::{Bounds, Searched};
use crate::context::QueryContext;
use crate::estimate::estimate_rows;
use crate::exec::join::buffered_columns::BufferedColumns;
use crate::exec::join::buffered_probe::BufferedProbe;
use crate::exec::join::build::BuildSink;
use crate::exec::join::build_spec::BuildSpec;
use crate::exec::join::dictionary_probe::EntryCounts;
use crate::exec::join::limits::JoinLimit;
use crate::exec::join::partitioned::Partitioning;
use crate::exec::join::partitioned::join_phase::{JoinPhase, PartitionSource};
use crate::exec::join::partitioned::route::Route;
use crate::exec::join::partitioned::skew::StoredKeys;
use crate::exec::join::probe::{Probe, Residual};
use crate::exec::join::side::Weighed;
use crate::exec::join::strategy::{Open, Planned};
use crate::exec::join::swap::{Swap, Way};
use crate::exec::join::table::LookupKind;
use crate::exec::join::two_pass::{self, KeysSink, TwoPass};
use crate::exec::join::unmatched::BuildRows;
use crate::exec::join::{BuildTail, BuiltSlot, Computed, ProbeOutput, Shape, side};
use crate::exec::key_filter::Expected;
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::operator::OperatorFactory;
use crate::exec::pipeline::Part;
use crate::exec::profile::Recorder;
use crate::exec::temp_compression::Choice;
use crate::plan::tree::ColumnSet;
use crate::plan::{self, JoinKind, Node};
use crate::settings::{FilterKind, Searching};
use entasis_vector::expr::{ColumnMeta, Expr, Program};
use entasis_vector::{DataType, Error, Result};
use std::sync::Arc;

/// A join, one side of which is the build side.
struct Joined<'j> {
    join: &'j plan::Join,
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
    recorder: Arc<Recorder>,
}

/// A side of a join.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The side that is kept in the table.
    Build,
    /// The side that streams by.
    Probe,
}

/// The build side, once it is planned.
struct Kept {
    built: BuiltSlot,
    partitioning: Option<Arc<Partitioning>>,
    /// Keys, then payload.
    metas: Vec<ColumnMeta>,
    /// The expected number of rows.
    rows: f64,
    /// Its rows are read once, so they may become the probe side.
    is_read_once: bool,
}

/// What is read of the probe side.
struct Probing {
    keys: Computed,
    /// The bounds that are searched in the ordered build side.
    bounds: Option<Computed>,
    /// Columns that are kept if its rows have to wait.
    kept: BufferedColumns,
    /// The table that the keys come from, if known.
    stored: Option<StoredKeys>,
}

impl Probing {
    /// What the join reads of its probe side, which has these columns.
    fn of(joined: &Joined<'_>, keys: &[Expr], needed: &Needed, columns: &[ColumnMeta]) -> Result<Probing> {
        let bounds = joined.searched(Side::Probe);
        Ok(Probing {
            keys: Computed::new(keys, columns)?,
            bounds: (!bounds.is_empty()).then(|| Computed::new(bounds, columns)).transpose()?,
            kept: BufferedColumns::new(columns, |meta| needed.contains(&meta.id))?,
            stored: StoredKeys::of(joined.input(Side::Probe), keys),
        })
    }
}

impl<'j> Joined<'j> {
    fn is_left(&self, side: Side) -> bool {
        self.keeps_left == (side == Side::Build)
    }

    fn input(&self, side: Side) -> &'j Node {
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
        context: &QueryContext,
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
            table: context.settings.join_table,
            asked: LookupKind::of(self.shape, plain),
            read: metas.iter().enumerate().map(read).collect(),
            expected,
            lookup: self.searched.as_ref().map(|searched| searched.lookup),
            context: context.clone(),
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

    /// The limits that the build side sets to the probe side, and where they go.
    fn limits(&self) -> Vec<(JoinLimit, Pushed)> {
        if !self.shape.drops_unmatched_probe_rows() {
            return Vec::new();
        }
        let columns = |side| -> ColumnSet { self.input(side).columns().into_iter().collect() };
        let (probe, build) = (columns(Side::Probe), columns(Side::Build));
        let limit = |condition| JoinLimit::of(condition, |id| probe.contains(id), |id| build.contains(id));
        self.residual.iter().filter_map(limit).collect()
    }

    /// The same join with the sides swapped, if that is possible.
    fn other_way(&self) -> Option<Joined<'j>> {
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
            recorder: self.recorder.clone(),
            ..*self
        })
    }
}

impl Builder<'_> {
    pub(super) fn join(
        &mut self,
        node: &Node,
        join: &plan::Join,
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
        let build_recorder = build.recorder.clone();
        let expected = side::expected(join, self.columns, keeps_left);
        let slot = match joined.shape.drops_unmatched_probe_rows() {
            true => Pushed::of(&probe_keys, &joined.null_equals_null, self.context, || expected),
            false => None,
        };
        let other_way = joined.other_way();
        let swap =
            other_way.as_ref().and_then(|_| Swap::of(joined.input(Side::Build), weighed, self.context));
        let way = swap.clone().map(Way::AsPlanned);
        let limits = match self.context.settings.join_filter {
            FilterKind::Off => Vec::new(),
            _ => joined.limits(),
        };
        let (limits, limited): (Vec<JoinLimit>, Vec<Pushed>) = limits.into_iter().unzip();
        let kept = self.keep(&joined, build, (slot.as_ref(), limits), !build_filters.is_empty(), way)?;

        // The probe side.
        let mut probe_filters = joined.passing(filters, Side::Probe);
        probe_filters.extend(slot.into_iter().chain(limited));
        let read_of_probe = || probe_keys.iter().chain(joined.searched(Side::Probe));
        let probe_needed = with(&joined.both, read_of_probe());
        let operators = self.behind + 1;
        let stream = self.input(joined.input(Side::Probe), operators, &probe_needed, &probe_filters)?;
        let children = [&stream.recorder, &build_recorder];
        let (left, right) = if keeps_left { (children[1], children[0]) } else { (children[0], children[1]) };
        [left, right].into_iter().for_each(|child| joined.recorder.add_child(child));
        let stream = self.compacted(joined.input(Side::Probe), stream, operators, &joined.recorder);
        let may_swap = kept.is_read_once && stream.parts.iter().all(|part| !part.ordered);
        let other = other_way.zip(swap).filter(|_| may_swap);
        let other = other.map(|(joined, swap)| (joined, swap, stream.clone(), kept.metas.clone()));
        let probing = Probing::of(&joined, &probe_keys, &probe_needed, &stream.columns)?;
        let stream = self.probe(&joined, kept, stream, probing)?;
        match other {
            None => Ok(stream),
            Some((other_way, swap, probe, kept)) => self.swap(stream, &other_way, &swap, probe, kept),
        }
    }

    /// A join whose build side is chosen, and what the choice was made of.
    fn joined<'j>(
        &self,
        node: &Node,
        join: &'j plan::Join,
        needed: &'j Needed,
    ) -> Result<(Joined<'j>, Weighed)> {
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
            recorder: self.recorder(node),
        };
        joined.recorder.note(format!("join {}", joined.number));
        side::reason(&chosen).into_iter().for_each(|reason| joined.recorder.note(reason));
        Ok((joined, weighed))
    }

    /// Ends `build` in the sink that keeps its rows. `slot` receives the keys, and `limits` what else it
    /// says; `is_filtered`: join filters go into this side.
    fn keep(
        &mut self,
        joined: &Joined<'_>,
        build: Stream,
        (slot, limits): (Option<&Pushed>, Vec<JoinLimit>),
        is_filtered: bool,
        way: Option<Way>,
    ) -> Result<Kept> {
        let (recorder, node) = (&joined.recorder, joined.input(Side::Build));
        let keys = joined.keys(Side::Build);
        let (columns, metas, ordering) = self.kept_columns(joined, &build.columns)?;
        let is_key: Vec<bool> = (0..metas.len()).map(|i| i < ordering).collect();
        let context = self.build_context(joined.number, recorder);
        let expected = side::expected(joined.join, self.columns, joined.keeps_left);
        let filtered = Expected { is_filtered: slot.is_some(), ..expected };
        let spec = joined.build_spec(&metas, &is_key, filtered, &context);
        let rows = estimate_rows(node, self.columns);
        let open = Open::of(&spec, &joined.planned(&metas, rows, matches!(way, Some(Way::Swapped(_)))));
        let expected = if open.in_memory { expected } else { Expected::default() };
        let partitioning = open
            .partitions
            .then(|| {
                Partitioning::new(
                    &metas,
                    spec.clone(),
                    (slot.is_some(), open.apart),
                    expected,
                    recorder,
                    &context,
                )
            })
            .flatten();
        let slot = slot.and_then(|pushed| pushed.test.keys());
        let read = two_pass::Input { node, keys: &keys, rows, is_filtered, columns: &columns, kept: &metas };
        let two_pass = open
            .two_passes
            .then(|| TwoPass::of(&read, &spec, slot, partitioning.as_ref(), recorder))
            .flatten();
        if let Some(two_pass) = &two_pass {
            self.count(node, &keys, two_pass, recorder)?;
        }
        let (built, is_read_once) = (BuiltSlot::default(), two_pass.is_none());
        let sink = BuildSink {
            columns,
            kept: metas.clone(),
            two_pass,
            spec,
            filter: slot.cloned(),
            limits,
            built: built.clone(),
            parts: Arc::default(),
            segments: Arc::default(),
            partitioning: partitioning.clone(),
            choice: Arc::new(Choice::new(&metas, is_key, &context)),
            way,
            recorder: recorder.clone(),
            context,
        };
        self.end(build, Arc::new(sink), recorder);
        Ok(Kept { built, partitioning, metas, rows, is_read_once })
    }

    /// Ends the `keys` of `node` in the sink that counts them, before the rows are read.
    fn count(
        &mut self,
        node: &Node,
        keys: &[Expr],
        two_pass: &Arc<TwoPass>,
        recorder: &Arc<Recorder>,
    ) -> Result<()> {
        let needed = with(&Needed::default(), keys);
        let stream = self.input(node, 0, &needed, &[])?;
        let keys = Computed::new(keys, &stream.columns)?;
        self.end(stream, Arc::new(KeysSink { keys, two_pass: two_pass.clone() }), recorder);
        Ok(())
    }

    /// The columns that a build side is kept with (keys, what it is ordered by, payload): computed from
    /// `input`, and as they are kept; and how many are not payload.
    fn kept_columns(
        &self,
        joined: &Joined<'_>,
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

    /// The output of a join whose build side is `kept`: `stream`, the probe side, after the join's operators.
    fn probe(&self, joined: &Joined<'_>, kept: Kept, mut stream: Stream, probing: Probing) -> Result<Stream> {
        let Kept { built, partitioning, metas, rows, .. } = kept;
        let (recorder, shape) = (&joined.recorder, joined.shape);
        let (probe_columns, build_columns) = (joined.wanted(&stream.columns), joined.wanted(&metas));
        let input = stream.columns.clone();
        let operator = Probe {
            shape,
            keys: probing.keys,
            null_equals_null: joined.null_equals_null.clone(),
            bounds: probing.bounds,
            residual: residual(&joined.residual, &input, &metas)?,
            probe_columns: probe_columns.clone(),
            build_columns: build_columns.clone(),
            built: built.clone(),
            entry_counts: EntryCounts::new(recorder),
            context: self.context.clone(),
        };
        let (columns, nulls) = joined.output(&input, &metas);
        let rest = (shape.tail != BuildTail::Nothing).then(|| BuildRows {
            built,
            matched: shape.tail == BuildTail::Matched,
            nulls,
            columns: build_columns,
            chunk_rows: self.context.settings.chunk_rows,
            next: Arc::default(),
        });
        let ordered = stream.parts.iter().any(|part| part.ordered);
        let kept_probe = Arc::new(probing.kept);
        let late = partitioning.map(|partitioning| {
            partitioning.set_probe(&input, &kept_probe, probing.stored);
            let route = Route { partitioning: partitioning.clone(), keys: operator.keys.clone() };
            let part = join_phase(partitioning, operator.clone(), rest.clone(), recorder);
            (route, Part { ordered, ..part })
        });
        let (route, late) = late.unzip();
        if let Some(route) = route {
            stream = stream.then(Arc::new(route), recorder);
        }
        if !ordered && self.context.settings.join_stride > 0 && joined.searched.is_none() {
            let strides = BufferedProbe {
                keys: operator.keys.clone(),
                null_equals_null: operator.null_equals_null.clone(),
                stored: kept_probe.of(&input),
                kept: kept_probe,
                built: operator.built.clone(),
                is_told: Arc::default(),
                recorder: recorder.clone(),
                context: self.context.clone(),
            };
            stream = stream.then(Arc::new(strides), recorder);
        }
        stream = Stream { columns, ..stream.then(Arc::new(operator), recorder) }.sparse();
        if let Some(rest) = rest {
            stream.parts.push(Part { ordered, ..Part::new(Arc::new(rest), recorder, rows) });
        }
        stream.parts.extend(late);
        Ok(stream)
    }

    /// `stream`, the output of a join, together with that of the join with swapped sides: there the rows of
    /// `probe` are kept, and those that were `kept` stream by.
    fn swap(
        &mut self,
        stream: Stream,
        joined: &Joined<'_>,
        swap: &Arc<Swap>,
        probe: Stream,
        kept: Vec<ColumnMeta>,
    ) -> Result<Stream> {
        let recorder = &joined.recorder;
        let build = self.keep(
            joined,
            probe.only_if(swap, true),
            (None, Vec::new()),
            false,
            Some(Way::Swapped(swap.clone())),
        )?;
        let part = Part::new(swap.rows(self.context.settings.chunk_rows), recorder, 0.0);
        let rows = Stream { parts: vec![part], columns: kept, recorder: recorder.clone() };
        let probing = Probing {
            keys: Computed::of_columns(
                &(0..joined.null_equals_null.len()).collect::<Vec<_>>(),
                &rows.columns,
            ),
            bounds: None,
            kept: BufferedColumns::new(&rows.columns, |_| true)?,
            stored: None,
        };
        let swapped = self.probe(joined, build, rows, probing)?.only_if(swap, true);
        // Both have the columns that are read above, in the same order.
        let columns =
            joined.wanted(&stream.columns).into_iter().map(|i| stream.columns[i].clone()).collect::<Vec<_>>();
        let mut both = align(stream.only_if(swap, false), &columns, recorder)?;
        both.parts.extend(align(swapped, &columns, recorder)?.parts);
        swap.set_planned();
        Ok(both)
    }
}

/// The part of a stream that joins partitions which had to wait. Each partition has a table of its own, for a
/// time.
fn join_phase(
    partitioning: Arc<Partitioning>,
    probe: Probe,
    rest: Option<BuildRows>,
    recorder: &Arc<Recorder>,
) -> Part {
    let [probe_slot, rest_slot] = [(); 2].map(|()| BuiltSlot::default());
    let probe = Probe { built: probe_slot, ..probe };
    let rest = rest.map(|rest| BuildRows { built: rest_slot, ..rest });
    let source = Arc::new(PartitionSource { partitioning: partitioning.clone(), next: Arc::default() });
    let operators: Vec<(Arc<dyn OperatorFactory>, _)> =
        vec![(Arc::new(JoinPhase { partitioning, probe, rest }), recorder.clone())];
    Part { sparse: true, operators, ..Part::new(source, recorder, 0.0) }
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
