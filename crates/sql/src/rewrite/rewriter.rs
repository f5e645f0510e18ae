//! The last pass before binding, over all queries and expressions of a statement: names are folded, results
//! are named as they are written, and each construct is passed to the module that rewrites it.
//!
//! The earlier passes are listed in [`super`].

use super::{
    conditions, grouping, intervals, nested, order_by, orders, qualify, recursive, rows, ties, unnest_order,
    unnests, using, volatile, windows,
};
use crate::binding::context::{Context, ResultNames};
use crate::binding::operators::{IS_DISTINCT, IS_NOT_DISTINCT};
use crate::functions::{Library, outer_aggregate, sequence, window_call};
use crate::hidden::{EXACT, NEAREST, SETS, hidden, set_marker};
use entasis_engine::plan::SetKind;
use entasis_functions::windows::is_window_function;
use entasis_syntax::build::{as_type, call};
use entasis_syntax::clauses;
use entasis_syntax::parse::parse_query;
use entasis_syntax::place::span_position;
use entasis_syntax::sequence_call;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Distinct, DuplicateTreatment, ExcludeSelectItem, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Spanned, TableAlias,
    TableFactor, TableWithJoins, UnaryOperator, Value, VisitorMut,
};
use sqlparser::tokenizer::Span;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Rewrites a statement, construct by construct.
pub(super) struct Rewriter<'a> {
    /// The context of the statement.
    context: &'a Context<'a>,
    /// How the names of its results may change.
    names: ResultNames,
    /// Whether this is within the arguments of a table function, which may be nested.
    in_arguments: bool,
    /// Number of enclosing queries.
    depth: usize,
}

