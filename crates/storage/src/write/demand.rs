//! Ghosts by workload: what the partitions of a row group are to expect by its counters, how many ghosts each
//! should have, and whether it pays to bring them there. Only for layout `casper`.
//!
//! 1. *Expected* until ghosts are handed out again: as many inserts and incoming updates, less deletes and
//!    outgoing updates, as the counters remember. They forget by halves, so these are about the last hundred
//!    thousand operations on the row group.
//! 2. *Wanted*: the budget goes where a ghost saves most
//!    (`entasis_layout::ghosts::allocate`, exact); nobody gets more than is likely to be used, and what is
//!    left is for all alike.
//! 3. *Chosen*: which slices are laid anew (`entasis_layout::ghosts::moves`, exact). Rows are moved if that
//!    costs less than the inserts that would find no ghost, or if the row group has more slots than the
//!    budget allows. An insert without a ghost costs two moves ([`Engine`]), so a slice is worth moving for
//!    more inserts than it has half rows. A workload that comes everywhere alike moves nothing but what the
//!    budget asks for.
//!
//! **Two budgets.** Writers that find no ghost make some ([`super::room`]), half a slice at a time, so a row
//! group that is written has more ghosts than the table's share, wherever they are. To lay them together
//! after every pause would move rows again and again. So while a row group is in use it may have ghosts for
//! an eighth of its rows, as upkeep gives other layouts; and once it has not been written for long
//! ([`LiveCounters::has_rested`]), no more than the table's share. Both up to rounding: a row group has at
//! most two slices more than rows and budget need.
//!
//! **The bound.** What moves for the sake of saving is paid from an account: at any moment, whatever the
//! workload did, the rows that were moved so are at most two for each insert that was counted. An insert then
//! costs at most 1.158 times as much by the model as in the best layout in hindsight
//! ([`entasis_layout::ghosts::account`] has the argument). A hot spot that comes and goes, or one that is
//! remembered for long while the table rests again and again, cannot have rows moved more often than that.
//! What the budget demands is not charged.
//!
//! A decision is made once for what was counted: as long as nothing more is counted, only the budget moves
//! rows.

use super::Writer;
use crate::definition::TableOptions;
use crate::tree::key::Key;
use crate::tree::{Decision, LiveCounters, RowGroup, Shape, Upkept};
use entasis_layout::cost::Engine;
use entasis_layout::frequency::{Frequency, Kind};
use entasis_layout::ghosts::account::{MOVES, inserts_for, moves_within, rows_for};
use entasis_layout::ghosts::moves::{MoveTerms, Stretch};
use entasis_layout::ghosts::{Need, allocate, budget};
use std::ops::Range;

/// What is expected to be saved must exceed the cost of moving so many times.
const MARGIN: f64 = 1.2;
/// While a row group is in use, one ghost for so many rows is within the budget.
const IN_USE: usize = 8;
/// Ghosts are handed out in lots, so that there are no more than so many.
const LOTS: u64 = 1 << 14;

/// Rows in the order of the key, and the ghosts that should be among them.
pub(super) type Wanted = (usize, u64);

/// A window of slices that is to be laid out again over `slices` slices.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) old: Range<usize>,
    pub(crate) slices: usize,
    /// Where ghosts are wanted among its rows; nothing for equally everywhere.
    pub(super) wanted: Vec<Wanted>,
    /// Why it is laid anew.
    pub(super) why: Upkept,
    /// Inserts that pay for it.
    pub(crate) price: f64,
}

impl Window {
    /// A window whose ghosts come to be everywhere alike, for which nobody pays.
    pub(super) fn even(old: Range<usize>, slices: usize, why: Upkept) -> Window {
        Window { old, slices, wanted: Vec::new(), why, price: 0.0 }
    }
}

/// What a row group is to expect, by partition.
pub(crate) struct Demand {
    /// Inserts, net.
    pub(crate) inserts: Vec<f64>,
    /// Ghosts that a partition should have.
    pub(crate) wanted: Vec<u64>,
    /// The sum of these.
    pub(crate) budget: u64,
}

impl TableOptions {
    /// Ghosts that so many rows may have.
    pub(crate) fn ghost_budget(&self, rows: usize) -> u64 {
        budget(rows, self.ghost / (1.0 - self.ghost))
    }
}

impl Shape {
    /// Ghosts that a row group may have, in use or not.
    pub(crate) fn budget_of(&self, node: &RowGroup) -> u64 {
        let own = self.options.ghost_budget(node.rows);
        let has_rested = node.counters.as_ref().is_some_and(|own| own.has_rested());
        if has_rested { own } else { own.max((node.rows / IN_USE) as u64) }
    }

