//! Costs of reading and joining on this machine, by which a scan is weighed against looking rows up, and
//! orders and sides of joins against others.
//!
//! The cost of a scan is that of the encoded bytes of the blocks, and for each value that of its encoding, so
//! a packed column is cheaper to scan than a flat one. Looking up a row costs the same in every encoding.
//! Hence compression influences which is chosen. How these figures give the cost of a join is in
//! [`crate::estimate`].
//!
//! The figures are nanoseconds of one thread. A database begins with those of a machine that was measured
//! ([`Costs::default`]); [`crate::calibrate`] measures the one that it runs on.
//!
//! Paper: Westmann et al., *The Implementation and Performance of Compressed Databases*, section 4.2 (the
//! optimizer charges what is read at its compressed size, and decompression). Not here: sorts and
//! aggregations, for which there is nothing to choose.

use entasis_storage::TableSnapshot;
use entasis_storage::block::examples;

/// Memory that measuring them takes ([`crate::calibrate`]), in bytes, or less.
pub const MEMORY: usize = 192 << 20;
const MB: f64 = 1048576.0;
/// Row groups that the blocks of a column are estimated from, and blocks of each.
const SAMPLE: (usize, usize) = (8, 8);
/// The same where many columns are asked for and little depends on one.
const SMALL_SAMPLE: (usize, usize) = (2, 2);

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// A byte of blocks that are read from end to end, from memory.
    pub byte: f64,
    /// A row found by its layout key, and a value of it.
    pub lookup: f64,
    /// A value that a condition looks at, by encoding, whose bytes are in the cache.
    pub value: Vec<(&'static str, f64)>,
    /// A probe row that looks for its partners, or a pair that is handed on, in the nearest cache.
    pub step: f64,
    /// A row that a join keeps, but for its bytes.
    pub row: f64,
    /// A byte of it.
    pub kept_byte: f64,
    /// A value that is fetched from kept columns, in the nearest cache.
    pub fetch: f64,
    /// A value that becomes part of a tuple.
    pub encode: f64,
    /// A value that is fetched from a tuple, in the nearest cache.
    pub field: f64,
    /// A chunk in a probe, beside its rows: C3 of [`crate::exec::ChunkCosts`].
    pub chunk: f64,
    /// A row of a chunk in a probe with a small table: C4.
    pub chunk_row: f64,
    /// A column of a small chunk that is copied to a larger one, beside its rows: the larger part of C1.
    pub copied_column: f64,
    /// A byte of a row that is copied: C2 for each byte.
    pub copied_byte: f64,
    /// An access in no order to memory of so many bytes; they ascend.
    pub access: Vec<(f64, f64)>,
}

impl Default for Costs {
    /// Two virtual cores at 2.5 GHz with AVX-512 (`bench/record/costs-2026-11-22.txt`; those of chunks:
    /// `bench/record/compaction-sim-2026-11-27.txt`).
    fn default() -> Costs {
        let value = examples().map(|example| (example.encoding, example.nanoseconds));
        Costs {
            byte: 0.055,
            lookup: 117.0,
            value: value.collect(),
            step: 1.15,
            row: 4.9,
            kept_byte: 0.23,
            fetch: 0.45,
            encode: 3.5,
            field: 2.5,
            chunk: 200.0,
            chunk_row: 2.8,
            copied_column: 21.0,
            copied_byte: 0.03,
            access: vec![(MB, 0.7), (8.0 * MB, 2.4), (32.0 * MB, 3.8), (128.0 * MB, 4.6)],
        }
    }
}

impl Costs {
    /// What a value of an encoding costs. Views, which only blocks that were written have, are like strings.
    fn value(&self, encoding: &str) -> f64 {
        let find = |name| self.value.iter().find(|(own, _)| *own == name).map(|(_, cost)| *cost);
        find(encoding).or_else(|| find("strings")).unwrap_or(1.0)
    }

    /// What a row costs that an index names: it is looked up there and then in its table.
    pub(crate) fn by_index(&self) -> f64 {
        2.0 * self.lookup
    }

    /// What it costs to look at a column of all rows of a table, from a sample of its blocks.
    pub(crate) fn scan(&self, table: &TableSnapshot, column: usize) -> f64 {
        self.scan_of(table, column, SAMPLE)
    }

    /// What it costs to look at a column of one row, about.
    pub(crate) fn read(&self, table: &TableSnapshot, column: usize) -> f64 {
        self.scan_of(table, column, SMALL_SAMPLE) / (table.rows() as f64).max(1.0)
    }