impl VisitorMut for Rewriter<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        order_by::all(query);
        order_by::distinct_on(query);
        flow(clauses::query(query))?;
        if let Some(with) = &mut query.with {
            if with.recursive {
                flow(recursive::settle(with))?;
            }
            for cte in &mut with.cte_tables {
                flow(clauses::cte(cte))?;
                fold_alias(&mut cte.alias);
            }
        }
        flow(ties::apply(query))?;
        // FETCH FIRST n ROWS ONLY is LIMIT n.
        if let Some(fetch) = query.fetch.take() {
            use sqlparser::ast::LimitClause;
            if fetch.percent {
                return ControlFlow::Break(Error::not_supported("FETCH FIRST … PERCENT"));
            }
            match &mut query.limit_clause {
                Some(LimitClause::LimitOffset { limit, .. }) if limit.is_none() => *limit = fetch.quantity,
                None => {
                    let limit = fetch.quantity;
                    query.limit_clause =
                        Some(LimitClause::LimitOffset { limit, offset: None, limit_by: vec![] });
                }
                Some(_) => return ControlFlow::Break(Error::input("a query has both LIMIT and FETCH")),
            }
        }
        flow(windows::name_windows(query))?;
        flow(grouping::apply(query))?;
        qualify::with_a_window(query);
        flow(unnest_order::apply(query))?;
        order_by::results(query);
        order_by::columns(query, self.depth > 0 || self.names == ResultNames::Kept);
        self.depth += 1;
        self.set_expr(&mut query.body)
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        volatile::tell_aggregates_apart(select);
        tell_literals_apart(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<Error> {
        fold_name(name);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        flow(clauses::table_factor(factor))?;
        flow(unnests::table_factor(factor))?;
        match factor {
            TableFactor::Table { alias, args, .. } => {
                self.in_arguments = args.is_some();
                alias.iter_mut().for_each(fold_alias);
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::NestedJoin { alias, .. }
            | TableFactor::Function { alias, .. } => alias.iter_mut().for_each(fold_alias),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, _: &mut TableFactor) -> ControlFlow<Error> {
        self.in_arguments = false;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        flow(clauses::expression(expr))?;
        conditions::operands(expr);
        match expr {
            // A literal with an exponent is a DOUBLE; the binder would make it a decimal of hundreds of
            // digits.
            Expr::Value(literal) => {
                if let Value::Number(text, _) = &literal.value
                    && text.contains(['e', 'E'])
                {
                    *expr = as_double(text);
                }
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                if let Some(operand) = first_operand(right) {
                    // The parser takes everything that follows for the right side: `a IS DISTINCT FROM b AND
                    // c` is `(a IS DISTINCT FROM b) AND c`.
                    let nothing = || Box::new(Expr::Value(Value::Null.into()));
                    let left = std::mem::replace(left, nothing());
                    let taken = Box::new(std::mem::replace(operand, *nothing()));
                    let distinct = matches!(expr, Expr::IsDistinctFrom(..));
                    let (Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right)) = expr else {
                        unreachable!("matched above")
                    };
                    let test = if distinct { Expr::IsDistinctFrom } else { Expr::IsNotDistinctFrom };
                    *first_operand(right).expect("found above") = test(left, taken);
                    *expr = std::mem::replace(right, *nothing());
                    return self.pre_visit_expr(expr);
                }
                return flow(rows::expression(expr));
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: power } => {
                // A sign binds more tightly than a power: `-2 ^ 2` is `(-2) ^ 2`.
                if let Some(base) = base_of_power(power) {
                    let taken = std::mem::replace(base, Expr::Value(Value::Null.into()));
                    *base = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(taken) };
                    *expr = std::mem::replace(&mut **power, Expr::Value(Value::Null.into()));
                }
            }
            Expr::Interval(_) | Expr::AtTimeZone { .. } => {
                flow(intervals::expression(expr))?;
                return self.pre_visit_expr(expr);
            }
            Expr::Identifier(ident) => fold(ident),
            Expr::CompoundIdentifier(idents) => idents.iter_mut().for_each(fold),
            Expr::Function(function) if nested::is_struct_pack(function) => match nested::struct_pack(expr) {
                true => {}
                false => {
                    return unsupported("struct_pack without names, as in struct_pack(a := 1)", expr.span());
                }
            },
            Expr::Function(function) => return self.function(function),
            Expr::Array(_) | Expr::Map(_) | Expr::Dictionary(_) if self.in_arguments => {}
            Expr::Array(_) | Expr::Dictionary(_) => nested::literal(expr),
            Expr::Struct { .. } | Expr::Map(_) => {
                return unsupported("STRUCT(…) and MAP {…}", expr.span());
            }
            Expr::CompoundFieldAccess { .. } => nested::accesses(expr),
            Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) => {
                return unsupported("sets of keys outside of GROUP BY", expr.span());
            }
            Expr::Lambda(_) => return unsupported("lambda functions", expr.span()),
            Expr::Tuple(_) => {
                return unsupported("row values other than in comparisons, IN and IS NULL", expr.span());
            }
            Expr::SimilarTo { negated, expr: text, pattern, escape_char } => {
                let nothing = || Box::new(Expr::Value(Value::Null.into()));
                let text = std::mem::replace(text, nothing());
                let pattern = std::mem::replace(pattern, nothing());
                let escape = escape_char.take().map(Expr::Value);
                let pattern = call("similar_to_escape", [*pattern].into_iter().chain(escape).collect());
                let op =
                    if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
                *expr = Expr::BinaryOp { left: text, op, right: Box::new(pattern) };
            }
            Expr::BinaryOp { .. }
            | Expr::InList { .. }
            | Expr::InSubquery { .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::Between { .. }
            | Expr::AnyOp { .. }
            | Expr::AllOp { .. } => return flow(rows::expression(expr)),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        // As an operator, its operands are typed like those of comparisons.
        if let Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) = expr {
            let [left, right] =
                [left, right].map(|side| std::mem::replace(side, Box::new(Expr::Value(Value::Null.into()))));
            let name = if matches!(expr, Expr::IsDistinctFrom(..)) { IS_DISTINCT } else { IS_NOT_DISTINCT };
            *expr = Expr::BinaryOp { left, op: BinaryOperator::Custom(name.to_owned()), right };
        }
        if let Expr::Cast { .. } = expr {
            let cast = std::mem::replace(expr, Expr::Value(Value::Null.into()));
            *expr = exact(cast);
        }
        ControlFlow::Continue(())
    }
}

