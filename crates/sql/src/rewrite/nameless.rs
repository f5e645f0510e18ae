//! Derived tables without a name: `FROM t, (SELECT 1 AS a)`.
//!
//! Columns need the name of their table to be distinguished: the binder considers `t.a` ambiguous with a
//! column `a` of an unnamed table, and `USING` has to qualify each of two columns. So each such table gets a
//! name that no user can write.

use crate::hidden::MARK;
use entasis_syntax::walk::WalkMut;
use sqlparser::ast::{Ident, Statement, TableAlias, TableFactor, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Names the derived tables of a statement that have no name.
pub(super) fn apply(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Nameless { found: 0 });
}

struct Nameless {
    /// Number of tables without a name so far.
    found: usize,
}

impl VisitorMut for Nameless {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Derived { alias: alias @ None, .. } = factor {
            self.found += 1;
            let name = Ident::with_quote('"', format!("{MARK}derived{}", self.found));
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}
