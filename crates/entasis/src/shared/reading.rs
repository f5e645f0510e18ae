//! A database that is only read, beside another process that may write to it
//! ([`entasis_storage::checkpoint::Follower`]).
//!
//! Whoever begins a transaction, or runs a statement by itself, first asks for what was committed since
//! ([`Shared::refresh`]), which becomes visible here as a commit does: transactions and cursors that are open
//! go on to see what they saw. Where nothing is new that takes three short calls of the system.
//!
//! What outlives a connection is not changed: such a change is refused where it is made, and at the latest
//! where it would be published. Temporary objects are nobody else's business, and work.

use super::Shared;
use super::opening::FilesByName;
use entasis_storage::Catalog;
use entasis_storage::backend::FileId;
use entasis_storage::checkpoint::{Follower, News};
use entasis_storage::is_temporary;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// See the module.
pub(super) struct Reading {
    follower: Mutex<Follower>,
    /// Which file is read.
    id: Mutex<FileId>,
}

impl Reading {
    /// Reads the database in a file.
    ///
    /// # Errors
    /// I/O; input, if it is no database; corruption, with the place.
    pub(super) fn open(path: &Path) -> Result<(Reading, Catalog)> {
        let (follower, catalog) = Follower::open(Box::new(FilesByName::of(path)?))?;
        let id = Mutex::new(follower.data_id());
        Ok((Reading { follower: Mutex::new(follower), id }, catalog))
    }
}

impl Shared {
    /// True if what outlives a connection cannot be changed.
    pub(crate) fn is_read_only(&self) -> bool {
        self.reading.is_some()
    }

    /// Which file its data is in.
    pub(super) fn file_id(&self) -> Option<FileId> {
        let read = self.reading.as_ref().map(|own| *own.id.lock().unwrap_or_else(PoisonError::into_inner));
        read.or_else(|| self.durable.as_ref()?.id())
    }

    /// Publishes what another process has committed, if the database is only read.
    ///
    /// # Errors
    /// I/O, also if the file is gone; corruption, with the place; resource, if it does not fit into memory.
    #[inline]
    pub(crate) fn refresh(self: &Arc<Shared>) -> Result<()> {
        self.reading.as_ref().map_or(Ok(()), |reading| self.follow(reading))
    }

    fn follow(self: &Arc<Shared>, reading: &Reading) -> Result<()> {
        let mut follower = reading.follower.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news = News::default();
        let followed = follower.follow(&self.catalog, &mut news);
        *reading.id.lock().unwrap_or_else(PoisonError::into_inner) = follower.data_id();
        drop(follower);
        if news.are_there {
            self.left(news.left.into_iter());
            self.wake_upkeep();
            followed?;
            return self.charge_tables();
        }
        followed
    }

    /// Refuses any change of what outlives a connection, if the database is only read.
    ///
    /// # Errors
    /// Input.
    pub(crate) fn refuse_if_read_only(&self) -> Result<()> {
        if !self.is_read_only() {
            return Ok(());
        }
        let stem = self.path.as_deref().and_then(Path::file_stem).unwrap_or_default();
        let error = Error::input(format!("the database {} was opened read-only", stem.to_string_lossy()));
        Err(error.with_sqlstate(sqlstate::READ_ONLY))
    }

    /// Refuses a change of the object of this name, if it outlives its connection and the database is only
    /// read.
    ///
    /// # Errors
    /// Input.
    pub(crate) fn refuse_change(&self, name: &str) -> Result<()> {
        if is_temporary(name) { Ok(()) } else { self.refuse_if_read_only() }
    }
}
