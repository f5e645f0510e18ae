//! When a radix join pays: joins of two tables by size, width, ratio, matches and repetition, with one table
//! and with partitions.
//!
//! `make bench-radix-gates`, or
//! `cargo run --release -p entasis-engine --example radix_gates [tuning|held-out]`
//!
//! The factors of Bandle et al., *To Partition, or Not to Partition*, Table 4, over stored tables, so that a
//! build side may be read twice; keys are far from each other, so that every table goes by hash. The cells
//! with which the gates of `join/tuning.rs` were found (`tuning`) and cells of other sizes, ratios and widths
//! (`held-out`): a rule that is better on the former only fits their figures. All payload comes out, and the
//! last column is added up. Times are the least of several rounds, tables in turns, on as many threads as the
//! machine has. `CELL=3:7` cells by number, `ROUNDS=1`.

mod joined;
mod random;
mod ready;
mod stored;
mod timed;

use entasis_engine::exec::{Settings, TableKind};
use entasis_engine::relation::Relation;
use entasis_storage::Table;
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Field, Schema, Selection, Vector};
use joined::{Input, Outcome, join};
use random::Random;
use std::sync::Arc;
use stored::Stored;

/// Two tables to be joined.
struct Cell {
    /// Build rows in thousands, and probe rows for each.
    build: u64,
    ratio: f64,
    /// Bytes of a key and of a payload column.
    bytes: usize,
    /// Payload columns of the build and of the probe side.
    payloads: (usize, usize),
    /// Share of the probe rows that match, in percent.
    hits: u64,
    /// Build rows of a key.
    repeated: u64,
}

/// Build rows in thousands, ratio, bytes, payload columns, hits, rows of a key.
type Line = (u64, f64, usize, (usize, usize), u64, u64);

const TUNING: [Line; 15] = [
    (4000, 4.0, 4, (1, 1), 100, 1),
    (4000, 4.0, 8, (1, 1), 100, 1),
    (10_000, 1.0, 8, (1, 1), 100, 1),
    (10_000, 4.0, 4, (1, 1), 100, 1),
    (10_000, 4.0, 4, (1, 2), 100, 1),
    (10_000, 4.0, 8, (1, 1), 100, 1),
    (10_000, 4.0, 8, (1, 1), 25, 1),
    (10_000, 4.0, 8, (1, 4), 100, 1),
    (32_000, 1.0, 4, (1, 1), 100, 1),
    (32_000, 1.0, 8, (1, 1), 100, 1),
    (4000, 0.5, 8, (1, 1), 100, 30),
    (4000, 1.0, 8, (1, 1), 100, 2),
    (4000, 1.0, 8, (1, 1), 100, 4),
    (4000, 1.0, 8, (1, 1), 100, 30),
    (4000, 4.0, 8, (1, 1), 100, 4),
];

const HELD_OUT: [Line; 24] = [
    (2500, 3.0, 4, (1, 1), 100, 1),
    (2500, 3.0, 8, (1, 1), 100, 1),
    (6000, 1.5, 4, (1, 1), 100, 1),
    (6000, 1.5, 8, (1, 1), 100, 1),
    (6000, 3.0, 4, (1, 3), 100, 1),
    (6000, 3.0, 8, (1, 1), 70, 1),
    (6000, 3.0, 8, (2, 2), 100, 1),
    (6000, 7.0, 4, (1, 1), 100, 1),
    (6000, 7.0, 8, (1, 1), 100, 1),
    (13_000, 1.5, 4, (1, 1), 100, 1),
    (13_000, 1.5, 8, (1, 1), 100, 1),
    (13_000, 3.0, 4, (1, 1), 100, 1),
    (13_000, 3.0, 4, (1, 1), 40, 1),
    (13_000, 3.0, 8, (1, 1), 100, 1),
    (13_000, 3.0, 8, (1, 2), 100, 1),
    (22_000, 1.0, 4, (1, 1), 100, 1),
    (22_000, 1.0, 8, (1, 1), 100, 1),
    (22_000, 2.0, 8, (1, 1), 100, 1),
    (2500, 1.5, 8, (1, 1), 100, 12),
    (2500, 1.5, 8, (1, 3), 100, 12),
    (6000, 1.5, 8, (1, 1), 100, 3),
    (6000, 1.5, 8, (1, 1), 100, 6),
    (6000, 0.4, 8, (1, 1), 100, 12),
    (6000, 1.5, 8, (1, 1), 40, 12),
];

impl Cell {
    fn of((build, ratio, bytes, payloads, hits, repeated): Line) -> Cell {
        Cell { build, ratio, bytes, payloads, hits, repeated }
    }

    fn ty(&self) -> DataType {
        if self.bytes == 8 { DataType::Int64 } else { DataType::Int32 }
    }

