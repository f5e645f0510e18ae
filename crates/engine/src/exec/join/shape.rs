//! What comes out of a join: from the probe side while it streams by, and from the build side after that.

use crate::plan::JoinKind;

/// What a join outputs, for each of its two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Output while the probe side streams by.
    pub probe: ProbeOutput,
    /// Output from the build side after that.
    pub tail: BuildTail,
}

/// What comes out for a probe row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeOutput {
    /// A row for each match.
    Pairs,
    /// Like `Pairs`, and each row without a match with NULLs for the build side.
    PairsOrNulls,
    /// Like `PairsOrNulls`, but a second match of one row is an error.
    OneOrNulls,
    /// The row, if it has a match.
    Matched,
    /// The row, if it has no match.
    Unmatched,
    /// The row, if no build row matches it or, because of a NULL, might match it.
    SurelyUnmatched,
    /// The row and whether it has a match, which may be NULL.
    Mark {
        /// See [`JoinKind::Mark`].
        null_aware: bool,
    },
    /// Nothing: only the build side's marks count.
    Nothing,
}

/// Which build rows come out after the probe side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildTail {
    /// None.
    Nothing,
    /// Those that matched some probe row.
    Matched,
    /// Those that matched none.
    Unmatched,
}

impl Shape {
    /// The shape of `kind` with the left or the right input as the build side; `None` if that side cannot be
    /// built.
    pub(crate) fn of(kind: JoinKind, build_left: bool) -> Option<Shape> {
        use ProbeOutput::*;
        let (probe, tail) = match (kind, build_left) {
            (JoinKind::Inner, _) => (Pairs, BuildTail::Nothing),
            (JoinKind::Left, false) | (JoinKind::Right, true) => (PairsOrNulls, BuildTail::Nothing),
            (JoinKind::Left, true) | (JoinKind::Right, false) => (Pairs, BuildTail::Unmatched),
            (JoinKind::Full, _) => (PairsOrNulls, BuildTail::Unmatched),
            (JoinKind::Semi, false) => (Matched, BuildTail::Nothing),
            (JoinKind::Semi, true) => (Nothing, BuildTail::Matched),
            (JoinKind::Anti, false) => (Unmatched, BuildTail::Nothing),
            (JoinKind::Anti, true) => (Nothing, BuildTail::Unmatched),
            (JoinKind::NullAwareAnti, false) => (SurelyUnmatched, BuildTail::Nothing),
            (JoinKind::Mark { null_aware, .. }, false) => (Mark { null_aware }, BuildTail::Nothing),
            (JoinKind::Single, false) => (OneOrNulls, BuildTail::Nothing),
            (JoinKind::AsOf { outer }, false) => {
                (if outer { PairsOrNulls } else { Pairs }, BuildTail::Nothing)
            }
            (
                JoinKind::NullAwareAnti | JoinKind::Mark { .. } | JoinKind::Single | JoinKind::AsOf { .. },
                true,
            ) => {
                return None;
            }
        };
        Some(Shape { probe, tail })
    }

    /// True if probe rows without match leave no trace, so that they may be filtered out beforehand.
    pub(crate) fn drops_unmatched_probe_rows(self) -> bool {
        matches!(self.probe, ProbeOutput::Pairs | ProbeOutput::Matched | ProbeOutput::Nothing)
    }

    /// True if columns of the build side come out of the probe.
    pub(crate) fn gives_pairs(self) -> bool {
        matches!(self.probe, ProbeOutput::Pairs | ProbeOutput::PairsOrNulls | ProbeOutput::OneOrNulls)
    }
}
