//! `TABLESAMPLE` and `USING SAMPLE`: a random sample of a relation's rows.
//!
//! ```text
//! FROM t a TABLESAMPLE BERNOULLI (10)  ⇒  FROM (SELECT * FROM t WHERE random() * 100 < 10) AS a
//! FROM t a TABLESAMPLE (10 ROWS)       ⇒  FROM (SELECT * FROM t ORDER BY random() LIMIT 10) AS a
//! … REPEATABLE (7)                     ⇒  the same with hash(row number, 7) instead of random()
//! SELECT … FROM t USING SAMPLE 10%     ⇒  FROM t TABLESAMPLE BERNOULLI (10)
//! SELECT … FROM t, u USING SAMPLE 10%  ⇒  FROM t, u WHERE random() * 100 < 10
//! ```
//! For a share of the rows, each row is chosen independently, also in `SYSTEM`: choosing whole blocks, which
//! that permits, would not be faster where blocks are pruned and decoded one by one. A repeatable sample is
//! the same as long as the rows are.
//!
//! The token pass converts DuckDB's forms to the parser's, and `USING SAMPLE` to a last result of its
//! `SELECT` ([`entasis_syntax::sample`]), which is removed here. It samples the rows of `FROM`, before
//! `WHERE`. Not supported: a number of rows, or `REPEATABLE`, for several tables.

use super::using::qualifier;
use crate::hidden::{MARK, SAMPLE};
use entasis_syntax::parse::parse_query;
use entasis_syntax::place::span_position;
use entasis_syntax::walk::WalkMut;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, LimitClause, Select,
    SelectItem, SetExpr, Spanned, Statement, TableAlias, TableFactor, TableSample, TableSampleKind,
    TableSampleModifier, TableSampleQuantity, TableSampleSeed, TableSampleSeedModifier, TableSampleUnit,
    TableWithJoins, Value, ValueWithSpan, VisitorMut,
};
use std::ops::ControlFlow;

/// True for the result that represents `USING SAMPLE`.
pub(super) fn is_mark(item: &SelectItem) -> bool {
    let SelectItem::UnnamedExpr(Expr::Function(function)) = item else { return false };
    matches!(&function.name.0[..], [part] if part.as_ident().is_some_and(|name| name.value == SAMPLE))
}

/// Replaces the samples of a statement by queries.
///
/// # Errors
/// Input, for an invalid share or number of rows; not supported, for other dialects' forms.
pub(super) fn apply(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Samples) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Samples;

impl VisitorMut for Samples {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let Some(at) = select.projection.iter().position(is_mark) else { return ControlFlow::Continue(()) };
        match using_sample(select, at) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match written_out(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// Applies the sample that a result represents to the rows of `FROM`.
fn using_sample(select: &mut Select, at: usize) -> Result<()> {
    let SelectItem::UnnamedExpr(Expr::Function(function)) = select.projection.remove(at) else {
        return Err(Error::internal("a mark of USING SAMPLE is a function"));
    };
    let FunctionArguments::List(list) = function.args else {
        return Err(Error::internal("a mark of USING SAMPLE has arguments"));
    };
    let arguments = list.args.into_iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => Some(value),
        _ => None,
    });
    let arguments: Vec<ValueWithSpan> = arguments.collect();
    let (number, unit, seed) = match arguments.as_slice() {
        [number, unit] => (number, unit, None),
        [number, unit, seed] => (number, unit, Some(seed)),
        _ => return Err(Error::internal("a mark of USING SAMPLE has two arguments or three")),
    };
    let is_rows = matches!(&unit.value, Value::SingleQuotedString(unit) if unit == "rows");
    let sample = TableSample {
        modifier: TableSampleModifier::TableSample,
        name: None,
        quantity: Some(TableSampleQuantity {
            parenthesized: true,
            value: Expr::Value(number.clone()),
            unit: Some(if is_rows { TableSampleUnit::Rows } else { TableSampleUnit::Percent }),
        }),
        seed: seed.map(|seed| TableSampleSeed {
            modifier: TableSampleSeedModifier::Repeatable,
            value: seed.clone(),
        }),
        bucket: None,
        offset: None,
    };
    if let [TableWithJoins { relation, joins }] = select.from.as_mut_slice()
        && joins.is_empty()
        && let TableFactor::Table { sample: slot, .. } | TableFactor::Derived { sample: slot, .. } = relation
        && slot.is_none()
    {
        *slot = Some(TableSampleKind::AfterTableAlias(Box::new(sample)));
        return Ok(());
    }
    if is_rows || seed.is_some() {
        let error =
            Error::not_supported("USING SAMPLE of a number of rows, or REPEATABLE, of several tables");
        return Err(
            error.with_hint("write the join as a subquery: FROM (SELECT … FROM a JOIN b …) USING SAMPLE …")
        );
    }
    let TableSample { quantity, .. } = sample;
    let quantity = quantity.ok_or_else(|| Error::internal("a sample has a quantity"))?;
    check_quantity(&quantity)?;
    let mut lucky = condition("random() * 100 < 0")?;
    if let Expr::BinaryOp { right, .. } = &mut lucky {
        **right = quantity.value;
    }
    select.selection = Some(match select.selection.take() {
        Some(own) => {
            let own = Box::new(Expr::Nested(Box::new(own)));
            Expr::BinaryOp { left: Box::new(lucky), op: BinaryOperator::And, right: own }
        }
        None => lucky,
    });
    Ok(())
}

