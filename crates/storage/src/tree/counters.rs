//! Live counters: how often each range of keys of a row group is touched, and by which kind of operation. The
//! frequency model of *Optimal Column Layout for Hybrid Workloads* (section 4.2, `entasis_layout::frequency`)
//! while operations run.
//!
//! A row group of a table with layout `casper` has *bins*: ranges of keys with fences of their own, which
//! stay as they are when rows are spread, since slots move and keys do not. Each bin has a number for each of
//! the ten histograms. Versions of a row group share its counters, so snapshots count as well. A key belongs
//! to the last bin whose fence is not above it; rows that equal a fence and stand before it count behind it.
//!
//! **What it costs.** One operation in [`CounterOptions::every`] is counted, by chance: a random number of
//! the thread's own decides before anything shared is read. A number is loaded and stored, not added to
//! atomically, so of two threads that count in one place at one moment one may be lost. Other layouts have no
//! counters and pay for one test.
//!
//! **Decay.** After [`FADE`] operations all numbers are halved ([`LiveCounters::round`], called by upkeep),
//! so the past counts less by what has happened since, not by the time that has gone by.
//!
//! **Where row groups are** made, cut and joined, counters are dealt out anew ([`LiveCounters::dealt`]): a
//! bin that lies over several new ones is shared out evenly, and no count is lost or made. A checkpoint that
//! writes a table keeps what was counted until then ([`Counted`]), and it comes back with the table.
//!
//! **The account** ([`entasis_layout::ghosts::account`]). Each insert and incoming update that is counted
//! earns what it may cost if it finds no ghost, and moves that are made to save it are paid from that
//! ([`LiveCounters::spend`]). What is forgotten earns nothing any more: credit is halved with the numbers,
//! and shared out when counters are dealt, so that it never exceeds what was earned.
//!
//! An operation that is undone stays counted, and one that is replayed is counted again where it arrives.

use super::Shape;
use super::key::{Fences, Key};
use crate::definition::CounterOptions;
use crate::sync::{AtomicU32, Mutex, Ordering, PoisonError, thread_local};
use entasis_layout::frequency::{Frequency, Kind, Operation};
use std::cell::Cell;
use std::sync::Arc;

/// After so many operations on a row group, what was counted before counts half.
const FADE: u32 = 1 << 16;

thread_local! {
    /// The state of the thread's random numbers.
    static CHANCE: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
}

/// A row group that has not been written for so many rounds of upkeep has rested long.
const LONG_REST: u32 = 8;

/// What was last decided about the layout of a row group, for those who ask.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The decision and its reason, in words.
    pub why: String,
    /// Rows that are laid anew.
    pub moved: usize,
    /// Those of them that are moved because it is expected to pay, and not because the budget asks for it.
    pub charged: usize,
    /// Slots of the row group before and, if all goes well, afterwards.
    pub slots: (usize, usize),
    /// Ghosts that the row group may have.
    pub budget: usize,
    /// What moving costs, and what it is expected to save until as many operations as are remembered have
    /// come once more; nanoseconds.
    pub cost: f64,
    /// See `cost`.
    pub saving: f64,
}

/// The counters of a row group. See the module.
#[derive(Debug)]
pub(crate) struct LiveCounters {
    every: u32,
    /// The least keys of the bins, strictly ascending.
    fences: Fences,
    bins: Box<[[AtomicU32; Kind::COUNT]]>,
    /// Operations that were counted since numbers were halved.
    counted: AtomicU32,
    /// Inserts that were counted and have not been spent on moves.
    credit: AtomicU32,
    /// Rounds of upkeep since it was written.
    rounds: AtomicU32,
    decision: Mutex<Settled>,
}

/// The last decision, and what it was made of.
#[derive(Debug, Clone, Default)]
struct Settled {
    decision: Option<Decision>,
    /// The sum of all numbers at that time.
    at: u64,
}

