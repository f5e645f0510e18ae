//! Hidden row numbers: what identifies rows of a table without a layout key, wherever they are stored.
//!
//! A table numbers its rows as they are inserted, from 1 on, and uses no number twice
//! ([`super::Root::next_number`]). Without a layout key rows are stored in the order of insertion, so numbers
//! ascend strictly over the slots of a row group and from one row group to the next. Unless rows have been
//! removed and the rest moved together, slot *s* of a row group has the number *first + s*, and nothing but
//! the first is stored.
//!
//! ```text
//! slots      0 … 99        100 … 299     300 … 1023
//! numbers    501 … 600     650 … 849     850 + 7 …         breaks: (100, 650), (300, 857)
//! ```
//! A *break* is a slot at which numbers continue elsewhere. Breaks arise when a row group is rewritten to
//! fewer slices, where two row groups are joined, and where the tail slot of a removed row is used again. A
//! row is found by its number by binary search: first among the first numbers of row groups, then among the
//! breaks ([`crate::scan::lookup`]).
//!
//! Dead slots have numbers as well, which mean nothing. Versions share their breaks until one of them gets a
//! new one. Why this is not a column: docs/decisions/0024-row-numbers.md.

use std::ops::Range;
use std::sync::Arc;

/// The row numbers of the slots of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The number of slot 0.
    first: u64,
    /// The breaks; mostly there are none.
    breaks: Option<Arc<Breaks>>,
}

/// The slots of breaks and the numbers from there on. Both ascend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Breaks {
    slots: Vec<u32>,
    numbers: Vec<u64>,
}

impl Numbers {
    /// Consecutive numbers from `first` on, without a break.
    pub(crate) fn from(first: u64) -> Numbers {
        Numbers { first, breaks: None }
    }

