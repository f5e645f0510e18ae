//! Instantiation: a physical plan becomes pipelines that can run, once.
//!
//! Everything that the plan numbers is made in the order of its numbers, kind by kind: recorders with memory
//! of their own, tests, joins, sinks, sources, operators. These are then put together to pipelines. Relations
//! are opened here, and indexes are looked up. So only here it is known how many rows most sources have; what
//! depends on that (workers, thresholds of compactions) is decided here or when the pipeline starts.

use super::join_instance::JoinInstance;
use super::physical_plan::{
    OperatorKind, PhysicalPlan, PlannedNode, PlannedOperator, PlannedPart, PlannedPipeline, PlannedSink,
    PlannedSource, SinkKind, SourceKind,
};
use super::planned_work::PlannedWork;
use crate::context::QueryContext;
use crate::estimate::width::costs;
use crate::exec::aggregate::aggregate;
use crate::exec::compaction::costs::ChunkCosts;
use crate::exec::compaction::{Compact, Factory, Standing, learns};
use crate::exec::fetched::FetchedRows;
use crate::exec::key_filter::before_join::FiltersBeforeJoin;
use crate::exec::key_filter::{PlacedFilter, PlacedTest, PlannedFilter, PlannedTest};
use crate::exec::limit::Limit;
use crate::exec::operator::{Blocking, OperatorFactory, Sink};
use crate::exec::partial_distinct::DropRepeats;
use crate::exec::pipeline::{Part, Pipeline};
use crate::exec::profile::Recorder;
use crate::exec::scan::TableScan;
use crate::exec::set_operation::Copies;
use crate::exec::sort::sort;
use crate::exec::values::Chunks;
use crate::exec::window::window;
use crate::explain::node_title;
use crate::plan::{Columns, Node, Scan};
use crate::relation::{ScanRequest, Source};
use entasis_vector::{ColumnId, Error, PhysicalType, Result};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// The assumed number of rows of a relation without statistics.
const UNKNOWN_ROWS: f64 = 1e6;

/// The pipelines of `plan`, the last of which end in `sink`, and the recorder of its root.
///
/// # Errors
/// Those of opening relations and of compiling the keys of sorts.
pub(crate) fn instantiate<'s>(
    plan: PhysicalPlan<'_>,
    context: &QueryContext,
    sink: Arc<dyn Sink + 's>,
) -> Result<(Vec<Pipeline<'s>>, Arc<Recorder>)> {
    let PhysicalPlan { columns, nodes, tests, joins, sources, operators, sinks, pipelines, root } = plan;
    let mut instances = Instances {
        context,
        columns,
        recorders: recorders(nodes, columns, context),
        tests: tests.into_iter().map(PlannedTest::instantiate).collect(),
        joins: Vec::with_capacity(joins.len()),
        sinks: Vec::with_capacity(sinks.len()),
        sources: Vec::with_capacity(sources.len()),
        operators: Vec::with_capacity(operators.len()),
    };
    for join in joins {
        let recorder = &instances.recorders[join.node];
        let join = JoinInstance::new(join, &instances.joins, &instances.tests, recorder, context)?;
        instances.joins.push(join);
    }
    for planned in sinks {
        let made = instances.sink(planned, &sink)?;
        instances.sinks.push(made);
    }
    for planned in sources {
        let made = instances.source(planned)?;
        instances.sources.push(made);
    }
    instances.count_rows(&pipelines);
    for planned in operators {
        let made = instances.operator(planned)?;
        instances.operators.push(made);
    }
    let pipelines =
        pipelines.into_iter().map(|planned| instances.pipeline(planned)).collect::<Result<_>>()?;
    Ok((pipelines, instances.recorders.swap_remove(root)))
}

/// What has been made of a plan, each kind by number.
struct Instances<'a, 's> {
    context: &'a QueryContext,
    columns: &'a Columns,
    recorders: Vec<Arc<Recorder>>,
    tests: Vec<PlacedTest>,
    joins: Vec<JoinInstance>,
    sinks: Vec<SinkInstance<'s>>,
    sources: Vec<SourceInstance>,
    /// Operators and their nodes' recorders.
    operators: Vec<(Arc<dyn OperatorFactory>, Arc<Recorder>)>,
}

