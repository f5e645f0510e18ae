//! Verifies a data file: every byte that its newest state reaches, and every page.
//!
//! 1. The headers on disk lead to the state that is in use.
//! 2. The checksum of each extent is right, that of the map of free space included.
//! 3. Extents do not overlap, none of their pages is free, and every page belongs to an extent or is free.
//!    Extents that the log refers to, and not the newest state, are free in its map.
//!
//! [`DataFile::misused`] compares the pages that are free in memory, as the next writes take them, with what
//! is in use. They are those of the map that was read, which opening trusts.
//!
//! It only reads, and does not look at what extents mean: the caller lists them.

use super::header::{self, Extent, FIRST_PAGE, Header, PAGE, Root};
use super::space::{self, Run};
use super::{DataFile, lock, read};
use entasis_vector::{Error, ErrorKind, Result};

/// Damage found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The byte at which it begins.
    pub offset: u64,
    /// What it is.
    pub what: String,
}

impl DataFile {
    /// The damage in a state: its header was the newest, and these are its extents except for the map of free
    /// space. Before each of them `go_on` is called with the number of extents read.
    ///
    /// Pages of a state are reused when there is a newer one: then the findings mean nothing.
    ///
    /// # Errors
    /// Those of `go_on`.
    pub fn damage(
        &self,
        header: &Header,
        extents: &[Extent],
        go_on: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<Damage>> {
        let mut found = Vec::new();
        let mut tell = |offset, what: String| found.push(Damage { offset, what });
        let newest = header::id(&*self.backend).and_then(|id| {
            let (newest, _) = super::newest(&*self.backend, self.id, self.access)?;
            Ok((id, newest))
        });
        match newest {
            Ok((id, newest)) if id == self.id && newest.number >= header.number => {}
            Ok(_) => tell(header.offset(), "the newest header is not the one that was written last".into()),
            Err(error) => tell(0, error.message().to_owned()),
        }
        if let Some(reason) = self.failure.get() {
            tell(header.offset(), format!("nothing is written any more since an error: {reason}"));
        }
        let mut used: Vec<Run> = Vec::new();
        for (number, &extent) in extents.iter().enumerate() {
            go_on(number)?;
            if let Err(error) = self.read(extent) {
                tell(extent.offset, self.without_place(&error, extent.offset));
            }
            used.push(Run::of(extent));
        }
        let map = header.roots[Root::FreeSpace as usize];
        let mut free = Vec::new();
        if map.bytes > 0 {
            used.push(Run::of(map));
            let bytes = read(&*self.backend, self.id, map);
            match bytes.map(|bytes| space::parse(&bytes, header.pages, map)) {
                Ok(Some(runs)) => free = runs,
                Ok(None) => tell(map.offset, "the map of free space".into()),
                Err(error) => tell(map.offset, self.without_place(&error, map.offset)),
            }
        }
        // What was written ahead is free in the map, unless an older program has made it.
        let ahead = lock(&self.pages).ahead.clone();
        let is_free = |run: Run| {
            let is_within = |free: &Run| free.start <= run.start && run.end() <= free.end();
            run.start >= header.pages || free.iter().any(is_within)
        };
        used.retain(|run| !ahead.contains_key(&run.start) || !is_free(*run));
        pages(used, free, header.pages, &mut tell);
        Ok(found)
    }

    /// What is wrong with the use of pages as it is in memory, without a look at the file: pages that are
    /// free and in use, of two extents, or nobody's. `reached` are the extents of the newest state and of the
    /// log behind it, but for the map of free space. No state may be committed meanwhile.
    ///
    /// Empty after a write has failed, as no pages are used from then on.
    pub fn misused(&self, reached: &[Extent]) -> Vec<Damage> {
        if self.failure.get().is_some() {
            return Vec::new();
        }
        let map = self.header().roots[Root::FreeSpace as usize];
        let (used, free, end) = {
            let own = lock(&self.pages);
            (own.used(reached, map), own.space.free_runs().collect(), own.space.end())
        };
        let mut found = Vec::new();
        pages(used, free, end, &mut |offset, what| found.push(Damage { offset, what }));
        found
    }

    /// The message of a read error, which names the file and the place.
    fn without_place(&self, error: &Error, offset: u64) -> String {
        let start = format!("{} is damaged at byte {offset}: ", self.backend.name());
        let message = error.message();
        match error.kind() {
            ErrorKind::Corruption => message.strip_prefix(&start).unwrap_or(message).to_owned(),
            _ => format!("it cannot be read: {message}"),
        }
    }
}

/// Reports pages that belong to two runs, and pages that belong to none.
fn pages(used: Vec<Run>, free: Vec<Run>, end: u64, tell: &mut dyn FnMut(u64, String)) {
    let used = used.into_iter().map(|run| (run, false));
    let mut runs: Vec<(Run, bool)> = used.chain(free.into_iter().map(|run| (run, true))).collect();
    runs.sort_by_key(|(run, _)| (run.start, run.end()));
    let (mut next, mut last_is_free) = (FIRST_PAGE, false);
    for (run, is_free) in runs.into_iter().filter(|(run, _)| run.pages > 0) {
        if run.start > next {
            let lost = run.start - next;
            tell(next * PAGE, format!("{lost} pages are neither in use nor free"));
        }
        if run.start < next {
            let shared = next.min(run.end()) - run.start;
            let what = match (is_free, last_is_free) {
                (false, false) => "two extents",
                _ => "an extent, and free",
            };
            tell(run.start * PAGE, format!("{shared} pages are of {what}"));
        }
        if run.end() > next {
            (next, last_is_free) = (run.end(), is_free);
        }
    }
    if next != end {
        let what = format!("the file has {end} pages by its header, and {next} by what is in it");
        tell(next.min(end) * PAGE, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, MemoryBackend};
    use crate::file::{Access, Contents, DatabaseId, ROOTS, State};
    use std::sync::Arc;

    fn run(start: u64, pages: u64) -> Run {
        Run { start, pages }
    }

    fn told(used: &[(u64, u64)], free: &[(u64, u64)], end: u64) -> Vec<String> {
        let runs = |of: &[(u64, u64)]| of.iter().map(|&(start, pages)| run(start, pages)).collect();
        let mut told = Vec::new();
        pages(runs(used), runs(free), end, &mut |offset, what| {
            told.push(format!("{}: {what}", offset / PAGE))
        });
        told
    }

    #[test]
    fn every_page_is_of_one() {
        assert_eq!(told(&[(3, 2), (7, 1)], &[(5, 2)], 8), [""; 0]);
        assert_eq!(told(&[], &[], FIRST_PAGE), [""; 0]);
        assert_eq!(told(&[(3, 2), (7, 1)], &[], 8), ["5: 2 pages are neither in use nor free"]);
        assert_eq!(told(&[(3, 4), (5, 3)], &[], 8), ["5: 2 pages are of two extents"]);
        assert_eq!(told(&[(3, 4)], &[(6, 2)], 8), ["6: 1 pages are of an extent, and free"]);
        let short = "8: the file has 9 pages by its header, and 8 by what is in it";
        assert_eq!(told(&[(3, 5)], &[], 9), [short]);
    }

    #[test]
    fn every_damaged_extent_is_told() {
        let backend = MemoryBackend::new("f");
        let file = DataFile::create(Arc::new(backend.clone()), DatabaseId([7; 16]), 4096).expect("no faults");
        let extents: Vec<Extent> =
            (0..4u8).map(|byte| file.write(&[byte; 5000]).expect("no faults")).collect();
        file.give_up(extents[1]);
        let contents = Contents { roots: [Extent::default(); ROOTS], log_position: 0, state: State::Open };
        file.commit(contents).expect("no faults");
        let left = [extents[0], extents[2], extents[3]];
        let damage = |extents: &[Extent]| {
            file.damage(&file.header(), extents, &mut |_| Ok(())).expect("it is not interrupted")
        };
        assert_eq!(damage(&left), []);
        for extent in [left[0], left[2]] {
            let mut byte = [0];
            backend.read(extent.offset + 17, &mut byte).expect("it is there");
            backend.write(extent.offset + 17, &[byte[0] ^ 1]).expect("no faults");
        }
        let what = "the checksum of an extent of 5000 bytes is wrong".to_owned();
        let expected = [left[0], left[2]].map(|at| Damage { offset: at.offset, what: what.clone() });
        assert_eq!(damage(&left), expected);
        // One that is not reached, and one that is free.
        let found = damage(&[extents[1], extents[2]]);
        assert!(found.iter().any(|damage| damage.what.contains("neither in use nor free")), "{found:?}");
        assert!(found.iter().any(|damage| damage.what.contains("of an extent, and free")), "{found:?}");
        let interrupted = file.damage(&file.header(), &left, &mut |_| Err(Error::interrupted()));
        assert_eq!(interrupted.expect_err("it is interrupted").kind(), ErrorKind::Interrupted);
        drop(DataFile::open(Arc::new(backend), Access::Read));
    }
}
