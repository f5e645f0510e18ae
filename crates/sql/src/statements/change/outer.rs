//! The expressions of a statement's clause, without those of its subqueries, whose names may be their own.

use entasis_syntax::walk::WalkMut;
use sqlparser::ast::{Expr, Query, VisitMut, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Calls `each` with every expression in `node` outside subqueries, an outer one before its parts.
pub(super) fn for_each_outer(node: &mut impl VisitMut, each: impl FnMut(&mut Expr)) {
    let _ = node.walk_mut(&mut Outer { queries: 0, each });
}

struct Outer<F> {
    /// Number of enclosing subqueries.
    queries: usize,
    each: F,
}

impl<F: FnMut(&mut Expr)> VisitorMut for Outer<F> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if self.queries == 0 {
            (self.each)(expr);
        }
        ControlFlow::Continue(())
    }
}
