//! What a history may violate, by the names that Adya, Berenson and Cerone gave, and how a violation is told.

use std::fmt;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anomaly {
    /// G0: transactions wrote over each other in a circle.
    DirtyWrite,
    /// G1a: something was seen of what was never committed.
    AbortedRead,
    /// G1b: a version was seen that its own transaction wrote over.
    IntermediateRead,
    /// G1c: transactions saw each other's writes in a circle.
    CircularInformationFlow,
    /// G-single: one snapshot shows a part of a transaction.
    ReadSkew,
    /// The same within one statement.
    FracturedRead,
    /// The same row read twice differs.
    NonRepeatableRead,
    /// OTV: a transaction that was seen is not seen any more.
    ObservedTransactionVanishes,
    /// PMP: what satisfies a predicate is not of one moment.
    PredicateManyPreceders,
    /// P4: two transactions changed the same version of a row.
    LostUpdate,
    /// Two snapshots see two transactions in opposite order.
    LongFork,
    /// A snapshot does not show what had been committed before it was taken.
    StaleRead,
    /// The order of effects contradicts the order of calls in another way.
    RealTime,
    /// A transaction does not see its own writes.
    OwnWrites,
    /// The columns of a row are of different versions.
    TornRow,
    /// A version that nobody wrote: a write is missing in it, there twice, or comes from nowhere.
    UnwrittenRow,
    /// A row is not there that nobody deleted.
    LostRow,
    /// One read shows a row twice.
    RowTwice,
    /// A statement says that it changed more or fewer rows than it did.
    WrongCount,
    /// Two rows with one key.
    UniqueViolation,
    /// A row refers to one that is not there.
    DanglingReference,
    /// What others need was dropped or changed.
    BrokenDependency,
    /// Two objects have one name.
    NameTwice,
    /// The tables do not hold what the model holds.
    WrongContents,
    /// A statement failed that must not.
    UnexpectedError,
}

impl Anomaly {
    /// How it is called in accounts.
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::DirtyWrite => "dirty write (G0)",
            Anomaly::AbortedRead => "aborted read (G1a)",
            Anomaly::IntermediateRead => "intermediate read (G1b)",
            Anomaly::CircularInformationFlow => "circular information flow (G1c)",
            Anomaly::ReadSkew => "read skew (G-single)",
            Anomaly::FracturedRead => "fractured read: one statement sees two moments",
            Anomaly::NonRepeatableRead => "non-repeatable read",
            Anomaly::ObservedTransactionVanishes => "observed transaction vanishes (OTV)",
            Anomaly::PredicateManyPreceders => "predicate-many-preceders (PMP)",
            Anomaly::LostUpdate => "lost update (P4)",
            Anomaly::LongFork => "long fork",
            Anomaly::StaleRead => "stale read: what was committed before is not seen",
            Anomaly::RealTime => "order of effects against the order of calls",
            Anomaly::OwnWrites => "own writes are not seen",
            Anomaly::TornRow => "torn row",
            Anomaly::UnwrittenRow => "a version that nobody wrote",
            Anomaly::LostRow => "lost row",
            Anomaly::RowTwice => "a row is shown twice",
            Anomaly::WrongCount => "wrong count of changed rows",
            Anomaly::UniqueViolation => "unique violation",
            Anomaly::DanglingReference => "dangling foreign key",
            Anomaly::BrokenDependency => "what others need was dropped or changed",
            Anomaly::NameTwice => "two objects have one name",
            Anomaly::WrongContents => "contents differ from the model",
            Anomaly::UnexpectedError => "unexpected error",
        }
    }
}

/// A violation, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong.
    pub anomaly: Anomaly,
    /// Who did and saw what.
    pub account: String,
}

impl Violation {
    /// A violation with its account.
    pub fn new(anomaly: Anomaly, account: impl Into<String>) -> Violation {
        Violation { anomaly, account: account.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.anomaly.name(), self.account)
    }
}
