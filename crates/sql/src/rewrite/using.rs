//! Rewrites joins whose `USING` or `NATURAL` merges columns to joins with `ON`.
//!
//! The merged column is the left one of an inner or left join, the right one of a right join, and for a full
//! join the one that is not NULL: `coalesce(l.k, r.k)`. In `*`, merged columns come first, then the other
//! columns of both sides. The binder would keep the column of the table whose name sorts first, so everything
//! is written out here:
//!
//! ```text
//! SELECT * FROM l FULL JOIN r USING (k) ORDER BY k
//!     → SELECT coalesce(l.k, r.k) AS k, l.a, r.b FROM l FULL JOIN r ON l.k = r.k ORDER BY k
//! ```
//!
//! 1. Each `SELECT` is visited before the queries in it; if a join in its `FROM` merges columns, the columns
//!    of all its relations are determined, the joins get conditions, and `*` is replaced by a list.
//! 2. An unqualified name in it, or in a subquery without such a column of its own, is replaced by the
//!    expression of the merged column. `ORDER BY` comes last and refers to results first.
//!
//! Statements without such joins are not changed. Not handled here: ambiguous names.

use super::{asof, scalars_in_from};
use crate::binding::context::Context;
use crate::binding::relations::stem;
use crate::hidden::query_of_all;
use entasis_syntax::build::call;
use entasis_syntax::object_name::table_name;
use entasis_syntax::parse::parse_query;
use entasis_syntax::walk::WalkMut;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy,
    OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias,
    TableFactor, TableWithJoins, Value, VisitorMut, WildcardAdditionalOptions,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Rewrites the joins of a statement that merge columns.
///
/// # Errors
/// Input, for a column that does not exist or is ambiguous; those of looking up the relations.
pub(super) fn apply(statement: &mut Statement, context: &Context<'_>) -> Result<()> {
    if !merges(statement) {
        return Ok(());
    }
    match statement.walk_mut(&mut Joins::new(context)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// True if it contains a join with `USING` or `NATURAL`, or a list that replaces columns.
fn merges(statement: &mut Statement) -> bool {
    struct Look;
    impl VisitorMut for Look {
        type Break = ();
        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            if is_written_out(select) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    statement.walk_mut(&mut Look).is_break()
}

/// True if `*` is not simply the list of the columns of the `FROM`: a join merges some, or `REPLACE` changes
/// them.
fn is_written_out(select: &mut Select) -> bool {
    let replaces = |item: &SelectItem| match item {
        SelectItem::Wildcard(options) => options.opt_replace.is_some(),
        _ => false,
    };
    select.from.iter_mut().any(has_merge) || select.projection.iter().any(replaces)
}

/// True if one of the joins, including those in brackets, merges columns.
fn has_merge(table: &mut TableWithJoins) -> bool {
    let nested = |factor: &mut TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => has_merge(table_with_joins),
        _ => false,
    };
    nested(&mut table.relation)
        || table.joins.iter_mut().any(|join| {
            nested(&mut join.relation)
                || matches!(
                    constraint(&mut join.join_operator),
                    Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
                )
        })
}

/// The constraint of a join, if its kind can have one.
pub(super) fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator as J;
    match operator {
        J::Join(c)
        | J::Inner(c)
        | J::Left(c)
        | J::LeftOuter(c)
        | J::Right(c)
        | J::RightOuter(c)
        | J::FullOuter(c) => Some(c),
        J::Semi(c) | J::LeftSemi(c) | J::RightSemi(c) | J::Anti(c) | J::LeftAnti(c) | J::RightAnti(c) => {
            Some(c)
        }
        J::CrossJoin(c) | J::StraightJoin(c) | J::AsOf { constraint: c, .. } => Some(c),
        J::CrossApply | J::OuterApply | J::ArrayJoin | J::LeftArrayJoin | J::InnerArrayJoin => None,
    }
}

/// A column of a `FROM`, with its unqualified name.
#[derive(Clone)]
struct Column {
    /// In lower case.
    name: String,
    /// Its expression: a column of a relation, or what a join has merged.
    expr: Expr,
    is_merged: bool,
}

/// What unqualified names refer to at some position.
enum Scope {
    /// The names of a `SELECT`, or of a join's condition.
    Names {
        /// The expressions that replace names of merged columns.
        replaced: HashMap<String, Expr>,
        /// The names of all columns.
        all: HashSet<String>,
    },
    /// A derived table without `LATERAL` does not see the `SELECT` in whose `FROM` it is.
    Barrier,
}

/// An enclosing query.
#[derive(Default)]
struct Around {
    /// Its `ORDER BY`, if the query is a single `SELECT`; removed until that has been visited.
    order_by: Option<OrderBy>,
    /// The scope of that `SELECT`, and the names of its results.
    select: Option<(Scope, HashSet<String>)>,
}

/// What is known about columns at the current position in a statement.
pub(super) struct Joins<'a> {
    context: &'a Context<'a>,
    queries: Vec<Around>,
    scopes: Vec<Scope>,
    /// For each enclosing query, the names of its common table expressions, and their columns if these can be
    /// determined.
    ctes: Vec<Vec<(String, Option<Vec<String>>)>>,
}

