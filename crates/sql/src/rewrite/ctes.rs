//! Rewrites the queries of a `WITH`.
//!
//! **A query that hides another** of the same name gets a new name, because the binder knows only one query
//! of each name: in `WITH t AS (…) SELECT … FROM (WITH t AS (…) SELECT t.i FROM t) q`, the inner `t` is
//! renamed, and each `FROM t` that refers to it becomes `FROM renamed AS t`. A query of a `WITH` sees those
//! before it and those of enclosing queries.
//!
//! **A query with a key** (`USING KEY`) gets a name that contains the number of its key
//! ([`super::using_key`]).
//!
//! **A query that is read more than once** is bound each time where it is read, so that filters can be pushed
//! into it. Instead it is bound once, and its rows are a relation ([`Shared`]), in these cases: its rows
//! might differ (`random()`, `nextval`, `LIMIT`); it combines many rows (groups, `DISTINCT`, set operations)
//! and is not `NOT MATERIALIZED`; it is `MATERIALIZED`; or it would be bound more than [`MOST_COPIES`] times,
//! as in a chain whose members each read the previous one twice. A correlated query is always bound in place.

use super::reads::{RECURRING, reads};
use super::volatile::is_volatile;
use super::{recursive, using_key};
use crate::binding::context::Context;
use crate::functions::Library;
use crate::hidden::{MATERIALIZED, NOT_MATERIALIZED, all_of, hidden, number_in, numbered, visible};
use entasis_binder::zone::apply_to_plan;
use entasis_engine::plan::{Node, Plan};
use entasis_engine::relation::Relation;
use entasis_engine::shared::Shared;
use entasis_syntax::parse::parse_query;
use entasis_syntax::walk::{Walk, WalkMut};
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    Cte, CteAsMaterialized, Expr, GroupByExpr, Ident, ObjectName, ObjectNamePart, Query, Select, SetExpr,
    SetOperator, SetQuantifier, Statement, TableAlias, TableFactor, Visitor, VisitorMut, With,
};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The most copies of a query of a `WITH` that is bound in place.
const MOST_COPIES: u64 = 8;

/// Renames queries that hide others, and shares rows.
pub(super) struct Ctes<'a> {
    context: &'a Context<'a>,
    /// For each enclosing query, outermost first: the names in its `WITH`, and their new names.
    scopes: Vec<HashMap<String, Option<String>>>,
    /// The `WITH`s of those queries, which are visited explicitly and put back at the end.
    withs: Vec<Option<With>>,
    renamed: u64,
    /// The enclosing queries with keys: their names, and their new names.
    keyed: Vec<(String, String)>,
    /// The first error.
    error: Option<Error>,
}

/// Renames queries that hide others or have keys, and shares rows.
///
/// # Errors
/// Input, for a key of a query that is not recursive.
pub(super) fn apply(statement: &mut Statement, context: &Context<'_>) -> Result<()> {
    let mut ctes =
        Ctes { context, scopes: Vec::new(), withs: Vec::new(), renamed: 0, keyed: Vec::new(), error: None };
    let _ = statement.walk_mut(&mut ctes);
    ctes.error.map_or(Ok(()), Err)
}