impl<'a> Rewriter<'a> {
    /// A rewriter for a statement whose results may be renamed as `names` says.
    pub(super) fn new(context: &'a Context<'a>, names: ResultNames) -> Rewriter<'a> {
        Rewriter { context, names, in_arguments: false, depth: 0 }
    }

    fn function(&mut self, function: &mut Function) -> ControlFlow<Error> {
        let name = function.name.to_string().trim_matches('"').to_ascii_lowercase();
        windows::take_nulls_clause(function);
        if name == "count"
            && let FunctionArguments::List(list) = &function.args
            && list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
            && let [FunctionArg::Unnamed(FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_))] =
                list.args.as_slice()
        {
            let error = Error::input("count(DISTINCT *) does not say of which columns");
            let error = error
                .with_sqlstate(sqlstate::SYNTAX)
                .with_hint("count the rows of SELECT DISTINCT … in a subquery");
            return ControlFlow::Break(error);
        }
        if function.over.is_some() {
            if let Err(error) = orders::within_group(&name, function) {
                return ControlFlow::Break(error);
            }
            return flow(windows::call(&name, function, self.context));
        }
        if window_call::number_in(&name).is_some() {
            return ControlFlow::Continue(());
        }
        if is_window_function(&name) && !Library::get().has(&name) {
            let error = Error::input(format!("{name} is a window function, and needs OVER (…)"));
            return ControlFlow::Break(match span_position(function.name.span()) {
                Some(position) => error.with_position(position),
                None => error,
            });
        }
        if name == SETS
            || name == NEAREST
            || name == unnests::UNNEST
            || outer_aggregate::named(&name).is_some()
        {
            return ControlFlow::Continue(());
        }
        if let Some(kind) = sequence_call::Kind::of(&name) {
            return flow(name_sequence(function, kind));
        }
        if ["current_schema", "current_database"].contains(&name.as_str())
            && let FunctionArguments::List(list) = &mut function.args
            && list.args.is_empty()
        {
            // It depends on the connection: a call of a function that returns it.
            let (database, schema) = self.context.current();
            let current = if name == "current_schema" { schema } else { database };
            let current = Expr::value(Value::SingleQuotedString(current));
            list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(current)));
            function.name = ObjectName::from(Ident::new("coalesce"));
            return ControlFlow::Continue(());
        }
        if let Err(error) = orders::within_group(&name, function) {
            return ControlFlow::Break(error);
        }
        let library = Library::get();
        if !library.has(&name) {
            if Library::is_nested(&name) {
                return unsupported(&format!("the function {name}"), function.name.span());
            }
            let mut error =
                Error::input(format!("there is no function {name}")).with_sqlstate(sqlstate::NO_FUNCTION);
            if let Some(position) = span_position(function.name.span()) {
                error = error.with_position(position);
            }
            let names = library.names();
            return ControlFlow::Break(
                match entasis_vector::suggest::nearest(&name, names.iter().map(String::as_str)) {
                    Some(near) => error.with_hint(format!("did you mean {near}?")),
                    None => error,
                },
            );
        }
        flow(clauses::function(function, |name| Library::get().aggregate(name).is_some()))
    }

    fn set_expr(&mut self, body: &mut SetExpr) -> ControlFlow<Error> {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                self.set_expr(left)?;
                self.set_expr(right)?;
                let kind = match op {
                    SetOperator::Union => return ControlFlow::Continue(()),
                    SetOperator::Intersect => SetKind::Intersect,
                    SetOperator::Except | SetOperator::Minus => SetKind::Except,
                };
                let all = match set_quantifier {
                    SetQuantifier::All => true,
                    SetQuantifier::None | SetQuantifier::Distinct => false,
                    _ => return ControlFlow::Break(Error::not_supported("INTERSECT and EXCEPT BY NAME")),
                };
                let marker = set_marker(kind, all);
                let text = format!("SELECT * FROM (SELECT 1 UNION ALL SELECT 1) AS \"{marker}\"");
                let mut template = parse_query(&text).expect("a constant but for the marker");
                if let SetExpr::Select(select) = &mut *template.body
                    && let TableFactor::Derived { subquery, .. } = &mut select.from[0].relation
                    && let SetExpr::SetOperation { left: l, right: r, .. } = &mut *subquery.body
                {
                    std::mem::swap(l, left);
                    std::mem::swap(r, right);
                }
                *body = *template.body;
                ControlFlow::Continue(())
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                ControlFlow::Break(Error::not_supported("statements that change rows within a query"))
            }
            SetExpr::Table(_) => {
                ControlFlow::Break(Error::not_supported("TABLE name as a query").with_hint("write FROM name"))
            }
            // Queries in brackets are visited separately.
            SetExpr::Query(_) | SetExpr::Values(_) => ControlFlow::Continue(()),
        }
    }

    fn select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(clauses::select(select))?;
        if let GroupByExpr::All(modifiers) = &select.group_by
            && !modifiers.is_empty()
        {
            return unsupported("GROUP BY ALL with sets", select.span());
        }
        let tables = conditions::names_of(&select.from);
        for table in &mut select.from {
            flow(settle_joins(table, &tables))?;
        }
        if let Some(expr) = &select.selection {
            flow(conditions::unambiguous(expr, &tables, &[]))?;
        }
        if let Some(expr) = &select.having {
            let results = conditions::result_names(select);
            flow(conditions::unambiguous(expr, &tables, &results))?;
        }
        for expr in [&mut select.selection, &mut select.having].into_iter().flatten() {
            conditions::condition(expr);
            flow(rows::condition(expr))?;
        }
        if let Some(Distinct::On(_)) = &select.distinct
            && matches!(select.group_by, GroupByExpr::All(_))
        {
            return ControlFlow::Break(Error::not_supported("DISTINCT ON with GROUP BY ALL"));
        }
        // GROUP BY (a, b) groups by both, and GROUP BY () makes one group of all rows, as an aggregate does.
        if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
            if groups.is_empty() && select.having.is_some() {
                one_group(&mut select.having);
            }
            if !groups.is_empty()
                && groups.iter().all(|group| matches!(group, Expr::Tuple(parts) if parts.is_empty()))
            {
                one_group(&mut select.having);
            }
            *groups = std::mem::take(groups)
                .into_iter()
                .flat_map(|group| match group {
                    Expr::Tuple(parts) => parts,
                    other => vec![other],
                })
                .collect();
        }
        let wildcard = select
            .projection
            .iter()
            .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
        let mut seen = HashSet::new();
        // A named result and a column of a table cannot have the same name.
        let (mut columns, mut aliases) = (HashSet::new(), HashSet::new());
        for (i, item) in select.projection.iter_mut().enumerate() {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let text = expr.to_string();
                    let is_name = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                    let is_new = seen.insert(text.to_ascii_lowercase());
                    let name = match expr {
                        Expr::Identifier(ident) => ident.value.to_ascii_lowercase(),
                        Expr::CompoundIdentifier(idents) => {
                            idents.last().map_or(text, |ident| ident.value.to_ascii_lowercase())
                        }
                        _ => text,
                    };
                    let is_free = is_new
                        && !aliases.contains(&name)
                        && !(self.names == ResultNames::Suffixed && (wildcard || i > 0));
                    let alias = match (is_name, is_free) {
                        (true, true) => {
                            columns.insert(name);
                            continue;
                        }
                        (false, true) => name,
                        (_, false) => format!("{name}{}", hidden(i as u64)),
                    };
                    let expr = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
                    aliases.insert(alias.clone());
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', alias) };
                }
                SelectItem::ExprWithAlias { alias, .. } => {
                    fold(alias);
                    if !seen.insert(alias.value.clone()) || columns.contains(&alias.value) {
                        *alias = Ident::with_quote('"', format!("{}{}", alias.value, hidden(i as u64)));
                    }
                    aliases.insert(alias.value.clone());
                }
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                    flow(clauses::wildcard(options))?;
                    match &mut options.opt_exclude {
                        Some(ExcludeSelectItem::Single(name)) => fold_name(name),
                        Some(ExcludeSelectItem::Multiple(names)) => names.iter_mut().for_each(fold_name),
                        None => {}
                    }
                    for replaced in options.opt_replace.iter_mut().flat_map(|replace| &mut replace.items) {
                        fold(&mut replaced.column_name);
                    }
                }
                SelectItem::ExprWithAliases { .. } => {
                    return ControlFlow::Break(Error::not_supported("several names for one expression"));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

// ---- parts ------------------------------------------------------------------------------------------------

/// Refuses an unsupported feature, with its position.
fn unsupported(feature: &str, at: Span) -> ControlFlow<Error> {
    let error = Error::not_supported(feature);
    ControlFlow::Break(match span_position(at) {
        Some(position) => error.with_position(position),
        None => error,
    })
}

/// The leftmost operand of a chain of AND and OR that is not in brackets.
fn first_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, .. } => {
            if matches!(**left, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }) {
                first_operand(left)
            } else {
                Some(left)
            }
        }
        _ => None,
    }
}

