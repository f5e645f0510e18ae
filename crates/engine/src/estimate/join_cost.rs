//! What a join costs, by the rows and bytes of both sides: which side is kept in the table, and which order
//! is cheapest.
//!
//! ```text
//! build side   rows × (row + byte × bytes + access(table))        and its columns are read for all its rows
//!              rows beyond a key's first × access(table)
//! probe side   rows × (step + access(table))                      and its keys are read for all its rows
//! pairs        pairs × (step + columns × (fetch + access(kept)))  and the probe side's other columns for these rows
//! ```
//!
//! - *access(size)* is an access in no order to memory of that size: [`Costs::access`].
//! - *table* is the heads, successors and keys of the build side, or what is left of them if its rows are
//!   counted first; *kept* is its payload, *bytes* are both. Values are kept in their types' default physical
//!   types, or as part of a [tuple](crate::exec::tuple): shorter, but dearer to write and to fetch.
//! - Of a key that is repeated, each row but the first is put behind another one, which is found first. Its
//!   matches are pairs as others are; that a further one is found by a step from the one before, and that its
//!   payload is elsewhere, is what a pair costs anyway. Where only the existence of a key is asked, rows
//!   behind the first are not there.
//! - A search in an order takes a step for each halving of the build rows instead, and so does to put one of
//!   them in order.
//! - *columns* are those of the build side that somebody above reads.
//! - Reading is weighed where it depends on the order. The keys of the build side filter the scan below the
//!   probe side, so that it reads its other columns for the rows that match only. A column that is dear to
//!   decode makes its table dear to build.
//!
//! Paper: Westmann et al., *The Implementation and Performance of Compressed Databases*, section 4.2
//! (decompression counts, and rows at the size that they have). Not here: that clustered keys walk through a
//! table in order, spilling, and which table a build side will get.

use crate::cost::Costs;
use crate::plan::JoinKind;

/// Heads and successors of a row, in bytes.
const TABLE_ROW: f64 = 12.0;
/// More than this part of the memory that is left is much.
const LARGE_PART: f64 = 4.0;
/// How many times one side's cost may be the other's, if they are to be taken for equal, and how many times
/// its bytes, if it is small.
const EQUAL: f64 = 1.1;
const SMALLER: f64 = 1.5;

/// What some columns of one side weigh, for a row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Width {
    /// Columns.
    pub columns: f64,
    /// Bytes, if they are kept as columns.
    pub bytes: f64,
    /// Nanoseconds to read them from their table, if the side is a scan.
    pub read: f64,
}

impl Width {
    /// One more column.
    pub(crate) fn add(&mut self, column: Width) {
        self.columns += column.columns;
        self.bytes += column.bytes;
        self.read += column.read;
    }
}

/// One side of a join.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct WeighedSide {
    /// Rows.
    pub rows: f64,
    /// The columns that only the join reads.
    pub keys: Width,
    /// The columns that somebody above reads.
    pub payload: Width,
    /// Bytes of the payload as a tuple, if this is what it will be kept as.
    pub tuple: Option<f64>,
    /// Bytes of the table and of kept keys for a row, if the rows can be read again and counted first.
    pub counted: Option<f64>,
    /// Rows of a key of the join, on average; less than 1 if nothing is known of that.
    pub per_key: f64,
}

impl WeighedSide {
    /// Bytes of the table and of the keys, if the rows are kept.
    fn table(&self) -> f64 {
        self.rows * self.counted.unwrap_or(TABLE_ROW + self.keys.bytes)
    }

    /// Rows that are not the first of their key.
    fn repeated(&self) -> f64 {
        self.rows * (1.0 - 1.0 / self.per_key.max(1.0))
    }

    /// Bytes of all of it, if the rows are kept.
    fn bytes(&self) -> f64 {
        self.table() + self.rows * self.tuple.unwrap_or(self.payload.bytes)
    }
}

/// How rows of a join's table are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// By equal keys.
    Keys,
    /// By a search in an order.
    Order,
    /// Not at all: all pairs are looked at.
    Nothing,
}

/// A join to be weighed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeighedJoin {
    pub kind: JoinKind,
    /// How rows of the table are found.
    pub by: By,
    pub left: WeighedSide,
    pub right: WeighedSide,
    /// Rows of the result.
    pub rows: f64,
    /// Bytes that may be kept.
    pub memory: f64,
}

/// What a join costs, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JoinCost {
    /// The left side is kept.
    pub keeps_left: bool,
    /// Nanoseconds.
    pub cost: f64,
    /// Nanoseconds with the other side kept; `None` if that cannot be.
    pub other: Option<f64>,
}

