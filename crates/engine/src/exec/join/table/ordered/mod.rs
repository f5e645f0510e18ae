//! The table of joins by inequalities: ordered rows, of which those within bounds are candidates.
//!
//! ```text
//! build rows → order by (keys, first expression) → its values, [sorted]; those of a second expression, a tree of [extremes]
//! probe row  → its group of equal keys [groups] → a stretch between the bounds of the first expression → of its rows,
//!              those within the bound of the second
//! ```
//! 1. *Build.* All workers sort the rows whose expressions are not NULL. If there is memory to move them, a
//!    row's id becomes its place, so that the rows of a stretch are adjacent.
//! 2. *Probe.* For each row of a chunk, bounds are searched in the order. One bound leaves a prefix or a
//!    suffix, two bounds of one expression a stretch between.
//! 3. Without a second expression, all rows of the stretch match, and pairs are slices of it. With one, the
//!    matches among them are found one at a time, without visiting those between: finding the intervals that
//!    contain a value, or overlap another, takes time logarithmic in the rows for each match.
//! 4. Pairs come in full steps, row by row of the probe chunk. If one match per row is enough, each round
//!    yields a few for each row, and rows that need no more are left out of the next round.
//!
//! The problem is that of IEJoin (Khayyat et al., *Lightning Fast and Space Efficient Inequality Joins*, VLDB
//! 2015), which sorts both sides by both attributes and marks visited rows in a bit array. Here the tree
//! replaces the second order: the other side is not sorted but streams by, chunk by chunk, so that all
//! workers and all kinds of joins work as with any other table, and a bound that excludes nearly all rows
//! does not walk over bits.
//!
//! Invariants: candidates are matches as far as keys and bounds go, and each comes once. Rows that can match
//! nothing have ids after those in order.
//!
//! Not here: more than two expressions, and two bounds of the second one; the remaining conditions are tested
//! on pairs.

mod extremes;
mod groups;
mod ingredients;
mod ordinals;
mod sorted;

use super::{ChosenTable, Cursor, JoinTable, Pairs, ProbeKeys};
use crate::bounds::Lookup;
use crate::exec::join::ProbeOutput;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::exec::sort::order::{OrderKey, bytes_for_row, order};
use crate::memory::Reservation;
use entasis_vector::expr::{ColumnMeta, CompareOp};
use entasis_vector::{CHUNK_ROWS, Result, StringView, Vector};
use extremes::ExtremeTree;
use groups::{GroupCursor, KeyGroups};
pub(crate) use ingredients::Ingredients;
use ordinals::Ordinals;
use sorted::{fences, first_after};
use std::ops::Range;

/// The factor by which the matches wanted per row grow in each round.
const MORE: usize = 8;

/// See the module.
struct Ordered {
    lookup: Lookup,
    /// For each place, the id of its row; empty if ids are 0, 1, 2, …
    ids: Vec<u32>,
    /// The number of rows that can match, which have the places.
    places: usize,
    /// The first expression, by place; and its fences, some of these values.
    first: Ordinals,
    fences: Ordinals,
    second: Option<Second>,
    groups: Option<KeyGroups>,
    /// Matches per row that are wanted in the first round.
    window: usize,
}

/// The second expression, by place.
enum Second {
    Narrow(ExtremeTree<i64>),
    Wide(ExtremeTree<i128>),
    Text(ExtremeTree<StringView>),
}

/// The progress of the search for one chunk's rows.
#[derive(Default)]
pub(crate) struct OrderedSearch {
    /// For each probe row, the first place that has not been visited, and the end of its stretch.
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Rows of this round, ascending, and the range of them that produced the last pairs.
    rows: Vec<u16>,
    served: Range<usize>,
    /// Matches per row that are wanted in this round.
    window: usize,
    /// For each probe row, the bound that was searched last, and that of the second expression.
    searched: Ordinals,
    bounds: Ordinals,
    groups: Option<Box<GroupCursor>>,
}

impl std::fmt::Debug for OrderedSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search")
            .field("rows", &self.rows)
            .field("served", &self.served)
            .finish_non_exhaustive()
    }
}

/// Bytes that building such a table takes, beside the rows.
pub(crate) fn bytes_to_build(rows: usize, columns: &[ColumnMeta], keys: usize, lookup: &Lookup) -> usize {
    let widest = columns.iter().map(|meta| meta.physical.width()).max().unwrap_or(0);
    let ordinals =
        columns[keys..keys + lookup.kept()].iter().map(|meta| Ordinals::width(meta.physical)).sum::<usize>();
    let moved = size_of::<u32>() + widest;
    rows * (bytes_for_row(columns, &order_keys(keys)).max(moved) + ordinals) + rows / 8 * ordinals
}