/// Parses a condition.
fn condition(text: &str) -> Result<Expr> {
    match *parse_query(&format!("SELECT 1 WHERE {text}"))?.body {
        SetExpr::Select(select) => select.selection.ok_or_else(|| Error::internal("a WHERE has a condition")),
        _ => Err(Error::internal("a SELECT is one")),
    }
}

/// Refuses an invalid share or number of rows.
fn check_quantity(quantity: &TableSampleQuantity) -> Result<()> {
    let number = match &quantity.value {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse::<f64>().ok(),
            _ => None,
        },
        _ => None,
    };
    let is_rows = quantity.unit == Some(TableSampleUnit::Rows);
    let is_right = match number {
        Some(number) if is_rows => number >= 0.0 && number.fract() == 0.0,
        Some(number) => (0.0..=100.0).contains(&number),
        None => false,
    };
    if is_right {
        return Ok(());
    }
    let text = match is_rows {
        true => format!("a sample has a whole number of rows, not {}", quantity.value),
        false => {
            format!("the share of a sample is a number of percent from 0 to 100, not {}", quantity.value)
        }
    };
    let error = Error::input(text);
    Err(match span_position(quantity.value.span()) {
        Some(position) => error.with_position(position),
        None => error,
    })
}

fn written_out(factor: &mut TableFactor) -> Result<()> {
    let (TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. }) = factor else {
        return Ok(());
    };
    let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
        sample.take()
    else {
        return Ok(());
    };
    let TableSample { modifier: _, name: _, quantity, seed, bucket, offset } = *sample;
    let (Some(quantity), None, None) = (quantity, bucket, offset) else {
        return Err(Error::not_supported("TABLESAMPLE with BUCKET and OFFSET"));
    };
    check_quantity(&quantity)?;
    let is_rows = quantity.unit == Some(TableSampleUnit::Rows);
    let alias = alias_of(factor);
    let text = match (is_rows, &seed) {
        (true, None) => "SELECT * FROM t ORDER BY random() LIMIT 0".to_owned(),
        (false, None) => "SELECT * FROM t WHERE random() * 100 < 0".to_owned(),
        (_, Some(seed)) => repeatable(seed, is_rows)?,
    };
    let mut query = parse_query(&text)?;
    if let Some(LimitClause::LimitOffset { limit: Some(limit), .. }) = &mut query.limit_clause {
        *limit = quantity.value.clone();
    }
    let SetExpr::Select(select) = &mut *query.body else { return Err(Error::internal("a SELECT is one")) };
    if let Some(Expr::BinaryOp { right, op: BinaryOperator::Lt, .. }) = &mut select.selection {
        **right = quantity.value;
    }
    match &mut select.from[0].relation {
        TableFactor::Derived { subquery, .. } => match &mut *subquery.body {
            SetExpr::Select(numbered) => std::mem::swap(&mut numbered.from[0].relation, factor),
            _ => return Err(Error::internal("a SELECT is one")),
        },
        relation => std::mem::swap(relation, factor),
    }
    *factor = TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
    Ok(())
}

/// A query for a sample of `t` that is the same for the same seed.
fn repeatable(seed: &TableSampleSeed, is_rows: bool) -> Result<String> {
    let seed = match &seed.value.value {
        Value::Number(digits, _) => digits.parse::<i64>().ok(),
        _ => None,
    };
    let seed = seed.ok_or_else(|| Error::input("the seed of a sample is a whole number"))?;
    let row = format!("\"{MARK}row\"");
    let rows = format!(
        "SELECT * EXCLUDE ({row}) FROM (SELECT *, row_number() OVER () AS {row} FROM t) AS \"{MARK}rows\""
    );
    // The hash has 64 bits.
    Ok(match is_rows {
        true => format!("{rows} ORDER BY hash({row}, {seed}), {row} LIMIT 0"),
        false => {
            format!("{rows} WHERE CAST(hash({row}, {seed}) AS DOUBLE) * (100.0 / 18446744073709551616.0) < 0")
        }
    })
}

/// The alias of the relation, which is removed from it; otherwise its name.
fn alias_of(factor: &mut TableFactor) -> TableAlias {
    let name = qualifier(factor);
    let own = match factor {
        TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } => alias.take(),
        _ => None,
    };
    own.unwrap_or_else(|| {
        let name = name.unwrap_or_else(|| Ident::with_quote('"', format!("{MARK}sample")));
        TableAlias { explicit: true, name, columns: Vec::new(), at: None }
    })
}
