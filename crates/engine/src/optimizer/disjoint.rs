//! Conditions that exclude each other, since each has a range of one column and no two ranges meet.
//!
//! ```text
//! quantity BETWEEN 0 AND 5 AND (price < 18 OR cost > 57)                                        TPC-DS Q28
//! quantity BETWEEN 6 AND 10 AND (price < 100 OR cost > 31)
//! ```
//! Of the rows that satisfy one of them, the range alone tells which one. So if [`super::merge_aggregates`]
//! reads a table once for several aggregates under such conditions, the calls of each have its range as their
//! `FILTER`, and the scan has all the rest: the disjunction, and the range from the lowest bound to the
//! highest ([`Disjoint::hull`]), which is tested on codes.
//!
//! 1. A conjunct that compares a column with a constant is an interval of integers; all of a condition on one
//!    column are their intersection. A column that has one in each condition may be the one
//!    ([`Disjoint::of`]). NULL is in no interval.
//! 2. One scan takes less than one for each condition if each of them must be computed for the rows in its
//!    range, if it reads hardly more rows than all of these, and if these may be anywhere
//!    ([`Disjoint::is_worth_it`]).
//!
//! Not here: ranges of floats and of strings.

use crate::access_path;
use crate::estimate::{estimate_rows, share_in_zones};
use crate::plan::tree::reads;
use crate::plan::{Columns, Node, Scan};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Value};

/// Ranges are read at once only if they have at least one of so many rows of the table together: for fewer,
/// an index or the order of the rows may lead to each of them.
const PASS_OF: f64 = 64.0;
/// The least share that the ranges have of the rows between the lowest bound and the highest.
const OF_HULL: f64 = 0.5;
/// The least share that a range's blocks have of those between the bounds, on average. If the rows are in the
/// column's order, each range has blocks of its own, which one scan would read as often as several.
const OF_BLOCKS: f64 = 0.75;
/// The largest share that a range has of the table's rows, on average. Rows of a wider one are decoded by a
/// scan of its own as fast as by one for all (measured: ranges of a fifth take up to a quarter less in one
/// scan, of a half up to a third more).
const OF_TABLE: f64 = 0.25;
/// The most conditions at once: each row that is read is tested for all of them, and each that passes for
/// all ranges (measured with ranges of a twentieth: ten take a third to two thirds of the time in one
/// scan, twenty about the same).
const CONDITIONS: usize = 16;

/// The integers from one to another one.
type Interval = (i128, i128);

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Disjoint {
    column: ColumnId,
    ty: DataType,
    /// From the lowest bound to the highest.
    hull: Interval,
}

impl Disjoint {
    /// What makes conditions, each the conjunction of some predicates, exclude each other.
    pub(super) fn of(conditions: &[Vec<Expr>]) -> Option<Disjoint> {
        let mut columns = conditions.first()?.iter().filter_map(|conjunct| Some(interval(conjunct)?.0));
        columns.find_map(|(column, ty)| {
            let ranges = conditions.iter().map(|condition| range(condition, column));
            let mut ranges: Vec<Interval> = ranges.collect::<Option<_>>()?;
            ranges.sort_unstable();
            let is_some = ranges.iter().all(|(low, high)| low <= high);
            let hull = (ranges.first()?.0, ranges.last()?.1);
            let are_apart = ranges.is_sorted_by(|(_, high), (low, _)| high < low);
            (is_some && are_apart).then_some(Disjoint { column, ty, hull })
        })
    }

    /// True if a conjunct is a bound of the column.
    fn is_bound(&self, conjunct: &Expr) -> bool {
        interval(conjunct).is_some_and(|((column, _), _)| column == self.column)
    }

    /// The range of a condition: what tells its rows from those of the others.
    pub(super) fn range_of(&self, condition: &[Expr]) -> Vec<Expr> {
        condition.iter().filter(|conjunct| self.is_bound(conjunct)).cloned().collect()
    }

    /// What all ranges have in common.
    pub(super) fn hull(&self) -> Vec<Expr> {
        let (least, greatest) = self.ty.integer_range().unwrap_or((i128::MIN, i128::MAX));
        let bound = |op, value: i128| {
            let value = Expr::literal(Value::Integer(value), self.ty);
            Expr::compare(op, Expr::column(self.column, self.ty), value)
        };
        let low = (self.hull.0 > least).then(|| bound(CompareOp::GtEq, self.hull.0));
        let high = (self.hull.1 < greatest).then(|| bound(CompareOp::LtEq, self.hull.1));
        low.into_iter().chain(high).collect()
    }

