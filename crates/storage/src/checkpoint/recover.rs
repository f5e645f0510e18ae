//! Recovery: the state of a file, and what the log says was done since.
//!
//! 1. [`super::open`] makes the catalog and the tables of the newest checkpoint.
//! 2. The commits of the log are done once more, in batches of some megabytes ([`super::batches`]).
//! 3. What the log refers to in the file ([`super::images`]) is taken out of the free pages, and is known to
//!    the next checkpoint. All other pages are used or free as the map of the checkpoint says, which is not
//!    compared with the extents that are reached ([`crate::file`] says why it is right).
//!
//! Neither the log nor a page of the file is written meanwhile, so all that the log refers to is claimed
//! before anything could be written over it, and a machine that stops here is opened again as before.

use super::batches::{Batches, Batching};
use super::record::Checkpointed;
use super::replay::Replay;
use crate::catalog::Catalog;
use crate::file::DataFile;
use crate::wal::{LogReader, Tail};
use entasis_vector::Result;

/// A database as it was when its last commit ended.
pub struct Recovered {
    /// Its names and tables.
    pub catalog: Catalog,
    /// What the next checkpoint is to know.
    pub written: Checkpointed,
    /// The end of the log.
    pub tail: Tail,
    /// Commits that were done once more.
    pub commits: u64,
}

/// Opens a file together with its log, which was opened at the position that the file says, with as many
/// threads as the file may have. `progress` is told the position, now and then.
///
/// # Errors
/// I/O; corruption, with the place.
pub fn recover(
    file: &DataFile,
    log: LogReader,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Recovered> {
    recover_by(Batching::by(file.threads()), file, log, progress)
}

/// The same, with batches as they are wanted.
///
/// # Errors
/// Those of [`recover`].
pub(super) fn recover_by(
    batching: Batching,
    file: &DataFile,
    mut log: LogReader,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Recovered> {
    let (catalog, written) = super::open(file)?;
    log.read_ahead();
    let replay = Replay { claims: true, written, ..Replay::of(file, catalog.version()) };
    let (mut batches, mut commits) = (Batches::new(replay, batching), 0);
    while let Some(commit) = log.next_commit()? {
        progress(commit.position)?;
        batches.take(commit, &log)?;
        commits += 1;
    }
    batches.write(&log)?;
    let Replay { names, written, .. } = batches.replay;
    let catalog = if commits == 0 { catalog } else { Catalog::of(names) };
    Ok(Recovered { catalog, written, tail: log.end()?, commits })
}
