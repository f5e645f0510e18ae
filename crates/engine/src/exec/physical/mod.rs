//! Physical planning: from the tree of an optimized plan to pipelines in an order in which they can run.
//!
//! A node becomes a [`Stream`]: sources, the operators that their rows pass, and what is known of each output
//! column. Streaming nodes append an operator. A node that must see all rows ends the stream in a sink, which
//! makes pipelines, and starts a new one. Most streams have one part; `UNION ALL` and joins with a build tail
//! have several, which run one after another into the same sink.
//!
//! Top-down, each node passes on the columns that are needed above it ([`Needed`]), and no others. A stored
//! column that only programs and sums read has the narrowest physical type that holds its range; it is
//! widened where it is kept, compared as a key, or leaves the engine. The slots of join filters also go
//! top-down ([`pushed`]). Build sides are planned, and run, before their probe sides, so a slot is filled
//! when the filter is first tested.
//!

mod join;
mod sort;

use crate::context::QueryContext;
use crate::estimate::estimate_rows;
use crate::estimate::width::costs;
use crate::exec::aggregate::layout::takes_narrow;
use crate::exec::aggregate::{aggregate, distinct};
use crate::exec::align::Align;
use crate::exec::compaction::costs::ChunkCosts;
use crate::exec::compaction::{Compact, Factory, Standing, learns};
use crate::exec::filter::Filter;
use crate::exec::join::swap::Swap;
use crate::exec::key_filter::pushed;
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::limit::Limit;
use crate::exec::operator::{Blocking, OperatorFactory, Sink};
use crate::exec::pipeline::{Part, Pipeline};
use crate::exec::profile::Recorder;
use crate::exec::project::Project;
use crate::exec::repeats::DropRepeats;
use crate::exec::scan::TableScan;
use crate::exec::set_operation::{Copies, count_sides, of_side};
use crate::exec::unnest::Unnest;
use crate::exec::values::Chunks;
use crate::exec::window::layout::WindowLayout;
use crate::exec::window::window;
use crate::explain::node_title;
use crate::facts::{relation_columns, values_column};
use crate::plan::{self, Columns, Node, SetKind};
use crate::relation::ScanRequest;
use crate::settings::Settings;
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{ColumnId, Error, PhysicalType, Result};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What is done with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Programs and sums read it, in any physical type.
    Computed,
    /// It is passed on unchanged, in its default physical type, or that of wide decimals.
    Kept,
}

/// Columns that are read above, and how they are used.
#[derive(Debug, Clone, Default)]
struct Needed(BTreeMap<ColumnId, Use>);

impl Needed {
    /// These columns, unchanged.
    fn kept(columns: impl IntoIterator<Item = ColumnId>) -> Needed {
        Needed(columns.into_iter().map(|id| (id, Use::Kept)).collect())
    }

    fn contains(&self, id: &ColumnId) -> bool {
        self.0.contains_key(id)
    }

    /// True if it is read, but nowhere needed unchanged.
    fn is_only_computed(&self, id: ColumnId) -> bool {
        self.0.get(&id) == Some(&Use::Computed)
    }

    fn ids(&self) -> impl Iterator<Item = ColumnId> {
        self.0.keys().copied()
    }

    fn add(&mut self, id: ColumnId, own: Use) {
        let known = self.0.entry(id).or_insert(own);
        *known = own.max(*known);
    }

    /// Adds the columns that `expr` reads; `own` is the use of its value.
    fn add_expr(&mut self, expr: &Expr, own: Use) {
        if let Expr::Column { id, .. } = expr {
            return self.add(*id, own);
        }
        let mut columns = Vec::new();
        expr.collect_columns(&mut columns);
        columns.into_iter().for_each(|id| self.add(id, Use::Computed));
    }
}

/// Whose memory it is that the parts of a node reserve, as errors say it.
fn owner(node: &Node) -> &'static str {
    match node {
        Node::Scan(_) => "a scan",
        Node::Values(_) => "VALUES",
        Node::Filter(_) | Node::Project(_) | Node::Limit(_) => "expressions",
        Node::Unnest(_) => "unnest",
        Node::Join(_) | Node::Dependent(_) => "a join",
        Node::Aggregate(_) => "an aggregation",
        Node::Distinct(_) => "DISTINCT",
        Node::Window(_) => "a window",
        Node::Sort(_) => "a sort",
        Node::SetOperation(_) => "a set operation",
        Node::Recursion(_) => "a recursion",
    }
}

