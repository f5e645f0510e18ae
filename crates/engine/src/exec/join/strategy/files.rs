//! Whether rows of a join go to temporary files: how much memory they may take, and when they take too much.

use crate::exec::join::tuning::{DEEP_ROWS, LEAST_PART, LEFT_PART, MOST_LEAST};
use crate::settings::JoinSpill;
use std::fmt;

/// Bytes left to others, of the bytes that are free when the first row arrives.
pub(crate) fn left(free: usize) -> usize {
    free / LEFT_PART
}

/// Bytes that a worker's build rows may have in any case, if `left` bytes are left to others.
pub(crate) fn least(left: usize) -> usize {
    (left / LEAST_PART).min(MOST_LEAST)
}

/// True if `bytes` of rows are too much for one worker while `free` bytes are free.
pub(crate) fn is_short(bytes: usize, free: usize, left: usize) -> bool {
    bytes > least(left) && free < left
}

/// True if the setting forces `partition`, of `count` partitions, to be written.
pub(crate) fn wants(setting: JoinSpill, partition: usize, count: usize) -> bool {
    match setting {
        JoinSpill::Auto => false,
        JoinSpill::Half => partition % 2 == 1 || count == 1,
        JoinSpill::All | JoinSpill::Deep => true,
    }
}

/// True if the setting treats memory as full with this many build rows.
pub(crate) fn is_full(setting: JoinSpill, rows: usize) -> bool {
    setting == JoinSpill::Deep && rows >= DEEP_ROWS
}

/// True if the setting treats this many build rows as too many for memory.
pub(crate) fn is_overfull(setting: JoinSpill, rows: usize) -> bool {
    setting == JoinSpill::Deep && rows > DEEP_ROWS
}

/// Why partitions are written, according to the setting.
pub(crate) struct SpillReason(pub JoinSpill);

impl fmt::Display for SpillReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            JoinSpill::Auto => write!(f, "they did not fit into memory"),
            forced => write!(f, "join_spill = {forced}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_too_many_once_others_would_have_less_than_is_left_to_them() {
        let left = left(400 << 20);
        assert_eq!((left, least(left), least(1 << 20)), (100 << 20, 4 << 20, 256 << 10));
        assert!(is_short(5 << 20, 99 << 20, left));
        assert!(!is_short(5 << 20, 100 << 20, left), "there is memory");
        assert!(!is_short(4 << 20, 1 << 20, left), "a worker may have these in any case");
    }

    #[test]
    fn a_setting_names_the_partitions_that_are_written() {
        let of_four = |setting| (0..4).filter(|&p| wants(setting, p, 4)).count();
        let settings = [JoinSpill::Auto, JoinSpill::Half, JoinSpill::All, JoinSpill::Deep];
        assert_eq!(settings.map(of_four), [0, 2, 4, 4]);
        assert!(wants(JoinSpill::Half, 0, 1), "of one partition, that one");
        assert!(is_full(JoinSpill::Deep, DEEP_ROWS) && !is_overfull(JoinSpill::Deep, DEEP_ROWS));
        assert!(!is_full(JoinSpill::All, 1 << 30));
        assert_eq!(SpillReason(JoinSpill::Half).to_string(), "join_spill = half");
    }
}