/// A result as the visitor returns it.
fn flow(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Joins<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.enter_with(query);
        let mut around = Around::default();
        if matches!(*query.body, SetExpr::Select(_)) {
            around.order_by = query.order_by.take();
        }
        self.queries.push(around);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let around = self.queries.pop().unwrap_or_default();
        if let Some(mut order_by) = around.order_by {
            if let Some((scope, results)) = around.select {
                self.scopes.push(scope);
                if let OrderByKind::Expressions(keys) = &mut order_by.kind {
                    for key in keys {
                        let is_result =
                            matches!(&key.expr, Expr::Identifier(name) if results.contains(&lower(name)));
                        if !is_result {
                            key.expr.walk_mut(self)?;
                        }
                    }
                }
                self.scopes.pop();
            }
            query.order_by = Some(order_by);
        }
        self.ctes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(self.select(select))
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let scope = self.scopes.pop();
        let mut results = HashSet::new();
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => drop(results.insert(lower(alias))),
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => drop(results.insert(lower(name))),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
                    results.extend(names.last().map(lower))
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let of = name.0.last().and_then(|part| part.as_ident()).map(lower).unwrap_or_default();
                    let mut columns = Vec::new();
                    flow(self.columns_under(&of, &mut select.from.clone(), &mut columns))?;
                    results.extend(columns.into_iter().map(|column| column.name));
                }
                _ => {}
            }
        }
        if let (Some(around), Some(scope)) = (self.queries.last_mut(), scope) {
            around.select = Some((scope, results));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::Derived { lateral: false, .. } = factor {
            self.scopes.push(Scope::Barrier);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::Derived { lateral: false, .. } = factor {
            self.scopes.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Identifier(name) = expr
            && let Some(column) = self.meaning(&lower(name))
        {
            *expr = column;
        }
        ControlFlow::Continue(())
    }
}

impl<'a> Joins<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Joins<'a> {
        Joins { context, queries: Vec::new(), scopes: Vec::new(), ctes: Vec::new() }
    }

    /// The columns of a `FROM`, if they can be determined: their names in lower case, and their expressions.
    /// A name that several tables have is repeated.
    pub(super) fn given(&mut self, tables: &[TableWithJoins]) -> Option<Vec<(String, Expr)>> {
        let columns = self.tables(&mut tables.to_vec()).ok()?;
        Some(columns.into_iter().map(|column| (column.name, column.expr)).collect())
    }

    /// The expression for which an unqualified name stands, if it has to be replaced.
    fn meaning(&self, name: &str) -> Option<Expr> {
        let mut scopes = self.scopes.iter().rev();
        while let Some(scope) = scopes.next() {
            match scope {
                Scope::Barrier => {
                    scopes.next();
                }
                Scope::Names { replaced, all } => {
                    if let Some(expr) = replaced.get(name) {
                        return Some(expr.clone());
                    }
                    if all.contains(name) {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Rewrites the joins of a `SELECT` and its `*`, and enters its scope.
    fn select(&mut self, select: &mut Select) -> Result<()> {
        let own = is_written_out(select);
        let around = self
            .scopes
            .iter()
            .any(|scope| matches!(scope, Scope::Names { replaced, .. } if !replaced.is_empty()));
        if !own && !around {
            self.scopes.push(Scope::Names { replaced: HashMap::new(), all: HashSet::new() });
            return Ok(());
        }
        let columns = self.tables(&mut select.from)?;
        let all = columns.iter().map(|column| column.name.clone()).collect();
        let mut replaced = unambiguous(&columns);
        replaced.retain(|name, _| columns.iter().any(|column| column.is_merged && column.name == *name));
        if own {
            let mut items = Vec::with_capacity(select.projection.len());
            for item in std::mem::take(&mut select.projection) {
                match item {
                    SelectItem::Wildcard(options) => expand(&columns, options, &mut items)?,
                    SelectItem::UnnamedExpr(Expr::Identifier(name)) => match replaced.get(&lower(&name)) {
                        Some(expr) => {
                            items.push(SelectItem::ExprWithAlias { expr: expr.clone(), alias: name })
                        }
                        None => items.push(SelectItem::UnnamedExpr(Expr::Identifier(name))),
                    },
                    // A result is named as it was written, in its letter case.
                    SelectItem::UnnamedExpr(expr) if !matches!(expr, Expr::CompoundIdentifier(_)) => {
                        let alias = Ident::with_quote('\'', expr.to_string());
                        items.push(SelectItem::ExprWithAlias { expr, alias });
                    }
                    other => items.push(other),
                }
            }
            select.projection = items;
        }
        self.scopes.push(Scope::Names { replaced, all });
        Ok(())
    }

    /// The columns of a `FROM`; its joins get conditions.
    fn tables(&mut self, tables: &mut [TableWithJoins]) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        for table in tables {
            columns.extend(self.joined(table)?);
        }
        Ok(columns)
    }

    fn joined(&mut self, table: &mut TableWithJoins) -> Result<Vec<Column>> {
        let mut left = self.factor(&mut table.relation)?;
        for join in &mut table.joins {
            let right = self.factor(&mut join.relation)?;
            let names = match constraint(&mut join.join_operator) {
                Some(JoinConstraint::Using(names)) => {
                    let mut names = names.iter().map(column_name).collect::<Result<Vec<_>>>()?;
                    // A column that is written twice is merged once.
                    let mut seen = HashSet::new();
                    names.retain(|name| seen.insert(name.clone()));
                    names
                }
                Some(JoinConstraint::Natural) => {
                    let common = |column: &&Column| right.iter().any(|other| other.name == column.name);
                    left.iter().filter(common).map(|column| column.name.clone()).collect()
                }
                _ => Vec::new(),
            };
            let mut conditions = Vec::new();
            let mut merged = Vec::new();
            // The last column of an as-of join is compared for the nearest value, not for equality.
            let is_nearest = std::mem::take(&mut join.global);
            for (number, name) in names.iter().enumerate() {
                let (l, r) = (find(&left, name, "left")?, find(&right, name, "right")?);
                conditions.push(match is_nearest && number + 1 == names.len() {
                    true => asof::nearest(binary(l.clone(), BinaryOperator::GtEq, r.clone())),
                    false => binary(l.clone(), BinaryOperator::Eq, r.clone()),
                });
                let expr = match &join.join_operator {
                    JoinOperator::Right(_) | JoinOperator::RightOuter(_) => r,
                    JoinOperator::FullOuter(_) => call("coalesce", vec![l, r]),
                    _ => l,
                };
                merged.push(Column { name: name.clone(), expr, is_merged: true });
            }
            let condition = conditions.into_iter().reduce(|all, next| binary(all, BinaryOperator::And, next));
            let natural = matches!(constraint(&mut join.join_operator), Some(JoinConstraint::Natural));
            let columns: Vec<Column> = match &join.join_operator {
                JoinOperator::Semi(_)
                | JoinOperator::LeftSemi(_)
                | JoinOperator::Anti(_)
                | JoinOperator::LeftAnti(_) => left,
                JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => right,
                _ => {
                    let rest = left.into_iter().chain(right).filter(|column| !names.contains(&column.name));
                    merged.into_iter().chain(rest).collect()
                }
            };
            match constraint(&mut join.join_operator) {
                Some(JoinConstraint::On(condition)) => {
                    // The condition sees what is merged so far; later joins may merge more.
                    let replaced = unambiguous(&columns);
                    self.scopes.push(Scope::Names { replaced, all: HashSet::new() });
                    let flow = condition.walk_mut(self);
                    self.scopes.pop();
                    if let ControlFlow::Break(error) = flow {
                        return Err(error);
                    }
                }
                Some(settled @ (JoinConstraint::Using(_) | JoinConstraint::Natural)) => {
                    let always = Expr::Value(Value::Boolean(true).into());
                    *settled = JoinConstraint::On(condition.unwrap_or(always));
                }
                _ => {}
            }
            if natural
                && names.is_empty()
                && matches!(join.join_operator, JoinOperator::Join(_) | JoinOperator::Inner(_))
            {
                join.join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
            }
            left = columns;
        }
        Ok(left)
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<Vec<Column>> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let columns = self.joined(table_with_joins)?;
                let Some(alias) = alias.clone() else { return Ok(columns) };
                // With a qualifier, merged columns are the only ones of their names.
                let mut template = parse_query("SELECT 1 FROM t")?;
                if let SetExpr::Select(select) = &mut *template.body {
                    select.projection.clear();
                    expand(&columns, WildcardAdditionalOptions::default(), &mut select.projection)?;
                    select.from = vec![(**table_with_joins).clone()];
                }
                let names = columns.into_iter().map(|column| column.name).collect();
                let columns = of_relation(Some(&alias.name), renamed(names, Some(&alias)));
                *factor = TableFactor::Derived {
                    lateral: false,
                    subquery: template,
                    alias: Some(alias),
                    sample: None,
                };
                Ok(columns)
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let names = self.results(subquery)?;
                let alias = alias.as_ref();
                Ok(of_relation(alias.map(|alias| &alias.name), renamed(names, alias)))
            }
            // It may read columns of relations before it, so it is not bound alone.
            TableFactor::Table { name, args: Some(args), alias, .. }
                if let Some(names) = scalars_in_from::columns_of(name, args) =>
            {
                let names = renamed(names, alias.as_ref());
                Ok(of_relation(qualifier(factor).as_ref(), names))
            }
            TableFactor::Table { name, args, .. } => {
                let last = name.0.last().and_then(|part| part.as_ident()).cloned();
                let Some(ident) = last else {
                    return Err(Error::not_supported(format!(
                        "USING and NATURAL with {name} in the FROM clause"
                    )));
                };
                let names = match (args.is_some(), ident.quote_style) {
                    (true, _) => self.context.columns_of_relation(factor_alone(factor))?,
                    (false, Some('\'')) => self.context.columns_of_relation(factor_alone(factor))?,
                    (false, _) => self.table(name, &ident)?,
                };
                let qualifier = qualifier(factor);
                let TableFactor::Table { alias, .. } = factor else { unreachable!("matched above") };
                Ok(of_relation(qualifier.as_ref(), renamed(names, alias.as_ref())))
            }
            other => Err(Error::not_supported(format!("USING and NATURAL with {other} in the FROM clause"))),
        }
    }

    /// The columns of a table, view or common table expression.
    fn table(&self, name: &ObjectName, last: &Ident) -> Result<Vec<String>> {
        let own = lower(last);
        // A recursion's rows so far have the same columns as those of its last iteration.
        let bare = query_of_all(&own).map_or_else(|| own.clone(), str::to_owned);
        let cte = self.ctes.iter().rev().flatten().rev().find(|(cte, _)| *cte == bare && name.0.len() == 1);
        match cte {
            Some((_, Some(columns))) => Ok(columns.clone()),
            Some((_, None)) => {
                Err(Error::not_supported(format!("USING and NATURAL with {bare} in the FROM clause")))
            }
            None => self.context.columns_of_table(&table_name(name)?),
        }
    }

    /// Makes the common table expressions of a query known: each to those after it.
    pub(super) fn enter_with(&mut self, query: &Query) {
        self.ctes.push(Vec::new());
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let columns = self.results(&cte.query).map(|columns| renamed(columns, Some(&cte.alias))).ok();
            self.ctes
                .last_mut()
                .expect("just pushed")
                .push((cte.alias.name.value.to_ascii_lowercase(), columns));
        }
    }

    /// Forgets the common table expressions of the innermost query.
    pub(super) fn leave_with(&mut self) {
        self.ctes.pop();
    }

    /// The names of a query's results.
    fn results(&mut self, query: &Query) -> Result<Vec<String>> {
        self.enter_with(query);
        let names = self.results_of(&query.body);
        self.ctes.pop();
        names
    }

    fn results_of(&mut self, body: &SetExpr) -> Result<Vec<String>> {
        match body {
            SetExpr::Query(query) => self.results(query),
            SetExpr::SetOperation { left, .. } => self.results_of(left),
            SetExpr::Values(values) => {
                let width = values.rows.first().map_or(0, |row| row.len());
                Ok((1..=width).map(|number| format!("column{number}")).collect())
            }
            SetExpr::Select(select) => {
                let mut names = Vec::new();
                let mut from = select.from.clone();
                for item in &select.projection {
                    match item {
                        SelectItem::UnnamedExpr(expr) => names.push(match expr {
                            Expr::Identifier(name) => lower(name),
                            Expr::CompoundIdentifier(parts) => parts.last().map(lower).unwrap_or_default(),
                            other => other.to_string().to_ascii_lowercase(),
                        }),
                        SelectItem::ExprWithAlias { alias, .. } => names.push(lower(alias)),
                        SelectItem::Wildcard(options) => {
                            let mut items = Vec::new();
                            expand(&self.tables(&mut from)?, options.clone(), &mut items)?;
                            names.extend(items.iter().map(item_name));
                        }
                        SelectItem::QualifiedWildcard(
                            SelectItemQualifiedWildcardKind::ObjectName(name),
                            options,
                        ) => {
                            let of =
                                name.0.last().and_then(|part| part.as_ident()).map(lower).unwrap_or_default();
                            let mut columns = Vec::new();
                            self.columns_under(&of, &mut from, &mut columns)?;
                            let mut items = Vec::new();
                            expand(&columns, options.clone(), &mut items)?;
                            names.extend(items.iter().map(item_name));
                        }
                        other => {
                            return Err(Error::not_supported(format!(
                                "USING and NATURAL over a subquery with {other}"
                            )));
                        }
                    }
                }
                Ok(names)
            }
            other => Err(Error::not_supported(format!("USING and NATURAL over a subquery with {other}"))),
        }
    }

    /// The columns of the relations with that alias in a `FROM`.
    fn columns_under(
        &mut self,
        name: &str,
        tables: &mut [TableWithJoins],
        into: &mut Vec<Column>,
    ) -> Result<()> {
        for table in tables {
            let joined = table.joins.iter_mut().map(|join| &mut join.relation);
            for factor in std::iter::once(&mut table.relation).chain(joined) {
                if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
                    self.columns_under(name, std::slice::from_mut(&mut **table_with_joins), into)?;
                    continue;
                }
                let columns = self.factor(factor)?;
                let is_of = |column: &Column| match &column.expr {
                    Expr::CompoundIdentifier(parts) => lower(&parts[0]) == name,
                    _ => false,
                };
                into.extend(columns.into_iter().filter(is_of));
            }
        }
        Ok(())
    }
}