impl Costs {
    /// The side to keep, and what the join costs then. A side that would take a large part of the memory is
    /// kept only if it needs fewer bytes than the other one, or if that cannot be kept; of sides that cost
    /// about the same, one that needs much less.
    pub(crate) fn join(&self, join: &WeighedJoin) -> JoinCost {
        let right = self.keeping(join, false);
        if keeps_right_only(join) {
            return JoinCost { keeps_left: false, cost: right, other: None };
        }
        let left = self.keeping(join, true);
        let mut keeps_left = left < right;
        let (kept, other) = if keeps_left { (&join.left, &join.right) } else { (&join.right, &join.left) };
        let is_large = kept.bytes() > join.memory / LARGE_PART && other.bytes() < kept.bytes();
        let is_equal = left.max(right) <= EQUAL * left.min(right) && SMALLER * other.bytes() < kept.bytes();
        if is_large || is_equal {
            keeps_left = !keeps_left;
        }
        let (cost, other) = if keeps_left { (left, right) } else { (right, left) };
        JoinCost { keeps_left, cost, other: Some(other) }
    }

    /// What is yet to be done of `join` once all rows of the side to keep are there, `rows` of them:
    /// nanoseconds if they get their table, and if the other side is kept instead and they are looked up.
    /// `None` if the other side cannot be kept, or would need more memory.
    pub(crate) fn left_to_do(&self, join: &WeighedJoin, keeps_left: bool, rows: f64) -> Option<(f64, f64)> {
        if keeps_right_only(join) {
            return None;
        }
        let mut join = *join;
        let (kept, other) = match keeps_left {
            true => (&mut join.left, &join.right),
            false => (&mut join.right, &join.left),
        };
        join.rows *= rows / kept.rows.max(1.0);
        kept.rows = rows;
        // They have been read and written.
        (kept.keys.read, kept.payload.read) = (0.0, 0.0);
        let encoded = kept.tuple.map_or(0.0, |_| kept.payload.columns * self.encode);
        let written = self.kept_byte * (kept.keys.bytes + kept.payload.bytes) + encoded;
        if other.bytes() >= kept.bytes() {
            return None;
        }
        let stay = self.keeping(&join, keeps_left) - rows * written;
        Some((stay, self.keeping(&join, !keeps_left)))
    }

    /// The formula of the module.
    fn keeping(&self, join: &WeighedJoin, left: bool) -> f64 {
        let (build, probe) = if left { (&join.left, &join.right) } else { (&join.right, &join.left) };
        let pairs = join.rows;
        let table = self.access(build.table());
        let mut row = self.row + self.kept_byte * (build.keys.bytes + build.payload.bytes) + table;
        let mut fetch = build.payload.columns * self.fetch;
        match build.tuple {
            None => fetch += build.payload.columns * self.access(build.rows * build.payload.bytes),
            Some(bytes) => {
                row += build.payload.columns * self.encode;
                fetch = build.payload.columns * self.field + self.access(build.rows * bytes);
            }
        }
        let halvings = (build.rows + 1.0).log2();
        let (ordering, steps) = match join.by {
            By::Keys => (0.0, self.step + table),
            By::Order => {
                (self.step * halvings, (self.step * halvings + table).min(self.step * build.rows.max(1.0)))
            }
            By::Nothing => (0.0, self.step * build.rows.max(1.0)),
        };
        let asks_existence = !left && matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
        let linked = if join.by == By::Keys && !asks_existence { build.repeated() * table } else { 0.0 };
        let building = build.rows * (row + ordering + build.keys.read + build.payload.read) + linked;
        let probing = probe.rows * (steps + probe.keys.read) + pairs.min(probe.rows) * probe.payload.read;
        // Kept rows that are marked come out later, one behind the other.
        let comes_later = match join.kind {
            JoinKind::Left | JoinKind::Semi | JoinKind::Anti => left,
            JoinKind::Right => !left,
            _ => false,
        };
        let later =
            if comes_later { build.rows * (self.step + build.payload.columns * self.fetch) } else { 0.0 };
        building + probing + pairs * (self.step + fetch) + later
    }
}

