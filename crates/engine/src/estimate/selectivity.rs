//! Selectivity: the share of rows for which predicates are true.
//!
//! Comparisons of a column with constants narrow an interval of that column, all those of one column
//! together, so that `x >= a AND x < b` is one range and not two halves. The interval's share of the column's
//! range is the selectivity (uniform values), or the area under the bell for sums and counts. Everything else
//! is taken as independent:
//!
//! | predicate | share |
//! |---|---|
//! | `x = c`, `x IN (k values)` | 1 / distinct, k / distinct; next to nothing outside of the range |
//! | `x = y`, `x < y` | 1 / the larger distinct count, 1/3 |
//! | `x >= y AND x <= z`, a *band* of a join | by the ranges: the share above the lower bound and that below the upper one, less 1 |
//! | `LIKE 'a%'`, `LIKE '%a%'` | 1/10, 1/20 |
//! | `IS NULL` | share of NULL |
//! | `NOT`, `AND`, `OR` | complement, product, complement of the product of complements |
//! | anything else | 1/3 |

use super::values::{ColumnEstimate, Estimate, position};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, Value};

// A band's bounds are not independent: `y` is not above `z`, so that no pair violates both, and the shares of
// pairs that violate one or the other can be added. What is left is the mean distance of the bounds, by the
// range of `x`; two guesses of 1/3 would be 1/9.

/// A guess for what cannot be told.
const UNKNOWN: f64 = 1.0 / 3.0;
/// A guess for what should not match at all, but statistics may be stale.
const HARDLY: f64 = 1e-6;

/// The share of rows, 0 to 1, for which all `predicates` are true.
pub(crate) fn selectivity(predicates: &[Expr], input: &Estimate) -> f64 {
    let mut copy = input.clone();
    apply(predicates, &mut copy);
    if input.rows > 0.0 { copy.rows / input.rows } else { 1.0 }
}

/// The same of a join, whose sides `side` tells.
pub(crate) fn selectivity_between(predicates: &[Expr], input: &Estimate, side: Side<'_>) -> f64 {
    let mut copy = input.clone();
    apply_between(predicates, &mut copy, side);
    if input.rows > 0.0 { copy.rows / input.rows } else { 1.0 }
}

/// Which of several inputs a column comes from.
pub(crate) type Side<'a> = &'a dyn Fn(ColumnId) -> usize;

/// Keeps the rows for which all `predicates` are true, and narrows the columns that they compare.
pub(crate) fn apply(predicates: &[Expr], estimate: &mut Estimate) {
    apply_between(predicates, estimate, &|_| 0);
}

/// The same of a join, whose sides `side` tells.
pub(crate) fn apply_between(predicates: &[Expr], estimate: &mut Estimate, side: Side<'_>) {
    if predicates.is_empty() {
        return;
    }
    let mut intervals: Vec<(ColumnId, Interval)> = Vec::new();
    let mut listed = Vec::new();
    let mut share = 1.0;
    let flat = flatten(predicates);
    let bands = bands(&flat, |at, other| band(flat[at], flat[other], estimate, side));
    share *= bands.iter().map(|(_, _, share)| share).product::<f64>();
    let is_in_band = |at: usize| bands.iter().any(|(one, other, _)| *one == at || *other == at);
    let alone: Vec<&Expr> = (0..flat.len()).filter(|&at| !is_in_band(at)).map(|at| flat[at]).collect();
    for predicate in alone {
        match bound(predicate) {
            Some((id, op, value)) if estimate.column_mut(id).is_some() => {
                let index = intervals.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
                    intervals.push((id, Interval::default()));
                    intervals.len() - 1
                });
                intervals[index].1.narrow(op, value);
            }
            _ => {
                share *= one(predicate, estimate);
                if let Expr::InList { input, list } = predicate
                    && let Expr::Column { id, .. } = &**input
                {
                    listed.push((*id, list.len() as f64));
                }
            }
        }
    }
    let mut narrowed = Vec::new();
    for (id, interval) in intervals {
        let column = estimate.column(id);
        let (part, rest) = interval.apply(column);
        share *= part;
        narrowed.push((id, rest));
    }
    let before = estimate.rows;
    estimate.keep(share);
    // A filter on rows that exist keeps at least one of them, or every plan above looks free.
    estimate.rows = estimate.rows.max(before.min(1.0) * if share > 0.0 { 1.0 } else { 0.0 });
    for (id, rest) in narrowed {
        let rows = estimate.rows.max(1.0);
        if let Some(column) = estimate.column_mut(id) {
            *column = rest;
            column.distinct = column.distinct.min(rows);
        }
    }
    for (id, values) in listed {
        if let Some(column) = estimate.column_mut(id) {
            column.domain = column.domain.min(values);
            column.distinct = column.distinct.min(values);
        }
    }
}

