//! Finds the query to which an aggregate belongs, and what its arguments see.
//!
//! **Aggregates of an outer query**: `SELECT g, (SELECT count(*) FROM u WHERE u.a = sum(t.x)) FROM t GROUP BY
//! g`. An aggregate belongs to the query from which its columns come; if they come from several queries, to
//! the innermost of these; if it has no columns, to the query in which it occurs. So `sum(t.x)` is computed
//! with the groups of `t`, and the subquery sees a value of its group. The binder would assign it to the
//! subquery.
//!
//! 1. Each `SELECT` is visited after the queries in it. In the subqueries of its list, `HAVING`, `QUALIFY`
//!    and `ORDER BY`, its own aggregates are replaced by calls of functions made for them
//!    ([`outer_aggregate`]), and each is added to `HAVING`, in a condition that is always true, so that it is
//!    computed.
//! 2. Lowering finds the columns that represent them.
//!
//! A name belongs to the `SELECT` with the table alias before it, or with such a column in its `FROM`,
//! searched from the inside out. If the columns of a `FROM` cannot be determined, it is assumed to have the
//! column. In the subqueries of a `FROM`, a `WHERE` or a `GROUP BY`, aggregates of the same query are
//! refused: there are no groups yet.
//!
//! **Names of results** are not names of columns: `SELECT x + 1 AS z … HAVING max(z) > 3` is refused, as in
//! PostgreSQL and DuckDB. `HAVING z > 3` may refer to the result; the binder would also allow that in
//! aggregates.

use super::ambiguous::names_in;
use super::order_by::{is_aggregate, is_aggregate_call};
use super::using::Joins;
use super::{conditions, each_arm, orders};
use crate::binding::context::Context;
use crate::functions::outer_aggregate;
use entasis_syntax::build::call;
use entasis_syntax::place::{locate_ident, span_position};
use entasis_syntax::walk::{Walk, WalkMut};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    OrderBy, Query, Select, SelectItem, SetExpr, Spanned, Statement, TableFactor, TableWithJoins, Value,
    VisitMut, Visitor, VisitorMut,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Moves the aggregates of outer queries in a statement to where they are computed.
///
/// # Errors
/// Input, for an aggregate in a place where its query has no groups yet, and for one with the name of a
/// result; not supported, with `GROUP BY ALL` of `*`.
pub(super) fn apply(statement: &mut Statement, context: &Context<'_>) -> Result<()> {
    let mut look = Look { queries: 0 };
    if statement.walk(&mut look).is_continue() {
        return Ok(());
    }
    let mut queries = Queries { context, joins: Joins::new(context) };
    match statement.walk_mut(&mut queries) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Stops at an aggregate in a query within another, or in a `HAVING` if there are results with names.
struct Look {
    queries: usize,
}

impl Visitor for Look {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let Some(having) = &select.having else { return ControlFlow::Continue(()) };
        let results = conditions::result_names(select);
        if names_in(having, true).iter().any(|name| results.contains(&name.value.to_ascii_lowercase())) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.queries > 1 && is_aggregate(expr) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Visits queries, inner ones first.
struct Queries<'a> {
    context: &'a Context<'a>,
    joins: Joins<'a>,
}

impl VisitorMut for Queries<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.joins.enter_with(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let settled = match &mut *query.body {
            SetExpr::Select(select) => self.select(select, query.order_by.as_mut()),
            body => each_arm(body, &mut |select| self.select(select, None)),
        };
        self.joins.leave_with();
        match settled {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Queries<'_> {
    fn select(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
        let mut own = Own {
            context: self.context,
            joins: &mut self.joins,
            frames: vec![Frame::of(&select.from)],
            starts: Vec::new(),
            aggregates: 0,
            clause: None,
            looking: None,
            computed: 0,
            calls: 0,
            found: Vec::new(),
        };
        // The keys for which `GROUP BY ALL` stands.
        let mut keys = Some(Vec::new());
        own.refuse_results(select)?;
        own.refuse(&mut select.from, "FROM")?;
        own.refuse(&mut select.selection, "WHERE")?;
        own.refuse(&mut select.group_by, "GROUP BY")?;
        for item in &mut select.projection {
            let text = item.to_string();
            let (calls, computed) = (own.calls, own.computed);
            own.visit(item)?;
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    if own.calls == calls && own.computed == computed {
                        keys.iter_mut().for_each(|keys| keys.push(expr.clone()));
                    }
                }
                _ => keys = None,
            }
            // A result is named as it was written, in its letter case.
            if let SelectItem::UnnamedExpr(expr) = item
                && own.calls > calls
            {
                let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
                *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('\'', text) };
            }
        }
        own.visit(&mut select.distinct)?;
        own.visit(&mut select.having)?;
        own.visit(&mut select.named_window)?;
        own.visit(&mut select.qualify)?;
        if let Some(order_by) = order_by {
            own.visit(order_by)?;
        }
        let found = own.found;
        if let (Some((_, first)), GroupByExpr::All(_)) = (found.first(), &select.group_by) {
            let Some(keys) = keys else {
                let text = format!(
                    "{}, an aggregate of the outer query, in a subquery beside GROUP BY ALL and *",
                    first.name
                );
                return Err(at(Error::not_supported(text).with_hint("write the keys of GROUP BY"), first));
            };
            select.group_by = GroupByExpr::Expressions(keys, Vec::new());
        }
        for (number, function) in found {
            let mark = call(&outer_aggregate::mark_name(number), vec![Expr::Function(function)]);
            select.having = Some(match select.having.take() {
                Some(having) => {
                    let left = Box::new(Expr::Nested(Box::new(having)));
                    Expr::BinaryOp { left, op: BinaryOperator::And, right: Box::new(mark) }
                }
                None => mark,
            });
        }
        Ok(())
    }
}