/// The name by which the columns of a table are qualified.
pub(super) fn qualifier(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, alias: None, .. } => {
            let last = name.0.last()?.as_ident()?;
            Some(match last.quote_style {
                Some('\'') => Ident::with_quote('"', stem(&last.value)),
                _ => last.clone(),
            })
        }
        _ => None,
    }
}

/// The table without its alias, to determine its columns.
fn factor_alone(factor: &TableFactor) -> TableFactor {
    let mut alone = factor.clone();
    if let TableFactor::Table { alias, .. } = &mut alone {
        *alias = None;
    }
    alone
}

fn lower(name: &Ident) -> String {
    name.value.to_ascii_lowercase()
}

fn column_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [part] if part.as_ident().is_some() => Ok(part.as_ident().map(lower).unwrap_or_default()),
        _ => Err(Error::input(format!("USING takes columns without a table, not {name}"))),
    }
}

/// The column of a join's side that `USING` or `NATURAL` merges.
fn find(columns: &[Column], name: &str, side: &str) -> Result<Expr> {
    let mut found = columns.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column.expr.clone()),
        (None, _) => Err(Error::input(format!(
            "USING ({name}): there is no column {name} on the {side} side of the join"
        ))),
        _ => Err(Error::input(format!(
            "USING ({name}): the column is there more than once on the {side} side of the join"
        ))),
    }
}

