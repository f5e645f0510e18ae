//! The planner: it goes down the logical plan, and what it finds on its way up becomes pipelines. Kinds of
//! nodes are planned in files of their own.

use super::needed::{Needed, with};
use super::physical_plan::{
    OperatorKind, PhysicalPlan, PlannedNode, PlannedOperator, PlannedPart, PlannedPipeline, PlannedSink,
    PlannedSource, SinkKind, SourceKind,
};
use super::planned_work::PlannedWork;
use super::stream::{Stream, find};
use crate::context::QueryContext;
use crate::estimate::estimate_rows;
use crate::exec::align::Align;
use crate::exec::filter::Filter;
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::key_filter::{PlannedTest, pushed};
use crate::plan::{self, Columns, Node};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Error, Result};

/// Makes physical plans.
pub(crate) struct Planner<'a, 'p> {
    pub(super) context: &'a QueryContext,
    pub(super) columns: &'p Columns,
    /// All joins, in the order in which `EXPLAIN` prints them.
    logical_joins: Vec<&'p plan::Join>,
    /// Probes and aggregations that the rows of the current node pass before they are kept.
    pub(super) behind: usize,
    /// What has been planned.
    pub(super) made: PhysicalPlan<'p>,
}

impl<'a, 'p> Planner<'a, 'p> {
    /// The physical plan of `plan`.
    ///
    /// # Errors
    /// Those of compiling expressions.
    pub(crate) fn plan(plan: &'p plan::Plan, context: &'a QueryContext) -> Result<PhysicalPlan<'p>> {
        let mut logical_joins = Vec::new();
        collect_joins(&plan.root, &mut logical_joins);
        let made = PhysicalPlan {
            columns: &plan.columns,
            nodes: Vec::new(),
            tests: Vec::new(),
            joins: Vec::new(),
            sources: Vec::new(),
            operators: Vec::new(),
            sinks: Vec::new(),
            pipelines: Vec::new(),
            root: 0,
        };
        let mut planner = Planner { context, columns: &plan.columns, logical_joins, behind: 0, made };
        let needed = Needed::kept(plan.output.iter().map(|output| output.column));
        let stream = planner.node(&plan.root, &needed, &[])?;
        planner.made.root = stream.node;
        // Results have the default physical types.
        let wanted: Vec<ColumnMeta> = plan
            .output
            .iter()
            .map(|output| ColumnMeta::new(output.column, plan.columns.ty(output.column)))
            .collect();
        let node = planner.add_node(PlannedWork::Result);
        let stream = planner.align(stream, &wanted, node)?;
        planner.end(stream, SinkKind::Result { columns: wanted }, node);
        Ok(planner.made)
    }

    /// The rows of `node` that pass the join filters from above.
    pub(super) fn node(&mut self, node: &'p Node, needed: &Needed, filters: &[Pushed]) -> Result<Stream> {
        let (below, staying) = pushed::divide(node, filters);
        let stream = self.unfiltered(node, needed, &below)?;
        let early = pushed::early(&staying, &stream.columns, &self.context.settings)?;
        if early.is_empty() {
            return Ok(stream);
        }
        let own = stream.node;
        Ok(self.extend(stream, OperatorKind::EarlyFilters(early), own).sparse())
    }

    /// The rows of `node`, into which these join filters are pushed.
    fn unfiltered(&mut self, node: &'p Node, needed: &Needed, filters: &[Pushed]) -> Result<Stream> {
        match node {
            Node::Dependent(_) => Err(Error::internal("a dependent join is run")),
            Node::Recursion(_) => Err(Error::internal("a recursion is run that reads what is around it")),
            Node::Scan(scan) => self.scan(node, scan, needed, filters),
            Node::Values(values) => self.values(node, values, needed),
            Node::Filter(filter) => {
                let needed = with(needed, &filter.predicates);
                let input = self.node(&filter.input, &needed, filters)?;
                let predicates = &filter.predicates;
                let filter = Filter::new(predicates, &input.columns)?;
                let own = self.add_node(PlannedWork::Node(node));
                Ok(self.then(input, OperatorKind::Filter { predicates, filter }, own).sparse())
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

    /// The number of a join among those of the plan, as `EXPLAIN` prints them, from 1.
    pub(super) fn number_of(&self, join: &plan::Join) -> Result<usize> {
        let place = self.logical_joins.iter().position(|other| std::ptr::eq(*other, join));
        place.map(|place| place + 1).ok_or_else(|| Error::internal("a join is not in its plan"))
    }

    /// Adds a node, which has no inputs so far.
    pub(super) fn add_node(&mut self, work: PlannedWork<'p>) -> usize {
        self.made.nodes.push(PlannedNode { work, children: Vec::new(), notes: Vec::new() });
        self.made.nodes.len() - 1
    }

    /// Adds an input of a node.
    pub(super) fn add_child(&mut self, node: usize, child: usize) {
        self.made.nodes[node].children.push(child);
    }

    /// Notes a decision and its reason, if anybody asks for it.
    pub(super) fn note(&mut self, node: usize, detail: impl FnOnce() -> String) {
        if self.context.settings.profile {
            self.made.nodes[node].notes.push(detail());
        }
    }

    /// Adds a test that is known only while the statement runs.
    pub(super) fn add_test(&mut self, test: PlannedTest) -> usize {
        self.made.tests.push(test);
        self.made.tests.len() - 1
    }

    /// Adds a source.
    pub(super) fn add_source(&mut self, kind: SourceKind<'p>, node: usize) -> usize {
        self.made.sources.push(PlannedSource { kind, node });
        self.made.sources.len() - 1
    }

    /// Adds an operator.
    fn add_operator(&mut self, kind: OperatorKind<'p>, node: usize) -> usize {
        self.made.operators.push(PlannedOperator { kind, node });
        self.made.operators.len() - 1
    }

    /// `stream` after one more operator, which is that of `node`; the stream's node becomes its input.
    pub(super) fn then(&mut self, stream: Stream, operator: OperatorKind<'p>, node: usize) -> Stream {
        if self.made.nodes[node].children.is_empty() {
            self.add_child(node, stream.node);
        }
        Stream { node, ..self.extend(stream, operator, node) }
    }

    /// `stream` after one more operator of a node whose inputs are known.
    pub(super) fn extend(&mut self, mut stream: Stream, operator: OperatorKind<'p>, node: usize) -> Stream {
        let number = self.add_operator(operator, node);
        stream.parts.iter_mut().for_each(|part| part.operators.push(number));
        stream
    }

    /// The stream with exactly the `wanted` columns, in their order and physical types.
    pub(super) fn align(&mut self, stream: Stream, wanted: &[ColumnMeta], node: usize) -> Result<Stream> {
        let positions =
            wanted.iter().map(|meta| find(&stream.columns, meta.id)).collect::<Result<Vec<_>>>()?;
        let in_place =
            positions.len() == stream.columns.len() && positions.iter().enumerate().all(|(i, &p)| i == p);
        let as_is =
            positions.iter().zip(wanted).all(|(&p, meta)| stream.columns[p].physical == meta.physical);
        if in_place && as_is {
            return Ok(stream);
        }
        let columns = positions.iter().zip(wanted);
        let columns: Vec<ColumnMeta> = columns
            .map(|(&p, meta)| ColumnMeta { physical: meta.physical, ..stream.columns[p].clone() })
            .collect();
        self.aligned(stream, &positions, columns, node)
    }

    /// The stream with the columns at `positions`, which become `columns`.
    pub(super) fn aligned(
        &mut self,
        stream: Stream,
        positions: &[usize],
        columns: Vec<ColumnMeta>,
        node: usize,
    ) -> Result<Stream> {
        let align = Align::new(&stream.columns, positions, &columns)?;
        let operator = OperatorKind::Align { align, output: columns.clone() };
        Ok(Stream { columns, ..self.extend(stream, operator, node) })
    }

    /// Ends a stream in a sink of `node`: one pipeline per part. Returns the sink's number.
    pub(super) fn end(&mut self, stream: Stream, kind: SinkKind<'p>, node: usize) -> usize {
        self.made.sinks.push(PlannedSink { kind, node });
        let sink = self.made.sinks.len() - 1;
        let last = stream.parts.len() - 1;
        for (number, part) in stream.parts.into_iter().enumerate() {
            self.made.pipelines.push(PlannedPipeline { part, sink, completes_sink: number == last, number });
        }
        sink
    }

    /// Ends `input` in a sink and starts the stream of what this gives, the columns `output` of `node`. `own`
    /// is its number.
    pub(super) fn block(
        &mut self,
        node: &'p Node,
        input: Stream,
        kind: SinkKind<'p>,
        output: Vec<ColumnMeta>,
        own: usize,
    ) -> Stream {
        let rows = estimate_rows(node, self.columns);
        let sink = self.end(input, kind, own);
        let source = self.add_source(SourceKind::Output { sink, rows }, own);
        let part = PlannedPart { ordered: matches!(node, Node::Sort(_)), ..PlannedPart::of(source) };
        Stream { parts: vec![part], columns: output, node: own }
    }

    /// The rows of `node`, which pass `operators` probes and aggregations before they are kept.
    pub(super) fn input(
        &mut self,
        node: &'p Node,
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
    /// probes and aggregations. The copying is the work of node `own`.
    pub(super) fn compacted(
        &mut self,
        node: &'p Node,
        mut stream: Stream,
        operators: usize,
        own: usize,
    ) -> Stream {
        if !self.context.settings.compaction.copies() {
            return stream;
        }
        for (part_number, part) in stream.parts.iter_mut().enumerate() {
            if !part.sparse || part.ordered {
                continue;
            }
            let types = stream.columns.iter().map(|meta| meta.physical).collect();
            let source = part.source;
            let compact = OperatorKind::Compact { below: node, part: part_number, source, types, operators };
            part.operators.push(self.add_operator(compact, own));
            part.sparse = false;
        }
        stream
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
