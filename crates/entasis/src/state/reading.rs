//! A database opened read-only, while another process may write to it
//! ([`entasis_storage::checkpoint::Follower`]).
//!
//! Each transaction, and each statement by itself, begins by reading what was committed since
//! ([`Shared::refresh`]). That becomes visible here as a commit does: open transactions and cursors continue
//! to see what they saw. If there is nothing new, this takes three short system calls.
//!
//! Changes that outlive a connection are refused where they are made, or at the latest where they would be
//! published. Temporary objects belong to the connection alone, and can be changed.

use super::opening::FilesByName;
use super::{Config, Shared};
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
    /// Identifies the file that is read.
    id: Mutex<FileId>,
}

impl Reading {
    /// Opens the database in a file for reading; at its last checkpoint, if the log is lost and the
    /// configuration allows that.
    ///
    /// # Errors
    /// I/O; input, if the file is not a database; corruption, with the place.
    pub(super) fn open(path: &Path, config: &Config) -> Result<(Reading, Catalog)> {
        let (follower, catalog) = Follower::open(Box::new(FilesByName::of(path, config)?))?;
        let id = Mutex::new(follower.data_id());
        Ok((Reading { follower: Mutex::new(follower), id }, catalog))
    }
}

impl Shared {
    /// True if objects that outlive a connection cannot be changed.
    pub(crate) fn is_read_only(&self) -> bool {
        self.reading.is_some()
    }

    /// Identifies the data file.
    pub(super) fn file_id(&self) -> Option<FileId> {
        let read = self.reading.as_ref().map(|own| *own.id.lock().unwrap_or_else(PoisonError::into_inner));
        read.or_else(|| Some(self.durable.as_ref()?.names()?.data.id))
    }

    /// Publishes what another process has committed, if the database is read-only.
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

    /// Refuses any change that outlives a connection, if the database is read-only.
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

    /// Refuses a change of the object of this name, if it outlives its connection and the database is
    /// read-only.
    ///
    /// # Errors
    /// Input.
    pub(crate) fn refuse_change(&self, name: &str) -> Result<()> {
        if is_temporary(name) { Ok(()) } else { self.refuse_if_read_only() }
    }
}
