//! What upkeep did last to a row group and why, and why it leaves one alone: for users who wonder. In every
//! layout; what `casper` weighed beyond that is its [`Decision`](super::Decision).
//!
//! The first is noted in the row group when something is put in place, and lost with the process; the second
//! is found when somebody asks, by the same test as upkeep's own.

use std::fmt;

/// What upkeep did last to a row group, or to a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Upkept {
    /// Rows were laid anew because partitions that are written were low on ghosts.
    LowOnGhosts,
    /// Rows were laid over fewer slices because most slots were empty.
    Sparse,
    /// Rows were laid anew as the workload wants it, or as the budget of ghosts does.
    ByWorkload,
    /// Rows were laid together because nobody has written them for long.
    Together,
    /// What was written was encoded again, each row where it is.
    Encoded,
    /// All was encoded for reading because nobody has written it for long.
    ForReading,
}

/// What the next round of upkeep does with a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Something, unless it is written before.
    Due,
    /// Nothing: it has been written since the last round, and is likely to be written again.
    Written,
    /// Nothing: it has rested for so many rounds, and is encoded for reading after more than `of`.
    Waits {
        /// Rounds since it was written, the next one included.
        rounds: u64,
        /// See `rounds`.
        of: u64,
    },
    /// Nothing: it has not been written since it was encoded.
    Idle,
}

/// What was done to a row group, and what comes next. Displays as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UpkeepReason {
    /// What was done last; `None` if nothing was since the table was opened, or since the row group was made.
    pub last: Option<Upkept>,
    /// What the next round does, and why.
    pub next: Standing,
}

impl fmt::Display for Upkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Upkept::LowOnGhosts => "laid anew: low on ghosts where it was written",
            Upkept::Sparse => "laid over fewer slices: most slots were empty",
            Upkept::ByWorkload => "laid anew: by workload and budget",
            Upkept::Together => "laid together: not written for long",
            Upkept::Encoded => "encoded again: it was written",
            Upkept::ForReading => "encoded for reading: not written for long",
        })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Due => f.write_str("due in the next round"),
            Standing::Written => f.write_str("left alone: written since the last round"),
            Standing::Waits { rounds, of } => write!(f, "left alone: has rested for {rounds} of {of} rounds"),
            Standing::Idle => f.write_str("left alone: not written since it was encoded"),
        }
    }
}

impl fmt::Display for UpkeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(last) = self.last {
            write!(f, "{last}; ")?;
        }
        write!(f, "{}", self.next)
    }
}