/// The assumed number of rows of a relation without statistics.
const UNKNOWN_ROWS: f64 = 1e6;

/// Rows on their way to a sink.
#[derive(Clone)]
struct Stream {
    parts: Vec<Part>,
    columns: Vec<ColumnMeta>,
    recorder: Arc<Recorder>,
}

/// Cuts a plan into pipelines.
pub(crate) struct Builder<'a> {
    context: &'a QueryContext,
    columns: &'a Columns,
    /// All joins, in the order in which `EXPLAIN` prints them.
    joins: Vec<&'a plan::Join>,
    /// Probes and aggregations that the rows of the current node pass before they are kept.
    behind: usize,
    pipelines: Vec<Pipeline<'a>>,
}

impl<'a> Builder<'a> {
    /// The pipelines of `plan`, the last of which end in `sink`, and the recorder of its root.
    ///
    /// # Errors
    /// Those of compiling expressions and of opening relations.
    pub(crate) fn build(
        plan: &'a plan::Plan,
        context: &'a QueryContext,
        sink: Arc<dyn Sink + 'a>,
    ) -> Result<(Vec<Pipeline<'a>>, Arc<Recorder>)> {
        let mut joins = Vec::new();
        collect_joins(&plan.root, &mut joins);
        let mut builder =
            Builder { context, columns: &plan.columns, joins, behind: 0, pipelines: Vec::new() };
        let needed = Needed::kept(plan.output.iter().map(|output| output.column));
        let stream = builder.node(&plan.root, &needed, &[])?;
        let root = stream.recorder.clone();
        // Results have the default physical types.
        let wanted: Vec<ColumnMeta> = plan
            .output
            .iter()
            .map(|output| ColumnMeta::new(output.column, plan.columns.ty(output.column)))
            .collect();
        let result = Recorder::new("Result".into());
        let stream = align(stream, &wanted, &result)?;
        builder.end(stream, sink, &result);
        Ok((builder.pipelines, root))
    }

    /// The rows of `node` that pass the join filters from above.
    fn node(&mut self, node: &Node, needed: &Needed, filters: &[Pushed]) -> Result<Stream> {
        let (below, staying) = pushed::divide(node, filters);
        let stream = self.unfiltered(node, needed, &below)?;
        let recorder = stream.recorder.clone();
        Ok(match pushed::early(&staying, &stream.columns, self.columns, &recorder, self.context)? {
            None => stream,
            Some(operator) => stream.extend(operator, &recorder).sparse(),
        })
    }

    /// The rows of `node`, into which these join filters are pushed.
    fn unfiltered(&mut self, node: &Node, needed: &Needed, filters: &[Pushed]) -> Result<Stream> {
        match node {
            Node::Dependent(_) => Err(Error::internal("a dependent join is run")),
            Node::Recursion(_) => Err(Error::internal("a recursion is run that reads what is around it")),
            Node::Scan(scan) => self.scan(node, scan, needed, filters),
            Node::Values(values) => self.values(node, values, needed),
            Node::Filter(filter) => {
                let needed = with(needed, &filter.predicates);
                let input = self.node(&filter.input, &needed, filters)?;
                let operator = Filter::new(&filter.predicates, &input.columns)?;
                Ok(input.then(Arc::new(operator), &self.recorder(node)).sparse())
            }
            Node::Project(project) => self.project(node, project, needed, filters),
            Node::Unnest(unnest) => self.unnest(node, unnest, needed),
            Node::Join(join) => self.join(node, join, needed, filters),
            Node::Aggregate(aggregate) => self.aggregate(node, aggregate, needed, filters),
            Node::Distinct(distinct) if distinct.is_partial => {
                self.drop_repeats(node, distinct, needed, filters)
            }
            Node::Distinct(distinct) => self.distinct(node, distinct, filters),
            Node::Window(window) => self.window(node, window, needed, filters),
            Node::Sort(sort) => self.sort(node, sort, needed, filters),
            Node::Limit(limit) => self.limit(node, limit, needed),
            Node::SetOperation(set) => self.set_operation(node, set, needed, filters),
        }
    }

