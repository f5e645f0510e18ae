//! Definitions: the declarations of a table, such as keys, checks and defaults.
//!
//! They are plain data, which the catalog keeps beside the table. Expressions are SQL text, since storage
//! knows no SQL: the binder puts them into plans. `NOT NULL` is part of the schema
//! ([`entasis_vector::Field::nullable`]).

use super::compression::Compression;
use super::curve::Curve;
use entasis_layout::cost::SlaBounds;

/// The declarations of a table beside the names and types of its columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Definition {
    /// For each column its default; shorter than the schema if the last columns have none.
    pub defaults: Vec<ColumnDefault>,
    /// Keys and indexes. There is at most one primary key, which comes first.
    pub keys: Vec<Key>,
    /// Conditions that every row satisfies.
    pub checks: Vec<Check>,
    /// References that every row has to rows of other tables.
    pub foreign_keys: Vec<ForeignKey>,
    /// How the rows are to be laid out.
    pub layout: LayoutChoice,
    /// Sequences that defaults and checks call, in lower case; those of identity columns are with their
    /// columns.
    pub sequences: Vec<String>,
    /// What happens to a temporary table when a transaction commits.
    pub on_commit: OnCommit,
}

/// What happens to a temporary table when a transaction commits: `ON COMMIT`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnCommit {
    /// Its rows are kept.
    #[default]
    Preserve,
    /// Its rows are deleted.
    Delete,
    /// It is dropped.
    Drop,
}

/// The value of a column if none is given.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ColumnDefault {
    /// NULL.
    #[default]
    Null,
    /// The value of an expression without columns.
    Expression(String),
    /// The next value of a sequence of the table's own: `GENERATED … AS IDENTITY`.
    Identity {
        /// The name of the sequence.
        sequence: String,
        /// `ALWAYS`: giving a value is an error.
        always: bool,
    },
}

/// Columns that are looked up together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The name of the constraint or index.
    pub name: String,
    /// Columns of the table.
    pub columns: Vec<usize>,
    /// What is promised.
    pub kind: KeyKind,
}

/// What a key promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// No two rows have the same values, and none is NULL.
    Primary,
    /// No two rows without NULLs have the same values.
    Unique,
    /// Nothing: an index.
    Index,
}

/// A condition on single rows, which must not be false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The name of the constraint.
    pub name: String,
    /// The condition over the table's columns.
    pub sql: String,
}

/// Values that must be a key of another table, unless one of them is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// The name of the constraint.
    pub name: String,
    /// Columns of this table.
    pub columns: Vec<usize>,
    /// The other table, in lower case.
    pub table: String,
    /// Its columns: those of one of its unique keys.
    pub references: Vec<usize>,
    /// What happens to rows that refer to a deleted row.
    pub on_delete: ReferentialAction,
    /// What happens to rows that refer to a row whose key changes.
    pub on_update: ReferentialAction,
}

/// What happens to rows when the row that they refer to is deleted or changes its key: `ON DELETE`, `ON
/// UPDATE`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// Nothing; the statement fails if there still are such rows at its end.
    #[default]
    NoAction,
    /// Nothing; the statement fails at once if there are such rows, even if other rows with the same keys
    /// have come.
    Restrict,
    /// They are deleted as well, or get the new key.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their defaults.
    SetDefault,
}

impl ReferentialAction {
    /// As SQL has it.
    pub fn name(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        }
    }

    /// True if it changes the rows.
    pub fn changes_rows(self) -> bool {
        !matches!(self, ReferentialAction::NoAction | ReferentialAction::Restrict)
    }
}

/// What `WITH (…)` and `ALTER TABLE … SET (…)` say of layout and encodings. The rest follows from
/// [`Definition::keys`] and defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayoutChoice {
    /// The layout.
    pub layout: Option<LayoutName>,
    /// Columns of the layout key.
    pub key: Option<Vec<usize>>,
    /// The order of rows by all columns of the layout key together; `Some(None)` for by one after the other.
    pub curve: Option<Option<Curve>>,
    /// Partitions of a full row group.
    pub partitions: Option<usize>,
    /// Share of the slots that are left empty, from 0 to less than 1.
    pub ghost: Option<f64>,
    /// How blocks are encoded.
    pub compression: Option<Compression>,
    /// The encodings of single columns, where they differ.
    pub column_compressions: Vec<(usize, Compression)>,
    /// How long a point query may take, in nanoseconds; 0 takes a promise back.
    pub read_sla: Option<u64>,
    /// How long an insert may take on average, in nanoseconds; 0 takes a promise back.
    pub update_sla: Option<u64>,
}

