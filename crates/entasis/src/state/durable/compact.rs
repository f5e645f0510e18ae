//! Truncates the file to the size that it needs.
//!
//! A checkpoint writes new pages besides those that it replaces or gives up, so the file is longest when it
//! ends. The next one moves extents near the end to the freed pages, and the end of the file is cut off.
//! Ordinarily there is no next one if nothing has changed, so here it is made in any case, if so much is free
//! that it is worth it:
//!
//! | | moves extents if of the file there is free |
//! |---|---|
//! | `VACUUM` | anything |
//! | `CHECKPOINT` | a quarter |
//! | closing the database | half |
//! | an automatic checkpoint | half, and moves them with what it has to write anyway |
//!
//! `VACUUM` also frees pages that the map of the file counts as used and nobody has, if there are any.
//!
//! At most as many pages are moved as are free: so what is moved is less than what was deleted or replaced.

use super::{Durable, Purpose, lock};
use entasis_storage::Catalog;
use entasis_vector::Result;

/// The most checkpoints that are made, as long as each makes the file shorter.
const ROUNDS: usize = 4;
/// Fewer free pages than this are not worth a checkpoint.
const FEW: u64 = 64;

/// How much of a file is free if it is worth making it shorter.
#[derive(Debug, Clone, Copy)]
pub(super) enum Free {
    Anything,
    Quarter,
    Half,
}

impl Free {
    fn is_there(self, (pages, free): (u64, u64)) -> bool {
        match self {
            Free::Anything => free > 0,
            Free::Quarter => free >= FEW && free * 4 >= pages,
            Free::Half => free >= FEW && free * 2 >= pages,
        }
    }
}

impl Durable {
    /// Frees pages that nobody has, writes the newest state to the file, and then shortens the file as long
    /// as possible.
    ///
    /// # Errors
    /// I/O.
    pub(in crate::state) fn compact(&self, catalog: &Catalog) -> Result<()> {
        self.reclaim();
        self.checkpoint(catalog)?;
        self.shorten(Free::Anything, || self.ask(catalog, Purpose::Shortening))
    }

    /// Frees pages that are used by the map of the file, and that nothing reaches: an older program may have
    /// left some. It looks at all extents, as opening does not.
    fn reclaim(&self) {
        let written = lock(&self.written);
        self.file.reclaim(&written.reached());
    }

    /// Writes the newest state to the file, and shortens the file if much of it is free.
    ///
    /// # Errors
    /// I/O.
    pub(in crate::state) fn checkpoint_and_shorten(&self, catalog: &Catalog) -> Result<()> {
        self.checkpoint(catalog)?;
        self.shorten(Free::Quarter, || self.ask(catalog, Purpose::Shortening))
    }

    /// Shortens the file by checkpoints, if so much of it is free, as long as each makes it shorter. One that
    /// finds no room for what it moves makes it longer; the next one moves that to the pages given up.
    pub(super) fn shorten(&self, free: Free, checkpoint: impl Fn() -> Result<()>) -> Result<()> {
        let (before, _) = self.file.size();
        for _ in 0..ROUNDS {
            let (pages, left) = self.file.size();
            if !free.is_there((pages, left)) {
                break;
            }
            checkpoint()?;
            let (now, _) = self.file.size();
            if now >= pages && now <= before {
                break;
            }
        }
        Ok(())
    }
}
