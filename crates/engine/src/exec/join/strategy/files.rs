//! What the setting `join_spill` says of the partitions of a join that go to temporary files. By itself,
//! memory decides ([`crate::exec::spill::policy`]).

use crate::exec::join::tuning::DEEP_ROWS;
use crate::settings::JoinSpill;
use std::fmt;

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