/// A sink.
struct SinkInstance<'s> {
    sink: Arc<dyn Sink + 's>,
    /// Gives its output, if it has any.
    output: Option<Arc<dyn Source>>,
    recorder: Arc<Recorder>,
}

/// A source.
struct SourceInstance {
    source: Arc<dyn Source>,
    recorder: Arc<Recorder>,
    /// The estimated number of its rows.
    rows: f64,
    /// The sink whose output it is.
    of_sink: Option<usize>,
}

impl<'s> Instances<'_, 's> {
    /// A sink; `result` is that of the statement's rows.
    fn sink(&self, planned: PlannedSink<'_>, result: &Arc<dyn Sink + 's>) -> Result<SinkInstance<'s>> {
        let PlannedSink { kind, node } = planned;
        let recorder = self.recorders[node].clone();
        let context = || recorder.context(self.context);
        let Blocking { sink, source } = match kind {
            SinkKind::Result { .. } => {
                return Ok(SinkInstance { sink: result.clone(), output: None, recorder });
            }
            SinkKind::Build { join } => {
                let sink = self.joins[join].build();
                return Ok(SinkInstance { sink, output: None, recorder });
            }
            SinkKind::CountKeys { join, keys } => {
                let sink = self.joins[join].counting(keys)?;
                return Ok(SinkInstance { sink, output: None, recorder });
            }
            SinkKind::Aggregate { layout, groups } => aggregate(*layout, groups, &context(), &recorder),
            SinkKind::Sort { columns, keys, limit, threshold } => {
                let threshold = threshold.and_then(|number| self.tests[number].bound().cloned());
                sort(&columns, keys, limit, threshold, &context(), &recorder)?
            }
            SinkKind::Window(layout) => window(*layout, &context(), &recorder)?,
        };
        Ok(SinkInstance { sink, output: Some(source), recorder })
    }

    /// A source. Relations are opened.
    fn source(&self, planned: PlannedSource<'_>) -> Result<SourceInstance> {
        let PlannedSource { kind, node } = planned;
        let recorder = self.recorders[node].clone();
        let mut of_sink = None;
        let (source, rows): (Arc<dyn Source>, f64) = match kind {
            SourceKind::Table { scan, columns, outputs, metas, filters } => {
                let filters = self.filters(filters, &recorder);
                let table = scan.relation.table();
                let table = table.ok_or_else(|| Error::internal("a table is scanned that is none"))?.clone();
                let source = TableScan::new(
                    table,
                    scan,
                    &columns,
                    &outputs,
                    &metas,
                    filters,
                    &recorder,
                    self.context,
                )?;
                let rows = source.rows() as f64;
                (Arc::new(source), rows)
            }
            SourceKind::Relation { scan, columns, thresholds, .. } => {
                self.relation(scan, columns, &thresholds)?
            }
            SourceKind::Values { values, places, metas } => {
                let chunks = Chunks::new(&metas, &places, &values.rows, self.context.settings.chunk_rows)?;
                (Arc::new(chunks), values.rows.len() as f64)
            }
            SourceKind::Output { sink, rows } => {
                of_sink = Some(sink);
                (self.output(sink)?, rows)
            }
            SourceKind::Fetched { sink, column, scan, columns, rows } => {
                let source = FetchedRows {
                    numbers: self.output(sink)?,
                    column,
                    relation: scan.relation.clone(),
                    request: ScanRequest::all(columns),
                    context: self.context.clone(),
                    scan: OnceLock::new(),
                };
                (Arc::new(source), rows)
            }
            SourceKind::KeptRows { join } => (self.joins[join].kept_rows(self.context)?, 0.0),
            SourceKind::BuildTail { join } => self.joins[join].tail()?,
            SourceKind::Partitions { join } => (self.joins[join].partitions()?, 0.0),
        };
        Ok(SourceInstance { source, recorder, rows, of_sink })
    }

    /// The scan of a relation that is no stored table, and the expected number of its rows.
    fn relation(
        &self,
        scan: &Scan,
        columns: Vec<(ColumnId, usize)>,
        thresholds: &[(ColumnId, usize)],
    ) -> Result<(Arc<dyn Source>, f64)> {
        let bound = |&(id, number): &(ColumnId, usize)| Some((id, self.tests[number].bound()?.clone()));
        let thresholds = thresholds.iter().filter_map(bound).collect();
        let request = ScanRequest { columns, filters: scan.filters.clone(), thresholds };
        let source = scan.relation.scan(&request, self.context)?;
        let expected = || scan.relation.statistics().rows.map_or(UNKNOWN_ROWS, |rows| rows as f64);
        let rows = source.rows().map_or_else(expected, |rows| rows as f64);
        Ok((source, rows))
    }

    /// What gives the rows of a sink.
    fn output(&self, sink: usize) -> Result<Arc<dyn Source>> {
        let output = self.sinks[sink].output.clone();
        output.ok_or_else(|| Error::internal("a sink is read that gives no rows"))
    }

    /// Estimates how many rows the outputs of sinks have.
    fn count_rows(&mut self, pipelines: &[PlannedPipeline]) {
        let mut fed = vec![0.0; self.sinks.len()];
        for PlannedPipeline { part: PlannedPart { source, .. }, sink, .. } in pipelines {
            let source = &mut self.sources[*source];
            if let Some(sink) = source.of_sink {
                // An estimate that is far too low must not leave a large output to a single worker;
                // requesting more workers costs little.
                source.rows = source.rows.max(fed[sink] / 16.0);
            }
            fed[*sink] += source.rows;
        }
    }

    /// An operator, and its recorder.
    fn operator(&self, planned: PlannedOperator<'_>) -> Result<(Arc<dyn OperatorFactory>, Arc<Recorder>)> {
        let PlannedOperator { kind, node } = planned;
        let recorder = self.recorders[node].clone();
        let settings = &self.context.settings;
        let operator: Arc<dyn OperatorFactory> = match kind {
            OperatorKind::Filter { filter, .. } => Arc::new(filter),
            OperatorKind::Project(project) => Arc::new(project),
            OperatorKind::Align { align, .. } => Arc::new(align),
            OperatorKind::Unnest(unnest) => Arc::new(unnest),
            OperatorKind::Limit { offset, count } => Arc::new(Limit::new(offset, count)),
            OperatorKind::EarlyFilters(filters) => {
                let filters = self.filters(filters, &recorder);
                Arc::new(FiltersBeforeJoin { filters, settings: settings.clone() })
            }
            OperatorKind::Compact { below, part, source, types, operators } => {
                let rows = self.sources[source].rows;
                Arc::new(Factory(self.compact(below, part, rows, types, operators, &recorder)?))
            }
            OperatorKind::DropRepeats { columns, keys } => {
                let names: Vec<&str> = keys.iter().map(|id| self.columns.get(*id).name.as_str()).collect();
                let rate = recorder.pass_rate("new rows", names.join(", "));
                Arc::new(DropRepeats::new(columns, settings.adaptive, rate, &self.context.memory))
            }
            OperatorKind::Route { join } => self.joins[join].route()?,
            OperatorKind::BufferedProbe { join } => self.joins[join].buffered_probe(self.context),
            OperatorKind::Probe { join } => self.joins[join].probe(),
            OperatorKind::JoinPhase { join } => self.joins[join].join_phase()?,
            OperatorKind::Copies(set) => Arc::new(Copies::new(set, &recorder.context(self.context))),
        };
        Ok((operator, recorder))
    }

    /// Filters at the place where they are tested, whose statistics `recorder` gets.
    fn filters(&self, planned: Vec<PlannedFilter>, recorder: &Recorder) -> Vec<PlacedFilter> {
        let placed = |filter: PlannedFilter| filter.instantiate(&self.tests, self.columns, recorder);
        planned.into_iter().map(placed).collect()
    }

    /// What copies small chunks together: those of `part` of the stream of `below`, whose source has about
    /// `rows` rows.
    fn compact(
        &self,
        below: &Node,
        part: usize,
        rows: f64,
        types: Vec<PhysicalType>,
        operators: usize,
        recorder: &Arc<Recorder>,
    ) -> Result<Arc<Compact>> {
        let settings = &self.context.settings;
        let chunks = rows / settings.chunk_rows as f64;
        let bytes = types.iter().map(|ty| ty.width()).sum();
        // PERF: a hash writes the titles of all nodes below.
        let is_learned = learns(settings.compaction, settings.chunk_rows, chunks);
        let standing = Standing {
            operators,
            chunks,
            costs: ChunkCosts::of_rows(&costs(below), types.len(), bytes),
            learned: self.context.learned.clone(),
            plan: if is_learned { hash_of(below, part, self.columns) } else { 0 },
        };
        let compact = Compact::new(settings.compaction, types, settings.chunk_rows, &standing, recorder);
        compact.map(Arc::new).ok_or_else(|| Error::internal("chunks are compacted though none are copied"))
    }

    fn pipeline(&self, planned: PlannedPipeline) -> Result<Pipeline<'s>> {
        let PlannedPipeline { part, sink, completes_sink, number } = planned;
        let SinkInstance { sink, recorder, .. } = &self.sinks[sink];
        let part = self.part(part)?;
        let (sink, recorder) = (sink.clone(), recorder.clone());
        Ok(Pipeline { part, sink, recorder, completes_sink, part_number: number as u64 })
    }

    fn part(&self, planned: PlannedPart) -> Result<Part> {
        let SourceInstance { source, recorder, rows, .. } = &self.sources[planned.source];
        if planned.stops_early {
            source.stops_early();
        }
        let stored = if planned.leaves_stored { source.leaving_stored() } else { None };
        let switch = |(join, turned): (usize, bool)| Ok((self.joins[join].swap()?.switch().clone(), turned));
        Ok(Part {
            source: stored.unwrap_or_else(|| source.clone()),
            recorder: recorder.clone(),
            operators: planned.operators.into_iter().map(|number| self.operators[number].clone()).collect(),
            rows: *rows,
            ordered: planned.ordered,
            only_if: planned.only_if.into_iter().map(switch).collect::<Result<_>>()?,
        })
    }
}

