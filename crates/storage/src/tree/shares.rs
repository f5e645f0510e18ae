//! Which bins of the counters the rows of a partition belong to. Bins and partitions begin as the same ranges
//! of keys; then partitions are cut and laid together, and bins stay.

use super::{LiveCounters, RowGroup, Shape};
use crate::tree::key::Key;

/// A bin, and the part of its counts that a partition gets.
pub(crate) type Share = (usize, f64);

impl Shape {
    /// For each partition of a row group, its shares of bins: of each bin as many as it has of the bin's
    /// rows. A bin without rows belongs to the partition that its fence is in. Reads the keys of partitions
    /// that several bins lie in.
    pub(crate) fn shares(&self, node: &RowGroup, own: &LiveCounters) -> Vec<Vec<Share>> {
        let count = node.partitions.len();
        let mut rows: Vec<Vec<(usize, usize)>> = Vec::with_capacity(count);
        let mut of_bins = vec![0; own.bins()];
        let mut counts = vec![0usize; own.bins()];
        for (number, partition) in node.partitions.iter().enumerate() {
            let first = if number == 0 { 0 } else { own.bin_of(&node.fences.get(number)) };
            let last = match number + 1 < count {
                true => own.bin_below(&node.fences.get(number + 1)).max(first),
                false => own.bins() - 1,
            };
            let mut bins = Vec::new();
            if first == last {
                bins.push((first, partition.rows as usize));
            } else {
                self.each_key(node, number, |_, key| counts[own.bin_of(&key)] += 1);
                // A key that equals the next fence is in the next bin.
                let end = (last + 2).min(own.bins());
                let found = counts[first..end].iter_mut().map(std::mem::take);
                bins.extend((first..end).zip(found).filter(|(_, rows)| *rows > 0));
            }
            bins.iter().for_each(|(bin, rows)| of_bins[*bin] += rows);
            rows.push(bins);
        }
        let mut shares: Vec<Vec<Share>> = rows
            .into_iter()
            .map(|bins| {
                let of = |(bin, rows): (usize, usize)| (bin, rows as f64 / of_bins[bin].max(1) as f64);
                bins.into_iter().filter(|(_, rows)| *rows > 0).map(of).collect()
            })
            .collect();
        for bin in (0..own.bins()).filter(|bin| of_bins[*bin] == 0) {
            shares[node.fences.part_for(&own.fences().get(bin))].push((bin, 1.0));
        }
        shares
    }

    /// Calls `each` with the slot and the key of every row of a partition.
    pub(crate) fn each_key(&self, node: &RowGroup, partition: usize, mut each: impl FnMut(usize, Key)) {
        let Some(key) = &self.key else { return };
        let slots = node.partitions[partition].slots();
        let start = slots.start;
        node.each_live(slots, |position| {
            let slot = start + position;
            let slice = &node.slices[slot / node.block_slots];
            let at = slot % node.block_slots;
            let datum = |column: usize| slice.block(column).datum(at, self.schema[column].ty.physical());
            each(slot, key.of_row(datum));
        });
    }
}
