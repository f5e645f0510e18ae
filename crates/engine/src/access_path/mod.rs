//! The reach of a scan: the slots to which its filters narrow it, by the layout key or an index.
//!
//! Conditions that compare columns with constants bound the key: equality on its first columns, then a range
//! of the next.
//!
//! 1. By the layout key, the rows are in some partitions, of which those in the middle need no test:
//!    conditions that made the bounds are *implied* there. (Range query of *Optimal Column Layout for Hybrid
//!    Workloads*, section 3.)
//! 2. By an index, which is a table of its own: its rows within the bounds give layout keys, or row numbers
//!    if the table has none, and these the rows. Only if they are few, or looking them up costs less than
//!    looking through the index's columns in all rows ([`Costs`]): what is well compressed is scanned for
//!    fewer rows.
//! 3. Otherwise, everywhere.
//!
//! If the relation gives its rows or slots itself ([`Relation::only_rows`], [`Relation::only_slots`]), these
//! are the reach. Rows with many keys are looked up in this way ([`by_key`]).
//!
//! Rows outside the reach never match, so the filters run as they would without it; `optimizer = off` does
//! not use it. The scan asks when it starts, and `EXPLAIN` when it prints.

mod asked;
mod by_key;

pub use asked::{Asked, asked_of, question_of};
pub use by_key::rows_by_key;

use crate::cost::Costs;
use crate::plan::Scan;
use crate::relation::{Index, Relation};
use entasis_storage::index::ROW_NUMBER;
use entasis_storage::{BLOCK_ROWS, Datum, RowId, SlotRange, TableSnapshot};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Schema, Value};
use std::cell::LazyCell;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// So many lookups are always few.
const FEW_LOOKUPS: u64 = 16;
/// An index is not read if it would have to give up after more than so many slots.
const INDEX_SLOTS: u64 = 1 << 17;
/// It is read if at least one in so many of its slots can be expected to be within the bounds.
const INDEX_SLOTS_FOR_A_ROW: u64 = 1024;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All rows.
    Everywhere,
    /// The rows in these slots, in order.
    Slots(Vec<SlotRange>),
    /// These rows, in order.
    Rows(Vec<RowId>),
}

impl Reach {
    /// The slots that a scan may look into; a row that is found by itself counts as a block.
    fn slots(&self, table: &TableSnapshot) -> u64 {
        match self {
            Reach::Everywhere => table.rows(),
            Reach::Slots(slots) => slots.iter().map(|range| range.slots.len() as u64).sum(),
            Reach::Rows(rows) => (rows.len() * BLOCK_ROWS) as u64,
        }
    }
}

/// A reach, and what it is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) reach: Reach,
    /// By conjunct, whether it holds for all rows in ranges that are whole.
    pub(crate) implied: Vec<bool>,
    /// The index that told it.
    pub(crate) index: Option<String>,
}

/// Bounds of a key: values of its first columns, and the conjuncts that they come from.
struct Bounds<'a> {
    low: Bound<Vec<Datum<'a>>>,
    high: Bound<Vec<Datum<'a>>>,
    conjuncts: Vec<usize>,
}

/// A condition on one column.
struct Condition<'a> {
    column: usize,
    op: CompareOp,
    value: Datum<'a>,
    conjunct: usize,
}

impl Found {
    /// Nothing is known.
    pub(crate) fn everywhere(conjuncts: &[Expr]) -> Found {
        Found { reach: Reach::Everywhere, implied: vec![false; conjuncts.len()], index: None }
    }

    /// Looks where the rows are that satisfy `conjuncts`; `place` finds a column's index in the table. If it
    /// `is_read`, the relation is told what it was asked, and a range of the layout key counts as a range
    /// query.
    pub(crate) fn of(
        relation: &dyn Relation,
        table: &TableSnapshot,
        conjuncts: &[Expr],
        place: &impl Fn(ColumnId) -> Option<usize>,
        is_read: bool,
    ) -> Found {
        if let Some(rows) = relation.only_rows() {
            return Found { reach: Reach::Rows(rows.to_vec()), ..Found::everywhere(conjuncts) };
        }
        if let Some(slots) = relation.only_slots() {
            return Found { reach: Reach::Slots(slots.to_vec()), ..Found::everywhere(conjuncts) };
        }
        let conditions: Vec<Condition<'_>> = conjuncts
            .iter()
            .enumerate()
            .filter_map(|(number, conjunct)| condition(number, conjunct, table.schema(), place))
            .collect();
        if conditions.is_empty() {
            return Found::everywhere(conjuncts);
        }
        let found = Found::by_conditions(relation, table, conjuncts, &conditions, is_read);
        if is_read {
            relation.asked(found.reach.slots(table), &|| asked::question(&conditions, table.schema()));
        }
        found
    }