    fn recorder(&self, node: &Node) -> Arc<Recorder> {
        match self.context.settings.profile {
            true => {
                let expected = estimate_rows(node, self.columns);
                Recorder::measuring(node_title(node, self.columns), owner(node), expected, self.context)
            }
            false => Recorder::owning(owner(node), self.context),
        }
    }

    /// The number of a join among those of the plan, as `EXPLAIN` prints them, from 1.
    fn number_of(&self, join: &plan::Join) -> Result<usize> {
        let place = self.joins.iter().position(|other| std::ptr::eq(*other, join));
        place.map(|place| place + 1).ok_or_else(|| Error::internal("a join is not in its plan"))
    }

    /// Settings and memory of the build side of join `number`.
    fn build_context(&self, number: usize, recorder: &Recorder) -> QueryContext {
        let mut context = recorder.context(self.context);
        let own = context.settings.join_tables.iter().find(|(own, _)| *own == number);
        if let Some(&(_, join_table)) = own {
            context.settings = Arc::new(Settings { join_table, ..(*context.settings).clone() });
        }
        context
    }

    /// Ends a stream in `sink`: one pipeline per part.
    fn end(&mut self, stream: Stream, sink: Arc<dyn Sink + 'a>, recorder: &Arc<Recorder>) {
        let last = stream.parts.len() - 1;
        for (number, part) in stream.parts.into_iter().enumerate() {
            self.pipelines.push(Pipeline {
                part,
                sink: sink.clone(),
                recorder: recorder.clone(),
                completes_sink: number == last,
                part_number: number as u64,
            });
        }
    }

    /// Ends `input` in a blocking operator and starts the stream of its output.
    fn block(&mut self, node: &Node, input: Stream, blocking: Blocking, recorder: Arc<Recorder>) -> Stream {
        recorder.add_child(&input.recorder);
        self.block_same(node, input, blocking, recorder)
    }

    /// Like [`Builder::block`], for an input that belongs to the node itself.
    fn block_same(
        &mut self,
        node: &Node,
        input: Stream,
        blocking: Blocking,
        recorder: Arc<Recorder>,
    ) -> Stream {
        // An estimate that is far too low must not leave a large output to a single worker; requesting more
        // workers costs little.
        let fed: f64 = input.parts.iter().map(|part| part.rows).sum();
        let rows = estimate_rows(node, self.columns).max(fed / 16.0);
        self.end(input, blocking.sink, &recorder);
        let part = Part::new(blocking.source, &recorder, rows);
        let ordered = matches!(node, Node::Sort(_));
        Stream { parts: vec![Part { ordered, ..part }], columns: blocking.output, recorder }
    }

    /// The rows of `node`, which pass `operators` probes and aggregations before they are kept.
    fn input(
        &mut self,
        node: &Node,
        operators: usize,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let behind = std::mem::replace(&mut self.behind, operators);
        let stream = self.node(node, needed, filters);
        self.behind = behind;
        stream
    }

    /// The rows of `node` with small chunks copied together, where they may be, on the way to `operators`
    /// probes and aggregations.
    fn compacted(
        &self,
        node: &Node,
        mut stream: Stream,
        operators: usize,
        recorder: &Arc<Recorder>,
    ) -> Stream {
        let settings = &self.context.settings;
        let types: Vec<_> = stream.columns.iter().map(|meta| meta.physical).collect();
        let bytes = types.iter().map(|ty| ty.width()).sum();
        for (number, part) in stream.parts.iter_mut().enumerate() {
            if !part.sparse || part.ordered {
                continue;
            }
            let chunks = part.rows / settings.chunk_rows as f64;
            // PERF: a hash writes the titles of all nodes below.
            let is_learned = learns(settings.compaction, settings.chunk_rows, chunks);
            let standing = Standing {
                operators,
                chunks,
                costs: ChunkCosts::of_rows(&costs(node), types.len(), bytes),
                learned: self.context.learned.clone(),
                plan: if is_learned { self.hash_of(node, number) } else { 0 },
            };
            let compact =
                Compact::new(settings.compaction, types.clone(), settings.chunk_rows, &standing, recorder);
            if let Some(compact) = compact {
                let operator: Arc<dyn OperatorFactory> = Arc::new(Factory(Arc::new(compact)));
                part.operators.push((operator, recorder.clone()));
                part.sparse = false;
            }
        }
        stream
    }