fn flatten(predicates: &[Expr]) -> Vec<&Expr> {
    fn add<'a>(expr: &'a Expr, into: &mut Vec<&'a Expr>) {
        match expr {
            Expr::And(parts) => parts.iter().for_each(|part| add(part, into)),
            other => into.push(other),
        }
    }
    let mut flat = Vec::new();
    predicates.iter().for_each(|predicate| add(predicate, &mut flat));
    flat
}

/// `column op constant`, either way around, for a constant that has a place on the number line.
fn bound(predicate: &Expr) -> Option<(ColumnId, CompareOp, f64)> {
    let Expr::Compare { op, left, right } = predicate else { return None };
    let (id, op, value) = match (&**left, &**right) {
        (Expr::Column { id, .. }, Expr::Literal { value, .. }) => (*id, *op, value),
        (Expr::Literal { value, .. }, Expr::Column { id, .. }) => (*id, op.mirrored(), value),
        _ => return None,
    };
    match op {
        CompareOp::Eq | CompareOp::Lt | CompareOp::LtEq | CompareOp::Gt | CompareOp::GtEq => {
            Some((id, op, position(value)?))
        }
        _ => None,
    }
}

/// Pairs of predicates that are bands, no predicate in two of them, with the shares that `share` gives.
pub(crate) fn bands(
    predicates: &[&Expr],
    share: impl Fn(usize, usize) -> Option<f64>,
) -> Vec<(usize, usize, f64)> {
    let mut found: Vec<(usize, usize, f64)> = Vec::new();
    let inequalities: Vec<usize> =
        (0..predicates.len()).filter(|&at| ordered(predicates[at]).is_some()).collect();
    for (i, &at) in inequalities.iter().enumerate() {
        let is_taken =
            |at: usize, found: &[(usize, usize, f64)]| found.iter().any(|(a, b, _)| *a == at || *b == at);
        if is_taken(at, &found) {
            continue;
        }
        let free = inequalities[i + 1..].iter().filter(|&&other| !is_taken(other, &found));
        let pair = free.copied().find_map(|other| Some((at, other, share(at, other)?)));
        found.extend(pair);
    }
    found
}

/// What an inequality has below and above, neither of them a constant.
fn ordered(predicate: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::Compare { op, left, right } = predicate else { return None };
    let is_constant = |expr: &Expr| matches!(expr, Expr::Literal { .. });
    if is_constant(left) || is_constant(right) {
        return None;
    }
    match op {
        CompareOp::Lt | CompareOp::LtEq => Some((left, right)),
        CompareOp::Gt | CompareOp::GtEq => Some((right, left)),
        _ => None,
    }
}

/// The input that all columns of an expression come from, if it is one.
fn input_of(expr: &Expr, side: Side<'_>) -> Option<usize> {
    let mut columns = Vec::new();
    expr.collect_columns(&mut columns);
    let mut sides = columns.into_iter().map(side);
    let first = sides.next()?;
    sides.all(|other| other == first).then_some(first)
}

