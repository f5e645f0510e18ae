//! Calls that give something else each time: `random()`, `nextval('s')`.
//!
//! The binder takes equal expressions for one. Of scalar expressions that is undone where they are lowered,
//! one by one; aggregates it computes once for all places in which they stand:
//!
//! ```text
//! SELECT max(random()), max(random()) …    ⇒    SELECT max(random()), max("…exact"(random())) …
//! ```

use super::order_by::is_aggregate;
use crate::functions::Library;
use crate::hidden::EXACT;
use datafusion_expr::Volatility;
use entasis_syntax::build::call;
use entasis_syntax::sequence_call;
use entasis_syntax::walk::{Walk, WalkMut};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, Value, Visitor, VisitorMut,
};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// True if there is a call of a volatile function in a part of a statement.
pub(super) fn calls_volatile(part: &impl Walk) -> bool {
    struct Look;
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if is_volatile(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    part.walk(&mut Look).is_break()
}

/// True if an expression itself is a call of a volatile function.
pub(super) fn is_volatile(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let name = function.name.to_string().trim_matches('"').to_ascii_lowercase();
    let scalar = Library::get().scalar(&name);
    scalar.is_some_and(|function| function.signature().volatility == Volatility::Volatile)
        || sequence_call::Kind::of(&name).is_some()
        || crate::functions::sequence::call_in(&name).is_some()
}

/// Makes aggregates of volatile expressions in the list of a query differ from each other.
pub(super) fn tell_aggregates_apart(select: &mut Select) {
    let mut apart = Apart { seen: HashMap::new(), depth: 0 };
    let _ = select.projection.walk_mut(&mut apart);
}

struct Apart {
    /// How often each aggregate has been met.
    seen: HashMap<String, usize>,
    /// Queries within the list have aggregates of their own.
    depth: usize,
}

impl VisitorMut for Apart {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if self.depth > 0 || !is_aggregate(expr) || !calls_volatile(expr) {
            return ControlFlow::Continue(());
        }
        let times = self.seen.entry(expr.to_string()).or_default();
        let now = std::mem::replace(times, *times + 1);
        if let Expr::Function(function) = expr
            && let FunctionArguments::List(list) = &mut function.args
            && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))) = list.args.first_mut()
        {
            for _ in 0..now {
                *arg = call(EXACT, vec![std::mem::replace(arg, Expr::Value(Value::Null.into()))]);
            }
        }
        ControlFlow::Continue(())
    }
}