    /// A hash of the plan of a node and the number of a part of its stream: the same for the next execution
    /// of the same plan.
    fn hash_of(&self, node: &Node, part: usize) -> u64 {
        fn add(node: &Node, columns: &Columns, hasher: &mut DefaultHasher) {
            node_title(node, columns).hash(hasher);
            node.children().into_iter().for_each(|child| add(child, columns, hasher));
        }
        let mut hasher = DefaultHasher::new();
        part.hash(&mut hasher);
        add(node, self.columns, &mut hasher);
        hasher.finish()
    }

    // ---- leaves -------------------------------------------------------------------------------------------

    fn scan(
        &mut self,
        node: &Node,
        scan: &plan::Scan,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let wanted = needed;
        let needed = with(needed, &scan.filters);
        let columns: Vec<_> = scan.columns.iter().copied().filter(|(id, _)| needed.contains(id)).collect();
        let recorder = self.recorder(node);
        let mut metas = relation_columns(&*scan.relation, &columns, self.columns);
        if let Some(snapshot) = scan.relation.table() {
            let narrow =
                |meta: &&mut ColumnMeta| self.context.settings.optimize && needed.is_only_computed(meta.id);
            for meta in metas.iter_mut().filter(narrow) {
                meta.physical = meta.range.map_or(meta.physical, |range| meta.ty.narrowest(range));
            }
            let filters = pushed::place(filters, &metas, self.columns, &recorder)?;
            let sparse = !scan.filters.is_empty() || !filters.is_empty();
            let source = TableScan::new(
                snapshot.clone(),
                scan,
                &columns,
                &columns.iter().map(|(id, _)| wanted.contains(id)).collect::<Vec<_>>(),
                &metas,
                filters,
                &recorder,
                self.context,
            )?;
            let rows = source.rows() as f64;
            let part = Part::new(Arc::new(source), &recorder, rows);
            return Ok(Stream { parts: vec![Part { sparse, ..part }], columns: metas, recorder });
        }
        self.other_scan(scan, (columns, metas), filters, &recorder)
    }

    /// The rows of a relation that is no stored table, in these columns.
    fn other_scan(
        &self,
        scan: &plan::Scan,
        (columns, metas): (Vec<(ColumnId, usize)>, Vec<ColumnMeta>),
        filters: &[Pushed],
        recorder: &Arc<Recorder>,
    ) -> Result<Stream> {
        let thresholds = filters.iter().filter_map(Pushed::bound).collect();
        let request = ScanRequest { columns, filters: scan.filters.clone(), thresholds };
        let source = scan.relation.scan(&request, self.context)?;
        let expected = || scan.relation.statistics().rows.map_or(UNKNOWN_ROWS, |rows| rows as f64);
        let rows = source.rows().map_or_else(expected, |rows| rows as f64);
        let stream = Stream {
            parts: vec![Part::new(source, recorder, rows)],
            columns: metas,
            recorder: recorder.clone(),
        };
        if scan.filters.is_empty() {
            return Ok(stream);
        }
        let operator = Filter::new(&scan.filters, &stream.columns)?;
        Ok(stream.extend(Arc::new(operator), recorder).sparse())
    }

    fn values(&mut self, node: &Node, values: &plan::Values, needed: &Needed) -> Result<Stream> {
        let places: Vec<usize> =
            (0..values.columns.len()).filter(|&place| needed.contains(&values.columns[place])).collect();
        let columns: Vec<ColumnMeta> = places
            .iter()
            .map(|&place| {
                values_column(values.columns[place], self.columns, values.rows.iter().map(|row| &row[place]))
            })
            .collect();
        let source = Chunks::new(&columns, &places, &values.rows, self.context.settings.chunk_rows)?;
        let recorder = self.recorder(node);
        let part = Part::new(Arc::new(source), &recorder, values.rows.len() as f64);
        Ok(Stream { parts: vec![part], columns, recorder })
    }

    // ---- one input ----------------------------------------------------------------------------------------

