//! Queries: WITH, body, ORDER BY, LIMIT.

use crate::aggregate::sort_key;
use crate::binder::{Binder, located};
use crate::environment::index_of;
use crate::literal::plain;
use crate::scope::{Clause, Rel, Scope};
use crate::settle::settled;
use entasis_engine::plan::{Distinct, Filter, Limit, Node, Output, Plan, Project, Sort, SortKey, Values};
use entasis_functions::expressions::fold;
use entasis_functions::types::Given;
use entasis_syntax::clauses;
use entasis_syntax::walk::Walk;
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error, Result, Value, statement};
use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, LimitClause, OrderBy, OrderByKind, Query, SetExpr,
    Visitor,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// A column of a result: an expression over the rows of a node.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// What it is called.
    pub(crate) name: String,
    /// Its value.
    pub(crate) expr: Expr,
    /// What is known of its type: a literal still adopts one.
    pub(crate) given: Given,
}

/// Rows, whose columns need not be computed yet.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) node: Node,
    pub(crate) items: Vec<Item>,
}

/// LIMIT and OFFSET.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Range {
    pub(crate) offset: usize,
    pub(crate) count: Option<usize>,
    /// Rows that are equal to the last one in the order come, too.
    pub(crate) with_ties: bool,
}

/// One row without columns.
pub(crate) fn one_row() -> Node {
    Node::Values(Values { columns: Vec::new(), rows: vec![Vec::new()] })
}

/// Moves a node out, to wrap it.
pub(crate) fn take(node: &mut Node) -> Box<Node> {
    Box::new(std::mem::replace(node, one_row()))
}

/// `input` where `predicate` is true.
pub(crate) fn filter(input: Node, predicate: Expr) -> Node {
    let mut predicates = Vec::new();
    predicate.split_conjunction(&mut predicates);
    if predicates.is_empty() { input } else { Node::Filter(Filter { input: Box::new(input), predicates }) }
}

