//! Upkeep: what writers leave undone, done in the background now and then.
//!
//! | what | done |
//! |---|---|
//! | partitions whose ghosts run out | eight slices around are spread again, an eighth of their slots ghosts; so that a ripple is the rare case when writers come back |
//! | slots that nobody needs | the same, over fewer slices; small row groups are joined |
//! | bounds that only widened, encodings that only loosened | the slices are encoded again, each row where it is |
//!
//! A round looks at the row groups that were written since they were encoded. Writers leave a mark, which the
//! round takes away: so it finds those that were not written since the round before, and leaves the others
//! alone. They are about to change, writers help themselves with ripples, and would wait ([decision
//! 4](../../../docs/decisions/0004-upkeep.md)).
//!
//! What is to be done is prepared without a lock, from a snapshot, and put in place with the writers' turn in
//! hand, a window at a time, so that nobody waits for long. What a writer changed meanwhile stays as it is,
//! and the work is dropped. Statements that take long are not waited for.
//!
//! Rows stay the same, and may change their places; in debug builds each step is compared with what it was
//! made of, and the tree is checked at the end of a round. A fork that began before is not fast-forwarded,
//! then, but replayed, and cannot conflict for it: it tells rows by their layout keys, or by their numbers.

use super::head::{Due, Head, Table};
use crate::sync::Ordering;
use crate::tree::RowGroup;
use crate::tree::check::check;
use crate::write::{Writer, has_small};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a turn is waited for.
const PATIENCE: Duration = Duration::from_millis(5);
/// Blocks that are put in place at once.
const BLOCKS: usize = 1024;

/// What a table's upkeep came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// Slices that were spread again.
    pub spread: usize,
    /// Slices that were encoded again.
    pub encoded: usize,
    /// Windows and slices that were changed while they were prepared, so that they stay as they are.
    pub overtaken: usize,
    /// Row groups that are left to later rounds: written since the last one, or not finished.
    pub warm: usize,
    /// The longest time that it kept others waiting.
    pub longest: Duration,
    /// True if the round has come to its end.
    pub is_done: bool,
}

impl Table {
    /// Does upkeep for about as long as `budget` says. One thread at a time; others return at once.
    ///
    /// Rows that were written are at rest, and encoded again, if a whole round finds them as the one before
    /// did. So leave some time between rounds.
    pub fn upkeep(self: &Arc<Table>, budget: Duration) -> Upkeep {
        let end = Instant::now() + budget;
        let mut done = Upkeep::default();
        let Ok(mut due) = self.upkeep.try_lock() else { return done };
        if due.is_empty() {
            (*due, done.warm) = self.look();
        }
        let snapshot = {
            let mut head = self.head();
            if due.is_empty() && !has_small(&head.branch.root, &self.shape) {
                // What the last statement replaced, it still saw itself when it ended. Freed when the lock is
                // given back.
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
            let rests = |node: &&RowGroup| !node.is_touched.load(Ordering::Relaxed);
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

    /// The row groups that were written since they were encoded, but not since the last look. And how many
    /// were written since the last look.
    fn look(&self) -> (Due, usize) {
        let head = self.head();
        let groups = head.branch.root.groups.iter().enumerate().rev().filter(|(_, group)| group.is_hot);
        let (due, warm): (Vec<_>, Vec<_>) =
            groups.partition(|(_, group)| !group.is_touched.swap(false, Ordering::Relaxed));
        (due.into_iter().map(|(number, _)| number).collect(), warm.len())
    }

    /// Upkeep of a row group. False if the time is up.
    fn keep_up(&self, number: usize, node: &RowGroup, end: Instant, done: &mut Upkeep) -> bool {
        let shape = &self.shape;
        let windows = shape.windows(node);
        let is_busy = !windows.is_empty();
        for window in windows {
            if Instant::now() >= end {
                return false;
            }
            let laid = shape.lay_window(node, &window);
            let is_put =
                self.put(done, |writer| writer.put_window(number, node, &window, laid)).unwrap_or(false);
            *(if is_put { &mut done.spread } else { &mut done.overtaken }) += window.old.len();
        }
        if is_busy {
            // Once it is as it shall be it is encoded, in the next round.
            done.warm += 1;
        } else if node.is_hot {
            // Strings that are in memory fit their blocks.
            let Ok(mut encoded) = shape.encode_written(node) else { return true };
            let most = (BLOCKS / shape.schema.len().max(1)).max(1);
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
        }
        true
    }

    /// Puts something in place. Nothing, if somebody writes for long.
    fn put<R>(&self, done: &mut Upkeep, put: impl FnOnce(&mut Writer<'_>) -> R) -> Option<R> {
        let _turn = self.turns.take_soon(PATIENCE)?;
        let start = Instant::now();
        let mut head = self.head();
        let head: &mut Head = &mut head;
        head.forget_summaries();
        let result = put(&mut Writer { shape: &self.shape, branch: &mut head.branch });
        done.longest = done.longest.max(start.elapsed());
        Some(result)
    }
}