/// An error about a call, with its position.
fn at(error: Error, function: &Function) -> Error {
    match span_position(function.name.span()) {
        Some(position) => error.with_position(position),
        None => error,
    }
}

/// A scope of column names.
enum Frame {
    /// A `SELECT`.
    Select {
        /// The aliases of its tables, in lower case.
        tables: Vec<String>,
        from: Vec<TableWithJoins>,
        /// The names of its columns, computed when first needed; the inner `None` if they cannot be
        /// determined.
        columns: Option<Option<HashSet<String>>>,
    },
    /// A derived table without `LATERAL` does not see the `SELECT` in whose `FROM` it is.
    Barrier,
}

impl Frame {
    fn of(from: &[TableWithJoins]) -> Frame {
        Frame::Select { tables: conditions::names_of(from), from: from.to_vec(), columns: None }
    }
}

/// Visits the parts of one `SELECT`, and moves its aggregates out of the subqueries.
struct Own<'a, 'b> {
    context: &'b Context<'a>,
    joins: &'b mut Joins<'a>,
    /// The `SELECT`, and those within it that enclose the current position.
    frames: Vec<Frame>,
    /// For each query within it that encloses the current position: the number of frames outside, and whether
    /// it is a single `SELECT`, whose names its `ORDER BY` sees.
    starts: Vec<(usize, bool)>,
    /// Number of aggregates of the `SELECT` that enclose the current position.
    aggregates: usize,
    /// The name of the clause, if aggregates are not allowed in it.
    clause: Option<&'static str>,
    /// While the arguments of an aggregate are visited: the number of frames that enclose it, and the
    /// innermost of these to which one of its columns belongs.
    looking: Option<(usize, Option<usize>)>,
    /// Number of aggregates and windows of the `SELECT` outside its subqueries, so far.
    computed: usize,
    /// Number of calls of the aggregates found.
    calls: usize,
    /// The aggregates that were moved out, with their numbers.
    found: Vec<(usize, Function)>,
}

