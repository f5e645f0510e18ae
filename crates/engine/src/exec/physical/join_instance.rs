//! The parts of a join, or of one of its two ways, that its pipelines share: they are made together, since
//! the build sink fills what the others read.

use super::planned_join::{PlannedJoin, PlannedProbe, PlannedWay};
use crate::context::QueryContext;
use crate::exec::join::buffered_columns::BufferedColumns;
use crate::exec::join::buffered_probe::BufferedProbe;
use crate::exec::join::build::BuildSink;
use crate::exec::join::dictionary_probe::EntryCounts;
use crate::exec::join::limits::JoinLimit;
use crate::exec::join::partitioned::Partitioning;
use crate::exec::join::partitioned::join_phase::{JoinPhase, PartitionSource};
use crate::exec::join::partitioned::route::Route;
use crate::exec::join::probe::Probe;
use crate::exec::join::swap::{Swap, Way};
use crate::exec::join::two_pass::{KeysSink, TwoPass};
use crate::exec::join::unmatched::BuildRows;
use crate::exec::join::{BuildTail, BuiltSlot, Computed};
use crate::exec::key_filter::PlacedTest;
use crate::exec::operator::{OperatorFactory, Sink};
use crate::exec::profile::Recorder;
use crate::exec::temp_compression::Choice;
use crate::relation::Source;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// See the module.
pub(super) struct JoinInstance {
    sink: Arc<BuildSink>,
    /// Decides whether the sides are swapped, if they may be and this is the way as planned.
    swap: Option<Arc<Swap>>,
    probe: Arc<Probe>,
    /// The columns of the probe side that are kept if its rows have to wait, and what is known of these.
    waiting: (Arc<BufferedColumns>, Vec<ColumnMeta>),
    tail: Option<BuildRows>,
    /// The expected number of build rows.
    rows: f64,
    recorder: Arc<Recorder>,
}