    fn project(
        &mut self,
        node: &Node,
        project: &plan::Project,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let wanted: Vec<_> = project.exprs.iter().filter(|(id, _)| needed.contains(id)).cloned().collect();
        let mut below = needed.clone();
        wanted.iter().for_each(|(id, expr)| below.add_expr(expr, needed.0[id]));
        let input = self.node(&project.input, &below, filters)?;
        if wanted.is_empty() {
            return Ok(input);
        }
        let passed = input.columns.iter().filter(|meta| needed.contains(&meta.id));
        let mut exprs: Vec<_> = passed.map(|meta| (meta.id, Expr::column(meta.id, meta.ty))).collect();
        exprs.extend(wanted);
        let operator = Project::new(&exprs, &input.columns, &|id| needed.is_only_computed(id))?;
        let columns = operator.output().to_vec();
        Ok(Stream { columns, ..input.then(Arc::new(operator), &self.recorder(node)) })
    }

    fn unnest(&mut self, node: &Node, unnest: &plan::Unnest, needed: &Needed) -> Result<Stream> {
        let below = with(needed, unnest.lists.iter().map(|(_, list)| list));
        let input = self.node(&unnest.input, &below, &[])?;
        let operator = Unnest::new(&unnest.lists, &input.columns, self.context.settings.chunk_rows)?;
        let columns = operator.output().to_vec();
        Ok(Stream { columns, ..input.then(Arc::new(operator), &self.recorder(node)) })
    }

    fn aggregate(
        &mut self,
        node: &Node,
        plan: &plan::Aggregate,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let mut calls: Vec<_> =
            plan.aggregates.iter().filter(|(id, _)| needed.contains(id)).cloned().collect();
        if calls.is_empty() && plan.groups.is_empty() {
            // The single output row needs something that produces it.
            calls.extend(plan.aggregates.first().cloned());
        }
        let mut below = with(&Needed::default(), plan.groups.iter().map(|(_, expr)| expr));
        for (_, call) in &calls {
            let order = call.order_by.iter().map(|key| &key.expr);
            below = with(&below, order.chain(&call.filter));
            let own = if takes_narrow(call) { Use::Computed } else { Use::Kept };
            call.args.iter().for_each(|arg| below.add_expr(arg, own));
        }
        let input = self.input(&plan.input, 1, &below, filters)?;
        let groups = estimate_rows(node, self.columns);
        let recorder = self.recorder(node);
        let context = recorder.context(self.context);
        let blocking = aggregate(&input.columns, &plan.groups, &calls, groups, &context, &recorder)?;
        let folds = self.context.settings.optimize && blocking.sink.takes_stored();
        let input = if folds { input.leaving_stored() } else { input };
        let input = self.compacted(&plan.input, input, 1, &recorder);
        Ok(self.block(node, input, blocking, recorder))
    }

    fn distinct(&mut self, node: &Node, plan: &plan::Distinct, filters: &[Pushed]) -> Result<Stream> {
        if plan.keys.is_empty() {
            // Rows without columns are all equal: the first, if any, stands for them.
            return self.first_rows(node, &plan.input, 0, Some(1), &Needed::default());
        }
        let needed = Needed::kept(plan.keys.iter().copied());
        let input = self.input(&plan.input, 0, &needed, filters)?;
        let groups = estimate_rows(node, self.columns);
        let recorder = self.recorder(node);
        let blocking =
            distinct(&input.columns, &plan.keys, groups, &recorder.context(self.context), &recorder)?;
        Ok(self.block(node, input, blocking, recorder))
    }

    fn drop_repeats(
        &mut self,
        node: &Node,
        plan: &plan::Distinct,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let mut needed = needed.clone();
        plan.keys.iter().for_each(|id| needed.add(*id, Use::Computed));
        let input = self.node(&plan.input, &needed, filters)?;
        let recorder = self.recorder(node);
        let columns: Vec<usize> =
            plan.keys.iter().map(|id| find(&input.columns, *id)).collect::<Result<_>>()?;
        let names: Vec<String> = plan.keys.iter().map(|id| self.columns.get(*id).name.to_string()).collect();
        let rate = recorder.pass_rate("new rows", names.join(", "));
        let may_rest = self.context.settings.adaptive;
        Ok(match DropRepeats::new(columns, &input.columns, may_rest, rate, &self.context.memory) {
            None => input,
            Some(operator) => input.then(Arc::new(operator), &recorder).sparse(),
        })
    }