impl Own<'_, '_> {
    fn visit(&mut self, part: &mut impl VisitMut) -> Result<()> {
        match part.walk_mut(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// Refuses the aggregates of the `SELECT` in the subqueries of a clause.
    fn refuse(&mut self, part: &mut impl VisitMut, clause: &'static str) -> Result<()> {
        self.clause = Some(clause);
        let refused = self.visit(part);
        self.clause = None;
        refused
    }

    /// Refuses names of results in the aggregates of `HAVING`.
    fn refuse_results(&mut self, select: &Select) -> Result<()> {
        let results = conditions::result_names(select);
        for name in names_in(&select.having, true) {
            let lower = name.value.to_ascii_lowercase();
            if results.contains(&lower) && self.owner_of_column(&lower).is_none() {
                let error = Error::input(format!("there is no column {}", name.value))
                    .with_sqlstate(sqlstate::NO_COLUMN);
                let hint = format!(
                    "{} is an alias of the select list; aggregates in HAVING need columns",
                    name.value
                );
                return Err(locate_ident(error.with_hint(hint), &name));
            }
        }
        Ok(())
    }

    /// The frames visible from the current position, innermost first.
    fn visible(&self) -> Vec<usize> {
        let mut visible = Vec::with_capacity(self.frames.len());
        let mut hidden = false;
        for (number, frame) in self.frames.iter().enumerate().rev() {
            match frame {
                Frame::Barrier => hidden = true,
                Frame::Select { .. } if hidden => hidden = false,
                Frame::Select { .. } => visible.push(number),
            }
        }
        visible
    }

    /// The frame to which a table belongs.
    fn owner_of_table(&self, table: &str) -> Option<usize> {
        let has = |number: &usize| match &self.frames[*number] {
            Frame::Select { tables, .. } => tables.iter().any(|own| own == table),
            Frame::Barrier => false,
        };
        self.visible().into_iter().find(has)
    }

    /// The frame to which a column belongs.
    fn owner_of_column(&mut self, column: &str) -> Option<usize> {
        let visible = self.visible();
        visible.into_iter().find(|number| match &mut self.frames[*number] {
            Frame::Select { from, columns, .. } => {
                let known = columns.get_or_insert_with(|| {
                    let given = self.joins.given(from)?;
                    Some(given.into_iter().map(|(name, _)| name).collect())
                });
                known.as_ref().is_none_or(|known| known.contains(column))
            }
            Frame::Barrier => false,
        })
    }

    /// The innermost frame outside an aggregate to which a column in it belongs.
    fn level(&mut self, function: &Function) -> Result<Option<usize>> {
        self.looking = Some((self.frames.len(), None));
        let looked = self.visit(&mut function.clone());
        let level = self.looking.take().and_then(|(_, level)| level);
        looked.map(|()| level)
    }

    /// Replaces an aggregate of the `SELECT` by its value.
    fn take(&mut self, function: &Function) -> Result<Expr> {
        if let Some(clause) = self.clause {
            let text = format!("the aggregate {} is not allowed in {clause} of its own query", function.name);
            let error =
                Error::input(text).with_hint("aggregates are computed after FROM, WHERE and GROUP BY");
            return Err(at(error, function));
        }
        if self.aggregates > 0 {
            let text = format!("aggregate calls cannot be nested: {}", function.name);
            return Err(at(Error::input(text), function));
        }
        let mut function = function.clone();
        let name = function.name.to_string().trim_matches('"').to_ascii_lowercase();
        orders::within_group(&name, &mut function)?;
        let mut args = Vec::new();
        if let FunctionArguments::List(list) = &function.args {
            for arg in &list.args {
                args.push(match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => expr.clone(),
                    _ => Expr::Value(Value::Number("1".into(), false).into()),
                });
            }
        }
        self.calls += 1;
        let known = self.found.iter().find(|(_, own)| *own == function).map(|(number, _)| *number);
        let number = known.unwrap_or_else(|| {
            let number = self.context.next_aggregate();
            self.found.push((number, function));
            number
        });
        Ok(call(&outer_aggregate::value_name(number, &name), args))
    }
}

impl VisitorMut for Own<'_, '_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.joins.enter_with(query);
        self.starts.push((self.frames.len(), matches!(*query.body, SetExpr::Select(_))));
        if let SetExpr::Values(_) = *query.body {
            self.frames.push(Frame::of(&[]));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        let (start, _) = self.starts.pop().unwrap_or_default();
        self.frames.truncate(start);
        self.joins.leave_with();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.frames.push(Frame::of(&select.from));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Error> {
        if self.starts.last().is_some_and(|(_, is_select)| !is_select) {
            self.frames.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::Derived { lateral: false, .. } = factor {
            self.frames.push(Frame::Barrier);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::Derived { lateral: false, .. } = factor {
            self.frames.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Some((around, _)) = self.looking {
            let owner = match expr {
                Expr::Identifier(name) => self.owner_of_column(&name.value.to_ascii_lowercase()),
                Expr::CompoundIdentifier(parts) => parts
                    .iter()
                    .rev()
                    .nth(1)
                    .and_then(|table| self.owner_of_table(&table.value.to_ascii_lowercase())),
                _ => None,
            };
            if let (Some(owner), Some((_, level))) =
                (owner.filter(|owner| *owner < around), &mut self.looking)
            {
                *level = Some(level.map_or(owner, |level| level.max(owner)));
            }
            return ControlFlow::Continue(());
        }
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if !is_aggregate_call(function) {
            self.computed += usize::from(function.over.is_some() && self.visible() == [0]);
            return ControlFlow::Continue(());
        }
        match self.visible().as_slice() {
            [0] => {
                self.aggregates += 1;
                self.computed += 1;
            }
            [_, .., 0] => {
                let taken = match self.level(function) {
                    Ok(Some(0)) => self.take(function),
                    Ok(_) => return ControlFlow::Continue(()),
                    Err(error) => Err(error),
                };
                match taken {
                    Ok(value) => *expr = value,
                    Err(error) => return ControlFlow::Break(error),
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.looking.is_none()
            && let Expr::Function(function) = expr
            && is_aggregate_call(function)
            && self.visible() == [0]
        {
            self.aggregates -= 1;
        }
        ControlFlow::Continue(())
    }
}