impl Ctes<'_> {
    /// Rewrites a query with a key; returns its new name.
    fn keyed(&mut self, cte: &mut Cte, key: Vec<String>, is_recursive: bool) -> String {
        let name = cte.alias.name.value.to_ascii_lowercase();
        let numbered = numbered(&name, self.context.key(key));
        self.scopes.last_mut().expect("pushed before").insert(name.clone(), Some(numbered.clone()));
        self.keyed.push((name.clone(), numbered.clone()));
        let _ = cte.query.walk_mut(self);
        self.keyed.pop();
        let prepared = match is_recursive {
            true => using_key::prepare(&mut cte.query, &numbered, &name),
            false => Err(Error::input(format!("USING KEY of {name} is only allowed in WITH RECURSIVE"))),
        };
        if let Err(error) = prepared {
            self.error.get_or_insert(error);
        }
        cte.alias.name = Ident::with_quote('"', numbered.clone());
        numbered
    }

    /// Binds a query of a `WITH` by itself, as a relation. Returns its name, or `None` if it must be bound in
    /// place.
    fn share(&mut self, cte: &Cte, before: &[Cte]) -> Option<String> {
        let around = self.withs.iter().flatten().flat_map(|with| &with.cte_tables);
        let mut around: Vec<Cte> = around.chain(before).cloned().collect();
        let is_recursive = recursive::reads_itself(cte);
        if number_in(&cte.alias.name.value).is_none() && using_key::reads_all(&cte.query) {
            return None;
        }
        let mut query = match is_recursive {
            true => {
                around.push(cte.clone());
                let name = Ident::with_quote('"', cte.alias.name.value.to_ascii_lowercase());
                parse_query(&format!("SELECT * FROM {name}")).ok()?
            }
            false => cte.query.clone(),
        };
        if !around.is_empty() {
            let recursive = around.iter().any(recursive::reads_itself);
            match &mut query.with {
                Some(with) => {
                    with.recursive |= recursive;
                    drop(with.cte_tables.splice(0..0, around));
                }
                None => {
                    let mut template = parse_query("WITH t AS (SELECT 1) SELECT 1").ok()?;
                    let with = template.with.as_mut()?;
                    with.recursive = recursive;
                    with.cte_tables = around;
                    query.with = template.with;
                }
            }
        }
        let mut plan = self.context.bind(query).ok()?;
        if let Some(recursion) = relation_of(&plan).filter(|_| is_recursive) {
            return Some(self.context.share(recursion));
        }
        apply_to_plan(&mut plan, self.context.session().zone);
        let mut schema = plan.schema();
        if cte.alias.columns.len() > schema.len() {
            return None;
        }
        // The columns of a recursion have their names already.
        for (field, column) in schema.iter_mut().zip(&cte.alias.columns) {
            field.name = column.name.value.to_ascii_lowercase().into();
        }
        let name = cte.alias.name.value.to_ascii_lowercase();
        Some(self.context.share(Arc::new(Shared::new(visible(&name), schema, plan))))
    }
}

