//! `FROM generate_series(1, 3) i`, `FROM unnest(list) u`: the alias of a function that gives one value for
//! each row names its column, too.
//!
//! The column keeps the function's name where the query calls it that (`FROM range(3) r WHERE r.range > 1`).

use super::unnests::UNNEST;
use entasis_syntax::walk::{Walk, WalkMut};
use sqlparser::ast::{
    Expr, ObjectName, Query, Statement, TableAliasColumnDef, TableFactor, TableFunctionArgs, Visitor,
    VisitorMut,
};
use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Functions of one column.
const SCALARS: [&str; 3] = ["generate_series", "range", UNNEST];

/// Names the columns of such functions in a statement.
pub(super) fn apply(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Namer { written: Vec::new() });
}

struct Namer {
    /// For each enclosing query, the names in it that may be those of columns.
    written: Vec<HashSet<String>>,
}

impl VisitorMut for Namer {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.written.push(names(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.written.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        let TableFactor::Table { name, alias: Some(alias), args: Some(args), .. } = factor else {
            return ControlFlow::Continue(());
        };
        let Some(columns) = columns_of(name, args) else { return ControlFlow::Continue(()) };
        let is_free = |name| self.written.last().is_some_and(|written| !written.contains(name));
        if let [name] = &columns[..]
            && is_free(name)
            && alias.columns.is_empty()
        {
            alias.columns.push(TableAliasColumnDef::from_name(alias.name.value.clone()));
        }
        ControlFlow::Continue(())
    }
}

/// The names of the columns of such a function, or of `unnest`, which has one for each list.
pub(super) fn columns_of(name: &ObjectName, args: &TableFunctionArgs) -> Option<Vec<String>> {
    let name = name.to_string().trim_matches('"').to_ascii_lowercase();
    let columns = if name == UNNEST { args.args.len() } else { 1 };
    SCALARS.contains(&name.as_str()).then(|| vec![name; columns])
}

/// The last parts of all names in the expressions of a query.
fn names(query: &Query) -> HashSet<String> {
    struct Look(HashSet<String>);
    impl Visitor for Look {
        type Break = Infallible;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
            let last = match expr {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            self.0.extend(last.map(|name| name.value.to_ascii_lowercase()));
            ControlFlow::Continue(())
        }
    }
    let mut look = Look(HashSet::new());
    let _ = query.walk(&mut look);
    look.0
}