    /// Where the rows are that satisfy conditions, which are those of `conjuncts`.
    fn by_conditions(
        relation: &dyn Relation,
        table: &TableSnapshot,
        conjuncts: &[Expr],
        conditions: &[Condition<'_>],
        is_read: bool,
    ) -> Found {
        let mut found = Found::everywhere(conjuncts);
        let options = table.table().options();
        // Along a curve, only rows with one key stand together; zones find the others.
        let is_together = |bounds: &Bounds<'_>| {
            options.curve.is_none()
                || bounds.equal().is_some_and(|equal| equal.len() == options.layout_key.len())
        };
        if options.layout.is_keyed()
            && let Some(bounds) = Bounds::of(&options.layout_key, conditions, table.schema())
            && is_together(&bounds)
        {
            bounds.conjuncts.iter().for_each(|&number| found.implied[number] = true);
            let (low, high) = (slice(&bounds.low), slice(&bounds.high));
            let slots = if is_read { table.scan_range(low, high) } else { table.range(low, high) };
            found.reach = Reach::Slots(slots);
            return found;
        }
        let by_index = relation.indexes().iter().find_map(|index| {
            let bounds = Bounds::of(&index.columns[..index.key_columns], conditions, table.schema())?;
            let costs = || relation.costs();
            Some((rows_by_index(table, index, &bounds, costs)?, index.table.name().to_owned()))
        });
        if let Some((rows, name)) = by_index {
            (found.reach, found.index) = (Reach::Rows(rows), Some(name));
        }
        found
    }
}

/// What says where the rows of a scan are, in words: the key, or an index by name.
pub(crate) fn in_words(scan: &Scan) -> Option<String> {
    let table = scan.relation.table()?;
    let mut conjuncts = Vec::new();
    scan.filters.iter().for_each(|filter| filter.clone().split_conjunction(&mut conjuncts));
    let place = |id: ColumnId| scan.columns.iter().find(|(column, _)| *column == id).map(|(_, index)| *index);
    let found = Found::of(&*scan.relation, table, &conjuncts, &place, false);
    match found.reach {
        Reach::Everywhere => None,
        Reach::Slots(_) => Some("by its layout key".into()),
        Reach::Rows(_) => found.index.map(|index| format!("by index {index}")),
    }
}

impl Reach {
    /// The row groups to look into, each with its part of the ranges or rows. Everywhere, that is empty.
    pub(crate) fn parts(&self, row_groups: usize) -> Vec<(usize, Range<usize>)> {
        let mut parts: Vec<(usize, Range<usize>)> = Vec::new();
        let mut add = |number: usize, group: usize| match parts.last_mut() {
            Some((last, part)) if *last == group => part.end = number + 1,
            _ => parts.push((group, number..number + 1)),
        };
        match self {
            Reach::Everywhere => return (0..row_groups).map(|group| (group, 0..0)).collect(),
            Reach::Slots(ranges) => ranges.iter().enumerate().for_each(|(i, range)| add(i, range.group)),
            Reach::Rows(rows) => rows.iter().enumerate().for_each(|(i, row)| add(i, row.group as usize)),
        }
        parts
    }

    /// The most rows that there can be, of a table of `rows`.
    pub(crate) fn rows(&self, rows: u64) -> u64 {
        match self {
            Reach::Everywhere => rows,
            Reach::Slots(ranges) => rows.min(ranges.iter().map(|range| range.slots.len() as u64).sum()),
            Reach::Rows(found) => found.len() as u64,
        }
    }
}

