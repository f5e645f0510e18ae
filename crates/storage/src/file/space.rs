//! Free pages, as runs in the order of their places.
//!
//! Allocation is first fit, from the beginning of a run, so that files fill up from the front and their tails
//! become free. Adjacent runs are merged.

use super::header::{Extent, FIRST_PAGE, PAGE};
use crate::backend::bytes::Cursor;
use std::collections::BTreeMap;

/// Contiguous pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) pages: u64,
}

impl Run {
    /// Those of an extent.
    pub(super) fn of(extent: Extent) -> Run {
        Run { start: extent.offset / PAGE, pages: extent.bytes.div_ceil(PAGE) }
    }

    pub(super) fn end(self) -> u64 {
        self.start + self.pages
    }
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Space {
    /// The length of each run, by its first page.
    free: BTreeMap<u64, u64>,
    /// Pages of the file.
    end: u64,
}

impl Space {
    /// A file of so many pages, none of them free.
    pub(super) fn new(end: u64) -> Space {
        Space { free: BTreeMap::new(), end }
    }

    /// Pages of the file.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Pages that are free.
    pub(super) fn free(&self) -> u64 {
        self.free.values().sum()
    }

    /// The longest free run before a page.
    pub(super) fn largest_before(&self, page: u64) -> u64 {
        let before = self.free.range(..page).map(|(&start, &pages)| pages.min(page - start));
        before.max().unwrap_or(0)
    }

    /// The free runs, in their order.
    pub(super) fn free_runs(&self) -> impl Iterator<Item = Run> {
        self.free.iter().map(|(&start, &pages)| Run { start, pages })
    }

    /// The number of runs.
    pub(super) fn runs(&self) -> usize {
        self.free.len()
    }

    /// Allocates contiguous pages; the file grows if there is no such run.
    pub(super) fn take(&mut self, pages: u64) -> Run {
        let found = self.free.iter().find(|(_, free)| **free >= pages).map(|(&start, &free)| (start, free));
        if let Some((start, free)) = found {
            self.free.remove(&start);
            if free > pages {
                self.free.insert(start + pages, free - pages);
            }
            return Run { start, pages };
        }
        self.cut_tail();
        let run = Run { start: self.end, pages };
        self.end += pages;
        run
    }

    /// Frees pages. False, and nothing is done, if some of them are free already or beyond the file's end.
    pub(super) fn release(&mut self, run: Run) -> bool {
        let before = self.free.range(..=run.start).next_back().map(|(&start, &pages)| Run { start, pages });
        let behind = self.free.range(run.start + 1..).next().map(|(&start, &pages)| Run { start, pages });
        let is_free = before.is_some_and(|before| before.end() > run.start)
            || behind.is_some_and(|behind| behind.start < run.end());
        if is_free || run.pages == 0 || run.start < FIRST_PAGE || run.end() > self.end {
            return false;
        }
        let (mut start, mut end) = (run.start, run.end());
        if let Some(before) = before.filter(|before| before.end() == run.start) {
            start = before.start;
        }
        if let Some(behind) = behind.filter(|behind| behind.start == run.end()) {
            self.free.remove(&behind.start);
            end = behind.end();
        }
        self.free.insert(start, end - start);
        true
    }

    /// Allocates given pages, unless all of them are allocated already. False, and nothing is done, if only
    /// some are. Those beyond the end count as free: the file grows.
    pub(super) fn claim(&mut self, run: Run) -> bool {
        let Some(end) = run.start.checked_add(run.pages).filter(|_| run.pages > 0) else { return false };
        if end > self.end {
            let mut longer = Space { end, ..self.clone() };
            let is_claimed =
                longer.release(Run { start: self.end, pages: end - self.end }) && longer.claim(run);
            if is_claimed {
                *self = longer;
            }
            return is_claimed;
        }
        let touched = self.free.range(..end).next_back().map(|(&start, &pages)| Run { start, pages });
        let Some(found) = touched.filter(|found| found.end() > run.start) else { return true };
        if found.start > run.start || found.end() < end {
            return false;
        }
        self.free.remove(&found.start);
        if found.start < run.start {
            self.free.insert(found.start, run.start - found.start);
        }
        if end < found.end() {
            self.free.insert(end, found.end() - end);
        }
        true
    }