/// `input` with further columns.
pub(crate) fn project(input: Node, exprs: Vec<(ColumnId, Expr)>) -> Node {
    if exprs.is_empty() { input } else { Node::Project(Project { input: Box::new(input), exprs }) }
}

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds a query to a plan.
    pub(crate) fn plan(mut self, query: &'q Query) -> Result<Plan> {
        self.counted = counted(query).into();
        let rows = self.query_rows(query)?;
        let (root, columns) = self.projected(rows);
        let output = columns.into_iter().map(|(name, column)| Output { name, column }).collect();
        Ok(Plan { root, columns: self.columns, output })
    }

    /// Binds a query; subqueries see the scopes around.
    pub(crate) fn query_rows(&mut self, query: &'q Query) -> Result<Rows> {
        statement::check()?;
        clauses::query(query)?;
        let has_with = query.with.is_some();
        if let Some(with) = &query.with {
            self.enter_with(with, query)?;
        }
        let rows = self.query_behind_with(query);
        if !has_with {
            return rows;
        }
        let rows = rows.and_then(|rows| self.bind_unread().map(|()| rows));
        self.withs.pop();
        rows
    }

    fn query_behind_with(&mut self, query: &'q Query) -> Result<Rows> {
        let range = self.range(query)?;
        let order = query.order_by.as_ref();
        if let SetExpr::Select(select) = &*query.body {
            return self.select(select, order, range);
        }
        let mut rows = self.body(&query.body)?;
        if order.is_none() && range.count.is_none() && range.offset == 0 {
            return Ok(rows);
        }
        if range.with_ties {
            return Err(Error::not_supported("FETCH FIRST … WITH TIES of a set operation"));
        }
        self.materialize(&mut rows);
        if let Some(order) = order {
            let keys = self.order_of_outputs(order, &mut rows)?;
            if !keys.is_empty() {
                let input = take(&mut rows.node);
                rows.node = Node::Sort(Sort { input, keys, limit: None });
            }
        }
        limited(&mut rows.node, range);
        Ok(rows)
    }

    /// The rows of a body, without an order of its own.
    pub(crate) fn body(&mut self, body: &'q SetExpr) -> Result<Rows> {
        match body {
            SetExpr::Select(select) => self.select(select, None, Range::default()),
            SetExpr::Query(query) => self.query_rows(query),
            SetExpr::SetOperation { .. } => self.set_operation(body),
            SetExpr::Values(values) => self.values(values),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(Error::not_supported("statements that change rows within a query"))
            }
            SetExpr::Table(_) => {
                Err(Error::not_supported("TABLE name as a query").with_hint("write FROM name"))
            }
        }
    }

    /// The node with a column for each item, and the columns with their names.
    pub(crate) fn projected(&mut self, rows: Rows) -> (Node, Vec<(String, ColumnId)>) {
        let Rows { node, items } = rows;
        let own: HashSet<ColumnId> = match items.iter().all(|item| !is_column(&item.expr)) {
            true => Default::default(),
            false => node.columns().into_iter().collect(),
        };
        let mut made: Vec<(ColumnId, Expr)> = Vec::new();
        let mut columns = Vec::with_capacity(items.len());
        for Item { name, expr, .. } in items {
            let column = match expr {
                Expr::Column { id, .. } if own.contains(&id) => id,
                // A column of a query around is one of this query's own from here on.
                expr => {
                    let expr = settled(expr);
                    let nullable = self.may_be_null(&expr);
                    let column = self.columns.add(name.as_str(), expr.ty(), nullable);
                    made.push((column, expr));
                    column
                }
            };
            columns.push((name, column));
        }
        (project(node, made), columns)
    }

    /// Computes the items, so that each is a column.
    pub(crate) fn materialize(&mut self, rows: &mut Rows) {
        let given: Vec<Given> = rows.items.iter().map(|item| item.given).collect();
        let taken = Rows { node: *take(&mut rows.node), items: std::mem::take(&mut rows.items) };
        let (node, columns) = self.projected(taken);
        rows.node = node;
        let item = |((name, column), given): ((String, ColumnId), Given)| Item {
            name,
            expr: self.columns.expr(column),
            given: if matches!(given, Given::Null) {
                Given::Null
            } else {
                Given::Known(self.columns.ty(column))
            },
        };
        rows.items = columns.into_iter().zip(given).map(item).collect();
    }

    /// Duplicates left out.
    pub(crate) fn distinct(&mut self, rows: &mut Rows) {
        self.materialize(rows);
        let mut keys = Vec::with_capacity(rows.items.len());
        for item in &rows.items {
            if let Expr::Column { id, .. } = item.expr
                && !keys.contains(&id)
            {
                keys.push(id);
            }
        }
        let input = take(&mut rows.node);
        rows.node = Node::Distinct(Distinct::new(*input, keys));
    }

    /// The keys of an ORDER BY that sees only the results: of a set operation, of VALUES, of brackets.
    fn order_of_outputs(&mut self, order: &'q OrderBy, rows: &mut Rows) -> Result<Vec<SortKey>> {
        let keys = match &order.kind {
            OrderByKind::All(options) => {
                let key = |item: &Item| sort_key(item.expr.clone(), options);
                return Ok(rows.items.iter().map(key).collect());
            }
            OrderByKind::Expressions(keys) => keys,
        };
        let columns = rows.items.iter().filter_map(|item| match item.expr {
            Expr::Column { id, .. } => Some((item.name.to_ascii_lowercase().into(), id)),
            _ => None,
        });
        let scope = Scope::new(vec![Rel::new("", columns.collect())], Vec::new(), Clause::OrderBy);
        self.scopes.push(scope);
        let bound = keys.iter().map(|key| {
            let expr = match ordinal(&key.expr, rows.items.len())? {
                Some(place) => rows.items[place].expr.clone(),
                None => self.expr(&key.expr).map_err(not_a_result)?.expr,
            };
            Ok(sort_key(settled(expr), &key.options))
        });
        let bound = bound.collect::<Result<Vec<SortKey>>>();
        self.flush(&mut rows.node);
        let scope = self.scopes.pop();
        let bound = bound?;
        if scope.is_some_and(|scope| !scope.aggregates.is_empty() || !scope.window_calls.is_empty()) {
            return Err(Error::input(
                "the order of a set operation is one of its results, and computes no aggregate",
            )
            .with_hint("put the set operation into a subquery"));
        }
        Ok(bound.into_iter().filter(|key| !matches!(key.expr, Expr::Literal { .. })).collect())
    }

    /// LIMIT, OFFSET and FETCH.
    fn range(&mut self, query: &'q Query) -> Result<Range> {
        let (mut limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                if !limit_by.is_empty() {
                    return Err(Error::not_supported("LIMIT … BY"));
                }
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
        };
        let mut with_ties = false;
        let mut first = None;
        if let Some(fetch) = &query.fetch {
            if fetch.percent {
                return Err(Error::not_supported("FETCH FIRST … PERCENT"));
            }
            if limit.is_some() {
                return Err(Error::input("a query has both LIMIT and FETCH"));
            }
            with_ties = fetch.with_ties;
            limit = fetch.quantity.as_ref();
            // FETCH FIRST ROW ONLY
            first = limit.is_none().then_some(1);
            if with_ties && query.order_by.is_none() {
                return Err(Error::input("FETCH FIRST … WITH TIES needs an ORDER BY"));
            }
        }
        let offset = self.row_count(offset, "OFFSET")?.unwrap_or(0);
        let count = self.row_count(limit, "LIMIT")?.or(first);
        Ok(Range { offset, count, with_ties })
    }

    /// The number of rows in LIMIT or OFFSET; `None` if there is no such clause, and for NULL.
    fn row_count(&mut self, ast: Option<&'q ast::Expr>, clause: &str) -> Result<Option<usize>> {
        let Some(ast) = ast else { return Ok(None) };
        if let Some(uses) = self.params.described()
            && let ast::Expr::Value(value) = plain(ast)
            && let ast::Value::Placeholder(id) = &value.value
        {
            if let Some(index) = index_of(id) {
                uses.asks(index, DataType::Int64);
            }
            return Ok(None);
        }
        let (value, ty) = self.constant(ast).map_err(|error| error.with_context(clause))?;
        let wrong = |text: &str| Err(located(Error::input(format!("{clause} {text}")), ast));
        match fold::cast(&value, ty, DataType::Int64) {
            Some(Value::Null) => Ok(None),
            Some(Value::Integer(count)) if count < 0 => wrong("is negative"),
            Some(Value::Integer(count)) => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
            _ => wrong("is not a number of rows"),
        }
    }

    /// The value and type of an expression that depends on no row.
    ///
    /// # Errors
    /// Input, if it depends on rows.
    pub(crate) fn constant(&mut self, ast: &'q ast::Expr) -> Result<(Value, DataType)> {
        let scopes = std::mem::take(&mut self.scopes);
        let bound = self.expr(ast);
        self.scopes = scopes;
        let expr = settled(bound?.expr);
        match crate::zone::in_zone(expr, self.session.zone) {
            Expr::Literal { value, ty } => Ok((value, ty)),
            expr if self.params.described().is_some() && has_parameter(&expr) => {
                let text = "describing a statement that needs the value of a parameter to be bound";
                Err(located(Error::not_supported(text), ast))
            }
            _ => Err(located(Error::input(format!("{ast} is not a constant")), ast)),
        }
    }
}