/// A condition on groups that is always true, so that there are groups.
fn one_group(having: &mut Option<Expr>) {
    let template = parse_query("SELECT 1 HAVING count(*) >= 0").expect("a constant");
    if let SetExpr::Select(select) = *template.body
        && let Some(always) = select.having
    {
        *having = Some(match having.take() {
            Some(own) => {
                let (left, right) = (Box::new(Expr::Nested(Box::new(own))), Box::new(always));
                Expr::BinaryOp { left, op: BinaryOperator::And, right }
            }
            None => always,
        });
    }
}

/// The base of a chain of powers.
fn base_of_power(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::BitwiseXor, .. } => {
            if matches!(**left, Expr::BinaryOp { op: BinaryOperator::BitwiseXor, .. }) {
                base_of_power(left)
            } else {
                Some(left)
            }
        }
        _ => None,
    }
}

/// `CAST('digits' AS DOUBLE)`.
fn as_double(digits: &str) -> Expr {
    as_type(Expr::Value(Value::SingleQuotedString(digits.into()).into()), "DOUBLE")
}

/// `exact(expr)`
fn exact(expr: Expr) -> Expr {
    call(EXACT, vec![expr])
}

/// Renames `nextval('s')` to the name by which the binder finds the sequence.
fn name_sequence(function: &mut Function, kind: sequence_call::Kind) -> Result<()> {
    let name = sequence_call::named_sequence(function)?;
    function.name = ObjectName::from(Ident::with_quote('"', sequence::call(kind, &name)));
    if let FunctionArguments::List(list) = &mut function.args {
        list.args.clear();
    }
    Ok(())
}

