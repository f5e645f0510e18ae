//! `SELECT id, sum(x) OVER () … QUALIFY id <= 1`: a condition on rows that names no window function.
//!
//! The binder wants one in the clause itself. So one of the list is added, in a condition that is always
//! true and that lowering leaves out:
//!
//! ```text
//! QUALIFY id <= 1    ⇒    QUALIFY (id <= 1) AND (sum(x) OVER () IS NULL OR TRUE)
//! ```

use entasis_syntax::build::{and, is_null, or};
use entasis_syntax::walk::Walk;
use sqlparser::ast::{Expr, Query, SetExpr, Value, Visitor};
use std::ops::ControlFlow;

/// Adds a window function to a `QUALIFY` without one.
pub(super) fn with_a_window(query: &mut Query) {
    let SetExpr::Select(select) = &mut *query.body else { return };
    let Some(condition) = &select.qualify else { return };
    if window_in(condition).is_some() {
        return;
    }
    if let Some(window) = window_in(&select.projection) {
        let always = or(is_null(window), Expr::Value(Value::Boolean(true).into()));
        let own = select.qualify.take().map(|own| Expr::Nested(Box::new(own)));
        select.qualify = and(own.into_iter().chain([always]));
    }
}

/// The first call with an `OVER` in a part of a query.
fn window_in(part: &impl Walk) -> Option<Expr> {
    struct Look(usize);
    impl Visitor for Look {
        type Break = Expr;
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Expr> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Expr> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Expr> {
            match expr {
                Expr::Function(function) if self.0 == 0 && function.over.is_some() => {
                    ControlFlow::Break(expr.clone())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match part.walk(&mut Look(0)) {
        ControlFlow::Break(window) => Some(window),
        ControlFlow::Continue(()) => None,
    }
}