/// True if an expression depends on a parameter.
fn has_parameter(expr: &Expr) -> bool {
    let mut found = false;
    expr.visit(&mut |part| found |= matches!(part, Expr::Parameter { .. }));
    found
}

/// The error for an order by what is none of the results of a set operation.
fn not_a_result(error: Error) -> Error {
    if ![sqlstate::NO_COLUMN, sqlstate::NO_TABLE].contains(&error.sqlstate()) {
        return error;
    }
    let text =
        format!("ORDER BY after a set operation can only name columns of its result: {}", error.message());
    let position = error.position();
    let error = Error::input(text).with_sqlstate(error.sqlstate());
    position.map_or(error.clone(), |position| error.with_position(position))
}

/// The names of the tables whose rows a query counts by `count(t.*)`, in lower case.
pub(crate) fn counted(query: &Query) -> HashSet<String> {
    struct Look(HashSet<String>);
    impl Visitor for Look {
        type Break = std::convert::Infallible;
        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<Self::Break> {
            if let ast::Expr::Function(function) = expr
                && let FunctionArguments::List(list) = &function.args
                && let [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table))] =
                    list.args.as_slice()
            {
                let own = table.0.last().and_then(|part| part.as_ident());
                self.0.extend(own.map(|ident| ident.value.to_ascii_lowercase()));
            }
            ControlFlow::Continue(())
        }
    }
    let mut look = Look(HashSet::new());
    let _ = query.walk(&mut look);
    look.0
}

/// Takes a range of the rows.
pub(crate) fn limited(node: &mut Node, range: Range) {
    let Range { offset, count, .. } = range;
    if let Some(count) = count {
        limit_sort(node, offset.saturating_add(count));
    }
    if offset > 0 || count.is_some() {
        *node = Node::Limit(Limit { input: take(node), offset, count });
    }
}

/// Sets the limit of a sort below projections.
fn limit_sort(node: &mut Node, count: usize) {
    match node {
        Node::Sort(sort) => sort.limit = Some(sort.limit.map_or(count, |old| old.min(count))),
        Node::Project(project) => limit_sort(&mut project.input, count),
        _ => {}
    }
}

/// The place of the result that a number in ORDER BY or GROUP BY means; `None` if it is no number.
///
/// # Errors
/// Input, if there is no such result.
pub(crate) fn ordinal(ast: &ast::Expr, count: usize) -> Result<Option<usize>> {
    let ast::Expr::Value(value) = ast else { return Ok(None) };
    let ast::Value::Number(text, _) = &value.value else { return Ok(None) };
    let Ok(number) = text.parse::<usize>() else { return Ok(None) };
    match number.checked_sub(1).filter(|place| *place < count) {
        Some(place) => Ok(Some(place)),
        None => {
            let error = Error::input(format!("there is no result number {number}, there are {count}"));
            Err(located(error, ast))
        }
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Column { .. })
}

/// Names of results, each with its place; `None` for one that several have.
pub(crate) fn places(items: &[Item]) -> HashMap<String, Vec<usize>> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        places.entry(item.name.to_ascii_lowercase()).or_default().push(place);
    }
    places
}
