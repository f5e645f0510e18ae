//! Loads: rows that were appended in such numbers that the log only says where in the data file they are
//! (docs/decisions/0021-one-file.md, step 9).
//!
//! 1. A writer of a fork gives the pieces of a large append to the [`LoadStore`] of its table, which writes
//!    them to extents. No head is locked meanwhile.
//! 2. The fork's redo record refers to the extents. If its log is replayed, on a newer version, the pieces
//!    are read again, or the same extents are referred to by another record.
//! 3. When the commit has been framed for the log, the extents are synced; when it has been appended, they
//!    are [committed](StoredLoad::commit). Rows whose commit never comes give their extents back.
//!
//! Rows that are written to a head directly go through the log, whatever their number. Not here: what the
//! extents consist of, and what checkpoints do with them ([`crate::checkpoint`]).

use crate::definition::ObjectId;
use crate::file::Extent;
use crate::record::damaged;
use crate::tree::{Piece, Shape};
use crate::value::Sketch;
use entasis_vector::Result;
use std::fmt::Debug;
use std::sync::Arc;

/// Where large loads of the tables of a database are written.
pub(crate) trait LoadStore: Debug + Send + Sync {
    /// Writes the rows of a load of a table, whose shape is given, if they are so many that it pays. For each
    /// appender there is a sketch for each column. `look` is called now and then and may end it.
    ///
    /// # Errors
    /// I/O; the errors of `look`.
    fn store(
        &self,
        table: (ObjectId, &Shape),
        rows: (&[Arc<Piece>], &[Vec<Sketch>]),
        look: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Arc<dyn StoredLoad>>>;
}

/// The rows of a load in the data file. If it is dropped before it is committed, its extents are free again.
pub(crate) trait StoredLoad: Debug + Send + Sync {
    /// The extent by which all others are found.
    fn index(&self) -> Extent;
    /// The number of its rows.
    fn rows(&self) -> u64;
    /// The rows, for a table of the shape that they were stored for.
    ///
    /// # Errors
    /// I/O; corruption, with the place.
    fn read(&self, shape: &Shape) -> Result<Loaded>;
    /// Returns when all of it will stay.
    ///
    /// # Errors
    /// I/O.
    fn sync(&self) -> Result<()>;
    /// Says that the log refers to it. Called under the locks under which the commit is appended.
    fn commit(&self);
}

/// The rows of a load that were read again.
pub(crate) struct Loaded {
    /// As appenders encoded them.
    pub(crate) pieces: Vec<Arc<Piece>>,
    /// A sketch for each column.
    pub(crate) sketches: Vec<Sketch>,
}

/// Reads the rows of a load that a record refers to, of a table of this shape, by the extent of its index.
pub(crate) type ReadLoad<'a> = dyn FnMut(Extent, &Shape) -> Result<Loaded> + 'a;

/// Reads the loads of a log that has no data file.
pub(crate) fn no_loads(_: Extent, _: &Shape) -> Result<Loaded> {
    Err(damaged("its rows are in a data file, and there is none"))
}

/// The pieces of a load that a fork remembers.
#[derive(Debug)]
pub(crate) enum Pieces {
    /// They are kept in memory.
    Kept(Vec<Arc<Piece>>),
    /// They are in the data file.
    Stored(Arc<dyn StoredLoad>),
}

impl Pieces {
    /// The pieces, for a table of the shape that they are of.
    ///
    /// # Errors
    /// I/O; corruption, with the place.
    pub(crate) fn get(&self, shape: &Shape) -> Result<Vec<Arc<Piece>>> {
        match self {
            Pieces::Kept(pieces) => Ok(pieces.clone()),
            Pieces::Stored(stored) => Ok(stored.read(shape)?.pieces),
        }
    }

    /// Where they are stored, if they are.
    pub(crate) fn stored(&self) -> Option<&Arc<dyn StoredLoad>> {
        match self {
            Pieces::Kept(_) => None,
            Pieces::Stored(stored) => Some(stored),
        }
    }
}