    /// True if one scan takes less than one for each of the conditions, which all have the conjuncts in
    /// `common` as well. Conjuncts that compare single columns with constants are left to scans of their own:
    /// they are tested on codes, before a column is decoded (up to 2.6 times as fast as in one scan).
    pub(super) fn is_worth_it(
        &self,
        table: &Scan,
        common: &[Expr],
        conditions: &[Vec<Expr>],
        columns: &Columns,
    ) -> bool {
        let is_computed =
            |condition: &Vec<Expr>| condition.iter().any(|conjunct| reads(conjunct).iter().nth(1).is_some());
        if conditions.len() > CONDITIONS || !conditions.iter().all(is_computed) {
            return false;
        }
        let scan = |filters: Vec<Expr>| Scan { filters, ..table.clone() };
        let rows = |filters| estimate_rows(&Node::Scan(scan(filters)), columns);
        let ranges = || conditions.iter().map(|condition| self.range_of(condition));
        let in_ranges: f64 = ranges().map(rows).sum();
        let all = rows(Vec::new());
        if in_ranges * PASS_OF < all
            || in_ranges > OF_TABLE * all * conditions.len() as f64
            || in_ranges < OF_HULL * rows(self.hull())
        {
            return false;
        }
        let whole = |condition: &[Expr]| scan(common.iter().chain(condition).cloned().collect());
        let in_blocks: f64 = conditions.iter().map(|condition| share_in_zones(&whole(condition))).sum();
        let least = OF_BLOCKS * conditions.len() as f64 * share_in_zones(&whole(&self.hull()));
        in_blocks >= least
            && !conditions.iter().any(|condition| access_path::in_words(&whole(condition)).is_some())
    }
}

/// The column that a conjunct compares with a constant, and the values for which it holds, if it is a range.
fn interval(conjunct: &Expr) -> Option<((ColumnId, DataType), Interval)> {
    let Expr::Compare { op, left, right } = conjunct else { return None };
    let (op, column, value) = match (&**left, &**right) {
        (Expr::Column { id, ty }, Expr::Literal { value, ty: same }) if ty == same => {
            (*op, (*id, *ty), value)
        }
        (Expr::Literal { value, ty: same }, Expr::Column { id, ty }) if ty == same => {
            (op.mirrored(), (*id, *ty), value)
        }
        _ => return None,
    };
    let Value::Integer(value) = *value else { return None };
    // The numbers of UUIDs are not in the order of UUIDs.
    let (least, greatest) = column.1.integer_range().filter(|_| column.1 != DataType::Uuid)?;
    let (low, high) = match op {
        CompareOp::Eq => (value, value),
        CompareOp::Lt => (least, value.checked_sub(1)?),
        CompareOp::LtEq => (least, value),
        CompareOp::Gt => (value.checked_add(1)?, greatest),
        CompareOp::GtEq => (value, greatest),
        CompareOp::NotEq | CompareOp::DistinctFrom | CompareOp::NotDistinctFrom => return None,
    };
    Some((column, (low.max(least), high.min(greatest))))
}

