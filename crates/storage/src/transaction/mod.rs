//! Transactions: what every statement writes through. Snapshot isolation; the first committer wins.
//!
//! | | forks | commit |
//! |---|---|---|
//! | [`Transaction::begin`]: a transaction *beside others* | hold no lock, and log what is done | replays its log where others committed first |
//! | [`Transaction::alone`]: a statement outside any transaction | hold the write locks of the tables they write, no log | cannot conflict |
//!
//! 1. **Begin** pins all tables at one moment: it holds the locks of all their heads, under which a commit
//!    publishes, so no commit falls in between. A statement pins tables as it comes to name them, and asks at
//!    the end whether they were all seen at one moment ([`Transaction::sees_one_moment`]).
//! 2. **Writing.** The first write to a table opens a fork of the pinned version. The transaction reads its
//!    forks, and so its own writes. If an alone transaction writes to a table whose write lock it does not
//!    hold, it does so beside others. A few new values of single rows need no fork: they are *kept* beside
//!    the pinned version ([`Transaction::keep`]) until something else is done with the table, or until the
//!    commit.
//! 3. **Savepoints** cost nothing until a table is written: then its fork is saved, once for each savepoint
//!    that does not have it yet.
//! 4. **Commit.** It takes the write locks of the tables that it wrote, before any other lock
//!    ([`crate::sync::lock_order`]). A fork whose table has not changed is ready. Otherwise its log is
//!    replayed on a fork of the newest version. A row that was changed or deleted must still be there with
//!    the same values; a key that was added to a table whose key is unique must still be free; a table that
//!    was cleared must not have changed. If one of these does not hold, another transaction was first, and
//!    this one fails as a whole.
//! 5. **Validation.** If the outcome depends on tables that were only read ([`Transaction::depend_on`]), and
//!    one of them has a newer version, or something was replayed, the caller checks its constraints again on
//!    the newest versions.
//! 6. **Publish.** All forks become the heads of their tables at one moment, and new values that were kept
//!    are written to heads, under the locks of all heads, provided that the tables it depends on have not
//!    changed since they were checked. At that moment the redo records of logged tables are appended to the
//!    log as one commit; the disk is waited for once all locks have been released. Rows of loads
//!    that the records refer to were synced before. If one of these tables has changed, step 5 is repeated;
//!    after some rounds it takes their write locks too, so that this ends. Nothing is waited for here but
//!    other threads that hold these locks equally briefly.
//!
//! Rows are identified by their layout key and their values; without a layout key, by their row number and
//! their values. A row that has its old values again counts as the same row, and rows may move meanwhile.
//! Changes of different rows of one table do not conflict, so write skew is possible, as it is under snapshot
//! isolation, except in tables that the transaction depends on.
//!
//! ```text
//! commit ──▶ replay ──▶ unmoved    ──▶ renumbered   a log on a newer version; faster where rows have kept
//!    │              ──▶ references ──▶              their places; numbers of rows that it added, and
//!    │                                              the rows of indexes that have these
//!    └─▶ tables, savepoints ──▶ touched             the tables of a transaction, and what it goes back to
//! ```
//! **Indexes** of a table without a layout key have the numbers of its rows. If rows that a transaction has
//! added get other numbers, its indexes are replayed as well, after the table, whether others have written to
//! them or not ([`Transaction::refers_by_number`]).
//!
//! A thread that holds a write lock, by an alone transaction or [`Table::write`](crate::table::Table::write),
//! must not wait for another one.

mod commit;
mod references;
mod renumbered;
mod replay;
mod savepoints;
mod tables;
mod touched;
mod unmoved;

pub use commit::Prologue;
pub use tables::Transaction;

#[cfg(test)]
use savepoints::SAVED;

#[cfg(test)]
mod tests {
    mod indexed;
    mod kept;
    mod numbered;
    mod redo;
    mod transactions;
}