/// Keys, then the first expression.
fn order_keys(keys: usize) -> Vec<OrderKey> {
    (0..=keys).map(|column| OrderKey { column, descending: false, nulls_first: false }).collect()
}

/// The table over `rows`, whose reservation is `memory`.
///
/// # Errors
/// Those of the tasks; resource.
pub(crate) fn build(
    rows: Materialized,
    with: &Ingredients<'_>,
    memory: &mut Reservation,
) -> Result<ChosenTable> {
    let (keys, lookup, tasks) = (with.null_equals_null.len(), with.lookup, with.tasks);
    let metas = rows.columns().to_vec();
    memory.resize(rows.bytes() + rows.rows() * bytes_for_row(&metas, &order_keys(keys)))?;
    let mut ids = order(&rows, &order_keys(keys), rows.ids().collect(), Some(tasks))?;
    let places = matchable_first(&rows, &mut ids, with)?;
    let groups = if keys == 0 { None } else { Some(KeyGroups::new(&rows, &ids[..places], with)?) };
    let widest = metas.iter().map(|meta| meta.physical.width()).max().unwrap_or(0);
    let may_move = rows.compressed().0 == 0 && memory.resize(rows.bytes() + ids.len() * (4 + widest)).is_ok();
    let (rows, ids) = match may_move {
        true => (rows.rearranged(&ids, &vec![true; metas.len()], tasks)?, Vec::new()),
        false => (rows, ids),
    };
    let first = values(&rows, keys, &ids, places, memory, tasks)?;
    let fences = match &first {
        Ordinals::Narrow(values) => Ordinals::Narrow(fences(values)),
        Ordinals::Wide(values) => Ordinals::Wide(fences(values)),
        Ordinals::Text(values) => Ordinals::Text(fences(values)),
    };
    let second = match lookup.second {
        None => None,
        Some((op, _)) => {
            let greatest = matches!(op, CompareOp::Gt | CompareOp::GtEq);
            Some(match values(&rows, keys + 1, &ids, places, memory, tasks)? {
                Ordinals::Narrow(values) => Second::Narrow(ExtremeTree::new(values, greatest)),
                Ordinals::Wide(values) => Second::Wide(ExtremeTree::new(values, greatest)),
                Ordinals::Text(values) => Second::Text(ExtremeTree::new(values, greatest)),
            })
        }
    };
    let reason = reason(&lookup, rows.rows(), groups.as_ref().map(KeyGroups::count));
    let one_is_enough = !matches!(
        with.probe,
        ProbeOutput::Pairs | ProbeOutput::PairsOrNulls | ProbeOutput::OneOrNulls | ProbeOutput::Nothing
    );
    let window = if one_is_enough { 1 } else { CHUNK_ROWS };
    let table = Ordered { lookup, ids, places, first, fences, second, groups, window };
    Ok(ChosenTable { rows, table: Box::new(table), reason })
}

/// Describes the table, for the profile.
fn reason(lookup: &Lookup, rows: usize, groups: Option<usize>) -> String {
    let how = match (lookup.low, lookup.high, lookup.second) {
        _ if lookup.nearest => "the nearest within a bound",
        (Some(_), Some(_), _) => "between two bounds",
        (_, _, Some(_)) => "by one bound, and by a second one in a tree",
        _ => "within a bound",
    };
    let groups = groups.map_or(String::new(), |groups| format!(" in {groups} groups of equal keys"));
    format!("in order: {rows} rows{groups}, found {how}")
}

/// Moves rows that can match to the front; returns how many they are.
fn matchable_first(rows: &Materialized, ids: &mut Vec<u32>, with: &Ingredients<'_>) -> Result<usize> {
    let keys = with.null_equals_null.len();
    let counts = |column: &usize| with.null_equals_null.get(*column).is_none_or(|equal| !equal);
    let columns: Vec<usize> =
        (0..keys + with.lookup.kept()).filter(counts).filter(|&c| rows.has_nulls(c)).collect();
    if columns.is_empty() {
        return Ok(ids.len());
    }
    let mut vectors: Vec<Vector> = columns.iter().map(|&c| Vector::new(rows.columns()[c].physical)).collect();
    let (mut kept, mut others) = (0, Vec::new());
    let all = ids.len();
    for start in (0..all).step_by(CHUNK_ROWS) {
        with.tasks.check()?;
        let part = ids[start..all.min(start + CHUNK_ROWS)].to_vec();
        rows.gather_all(&columns, &part, &mut vectors);
        for (row, id) in part.into_iter().enumerate() {
            if vectors.iter().all(|vector| vector.is_valid(row)) {
                ids[kept] = id;
                kept += 1;
            } else {
                others.push(id);
            }
        }
    }
    ids.truncate(kept);
    ids.append(&mut others);
    Ok(kept)
}

