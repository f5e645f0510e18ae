//! The write-ahead log: what was committed since the newest state of the data file
//! (docs/design/file-format.md, "The log").
//!
//! ```text
//! file       │ segment 7 │ segment 5 │ segment 6 │       places are used again, numbers are not
//! positions    7p … 8p-1   5p … 6p-1   6p … 7p-1
//!                                ▲ replayed from here on                the end ▲
//! ```
//! A commit is a [`frame`]: it is there whole, or not at all. Each frame says where it stands, which run of
//! the database wrote it, and what had been synced by then. So each is judged by itself: what is left over of
//! a segment's former life, or of a crash, is not taken for news, and what a crash tore off is told from what
//! rotted ([`LogReader::end`]).
//!
//! | step | where |
//! |---|---|
//! | [`Log::frame`] makes a frame of some records | outside of all locks |
//! | [`Log::append`] gives it its place in the log | under the locks that order commits: it copies bytes, and waits for no disk |
//! | [`Log::wait`] returns when it is as safe as [`Synchronous`] says | outside of all locks |
//! | [`Log::cut`] gives segments free that a checkpoint made needless | after the header is synced |
//!
//! **Group commit.** Who waits while nobody writes becomes the leader: it takes all that was appended, writes
//! it, syncs once, and wakes those whose frames were among it. Meanwhile the next group fills.
//!
//! Invariants: positions never go back; after a write or a sync that failed, all is refused. What is not done
//! here: what records say, when a checkpoint comes.

pub mod frame;
mod reader;
mod segments;
mod writer;

#[cfg(test)]
mod tests;

pub use frame::{Frame, Kind, MAX_FRAME};
pub use reader::{Commit, LogReader, Tail};
pub use segments::SegmentBytes;
pub use writer::{Log, Synchronous};
