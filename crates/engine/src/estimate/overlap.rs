//! Ranges that columns share which are joined for equality.
//!
//! Two facts of a key decide what a join keeps: which values it has, and which of them are left. Sales of
//! five years refer to days of two centuries; a filter that leaves one of the five years keeps a fifth of the
//! sales, though it keeps a two-hundredth of the days. So values are counted where both sides have some: in
//! the intersection of their ranges, over which each side's values are taken to be spread evenly.
//!
//! That is so for *dense* columns alone, numbers that nearly count up. A column of a million numbers and one
//! large one that means "none" would be spread over a range in which hardly anything is; it counts as a
//! whole.

use super::values::ColumnEstimate;

/// The least share of the numbers in its range that a dense column has.
const DENSE: f64 = 0.05;

/// The part of a column's values that is within a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SharedPart {
    /// The share of the rows, of those that are left: 0 to 1.
    pub rows: f64,
    /// Distinct values before filters.
    pub domain: f64,
}

/// The number of integers in a range.
fn width((low, high): (f64, f64)) -> f64 {
    high - low + 1.0
}

fn intersection(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let low = a.0.max(b.0);
    // If they are disjoint, one value is left: ranges may be out of date.
    (low, a.1.min(b.1).max(low))
}

/// The range that `columns` share, if at least two of them are dense.
pub(crate) fn overlap(columns: impl Iterator<Item = ColumnEstimate>) -> Option<(f64, f64)> {
    let mut ranges = columns.filter(is_dense).filter_map(|column| column.range);
    let first = ranges.next()?;
    let mut shared = None;
    for range in ranges {
        shared = Some(intersection(shared.unwrap_or(first), range));
    }
    shared
}

/// True if the column's values are taken to be spread evenly over its range.
fn is_dense(column: &ColumnEstimate) -> bool {
    column.span.is_some_and(|span| column.domain >= DENSE * width(span))
}

impl ColumnEstimate {
    /// The part of its values within the range that it shares with others.
    pub(crate) fn within(&self, shared: Option<(f64, f64)>) -> SharedPart {
        let all = SharedPart { rows: 1.0, domain: self.domain };
        let (Some(shared), Some(range), Some(span)) = (shared, self.range, self.span) else { return all };
        if !is_dense(self) {
            return all;
        }
        let part = |of: (f64, f64)| (width(intersection(shared, of)) / width(of)).min(1.0);
        SharedPart { rows: part(range), domain: (self.domain * part(span)).max(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(distinct: f64, span: (f64, f64), range: (f64, f64)) -> ColumnEstimate {
        ColumnEstimate { range: Some(range), span: Some(span), ..ColumnEstimate::of_distinct(distinct) }
    }

    #[test]
    fn a_year_of_the_days_is_a_fifth_of_the_sales() {
        let sales = column(1_800.0, (30_001.0, 31_825.0), (30_001.0, 31_825.0));
        let year = column(73_049.0, (1.0, 73_049.0), (30_366.0, 30_730.0));
        let shared = overlap([sales, year].into_iter());
        assert_eq!(shared, Some((30_366.0, 30_730.0)));
        let (of_sales, of_days) = (sales.within(shared), year.within(shared));
        assert!((of_sales.rows - 0.2).abs() < 0.001 && (of_sales.domain - 360.0).abs() < 1.0, "{of_sales:?}");
        assert!(of_days.rows == 1.0 && (of_days.domain - 365.0).abs() < 1.0, "{of_days:?}");
    }

    #[test]
    fn columns_that_are_not_dense_count_as_a_whole() {
        let marked = column(1_000.0, (1.0, 1e9), (1.0, 1e9));
        let keys = column(1_000.0, (1.0, 1_000.0), (1.0, 1_000.0));
        assert_eq!(overlap([marked, keys].into_iter()), None);
        assert_eq!(marked.within(Some((1.0, 10.0))), SharedPart { rows: 1.0, domain: 1_000.0 });
    }

    #[test]
    fn disjoint_ranges_share_a_value_rather_than_none() {
        let [a, b] = [(1.0, 100.0), (200.0, 299.0)].map(|range| column(100.0, range, range));
        let shared = overlap([a, b].into_iter());
        assert!(a.within(shared).rows > 0.0 && a.within(shared).rows <= 0.011);
        assert!(b.within(shared).rows > 0.0 && b.within(shared).rows <= 0.011);
    }
}