    /// The slices that rows and budget need.
    fn needed(&self, node: &RowGroup) -> usize {
        let slots = node.rows + self.budget_of(node) as usize;
        slots.div_ceil(node.block_slots).clamp(1, self.options.group_slots / node.block_slots)
    }

    /// The slices that the rows of a row group need if it has no more than the table's share of ghosts.
    pub(super) fn needed_at_rest(&self, node: &RowGroup) -> usize {
        let slots = node.rows + self.options.ghost_budget(node.rows) as usize;
        slots.div_ceil(node.block_slots).max(1)
    }

    /// True if a row group that has rested for long has more ghosts than it may have.
    pub(crate) fn has_too_many_ghosts(&self, node: &RowGroup) -> bool {
        let has_rested = |own: &LiveCounters| own.has_rested() && !own.is_blank();
        node.counters.as_deref().is_some_and(has_rested) && node.slices.len() > self.needed(node) + 1
    }

    /// What a row group is to expect; `None` if nothing was counted.
    pub(crate) fn demand(&self, node: &RowGroup) -> Option<Demand> {
        let own = node.counters.as_ref().filter(|own| !own.is_blank())?;
        let net = net_inserts(&own.frequency());
        let of_partition = |shares: Vec<(usize, f64)>| {
            shares.into_iter().map(|(bin, share)| net[bin] * share).sum::<f64>().max(0.0)
        };
        let inserts: Vec<f64> = self.shares(node, own).into_iter().map(of_partition).collect();
        let rows: Vec<usize> = node.partitions.iter().map(|partition| partition.rows as usize).collect();
        let budget = self.budget_of(node);
        Some(Demand { wanted: wanted(&inserts, &rows, budget), inserts, budget })
    }

    /// The windows of a row group that are to be laid anew, and why; `None` if nothing was counted. There is
    /// no decision if the last one holds.
    pub(super) fn by_demand(&self, node: &RowGroup) -> Option<(Vec<Window>, Option<Decision>)> {
        let own = node.counters.as_ref()?;
        let demand = self.demand(node)?;
        let (width, is_settled) = (node.block_slots, own.is_settled());
        let borders = borders(node);
        let stretches: Vec<Stretch> =
            borders.windows(2).map(|pair| demand.stretch(node, pair[0]..pair[1])).collect();
        let (present, needed) = (node.slices.len(), self.needed(node));
        // One slice more is rounding.
        let is_forced = present > needed + 1;
        if is_settled && !is_forced {
            return Some((Vec::new(), None));
        }
        let model = Engine::default();
        let terms = MoveTerms {
            slice: width as u64,
            most: if is_forced { needed } else { needed.max(present) } as u64,
            room: if is_settled { 0.0 } else { MOVES * model.move_row },
            row: MARGIN * model.move_row,
        };
        let afforded = moves_within(&stretches, &terms, rows_for(own.credit()));
        let (chosen, charged) = (afforded.moves, afforded.charged);
        let price = inserts_for(charged) / chosen.rows.max(1) as f64;
        let windows: Vec<Window> = chosen
            .runs
            .iter()
            .map(|run| {
                let old = borders[run.stretches.start]..borders[run.stretches.end];
                let wanted = demand.within(node, &old);
                let rows: u64 = stretches[run.stretches.clone()].iter().map(|stretch| stretch.rows).sum();
                let (slices, price) = (run.slices as usize, price * rows as f64);
                Window { old, slices, wanted, why: Upkept::ByWorkload, price }
            })
            .collect();
        let grown: isize =
            windows.iter().map(|window| window.slices as isize - window.old.len() as isize).sum();
        let after = (present as isize + grown) as usize * width;
        let (slots, over) = (node.slots(), node.slots() - node.rows);
        let why = match (windows.is_empty(), is_forced) {
            (true, _) if afforded.is_short => {
                "left as it is: what inserts may spend on moves has been spent".to_owned()
            }
            (true, _) => "left as it is: no move would save what it costs".to_owned(),
            (false, true) => format!("laid anew: {over} ghosts, and the budget is {}", demand.budget),
            (false, false) => "laid anew: ghosts are missing where rows are inserted".to_owned(),
        };
        let decision = Decision {
            why,
            moved: chosen.rows as usize,
            charged: charged as usize,
            slots: (slots, after),
            budget: demand.budget as usize,
            cost: chosen.cost / MARGIN,
            saving: chosen.saving,
        };
        Some((windows, Some(decision)))
    }
}

