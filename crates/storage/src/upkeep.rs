//! Upkeep: what writers leave undone, done in the background now and then.
//!
//! | what | found by | done |
//! |---|---|---|
//! | partitions whose ghosts run out | few ghosts, and rows were written | eight slices around are spread again, an eighth of their slots ghosts; so that a ripple is the rare case |
//! | slots that nobody needs | few rows | the same, over fewer slices; small row groups are joined |
//! | bounds that only widened, encodings that only loosened | rows were written, but not since the last round | the slices are encoded again, each row where it is |
//!
//! A round looks at all row groups that were written since they were encoded. What is to be done is prepared without a lock, from
//! a snapshot, and put in place with the writers' turn in hand, a window at a time, so that nobody waits for longer than
//! microseconds. What a writer changed meanwhile stays as it is, and the work is dropped. Statements that take long are not waited for.
//!
//! Rows stay the same, and may change their places. A fork that began before is not fast-forwarded, then, but replayed, and
//! cannot conflict for it. Without a layout key rows are told by their places, so that these change only while nobody holds a
//! snapshot.

use crate::row_group::RowGroup;
use crate::snapshot::TableSnapshot;
use crate::table::{Head, Table};
use crate::tree::Stamp;
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
    /// Row groups that were written since the last round, and are left alone until they rest.
    pub warm: usize,
    /// The longest time that it kept others waiting.
    pub longest: Duration,
    /// True if the round has come to its end.
    pub is_done: bool,
}

/// How far the rounds of a table have come.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// When the last round began, and this one.
    last: Stamp,
    began: Stamp,
    /// The row group that is next.
    next: usize,
}

impl Table {
    /// Does upkeep for about as long as `budget` says. One thread at a time; others return at once.
    ///
    /// Rows that were written are at rest, and encoded again, if a whole round finds them as the one before did. So leave some
    /// time between rounds.
    pub fn upkeep(self: &Arc<Table>, budget: Duration) -> Upkeep {
        let end = Instant::now() + budget;
        let mut done = Upkeep::default();
        let Ok(mut rounds) = self.upkeep.try_lock() else { return done };
        let Some(snapshot) = self.look() else {
            *rounds = Rounds { last: rounds.began, began: rounds.began, next: 0 };
            return Upkeep { is_done: true, ..done };
        };
        let (root, stamp) = snapshot.pinned();
        if rounds.next == 0 {
            (rounds.last, rounds.began) = (rounds.began, stamp);
        }
        while rounds.next < root.groups.len() && Instant::now() < end {
            let node = &*root.groups[rounds.next];
            if node.is_hot && !self.keep_up(rounds.next, node, rounds.last, end, &mut done) {
                break;
            }
            rounds.next += 1;
        }
        if rounds.next >= root.groups.len() {
            rounds.next = 0;
            done.is_done = true;
            if has_small(&root, &self.shape) {
                self.put(&mut done, true, |writer| writer.join_small());
            }
        }
        drop(snapshot);
        // Freed when the lock is given back.
        let mut head = self.head();
        let start = Instant::now();
        let dead = head.branch.take_dead();
        done.longest = done.longest.max(start.elapsed());
        drop(head);
        drop(dead);
        done
    }

    /// The newest version, if some of it was written since it was encoded.
    fn look(self: &Arc<Table>) -> Option<TableSnapshot> {
        let mut head = self.head();
        let root = head.branch.root;
        let is_due = root.groups.iter().any(|group| group.is_hot) || has_small(&root, &self.shape);
        is_due.then(|| self.pin(&mut head))
    }

    /// Upkeep of a row group. False if the time is up.
    fn keep_up(&self, number: usize, node: &RowGroup, last: Stamp, end: Instant, done: &mut Upkeep) -> bool {
        let shape = &self.shape;
        let windows = if self.may_move() { shape.windows(node) } else { Vec::new() };
        let is_busy = !windows.is_empty();
        for window in windows {
            if Instant::now() >= end {
                return false;
            }
            let laid = shape.lay_window(node, &window);
            let is_put = self.put(done, true, |writer| writer.put_window(number, node, &window, laid)).unwrap_or(false);
            *(if is_put { &mut done.spread } else { &mut done.overtaken }) += window.old.len();
        }
        if is_busy || node.stamp > last {
            done.warm += 1;
        } else {
            // Strings that are in memory fit their blocks.
            let Ok(mut encoded) = shape.encode_written(node) else { return true };
            let most = (BLOCKS / shape.schema.len().max(1)).max(1);
            loop {
                let before = encoded.len();
                let put =
                    self.put(done, false, |writer| writer.put_encoded(number, node, &mut encoded, most)).unwrap_or(0);
                done.encoded += put;
                done.overtaken += before.min(most) - put;
                if encoded.len() == 0 || encoded.len() == before {
                    break;
                }
            }
        }
        true
    }

    /// True if rows may change their places.
    fn may_move(&self) -> bool {
        self.shape.key.is_some() || self.epochs.held() <= 1
    }

    /// Puts something in place. Nothing, if somebody writes for long, or rows would be moved that must not be.
    fn put<R>(&self, done: &mut Upkeep, moves: bool, put: impl FnOnce(&mut Writer<'_>) -> R) -> Option<R> {
        let _turn = self.turns.take_soon(PATIENCE)?;
        let start = Instant::now();
        let mut head = self.head();
        if moves && !self.may_move() {
            return None;
        }
        let head: &mut Head = &mut head;
        head.forget_summaries();
        let result = put(&mut Writer { shape: &self.shape, branch: &mut head.branch });
        done.longest = done.longest.max(start.elapsed());
        Some(result)
    }
}
