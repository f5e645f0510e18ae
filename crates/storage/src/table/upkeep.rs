//! Upkeep: background work that restores what writes have worn down.
//!
//! | what | done |
//! |---|---|
//! | partitions whose ghosts run out | eight slices around are spread again, an eighth of their slots ghosts; so that a ripple is the rare case when writers come back |
//! | slots that nobody needs | the same, over fewer slices; small row groups are joined |
//! | ghosts that are not where rows are inserted (layout `casper`) | slices are laid anew, if that pays or the budget asks for it |
//! | bounds that only widened, encodings that only loosened | the slices are encoded again, each row where it is |
//! | by key: ghosts for writers, encodings that can be written, though nobody has written for long | rows are laid together, with the table's share of ghosts; then the slices are encoded for reading |
//!
//! A round looks at the row groups that have been written since they were encoded. Writers set a mark, which
//! the round clears; so it can tell those that have not been written since the round before, and leaves the
//! others alone. These are likely to change again, and their writers would have to wait; meanwhile ripples
//! give them room ([decision 4](../../../docs/decisions/0004-upkeep.md)).
//!
//! New slices are prepared without a lock, from a snapshot, and put in place while the write lock is held,
//! a window at a time, so that nobody waits for long. If a writer has changed a window meanwhile, the
//! prepared slices are dropped. Upkeep does not wait for statements that take long.
//!
//! Rows keep their values, but may move. Debug builds compare each step with what it was made of, and check
//! the tree at the end of a round. A fork that began before is then replayed instead of fast-forwarded, which
//! cannot conflict, since it identifies rows by their layout keys or row numbers.

use super::head::{Due, Head, Table};
use crate::definition::Layout;
use crate::sync::Ordering;
use crate::tree::check::check;
use crate::tree::{RowGroup, Standing};
use crate::write::{Writer, has_small};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long upkeep waits for a write lock.
const PATIENCE: Duration = Duration::from_millis(5);
/// The number of blocks that are put in place at once.
const BLOCKS: usize = 1024;

/// What upkeep of a table has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// Slices that were spread again.
    pub spread: usize,
    /// Slices that were encoded again.
    pub encoded: usize,
    /// Windows and slices that were written while new ones were prepared, and so have not been replaced.
    pub overtaken: usize,
    /// Row groups that are left to later rounds, because they have been written since the last one, have not
    /// rested for long enough to be encoded for reading, or are not finished.
    pub warm: usize,
    /// The longest time that it kept others waiting.
    pub longest: Duration,
    /// The round has come to its end.
    pub is_done: bool,
}

impl Table {
    /// Does upkeep for about as long as `budget` says. One thread does so at a time; others return at once.
    ///
    /// Rows that were written count as idle, and are encoded again, if a whole round has passed without a
    /// write to their row group. So leave some time between rounds.
    pub fn upkeep(self: &Arc<Table>, budget: Duration) -> Upkeep {
        let end = Instant::now() + budget;
        let mut done = Upkeep::default();
        let Ok(mut due) = self.upkeep.try_lock() else { return done };
        if due.is_empty() {
            (*due, done.warm) = self.look();
        }
        let snapshot = {
            let mut head = self.head();
            if head.branch.is_succeeded() {
                return Upkeep { is_done: true, ..Upkeep::default() };
            }
            if due.is_empty() && !has_small(&head.branch.root, &self.shape) {
                // The last statement still held what it replaced when it ended. Freed after the lock has been
                // released.
                let dead = head.branch.take_dead();
                drop(head);
                drop(dead);
                return Upkeep { is_done: true, ..done };
            }
            self.pin(&mut head)
        };
        let (root, _) = snapshot.pinned();
        while let Some(&number) = due.last()
            && Instant::now() < end
        {
            // Another one may have its number by now, at rest or not.
            let rests = |node: &&RowGroup| node.wear.looks.load(Ordering::Relaxed) > 0;
            let node = root.groups.get(number).map(|node| &**node).filter(rests);
            if node.is_some_and(|node| !self.keep_up(number, node, end, &mut done)) {
                break;
            }
            due.pop();
        }
        done.is_done = due.is_empty();
        if done.is_done && has_small(&root, &self.shape) {
            self.put(&mut done, |writer| writer.join_small());
        }
        drop(snapshot);
        let mut head = self.head();
        if cfg!(debug_assertions) {
            check(&head.branch.root, &self.shape);
        }
        // Freed when the lock is given back.
        let start = Instant::now();
        let dead = head.branch.take_dead();
        done.longest = done.longest.max(start.elapsed());
        drop(head);
        drop(dead);
        done
    }

