//! The write-ahead log: what was committed since the newest state of the data file
//! (docs/design/file-format.md, "The log").
//!
//! ```text
//! file       │ segment 7 │ segment 5 │ segment 6 │       places are used again, numbers are not
//! positions    7p … 8p-1   5p … 6p-1   6p … 7p-1
//!                                ▲ replayed from here on                the end ▲
//! ```
//! A commit is a [`frame`], which exists as a whole or not at all. Each frame states its position, the run of
//! the database that wrote it, and how far the log had been synced by then. So each is judged by itself:
//! leftovers of a segment's former use, or of a crash, are not taken for new frames, and an end torn off by a
//! crash is distinguished from rot ([`LogReader::end`]).
//!
//! | step | where |
//! |---|---|
//! | [`Log::frame`] makes a frame of some records | outside of all locks |
//! | [`Log::append`] gives it its position in the log | under the locks that order commits: it copies bytes and never waits for the disk |
//! | [`Log::wait`] returns when it is as durable as [`Synchronous`] demands | outside of all locks |
//! | [`Log::cut`] frees segments that a checkpoint has made obsolete | after the header is synced |
//!
//! **Group commit.** A thread that waits while nobody writes becomes the leader: it takes everything that was
//! appended, writes it, syncs once, and wakes the threads whose frames it wrote. Meanwhile the next group
//! fills.
//!
//! Invariants: positions never decrease; after a failed write or sync, everything is refused. Not here: what
//! records mean, when checkpoints happen.

mod ahead;
pub mod frame;
mod reader;
mod segments;
mod writer;

#[cfg(test)]
mod tests;

pub use frame::{Frame, Kind, MAX_FRAME};
pub use reader::{Commit, LogReader, Tail};
pub use segments::{LogOwner, SegmentBytes};
pub use writer::{Log, Synchronous};
