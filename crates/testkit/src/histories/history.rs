//! A history: what transactions did and saw, as recorded by the sessions that ran them.
//!
//! Every row carries the *list* of the numbers that were appended to it: the first is its root and identifies
//! the row, the last is its newest write. Each number is drawn only once, for one statement, so a list shows
//! which statements made a row what it is, and in which order; a *version* of a row is its list with the
//! values of its columns.
//!
//! A history covers a window between two moments without writers. Its first transaction is artificial: it
//! wrote the contents of the tables at the beginning of the window.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::ops::Range;

/// Number of a table among [`History::tables`].
pub type TableId = usize;
/// Number of a transaction among [`History::transactions`].
pub type TransactionId = usize;
/// Identifies a version of a row ([`Row::fingerprint`]).
pub type Fingerprint = u64;

/// The constraints of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRules {
    /// Its name.
    pub name: String,
    /// No two rows have the same key.
    pub has_unique_key: bool,
    /// No two rows have the same [`Row::unique`], unless it is NULL.
    pub has_unique: bool,
    /// The table to whose keys [`Row::refers`] refers.
    pub refers_to: Option<TableId>,
}

/// A version of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// The key by which statements find it.
    pub key: i64,
    /// A number that is shared by several rows.
    pub group: i64,
    /// A number that must be unique, if the table has that constraint.
    pub unique: Option<i64>,
    /// The key of a row that it refers to.
    pub refers: Option<i64>,
    /// The numbers appended to it. Never empty.
    pub list: Vec<u64>,
}

impl Row {
    /// The number that identifies the row in all its versions.
    pub fn root(&self) -> u64 {
        self.list[0]
    }

    /// A hash of this version in a table.
    pub fn fingerprint(&self, table: TableId) -> Fingerprint {
        hash(&(table, self))
    }
}

/// A hash of a list; lists of different rows differ in their roots.
pub(crate) fn list_hash(list: &[u64]) -> u64 {
    hash(&list)
}

fn hash(value: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// The rows that a statement requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicate {
    /// All rows.
    All,
    /// Rows with a key.
    Key(i64),
    /// Rows of a group.
    Group(i64),
    /// Rows with keys in a range, both ends included.
    Keys(i64, i64),
    /// Unknown: rows that are not returned mean nothing.
    Some,
}

impl Predicate {
    /// True if a version satisfies it, so that it must be returned.
    pub fn demands(self, row: &Row) -> bool {
        match self {
            Predicate::All => true,
            Predicate::Key(key) => row.key == key,
            Predicate::Group(group) => row.group == group,
            Predicate::Keys(low, high) => (low..=high).contains(&row.key),
            Predicate::Some => false,
        }
    }
}

/// One effect or observation of a statement. Observations precede effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It returned these rows of a table, and no others that satisfy the predicate.
    Read {
        /// The table.
        table: TableId,
        /// The requested rows.
        predicate: Predicate,
        /// The versions that were returned.
        shown: Vec<Fingerprint>,
    },
    /// It searched for rows and changed all that it found: the other effects of the statement show which.
    Sought {
        /// The table.
        table: TableId,
        /// The rows that were searched for.
        predicate: Predicate,
    },
    /// It wrote a version. If the version's list has only one number, the row is new.
    Put {
        /// The table.
        table: TableId,
        /// The version.
        version: Fingerprint,
    },
    /// The table contained this version when the window began. Only in the first transaction.
    Held {
        /// The table.
        table: TableId,
        /// The version.
        version: Fingerprint,
    },
    /// It deleted a row with this version.
    Delete {
        /// The table.
        table: TableId,
        /// The deleted version.
        version: Fingerprint,
    },
    /// It deleted the only row that ever had this key, without returning its version.
    DeleteKey {
        /// The table.
        table: TableId,
        /// The key.
        key: i64,
    },
    /// It appended its number to this many rows, without returning which.
    Append {
        /// The table.
        table: TableId,
        /// Number of rows.
        rows: u64,
    },
    /// It set the stamp of the row with a key, whatever it was before.
    Stamp {
        /// The table.
        table: TableId,
        /// The key.
        key: i64,
        /// The stamp, a number of the statement.
        stamp: u64,
    },
    /// It returned the stamp of the row with a key.
    Stamped {
        /// The table.
        table: TableId,
        /// The key.
        key: i64,
        /// The stamp.
        stamp: u64,
    },
}

/// A statement and its effects.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// Its text.
    pub sql: String,
    /// The numbers that it may have written.
    pub numbers: Range<u64>,
    /// True if it failed, and so had no effect.
    pub failed: bool,
    /// Its observations and effects.
    pub effects: Vec<Effect>,
}

/// A step of a transaction.
#[derive(Debug, Clone)]
pub enum Step {
    /// A statement.
    Statement(Statement),
    /// `SAVEPOINT`
    Savepoint,
    /// `ROLLBACK TO` the newest savepoint, which remains.
    RollBackTo,
    /// `RELEASE` of the newest savepoint.
    Release,
}

/// The times before and after an event, in ticks of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The event was not before this.
    pub start: u64,
    /// The event was not after this.
    pub end: u64,
}

/// A transaction, or a statement by itself.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// The session that ran it.
    pub session: usize,
    /// When its snapshot was taken.
    pub begin: Span,
    /// When it ended.
    pub commit: Span,
    /// True if it was committed.
    pub committed: bool,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

impl Transaction {
    /// Its statements that did not fail, with their numbers among the steps.
    pub fn statements(&self) -> impl Iterator<Item = (usize, &Statement)> {
        self.steps.iter().enumerate().filter_map(|(number, step)| match step {
            Step::Statement(statement) if !statement.failed => Some((number, statement)),
            _ => None,
        })
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The tables.
    pub tables: Vec<TableRules>,
    /// All versions that were written or read.
    pub rows: HashMap<Fingerprint, Row>,
    /// The first one wrote the initial contents.
    pub transactions: Vec<Transaction>,
    /// The final contents of the tables.
    pub contents: Vec<Vec<Row>>,
}

impl History {
    /// A history that begins with these contents.
    pub fn beginning(tables: Vec<TableRules>, contents: &[Vec<Row>]) -> History {
        let mut history = History { tables, ..History::default() };
        let mut effects = Vec::new();
        for (table, rows) in contents.iter().enumerate() {
            for row in rows {
                let version = history.note(table, row.clone());
                effects.push(Effect::Held { table, version });
            }
        }
        let statement = Statement { sql: "(what there was)".into(), effects, ..Statement::default() };
        let steps = vec![Step::Statement(statement)];
        history.transactions.push(Transaction { committed: true, steps, ..Transaction::default() });
        history
    }

    /// Adds a version and returns its fingerprint.
    pub fn note(&mut self, table: TableId, row: Row) -> Fingerprint {
        let fingerprint = row.fingerprint(table);
        self.rows.entry(fingerprint).or_insert(row);
        fingerprint
    }
}
