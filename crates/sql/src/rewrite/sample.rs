//! `TABLESAMPLE`: some of a relation's rows, by chance.
//!
//! ```text
//! FROM t a TABLESAMPLE BERNOULLI (10)  ⇒  FROM (SELECT * FROM t WHERE random() * 100 < 10) AS a
//! FROM t a TABLESAMPLE (10 ROWS)       ⇒  FROM (SELECT * FROM t ORDER BY random() LIMIT 10) AS a
//! ```
//! A share of the rows is the rows that each by itself has been lucky, in `SYSTEM`, too: that it may take whole blocks makes it no
//! faster where blocks are pruned and decoded by themselves. Not here: the same rows once more (`REPEATABLE`).

use super::using::qualifier;
use crate::hidden::MARK;
use crate::parse::{parse_query, span_position};
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, LimitClause, SetExpr, Spanned, Statement, TableAlias, TableFactor, TableSample,
    TableSampleKind, TableSampleUnit, Value, VisitMut, VisitorMut,
};
use entasis_vector::{Error, Result};
use std::ops::ControlFlow;

/// Writes out the samples of a statement.
///
/// # Errors
/// Input, for a share or a number of rows that there is not; not supported, for `REPEATABLE` and other dialects' forms.
pub(super) fn apply(statement: &mut Statement) -> Result<()> {
    match VisitMut::visit(statement, &mut Samples) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Samples;

impl VisitorMut for Samples {
    type Break = Error;

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match written_out(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn written_out(factor: &mut TableFactor) -> Result<()> {
    let (TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. }) = factor else { return Ok(()) };
    let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample.take()
    else {
        return Ok(());
    };
    let TableSample { modifier: _, name: _, quantity, seed, bucket, offset } = *sample;
    if seed.is_some() {
        return Err(Error::not_supported("TABLESAMPLE … REPEATABLE"));
    }
    let (Some(quantity), None, None) = (quantity, bucket, offset) else {
        return Err(Error::not_supported("TABLESAMPLE with BUCKET and OFFSET"));
    };
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
    if !is_right {
        let text = match is_rows {
            true => format!("a sample has a whole number of rows, not {}", quantity.value),
            false => format!("the share of a sample is a number of percent from 0 to 100, not {}", quantity.value),
        };
        let error = Error::input(text);
        return Err(match span_position(quantity.value.span()) {
            Some(position) => error.with_position(position),
            None => error,
        });
    }
    let alias = alias_of(factor);
    let text = match is_rows {
        true => "SELECT * FROM t ORDER BY random() LIMIT 0",
        false => "SELECT * FROM t WHERE random() * 100 < 0",
    };
    let mut query = parse_query(text)?;
    if let Some(LimitClause::LimitOffset { limit: Some(limit), .. }) = &mut query.limit_clause {
        *limit = quantity.value.clone();
    }
    let SetExpr::Select(select) = &mut *query.body else { return Err(Error::internal("a SELECT is one")) };
    if let Some(Expr::BinaryOp { right, op: BinaryOperator::Lt, .. }) = &mut select.selection {
        **right = quantity.value;
    }
    std::mem::swap(&mut select.from[0].relation, factor);
    *factor = TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
    Ok(())
}

/// The name by which the statement knows the relation, which is taken from it.
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
