//! A history: what transactions did and saw, as those who ran them wrote it down.
//!
//! Every row bears the *list* of the numbers that were appended to it: the first is its root and tells the
//! row from all others, the last is its newest write. Numbers are drawn once, for one statement, so a list
//! says which statements made a row what it is, and in which order; a *version* of a row is its list with the
//! values of its columns.
//!
//! A history covers a window between two moments at which nobody wrote. Its first transaction is made up: it
//! wrote what the tables held when the window began.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::ops::Range;

/// Number of a table among [`History::tables`].
pub type TableId = usize;
/// Number of a transaction among [`History::transactions`].
pub type TransactionId = usize;
/// Stands for a version of a row ([`Row::fingerprint`]).
pub type Fingerprint = u64;

/// What is promised of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRules {
    /// Its name.
    pub name: String,
    /// No two rows have the same key.
    pub has_unique_key: bool,
    /// No two rows have the same [`Row::unique`], unless it is NULL.
    pub has_unique: bool,
    /// The table that [`Row::refers`] names a key of.
    pub refers_to: Option<TableId>,
}

/// A version of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// What statements find it by.
    pub key: i64,
    /// A number that several rows share.
    pub group: i64,
    /// A number that no other row has, if the table says so.
    pub unique: Option<i64>,
    /// The key of a row that it refers to.
    pub refers: Option<i64>,
    /// The numbers that were appended to it. Never empty.
    pub list: Vec<u64>,
}

impl Row {
    /// The number that tells the row from all others, whatever becomes of it.
    pub fn root(&self) -> u64 {
        self.list[0]
    }

    /// A number for this version in a table.
    pub fn fingerprint(&self, table: TableId) -> Fingerprint {
        hash(&(table, self))
    }
}

/// A number for a list; lists of different rows differ in their roots.
pub(crate) fn list_hash(list: &[u64]) -> u64 {
    hash(&list)
}

fn hash(value: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Which rows a statement asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicate {
    /// All rows.
    All,
    /// Those of a key.
    Key(i64),
    /// Those of a group.
    Group(i64),
    /// Those of keys from the first to the second, both included.
    Keys(i64, i64),
    /// It cannot be said: rows that are not shown mean nothing.
    Some,
}

impl Predicate {
    /// True if it holds for a version, so that the version must be shown.
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

/// One thing that a statement did or saw. What it saw stands before what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It saw these rows of a table, and no others for which the predicate holds.
    Read {
        /// The table.
        table: TableId,
        /// Which rows were asked for.
        predicate: Predicate,
        /// The versions that were shown.
        shown: Vec<Fingerprint>,
    },
    /// It looked for rows and changed all that it found: the other effects of the statement say which.
    Sought {
        /// The table.
        table: TableId,
        /// Which rows were looked for.
        predicate: Predicate,
    },
    /// It wrote a version. If its list has one number only, the row is new.
    Put {
        /// The table.
        table: TableId,
        /// The version.
        version: Fingerprint,
    },
    /// The table held this version when the window began. Only of the first transaction.
    Held {
        /// The table.
        table: TableId,
        /// The version.
        version: Fingerprint,
    },
    /// It deleted a row of which this was the version.
    Delete {
        /// The table.
        table: TableId,
        /// The version that is gone.
        version: Fingerprint,
    },
    /// It deleted the only row that ever had this key, without saying which version that was.
    DeleteKey {
        /// The table.
        table: TableId,
        /// The key.
        key: i64,
    },
    /// It appended its number to so many rows, without saying to which.
    Append {
        /// The table.
        table: TableId,
        /// How many rows.
        rows: u64,
    },
    /// It set the stamp of the row of a key, whatever it was before.
    Stamp {
        /// The table.
        table: TableId,
        /// The key.
        key: i64,
        /// The stamp, a number of the statement.
        stamp: u64,
    },
    /// It saw the stamp of the row of a key.
    Stamped {
        /// The table.
        table: TableId,
        /// The key.
        key: i64,
        /// The stamp.
        stamp: u64,
    },
}

/// A statement and what came of it.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// Its text.
    pub sql: String,
    /// The numbers that it may have written.
    pub numbers: Range<u64>,
    /// True if it failed, and so did nothing.
    pub failed: bool,
    /// What it did and saw.
    pub effects: Vec<Effect>,
}

/// A step of a transaction.
#[derive(Debug, Clone)]
pub enum Step {
    /// A statement.
    Statement(Statement),
    /// `SAVEPOINT`
    Savepoint,
    /// `ROLLBACK TO` the newest savepoint, which stays.
    RollBackTo,
    /// `RELEASE` of the newest savepoint.
    Release,
}

/// A time before and a time after something happened, in ticks of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Not before.
    pub start: u64,
    /// Not after.
    pub end: u64,
}

/// A transaction, or a statement by itself.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// Who ran it.
    pub session: usize,
    /// When its snapshot was taken.
    pub begin: Span,
    /// When it ended.
    pub commit: Span,
    /// True if it was committed.
    pub committed: bool,
    /// What it did, in order.
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
    /// All versions that were written or seen.
    pub rows: HashMap<Fingerprint, Row>,
    /// The first one wrote what there was.
    pub transactions: Vec<Transaction>,
    /// What the tables hold in the end.
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

    /// Notes a version and returns what stands for it.
    pub fn note(&mut self, table: TableId, row: Row) -> Fingerprint {
        let fingerprint = row.fingerprint(table);
        self.rows.entry(fingerprint).or_insert(row);
        fingerprint
    }
}