/// All of counters at one moment, to be kept in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counted {
    /// The least keys of the bins, strictly ascending; at least one.
    pub(crate) fences: Fences,
    /// Ten numbers for each bin.
    pub(crate) numbers: Vec<[u32; Kind::COUNT]>,
    /// Operations that were counted since numbers were halved.
    pub(crate) counted: u32,
    /// Inserts that were counted and have not been spent on moves.
    pub(crate) credit: u32,
    /// The last decision, and the sum of all numbers at that time.
    pub(crate) decision: Option<(Decision, u64)>,
}

/// True for one operation in `every`, by chance; never if that is 0.
#[inline]
pub(crate) fn is_counted(every: u32) -> bool {
    every == 1 || (every > 0 && chance(every) == 0)
}

/// A random number below `bound`.
#[inline]
pub(crate) fn chance(bound: u32) -> u32 {
    CHANCE.with(|state| {
        // Knuth's constants; the upper half is random enough.
        let next =
            state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.set(next);
        (((next >> 32) * u64::from(bound)) >> 32) as u32
    })
}

impl LiveCounters {
    /// Counters without counts for a row group with these fences of partitions and so many slots; `None` if
    /// the table does not count.
    pub(crate) fn new(shape: &Shape, partitions: &Fences, slots: usize) -> Option<Arc<LiveCounters>> {
        if !shape.options.are_counted() || partitions.len() == 0 {
            return None;
        }
        Some(Arc::new(LiveCounters::with(shape.options.counters.every, bins_of(shape, partitions, slots))))
    }

    fn with(every: u32, fences: Fences) -> LiveCounters {
        let bins = (0..fences.len()).map(|_| std::array::from_fn(|_| AtomicU32::new(0))).collect();
        LiveCounters {
            every,
            fences,
            bins,
            counted: AtomicU32::new(0),
            credit: AtomicU32::new(0),
            rounds: AtomicU32::new(0),
            decision: Mutex::default(),
        }
    }

    /// The least keys of the bins.
    pub(crate) fn fences(&self) -> &Fences {
        &self.fences
    }

    /// The number of bins.
    pub(crate) fn bins(&self) -> usize {
        self.bins.len()
    }

    /// The bin of a key.
    pub(crate) fn bin_of(&self, key: &Key) -> usize {
        self.fences.part_for(key)
    }

    /// The last bin that has keys below `key`.
    pub(crate) fn bin_below(&self, key: &Key) -> usize {
        self.fences.first_part_of(key)
    }

    /// Counts an operation, given by bins.
    pub(crate) fn count(&self, operation: Operation<usize>) {
        operation.each_bin(|kind, bin| self.add(kind, bin));
        self.note();
    }

