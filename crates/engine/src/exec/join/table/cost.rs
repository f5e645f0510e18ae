//! The estimated cost of a join with each table, which `auto` compares.
//!
//! ```text
//! build   rows × (the table's own + moved columns + accesses to what is written)  + bytes of the table
//! probe   probe rows × (the table's own + an access to the directory)
//!         matches × accesses to keys and successors, where there are any
//!         further rows of a key × what each takes
//! ```
//! Only differences between tables count: keeping rows, reading keys and gathering payloads are left out,
//! except for further rows of a key, which are adjacent in some tables and not in others. Rows, places and
//! bytes are facts of the finished build; the number of probe rows and the share that match are estimates.
//!
//! The figures are nanoseconds of one thread, fitted to `make bench-joins` and `make bench-join-memory`
//! ([`FIGURES`], [`ACCESS`]); `CALIBRATE` does not measure them again. They only need to rank the tables.
//!
//! Not here: probes in key order walk through a table of places, which makes these tables better than
//! estimated; and whether there is memory for a table ([`super::choice`]).

use crate::cost::between;
use crate::exec::join::tuning::{DISTINCT_PER_KEY, FULL_PROBE, LARGE_TABLE, MOVED_COLUMN, TABLE_BYTE};

/// The join to be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// Rows of the build side.
    pub rows: f64,
    /// Rows of the probe side.
    pub probes: f64,
    /// The share of the probe rows that match.
    pub matching: f64,
    /// Rows per key.
    pub per_key: f64,
    /// Bytes of a row's key columns.
    pub key_bytes: f64,
    /// Columns that are read; a table may have to move them.
    pub read: f64,
}

/// A table, with what its costs depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Table {
    /// With this many places, as are the next two.
    Array(f64),
    Ranked(f64),
    Cat(f64),
    Cht,
    Unchained,
    Chained,
}

/// The cost factors of a table, in nanoseconds unless said otherwise.
struct Figures {
    /// A row that goes into the table.
    build: f64,
    /// The factor of a random write during the build, compared with one alone; small where rows are put in
    /// place by partition and hit caches.
    write: f64,
    /// A probe row.
    probe: f64,
    /// A match.
    found: f64,
    /// Each further row of a key.
    further: f64,
    /// The factor of a probe's accesses: some wait for each other, and some words are adjacent.
    waits: f64,
}

/// For each table: array, ranked, CAT, CHT, unchained, chained.
const FIGURES: [Figures; 6] = [
    Figures { build: 1.0, write: 2.0, probe: 1.4, found: 0.0, further: 1.0, waits: 1.0 },
    Figures { build: 3.6, write: 6.9, probe: 1.9, found: 0.0, further: 0.8, waits: 1.1 },
    Figures { build: 4.1, write: 0.6, probe: 2.0, found: 0.0, further: 0.5, waits: 0.7 },
    Figures { build: 8.6, write: 0.3, probe: 4.1, found: 0.0, further: 6.5, waits: 1.4 },
    Figures { build: 3.7, write: 0.3, probe: 5.4, found: 0.7, further: 2.7, waits: 1.4 },
    Figures { build: 4.4, write: 3.2, probe: 6.4, found: 0.4, further: 2.7, waits: 1.0 },
];

const MB: f64 = 1048576.0;
/// The cost of a random access to a table of so many bytes, one of a block of prefetched ones, with pages of
/// 4 KB.
const ACCESS: [(f64, f64); 11] = [
    (MB / 16.0, 0.3),
    (MB, 0.6),
    (4.0 * MB, 1.0),
    (8.0 * MB, 1.2),
    (16.0 * MB, 1.8),
    (32.0 * MB, 3.0),
    (64.0 * MB, 4.0),
    (128.0 * MB, 5.0),
    (256.0 * MB, 5.5),
    (512.0 * MB, 6.0),
    (1024.0 * MB, 6.5),
];

fn access(bytes: f64) -> f64 {
    between(&ACCESS, bytes)
}

