//! What is believed of rows that are not there yet: how many, and what their columns look like.
//!
//! An [`Estimate`] knows two counts of distinct values for each column and says what expressions over its
//! columns look like. How it is derived from a plan is in [`super::rows`], how predicates narrow it in
//! [`super::selectivity`].

use crate::plan::Reference;
use entasis_vector::expr::{ArithmeticOp, ColumnMeta, DatePart, Expr, Function};
use entasis_vector::{ColumnId, DataType, Value};
use std::collections::HashMap;

/// What is believed of a subplan's result.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    /// Rows.
    pub rows: f64,
    /// Rows before any filter, the most that the largest input ever had.
    pub base: f64,
    /// By column.
    pub(super) columns: HashMap<ColumnId, ColumnEstimate>,
    /// What was found of joins of two columns.
    pub references: Vec<Reference>,
}

/// What is believed of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnEstimate {
    /// Distinct values before filters on other columns.
    pub domain: f64,
    /// Distinct values that are left.
    pub distinct: f64,
    /// Smallest and largest value that is left, as [`position`] places them.
    pub range: Option<(f64, f64)>,
    /// The range of the domain.
    pub span: Option<(f64, f64)>,
    /// Mean and standard deviation, if the values are bell-shaped: sums and counts.
    pub bell: Option<(f64, f64)>,
    /// Share of rows that are NULL.
    pub nulls: f64,
}

impl ColumnEstimate {
    /// A column with `distinct` values of which nothing else is known.
    pub(crate) fn of_distinct(distinct: f64) -> ColumnEstimate {
        let distinct = distinct.max(1.0);
        ColumnEstimate { domain: distinct, distinct, range: None, span: None, bell: None, nulls: 0.0 }
    }

    fn constant(value: &Value) -> ColumnEstimate {
        let mut column = ColumnEstimate::of_distinct(1.0);
        column.range = position(value).map(|p| (p, p));
        column.span = column.range;
        column.nulls = if value.is_null() { 1.0 } else { 0.0 };
        column
    }

    fn spread(&self) -> Spread {
        Spread { range: self.range, span: self.span, bell: self.bell }
    }

    fn with(self, Spread { range, span, bell }: Spread) -> ColumnEstimate {
        ColumnEstimate { range, span, bell, ..self }
    }
}

/// Where values lie: these parts of a [`ColumnEstimate`].
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    range: Option<(f64, f64)>,
    span: Option<(f64, f64)>,
    bell: Option<(f64, f64)>,
}

/// Where a value stands on the number line. Text is placed by its first bytes, so that ranges of text work
/// too.
pub(crate) fn position(value: &Value) -> Option<f64> {
    let bytes = |text: &[u8]| {
        text.iter().chain(std::iter::repeat(&0)).take(6).fold(0.0, |p, b| p * 256.0 + *b as f64)
    };
    match value {
        Value::Null => None,
        Value::Boolean(v) => Some(*v as u8 as f64),
        Value::Integer(v) => Some(*v as f64),
        Value::Float(v) => v.is_finite().then_some(*v),
        Value::Text(v) => Some(bytes(v.as_bytes())),
        Value::Bytes(v) => Some(bytes(v)),
        Value::Interval(v) => Some(v.estimate() as f64),
    }
}

/// Distinct values left when `rows` rows with `distinct` values are thinned out to the share `kept`: each
/// value stands in `rows / distinct` rows, and is gone if none of them is kept.
fn thin_out(distinct: f64, rows: f64, kept: f64) -> f64 {
    if kept >= 1.0 || distinct <= 0.0 || rows <= 0.0 {
        return distinct;
    }
    (distinct * (1.0 - (1.0 - kept).powf((rows / distinct).max(1.0)))).max(1.0)
}

impl Estimate {
    /// Of no rows and no columns.
    pub(crate) fn nothing() -> Estimate {
        Estimate { rows: 0.0, base: 0.0, columns: HashMap::new(), references: Vec::new() }
    }

    /// Two inputs side by side, as many rows as the larger: enough to look at expressions over both.
    pub(crate) fn beside(mut self, other: &Estimate) -> Estimate {
        self.rows = self.rows.max(other.rows);
        self.base = self.base.max(other.base);
        self.columns.extend(other.columns.iter().map(|(id, column)| (*id, *column)));
        self
    }

