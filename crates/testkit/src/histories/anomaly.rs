//! The anomalies that a history may contain, with the names given by Adya, Berenson and Cerone, and their
//! reports.

use std::fmt;

/// The kinds of violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anomaly {
    /// G0: transactions overwrote each other in a cycle.
    DirtyWrite,
    /// G1a: a read returned a write that was never committed.
    AbortedRead,
    /// G1b: a read returned a version that its own transaction overwrote.
    IntermediateRead,
    /// G1c: transactions read each other's writes in a cycle.
    CircularInformationFlow,
    /// G-single: one snapshot contains part of a transaction.
    ReadSkew,
    /// The same, within one statement.
    FracturedRead,
    /// Two reads of the same row differ.
    NonRepeatableRead,
    /// OTV: a transaction that was visible no longer is.
    ObservedTransactionVanishes,
    /// PMP: the rows that satisfy a predicate are not of one moment.
    PredicateManyPreceders,
    /// P4: two transactions changed the same version of a row.
    LostUpdate,
    /// Two snapshots contain two transactions in opposite order.
    LongFork,
    /// A snapshot lacks what had been committed before it was taken.
    StaleRead,
    /// The order of effects contradicts the order of calls in another way.
    RealTime,
    /// A transaction does not see its own writes.
    OwnWrites,
    /// The columns of a row are of different versions.
    TornRow,
    /// A version that nobody wrote: a write in it is missing, duplicated, or unknown.
    UnwrittenRow,
    /// A row that nobody deleted is missing.
    LostRow,
    /// One read returns a row twice.
    RowTwice,
    /// A statement reports a wrong number of changed rows.
    WrongCount,
    /// Two rows have the same key.
    UniqueViolation,
    /// A row refers to one that does not exist.
    DanglingReference,
    /// An object that others need was dropped or changed.
    BrokenDependency,
    /// Two objects have the same name.
    NameTwice,
    /// The contents of the tables differ from those of the model.
    WrongContents,
    /// A statement failed that must not fail.
    UnexpectedError,
}

impl Anomaly {
    /// Its name in reports.
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

/// A violation, with an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The kind of violation.
    pub anomaly: Anomaly,
    /// Which transactions wrote and read what.
    pub account: String,
}

impl Violation {
    /// A violation with its explanation.
    pub fn new(anomaly: Anomaly, account: impl Into<String>) -> Violation {
        Violation { anomaly, account: account.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.anomaly.name(), self.account)
    }
}
