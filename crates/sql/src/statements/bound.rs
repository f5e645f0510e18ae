//! Statements after binding: what remains to be executed, with every name resolved and every type known.

use entasis_engine::plan::Plan;
use entasis_engine::relation::{Definition, Key, LayoutChoice, Relation};
use entasis_syntax::parsed::Command;
use entasis_vector::{DataType, Field, Schema, Value};
use std::sync::Arc;

/// A bound statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// Returns the rows of a query, or of `DESCRIBE`.
    Query(Plan),
    /// Returns the plan of a statement.
    Explain {
        /// Run the statement and show what each operator did.
        analyze: bool,
        /// Show more details.
        verbose: bool,
        /// Show it as JSON.
        json: bool,
        /// The statement.
        statement: Box<Statement>,
    },
    /// Returns what is known of the layout of a table, and what its workload costs.
    ExplainLayout {
        /// The stored table.
        relation: Arc<dyn Relation>,
        /// What it declares; `None` if it is in another database.
        definition: Option<Arc<Definition>>,
        /// Statements, or the path of a file of them; `None` for what was counted.
        workload: Option<String>,
    },
    /// Creates an empty table.
    CreateTable {
        /// Its name.
        name: String,
        /// Its columns; `NOT NULL` and key columns are not nullable.
        columns: Vec<Field>,
        /// Its constraints, defaults and layout.
        definition: Definition,
        /// Sequences to create with it, for its identity columns.
        sequences: Vec<(String, SequenceOptions)>,
        /// An existing table of that name is kept, without an error.
        if_not_exists: bool,
        /// An existing table of that name is replaced.
        or_replace: bool,
    },
    /// Creates a table that holds the rows of a query; its columns are those of `plan.schema()`.
    CreateTableAs {
        /// Its name.
        name: String,
        /// The query.
        plan: Plan,
        /// Its layout; no keys.
        definition: Definition,
        /// An existing table of that name is kept, without an error.
        if_not_exists: bool,
        /// An existing table of that name is replaced.
        or_replace: bool,
    },
    /// Adds rows to a table.
    Insert(Insert),
    /// Changes, removes or adds rows of a table, one by one.
    Change(Change),
    /// Begins a transaction.
    Begin,
    /// Commits the transaction.
    Commit,
    /// Rolls the transaction back.
    Rollback,
    /// Sets a savepoint within the transaction.
    Savepoint {
        /// Its name, in lower case.
        name: String,
    },
    /// Undoes what was done since a savepoint.
    RollbackTo {
        /// Its name, in lower case.
        name: String,
    },
    /// Releases a savepoint.
    Release {
        /// Its name, in lower case.
        name: String,
    },
    /// Changes the columns, constraints, name or layout of a table.
    AlterTable {
        /// The table.
        table: String,
        /// A missing table is not an error.
        if_exists: bool,
        /// What changes.
        alteration: Alteration,
    },
    /// Creates an index.
    CreateIndex {
        /// The table.
        table: String,
        /// The index; its kind is `Unique` or `Index`.
        key: Key,
        /// An existing index of that name is kept, without an error.
        if_not_exists: bool,
        /// An existing index of that name, on whatever table, is dropped.
        or_replace: bool,
    },
    /// Creates a schema.
    CreateSchema {
        /// Its name.
        name: String,
        /// An existing one is kept, without an error.
        if_not_exists: bool,
    },
    /// Creates a sequence.
    CreateSequence {
        /// Its name.
        name: String,
        /// Its options.
        options: SequenceOptions,
        /// An existing sequence of that name is kept, without an error.
        if_not_exists: bool,
        /// An existing sequence of that name is replaced.
        or_replace: bool,
    },
    /// Gives a type a name.
    CreateType {
        /// The name.
        name: String,
        /// The type.
        ty: DataType,
        /// An existing type of that name is replaced.
        or_replace: bool,
    },
    /// Removes all rows of tables.
    Truncate {
        /// Their names.
        names: Vec<String>,
        /// Also removes the rows of tables that refer to them.
        cascade: bool,
    },
    /// Drops objects.
    Drop {
        /// Their kind.
        kind: ObjectKind,
        /// Their names.
        names: Vec<String>,
        /// A missing object is not an error.
        if_exists: bool,
        /// Objects that need them are dropped, too: views, foreign keys, defaults.
        cascade: bool,
    },
    /// Creates a view.
    CreateView {
        /// Its name.
        name: String,
        /// The text of the query.
        sql: String,
        /// The present columns of the query.
        columns: Schema,
        /// True if it is temporary without having been declared so, because it names temporary objects.
        becomes_temporary: bool,
        /// The names in it, in lower case: tables, views and sequences, and possibly names of other things.
        needs: Vec<String>,
        /// An existing view of that name is kept, without an error.
        if_not_exists: bool,
        /// An existing view of that name is replaced.
        or_replace: bool,
    },
    /// Measures the costs of reading on this machine.
    Calibrate,
    /// Writes everything that is committed to the file.
    Checkpoint {
        /// The database, in lower case; `None` for the current one.
        database: Option<String>,
    },
    /// A command on the whole database. Tables are given by name.
    Command(Command<String>),
    /// Returns the names of tables and views.
    ShowTables {
        /// The parts of the name of a schema, or a database, in lower case; `None` for the current database.
        of: Option<Vec<String>>,
        /// Only views.
        views: bool,
    },
    /// Returns the names of tables and views of all databases.
    ShowAllTables,
    /// Changes the current database or schema.
    Use {
        /// The parts of the name of a schema, or a database, in lower case.
        name: Vec<String>,
    },
    /// Returns all settings.
    ShowSettings,
    /// Returns one setting, which exists.
    ShowSetting {
        /// Its name.
        name: String,
    },
    /// Returns statistics of each column of a query.
    Summarize {
        /// The query.
        plan: Plan,
    },
    /// Writes the rows of a query to a file. (The reverse is an [`Statement::Insert`].)
    CopyTo {
        /// The query.
        plan: Plan,
        /// The file.
        path: String,
        /// `(name value, …)`, names in lower case; an option without a value is true.
        options: Vec<(String, Value)>,
    },
    /// Changes a setting.
    Set {
        /// Its name, in lower case.
        name: String,
        /// The value: text, an integer, a float or a boolean, as it was written.
        value: Value,
    },
    /// Restores the default value of a setting.
    Reset {
        /// Its name, in lower case.
        name: String,
    },
}