/// The share of rows for which both predicates are true, if they are a band of which enough is known: both
/// bounds are of one input, and the value is of another. Values of one row are seldom independent.
pub(crate) fn band(one: &Expr, other: &Expr, input: &Estimate, side: Side<'_>) -> Option<f64> {
    let ((below, above), (other_below, other_above)) = (ordered(one)?, ordered(other)?);
    let (low, value, high) = match () {
        () if above == other_below => (below, above, other_above),
        () if other_above == below => (other_below, below, above),
        () => return None,
    };
    let [of_low, of_value, of_high] = [low, value, high].map(|expr| input_of(expr, side));
    if of_low? != of_high? || of_low? == of_value? {
        return None;
    }
    let [low, value, high] = [low, value, high].map(|expr| input.expression(expr));
    let middle = |(from, to): (f64, f64)| (from + to) / 2.0;
    let (lows, values, highs) = (low.range?, value.range?, high.range?);
    // Bounds that cross say nothing of each other.
    if middle(highs) <= middle(lows) {
        return None;
    }
    let valid = [low, value, high].iter().map(|column| 1.0 - column.nulls).product::<f64>();
    let least = 1.0 / value.distinct.max(1.0);
    let share = at_most(lows, values) + at_most(values, highs) - 1.0;
    Some((share.clamp(least, 1.0) * valid).max(HARDLY))
}

/// The share of pairs whose first value is not above the second, both spread evenly over their ranges.
fn at_most((a, b): (f64, f64), (c, d): (f64, f64)) -> f64 {
    // The share of first values that are not above `y`, and its integral from the left.
    let below =
        |y: f64| if b > a { ((y - a) / (b - a)).clamp(0.0, 1.0) } else { f64::from(u8::from(y >= a)) };
    let area = |y: f64| match () {
        () if y <= a => 0.0,
        () if y >= b => (b - a) / 2.0 + (y - b),
        () => (y - a).powi(2) / (2.0 * (b - a)),
    };
    if d > c { ((area(d) - area(c)) / (d - c)).clamp(0.0, 1.0) } else { below(c) }
}

/// The values that the comparisons of one column leave.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    low: Option<f64>,
    high: Option<f64>,
    equal: Option<f64>,
}

impl Interval {
    fn narrow(&mut self, op: CompareOp, value: f64) {
        match op {
            CompareOp::Gt | CompareOp::GtEq => self.low = Some(self.low.map_or(value, |low| low.max(value))),
            CompareOp::Lt | CompareOp::LtEq => {
                self.high = Some(self.high.map_or(value, |high| high.min(value)))
            }
            _ => self.equal = Some(value),
        }
    }

    /// The share of `column`'s rows inside, and what the column is then.
    fn apply(self, column: ColumnEstimate) -> (f64, ColumnEstimate) {
        let mut rest = column;
        rest.nulls = 0.0;
        let valid = 1.0 - column.nulls;
        if let Some(value) = self.equal {
            rest.domain = 1.0;
            rest.distinct = 1.0;
            rest.bell = None;
            rest.range = Some((value, value));
            rest.span = rest.range;
            let outside = column.range.is_some_and(|(low, high)| value < low || value > high);
            return (if outside { HARDLY } else { valid / column.distinct.max(1.0) }, rest);
        }
        if let Some((mean, deviation)) = column.bell {
            let below = |x: f64| normal_cdf((x - mean) / deviation.max(1e-9));
            let share = self.high.map_or(1.0, below) - self.low.map_or(0.0, below);
            return (share.clamp(HARDLY, 1.0) * valid, rest);
        }
        let Some((low, high)) = column.range else {
            // Two bounds of an unknown range are BETWEEN.
            let bounds = self.low.is_some() as i32 + self.high.is_some() as i32;
            return (valid * UNKNOWN.powi(bounds), rest);
        };
        let (from, to) = (self.low.unwrap_or(low).max(low), self.high.unwrap_or(high).min(high));
        if from > to {
            return (HARDLY, rest);
        }
        let share = if high > low {
            ((to - from) / (high - low)).max(1.0 / column.distinct.max(1.0)).min(1.0)
        } else {
            1.0
        };
        rest.range = Some((from, to));
        rest.span = rest.range;
        rest.domain = (column.domain * share).max(1.0);
        rest.distinct = (column.distinct * share).max(1.0);
        (share * valid, rest)
    }
}

