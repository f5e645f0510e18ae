//! The costs of operations in our storage, for which the paper's model does not hold. A block is a slice of
//! 1024 slots of all columns. docs/design/layout.md derives each term from the sources.
//!
//! | operation | costs that depend on its block's partition | costs that do not depend on partitions |
//! |---|---|---|
//! | point query | its key column is compared slice by slice until the row is found: half of `compare` for each further one | `lookup`, `read` |
//! | range | all slices of its first and its last partition are filtered, those between are read whole: `filter` for each further one before its start and behind its end, `filter - scan` for those that it would have read anyway | `range`, `filter` twice, `scan` for each slice |
//! | delete, update from | half of `compare` for each further slice | `lookup`, `delete` |
//! | insert | it looks whether its key is there, and for a ghost: `compare` and `pass` for each further slice | `lookup`, `write`, two moves |
//! | update to | as an insert | `lookup`, `arrive` |
//!
//! **No operation pays for the number of partitions**: a ghost comes from the partition itself, from a
//! neighbour, or from an additional slice (decisions 3 and 48). So [`Terms::trailing`] is 0, all other terms
//! favour narrow partitions, and the finest ones are the best, unless memory has a price. It has one here: a
//! partition takes `partition_bytes`, and one that takes inserts has `slack` empty slots on average, whatever
//! its width.
//!
//! **Extended partitions** (decision 48) are partitions of a slice more. That one is short, so that to look
//! at it costs no more than `compare` says, and mostly less; and a full partition of any width moves two rows
//! for each insert, or fewer: it gets slices until it has 2 W - 1, and only then moves their rows.
//!
//! **Of a machine and a table** ([`Engine::on`]): what waits for memory is in proportion to a look-up of the
//! machine, and what reads slices to their bits as they are encoded (the paper's 6.2) and to the cost of a
//! byte; rows that are written cost by their columns. The finest partitions stay the best, since all costs
//! stay positive. `entasis-casper costs` measures how far all of this is off, for tables of some 50 MB:
//! larger ones miss caches more often.
//!
//! A point query for a missing key compares all slices; histograms do not show this, and half is assumed. The
//! following are not modelled, since they are not sums over blocks of this form: a narrower range of keys
//! makes codes narrower; inserts into few slices copy less after a snapshot than inserts into many, and
//! extend fewer partitions; an update within a partition moves nothing; a range within one slice filters it
//! once, and is charged for both of its ends, as in the paper.

use super::{Model, Terms};
use crate::frequency::{Frequency, Kind};

/// Slots of a slice.
pub(super) const SLICE: f64 = 1024.0;
/// Bits of a byte.
const BYTE: f64 = 8.0;
/// As many inserts as an eighth of the rows are expected between two rests of a row group.
const RESTS: f64 = 8.0;

/// What `CALIBRATE` measures of a machine that the costs of storage depend on, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// A row found by its layout key, and a value of it, in a table of a million keys.
    pub lookup: f64,
    /// A byte of blocks that are read from end to end, from memory.
    pub byte: f64,
}

impl Default for Machine {
    /// Two virtual cores at 2.5 GHz (`bench/record/costs-2026-11-22.txt`).
    fn default() -> Machine {
        Machine { lookup: 117.0, byte: 0.055 }
    }
}

/// What the costs of operations on a table depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// Columns.
    pub columns: usize,
    /// Bits of a slot in the layout key, as its blocks are encoded.
    pub key_bits: f64,
    /// The same in the columns that ranges read, together.
    pub read_bits: f64,
    /// The share of the slots that are ghosts when a row group rests.
    pub ghosts: f64,
    /// Bytes of a row in memory.
    pub row_bytes: f64,
}

impl Default for Stored {
    /// The HAP table of 17 columns, of which a range reads one.
    fn default() -> Stored {
        Stored { columns: 17, key_bits: 31.0, read_bits: 20.0, ghosts: 0.01, row_bytes: 72.0 }
    }
}

/// The model of our storage. Times are in nanoseconds. See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Engine {
    /// Finds a row by its key, or that there is none, in a partition of one slice.
    pub lookup: f64,
    /// Reads a value of a row that was found.
    pub read: f64,
    /// Compares the keys of one more slice.
    pub compare: f64,
    /// Finds both ends of a range.
    pub range: f64,
    /// Reads a slice of which some rows are wanted, by their keys.
    pub filter: f64,
    /// Reads a slice all of whose rows are wanted.
    pub scan: f64,
    /// Checks that a slice has no ghost.
    pub pass: f64,
    /// Turns a row into a ghost.
    pub delete: f64,
    /// Writes a new row into a ghost slot.
    pub write: f64,
    /// Takes the values of a row whose key changes, and writes them into another partition: into slots that
    /// others have left, whose blocks have rested.
    pub arrive: f64,
    /// Moves a row of all columns when slices are spread.
    pub move_row: f64,
    /// Bytes of a row in memory.
    pub row_bytes: f64,
    /// Bytes of a partition: its slots and its fence.
    pub partition_bytes: f64,
    /// Average number of empty slots of a partition that takes inserts.
    pub slack: f64,
    /// The price of a byte for the duration of the workload. At 0 the finest partitions are the best.
    pub byte: f64,
}

