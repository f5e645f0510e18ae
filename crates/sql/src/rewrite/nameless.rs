//! Derived tables without a name: `FROM t, (SELECT 1 AS a)`.
//!
//! Columns need the name of their table to be told apart: the binder takes `t.a` for ambiguous beside a
//! column `a` of no table, and `USING` has to write out which of two it means. So each such table is given a
//! name that no user can write.

use crate::hidden::MARK;
use crate::syntax::walk::WalkMut;
use datafusion_sql::sqlparser::ast::{Ident, Statement, TableAlias, TableFactor, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Names the derived tables of a statement that have no name.
pub(super) fn apply(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Nameless { found: 0 });
}

struct Nameless {
    /// Tables without a name so far.
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
