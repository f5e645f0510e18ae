//! A `WITH` that hides another: the binder knows one query of each name, so the inner one gets a name of its own.
//!
//! `WITH t AS (…) SELECT … FROM (WITH t AS (…) SELECT t.i FROM t) q`: the inner `t` is renamed, and `FROM t`, where it is
//! meant, becomes `FROM renamed AS t`. A query of a `WITH` sees those before it and those around it.

use crate::hidden::hidden;
use datafusion_sql::sqlparser::ast::{
    Ident, ObjectNamePart, Query, TableAlias, TableFactor, VisitMut, VisitorMut, With,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Renames hiding queries.
#[derive(Default)]
pub(super) struct Ctes {
    /// Of each query around the place, innermost last: the names of its `WITH`, and what they have become.
    scopes: Vec<HashMap<String, Option<String>>>,
    /// The `WITH`s of those queries, which are visited by hand and put back at the end.
    withs: Vec<Option<With>>,
    renamed: u64,
}

impl VisitorMut for Ctes {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scopes.push(HashMap::new());
        let mut with = query.with.take();
        for cte in with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            cte.query.visit(self)?;
            let name = cte.alias.name.value.to_lowercase();
            let (own, around) = self.scopes.split_last_mut().expect("pushed above");
            let renamed = around.iter().any(|scope| scope.contains_key(&name)).then(|| {
                self.renamed += 1;
                format!("{name}{}", hidden(self.renamed))
            });
            if let Some(renamed) = &renamed {
                cte.alias.name = Ident::with_quote('"', renamed);
            }
            // Twice in one WITH is an error, which the binder raises.
            own.entry(name).or_insert(renamed);
        }
        self.withs.push(with);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        query.with = self.withs.pop().flatten();
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return ControlFlow::Continue(()) };
        let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() else { return ControlFlow::Continue(()) };
        let written = ident.value.to_lowercase();
        if let Some(Some(renamed)) = self.scopes.iter().rev().find_map(|scope| scope.get(&written))
            && ident.quote_style != Some('\'')
        {
            let original = std::mem::replace(ident, Ident::with_quote('"', renamed));
            alias.get_or_insert(TableAlias { explicit: true, name: original, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}