/// True of joins whose left rows must stream by, or should: of a row that is within a bound, and that is to
/// have one match, others need not be found.
fn keeps_right_only(join: &WeighedJoin) -> bool {
    match join.kind {
        JoinKind::NullAwareAnti | JoinKind::Mark { .. } | JoinKind::Single | JoinKind::AsOf { .. } => true,
        JoinKind::Semi | JoinKind::Anti => join.by == By::Order,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(rows: f64, payload: f64) -> WeighedSide {
        let width = |columns: f64| Width { columns, bytes: columns * 8.0, read: 0.0 };
        WeighedSide { rows, keys: width(1.0), payload: width(payload), ..WeighedSide::default() }
    }

    fn inner(left: WeighedSide, right: WeighedSide) -> WeighedJoin {
        let rows = left.rows.min(right.rows);
        WeighedJoin { kind: JoinKind::Inner, by: By::Keys, left, right, rows, memory: f64::INFINITY }
    }

    fn keeps_left(join: WeighedJoin) -> bool {
        Costs::default().join(&join).keeps_left
    }

    #[test]
    fn the_smaller_side_is_kept_if_rows_are_equally_wide() {
        assert!(keeps_left(inner(side(1e4, 1.0), side(1e5, 1.0))));
        assert!(!keeps_left(inner(side(1e5, 1.0), side(1e4, 1.0))));
        let nested = WeighedJoin { by: By::Nothing, ..inner(side(10.0, 1.0), side(1e4, 1.0)) };
        assert!(keeps_left(nested));
    }

    #[test]
    fn the_narrower_side_is_kept_if_rows_are_nearly_as_many() {
        assert!(keeps_left(inner(side(1.2e6, 0.0), side(1e6, 10.0))));
        assert!(!keeps_left(inner(side(1.2e6, 10.0), side(1e6, 10.0))));
    }

    #[test]
    fn a_table_that_is_dear_to_decode_is_rather_probed() {
        let plain = side(1e5, 1.0);
        let dear = |read| WeighedSide { payload: Width { read, ..plain.payload }, ..plain };
        let join =
            |read| WeighedJoin { rows: 1e4, ..inner(WeighedSide { rows: 1.3e5, ..plain }, dear(read)) };
        assert!(!keeps_left(join(0.1)));
        assert!(keeps_left(join(50.0)));
    }

    #[test]
    fn tuples_are_smaller_and_take_time() {
        let rows = |tuple| WeighedSide { tuple, ..side(1e6, 6.0) };
        let join = |tuple| WeighedJoin { memory: 50e6, ..inner(side(1.1e6, 6.0), rows(tuple)) };
        let costs = Costs::default();
        assert!(costs.keeping(&join(Some(24.0)), false) > costs.keeping(&join(None), false));
        assert!(keeps_left(WeighedJoin { memory: f64::INFINITY, ..join(Some(24.0)) }));
        // Where memory is short, bytes decide.
        assert!(!keeps_left(join(Some(24.0))));
        assert!(!keeps_left(join(None)));
    }

    #[test]
    fn a_side_that_can_be_counted_first_is_rather_kept() {
        let counted = WeighedSide { counted: Some(0.5), ..side(1e6, 1.0) };
        assert!(keeps_left(inner(counted, side(1e6, 1.0))));
        assert!(!keeps_left(inner(side(1e6, 1.0), counted)));
        assert!(!keeps_left(inner(counted, side(1e4, 1.0))));
    }

    #[test]
    fn a_side_whose_keys_are_repeated_is_rather_probed() {
        // Two rows of a key, which are a key only, and one with a column: twice the time if the former are
        // kept, by `make bench-join-sides`.
        let wide = side(2e6, 1.0);
        let keys = |per_key| WeighedSide { per_key, ..side(4e6, 0.0) };
        let join = |per_key| WeighedJoin { rows: 4e6, ..inner(keys(per_key), wide) };
        assert!(keeps_left(join(1.0)) && !keeps_left(join(2.0)));
        let cost = |join: &WeighedJoin, left| Costs::default().keeping(join, left);
        // Unknown is once; nothing changes on the probe side, in an order, or where existence is asked.
        assert_eq!(cost(&join(0.0), true), cost(&join(1.0), true));
        assert_eq!(cost(&join(2.0), false), cost(&join(1.0), false));
        let bounds = |per_key| WeighedJoin { by: By::Order, ..join(per_key) };
        assert_eq!(cost(&bounds(2.0), true), cost(&bounds(1.0), true));
        let semi = |per_key| WeighedJoin { kind: JoinKind::Semi, ..inner(wide, keys(per_key)) };
        assert_eq!(cost(&semi(2.0), false), cost(&semi(1.0), false));
        // The more rows of a key, the dearer, to a bound.
        let costs = [1.0, 2.0, 4.0, 16.0, 1e6].map(|per_key| cost(&join(per_key), true));
        assert!(costs.is_sorted_by(|a, b| a < b) && costs[4] < 2.0 * costs[0], "{costs:?}");
    }

    #[test]
    fn some_joins_keep_the_right_side_only() {
        for kind in [JoinKind::NullAwareAnti, JoinKind::Single] {
            assert!(!keeps_left(WeighedJoin { kind, ..inner(side(10.0, 1.0), side(1e6, 1.0)) }));
        }
        assert!(keeps_left(WeighedJoin { kind: JoinKind::Semi, ..inner(side(10.0, 1.0), side(1e6, 0.0)) }));
        // A second way out costs a little.
        assert!(!keeps_left(WeighedJoin { kind: JoinKind::Semi, ..inner(side(1e5, 1.0), side(1e5, 1.0)) }));
    }

    #[test]
    fn many_more_rows_than_expected_are_rather_looked_up() {
        let costs = Costs::default();
        let join = inner(side(1e6, 1.0), side(10.0, 1.0));
        let left_to_do = |join: &WeighedJoin, rows| costs.left_to_do(join, false, rows);
        let (stay, swap) = left_to_do(&join, 1e7).unwrap();
        assert!(stay > 1.5 * swap && swap > 0.0, "{stay}, {swap}");
        // The rows are there: their table costs less than the whole join would.
        assert!(stay < costs.keeping(&WeighedJoin { right: side(1e7, 1.0), rows: 1e7, ..join }, false));
        // The other side would need more memory, or cannot be kept.
        assert_eq!(left_to_do(&join, 9e5), None);
        assert_eq!(left_to_do(&WeighedJoin { kind: JoinKind::Single, ..join }, 1e7), None);
    }
}