    /// Adds one to a number of a bin.
    pub(crate) fn add(&self, kind: Kind, bin: usize) {
        let number = &self.bins[bin][kind as usize];
        number.store(number.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        if matches!(kind, Kind::Insert | Kind::UpdateToForward | Kind::UpdateToBackward) {
            self.credit.store(self.credit.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        }
    }

    /// An estimate of the inserts that have not been spent on moves.
    pub(crate) fn credit(&self) -> f64 {
        f64::from(self.credit.load(Ordering::Relaxed)) * f64::from(self.every)
    }

    /// Spends so many inserts on moves.
    pub(crate) fn spend(&self, inserts: f64) {
        let counted = (inserts / f64::from(self.every.max(1))).ceil() as u32;
        self.credit.store(self.credit.load(Ordering::Relaxed).saturating_sub(counted), Ordering::Relaxed);
    }

    /// Notes that an operation was counted.
    pub(crate) fn note(&self) {
        self.counted.store(self.counted.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// The ten numbers of a bin, as they are.
    fn numbers(&self, bin: usize) -> [u32; Kind::COUNT] {
        std::array::from_fn(|kind| self.bins[bin][kind].load(Ordering::Relaxed))
    }

    /// The sum of all numbers, as they are.
    fn sum(&self) -> u64 {
        self.bins.iter().flatten().map(|number| u64::from(number.load(Ordering::Relaxed))).sum()
    }

    /// True if nothing was counted, or all is forgotten.
    pub(crate) fn is_blank(&self) -> bool {
        self.bins.iter().flatten().all(|number| number.load(Ordering::Relaxed) == 0)
    }

    /// What was counted, as an estimate of all operations that are remembered.
    pub(crate) fn frequency(&self) -> Frequency {
        let mut frequency = Frequency::new(self.bins());
        for bin in 0..self.bins() {
            let numbers = self.numbers(bin);
            for kind in Kind::ALL {
                frequency.of_mut(kind)[bin] = f64::from(numbers[kind as usize]) * f64::from(self.every);
            }
        }
        frequency
    }

    /// Halves all numbers, remainders rounded by chance, if enough has happened since that was done last.
    fn fade(&self) {
        if self.counted.load(Ordering::Relaxed) >= (FADE / self.every).max(1) {
            self.halve();
        }
    }

    fn halve(&self) {
        self.counted.store(0, Ordering::Relaxed);
        self.credit.store(self.credit.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
        for number in self.bins.iter().flatten() {
            let now = number.load(Ordering::Relaxed);
            if now > 0 {
                number.store(now / 2 + (now & chance(2)), Ordering::Relaxed);
            }
        }
    }

    /// Notes that a round of upkeep begins, and whether the row group was written since the last one.
    pub(crate) fn round(&self, is_touched: bool) {
        self.fade();
        let rounds = if is_touched { 0 } else { self.rounds.load(Ordering::Relaxed).saturating_add(1) };
        self.rounds.store(rounds, Ordering::Relaxed);
    }

    /// True if the row group has not been written for long.
    pub(crate) fn has_rested(&self) -> bool {
        self.rounds.load(Ordering::Relaxed) >= LONG_REST
    }

    /// True if nothing was counted since the last decision.
    pub(crate) fn is_settled(&self) -> bool {
        let settled = self.decision.lock().unwrap_or_else(PoisonError::into_inner);
        settled.decision.is_some() && settled.at == self.sum()
    }

    /// Notes a decision.
    pub(crate) fn settle(&self, decision: Decision) {
        let at = self.sum();
        *self.decision.lock().unwrap_or_else(PoisonError::into_inner) =
            Settled { decision: Some(decision), at };
    }

    /// The last decision.
    pub(crate) fn decision(&self) -> Option<Decision> {
        self.decision.lock().unwrap_or_else(PoisonError::into_inner).decision.clone()
    }

    /// A copy with numbers of its own, for another table.
    pub(crate) fn twin(&self, shape: &Shape) -> Option<Arc<LiveCounters>> {
        LiveCounters::of(shape, Counted { decision: None, ..self.kept() })
    }

    /// All of it as it is.
    pub(crate) fn kept(&self) -> Counted {
        let settled = self.decision.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Counted {
            fences: self.fences.clone(),
            numbers: (0..self.bins()).map(|bin| self.numbers(bin)).collect(),
            counted: self.counted.load(Ordering::Relaxed),
            credit: self.credit.load(Ordering::Relaxed),
            decision: settled.decision.map(|decision| (decision, settled.at)),
        }
    }

    /// Counters that go on from what was kept; `None` if the table does not count.
    pub(crate) fn of(shape: &Shape, kept: Counted) -> Option<Arc<LiveCounters>> {
        if !shape.options.are_counted() {
            return None;
        }
        let own = LiveCounters::with(shape.options.counters.every, kept.fences);
        kept.numbers.into_iter().enumerate().for_each(|(bin, numbers)| own.put(bin, numbers));
        own.counted.store(kept.counted, Ordering::Relaxed);
        own.credit.store(kept.credit, Ordering::Relaxed);
        if let Some((decision, at)) = kept.decision {
            *own.decision.lock().unwrap_or_else(PoisonError::into_inner) =
                Settled { decision: Some(decision), at };
        }
        Some(Arc::new(own))
    }

    fn put(&self, bin: usize, numbers: [u32; Kind::COUNT]) {
        for (own, more) in self.bins[bin].iter().zip(numbers) {
            own.store(own.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
        }
    }

    /// Counters for row groups with these fences of partitions and slots, in order, with what was counted by
    /// the counters of the row groups that had their keys before.
    pub(crate) fn dealt(
        shape: &Shape,
        old: &[&LiveCounters],
        new: &[(&Fences, usize)],
    ) -> Vec<Option<Arc<LiveCounters>>> {
        if !shape.options.are_counted() {
            return vec![None; new.len()];
        }
        let every = shape.options.counters.every;
        let dealt: Vec<LiveCounters> = new
            .iter()
            .map(|(fences, slots)| LiveCounters::with(every, bins_of(shape, fences, *slots)))
            .collect();
        let targets: Vec<(&LiveCounters, usize)> =
            dealt.iter().flat_map(|own| (0..own.bins()).map(move |bin| (own, bin))).collect();
        let fence = |target: usize| targets[target].0.fences.get(targets[target].1);
        let not_above = |key: &Key| below(targets.len(), |target| fence(target) <= *key).saturating_sub(1);
        let last_below = |key: &Key| below(targets.len(), |target| fence(target) < *key).saturating_sub(1);
        let mut next: Option<Key> = None;
        for own in old.iter().rev() {
            for bin in (0..own.bins()).rev() {
                let low = own.fences.get(bin);
                let numbers = own.numbers(bin);
                if numbers.iter().any(|number| *number > 0) && !targets.is_empty() {
                    let first = not_above(&low);
                    let last = next.as_ref().map_or(targets.len() - 1, last_below).max(first);
                    let count = (last - first + 1) as u32;
                    for (part, (own, bin)) in targets[first..=last].iter().enumerate() {
                        // The first ones get the remainder.
                        own.put(*bin, numbers.map(|n| n / count + u32::from((part as u32) < n % count)));
                    }
                }
                next = Some(low);
            }
        }
        let share = |of: fn(&LiveCounters) -> &AtomicU32| -> u32 {
            old.iter().map(|own| of(own).load(Ordering::Relaxed) / new.len().max(1) as u32).sum()
        };
        let (counted, credit) = (share(|own| &own.counted), share(|own| &own.credit));
        let settled = old.first().map(|own| own.decision());
        for own in &dealt {
            own.counted.store(counted, Ordering::Relaxed);
            own.credit.store(credit, Ordering::Relaxed);
            let decision = settled.clone().flatten();
            *own.decision.lock().unwrap_or_else(PoisonError::into_inner) = Settled { decision, at: u64::MAX };
        }
        dealt.into_iter().map(|own| Some(Arc::new(own))).collect()
    }

    /// True if the row group has so many more partitions by now that bins should be finer.
    pub(crate) fn is_coarse(&self, options: CounterOptions, partitions: usize, slots: usize) -> bool {
        partitions.min(slots / options.slots.max(1)) >= 2 * self.bins()
    }
}

/// The first number below `end` for which `is_low` is false; it is true for all before.
fn below(end: usize, is_low: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        *(if is_low(middle) { &mut low } else { &mut high }) =
            if is_low(middle) { middle + 1 } else { middle };
    }
    low
}

/// The fences of bins: those of partitions, or some of them, so that a bin has about as many slots as the
/// options say.
fn bins_of(shape: &Shape, partitions: &Fences, slots: usize) -> Fences {
    let most = (slots / shape.options.counters.slots.max(1)).clamp(1, partitions.len().max(1));
    let mut keys: Vec<Key> = (0..most).map(|bin| partitions.get(bin * partitions.len() / most)).collect();
    keys.dedup();
    let mut fences = shape.no_fences();
    fences.splice(0..fences.len(), keys);
    fences
}
