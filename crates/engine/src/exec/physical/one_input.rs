//! Physical planning of nodes with one input.

use super::builder::Builder;
use super::needed::{Needed, Use, with};
use super::stream::{Stream, align, find};
use crate::estimate::estimate_rows;
use crate::exec::aggregate::layout::takes_narrow;
use crate::exec::aggregate::{aggregate, distinct};
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::limit::Limit;
use crate::exec::partial_distinct::DropRepeats;
use crate::exec::project::Project;
use crate::exec::unnest::Unnest;
use crate::exec::window::layout::WindowLayout;
use crate::exec::window::window;
use crate::plan::{self, Node};
use entasis_vector::Result;
use entasis_vector::expr::Expr;
use std::sync::Arc;

impl Builder<'_> {
    pub(super) fn project(
        &mut self,
        node: &Node,
        project: &plan::Project,
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
        let operator = Project::new(&exprs, &input.columns, &|id| needed.is_only_computed(id))?;
        let columns = operator.output().to_vec();
        Ok(Stream { columns, ..input.then(Arc::new(operator), &self.recorder(node)) })
    }

    pub(super) fn unnest(&mut self, node: &Node, unnest: &plan::Unnest, needed: &Needed) -> Result<Stream> {
        let below = with(needed, unnest.lists.iter().map(|(_, list)| list));
        let input = self.node(&unnest.input, &below, &[])?;
        let operator = Unnest::new(&unnest.lists, &input.columns, self.context.settings.chunk_rows)?;
        let columns = operator.output().to_vec();
        Ok(Stream { columns, ..input.then(Arc::new(operator), &self.recorder(node)) })
    }

    pub(super) fn aggregate(
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

    pub(super) fn distinct(
        &mut self,
        node: &Node,
        plan: &plan::Distinct,
        filters: &[Pushed],
    ) -> Result<Stream> {
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

    pub(super) fn drop_repeats(
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

    pub(super) fn window(
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

    pub(super) fn limit(&mut self, node: &Node, plan: &plan::Limit, needed: &Needed) -> Result<Stream> {
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
}