/// The columns of a relation, qualified by its name if it has one.
fn of_relation(qualifier: Option<&Ident>, names: Vec<String>) -> Vec<Column> {
    let column = |name: String| {
        let ident = Ident::with_quote('"', name.as_str());
        let expr = match qualifier {
            Some(qualifier) => {
                Expr::CompoundIdentifier(vec![Ident::with_quote('"', lower(qualifier)), ident])
            }
            None => Expr::Identifier(ident),
        };
        Column { name, expr, is_merged: false }
    };
    names.into_iter().map(column).collect()
}

/// The columns whose names are unique.
fn unambiguous(columns: &[Column]) -> HashMap<String, Expr> {
    let mut found = HashMap::new();
    let mut twice = HashSet::new();
    for column in columns {
        if found.insert(column.name.clone(), column.expr.clone()).is_some() {
            twice.insert(&column.name);
        }
    }
    found.retain(|name, _| !twice.contains(name));
    found
}

/// The names of columns after an alias renames the first ones.
fn renamed(mut names: Vec<String>, alias: Option<&TableAlias>) -> Vec<String> {
    for (name, given) in names.iter_mut().zip(alias.iter().flat_map(|alias| &alias.columns)) {
        *name = lower(&given.name);
    }
    names
}

fn item_name(item: &SelectItem) -> String {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => lower(alias),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
            parts.last().map(lower).unwrap_or_default()
        }
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => lower(name),
        other => other.to_string().to_ascii_lowercase(),
    }
}

