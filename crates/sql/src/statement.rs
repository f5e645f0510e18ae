//! Statements after binding: what is left to do, with every name resolved and every type known.

use entasis_engine::plan::Plan;
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
        /// What its rows must satisfy.
        constraints: Vec<Constraint>,
        /// `WITH (name = value, …)`, names in lower case.
        options: Vec<(String, Value)>,
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
        /// `WITH (name = value, …)`, names in lower case.
        options: Vec<(String, Value)>,
        /// An existing table of that name is no error and stays.
        if_not_exists: bool,
        /// An existing table of that name is replaced.
        or_replace: bool,
    },
    /// New rows for a table.
    Insert {
        /// The table.
        table: String,
        /// Column i of the plan's output goes to column `columns[i]` of the table and is of its type. The table's other
        /// columns become NULL.
        columns: Vec<usize>,
        /// The rows.
        plan: Plan,
    },
    /// Rows of a table to change.
    Update {
        /// The table.
        table: String,
        /// The columns that change.
        columns: Vec<usize>,
        /// The rows: an id ([`crate::ROW_ID`]), then a new value for each of `columns`, of its type. If an id comes out more
        /// than once, one of its rows counts.
        plan: Plan,
    },
    /// Rows of a table to remove.
    Delete {
        /// The table.
        table: String,
        /// The ids of the rows ([`crate::ROW_ID`]); one may come out more than once.
        plan: Plan,
    },
    /// Tables whose rows are all to be removed; some may not exist.
    Truncate {
        /// Their names.
        names: Vec<String>,
    },
    /// Objects to remove.
    Drop {
        /// Tables or views.
        kind: ObjectKind,
        /// Their names.
        names: Vec<String>,
        /// A missing one is no error.
        if_exists: bool,
    },
    /// A named query.
    CreateView {
        /// Its name.
        name: String,
        /// The text of the query.
        sql: String,
        /// What the query gives now.
        columns: Schema,
        /// An existing view of that name is no error and stays.
        if_not_exists: bool,
        /// An existing view of that name is replaced.
        or_replace: bool,
    },
    /// The names of tables and views are wanted.
    ShowTables,
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
    /// The rows of a query go to a file.
    CopyTo {
        /// The query.
        plan: Plan,
        /// The file.
        path: String,
        /// `(name value, …)`, names in lower case; an option without a value is true.
        options: Vec<(String, Value)>,
    },
    /// The rows of a file go to a table.
    CopyFrom {
        /// The table.
        table: String,
        /// The table's columns that the file's columns go to, in order.
        columns: Vec<usize>,
        /// The file or files.
        path: String,
        /// As in `CopyTo`.
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

/// What rows of a table must satisfy. Columns are indices into the table's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Constraint {
    /// The column holds no NULL.
    NotNull(usize),
    /// No two rows have the same values in these columns, and none of them is NULL. At most one a table.
    PrimaryKey(Vec<usize>),
    /// No two rows have the same values in these columns.
    Unique(Vec<usize>),
}

/// What a name may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// A view.
    View,
}