/// The values of a column for which a condition may hold; `None` if no conjunct is a range of it.
fn range(condition: &[Expr], column: ColumnId) -> Option<Interval> {
    let intervals = condition.iter().filter_map(interval).filter(|((id, _), _)| *id == column);
    let intersection = |(low, high): Interval, other: Interval| (low.max(other.0), high.min(other.1));
    intervals.map(|(_, interval)| interval).reduce(intersection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::merge_aggregates;
    use crate::optimizer::testing::{Builder, cross, filtered};
    use crate::plan::{Aggregate, AggregateCall, AggregateFunction};

    fn column(id: u32) -> Expr {
        Expr::column(ColumnId(id), DataType::Int32)
    }

    fn compare(op: CompareOp, id: u32, value: i128) -> Expr {
        Expr::compare(op, column(id), Expr::literal(Value::Integer(value), DataType::Int32))
    }

    /// The predicates of a condition.
    type Condition<'a> = &'a dyn Fn(&Builder) -> Vec<Expr>;

    /// The plan for the number of rows of a table of 1000 under each of some conditions, whose columns are
    /// `q` and `p`, each from 0 to 99, and `r`.
    fn counts(conditions: &[Condition<'_>]) -> String {
        let mut b = Builder::default();
        let names = [("q", 100), ("p", 100), ("r", 100)];
        let Node::Scan(table) = b.scan("t", 1000, &names) else { unreachable!() };
        let mut leaves = conditions.iter().map(|condition| {
            let columns = (0..3).map(|at| (b.columns.add(names[at].0, DataType::Int64, true), at)).collect();
            let scan = Node::Scan(Scan { columns, ..table.clone() });
            let input = Box::new(filtered(scan, condition(&b)));
            let id = b.columns.add("n", DataType::Int64, false);
            let call = AggregateCall {
                function: AggregateFunction::CountStar,
                args: Vec::new(),
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                ty: DataType::Int64,
            };
            Node::Aggregate(Aggregate { input, groups: Vec::new(), aggregates: vec![(id, call)] })
        });
        let first = leaves.next().unwrap();
        let root = leaves.fold(first, cross);
        let mut plan = b.plan(root, &["n"]);
        merge_aggregates::apply(&mut plan).unwrap();
        plan.to_string()
    }

    #[test]
    fn one_scan_is_for_ranges_with_conditions_that_must_be_computed() {
        let range = |b: &Builder, low: i128, high: i128| {
            let (low, high) = (low.to_string(), high.to_string());
            vec![b.compare("q", CompareOp::GtEq, &low), b.compare("q", CompareOp::LtEq, &high)]
        };
        let either = |b: &Builder, p: &str| Expr::Or(vec![b.equal("p", p), b.equal("r", "7")]);
        let within = |low, high, p| move |b: &Builder| [range(b, low, high), vec![either(b, p)]].concat();
        let scans = |text: String| text.matches("Scan t").count();
        let text = counts(&[&within(0, 5, "1"), &within(6, 10, "2"), &within(11, 15, "3")]);
        assert_eq!(scans(text.clone()), 1);
        assert_eq!(text.matches("FILTER").count(), 3);
        assert!(text.contains("FILTER (WHERE ((q >= 6) AND (q <= 10)))"), "{text}");
        assert!(text.contains("(q >= 0) AND (q <= 15)"), "{text}");
        assert_eq!(scans(counts(&[&within(0, 5, "1"), &within(5, 10, "2")])), 2, "5 is in both");
        assert_eq!(scans(counts(&[&within(0, 49, "1"), &within(50, 99, "2")])), 2, "wide");
        assert_eq!(scans(counts(&[&within(0, 1, "1"), &within(98, 99, "2")])), 2, "far from each other");
        let plain = |low, high| move |b: &Builder| [range(b, low, high), vec![b.equal("p", "1")]].concat();
        let other = |b: &Builder| [range(b, 6, 10), vec![b.equal("p", "2")]].concat();
        assert_eq!(scans(counts(&[&plain(0, 5), &other])), 2, "on codes");
    }

    #[test]
    fn ranges_of_one_column_tell_conditions_apart() {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let hull =
            |conditions: &[Vec<Expr>]| Disjoint::of(conditions).map(|found| (found.column.0, found.hull));
        let between = |id, low, high| vec![compare(GtEq, id, low), compare(LtEq, id, high)];
        assert_eq!(hull(&[between(1, 6, 10), between(1, 0, 5), between(1, 11, 15)]), Some((1, (0, 15))));
        assert_eq!(hull(&[between(1, 6, 10), between(1, 0, 6)]), None, "6 is in both");
        assert_eq!(hull(&[between(1, 6, 10), between(2, 0, 5)]), None);
        assert_eq!(hull(&[between(1, 5, 4), between(1, 7, 8)]), None, "nothing is in the first");
        let open = [vec![compare(Lt, 1, 3)], vec![compare(Eq, 1, 3)], vec![compare(Gt, 1, 3)]];
        let (least, greatest) = (i128::from(i32::MIN), i128::from(i32::MAX));
        assert_eq!(hull(&open), Some((1, (least, greatest))));
        assert!(Disjoint::of(&open).unwrap().hull().is_empty());
        assert_eq!(hull(&[vec![compare(NotEq, 1, 3)], vec![compare(Eq, 1, 3)]]), None);
        // The second column tells them apart, within a wider range of the first one.
        let mirrored = Expr::compare(Lt, Expr::literal(Value::Integer(4), DataType::Int32), column(2));
        let two = [
            [between(1, 0, 9), vec![compare(Lt, 2, 5), compare(LtEq, 2, 4)]].concat(),
            [between(1, 3, 7), vec![mirrored]].concat(),
        ];
        let found = Disjoint::of(&two).unwrap();
        assert_eq!((found.column.0, found.hull), (2, (least, greatest)));
        assert_eq!(found.range_of(&two[0]), two[0][2..]);
    }
}