impl JoinInstance {
    /// The parts of a planned join. `joins` are those before it, and `tests` those of the plan.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn new(
        planned: PlannedJoin,
        joins: &[JoinInstance],
        tests: &[PlacedTest],
        recorder: &Arc<Recorder>,
        context: &QueryContext,
    ) -> Result<JoinInstance> {
        let PlannedJoin { way, spec, computed, kept, rows, partitions, readings, probe, .. } = planned;
        let probe = probe.ok_or_else(|| Error::internal("a join is planned without a probe side"))?;
        let built = BuiltSlot::default();
        let own = QueryContext { settings: spec.settings.clone(), ..recorder.context(context) };
        let filter = planned.filter.and_then(|number| tests[number].keys());
        let partitioning = partitions.map(|planned| {
            let wanted = (filter.is_some(), planned.apart);
            Partitioning::new(&kept, spec.clone(), wanted, planned.expected, recorder, &own)
        });
        let two_pass = readings.map(|readings| {
            TwoPass::new(readings, (rows, &kept), &spec, (filter, partitioning.as_ref()), recorder, &own)
        });
        let (swap, way) = match way {
            PlannedWay::Only => (None, None),
            PlannedWay::AsPlanned(weighed) => {
                let swap = Swap::new(context.settings.join_swap, *weighed);
                (Some(swap.clone()), Some(Way::AsPlanned(swap)))
            }
            PlannedWay::Swapped(join) => (None, Some(Way::Swapped(joins[join].swap()?.clone()))),
        };
        let (shape, null_equals_null) = (spec.shape, spec.null_equals_null.clone());
        let is_key = (0..kept.len()).map(|i| i < planned.ordering).collect();
        let bound = |(limit, number): (JoinLimit, usize)| Some((limit, tests[number].bound()?.clone()));
        let sink = BuildSink {
            columns: computed,
            two_pass,
            spec,
            filter: filter.cloned(),
            limits: planned.limits.into_iter().filter_map(bound).collect(),
            built: built.clone(),
            parts: Arc::default(),
            segments: Arc::default(),
            partitioning: partitioning.clone(),
            choice: Arc::new(Choice::new(&kept, is_key, &own)),
            kept,
            way,
            recorder: recorder.clone(),
            context: own,
        };
        let PlannedProbe { input, waiting, nulls, .. } = probe;
        let is_read = |meta: &ColumnMeta| waiting.contains(&meta.id);
        let waiting = Arc::new(BufferedColumns::new(&input, is_read)?);
        if let Some(partitioning) = &partitioning {
            partitioning.set_probe(&input, &waiting, probe.stored);
        }
        let tail = (shape.tail != BuildTail::Nothing).then(|| BuildRows {
            built: built.clone(),
            matched: shape.tail == BuildTail::Matched,
            nulls,
            columns: probe.build_columns.clone(),
            chunk_rows: context.settings.chunk_rows,
            next: Arc::default(),
        });
        let probe = Probe {
            shape,
            keys: probe.keys,
            null_equals_null,
            bounds: probe.bounds,
            residual: probe.residual,
            probe_columns: probe.probe_columns,
            build_columns: probe.build_columns,
            built,
            entry_counts: EntryCounts::new(recorder),
            context: context.clone(),
        };
        let waiting_metas = waiting.of(&input);
        Ok(JoinInstance {
            sink: Arc::new(sink),
            swap,
            probe: Arc::new(probe),
            waiting: (waiting, waiting_metas),
            tail,
            rows,
            recorder: recorder.clone(),
        })
    }

    /// What decides whether the sides are swapped.
    pub(super) fn swap(&self) -> Result<&Arc<Swap>> {
        self.swap.as_ref().ok_or_else(|| Error::internal("a join is swapped that has one way only"))
    }

    fn partitioning(&self) -> Result<&Arc<Partitioning>> {
        let partitioning = self.sink.partitioning.as_ref();
        partitioning.ok_or_else(|| Error::internal("a join has a join phase and no partitions"))
    }

    /// The sink of the build side.
    pub(super) fn build(&self) -> Arc<dyn Sink> {
        self.sink.clone()
    }

    /// The sink that counts these keys of the build side first.
    pub(super) fn counting(&self, keys: Computed) -> Result<Arc<dyn Sink>> {
        let two_pass = self.sink.two_pass.clone();
        let two_pass =
            two_pass.ok_or_else(|| Error::internal("keys are counted of a side that is read once"))?;
        Ok(Arc::new(KeysSink { keys, two_pass }))
    }

    /// The operator that sends probe rows of partitions that wait to these.
    pub(super) fn route(&self) -> Result<Arc<dyn OperatorFactory>> {
        let partitioning = self.partitioning()?.clone();
        Ok(Arc::new(Route { partitioning, keys: self.probe.keys.clone() }))
    }

    /// The operator that holds probe rows back and sorts them by hash.
    pub(super) fn buffered_probe(&self, context: &QueryContext) -> Arc<dyn OperatorFactory> {
        let (kept, stored) = self.waiting.clone();
        Arc::new(BufferedProbe {
            keys: self.probe.keys.clone(),
            null_equals_null: self.probe.null_equals_null.clone(),
            stored,
            kept,
            built: self.probe.built.clone(),
            is_told: Arc::default(),
            recorder: self.recorder.clone(),
            context: context.clone(),
        })
    }

    /// The operator that finds matches.
    pub(super) fn probe(&self) -> Arc<dyn OperatorFactory> {
        self.probe.clone()
    }

    /// The source of build rows that matched, or did not, and the expected number of rows.
    pub(super) fn tail(&self) -> Result<(Arc<dyn Source>, f64)> {
        let tail = self.tail.clone().ok_or_else(|| Error::internal("a join has no build tail"))?;
        Ok((Arc::new(tail), self.rows))
    }

    /// The source of partitions that had to wait.
    pub(super) fn partitions(&self) -> Result<Arc<dyn Source>> {
        let partitioning = self.partitioning()?.clone();
        Ok(Arc::new(PartitionSource { partitioning, next: Arc::default() }))
    }

    /// The operator that joins these. Each partition has a table of its own, for a time.
    pub(super) fn join_phase(&self) -> Result<Arc<dyn OperatorFactory>> {
        let [probe_slot, rest_slot] = [(); 2].map(|()| BuiltSlot::default());
        let probe = Probe { built: probe_slot, ..(*self.probe).clone() };
        let rest = self.tail.clone().map(|tail| BuildRows { built: rest_slot, ..tail });
        Ok(Arc::new(JoinPhase { partitioning: self.partitioning()?.clone(), probe, rest }))
    }

    /// The source of the rows of the build side, if the sides have been swapped.
    pub(super) fn kept_rows(&self, context: &QueryContext) -> Result<Arc<dyn Source>> {
        Ok(self.swap()?.rows(context.settings.chunk_rows))
    }
}