impl VisitorMut for Ctes<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scopes.push(HashMap::new());
        let Some(mut with) = query.with.take() else {
            self.withs.push(None);
            return ControlFlow::Continue(());
        };
        with.cte_tables.iter_mut().for_each(take_materialized);
        let shared = is_shared(&with, query);
        let mut kept: Vec<Cte> = Vec::with_capacity(with.cte_tables.len());
        for (mut cte, shared) in std::mem::take(&mut with.cte_tables).into_iter().zip(shared) {
            let name = cte.alias.name.value.to_ascii_lowercase();
            if let Some(key) = using_key::take_key(&mut cte) {
                let renamed = self.keyed(&mut cte, key, with.recursive);
                let relation = if shared { self.share(&cte, &kept) } else { None };
                if relation.is_none() {
                    kept.push(cte);
                }
                let scope = self.scopes.last_mut().expect("pushed above");
                scope.insert(name, relation.or(Some(renamed)));
                continue;
            }
            let (own, around) = self.scopes.split_last_mut().expect("pushed above");
            let hides = around.iter().any(|scope| scope.contains_key(&name));
            if with.recursive && recursive::reads_itself(&cte) && !own.contains_key(&name) {
                // In its own query the name refers to itself, not to an outer one.
                let renamed = hides.then(|| {
                    self.renamed += 1;
                    format!("{name}{}", hidden(self.renamed))
                });
                own.insert(name.clone(), renamed.clone());
                cte.query.walk_mut(self)?;
                if let Some(renamed) = renamed {
                    cte.alias.name = Ident::with_quote('"', renamed);
                }
                let relation = if shared { self.share(&cte, &kept) } else { None };
                match relation {
                    Some(relation) => {
                        self.scopes.last_mut().expect("pushed above").insert(name, Some(relation));
                    }
                    None => kept.push(cte),
                }
                continue;
            }
            cte.query.walk_mut(self)?;
            let twice = self.scopes.last().is_some_and(|own| own.contains_key(&name));
            let relation = if shared && !twice { self.share(&cte, &kept) } else { None };
            let is_relation = relation.is_some();
            let renamed = relation.or_else(|| {
                hides.then(|| {
                    self.renamed += 1;
                    format!("{name}{}", hidden(self.renamed))
                })
            });
            if let (Some(renamed), false) = (&renamed, is_relation) {
                cte.alias.name = Ident::with_quote('"', renamed);
            }
            // A repeated name in one WITH is an error, which the binder raises.
            self.scopes.last_mut().expect("pushed above").entry(name).or_insert(renamed);
            if !is_relation {
                kept.push(cte);
            }
        }
        with.cte_tables = kept;
        self.withs.push(Some(with).filter(|with| !with.cte_tables.is_empty()));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        query.with = self.withs.pop().flatten();
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        if let [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(ident)] = name.0.as_slice()
            && schema.value.eq_ignore_ascii_case(RECURRING)
            && let Some((_, numbered)) =
                self.keyed.iter().rev().find(|(own, _)| ident.value.eq_ignore_ascii_case(own))
        {
            let original = ident.clone();
            *name = ObjectName::from(Ident::with_quote('"', all_of(numbered)));
            alias.get_or_insert(TableAlias { explicit: true, name: original, columns: Vec::new(), at: None });
            return ControlFlow::Continue(());
        }
        let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() else {
            return ControlFlow::Continue(());
        };
        let written = ident.value.to_ascii_lowercase();
        if let Some(Some(renamed)) = self.scopes.iter().rev().find_map(|scope| scope.get(&written))
            && ident.quote_style != Some('\'')
        {
            let original = std::mem::replace(ident, Ident::with_quote('"', renamed));
            alias.get_or_insert(TableAlias { explicit: true, name: original, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}

/// The relation whose rows and columns a plan gives as they are: a recursion, which is computed once for all
/// who read it, and only as far as they do.
fn relation_of(plan: &Plan) -> Option<Arc<dyn Relation>> {
    let Node::Scan(scan) = &plan.root else { return None };
    let schema = scan.relation.schema();
    let is_whole = scan.filters.is_empty()
        && scan.columns.iter().map(|(_, index)| *index).eq(0..schema.len())
        && plan.output.iter().map(|output| output.column).eq(scan.columns.iter().map(|(id, _)| *id))
        && plan.output.iter().zip(schema).all(|(output, field)| output.name == *field.name);
    is_whole.then(|| scan.relation.clone())
}

/// Reads the mark that stands for `[NOT] MATERIALIZED`, and removes it.
fn take_materialized(cte: &mut Cte) {
    let Some(with) = &mut cte.query.with else { return };
    cte.materialized = match with.cte_tables.first().map(|first| first.alias.name.value.as_str()) {
        Some(MATERIALIZED) => Some(CteAsMaterialized::Materialized),
        Some(NOT_MATERIALIZED) => Some(CteAsMaterialized::NotMaterialized),
        _ => return,
    };
    with.cte_tables.remove(0);
    if with.cte_tables.is_empty() {
        cte.query.with = None;
    }
}

/// For each query of a `WITH`, whether it is bound once for all places that read it.
fn is_shared(with: &With, query: &Query) -> Vec<bool> {
    let ctes = &with.cte_tables;
    let mut shared = vec![false; ctes.len()];
    // From the last to the first: what a query that is bound several times reads is bound as often.
    let mut copies = vec![1u64; ctes.len()];
    for at in (0..ctes.len()).rev() {
        let name = ctes[at].alias.name.value.to_ascii_lowercase();
        let later = (at + 1..ctes.len()).map(|other| reads(&*ctes[other].query, &name) * copies[other]);
        let read =
            later.fold(reads(&*query.body, &name) + reads(&query.order_by, &name), u64::saturating_add);
        let Cte { query: own, materialized, .. } = &ctes[at];
        let once = (with.recursive && recursive::reads_itself(&ctes[at])) || may_differ(own);
        let once = match materialized {
            Some(CteAsMaterialized::Materialized) => true,
            Some(CteAsMaterialized::NotMaterialized) => once,
            None => once || combines_rows(own),
        };
        shared[at] = read > MOST_COPIES || (read > 1 && once);
        copies[at] = if shared[at] { 1 } else { read };
    }
    shared
}

/// True if a query may return other rows the second time.
fn may_differ(query: &Query) -> bool {
    struct Look;
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            stop(query.limit_clause.is_some() || query.fetch.is_some())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            stop(is_volatile(expr))
        }
    }
    query.walk(&mut Look).is_break()
}

/// True if a query combines many rows into one, so that it costs more to compute than to read.
fn combines_rows(query: &Query) -> bool {
    struct Look;
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            stop(match &*query.body {
                SetExpr::SetOperation { op, set_quantifier, .. } => {
                    *op != SetOperator::Union || *set_quantifier != SetQuantifier::All
                }
                _ => false,
            })
        }
        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let groups = match &select.group_by {
                GroupByExpr::All(_) => true,
                GroupByExpr::Expressions(groups, _) => !groups.is_empty(),
            };
            stop(groups || select.distinct.is_some() || select.having.is_some())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            stop(function_name(expr).is_some_and(|name| Library::get().aggregate(&name).is_some()))
        }
    }
    query.walk(&mut Look).is_break()
}

/// The name of the function that an expression calls.
fn function_name(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else { return None };
    Some(function.name.to_string().trim_matches('"').to_ascii_lowercase())
}

fn stop(found: bool) -> ControlFlow<()> {
    if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