    /// What is believed of column `id`: at worst that all rows differ.
    pub(crate) fn column(&self, id: ColumnId) -> ColumnEstimate {
        self.columns.get(&id).copied().unwrap_or_else(|| ColumnEstimate::of_distinct(self.rows))
    }

    /// What is believed of column `id`, of type `ty`, as far as it says how many bytes its values need.
    pub(crate) fn meta(&self, id: ColumnId, ty: DataType) -> ColumnMeta {
        let column = self.column(id);
        let known = ColumnMeta::new(id, ty);
        let range =
            column.range.filter(|_| known.range.is_some()).map(|(low, high)| (low as i128, high as i128));
        ColumnMeta { nullable: column.nulls > 0.0, range: range.or(known.range), ..known }
    }

    pub(crate) fn column_mut(&mut self, id: ColumnId) -> Option<&mut ColumnEstimate> {
        self.columns.get_mut(&id)
    }

    /// Keeps the share `kept` of the rows, whichever they are.
    pub(crate) fn keep(&mut self, kept: f64) {
        let kept = kept.clamp(0.0, 1.0);
        for column in self.columns.values_mut() {
            column.distinct = thin_out(column.distinct, self.rows, kept);
        }
        self.rows *= kept;
    }

    /// What is believed of an expression over these columns.
    pub(crate) fn expression(&self, expr: &Expr) -> ColumnEstimate {
        match expr {
            Expr::Column { id, .. } => self.column(*id),
            Expr::Literal { value, .. } => ColumnEstimate::constant(value),
            Expr::Cast { input, .. } => self.expression(input).with(self.spread(expr)),
            Expr::Arithmetic { .. } => self.combination(expr).with(self.spread(expr)),
            Expr::Function { function: Function::Extract(part), args, .. } => {
                let input = self.expression(&args[0]);
                let days = match args[0].ty() {
                    DataType::Date => input.range.map(|(low, high)| high - low),
                    DataType::Timestamp | DataType::TimestampTz => {
                        input.range.map(|(low, high)| (high - low) / 8.64e10)
                    }
                    DataType::TimestampNs => input.range.map(|(low, high)| (high - low) / 8.64e13),
                    _ => None,
                };
                let values = match part {
                    DatePart::Year => days.map_or(10.0, |days| (days / 365.25).ceil()),
                    DatePart::Quarter => 4.0,
                    DatePart::Month => 12.0,
                    DatePart::Week => 53.0,
                    DatePart::Day => 31.0,
                    DatePart::DayOfWeek | DatePart::IsoDayOfWeek => 7.0,
                    DatePart::DayOfYear => 366.0,
                    DatePart::Hour => 24.0,
                    DatePart::Minute | DatePart::Second => 60.0,
                    _ => input.distinct,
                };
                ColumnEstimate::of_distinct(values.min(input.distinct))
            }
            Expr::Case { branches, otherwise, .. } => {
                let results = branches.iter().map(|(_, result)| result).chain(otherwise.as_deref());
                ColumnEstimate::of_distinct(
                    results.map(|r| self.expression(r).distinct).sum::<f64>().min(self.rows),
                )
            }
            _ if expr.ty() == DataType::Boolean => ColumnEstimate::of_distinct(2.0),
            _ => self.combination(expr),
        }
    }