/// The area under the standard bell left of `x` (a logistic curve that is right to 0.01, with thinner tails
/// added).
fn normal_cdf(x: f64) -> f64 {
    1.0 / (1.0 + (-1.5976 * x - 0.070_56 * x.powi(3)).exp())
}

/// One predicate alone.
fn one(predicate: &Expr, input: &Estimate) -> f64 {
    match predicate {
        Expr::Literal { value: Value::Boolean(true), .. } => 1.0,
        Expr::Literal { .. } => 0.0,
        Expr::And(_) => selectivity(std::slice::from_ref(predicate), input),
        Expr::Or(parts) => {
            1.0 - parts
                .iter()
                .map(|part| 1.0 - selectivity(std::slice::from_ref(part), input))
                .product::<f64>()
        }
        Expr::Not(inner) => match &**inner {
            Expr::IsNull(operand) => 1.0 - input.expression(operand).nulls,
            inner => 1.0 - selectivity(std::slice::from_ref(inner), input),
        },
        Expr::IsNull(operand) => input.expression(operand).nulls.max(HARDLY),
        Expr::InList { input: operand, list } => {
            let column = input.expression(operand);
            let inside = |value: &&Value| match (column.range, position(value)) {
                (Some((low, high)), Some(p)) => p >= low && p <= high,
                (_, place) => place.is_some(),
            };
            (list.iter().filter(inside).count() as f64 / column.distinct.max(1.0)).clamp(HARDLY, 1.0)
        }
        Expr::Like { pattern, .. } => match &**pattern {
            Expr::Literal { value: Value::Text(text), .. }
                if text.starts_with('%') || text.starts_with('_') =>
            {
                0.05
            }
            Expr::Literal { value: Value::Text(text), .. } if !text.contains(['%', '_']) => 0.01,
            _ => 0.1,
        },
        Expr::Compare { op, left, right } => compare(*op, left, right, input),
        Expr::Column { .. } => 0.5,
        _ => UNKNOWN,
    }
}

fn compare(op: CompareOp, left: &Expr, right: &Expr, input: &Estimate) -> f64 {
    let (l, r) = (input.expression(left), input.expression(right));
    let equal = 1.0 / l.distinct.max(r.distinct).max(1.0);
    let constant = |e: &Expr| matches!(e, Expr::Literal { .. });
    match op {
        CompareOp::Eq | CompareOp::NotDistinctFrom => equal,
        CompareOp::NotEq | CompareOp::DistinctFrom => 1.0 - equal,
        _ if constant(left) || constant(right) => {
            // A computed value against a constant: place the constant in what is known of the value.
            let (value, constant, op) = if constant(right) { (l, r, op) } else { (r, l, op.mirrored()) };
            match constant.range {
                Some((place, _)) if value.range.is_some() || value.bell.is_some() => {
                    let mut interval = Interval::default();
                    interval.narrow(op, place);
                    interval.apply(value).0
                }
                _ => UNKNOWN,
            }
        }
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by counting pairs of points.
    fn counted((a, b): (f64, f64), (c, d): (f64, f64)) -> f64 {
        const POINTS: usize = 200;
        let point = |from: f64, to: f64, i: usize| from + (to - from) * (i as f64 + 0.5) / POINTS as f64;
        let pairs = (0..POINTS).flat_map(|i| (0..POINTS).map(move |j| (i, j)));
        pairs.filter(|&(i, j)| point(a, b, i) <= point(c, d, j)).count() as f64 / (POINTS * POINTS) as f64
    }

    #[test]
    fn shares_of_pairs_are_those_that_are_counted() {
        let ranges = [
            (0.0, 100.0),
            (10.0, 20.0),
            (50.0, 150.0),
            (-30.0, 5.0),
            (100.0, 101.0),
            (40.0, 40.0),
            (0.0, 0.0),
        ];
        for one in ranges {
            for other in ranges {
                let (share, counted) = (at_most(one, other), counted(one, other));
                assert!((share - counted).abs() < 0.01, "{one:?} {other:?}: {share}, counted {counted}");
            }
        }
    }
}