/// `INSERT` without `ON CONFLICT`. Rows are added in the order in which the plan returns them.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The table.
    pub table: String,
    /// The rows: all columns of the table in order and with their types, including defaults for columns
    /// without a value; then a BOOLEAN for each of `checks`; then the columns of `returning`.
    pub plan: Plan,
    /// The names of the CHECK constraints that the plan evaluates: a row for which one is FALSE violates it.
    pub checks: Vec<String>,
    /// `RETURNING`: the columns of the result.
    pub returning: Option<Schema>,
}

/// `UPDATE`, `DELETE`, `MERGE`, `INSERT … ON CONFLICT`: which rows to change, and how.
#[derive(Debug, Clone)]
pub struct Change {
    /// The table.
    pub table: String,
    /// The table's columns for which the plan has values: for an update the assigned columns, for a delete
    /// none, for actions that differ by row all.
    pub columns: Vec<usize>,
    /// The action.
    pub action: Action,
    /// The rows. Output columns: the row's id ([`crate::ROW_ID`], UBIGINT; NULL for rows to add); for
    /// [`Action::ByRow`] the action (TINYINT, see there); then a value for each of `columns`, of its type;
    /// then a BOOLEAN for each of `proposed` and each of `checks`; then the columns of `returning`.
    pub plan: Plan,
    /// As for [`Insert`]; checked for rows that are added or updated.
    pub checks: Vec<String>,
    /// `RETURNING`: the columns of the result.
    pub returning: Option<Schema>,
    /// How to handle a row that occurs more than once, and rows to add that share a key with a row that the
    /// same statement has added.
    pub repeated: Repeated,
    /// `ON CONFLICT`: the unique keys (indices into [`Definition::keys`]) for which the plan has already
    /// handled conflicts, and to which `repeated` applies. A conflict on any other key is a violation.
    pub conflicts: Vec<usize>,
    /// `ON CONFLICT`: what must hold for every given row, even if it is not added because another one has its
    /// key. Its action may be none of those of [`Action::ByRow`].
    pub proposed: Vec<Proposed>,
}

/// A condition on a row that an `INSERT … ON CONFLICT` proposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposed {
    /// The column is not NULL.
    NotNull(usize),
    /// The CHECK of this name is not FALSE.
    Check(String),
}

/// The action of a [`Change`] on its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Sets columns.
    Update,
    /// Removes rows.
    Delete,
    /// The plan decides for each row: 1 adds it, 2 updates it, 3 removes it.
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
    /// Changes the columns or constraints.
    Columns(Columns),
    /// Renames the table.
    Rename {
        /// The name.
        to: String,
    },
    /// Changes the layout.
    Layout(LayoutChoice),
    /// Nothing: what was to be added exists (`IF NOT EXISTS`), or what was to be dropped does not (`IF
    /// EXISTS`).
    Nothing,
}

/// The new columns and constraints of a table: see [`Alteration::Columns`].
#[derive(Debug, Clone)]
pub struct Columns {
    /// The columns.
    pub columns: Vec<Field>,
    /// The definition, with the new indices of columns.
    pub definition: Definition,
    /// For each old column, its new index; `None` if it is dropped.
    pub places: Vec<Option<usize>>,
    /// Old columns whose values or types change.
    pub revalued: Vec<usize>,
    /// Objects that need a dropped column or constraint are dropped, too.
    pub cascade: bool,
    /// The rows with the new columns; `None` if only names, defaults or constraints change.
    pub rows: Option<Plan>,
    /// New constraints that existing rows must satisfy: the message if a row does not, and a query for at
    /// most one such row. Its columns are those that the constraint concerns, to be shown with the message.
    pub violations: Vec<(String, Plan)>,
}

/// How a sequence counts.
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
    /// Starts again after the last value, instead of failing.
    pub cycle: bool,
}

/// The kinds of named objects.
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
    /// A type.
    Type,
}