    fn window(
        &mut self,
        node: &Node,
        plan: &plan::Window,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let calls: Vec<_> = plan.calls.iter().filter(|(id, _)| needed.contains(id)).cloned().collect();
        if calls.is_empty() && plan.top.is_none() {
            return self.node(&plan.input, needed, filters);
        }
        let below = with(needed, plan.exprs());
        let input = self.input(&plan.input, 0, &below, filters)?;
        let (layout, project) = WindowLayout::new(&input.columns, |id| needed.contains(&id), plan, &calls)?;
        let recorder = self.recorder(node);
        recorder.add_child(&input.recorder);
        let columns = project.output().to_vec();
        let kept = Stream { columns, ..input.extend(Arc::new(project), &recorder) };
        let kept = align(kept, &layout.stored, &recorder)?;
        let blocking = window(layout, &recorder.context(self.context), &recorder)?;
        Ok(self.block_same(node, kept, blocking, recorder))
    }

    fn limit(&mut self, node: &Node, plan: &plan::Limit, needed: &Needed) -> Result<Stream> {
        self.first_rows(node, &plan.input, plan.offset, plan.count, needed)
    }

    fn first_rows(
        &mut self,
        node: &Node,
        input: &Node,
        offset: usize,
        count: Option<usize>,
        needed: &Needed,
    ) -> Result<Stream> {
        let mut input = self.node(input, needed, &[])?;
        // A single worker takes the morsels in source order, which alone decides which rows are first.
        for part in &mut input.parts {
            part.ordered = true;
            part.source.stops_early();
            part.operators.retain(|(operator, _)| !operator.is_for_order());
        }
        let operator = Limit::new(offset, count);
        Ok(input.then(Arc::new(operator), &self.recorder(node)))
    }

    // ---- several inputs -----------------------------------------------------------------------------------

    fn set_operation(
        &mut self,
        node: &Node,
        set: &plan::SetOperation,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let recorder = self.recorder(node);
        let all_rows = set.kind == SetKind::Union && set.all;
        // Whether rows are equal depends on all columns.
        let places: Vec<usize> = (0..set.columns.len())
            .filter(|&place| !all_rows || needed.contains(&set.columns[place]))
            .collect();
        let mut inputs = Vec::new();
        for (input, columns) in &set.inputs {
            let below = Needed::kept(places.iter().map(|&place| columns[place]));
            let filters: Vec<Pushed> = filters.iter().filter_map(|f| f.in_branch(set, columns)).collect();
            let stream = self.input(input, 0, &below, &filters)?;
            recorder.add_child(&stream.recorder);
            let find = |&place: &usize| find(&stream.columns, columns[place]);
            let positions = places.iter().map(find).collect::<Result<Vec<_>>>()?;
            inputs.push((stream, positions));
        }
        let merged = |(i, &place): (usize, &usize)| {
            let metas: Vec<&ColumnMeta> =
                inputs.iter().map(|(s, positions)| &s.columns[positions[i]]).collect();
            merge_columns(set.columns[place], &metas)
        };
        let columns: Vec<ColumnMeta> = places.iter().enumerate().map(merged).collect();
        let mut streams = Vec::new();
        for (stream, positions) in inputs {
            let operator = Align::new(&stream.columns, &positions, &columns)?;
            streams.push(Stream { columns: columns.clone(), ..stream.extend(Arc::new(operator), &recorder) });
        }
        if set.kind == SetKind::Union {
            let parts = streams.into_iter().flat_map(|stream| stream.parts).collect();
            let union = Stream { parts, columns, recorder: recorder.clone() };
            if set.all {
                return Ok(union);
            }
            let groups = estimate_rows(node, self.columns);
            let context = recorder.context(self.context);
            let blocking = distinct(&union.columns, &set.columns, groups, &context, &recorder)?;
            return Ok(self.block_same(node, union, blocking, recorder));
        }
        let [left, right] = <[Stream; 2]>::try_from(streams)
            .map_err(|_| Error::internal("INTERSECT and EXCEPT have two inputs"))?;
        let mut parts = Vec::new();
        for (stream, is_left) in [(left, true), (right, false)] {
            parts.extend(stream.extend(Arc::new(of_side(&columns, is_left)?), &recorder).parts);
        }
        let rows = set.inputs.iter().map(|(input, _)| estimate_rows(input, self.columns)).sum();
        let context = recorder.context(self.context);
        let blocking = count_sides(&columns, rows, &context, &recorder)?;
        let count = columns.len();
        let both = Stream { parts, columns, recorder: recorder.clone() };
        let mut counted = self.block_same(node, both, blocking, recorder.clone());
        counted.columns.truncate(count);
        Ok(counted.extend(Arc::new(Copies::new(set, &context)), &recorder).sparse())
    }
}