impl Default for Engine {
    /// The HAP table on the default machine. Memory has no price.
    fn default() -> Engine {
        Engine::on(&Machine::default(), &Stored::default())
    }
}

impl Engine {
    /// What an insert takes for each further slice of its partition: to see that its key is not there, and
    /// that the slice has no ghost.
    pub(super) fn room(&self) -> f64 {
        self.compare + self.pass
    }

    /// The model for a table on a machine. Bits may be averages, and any that are not negative. The constants
    /// are those of a million rows of the HAP table, in look-ups and bytes of the default machine
    /// (`bench/record/casper-costs-2026-11-29.txt`); moves are those of decisions 3 and 9.
    #[must_use]
    pub fn on(machine: &Machine, table: &Stored) -> Engine {
        let scale = machine.lookup / Machine::default().lookup;
        let slice = |bits: f64| bits.max(0.0) / BYTE * SLICE * machine.byte;
        let columns = table.columns as f64;
        // A row for blocks that have rested is written into packed codes, which are farther apart.
        let settled = 7.0 * columns * (RESTS * table.ghosts).clamp(0.0, 1.0);
        Engine {
            lookup: 135.0 * scale,
            read: 75.0 * scale,
            compare: 23.0 * scale,
            range: 300.0 * scale,
            filter: 45.0 * scale + slice(table.key_bits + table.read_bits),
            scan: 85.0 * scale + slice(table.read_bits),
            pass: 5.0 * scale,
            delete: 33.0 * scale,
            write: (45.0 + 34.0 * columns + settled) * scale,
            arrive: 94.0 * columns * scale,
            move_row: 40.0 * scale,
            row_bytes: table.row_bytes,
            partition_bytes: 24.0,
            slack: SLICE / 2.0,
            byte: 0.0,
        }
    }
}