impl Demand {
    /// Some slices at whose ends no partition is cut.
    fn stretch(&self, node: &RowGroup, slices: Range<usize>) -> Stretch {
        let mut stretch =
            Stretch { rows: 0, slices: slices.len() as u64, inserts: 0.0, wanted: 0, short: 0.0, then: 0.0 };
        for number in partitions_of(node, &slices) {
            let need = Need { inserts: self.inserts[number], room: 1.0 };
            let partition = &node.partitions[number];
            stretch.rows += u64::from(partition.rows);
            stretch.inserts += need.inserts;
            stretch.wanted += self.wanted[number];
            stretch.short += need.cost(partition.ghosts() as u64);
            stretch.then += need.cost(self.wanted[number]);
        }
        stretch
    }

    /// The rows of the partitions of some slices, and the ghosts that these should have.
    fn within(&self, node: &RowGroup, slices: &Range<usize>) -> Vec<Wanted> {
        let of = |number: usize| (node.partitions[number].rows as usize, self.wanted[number]);
        partitions_of(node, slices).map(of).collect()
    }
}

/// The slices at which partitions begin, and the end.
fn borders(node: &RowGroup) -> Vec<usize> {
    let starts = node.partitions.iter().map(|partition| partition.start as usize);
    let mut borders: Vec<usize> = starts
        .filter(|start| start.is_multiple_of(node.block_slots))
        .map(|start| start / node.block_slots)
        .chain([node.slices.len()])
        .collect();
    // A partition without slots begins where the next one does.
    borders.dedup();
    borders
}

fn partitions_of(node: &RowGroup, slices: &Range<usize>) -> Range<usize> {
    let at = |slice: usize| {
        let slot = slice * node.block_slots;
        match slice == node.slices.len() {
            true => node.partitions.len(),
            false => node.partitions.partition_point(|partition| (partition.start as usize) < slot),
        }
    };
    at(slices.start)..at(slices.end)
}

/// Inserts and incoming updates of each bin, less deletes and outgoing updates.
fn net_inserts(frequency: &Frequency) -> Vec<f64> {
    let sum = |kinds: [Kind; 3], bin: usize| kinds.iter().map(|&kind| frequency.of(kind)[bin]).sum::<f64>();
    (0..frequency.blocks())
        .map(|bin| {
            let added = sum([Kind::Insert, Kind::UpdateToForward, Kind::UpdateToBackward], bin);
            added - sum([Kind::Delete, Kind::UpdateFromForward, Kind::UpdateFromBackward], bin)
        })
        .collect()
}

/// A budget of ghosts, handed out to parts of so many rows that expect so many inserts. All of it is.
fn wanted(inserts: &[f64], rows: &[usize], budget: u64) -> Vec<u64> {
    let lot = budget.div_ceil(LOTS).max(1);
    let need = |&inserts: &f64| Need { inserts: inserts / lot as f64, room: 1.0 };
    let needs: Vec<Need> = inserts.iter().map(need).collect();
    // Six standard deviations.
    let likely = |inserts: f64| if inserts > 0.0 { (inserts + 6.0 * inserts.sqrt() + 6.0) as u64 } else { 0 };
    let own = allocate(&needs, budget / lot);
    let mut wanted: Vec<u64> =
        own.into_iter().zip(inserts).map(|(lots, &inserts)| (lots * lot).min(likely(inserts))).collect();
    let left = budget - wanted.iter().sum::<u64>();
    let all: u64 = rows.iter().map(|&rows| rows as u64 + 1).sum();
    let mut before = 0;
    for (own, &rows) in wanted.iter_mut().zip(rows) {
        let next = before + rows as u64 + 1;
        *own += left * next / all - left * before / all;
        before = next;
    }
    wanted
}

impl Writer<'_> {
    /// The least keys of the bins of the table, with the inserts that these are to expect; none if nothing
    /// was counted.
    pub(super) fn expected(&self) -> Vec<(Key, f64)> {
        let own = self.branch.root.groups.iter().filter_map(|group| group.counters.as_deref());
        let counted: Vec<&LiveCounters> = own.collect();
        if counted.iter().all(|own| own.is_blank()) {
            return Vec::new();
        }
        let of = |own: &&LiveCounters| {
            let net = net_inserts(&own.frequency());
            let keys: Vec<Key> = (0..own.bins()).map(|bin| own.fences().get(bin)).collect();
            keys.into_iter().zip(net.into_iter().map(|net| net.max(0.0))).collect::<Vec<_>>()
        };
        counted.iter().flat_map(of).collect()
    }
}