/// Nanoseconds of building and probing.
pub(super) fn nanoseconds(table: Table, work: &Work) -> f64 {
    let Work { rows, probes, matching, per_key, key_bytes, read } = *work;
    let matches = probes * matching;
    let heads = 8.0 * rows.max(1.0).log2().ceil().exp2();
    let is_repeated = per_key > DISTINCT_PER_KEY;
    let is_full = |places: f64| places <= rows && !is_repeated;
    // Bytes of the directory; columns that are moved; bytes that a match is looked up in; bytes of the table.
    let (figures, directory, moved, reached, bytes) = match table {
        Table::Array(places) => (0, 4.0 * places, 0.0, 0.0, 4.0 * places),
        Table::Ranked(places) => (1, places / 4.0, 0.0, 4.0 * rows, places / 4.0 + 4.0 * rows),
        Table::Cat(places) if is_full(places) => (2, 0.0, read, 0.0, 0.0),
        Table::Cat(places) => (2, places / 4.0, read, 0.0, places / 4.0),
        Table::Cht => (3, 2.0 * rows, read + 1.0, key_bytes * rows, 2.0 * rows),
        Table::Unchained => (4, 8.0 * rows, read + 1.0, key_bytes * rows, 8.0 * rows),
        Table::Chained => (5, heads, 0.0, key_bytes * rows, heads + 4.0 * rows),
    };
    let own = &FIGURES[figures];
    // The places of ranked rows are written beside the directory, and are larger.
    let written = if matches!(table, Table::Ranked(_)) { reached } else { directory };
    let mut build = own.build
        + own.write * access(written)
        + moved * (MOVED_COLUMN.0 + MOVED_COLUMN.1 * access(8.0 * rows));
    let mut found = own.found + if reached > 0.0 { own.waits * access(reached) } else { 0.0 };
    let mut further = own.further;
    let successor = own.waits * access(4.0 * rows);
    // If rows stay in place, a further row costs a successor and payload anywhere.
    let apart = successor + read * access(8.0 * rows);
    match table {
        Table::Array(_) | Table::Ranked(_) if is_repeated => {
            // The build tries without successors first, which fails.
            build *= 2.0;
            further += apart;
        }
        Table::Cat(_) if is_repeated => found += 4.0 + own.waits * access(4.0 * rows / per_key),
        // The end of a chain has to be found even if there is no further row.
        Table::Chained => {
            found += successor;
            further += apart + own.waits * access(reached);
        }
        _ => {}
    }
    let byte = if bytes > LARGE_TABLE { TABLE_BYTE.1 } else { TABLE_BYTE.0 };
    let mut probe = own.probe + own.waits * access(directory);
    if matches!(table, Table::Cat(places) if is_full(places)) {
        probe = own.probe - FULL_PROBE;
    }
    rows * build + bytes * byte + probes * probe + matches * (found + (per_key - 1.0).max(0.0) * further)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work =
        Work { rows: 1e6, probes: 1e7, matching: 1.0, per_key: 1.0, key_bytes: 8.0, read: 1.0 };

    fn best<const N: usize>(work: &Work, tables: [Table; N]) -> Table {
        let cost = |table: &Table| nanoseconds(*table, work);
        tables.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap()
    }

    #[test]
    fn more_work_takes_longer() {
        for table in [
            Table::Array(2e6),
            Table::Ranked(2e6),
            Table::Cat(2e6),
            Table::Cht,
            Table::Unchained,
            Table::Chained,
        ] {
            let time = nanoseconds(table, &WORK);
            assert!(time.is_finite() && time > 0.0);
            let more =
                [Work { probes: 2e7, ..WORK }, Work { rows: 2e6, ..WORK }, Work { per_key: 3.0, ..WORK }];
            assert!(more.iter().all(|more| nanoseconds(table, more) > time), "{table:?}");
        }
    }

    #[test]
    fn the_fastest_table_is_that_of_the_measurements() {
        let places =
            |places| [Table::Array(places), Table::Ranked(places), Table::Cat(places), Table::Chained];
        let few = Work { rows: 400.0, probes: 150e3, ..WORK };
        assert_eq!(best(&few, places(10e3)), Table::Array(10e3));
        let large = Work { rows: 1e7, probes: 4e7, ..WORK };
        assert_eq!(best(&large, places(2e7)), Table::Cat(2e7));
        assert_eq!(best(&WORK, places(32e6)), Table::Cat(32e6));
        // Few rows of a wide range, hardly probed.
        assert_eq!(best(&Work { rows: 1e4, probes: 1e3, ..WORK }, places(64e6)), Table::Chained);
        let hashed = [Table::Cht, Table::Unchained, Table::Chained];
        assert_eq!(best(&WORK, hashed), Table::Cht);
        assert_eq!(best(&Work { probes: 1e5, ..WORK }, hashed), Table::Chained);
        assert_eq!(best(&Work { per_key: 4.0, ..WORK }, hashed), Table::Unchained);
    }
}