impl Model for Engine {
    fn terms(&self, frequency: &Frequency) -> Terms {
        let of = |kind: Kind| frequency.of(kind);
        let mut terms = Terms::new(frequency.blocks());
        for i in 0..frequency.blocks() {
            let (starts, scans, ends) = (of(Kind::RangeStart)[i], of(Kind::Scan)[i], of(Kind::RangeEnd)[i]);
            let found = of(Kind::PointQuery)[i];
            let left = of(Kind::UpdateFromForward)[i] + of(Kind::UpdateFromBackward)[i];
            let taken = of(Kind::Delete)[i] + left;
            let inserted = of(Kind::Insert)[i];
            let arrived = of(Kind::UpdateToForward)[i] + of(Kind::UpdateToBackward)[i];
            let added = inserted + arrived;
            terms.fixed[i] = self.lookup * (found + taken + added)
                + self.read * found
                + self.range * starts
                + self.filter * (starts + ends)
                + self.scan * scans
                + self.delete * taken
                + (self.write + 2.0 * self.move_row) * inserted
                + self.arrive * arrived;
            let room = self.room() * added;
            // The position of a row in an unordered partition is random.
            let looked = self.compare * (found + taken) / 2.0;
            // Slices of the range's own that are filtered, too, since its partition is.
            let own = (self.filter - self.scan).max(0.0);
            terms.back[i] = self.filter * starts + own * ends + looked + room;
            terms.forward[i] = self.filter * ends + own * starts + looked + room;
            let slack = self.slack * (added / self.slack.max(1.0)).min(1.0);
            terms.boundary[i] = self.byte * (self.partition_bytes + slack * self.row_bytes);
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::Operation;
    use crate::partitioning::Partitioning;
    use crate::random::Random;
    use crate::solver::{Limits, Prices, solve};

    /// The twin of "two moves, or fewer": a partition of W slices that takes inserts gets slices, one after
    /// the other, until it has 2 W - 1, or two if that is more. Then its rows are laid over one more, as
    /// partitions of W slices, of which one is followed: all of them get as many rows.
    fn moves_an_insert(width: usize, slice: usize, cycles: usize) -> f64 {
        let (mut moves, mut inserts, mut rows) = (0, 0, width * slice / 2);
        let most = (2 * width - 1).max(2);
        for _ in 0..cycles {
            let mut slices = width;
            while slices < most || rows < slices * slice {
                slices += usize::from(rows == slices * slice);
                rows += 1;
                inserts += 1;
            }
            moves += rows;
            rows /= (most + 1) / width;
        }
        moves as f64 / inserts as f64
    }

    #[test]
    fn partitions_of_any_width_move_two_rows_or_fewer() {
        let reckoned = |width: usize| moves_an_insert(width, 96, 500);
        assert!((reckoned(1) - 1.5).abs() < 0.01, "three of one slice: {}", reckoned(1));
        for width in 2..=12 {
            assert!((reckoned(width) - 2.0).abs() < 0.02, "{width}: {}", reckoned(width));
        }
    }

    fn random_workload(blocks: usize, random: &mut Random) -> Frequency {
        let mut frequency = Frequency::new(blocks);
        for kind in Kind::ALL {
            frequency.of_mut(kind).iter_mut().for_each(|bin| *bin = (1 + random.below(1000)) as f64);
        }
        frequency
    }

    /// Expected by the audit of storage: if memory has no price, there is nothing to trade off.
    #[test]
    fn without_a_price_of_memory_the_finest_partitions_are_the_best() {
        let mut random = Random::new(4);
        for _ in 0..100 {
            let frequency = random_workload(40, &mut random);
            let terms = Engine::default().terms(&frequency);
            assert!(terms.trailing.iter().all(|term| *term == 0.0));
            let solution =
                solve(&Prices::of(&terms).expect("in range"), &Limits::default()).expect("no limits");
            assert_eq!(solution.partitioning.partitions(), 40);
        }
    }

    /// Narrow codes make ranges cheaper in proportion, and nothing else; the finest partitions stay the best.
    #[test]
    fn encoded_bits_are_charged() {
        let (machine, table) = (Machine::default(), Stored::default());
        let encoded =
            |key_bits: f64, read_bits: f64| Engine::on(&machine, &Stored { key_bits, read_bits, ..table });
        let wide = encoded(32.0, 32.0);
        let narrow = encoded(10.0, 8.0);
        assert_eq!(Engine { filter: wide.filter, scan: wide.scan, ..narrow }, wide, "nothing else changes");
        let mut frequency = Frequency::new(64);
        frequency.count(Operation::Range(8, 40), 1.0);
        let finest = Partitioning::equal(64, 1);
        let by_bits = |bits: f64| encoded(32.0, bits).terms(&frequency).cost(&finest);
        // 33 slices are read, a byte of 1024 slots for 8 bits.
        assert!((by_bits(24.0) - by_bits(16.0) - 33.0 * 1024.0 * machine.byte).abs() < 1e-6);
        // The key matters where slices are filtered: two, or all of a partition.
        let by_key = |bits: f64, width: usize| {
            encoded(bits, 32.0).terms(&frequency).cost(&Partitioning::equal(64, width))
        };
        let of_bits = |width: usize| (by_key(16.0, width) - by_key(8.0, width)) / 1024.0 / machine.byte;
        assert!((of_bits(1) - 2.0).abs() < 1e-6 && (of_bits(4) - 8.0).abs() < 1e-6);
        let mut random = Random::new(9);
        for _ in 0..20 {
            let terms = encoded(0.0, 3.5).terms(&random_workload(30, &mut random));
            let best = solve(&Prices::of(&terms).expect("in range"), &Limits::default()).expect("no limits");
            assert_eq!(best.partitioning.partitions(), 30);
        }
    }

    /// All but what slices take to read is in proportion to a look-up; rows cost by their columns.
    #[test]
    fn machines_and_tables_are_scaled() {
        let (machine, table) = (Machine::default(), Stored::default());
        let once = Engine::on(&Machine { byte: 0.0, ..machine }, &table);
        let twice = Engine::on(&Machine { lookup: 2.0 * machine.lookup, byte: 0.0 }, &table);
        let all = |engine: &Engine| {
            let Engine { lookup, read, compare, range, filter, scan, .. } = *engine;
            let Engine { pass, delete, write, arrive, move_row, .. } = *engine;
            [lookup, read, compare, range, filter, scan, pass, delete, write, arrive, move_row]
        };
        assert!(all(&once).iter().zip(all(&twice)).all(|(once, twice)| (2.0 * once - twice).abs() < 1e-9));
        let of = |columns: usize, ghosts: f64| Engine::on(&machine, &Stored { columns, ghosts, ..table });
        let each = |columns: usize| of(columns, 0.0).write - of(columns - 1, 0.0).write;
        assert!((each(2) - each(40)).abs() < 1e-9 && each(2) > 0.0);
        assert!(of(8, 0.5).write > of(8, 0.02).write && of(8, 0.5).write == of(8, 0.2).write);
    }

    #[test]
    fn with_one_partitions_are_narrow_where_they_are_used() {
        let mut frequency = Frequency::new(128);
        frequency.of_mut(Kind::PointQuery)[96..].fill(1000.0);
        frequency.of_mut(Kind::Insert)[96..].fill(10.0);
        frequency.of_mut(Kind::PointQuery)[..96].fill(0.01);
        let model = Engine { byte: 1.0, ..Engine::default() };
        let terms = model.terms(&frequency);
        let best = solve(&Prices::of(&terms).expect("in range"), &Limits::default()).expect("no limits");
        let widths: Vec<usize> = best.partitioning.iter().map(|blocks| blocks.count()).collect();
        assert_eq!(widths.last(), Some(&1));
        assert!(widths[0] > 1, "{widths:?}");
    }
}