/// What a conjunct says of one column, if that can bound a key.
fn condition<'a>(
    number: usize,
    conjunct: &'a Expr,
    schema: &Schema,
    place: &impl Fn(ColumnId) -> Option<usize>,
) -> Option<Condition<'a>> {
    let Expr::Compare { op, left, right } = conjunct else { return None };
    let (op, id, value, ty) = match (&**left, &**right) {
        (Expr::Column { id, .. }, Expr::Literal { value, ty }) => (*op, *id, value, *ty),
        (Expr::Literal { value, ty }, Expr::Column { id, .. }) => (op.mirrored(), *id, value, *ty),
        _ => return None,
    };
    let column = place(id)?;
    let is_ordered = !matches!(ty, DataType::Uuid | DataType::Interval);
    let bounds = match op {
        CompareOp::Eq => ty != DataType::Interval,
        CompareOp::Lt | CompareOp::LtEq | CompareOp::Gt | CompareOp::GtEq => is_ordered,
        _ => false,
    };
    let is_typed = schema.get(column).is_some_and(|field| field.ty == ty) && *value != Value::Null;
    (bounds && is_typed).then(|| Condition {
        column,
        op,
        value: Datum::of_value(value, ty),
        conjunct: number,
    })
}

impl<'a> Bounds<'a> {
    /// What the conditions say of a key of these columns; `None` if they say nothing.
    fn of(columns: &[usize], conditions: &[Condition<'a>], schema: &Schema) -> Option<Bounds<'a>> {
        let mut prefix: Vec<Datum<'a>> = Vec::new();
        let mut used = Vec::new();
        for &column in columns {
            let own = || conditions.iter().filter(move |condition| condition.column == column);
            if let Some(equal) = own().find(|condition| condition.op == CompareOp::Eq) {
                prefix.push(equal.value);
                used.push(equal.conjunct);
                continue;
            }
            let mut low: Bound<Datum<'a>> = Bound::Unbounded;
            let mut high: Bound<Datum<'a>> = Bound::Unbounded;
            for condition in own() {
                used.push(condition.conjunct);
                let value = condition.value;
                match condition.op {
                    CompareOp::Gt => low = tighter(low, Bound::Excluded(value), true),
                    CompareOp::GtEq => low = tighter(low, Bound::Included(value), true),
                    CompareOp::Lt => high = tighter(high, Bound::Excluded(value), false),
                    _ => high = tighter(high, Bound::Included(value), false),
                }
            }
            if matches!((low, high), (Bound::Unbounded, Bound::Unbounded)) {
                break;
            }
            // NULL is greatest, and in no range.
            if matches!(high, Bound::Unbounded) && schema[column].nullable {
                high = Bound::Excluded(Datum::Null);
            }
            let key = |bound: Bound<Datum<'a>>| match bound {
                Bound::Unbounded if prefix.is_empty() => Bound::Unbounded,
                Bound::Unbounded => Bound::Included(prefix.clone()),
                bound => bound.map(|datum| prefix.iter().copied().chain([datum]).collect()),
            };
            return Some(Bounds { low: key(low), high: key(high), conjuncts: used });
        }
        (!prefix.is_empty()).then(|| Bounds {
            low: Bound::Included(prefix.clone()),
            high: Bound::Included(prefix),
            conjuncts: used,
        })
    }

    /// How many columns of the key they are about.
    fn columns(&self) -> usize {
        let length = |bound: &Bound<Vec<Datum<'_>>>| match bound {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => key.len(),
        };
        length(&self.low).max(length(&self.high))
    }

    /// The values that the first columns must have, if no range follows. Not of floats, where others are
    /// equal to them.
    fn equal(&self) -> Option<&[Datum<'a>]> {
        let is_float = |datum: &Datum<'_>| matches!(datum, Datum::Float(_));
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) if low.len() == high.len() => {
                let same = low.iter().zip(high).all(|(a, b)| a.is_same(*b));
                (same && !low.iter().any(is_float)).then_some(low)
            }
            _ => None,
        }
    }

    /// True if a row is within, whose columns of the key are `key`.
    fn have(&self, key: &[Datum<'_>]) -> bool {
        let order = |bound: &[Datum<'_>]| {
            let each = key.iter().zip(bound).map(|(a, b)| a.total_cmp(*b));
            each.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        };
        let above = match &self.low {
            Bound::Unbounded => true,
            Bound::Included(bound) => order(bound).is_ge(),
            Bound::Excluded(bound) => order(bound).is_gt(),
        };
        above
            && match &self.high {
                Bound::Unbounded => true,
                Bound::Included(bound) => order(bound).is_le(),
                Bound::Excluded(bound) => order(bound).is_lt(),
            }
    }
}

