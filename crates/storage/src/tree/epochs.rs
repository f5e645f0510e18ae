//! The clock of a table, and the stamps of the snapshots that are held.

use crate::node::Stamp;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// The clock of a table, and the stamps of snapshots that are held.
#[derive(Debug)]
pub(crate) struct Epochs {
    clock: AtomicU64,
    /// The stamps of snapshots that are held, ascending.
    active: Mutex<Vec<Stamp>>,
    /// The first of `active`, or the greatest number if there is none.
    oldest: AtomicU64,
    /// The last of `active`, or 0 if there is none.
    newest: AtomicU64,
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs {
            clock: AtomicU64::new(0),
            active: Mutex::default(),
            oldest: AtomicU64::new(Stamp::MAX),
            newest: AtomicU64::new(0),
        }
    }
}

impl Epochs {
    /// A new stamp, greater than all before. Stamps begin at 1.
    pub(crate) fn next(&self) -> Stamp {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that a snapshot was taken at `stamp`.
    pub(crate) fn enter(&self, stamp: Stamp) {
        let mut active = self.active();
        let at = active.partition_point(|&other| other <= stamp);
        active.insert(at, stamp);
        self.publish(&active);
    }

    /// Notes that the snapshot taken at `stamp` was dropped.
    pub(crate) fn leave(&self, stamp: Stamp) {
        let mut active = self.active();
        let at = active.partition_point(|&other| other < stamp);
        debug_assert!(active[at] == stamp);
        active.remove(at);
        self.publish(&active);
    }

    fn publish(&self, active: &[Stamp]) {
        self.oldest.store(active.first().copied().unwrap_or(Stamp::MAX), Ordering::Release);
        self.newest.store(active.last().copied().unwrap_or(0), Ordering::Release);
    }

    /// The stamp of the oldest snapshot, or the greatest number if there is none. Never too young: a snapshot
    /// that is being taken now is younger than any that the caller, who holds the branch, may ask about.
    pub(crate) fn oldest(&self) -> Stamp {
        self.oldest.load(Ordering::Acquire)
    }

    /// The stamp of the newest snapshot that is held, or 0. Never too old: only the holder of a branch takes
    /// a snapshot of it.
    pub(crate) fn newest(&self) -> Stamp {
        self.newest.load(Ordering::Acquire)
    }

    /// How many snapshots are held.
    pub(crate) fn held(&self) -> usize {
        self.active().len()
    }

    /// The stamps of the snapshots that are held, ascending.
    pub(crate) fn active(&self) -> MutexGuard<'_, Vec<Stamp>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if one of the snapshots taken at `active` shows a node that existed from `birth` to `death`.
pub(crate) fn is_shown(active: &[Stamp], birth: Stamp, death: Stamp) -> bool {
    active.get(active.partition_point(|&stamp| stamp < birth)).is_some_and(|&stamp| stamp < death)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_shown_by_snapshots_between_birth_and_death() {
        let active = [3, 7, 7, 9];
        let shown = |birth, death| is_shown(&active, birth, death);
        assert!(shown(3, 4) && shown(1, 4) && shown(5, 8) && shown(9, 100));
        assert!(!shown(4, 7) && !shown(1, 3) && !shown(10, 11) && !shown(8, 9));
    }

    #[test]
    fn snapshots_leave_in_any_order() {
        let epochs = Epochs::default();
        [1, 2, 2, 5].into_iter().for_each(|stamp| epochs.enter(stamp));
        for (stamp, oldest, newest) in [(2, 1, 5), (1, 2, 5), (5, 2, 2), (2, Stamp::MAX, 0)] {
            epochs.leave(stamp);
            assert_eq!((epochs.oldest(), epochs.newest()), (oldest, newest));
        }
    }
}