/// The recorders of nodes.
fn recorders(nodes: Vec<PlannedNode<'_>>, columns: &Columns, context: &QueryContext) -> Vec<Arc<Recorder>> {
    let recorders: Vec<Arc<Recorder>> =
        nodes.iter().map(|node| recorder(&node.work, columns, context)).collect();
    for (recorder, node) in recorders.iter().zip(nodes) {
        node.children.iter().for_each(|child| recorder.add_child(&recorders[*child]));
        node.notes.into_iter().for_each(|note| recorder.note(note));
    }
    recorders
}

fn recorder(work: &PlannedWork<'_>, columns: &Columns, context: &QueryContext) -> Arc<Recorder> {
    match work {
        PlannedWork::Result => Recorder::new(work.title(columns)),
        _ if context.settings.profile => {
            Recorder::measuring(work.title(columns), work.owner(), work.expected(columns), context)
        }
        _ => Recorder::owning(work.owner(), context),
    }
}

/// A hash of the plan of a node and the number of a part of its stream: the same for the next execution of
/// the same plan.
fn hash_of(node: &Node, part: usize, columns: &Columns) -> u64 {
    fn add(node: &Node, columns: &Columns, hasher: &mut DefaultHasher) {
        node_title(node, columns).hash(hasher);
        node.children().into_iter().for_each(|child| add(child, columns, hasher));
    }
    let mut hasher = DefaultHasher::new();
    part.hash(&mut hasher);
    add(node, columns, &mut hasher);
    hasher.finish()
}
