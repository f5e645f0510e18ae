//! Physical planning of nodes with one input.

use super::needed::{Needed, Use, with};
use super::physical_plan::{OperatorKind, SinkKind};
use super::planned_work::PlannedWork;
use super::planner::Planner;
use super::stream::{Stream, find};
use crate::estimate::estimate_rows;
use crate::exec::aggregate::distinct;
use crate::exec::aggregate::layout::{AggregateLayout, takes_narrow};
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::partial_distinct::DropRepeats;
use crate::exec::project::Project;
use crate::exec::unnest::Unnest;
use crate::exec::window::layout::WindowLayout;
use crate::plan::{self, Node};
use entasis_vector::Result;
use entasis_vector::expr::Expr;

impl<'p> Planner<'_, 'p> {
    pub(super) fn project(
        &mut self,
        node: &'p Node,
        project: &'p plan::Project,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let wanted: Vec<_> = project.exprs.iter().filter(|(id, _)| needed.contains(id)).cloned().collect();
        let mut below = needed.clone();
        wanted.iter().for_each(|(id, expr)| below.add_expr(expr, needed.of(id)));
        let input = self.node(&project.input, &below, filters)?;
        if wanted.is_empty() {
            return Ok(input);
        }
        let passed = input.columns.iter().filter(|meta| needed.contains(&meta.id));
        let mut exprs: Vec<_> = passed.map(|meta| (meta.id, Expr::column(meta.id, meta.ty))).collect();
        exprs.extend(wanted);
        let project = Project::new(&exprs, &input.columns, &|id| needed.is_only_computed(id))?;
        let columns = project.output().to_vec();
        let own = self.add_node(PlannedWork::Node(node));
        Ok(Stream { columns, ..self.then(input, OperatorKind::Project(project), own) })
    }

    pub(super) fn unnest(
        &mut self,
        node: &'p Node,
        unnest: &'p plan::Unnest,
        needed: &Needed,
    ) -> Result<Stream> {
        let below = with(needed, unnest.lists.iter().map(|(_, list)| list));
        let input = self.node(&unnest.input, &below, &[])?;
        let unnest = Unnest::new(&unnest.lists, &input.columns, self.context.settings.chunk_rows)?;
        let columns = unnest.output().to_vec();
        let own = self.add_node(PlannedWork::Node(node));
        Ok(Stream { columns, ..self.then(input, OperatorKind::Unnest(unnest), own) })
    }

    pub(super) fn aggregate(
        &mut self,
        node: &'p Node,
        plan: &'p plan::Aggregate,
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
        let own = self.add_node(PlannedWork::Node(node));
        let layout = Box::new(AggregateLayout::new(&input.columns, &plan.groups, &calls)?);
        let folds = self.context.settings.optimize && layout.stored.is_some();
        let input = if folds { input.leaving_stored() } else { input };
        let input = self.compacted(&plan.input, input, 1, own);
        self.add_child(own, input.node);
        Ok(self.grouped(node, input, layout, own))
    }

    /// The groups of `input`, the rows of node `own`.
    pub(super) fn grouped(
        &mut self,
        node: &'p Node,
        input: Stream,
        layout: Box<AggregateLayout>,
        own: usize,
    ) -> Stream {
        let (output, groups) = (layout.output.clone(), estimate_rows(node, self.columns));
        self.block(node, input, SinkKind::Aggregate { layout, groups }, output, own)
    }

    pub(super) fn distinct(
        &mut self,
        node: &'p Node,
        plan: &'p plan::Distinct,
        filters: &[Pushed],
    ) -> Result<Stream> {
        if plan.keys.is_empty() {
            // Rows without columns are all equal: the first, if any, stands for them.
            return self.first_rows(node, &plan.input, 0, Some(1), &Needed::default());
        }
        let needed = Needed::kept(plan.keys.iter().copied());
        let input = self.input(&plan.input, 0, &needed, filters)?;
        let layout = Box::new(distinct(&input.columns, &plan.keys)?);
        let own = self.add_node(PlannedWork::Node(node));
        self.add_child(own, input.node);
        Ok(self.grouped(node, input, layout, own))
    }

    pub(super) fn drop_repeats(
        &mut self,
        node: &'p Node,
        plan: &'p plan::Distinct,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let mut needed = needed.clone();
        plan.keys.iter().for_each(|id| needed.add(*id, Use::Computed));
        let input = self.node(&plan.input, &needed, filters)?;
        let columns: Vec<usize> =
            plan.keys.iter().map(|id| find(&input.columns, *id)).collect::<Result<_>>()?;
        if !DropRepeats::is_possible(&columns, &input.columns) {
            return Ok(input);
        }
        let own = self.add_node(PlannedWork::Node(node));
        Ok(self.then(input, OperatorKind::DropRepeats { columns, keys: &plan.keys }, own).sparse())
    }

    pub(super) fn window(
        &mut self,
        node: &'p Node,
        plan: &'p plan::Window,
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
        let own = self.add_node(PlannedWork::Node(node));
        self.add_child(own, input.node);
        let columns = project.output().to_vec();
        let kept = Stream { columns, ..self.extend(input, OperatorKind::Project(project), own) };
        let kept = self.align(kept, &layout.stored, own)?;
        let output = layout.output.clone();
        Ok(self.block(node, kept, SinkKind::Window(Box::new(layout)), output, own))
    }

    pub(super) fn limit(&mut self, node: &'p Node, plan: &'p plan::Limit, needed: &Needed) -> Result<Stream> {
        self.first_rows(node, &plan.input, plan.offset, plan.count, needed)
    }

    fn first_rows(
        &mut self,
        node: &'p Node,
        input: &'p Node,
        offset: usize,
        count: Option<usize>,
        needed: &Needed,
    ) -> Result<Stream> {
        let mut input = self.node(input, needed, &[])?;
        // A single worker takes the morsels in source order, which alone decides which rows are first.
        for part in &mut input.parts {
            part.ordered = true;
            part.stops_early = true;
            part.operators.retain(|&operator| !self.made.operators[operator].kind.is_for_order());
        }
        let own = self.add_node(PlannedWork::Node(node));
        Ok(self.then(input, OperatorKind::Limit { offset, count }, own))
    }
}
