//! Statements after binding: what is left to do, with every name resolved and every type known.

use crate::syntax::parsed::Command;
use entasis_engine::plan::Plan;
use entasis_engine::relation::{Definition, Key, LayoutChoice};
use entasis_vector::{Field, Schema, Value};

/// A bound statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// Rows are wanted: those of a query, or of `DESCRIBE`.
    Query(Plan),
    /// The plan of a statement is wanted.
    Explain {
        /// Run the statement and show what each operator did.
        analyze: bool,
        /// Show more.
        verbose: bool,
        /// The statement.
        statement: Box<Statement>,
    },
    /// An empty table.
    CreateTable {
        /// Its name.
        name: String,
        /// Its columns; `NOT NULL` and key columns are not nullable.
        columns: Vec<Field>,
        /// What its rows must satisfy, and more.
        definition: Definition,
        /// Sequences to make with it, for its identity columns.
        sequences: Vec<(String, SequenceOptions)>,
        /// An existing table of that name is no error and stays.
        if_not_exists: bool,
        /// An existing table of that name is replaced.
        or_replace: bool,
    },
    /// A table that holds the rows of a query; its columns are those of `plan.schema()`.
    CreateTableAs {
        /// Its name.
        name: String,
        /// The query.
        plan: Plan,
        /// How it is to be laid out; no keys.
        definition: Definition,
        /// An existing table of that name is no error and stays.
        if_not_exists: bool,
        /// An existing table of that name is replaced.
        or_replace: bool,
    },
    /// New rows for a table.
    Insert(Insert),
    /// Rows of a table to change, to remove or to add, one by one.
    Change(Change),
    /// A transaction begins.
    Begin,
    /// What the transaction did becomes permanent.
    Commit,
    /// What the transaction did is undone.
    Rollback,
    /// A place to come back to within the transaction.
    Savepoint {
        /// Its name, in lower case.
        name: String,
    },
    /// What was done since a savepoint is undone.
    RollbackTo {
        /// Its name, in lower case.
        name: String,
    },
    /// A savepoint is forgotten.
    Release {
        /// Its name, in lower case.
        name: String,
    },
    /// A table gets other columns, constraints or another layout.
    AlterTable {
        /// The table.
        table: String,
        /// No such table is no error.
        if_exists: bool,
        /// What changes.
        alteration: Alteration,
    },
    /// An index.
    CreateIndex {
        /// The table.
        table: String,
        /// The index; its kind is `Unique` or `Index`.
        key: Key,
        /// An existing index of that name is no error and stays.
        if_not_exists: bool,
        /// An existing index of that name, of whatever table, is dropped.
        or_replace: bool,
    },
    /// A schema.
    CreateSchema {
        /// Its name.
        name: String,
        /// An existing one is no error and stays.
        if_not_exists: bool,
    },
    /// A sequence.
    CreateSequence {
        /// Its name.
        name: String,
        /// What it counts.
        options: SequenceOptions,
        /// An existing sequence of that name is no error and stays.
        if_not_exists: bool,
        /// An existing sequence of that name is replaced.
        or_replace: bool,
    },
    /// Tables whose rows are all to be removed; some may not exist.
    Truncate {
        /// Their names.
        names: Vec<String>,
        /// So are those of tables that refer to them.
        cascade: bool,
    },
    /// Objects to remove.
    Drop {
        /// Tables or views.
        kind: ObjectKind,
        /// Their names.
        names: Vec<String>,
        /// A missing one is no error.
        if_exists: bool,
        /// What needs them is dropped, too: views, foreign keys, defaults.
        cascade: bool,
    },
    /// A named query.
    CreateView {
        /// Its name.
        name: String,
        /// The text of the query.
        sql: String,
        /// What the query gives now.
        columns: Schema,
        /// True if it is temporary, though that was not asked for, as it names what is.
        becomes_temporary: bool,
        /// What it names, in lower case: tables, views and sequences, and perhaps what is none of these.
        needs: Vec<String>,
        /// An existing view of that name is no error and stays.
        if_not_exists: bool,
        /// An existing view of that name is replaced.
        or_replace: bool,
    },
    /// What reading costs on this machine is to be measured.
    Calibrate,
    /// All that is committed is to be brought to the file.
    Checkpoint {
        /// Of this database, in lower case; else of the current one.
        database: Option<String>,
    },
    /// Something is to be done with the whole database. Tables by their names.
    Command(Command<String>),
    /// The names of tables and views are wanted.
    ShowTables {
        /// The parts of the name of a schema, or a database, in lower case; else it is the current database.
        of: Option<Vec<String>>,
    },
    /// Those of all databases are wanted.
    ShowAllTables,
    /// Names are to be looked for elsewhere.
    Use {
        /// The parts of the name of a schema, or a database, in lower case.
        name: Vec<String>,
    },
    /// All settings are wanted.
    ShowSettings,
    /// One setting is wanted; it exists.
    ShowSetting {
        /// Its name.
        name: String,
    },
    /// Statistics of each column of the rows of a query are wanted.
    Summarize {
        /// The query.
        plan: Plan,
    },
    /// The rows of a query go to a file. (Those of a file go to a table by [`Statement::Insert`].)
    CopyTo {
        /// The query.
        plan: Plan,
        /// The file.
        path: String,
        /// `(name value, …)`, names in lower case; an option without a value is true.
        options: Vec<(String, Value)>,
    },
    /// A setting gets a value.
    Set {
        /// Its name, in lower case.
        name: String,
        /// The value: text, an integer, a float or a boolean, as it was written.
        value: Value,
    },
    /// A setting gets its default value back.
    Reset {
        /// Its name, in lower case.
        name: String,
    },
}