/// Where ghosts should be among rows that come in order and get so many, by what is `expected` of all keys.
/// Nothing if nothing is known.
pub(super) fn among<R>(
    rows: &[R],
    key: impl Fn(&R) -> Key,
    expected: &[(Key, f64)],
    ghosts: u64,
) -> Vec<Wanted> {
    let Some((least, greatest)) = rows.first().map(&key).zip(rows.last().map(&key)) else {
        return Vec::new();
    };
    let first = expected.partition_point(|(fence, _)| *fence <= least).saturating_sub(1);
    let end = expected.partition_point(|(fence, _)| *fence <= greatest);
    let own = expected.get(first..end).unwrap_or_default();
    let mut starts: Vec<usize> =
        own.iter().map(|(fence, _)| rows.partition_point(|row| key(row) < *fence)).collect();
    if let Some(start) = starts.first_mut() {
        *start = 0;
    }
    let ends = starts.iter().skip(1).copied().chain([rows.len()]);
    let counts: Vec<usize> = starts.iter().zip(ends).map(|(start, end)| end - start).collect();
    let inserts: Vec<f64> = own.iter().map(|(_, inserts)| *inserts).collect();
    let ghosts = wanted(&inserts, &counts, ghosts);
    counts.into_iter().zip(ghosts).collect()
}

/// Where rows are cut into partitions that begin at these slots, so that ghosts are where they are wanted:
/// the first row of each, and the end. Each partition has a row.
pub(super) fn cuts(rows: usize, starts: &[usize], slots: usize, wanted: &[Wanted]) -> Vec<usize> {
    let free = (slots - rows) as u128;
    let all: u128 = wanted.iter().map(|(_, ghosts)| u128::from(*ghosts)).sum();
    // Rows and ghosts before each part.
    let mut before = vec![(0usize, 0u128)];
    for (rows, ghosts) in wanted {
        let (row, ghost) = before[before.len() - 1];
        before.push((row + rows, ghost + u128::from(*ghosts)));
    }
    // The slot of a row, if the free slots are spread as ghosts are wanted.
    let slot_of = |row: usize| {
        let part = before.partition_point(|(first, _)| *first <= row).saturating_sub(1);
        let (first, ghosts) = before[part];
        let own = wanted.get(part).map_or((0, 1), |(rows, ghosts)| {
            (u128::from(*ghosts) * (row - first) as u128, (*rows).max(1) as u128)
        });
        row + (free * (ghosts * own.1 + own.0) / (all * own.1)) as usize
    };
    let count = starts.len();
    let mut cuts = vec![0];
    for part in 1..count {
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if slot_of(middle) <= starts[part] { low = middle } else { high = middle - 1 }
        }
        cuts.push(low.max(cuts[part - 1] + 1).min(rows - (count - part)));
    }
    cuts.push(rows);
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    #[test]
    fn all_of_a_budget_is_handed_out() {
        let random = &mut Random(88_172_645_463_325_252);
        for _ in 0..200 {
            let count = 1 + random.below(20) as usize;
            let rows: Vec<usize> = (0..count).map(|_| random.below(100) as usize).collect();
            let inserts: Vec<f64> =
                (0..count).map(|_| random.below(3) as f64 * random.below(40) as f64).collect();
            let most = if random.below(5) == 0 { 200_000 } else { 300 };
            let budget = random.below(most);
            let wanted = wanted(&inserts, &rows, budget);
            assert_eq!(wanted.iter().sum::<u64>(), budget);
        }
        let hot = wanted(&[0.0, 50.0, 0.0], &[100, 100, 100], 60);
        assert!(hot[1] >= 50, "{hot:?}");
        assert_eq!(wanted(&[0.0; 3], &[99, 99, 99], 60), [20, 20, 20]);
    }

    /// Every partition has a row and room for its rows, whatever is wanted.
    #[test]
    fn cuts_give_each_partition_its_ghosts() {
        let random = &mut Random(88_172_645_463_325_252);
        for _ in 0..2000 {
            let (width, count) = (2 + random.below(20) as usize, 1 + random.below(9) as usize);
            let slots = width * count;
            let rows = count + random.below((slots - count + 1) as u64) as usize;
            let mut parts: Vec<Wanted> = Vec::new();
            let mut left = rows;
            while left > 0 {
                let own = random.below(1 + (left as u64).min(12)) as usize;
                let ghosts = random.below(4) * random.below(9);
                parts.push((own, ghosts));
                left -= own;
            }
            parts.push((0, 1));
            let starts: Vec<usize> = (0..count).map(|part| part * width).collect();
            let cuts = cuts(rows, &starts, slots, &parts);
            assert_eq!((cuts.len(), cuts[0], cuts[count]), (count + 1, 0, rows));
            let sizes: Vec<usize> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(sizes.iter().all(|size| (1..=width).contains(size)), "{sizes:?} of {width}: {parts:?}");
        }
        // The middle third takes all ghosts.
        let parts = [(300, 0), (300, 300), (300, 0)];
        let starts: Vec<usize> = (0..12).map(|part| part * 100).collect();
        let cuts = cuts(900, &starts, 1200, &parts);
        assert_eq!(
            cuts.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()[..4],
            [100, 100, 100, 50]
        );
    }
}