    /// The row groups that have been written since they were encoded, but not since the last look, or have
    /// rested for long and can be laid together or encoded for reading; and the number of those that will be
    /// due if they are not written.
    fn look(&self) -> (Due, usize) {
        let head = self.head();
        let (mut due, mut warm) = (Vec::new(), 0);
        for (number, group) in head.branch.root.groups.iter().enumerate().rev() {
            let looks = group.wear.looks.load(Ordering::Relaxed);
            group.wear.looks.store(looks.saturating_add(1), Ordering::Relaxed);
            if let Some(own) = &group.counters {
                own.round(looks == 0);
            }
            match self.shape.standing(group, looks) {
                Standing::Due => due.push(number),
                Standing::Written | Standing::Waits { .. } => warm += 1,
                Standing::Idle => {}
            }
        }
        (due, warm)
    }

    /// Upkeep of one row group. False if the time is up.
    fn keep_up(&self, number: usize, node: &RowGroup, end: Instant, done: &mut Upkeep) -> bool {
        let shape = &self.shape;
        let rests = shape.has_rested(node) && shape.is_unsettled(node);
        let most = (BLOCKS / shape.schema.len().max(1)).max(1);
        let (windows, decision) = match rests && shape.options.layout != Layout::Casper {
            true => (shape.windows_at_rest(node, most), None),
            false => shape.windows(node),
        };
        let is_busy = !windows.is_empty();
        let mut is_done = true;
        for window in windows {
            if Instant::now() >= end {
                return false;
            }
            let laid = shape.lay_window(node, &window);
            // Whether it is put in place or not: the rows have been moved.
            if let Some(own) = &node.counters {
                own.spend(window.price);
            }
            let is_put =
                self.put(done, |writer| writer.put_window(number, node, &window, laid)).unwrap_or(false);
            is_done &= is_put;
            *(if is_put { &mut done.spread } else { &mut done.overtaken }) += window.old.len();
        }
        // What was overtaken is decided again.
        if let (Some(own), Some(decision), true) = (&node.counters, decision, is_done) {
            own.settle(decision);
        }
        if is_busy {
            // Once its rows are laid out, it is encoded, in the next round.
            done.warm += 1;
        } else if node.wear.is_hot || rests {
            // It cannot fail: strings that are in memory fit into their blocks.
            let Ok(mut encoded) = shape.encode_written(node, rests) else { return true };
            loop {
                let before = encoded.len();
                let put = self
                    .put(done, |writer| writer.put_encoded(number, node, &mut encoded, most))
                    .unwrap_or(0);
                done.encoded += put;
                done.overtaken += before.min(most) - put;
                if encoded.len() == 0 || encoded.len() == before {
                    break;
                }
            }
            if !rests && shape.settles() {
                // Later it is encoded for reading.
                done.warm += 1;
            }
        }
        true
    }

    /// Puts something in place with the write lock held; `None` if somebody else writes for long, or another
    /// table has succeeded this one.
    fn put<R>(&self, done: &mut Upkeep, put: impl FnOnce(&mut Writer<'_>) -> R) -> Option<R> {
        let _guard = self.write_lock.take_soon(PATIENCE)?;
        let start = Instant::now();
        let mut head = self.head();
        let head: &mut Head = &mut head;
        if head.branch.is_succeeded() {
            return None;
        }
        head.forget_summaries();
        let result = put(&mut Writer { shape: &self.shape, branch: &mut head.branch });
        done.longest = done.longest.max(start.elapsed());
        Some(result)
    }
}