    /// Where the values of an expression lie, as far as that is known. Only this descends into sums and
    /// products: their columns are collected once, however many terms they have.
    fn spread(&self, expr: &Expr) -> Spread {
        match expr {
            Expr::Column { id, .. } => self.column(*id).spread(),
            Expr::Literal { value, .. } => ColumnEstimate::constant(value).spread(),
            Expr::Cast { input, ty, .. } => {
                let Spread { range, span, bell } = self.spread(input);
                let cast = |range: Option<(f64, f64)>| range.and_then(|r| cast_range(r, input.ty(), *ty));
                Spread { range: cast(range), span: cast(span), bell: cast(bell) }
            }
            Expr::Arithmetic { op: op @ (ArithmeticOp::Add | ArithmeticOp::Subtract), left, right, ty }
                if left.ty() == *ty && right.ty() == *ty =>
            {
                let (a, b) = (self.spread(left), self.spread(right));
                let combined = |((al, ah), (bl, bh)): ((f64, f64), (f64, f64))| match op {
                    ArithmeticOp::Add => (al + bl, ah + bh),
                    _ => (al - bh, ah - bl),
                };
                let range = a.range.zip(b.range).map(combined);
                Spread { range, span: a.span.zip(b.span).map(combined), bell: None }
            }
            Expr::Arithmetic { op: ArithmeticOp::Multiply, left, right, ty } if ty.is_numeric() => {
                let (a, b) = (self.spread(left), self.spread(right));
                let range = a.range.zip(b.range).map(|((al, ah), (bl, bh))| {
                    let corners = [al * bl, al * bh, ah * bl, ah * bh];
                    (
                        corners.iter().copied().fold(f64::MAX, f64::min),
                        corners.iter().copied().fold(f64::MIN, f64::max),
                    )
                });
                // A constant factor stretches a bell too.
                let stretched = |bell: Option<(f64, f64)>, factor: Option<(f64, f64)>| match (bell, factor) {
                    (Some((mean, deviation)), Some((low, high))) if low == high => {
                        Some((mean * low, deviation * low.abs()))
                    }
                    _ => None,
                };
                let bell = stretched(b.bell, a.range).or(stretched(a.bell, b.range));
                Spread { range, span: None, bell }
            }
            _ => Spread::default(),
        }
    }

    /// An expression about which only its columns are known.
    fn combination(&self, expr: &Expr) -> ColumnEstimate {
        let mut read = Vec::new();
        expr.collect_columns(&mut read);
        read.sort_unstable();
        read.dedup();
        let product =
            |f: fn(ColumnEstimate) -> f64| read.iter().map(|id| f(self.column(*id))).product::<f64>();
        let mut column = ColumnEstimate::of_distinct(product(|c| c.distinct).min(self.rows));
        column.domain = product(|c| c.domain).min(self.base).max(column.distinct);
        column.nulls = 1.0 - read.iter().map(|id| 1.0 - self.column(*id).nulls).product::<f64>();
        column
    }

    /// Distinct combinations of values of `exprs`.
    pub(crate) fn groups<'a>(&self, exprs: impl Iterator<Item = &'a Expr>) -> f64 {
        let counts = exprs.map(|e| self.expression(e)).map(|c| c.distinct + c.nulls.ceil());
        combinations(counts.collect()).min(self.rows).max(self.rows.min(1.0))
    }
}

/// Distinct combinations of values of columns that have so many each. Columns are rarely independent, so each
/// further one, from the largest down, counts with half the exponent of the one before.
pub(crate) fn combinations(mut counts: Vec<f64>) -> f64 {
    counts.sort_by(|a, b| b.total_cmp(a));
    let mut groups: f64 = 1.0;
    for (i, count) in counts.iter().enumerate() {
        groups *= count.powf(0.5f64.powi(i.min(8) as i32));
    }
    groups
}

/// The range of a column after a cast between types that are numbers inside.
pub(super) fn cast_range(range: (f64, f64), from: DataType, to: DataType) -> Option<(f64, f64)> {
    let scale = |ty: DataType| match ty {
        DataType::Decimal { scale, .. } => Some(10f64.powi(scale as i32)),
        _ if ty.is_numeric() => Some(1.0),
        DataType::Date => Some(1.0 / 8.64e10),
        DataType::Timestamp | DataType::TimestampTz => Some(1.0),
        DataType::TimestampNs => Some(1000.0),
        _ => None,
    };
    if from.is_numeric() != to.is_numeric() {
        return None;
    }
    let factor = scale(to)? / scale(from)?;
    Some((range.0 * factor, range.1 * factor))
}

/// No column has more distinct values than there are rows.
pub(super) fn clamp_distinct(estimate: &mut Estimate) {
    let most = estimate.rows.max(1.0);
    for column in estimate.columns.values_mut() {
        column.distinct = column.distinct.min(most);
    }
}