/// The values of `column` at the first `count` places; reserves their memory.
fn values(
    rows: &Materialized,
    column: usize,
    ids: &[u32],
    count: usize,
    memory: &mut Reservation,
    tasks: &dyn Tasks,
) -> Result<Ordinals> {
    let physical = rows.columns()[column].physical;
    // Fences and upper levels take a fraction more.
    let width = Ordinals::width(physical);
    memory.resize(memory.bytes() + count * width + count / 8 * width)?;
    let mut values = Ordinals::new(physical, count);
    let mut vector = Vector::new(physical);
    for start in (0..count).step_by(CHUNK_ROWS) {
        tasks.check()?;
        let places = start..count.min(start + CHUNK_ROWS);
        match ids.is_empty() {
            true => rows.gather(
                column,
                &places.clone().map(|place| place as u32).collect::<Vec<_>>(),
                &mut vector,
            ),
            false => rows.gather(column, &ids[places.clone()], &mut vector),
        }
        values.extend(&vector, places.len());
    }
    Ok(values)
}

impl JoinTable for Ordered {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        let search = &mut cursor.search;
        let count = keys.count();
        search.starts.clear();
        search.starts.resize(count, 0);
        search.ends.clear();
        search.ends.resize(count, self.places as u32);
        if let Some(groups) = &self.groups {
            groups.find(keys, search.groups.get_or_insert_default(), &mut search.starts, &mut search.ends);
        }
        if let Some((bound, inclusive)) = self.lookup.low {
            self.narrow(
                keys.bound(bound),
                |after| if inclusive { after.is_lt() } else { after.is_le() },
                search,
                true,
            );
        }
        if let Some((bound, inclusive)) = self.lookup.high {
            self.narrow(
                keys.bound(bound),
                |after| if inclusive { after.is_le() } else { after.is_lt() },
                search,
                false,
            );
        }
        if self.lookup.nearest {
            let is_last = self.lookup.high.is_some();
            for (start, end) in search.starts.iter_mut().zip(&mut search.ends) {
                match (*start < *end, is_last) {
                    (false, _) => {}
                    (true, true) => *start = *end - 1,
                    (true, false) => *end = *start + 1,
                }
            }
        }
        if let (Some((_, bound)), Some(second)) = (self.lookup.second, &self.second) {
            let vector = keys.bound(bound);
            search.bounds.take(vector, count, &second.form());
            without_nulls(vector, search);
        }
        search.rows.clear();
        search.rows.extend(0..count as u16);
        search.served = 0..0;
        search.window = self.window;
        search.begin_round();
        self.fill(pairs, search);
    }

    fn next(&self, _: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        let search = &mut cursor.search;
        // Rows without pairs left want no more matches.
        let mut left = pairs.rows.iter().copied().peekable();
        for &row in &search.rows[search.served.clone()] {
            match left.next_if_eq(&row) {
                None => search.starts[row as usize] = search.ends[row as usize],
                Some(_) => while left.next_if_eq(&row).is_some() {},
            }
        }
        self.fill(pairs, search);
    }

    fn is_exact(&self, _: &Cursor) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        let second = match &self.second {
            None => 0,
            Some(Second::Narrow(tree)) => tree.len() * size_of::<i64>(),
            Some(Second::Wide(tree)) => tree.len() * size_of::<i128>(),
            Some(Second::Text(tree)) => tree.len() * size_of::<StringView>(),
        };
        self.ids.capacity() * 4 + self.first.bytes() + self.fences.bytes() + second
    }
}

/// Removes the places of rows whose bound is NULL.
fn without_nulls(bounds: &Vector, search: &mut OrderedSearch) {
    if bounds.validity().is_some() {
        for row in (0..search.starts.len()).filter(|&row| !bounds.is_valid(row)) {
            search.ends[row] = search.starts[row];
        }
    }
}