/// The one of two bounds that leaves less.
fn tighter<'a>(a: Bound<Datum<'a>>, b: Bound<Datum<'a>>, is_low: bool) -> Bound<Datum<'a>> {
    let (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) = (a, b) else {
        return if matches!(a, Bound::Unbounded) { b } else { a };
    };
    let order = if is_low { x.total_cmp(y) } else { y.total_cmp(x) };
    match order {
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal if matches!(a, Bound::Excluded(_)) => a,
        std::cmp::Ordering::Equal => b,
    }
}

fn slice<'b, 'a>(bound: &'b Bound<Vec<Datum<'a>>>) -> Bound<&'b [Datum<'a>]> {
    bound.as_ref().map(Vec::as_slice)
}

/// The rows that an index has within bounds, in order; `None` if they are too many.
fn rows_by_index(
    table: &TableSnapshot,
    index: &Index,
    bounds: &Bounds<'_>,
    costs: impl Fn() -> Arc<Costs>,
) -> Option<Vec<RowId>> {
    let options = table.table().options();
    // PERF: a sample of the table takes longer than a few rows.
    let affordable = LazyCell::new(|| {
        let costs = costs();
        let scan: f64 =
            index.columns[..bounds.columns()].iter().map(|&column| costs.scan(table, column)).sum();
        (scan / costs.by_index()) as u64
    });
    let are_few = |rows: u64| rows <= FEW_LOOKUPS || rows <= *affordable;
    let ranges = index.table.range(slice(&bounds.low), slice(&bounds.high));
    let slots = ranges.iter().map(|range| range.slots.len() as u64).sum::<u64>();
    if slots > INDEX_SLOTS || !are_few(slots / INDEX_SLOTS_FOR_A_ROW) {
        return None;
    }
    // Rows that it does not have must be none of those that are asked for.
    let bounded = bounds.columns();
    let has_null = |&column: &usize| table.schema()[column].nullable;
    if !index.is_whole && index.columns[bounded..index.key_columns].iter().any(has_null) {
        return None;
    }
    let place = |column: &usize| index.columns.iter().position(|own| own == column);
    let is_keyed = options.layout.is_keyed();
    let names = if is_keyed { &options.layout_key[..] } else { &[ROW_NUMBER] };
    let names: Vec<usize> = names.iter().map(place).collect::<Option<_>>()?;
    let key: Vec<usize> = (0..index.key_columns).collect();
    let mut found = Vec::new();
    let (mut own, mut sought) = (Vec::new(), Vec::new());
    let mut look_up = |row: RowId| {
        sought.clear();
        index.table.read(row, &names, &mut sought);
        match sought[..] {
            [Datum::Integer(number)] if !is_keyed => found.extend(table.find_number(number as u64)),
            _ => table.find_each(&sought, |row| {
                found.push(row);
                are_few(found.len() as u64)
            }),
        }
        are_few(found.len() as u64)
    };
    if let Some(equal) = bounds.equal().filter(|equal| equal.len() == index.key_columns) {
        index.table.find_each(equal, look_up);
    } else {
        let slots = ranges.iter().flat_map(|range| range.slots.clone().map(|slot| (range.group, slot)));
        for (group, slot) in slots {
            if !index.table.row_group(group)?.is_live(slot) {
                continue;
            }
            let row = RowId { group: group as u32, slot: slot as u32 };
            own.clear();
            index.table.read(row, &key, &mut own);
            if bounds.have(&own) && !look_up(row) {
                break;
            }
        }
    }
    if !are_few(found.len() as u64) {
        return None;
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}