impl LayoutChoice {
    /// What point queries and inserts are promised.
    pub fn sla_bounds(&self) -> SlaBounds {
        let promise = |latency: Option<u64>| latency.filter(|ns| *ns > 0).map(|ns| ns as f64);
        SlaBounds { read: promise(self.read_sla), update: promise(self.update_sla) }
    }

    /// This choice, completed by another one.
    pub fn over(self, other: &LayoutChoice) -> LayoutChoice {
        LayoutChoice {
            layout: self.layout.or(other.layout),
            key: self.key.or_else(|| other.key.clone()),
            curve: self.curve.or(other.curve),
            partitions: self.partitions.or(other.partitions),
            ghost: self.ghost.or(other.ghost),
            compression: self.compression.or(other.compression),
            column_compressions: {
                let is_own = |column: usize| self.column_compressions.iter().any(|(own, _)| *own == column);
                let others = other.column_compressions.iter().filter(|(column, _)| !is_own(*column));
                others.chain(&self.column_compressions).copied().collect()
            },
            read_sla: self.read_sla.or(other.read_sla),
            update_sla: self.update_sla.or(other.update_sla),
        }
    }
}

/// The names of layouts in SQL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LayoutName {
    /// Equi-width partitions with ghost slots for tables with a key, the order of insertion for others.
    #[default]
    Auto,
    /// The order of insertion.
    Insertion,
    /// Sorted by the layout key.
    Sorted,
    /// Sorted, with a delta for what is new.
    Delta,
    /// Partitions of equal width.
    Equi,
    /// The same with ghost slots.
    EquiGhost,
    /// Partitions and ghost slots as the workload wants them.
    Casper,
}

impl LayoutName {
    /// All, by their names.
    const NAMES: [(&'static str, LayoutName); 7] = [
        ("auto", LayoutName::Auto),
        ("insertion", LayoutName::Insertion),
        ("sorted", LayoutName::Sorted),
        ("delta", LayoutName::Delta),
        ("equi", LayoutName::Equi),
        ("equi_ghost", LayoutName::EquiGhost),
        ("casper", LayoutName::Casper),
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        let own = LayoutName::NAMES.into_iter().find(|(_, layout)| *layout == self);
        own.map_or("auto", |(name, _)| name)
    }

    /// The layout that SQL calls `name`, in lower case.
    pub fn parse(name: &str) -> Option<LayoutName> {
        LayoutName::NAMES.into_iter().find(|(own, _)| *own == name).map(|(_, layout)| layout)
    }
}

impl Definition {
    /// The default of a column.
    pub fn default_of(&self, column: usize) -> &ColumnDefault {
        self.defaults.get(column).unwrap_or(&ColumnDefault::Null)
    }

    /// The names of the sequences that belong to identity columns.
    pub fn identities(&self) -> impl Iterator<Item = &str> {
        self.defaults.iter().filter_map(|default| match default {
            ColumnDefault::Identity { sequence, .. } => Some(sequence.as_str()),
            _ => None,
        })
    }

    /// True if a unique key has just these columns, in any order: foreign keys may refer to them.
    pub fn has_unique_key(&self, columns: &[usize]) -> bool {
        let is_it = |key: &Key| {
            key.columns.len() == columns.len() && key.columns.iter().all(|column| columns.contains(column))
        };
        self.unique_keys().any(is_it)
    }

    /// Keys that no two rows share.
    pub fn unique_keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(|key| key.kind != KeyKind::Index)
    }

    /// The primary key.
    pub fn primary_key(&self) -> Option<&Key> {
        self.keys.iter().find(|key| key.kind == KeyKind::Primary)
    }
}
