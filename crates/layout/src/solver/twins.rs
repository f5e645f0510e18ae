//! Slow twins of the solver: all partitionings, and the recurrence without its structure. They use the
//! original terms and share only [`Limits`] with the solver.

use super::Limits;
use crate::partitioning::Partitioning;
use crate::random::Random;

/// Terms as integers.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    pub(super) back: Vec<i64>,
    pub(super) forward: Vec<i64>,
    pub(super) trailing: Vec<i64>,
    pub(super) boundary: Vec<i64>,
}

impl Instance {
    /// Random terms below `most`; reads are often 0, trailing and boundary have any sign.
    pub(super) fn random(blocks: usize, most: usize, random: &mut Random) -> Instance {
        let sparse = random.below(3);
        let mut reads = || -> Vec<i64> {
            let mut one = || if random.below(3) < sparse { 0 } else { random.below(most) as i64 };
            (0..blocks).map(|_| one()).collect()
        };
        let (back, forward) = (reads(), reads());
        let mut signed = |most: usize| -> Vec<i64> {
            (0..blocks).map(|_| random.below(2 * most + 1) as i64 - most as i64).collect()
        };
        Instance { back, forward, trailing: signed(most / 2), boundary: signed(most * 2) }
    }

    pub(super) fn blocks(&self) -> usize {
        self.back.len()
    }

    /// The cost of a partitioning: block by block, counting the boundaries at or after each.
    pub(super) fn cost(&self, bits: &[bool]) -> i128 {
        let mut cost = 0;
        for i in 0..bits.len() {
            let before = (0..i).rev().take_while(|&j| !bits[j]).count();
            let behind = (i..bits.len() - 1).take_while(|&j| !bits[j]).count();
            let boundaries = bits[i..].iter().filter(|bit| **bit).count();
            cost += i128::from(self.back[i]) * before as i128
                + i128::from(self.forward[i]) * behind as i128
                + i128::from(self.trailing[i]) * boundaries as i128
                + if bits[i] { i128::from(self.boundary[i]) } else { 0 };
        }
        cost
    }
}

/// Whether a partitioning satisfies limits, by their definition.
pub(super) fn keeps(partitioning: &Partitioning, limits: &Limits) -> bool {
    let width = |blocks: &std::ops::RangeInclusive<usize>| blocks.end() + 1 - blocks.start();
    let bits = partitioning.bits();
    let last = bits.len() - 1;
    limits.width.is_none_or(|most| partitioning.iter().all(|blocks| width(&blocks) <= most))
        && limits.widths.as_ref().is_none_or(|most| {
            partitioning.iter().all(|blocks| blocks.clone().all(|block| width(&blocks) <= most[block]))
        })
        && limits.partitions.is_none_or(|most| partitioning.partitions() <= most)
        && limits.trailing.as_ref().is_none_or(|most| {
            (0..bits.len()).all(|block| bits[block..].iter().filter(|bit| **bit).count() <= most[block])
        })
        && limits.may_end.as_ref().is_none_or(|may_end| (0..last).all(|block| !bits[block] || may_end[block]))
}

/// All partitionings of some blocks.
pub(super) fn partitionings(blocks: usize) -> impl Iterator<Item = Partitioning> {
    (0..1u32 << (blocks - 1)).map(move |word| {
        let bits: Vec<bool> = (0..blocks).map(|block| word >> block & 1 == 1).collect();
        Partitioning::of_bits(&bits).expect("blocks")
    })
}

/// The least cost of all partitionings that satisfy limits.
pub(super) fn enumerated(instance: &Instance, limits: &Limits) -> Option<i128> {
    let kept = partitionings(instance.blocks()).filter(|partitioning| keeps(partitioning, limits));
    kept.map(|partitioning| instance.cost(&partitioning.bits())).min()
}

/// The same by the recurrence, from the end, over the blocks and the number of later partitions, with all
/// candidates: O(N² · partitions).
pub(super) fn recurrence(instance: &Instance, limits: &Limits) -> Option<i128> {
    let blocks = instance.blocks();
    let most = limits.partitions.unwrap_or(blocks).min(blocks);
    // behind[t][a]: the least cost of the blocks from a on in exactly t partitions.
    let mut behind: Vec<Vec<Option<i128>>> = vec![vec![None; blocks + 1]; most + 1];
    behind[0][blocks] = Some(0);
    for first in (0..blocks).rev() {
        let mut reads = 0i128;
        let (mut forward, mut end) =
            (0i128, instance.trailing[..first].iter().map(|t| i128::from(*t)).sum::<i128>());
        let (mut narrowest, mut fewest_allowed) = (limits.width.unwrap_or(blocks), most);
        for last in first..blocks {
            reads += forward + i128::from(instance.back[last]) * (last - first) as i128;
            forward += i128::from(instance.forward[last]);
            end += i128::from(instance.trailing[last]);
            narrowest = narrowest.min(limits.widths.as_ref().map_or(blocks, |widths| widths[last]));
            fewest_allowed =
                fewest_allowed.min(limits.trailing.as_ref().map_or(most, |trailing| trailing[last]));
            if last + 1 - first > narrowest {
                break;
            }
            let may_end = last + 1 == blocks || limits.may_end.as_ref().is_none_or(|may_end| may_end[last]);
            if !may_end {
                continue;
            }
            let cost = reads + end + i128::from(instance.boundary[last]);
            for count in 1..=fewest_allowed {
                if let Some(rest) = behind[count - 1][last + 1] {
                    let own = &mut behind[count][first];
                    *own = Some(own.map_or(rest + cost, |least| least.min(rest + cost)));
                }
            }
        }
    }
    behind.iter().filter_map(|behind| behind[0]).min()
}