    /// Numbers given by runs, each a slot and its number; the first run begins at slot 0. `None` unless slots
    /// and numbers ascend so that they can be counted on.
    pub(crate) fn of_runs(runs: &[(usize, u64)]) -> Option<Numbers> {
        let (&(slot, first), breaks) = runs.split_first()?;
        let ascend = |pair: &[(usize, u64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
        let starts = slot == 0 && breaks.first().is_none_or(|&(slot, number)| slot > 0 && number >= first);
        let mut numbers = Numbers::from(first);
        breaks.iter().for_each(|&(slot, number)| numbers.go_on(slot, number));
        let fit = runs.iter().all(|(_, number)| i64::try_from(*number).is_ok());
        (starts && fit && breaks.windows(2).all(ascend)).then_some(numbers)
    }

    /// The number of slot 0, which is no greater than that of any row.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The number of a slot.
    #[inline]
    pub(crate) fn of(&self, slot: usize) -> u64 {
        let (start, number) = match &self.breaks {
            None => (0, self.first),
            Some(breaks) => breaks.run(breaks.slots.partition_point(|&at| at as usize <= slot), self.first),
        };
        number + (slot - start) as u64
    }

    /// The slot with a number, unless the number falls into the gap of a break; it may be beyond the last
    /// slot.
    pub(crate) fn slot_of(&self, number: u64) -> Option<usize> {
        let Some(breaks) = &self.breaks else {
            return usize::try_from(number.checked_sub(self.first)?).ok();
        };
        let run = breaks.numbers.partition_point(|&first| first <= number);
        let (start, first) = breaks.run(run, self.first);
        let slot = start as u64 + number.checked_sub(first)?;
        let end = breaks.slots.get(run).map_or(u64::MAX, |&end| end.into());
        (slot < end).then_some(slot as usize)
    }

    /// The first slot of which a row may have this number or a greater one; it may be beyond the last slot.
    pub(crate) fn slot_from(&self, number: u64) -> usize {
        let Some(breaks) = &self.breaks else { return number.saturating_sub(self.first) as usize };
        let run = breaks.numbers.partition_point(|&first| first <= number);
        let (start, first) = breaks.run(run, self.first);
        let end = breaks.slots.get(run).map_or(usize::MAX, |&end| end as usize);
        start.saturating_add(number.saturating_sub(first) as usize).min(end)
    }

    /// The runs of consecutive numbers: the first slot of each, and its number. The first run begins at slot
    /// 0.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let breaks = self.breaks.iter().flat_map(|breaks| breaks.slots.iter().zip(&breaks.numbers));
        std::iter::once((0, self.first)).chain(breaks.map(|(&slot, &number)| (slot as usize, number)))
    }

    /// Gives a slot a number, which is greater than those of all rows before it. There are no rows beyond the
    /// slot; numbers go on from there.
    #[inline]
    pub(crate) fn put(&mut self, slot: usize, number: u64) {
        if self.breaks.is_some() {
            self.forget_from(slot, number);
        }
        if self.of(slot) != number {
            self.go_on(slot, number);
        }
    }

    /// Drops the breaks beyond which there is no row.
    #[cold]
    fn forget_from(&mut self, slot: usize, number: u64) {
        let Some(breaks) = &mut self.breaks else { return };
        let before = breaks.slots.partition_point(|&at| (at as usize) < slot);
        let kept = breaks.numbers.partition_point(|&first| first < number).min(before);
        if kept == 0 {
            self.breaks = None;
        } else if kept < breaks.slots.len() {
            let breaks = Arc::make_mut(breaks);
            breaks.slots.truncate(kept);
            breaks.numbers.truncate(kept);
        }
    }

    #[cold]
    fn go_on(&mut self, slot: usize, number: u64) {
        if slot == 0 {
            *self = Numbers::from(number);
            return;
        }
        let breaks = Arc::make_mut(self.breaks.get_or_insert_default());
        breaks.slots.push(slot as u32);
        breaks.numbers.push(number);
    }

    /// The numbers after the `rows` in the slots of `window` were moved together into `slots` slots, at least
    /// one, which replace the window. Slots beyond it keep their numbers.
    pub(crate) fn relaid(
        &self,
        window: Range<usize>,
        rows: impl Iterator<Item = usize>,
        slots: usize,
        end: usize,
    ) -> Numbers {
        let mut new = Numbers::from(self.first);
        self.runs().take_while(|(slot, _)| *slot < window.start).for_each(|(slot, n)| new.put(slot, n));
        rows.enumerate().for_each(|(place, slot)| new.put(window.start + place, self.of(slot)));
        if window.end < end {
            let moved = |slot: usize| slot - window.end + window.start + slots;
            new.put(moved(window.end), self.of(window.end));
            let behind = self.runs().skip_while(|(slot, _)| *slot <= window.end);
            behind.for_each(|(slot, number)| new.put(moved(slot), number));
        }
        new
    }

    /// Appends the numbers of a row group whose slots follow the first `slots`.
    pub(crate) fn append(&mut self, slots: usize, behind: &Numbers) {
        behind.runs().for_each(|(slot, number)| self.put(slots + slot, number));
    }

    /// Bytes of memory of the breaks.
    pub(crate) fn bytes(&self) -> usize {
        const EACH: usize = size_of::<u32>() + size_of::<u64>();
        self.breaks.as_ref().map_or(0, |breaks| size_of::<Breaks>() + breaks.slots.len() * EACH)
    }
}

impl Breaks {
    /// The first slot of a run, and its number. Run 0 ends at the first break.
    fn run(&self, run: usize, first: u64) -> (usize, u64) {
        match run.checked_sub(1) {
            None => (0, first),
            Some(at) => (self.slots[at] as usize, self.numbers[at]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    /// The obvious twin: a number for each slot that is a row.
    type Rows = Vec<Option<u64>>;

    fn check(numbers: &Numbers, rows: &Rows) {
        let live = rows.iter().enumerate().filter_map(|(slot, row)| Some((slot, (*row)?)));
        let live: Vec<(usize, u64)> = live.collect();
        for &(slot, number) in &live {
            assert_eq!(numbers.of(slot), number);
            assert_eq!(numbers.slot_of(number), Some(slot));
            assert!(numbers.first() <= number);
        }
        let greatest = live.last().map_or(0, |row| row.1);
        let is_row = |number: u64| {
            numbers.slot_of(number).and_then(|slot| rows.get(slot).copied().flatten()) == Some(number)
        };
        for number in 0..greatest + 3 {
            let expected = live.iter().filter(|row| row.1 >= number).count();
            let from = numbers.slot_from(number);
            assert_eq!(live.iter().filter(|row| row.0 >= from).count(), expected, "{number}");
            assert_eq!(is_row(number), live.iter().any(|row| row.1 == number), "{number}");
        }
        let breaks: Vec<(usize, u64)> = numbers.runs().skip(1).collect();
        assert!(breaks.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "what is looked up by halves");
    }

    fn live_slots(rows: &Rows, window: Range<usize>) -> Vec<usize> {
        window.filter(|&slot| rows[slot].is_some()).collect()
    }

    #[test]
    fn rows_keep_their_numbers_wherever_they_go() {
        for seed in 1..300 {
            let random = &mut Random(seed * 7919);
            let mut next = 1 + random.below(5);
            let (mut numbers, mut rows) = (Numbers::from(next), Rows::new());
            for _ in 0..60 {
                match random.below(6) {
                    // Rows come, in the tail slots of rows that are gone, or behind these.
                    0 | 1 => {
                        let used = rows.iter().rposition(Option::is_some).map_or(0, |slot| slot + 1);
                        let slot = used + random.below((rows.len() - used + 1) as u64) as usize;
                        rows.truncate(slot);
                        next += random.below(3);
                        numbers.put(slot, next);
                        for _ in 0..1 + random.below(4) {
                            rows.push(Some(next));
                            next += 1;
                        }
                    }
                    2 if !rows.is_empty() => {
                        let first = random.below(rows.len() as u64) as usize;
                        let count = 1 + random.below(4) as usize;
                        rows.iter_mut().skip(first).take(count).for_each(|row| *row = None);
                    }
                    3 => {
                        let slots = rows.len();
                        next += random.below(3);
                        let mut right = Numbers::from(next);
                        for slot in 0..random.below(6) as usize {
                            next += random.below(2);
                            right.put(slot, next);
                            rows.push(Some(next));
                            next += 1;
                        }
                        numbers.append(slots, &right);
                    }
                    _ => {
                        let last = rows.len();
                        let start = random.below(last as u64 + 1) as usize;
                        let window = start..start + random.below((last - start) as u64 + 1) as usize;
                        let live = live_slots(&rows, window.clone());
                        let slots = (live.len() + random.below(3) as usize).max(1);
                        numbers = numbers.relaid(window.clone(), live.iter().copied(), slots, last);
                        let mut laid: Rows = live.iter().map(|&slot| rows[slot]).collect();
                        laid.resize(slots, None);
                        rows.splice(window, laid);
                    }
                }
                check(&numbers, &rows);
                let runs: Vec<(usize, u64)> = numbers.runs().collect();
                assert_eq!(Numbers::of_runs(&runs), Some(numbers.clone()));
            }
        }
    }

    #[test]
    fn rows_in_order_take_no_memory() {
        let mut numbers = Numbers::from(1);
        (0..1000).for_each(|slot| numbers.put(slot, 1 + slot as u64));
        assert_eq!((numbers.bytes(), size_of::<Numbers>()), (0, 16));
        // A row at the end comes and goes, again and again: one break.
        (0..1000).for_each(|turn| numbers.put(1000, 2000 + turn));
        assert_eq!(numbers.bytes(), size_of::<Breaks>() + 12);
        numbers.put(0, 9000);
        assert_eq!(numbers, Numbers::from(9000));
    }
}
