//! The builder: it goes down the plan, and what it finds on its way up becomes pipelines. Kinds of nodes are
//! planned in files of their own.

use super::needed::{Needed, with};
use super::stream::{Stream, align};
use crate::context::QueryContext;
use crate::estimate::estimate_rows;
use crate::estimate::width::costs;
use crate::exec::compaction::costs::ChunkCosts;
use crate::exec::compaction::{Compact, Factory, Standing, learns};
use crate::exec::filter::Filter;
use crate::exec::key_filter::pushed;
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::operator::{Blocking, OperatorFactory, Sink};
use crate::exec::pipeline::{Part, Pipeline};
use crate::exec::profile::Recorder;
use crate::explain::node_title;
use crate::plan::{self, Columns, Node};
use crate::settings::Settings;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Error, Result};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Cuts a plan into pipelines.
pub(crate) struct Builder<'a> {
    pub(super) context: &'a QueryContext,
    pub(super) columns: &'a Columns,
    /// All joins, in the order in which `EXPLAIN` prints them.
    joins: Vec<&'a plan::Join>,
    /// Probes and aggregations that the rows of the current node pass before they are kept.
    pub(super) behind: usize,
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
    pub(super) fn node(&mut self, node: &Node, needed: &Needed, filters: &[Pushed]) -> Result<Stream> {
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

    pub(super) fn recorder(&self, node: &Node) -> Arc<Recorder> {
        match self.context.settings.profile {
            true => {
                let expected = estimate_rows(node, self.columns);
                Recorder::measuring(node_title(node, self.columns), owner(node), expected, self.context)
            }
            false => Recorder::owning(owner(node), self.context),
        }
    }

    /// The number of a join among those of the plan, as `EXPLAIN` prints them, from 1.
    pub(super) fn number_of(&self, join: &plan::Join) -> Result<usize> {
        let place = self.joins.iter().position(|other| std::ptr::eq(*other, join));
        place.map(|place| place + 1).ok_or_else(|| Error::internal("a join is not in its plan"))
    }

    /// Settings and memory of the build side of join `number`.
    pub(super) fn build_context(&self, number: usize, recorder: &Recorder) -> QueryContext {
        let mut context = recorder.context(self.context);
        let own = context.settings.join_tables.iter().find(|(own, _)| *own == number);
        if let Some(&(_, join_table)) = own {
            context.settings = Arc::new(Settings { join_table, ..(*context.settings).clone() });
        }
        context
    }

    /// Ends a stream in `sink`: one pipeline per part.
    pub(super) fn end(&mut self, stream: Stream, sink: Arc<dyn Sink + 'a>, recorder: &Arc<Recorder>) {
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
    pub(super) fn block(
        &mut self,
        node: &Node,
        input: Stream,
        blocking: Blocking,
        recorder: Arc<Recorder>,
    ) -> Stream {
        recorder.add_child(&input.recorder);
        self.block_same(node, input, blocking, recorder)
    }

    /// Like [`Builder::block`], for an input that belongs to the node itself.
    pub(super) fn block_same(
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
    pub(super) fn input(
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
    pub(super) fn compacted(
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

/// Adds the joins of `node`, each before those below it, and those of the left input before those of the
/// right.
fn collect_joins<'p>(node: &'p Node, joins: &mut Vec<&'p plan::Join>) {
    if let Node::Join(join) = node {
        joins.push(join);
    }
    node.children().into_iter().for_each(|child| collect_joins(child, joins));
}
