//! TABLESAMPLE and USING SAMPLE: a random sample of a relation's rows.
//!
//! For a share of the rows, each row is chosen by itself, also in SYSTEM: choosing whole blocks, which that
//! permits, would not be faster where blocks are pruned and decoded one by one. A number of rows is the first
//! ones in a random order. A REPEATABLE sample uses a hash of the row's number and the seed instead of
//! chance, and is the same as long as the rows are.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::from::From;
use crate::query::{Range, filter, limited, project, take};
use crate::settle::settled;
use entasis_engine::plan::{Frame, Node, Sort, SortKey, Window, WindowCall, WindowFunction};
use entasis_functions::chance;
use entasis_syntax::disguise::SAMPLE;
use entasis_vector::expr::{ArithmeticOp, CompareOp, Expr};
use entasis_vector::{DataType, Error, Result, Value};
use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, Select, SelectItem, TableSample, TableSampleKind,
    TableSampleUnit,
};

/// What is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Taken {
    /// A number of rows.
    Rows(usize),
    /// A share, in percent.
    Percent(f64),
}

/// A sample with its seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    taken: Taken,
    seed: Option<i64>,
}

/// True for the item that represents USING SAMPLE.
pub(crate) fn is_mark(ast: &ast::Expr) -> bool {
    let ast::Expr::Function(function) = ast else { return false };
    matches!(&function.name.0[..], [part] if part.as_ident().is_some_and(|name| name.value == SAMPLE))
}

/// The sample of a SELECT's rows of FROM, if it has one.
pub(crate) fn of_select(select: &Select) -> Option<Result<Sample>> {
    let mark = select.projection.iter().find_map(|item| match item {
        SelectItem::UnnamedExpr(ast) if is_mark(ast) => Some(ast),
        _ => None,
    })?;
    let ast::Expr::Function(function) = mark else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let values: Vec<&ast::Expr> = list
        .args
        .iter()
        .filter_map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
            _ => None,
        })
        .collect();
    let is_rows = matches!(values.get(1), Some(ast::Expr::Value(unit))
        if matches!(&unit.value, ast::Value::SingleQuotedString(unit) if unit == "rows"));
    let seed = match values.get(2) {
        Some(ast::Expr::Value(value)) => match seed_of(&value.value) {
            Ok(seed) => Some(seed),
            Err(error) => return Some(Err(error)),
        },
        _ => None,
    };
    let quantity = values.first()?;
    Some(taken(quantity, is_rows).map(|taken| Sample { taken, seed }))
}

/// A quantity of rows, checked.
fn taken(ast: &ast::Expr, is_rows: bool) -> Result<Taken> {
    let number = match ast {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => digits.parse::<f64>().ok(),
            _ => None,
        },
        _ => None,
    };
    let wrong = |text: String| Err(located(Error::input(text), ast));
    match (number, is_rows) {
        (Some(number), true) if number >= 0.0 && number.fract() == 0.0 => Ok(Taken::Rows(number as usize)),
        (Some(number), false) if (0.0..=100.0).contains(&number) => Ok(Taken::Percent(number)),
        (_, true) => wrong(format!("a sample has a whole number of rows, not {ast}")),
        (_, false) => wrong(format!("the share of a sample is a number of percent from 0 to 100, not {ast}")),
    }
}

fn seed_of(value: &ast::Value) -> Result<i64> {
    match value {
        ast::Value::Number(digits, _) => digits.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| Error::input("the seed of a sample is a whole number"))
}

impl<'a, 'q> Binder<'a, 'q> {
    /// A relation with its TABLESAMPLE.
    pub(crate) fn sampled(&mut self, mut from: From, sample: Option<&'q TableSampleKind>) -> Result<From> {
        let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
            sample
        else {
            return Ok(from);
        };
        let TableSample { modifier: _, name: _, quantity, seed, bucket, offset } = &**sample;
        let (Some(quantity), None, None) = (quantity, bucket, offset) else {
            return Err(Error::not_supported("TABLESAMPLE with BUCKET and OFFSET"));
        };
        let taken = taken(&quantity.value, quantity.unit == Some(TableSampleUnit::Rows))?;
        let seed = seed.as_ref().map(|seed| seed_of(&seed.value.value)).transpose()?;
        from.node = self.sampled_rows(from.node, &Sample { taken, seed })?;
        Ok(from)
    }

    /// A sample of the rows of a node.
    pub(crate) fn sampled_rows(&mut self, mut node: Node, sample: &Sample) -> Result<Node> {
        let double = |value: f64| Expr::literal(Value::Float(value), DataType::Float64);
        let chance = match sample.seed {
            None => chance::random(),
            Some(seed) => {
                let row = self.columns.add("row", DataType::Int64, false);
                let call = WindowCall {
                    function: WindowFunction::RowNumber,
                    frame: Frame::whole(),
                    ty: DataType::Int64,
                    ..WindowCall::row_number()
                };
                node = Node::Window(Window {
                    input: take(&mut node),
                    partition: Vec::new(),
                    order: Vec::new(),
                    calls: vec![(row, call)],
                    top: None,
                });
                let seed = Expr::literal(Value::Integer(seed.into()), DataType::Int64);
                let args = vec![Bound::known(self.columns.expr(row)), Bound::known(seed)];
                let hash = self.call("hash", args)?.into(DataType::Float64).expr;
                // The hash has 64 bits.
                let by = double(1.0 / 18_446_744_073_709_551_616.0);
                Expr::Arithmetic {
                    op: ArithmeticOp::Multiply,
                    left: Box::new(hash),
                    right: Box::new(by),
                    ty: DataType::Float64,
                }
            }
        };
        match sample.taken {
            Taken::Percent(percent) => {
                let scaled = Expr::Arithmetic {
                    op: ArithmeticOp::Multiply,
                    left: Box::new(chance),
                    right: Box::new(double(100.0)),
                    ty: DataType::Float64,
                };
                Ok(filter(node, settled(Expr::compare(CompareOp::Lt, scaled, double(percent)))))
            }
            Taken::Rows(count) => {
                let column = self.columns.add("chance", DataType::Float64, false);
                let input = project(node, vec![(column, chance)]);
                let key = SortKey { expr: self.columns.expr(column), descending: false, nulls_first: false };
                let mut sorted = Node::Sort(Sort { input: Box::new(input), keys: vec![key], limit: None });
                limited(&mut sorted, Range { offset: 0, count: Some(count), with_ties: false });
                Ok(sorted)
            }
        }
    }
}