/// A result as the visitor returns it.
fn flow(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// `SELECT 'x' AS p, 'x' AS q … GROUP BY p, q`: the binder names keys by their texts, and refuses two of the
/// same name. So a repeated literal is replaced by another expression.
fn tell_literals_apart(select: &mut Select) {
    let is_literal = |expr: &Expr| matches!(expr, Expr::Value(_));
    match &mut select.group_by {
        GroupByExpr::Expressions(groups, _) if groups.is_empty() => return,
        GroupByExpr::Expressions(groups, _) => {
            let mut seen = HashSet::new();
            groups.retain(|group| !is_literal(group) || seen.insert(group.to_string()));
        }
        GroupByExpr::All(_) => {}
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    for item in &mut select.projection {
        let SelectItem::ExprWithAlias { expr, .. } = item else { continue };
        if is_literal(expr) {
            let times = seen.entry(expr.to_string()).or_default();
            for _ in 0..*times {
                *expr = exact(std::mem::replace(expr, Expr::Value(Value::Null.into())));
            }
            *times += 1;
        }
    }
}

/// Folds an identifier to lower case. An identifier in single quotes is a path, which is kept.
fn fold(ident: &mut Ident) {
    if ident.quote_style != Some('\'') {
        ident.value = ident.value.to_ascii_lowercase();
    }
}

fn fold_name(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(ident) = part {
            fold(ident);
        }
    }
}

fn fold_alias(alias: &mut TableAlias) {
    fold(&mut alias.name);
    for column in &mut alias.columns {
        fold(&mut column.name);
    }
}

/// Rewrites the conditions of joins, which see the columns of `tables`.
fn settle_joins(table: &mut TableWithJoins, tables: &[String]) -> Result<()> {
    for join in &mut table.joins {
        // SEMI and ANTI without a side keep the left one.
        let nothing = JoinOperator::CrossJoin(JoinConstraint::None);
        join.join_operator = match std::mem::replace(&mut join.join_operator, nothing) {
            JoinOperator::Semi(constraint) => JoinOperator::LeftSemi(constraint),
            JoinOperator::Anti(constraint) => JoinOperator::LeftAnti(constraint),
            other => other,
        };
        if let Some(JoinConstraint::On(condition)) = using::constraint(&mut join.join_operator) {
            conditions::unambiguous(condition, tables, &[])?;
            conditions::condition(condition);
            rows::condition(condition)?;
        }
    }
    Ok(())
}