/// `INSERT` without `ON CONFLICT`. Rows are added in the order in which the plan gives them.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The table.
    pub table: String,
    /// The rows: all columns of the table in their order and of their types, with defaults where no value was
    /// given; then a BOOLEAN for each of `checks`; then the columns of `returning`.
    pub plan: Plan,
    /// The names of the CHECK constraints that are judged by the plan: a row for which one is FALSE is a
    /// violation.
    pub checks: Vec<String>,
    /// `RETURNING`: the columns of the result.
    pub returning: Option<Schema>,
}

/// `UPDATE`, `DELETE`, `MERGE`, `INSERT … ON CONFLICT`: what is done to which rows.
#[derive(Debug, Clone)]
pub struct Change {
    /// The table.
    pub table: String,
    /// The table's columns that the plan has values for: for an update the columns that are assigned, for a
    /// delete none, for actions that differ by row all.
    pub columns: Vec<usize>,
    /// What is done.
    pub action: Action,
    /// The rows. Output columns: the row's id ([`crate::ROW_ID`], UBIGINT; NULL for rows to add); for
    /// [`Action::ByRow`] the action (TINYINT, see there); then a value for each of `columns`, of its type;
    /// then a BOOLEAN for each of `checks`; then the columns of `returning`.
    pub plan: Plan,
    /// As for [`Insert`]; judged for rows that are added or updated.
    pub checks: Vec<String>,
    /// `RETURNING`: the columns of the result.
    pub returning: Option<Schema>,
    /// What to do about a row that is named more than once, and about rows to add that share a key with one
    /// that was added by the same statement.
    pub repeated: Repeated,
    /// `ON CONFLICT`: the unique keys (indices into [`Definition::keys`]) whose conflicts the plan has judged
    /// already, and of which `repeated` speaks. A conflict on any other key is a violation.
    pub conflicts: Vec<usize>,
}

/// What a [`Change`] does to its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Sets columns.
    Update,
    /// Removes rows.
    Delete,
    /// The plan says so for each row: 1 adds it, 2 updates it, 3 removes it.
    ByRow,
}

/// See [`Change::repeated`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// The first counts: `UPDATE … FROM`, `ON CONFLICT DO NOTHING`.
    First,
    /// It is an error: `MERGE`, `ON CONFLICT DO UPDATE`.
    Error,
}

/// What `ALTER TABLE` changes. Columns are indices into the table's schema.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there are few of them, for a moment")]
pub enum Alteration {
    /// The table becomes one of other columns.
    Columns(Columns),
    /// The table gets another name.
    Rename {
        /// The name.
        to: String,
    },
    /// The table is laid out anew.
    Layout(LayoutChoice),
    /// Nothing: what was to be added is there (`IF NOT EXISTS`), what was to be dropped is not (`IF EXISTS`).
    Nothing,
}

/// A table of other columns or constraints: see [`Alteration::Columns`].
#[derive(Debug, Clone)]
pub struct Columns {
    /// The columns.
    pub columns: Vec<Field>,
    /// Their definition: keys and the rest with the new indices.
    pub definition: Definition,
    /// By column as it was: which one it is now. `None` if it is dropped.
    pub places: Vec<Option<usize>>,
    /// Columns, as they were, that get other values or another type.
    pub revalued: Vec<usize>,
    /// What needs a column or constraint that is dropped is dropped, too.
    pub cascade: bool,
    /// The rows with the new columns; `None` if only names, defaults or constraints change.
    pub rows: Option<Plan>,
    /// Constraints that rows which are there must satisfy now: what is wrong if there is one that does not,
    /// and a query for at most one such row. Its columns are those that the constraint speaks of, to be shown
    /// with the message.
    pub violations: Vec<(String, Plan)>,
}

/// What a sequence counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceOptions {
    /// The first value.
    pub start: i64,
    /// The difference between values; not 0.
    pub increment: i64,
    /// The least value.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
    /// Begins anew behind the last value, instead of failing.
    pub cycle: bool,
}

/// What a name may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A schema. Its name ends in a dot, as in the catalog.
    Schema,
    /// A table.
    Table,
    /// A view.
    View,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
}