impl Ordered {
    /// Searches each row's bound in its stretch, for the first place whose value is not `before` it. The
    /// stretch then begins there (`is_start`), or ends there.
    fn narrow(
        &self,
        bounds: &Vector,
        before: impl Fn(std::cmp::Ordering) -> bool,
        search: &mut OrderedSearch,
        is_start: bool,
    ) {
        search.searched.take(bounds, search.starts.len(), &self.first);
        macro_rules! narrow {
            ($values:expr, $fences:expr, $bounds:expr) => {
                for (row, bound) in $bounds.iter().enumerate() {
                    let (start, end) = (&mut search.starts[row], &mut search.ends[row]);
                    let place = first_after($values, $fences, *start as usize..*end as usize, |v| {
                        before(v.cmp(bound))
                    });
                    *(if is_start { start } else { end }) = place as u32;
                }
            };
        }
        match (&self.first, &self.fences, &search.searched) {
            (Ordinals::Narrow(values), Ordinals::Narrow(fences), Ordinals::Narrow(bounds)) => {
                narrow!(values, fences, bounds);
            }
            (Ordinals::Wide(values), Ordinals::Wide(fences), Ordinals::Wide(bounds)) => {
                narrow!(values, fences, bounds)
            }
            (Ordinals::Text(values), Ordinals::Text(fences), Ordinals::Text(bounds)) => {
                narrow!(values, fences, bounds)
            }
            _ => unreachable!("values, fences and bounds have one form"),
        }
        without_nulls(bounds, search);
    }

    /// The next pairs: a full step, if this round has as many.
    fn fill(&self, pairs: &mut Pairs, search: &mut OrderedSearch) {
        pairs.clear();
        while pairs.len() == 0 {
            if search.served.end == search.rows.len() {
                search.window = (search.window * MORE).min(CHUNK_ROWS);
                if !search.begin_round() {
                    return;
                }
            }
            search.served.start = search.served.end;
            while search.served.end < search.rows.len() && pairs.len() < CHUNK_ROWS {
                let row = search.rows[search.served.end] as usize;
                let wanted = search.window.min(CHUNK_ROWS - pairs.len());
                let (from, end) = (search.starts[row] as usize, search.ends[row] as usize);
                let next = match &self.second {
                    None => {
                        let stop = end.min(from + wanted);
                        self.push(row, from..stop, pairs);
                        stop
                    }
                    Some(second) => self.push_matches(second, row, from..end, wanted, &search.bounds, pairs),
                };
                search.starts[row] = next as u32;
                search.served.end += 1;
            }
        }
    }

    /// Adds a pair of `row` with each of these places.
    fn push(&self, row: usize, places: Range<usize>, pairs: &mut Pairs) {
        pairs.rows.resize(pairs.rows.len() + places.len(), row as u16);
        match self.ids.is_empty() {
            true => pairs.ids.extend(places.start as u32..places.end as u32),
            false => pairs.ids.extend_from_slice(&self.ids[places]),
        }
    }

    /// Adds pairs of `row` with the first `wanted` of these places whose second value is within its bound;
    /// returns the place to continue from.
    fn push_matches(
        &self,
        second: &Second,
        row: usize,
        places: Range<usize>,
        wanted: usize,
        bounds: &Ordinals,
        pairs: &mut Pairs,
    ) -> usize {
        let or_equal =
            self.lookup.second.is_some_and(|(op, _)| matches!(op, CompareOp::LtEq | CompareOp::GtEq));
        let mut at = places.start;
        macro_rules! matches {
            ($tree:expr, $bounds:expr) => {
                for _ in 0..wanted {
                    at = $tree.next(at, places.end, &$bounds[row], or_equal);
                    if at == places.end {
                        break;
                    }
                    self.push(row, at..at + 1, pairs);
                    at += 1;
                }
            };
        }
        match (second, bounds) {
            (Second::Narrow(tree), Ordinals::Narrow(bounds)) => matches!(tree, bounds),
            (Second::Wide(tree), Ordinals::Wide(bounds)) => matches!(tree, bounds),
            (Second::Text(tree), Ordinals::Text(bounds)) => matches!(tree, bounds),
            _ => unreachable!("values and bounds have one form"),
        }
        at
    }
}

impl Second {
    /// No values, in the form of this expression.
    fn form(&self) -> Ordinals {
        match self {
            Second::Narrow(_) => Ordinals::Narrow(Vec::new()),
            Second::Wide(_) => Ordinals::Wide(Vec::new()),
            Second::Text(_) => Ordinals::Text(Vec::new()),
        }
    }
}

impl OrderedSearch {
    /// Begins a round with the rows that have places left; false if there are none.
    fn begin_round(&mut self) -> bool {
        let (starts, ends) = (&self.starts, &self.ends);
        self.rows.retain(|&row| starts[row as usize] < ends[row as usize]);
        self.served = 0..0;
        !self.rows.is_empty()
    }
}