    /// An access in no order to memory of so many bytes, by the logarithm of its size between sizes that were
    /// measured.
    pub(crate) fn access(&self, bytes: f64) -> f64 {
        between(&self.access, bytes)
    }

    fn scan_of(&self, table: &TableSnapshot, column: usize, (groups, blocks): (usize, usize)) -> f64 {
        let (mut cost, mut seen) = (0.0, 0);
        for group in spread(table.row_groups().len(), groups).filter_map(|number| table.row_group(number)) {
            for block in spread(group.blocks(), blocks) {
                let block = group.block_info(column, block);
                cost += block.bytes as f64 * self.byte + block.slots as f64 * self.value(block.encoding);
                seen += 1;
            }
        }
        // Blocks without rows are looked at as well.
        let all: usize = table.row_groups().map(|group| group.blocks()).sum();
        if seen == 0 { 0.0 } else { cost * all as f64 / f64::from(seen) }
    }

    /// The figures by name, with what they are.
    pub fn figures(&self) -> Vec<(String, f64)> {
        let mut all = Vec::new();
        self.clone().each(|name, figure| all.push((name.to_owned(), *figure)));
        all
    }

    /// Those of which some figures are known; the others are those of [`Costs::default`].
    pub fn of_figures(figures: &[(String, f64)]) -> Costs {
        let mut costs = Costs::default();
        costs.each(|name, figure| {
            if let Some((_, known)) = figures.iter().find(|(own, _)| own == name) {
                *figure = *known;
            }
        });
        costs
    }

    fn each(&mut self, mut each: impl FnMut(&str, &mut f64)) {
        each("byte read", &mut self.byte);
        each("row looked up", &mut self.lookup);
        each("join: step", &mut self.step);
        each("join: row kept", &mut self.row);
        each("join: byte kept", &mut self.kept_byte);
        each("join: value fetched", &mut self.fetch);
        each("join: value encoded", &mut self.encode);
        each("join: encoded value fetched", &mut self.field);
        each("chunk: in a probe", &mut self.chunk);
        each("chunk: row in a probe", &mut self.chunk_row);
        each("chunk: column copied", &mut self.copied_column);
        each("chunk: byte copied", &mut self.copied_byte);
        for (bytes, cost) in &mut self.access {
            each(&format!("access: {} MB", *bytes as u64 >> 20), cost);
        }
        for (name, cost) in &mut self.value {
            each(&format!("value: {name}"), cost);
        }
    }
}

/// What an access to memory of so many bytes costs, if it is known for some sizes, which ascend.
pub(crate) fn between(sizes: &[(f64, f64)], bytes: f64) -> f64 {
    let [first, .., last] = sizes else { return 0.0 };
    if bytes <= first.0 {
        return first.1;
    }
    let place = |size: f64| size.log2();
    let between = |a: &(f64, f64), b: &(f64, f64)| {
        a.1 + (b.1 - a.1) * (place(bytes) - place(a.0)) / (place(b.0) - place(a.0))
    };
    let pairs = || sizes.windows(2);
    match pairs().find(|pair| bytes <= pair[1].0) {
        Some(pair) => between(&pair[0], &pair[1]),
        // Beyond, the walk over the tables of pages gets longer as it did before.
        None => pairs().last().map_or(last.1, |pair| between(&pair[0], &pair[1]).max(last.1)),
    }
}

/// Up to `most` of the numbers below `count`, at equal distances.
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most);
    (0..taken).map(move |number| number * count / taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_all() {
        assert_eq!(spread(0, 8).count(), 0);
        assert_eq!(spread(3, 8).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(100, 4).collect::<Vec<_>>(), [0, 25, 50, 75]);
    }

    #[test]
    fn figures_come_back_and_others_stay() {
        let default = Costs::default();
        let mut costs = Costs { byte: 7.0, ..default.clone() };
        costs.access[1].1 = 9.0;
        costs.value[3].1 = 11.0;
        assert_eq!(Costs::of_figures(&costs.figures()), costs);
        let some = [("byte read".to_owned(), 7.0), ("of a later version".to_owned(), 1.0)];
        assert_eq!(Costs::of_figures(&some), Costs { byte: 7.0, ..default });
    }

    #[test]
    fn an_access_costs_more_the_more_memory_there_is() {
        let costs = Costs::default();
        let all: Vec<f64> = (0..40).map(|power| costs.access(f64::from(power).exp2())).collect();
        assert!(all.is_sorted() && all[39] > all[30] && all[0] > 0.0, "{all:?}");
        let middle = Costs { access: vec![(1e6, 1.0), (4e6, 3.0)], ..costs };
        assert!((middle.access(2e6) - 2.0).abs() < 1e-9);
    }
}