    /// Key number i: far from the others, each once.
    fn key(&self, i: u64) -> i64 {
        match self.bytes {
            8 => {
                let mixed = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                (mixed ^ mixed >> 32).wrapping_mul(0xBB67_AE85_84CA_A73B) as i64
            }
            _ => i64::from((i as u32).wrapping_mul(0x9E37_79B1) as i32),
        }
    }

    /// A table of these keys, with payload that is made of them.
    fn table(&self, keys: impl Iterator<Item = i64>, payloads: usize) -> Arc<dyn Relation> {
        let names = (0..=payloads).map(|i| if i == 0 { "k".to_string() } else { format!("v{i}") });
        let schema: Schema = names.map(|name| Field::new(name, self.ty())).collect();
        let table = Table::new("stored", schema);
        let mut appender = table.appender();
        let mut keys = keys.peekable();
        let mut own = Vec::new();
        while keys.peek().is_some() {
            own.clear();
            own.extend(keys.by_ref().take(CHUNK_ROWS));
            let mut chunk = Chunk::new();
            chunk.reset(own.len());
            let group = chunk.push_group(Selection::ALL);
            for column in 0..=payloads as i64 {
                // The first column is the key itself.
                let value = |key: &i64| if column == 0 { *key } else { key ^ (0x5555 + column) };
                let vector = match self.bytes {
                    8 => Vector::from_slice(&own.iter().map(value).collect::<Vec<i64>>()),
                    _ => Vector::from_slice(&own.iter().map(|key| value(key) as i32).collect::<Vec<i32>>()),
                };
                chunk.push_column(vector, group);
            }
            appender.append(&chunk, 0).expect("there is memory");
        }
        table.commit(vec![appender.finish()]).expect("nobody else writes");
        Arc::new(Stored(table.snapshot()))
    }

    /// The join, with one kind of table.
    fn run(&self, [build, probe]: &[Arc<dyn Relation>; 2], join_table: TableKind) -> Outcome {
        let input = |relation, payloads| Input { relation, payloads };
        let settings = Settings { join_table, ..Settings::default() };
        join(input(probe, self.payloads.1), input(build, self.payloads.0), self.ty(), settings)
    }

    fn measure(&self, number: usize, rounds: usize) {
        use TableKind::{Auto, Chained, Cht, Radix, Unchained};
        let rows = self.build * 1000;
        let (keys, probes) = (rows / self.repeated, (rows as f64 * self.ratio) as u64);
        let mut random = Random(4711);
        let drawn = (0..probes).map(|_| {
            let one = random.below(keys);
            // Numbers from `keys` on are no keys.
            self.key(if random.below(100) < self.hits { one } else { one + keys })
        });
        let probe = self.table(drawn, self.payloads.1);
        // Equal keys are no neighbours.
        let build = self.table((0..rows).map(|i| self.key(i % keys)), self.payloads.0);
        let sides = [build, probe];
        let tables = [Auto, if self.repeated == 1 { Cht } else { Chained }, Unchained, Radix];
        let mut best = tables.map(|_| f64::INFINITY);
        let mut sums = tables.map(|_| 0);
        let mut taken = String::new();
        for _ in 0..rounds {
            for (i, &table) in tables.iter().enumerate() {
                let Outcome { milliseconds, sum, note } = self.run(&sides, table);
                best[i] = best[i].min(milliseconds);
                sums[i] = sum;
                if table == Auto {
                    let kinds = ["radix join", "concise hash table", "unchained", "chained"];
                    taken = kinds.into_iter().find(|kind| note.contains(kind)).unwrap_or(&note).to_string();
                }
            }
        }
        assert!(sums.iter().all(|&sum| sum == sums[0]), "all tables give the same");
        let width = |payloads: usize| self.bytes * (1 + payloads);
        let names: Vec<String> =
            tables.iter().zip(best).map(|(table, best)| format!("{table} {best:.0}")).collect();
        println!(
            "{number:2}: {} K : {} K rows of {} and {} bytes, {} of a key, {} % match: {} ms; auto: {taken}",
            self.build,
            probes / 1000,
            width(self.payloads.0),
            width(self.payloads.1),
            self.repeated,
            self.hits,
            names.join(", "),
        );
    }
}

fn main() {
    let variable = |name: &str| std::env::var(name).ok();
    let rounds = variable("ROUNDS").and_then(|text| text.parse().ok()).unwrap_or(2);
    let wanted = variable("CELL").unwrap_or_default();
    let end = |at: usize, or: usize| wanted.split(':').nth(at).and_then(|n| n.parse().ok()).unwrap_or(or);
    let set = std::env::args().nth(1);
    let sets: [(&str, &[Line]); 2] = [("tuning", &TUNING), ("held-out", &HELD_OUT)];
    for (name, lines) in sets.into_iter().filter(|(name, _)| set.as_deref().is_none_or(|set| set == *name)) {
        println!("{name}");
        for (number, &line) in lines.iter().enumerate().take(end(1, usize::MAX)).skip(end(0, 0)) {
            Cell::of(line).measure(number, rounds);
        }
    }
}