/// Adds the joins of `node`, each before those below it, and those of the left input before those of the
/// right.
fn collect_joins<'p>(node: &'p Node, joins: &mut Vec<&'p plan::Join>) {
    if let Node::Join(join) = node {
        joins.push(join);
    }
    node.children().into_iter().for_each(|child| collect_joins(child, joins));
}

impl Stream {
    /// The stream after one more operator, which reports to `recorder`; the stream's recorder becomes a child
    /// of `recorder`.
    fn then(self, operator: Arc<dyn OperatorFactory>, recorder: &Arc<Recorder>) -> Stream {
        if !recorder.has_children() {
            recorder.add_child(&self.recorder);
        }
        Stream { recorder: recorder.clone(), ..self.extend(operator, recorder) }
    }

    /// The stream for a consumer that takes stored rows.
    fn leaving_stored(mut self) -> Stream {
        for part in self.parts.iter_mut().filter(|part| part.operators.is_empty()) {
            part.source = part.source.leaving_stored().unwrap_or_else(|| part.source.clone());
        }
        self
    }

    /// The stream, which runs only if the sides of that join are swapped, or only if they are not.
    fn only_if(mut self, swap: &Arc<Swap>, is_swapped: bool) -> Stream {
        self.parts.iter_mut().for_each(|part| part.only_if.push((swap.switch().clone(), is_swapped)));
        self
    }

    /// The stream after an operator that dropped an unknown share of its rows.
    fn sparse(mut self) -> Stream {
        self.parts.iter_mut().for_each(|part| part.sparse = true);
        self
    }

    /// The stream after one more operator of a node whose inputs are known.
    fn extend(mut self, operator: Arc<dyn OperatorFactory>, recorder: &Arc<Recorder>) -> Stream {
        for part in &mut self.parts {
            part.operators.push((operator.clone(), recorder.clone()));
        }
        self
    }
}

/// The stream with exactly the `wanted` columns, in their order and physical types.
fn align(stream: Stream, wanted: &[ColumnMeta], recorder: &Arc<Recorder>) -> Result<Stream> {
    let positions = wanted.iter().map(|meta| find(&stream.columns, meta.id)).collect::<Result<Vec<_>>>()?;
    let in_place =
        positions.len() == stream.columns.len() && positions.iter().enumerate().all(|(i, &p)| i == p);
    let as_is = positions.iter().zip(wanted).all(|(&p, meta)| stream.columns[p].physical == meta.physical);
    if in_place && as_is {
        return Ok(stream);
    }
    let operator = Align::new(&stream.columns, &positions, wanted)?;
    let columns = positions.iter().zip(wanted);
    let columns = columns
        .map(|(&p, meta)| ColumnMeta { physical: meta.physical, ..stream.columns[p].clone() })
        .collect();
    Ok(Stream { columns, ..stream.extend(Arc::new(operator), recorder) })
}

fn find(metas: &[ColumnMeta], id: ColumnId) -> Result<usize> {
    let place = metas.iter().position(|meta| meta.id == id);
    place.ok_or_else(|| Error::internal(format!("column {id} is read and nothing below gives it")))
}

/// `needed` plus the columns that `exprs` read; their values are kept.
fn with<'e>(needed: &Needed, exprs: impl IntoIterator<Item = &'e Expr>) -> Needed {
    let mut all = needed.clone();
    exprs.into_iter().for_each(|expr| all.add_expr(expr, Use::Kept));
    all
}

/// What is known of a column that several columns flow into.
fn merge_columns(id: ColumnId, metas: &[&ColumnMeta]) -> ColumnMeta {
    let first = metas[0];
    let range = metas.iter().map(|meta| meta.range).reduce(|a, b| match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        _ => None,
    });
    let same = metas.iter().all(|meta| meta.physical == first.physical);
    ColumnMeta {
        id,
        ty: first.ty,
        physical: if same { first.physical } else { PhysicalType::I128 },
        nullable: metas.iter().any(|meta| meta.nullable),
        range: range.flatten(),
    }
}