/// The list for which `*` stands.
fn expand(columns: &[Column], options: WildcardAdditionalOptions, into: &mut Vec<SelectItem>) -> Result<()> {
    let object =
        |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).map(lower).unwrap_or_default();
    let mut excluded: Vec<String> = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => vec![object(name)],
        Some(ExcludeSelectItem::Multiple(names)) => names.iter().map(object).collect(),
        None => Vec::new(),
    };
    if let Some(except) = &options.opt_except {
        excluded.extend(std::iter::once(&except.first_element).chain(&except.additional_elements).map(lower));
    }
    if let Some(missing) = excluded.iter().find(|name| !columns.iter().any(|column| column.name == **name)) {
        return Err(Error::input(format!("EXCLUDE: there is no column {missing}")));
    }
    let mut replaced =
        options.opt_replace.iter().flat_map(|replace| &replace.items).map(|item| &item.column_name);
    if let Some(missing) = replaced.find(|name| !columns.iter().any(|column| column.name == lower(name))) {
        let error = Error::input(format!("REPLACE: there is no column {}", missing.value));
        return Err(entasis_syntax::place::locate_ident(error, missing));
    }
    if options.opt_ilike.is_some() || options.opt_rename.is_some() {
        return Err(Error::not_supported("ILIKE and RENAME after *"));
    }
    for column in columns.iter().filter(|column| !excluded.contains(&column.name)) {
        let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
        let replaced = replaced.into_iter().find(|item| lower(&item.column_name) == column.name);
        let alias = Ident::with_quote('"', column.name.as_str());
        into.push(match (replaced, column.is_merged) {
            (Some(item), _) => SelectItem::ExprWithAlias { expr: item.expr.clone(), alias },
            (None, true) => SelectItem::ExprWithAlias { expr: column.expr.clone(), alias },
            (None, false) => SelectItem::UnnamedExpr(column.expr.clone()),
        });
    }
    Ok(())
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}