    /// Cuts free pages off the end of the file. Returns the pages left.
    pub(super) fn cut_tail(&mut self) -> u64 {
        if let Some((&start, &pages)) = self.free.last_key_value()
            && start + pages == self.end
        {
            self.free.remove(&start);
            self.end = start;
        }
        self.end
    }
}

/// The most pages of an extent that holds so many runs.
pub(super) fn pages_for(runs: usize) -> u64 {
    (8 + 16 * runs as u64).div_ceil(PAGE)
}

/// The map of free space as it is written to so many pages.
pub(super) fn bytes(space: &Space, pages: u64) -> Vec<u8> {
    let mut out = (space.free.len() as u64).to_le_bytes().to_vec();
    for (start, count) in &space.free {
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
    }
    out.resize((pages * PAGE) as usize, 0);
    out
}

/// The runs of a map in a file of so many pages; `None` if they are out of order, touch, or overlap the map
/// itself.
pub(super) fn parse(bytes: &[u8], end: u64, map: Extent) -> Option<Vec<Run>> {
    let mut cursor = Cursor::new(bytes);
    let count = usize::try_from(cursor.u64()?).ok()?;
    if count.checked_mul(16)? > cursor.left() {
        return None;
    }
    let (map, mut runs, mut last) = (Run::of(map), Vec::with_capacity(count), FIRST_PAGE);
    for _ in 0..count {
        let run = Run { start: cursor.u64()?, pages: cursor.u64()? };
        let run_end = run.start.checked_add(run.pages)?;
        let is_apart = run_end <= map.start || map.end() <= run.start;
        // The tail of a file is never free.
        if run.start < last || run.pages == 0 || run_end >= end || !is_apart {
            return None;
        }
        last = run_end + 1;
        runs.push(run);
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;

    /// One bit per page.
    fn check(space: &Space, free: &[bool]) {
        assert_eq!(space.end as usize, free.len());
        let mut twin = BTreeMap::new();
        let mut page = 0;
        while page < free.len() {
            let pages = free[page..].iter().take_while(|free| **free).count();
            if pages > 0 {
                twin.insert(page as u64, pages as u64);
            }
            page += pages.max(1);
        }
        assert_eq!(space.free, twin);
    }

    #[test]
    fn pages_are_taken_and_given_back_as_bits_are() {
        for seed in 1..60 {
            let mut random = Random(seed);
            let (mut space, mut free) = (Space::new(FIRST_PAGE), vec![false; FIRST_PAGE as usize]);
            let mut taken: Vec<Run> = Vec::new();
            for _ in 0..400 {
                match random.below(8) {
                    0..3 => {
                        let run = space.take(1 + random.below(6));
                        free.resize(space.end as usize, false);
                        let pages = run.start as usize..run.end() as usize;
                        pages.for_each(|page| free[page] = false);
                        taken.push(run);
                    }
                    3..6 if !taken.is_empty() => {
                        let run = taken.swap_remove(random.below(taken.len() as u64) as usize);
                        assert!(space.release(run));
                        assert!(!space.release(run));
                        (run.start..run.end()).for_each(|page| free[page as usize] = true);
                    }
                    6 => {
                        let run = Run { start: FIRST_PAGE + random.below(80), pages: 1 + random.below(4) };
                        let is_free = |page: u64| free.get(page as usize).copied().unwrap_or(true);
                        let count = (run.start..run.end()).filter(|page| is_free(*page)).count() as u64;
                        assert_eq!(space.claim(run), count == 0 || count == run.pages);
                        if count == run.pages {
                            let end = free.len().max(run.end() as usize);
                            free.resize(end, true);
                            (run.start..run.end()).for_each(|page| free[page as usize] = false);
                            taken.push(run);
                        }
                    }
                    _ => {
                        let end = space.cut_tail() as usize;
                        assert!(free[end..].iter().all(|free| *free));
                        free.truncate(end);
                    }
                }
                check(&space, &free);
                let mut cut = space.clone();
                let end = cut.cut_tail();
                let map = bytes(&cut, pages_for(cut.runs()));
                let parsed = parse(&map, end, Extent::default()).expect("as it was written");
                let mut read = Space::new(end);
                parsed.into_iter().for_each(|run| assert!(read.release(run)));
                assert_eq!(read, cut);
                assert_eq!(map.len() as u64, pages_for(cut.runs()) * PAGE);
            }
        }
    }

    #[test]
    fn maps_that_cannot_be_are_refused() {
        let map = |runs: &[(u64, u64)]| {
            let mut out = (runs.len() as u64).to_le_bytes().to_vec();
            runs.iter().for_each(|run| out.extend([run.0.to_le_bytes(), run.1.to_le_bytes()].concat()));
            out
        };
        let at = Extent { offset: 10 * PAGE, bytes: 8, checksum: 0 };
        assert!(parse(&map(&[(3, 2), (6, 4), (11, 5)]), 20, at).is_some());
        for wrong in [
            &[(3, 2), (5, 1)][..],
            &[(6, 2), (3, 1)],
            &[(2, 1)],
            &[(3, 0)],
            &[(12, 8)],
            &[(9, 2)],
            &[(3, u64::MAX)],
        ] {
            assert!(parse(&map(wrong), 20, at).is_none(), "{wrong:?}");
        }
        assert!(parse(&u64::MAX.to_le_bytes(), 20, at).is_none());
        assert!(parse(b"short", 20, at).is_none());
    }
}
