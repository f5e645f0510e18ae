//! What parsing gives: a statement with its syntax tree, its text and its parameters.

use datafusion_sql::sqlparser::ast;
use entasis_vector::Value;

/// Bytes of a statement's syntax tree, bound plan and what binding makes of it meanwhile, for each of its
/// tokens: measured.
const BINDING_BYTES: usize = 768;

/// A parsed statement with its text.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// Its syntax tree.
    pub(crate) ast: Ast,
    /// See [`Parsed::sql`].
    pub(super) text: String,
    /// See [`Parsed::parameters`].
    pub(super) parameters: usize,
    /// Of the parameters, if they have any.
    pub(super) names: Vec<String>,
    /// See [`Parsed::is_deep`].
    pub(super) deep: bool,
    /// Words, numbers, texts and signs, of which it consists.
    pub(super) tokens: usize,
    /// The words before a dot, in lower case: names of tables, schemas or databases.
    pub(crate) qualifiers: Vec<String>,
}

/// The syntax tree of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Ast {
    /// As the parser gives it.
    Sql(Box<ast::Statement>),
    /// `CREATE OR REPLACE` of what the parser does not know it of; the statement without it.
    CreateOrReplace(Box<ast::Statement>),
    /// `EXPLAIN [ANALYZE] [VERBOSE] statement`
    Explain { analyze: bool, verbose: bool, statement: Box<Ast> },
    /// `DESCRIBE query`, `DESCRIBE table`
    Describe(Box<ast::Query>),
    /// `SUMMARIZE query`, `SUMMARIZE table`
    Summarize(Box<ast::Query>),
    /// `PREPARE`, `EXECUTE`, `DEALLOCATE`
    Preparing(Preparing),
    /// `CALIBRATE`
    Calibrate,
    /// `CHECKPOINT [database]`
    Checkpoint {
        /// In lower case.
        database: Option<String>,
    },
    /// About a whole database.
    Command(Command<ast::ObjectName>),
    /// `SHOW TABLES [FROM schema, database or database.schema]`, in lower case
    ShowTables {
        /// The parts of the name.
        of: Option<Vec<String>>,
    },
    /// `SHOW ALL TABLES`
    ShowAllTables,
    /// `USE schema, database or database.schema`, in lower case
    Use {
        /// The parts of the name.
        name: Vec<String>,
    },
    /// `SHOW ALL`
    ShowSettings,
    /// `SHOW name`
    ShowSetting(ast::Ident),
    /// `SET name = value`
    Set { name: String, value: Value },
    /// `RESET name`
    Reset(String),
    /// `COPY source TO 'path' (options)`
    CopyTo { query: Box<ast::Query>, path: String, options: Vec<(String, Value)> },
    /// `COPY table [(columns)] FROM 'path' (options)`
    CopyFrom {
        /// The table that takes the rows.
        table: ast::ObjectName,
        /// Its columns that the file has; all, if there are none.
        columns: Vec<ast::Ident>,
        /// The file.
        path: String,
        /// What stands in brackets behind it.
        options: Vec<(String, Value)>,
    },
}

/// A statement about a whole database, or a table of it, which is a `T`.
#[derive(Debug, Clone)]
pub enum Command<T> {
    /// `EXPORT DATABASE 'path' (options)`: all that is in it goes to files of a directory.
    Export {
        /// The directory.
        path: String,
        /// `(name value, …)`, names in lower case; an option without a value is true.
        options: Vec<(String, Value)>,
    },
    /// `IMPORT DATABASE 'path'`: all that was exported to a directory comes in.
    Import {
        /// The directory.
        path: String,
    },
    /// `PRAGMA integrity_check[(table)]`: what is not as it should be is wanted.
    CheckIntegrity {
        /// Of this table only.
        table: Option<T>,
    },
    /// `BACKUP TO 'path' (options)`: a copy of the database is wanted.
    Backup {
        /// The file.
        path: String,
        /// As those of an export.
        options: Vec<(String, Value)>,
    },
    /// `ATTACH [OR REPLACE] [DATABASE] [IF NOT EXISTS] 'path' [AS name] (options)`: another database is to be
    /// seen.
    Attach {
        /// The file.
        path: String,
        /// What it is called, in lower case.
        name: Option<String>,
        /// One that is attached by that name is no error and stays.
        if_not_exists: bool,
        /// One that is attached by that name is detached.
        or_replace: bool,
        /// As those of an export.
        options: Vec<(String, Value)>,
    },
    /// `DETACH [DATABASE] [IF EXISTS] name`: one is to be seen no more.
    Detach {
        /// What it is called, in lower case.
        name: String,
        /// It is no error if there is none.
        if_exists: bool,
    },
    /// `SHOW DATABASES`
    ShowDatabases,
    /// `VACUUM [table]`: what nobody needs is to be freed.
    Vacuum {
        /// Of this table only.
        table: Option<T>,
    },
}

/// A statement about statements that have names.
#[derive(Debug, Clone)]
pub enum Preparing {
    /// Keeps a statement.
    Prepare {
        /// In lower case.
        name: String,
        /// What it will run.
        statement: Box<Parsed>,
        /// A query of one row that gives the arguments, its parameters, the types that were declared.
        casts: Option<Box<Parsed>>,
    },
    /// Runs one.
    Execute {
        /// In lower case.
        name: String,
        /// A query of one row.
        arguments: Option<Box<Parsed>>,
    },
    /// Forgets one, or all.
    Deallocate {
        /// In lower case; all, if there is none.
        name: Option<String>,
    },
}

impl Parsed {
    /// The statement's own text, without semicolon and surrounding space.
    pub fn sql(&self) -> &str {
        &self.text
    }
    /// How many parameters it takes: the highest `$n`, or the number of `?`.
    pub fn parameters(&self) -> usize {
        self.parameters
    }
    /// The names of the parameters from the first to the last that it or a statement before it in its script
    /// has, in lower case; none, if they are written `?` or `$1`.
    pub fn parameter_names(&self) -> &[String] {
        &self.names
    }
    /// True if it is a query, and nothing else.
    pub fn is_query(&self) -> bool {
        matches!(&self.ast, Ast::Sql(statement) if matches!(**statement, ast::Statement::Query(_)))
    }
    /// Bytes that binding it takes at most, while it lasts.
    pub(crate) fn binding_bytes(&self) -> usize {
        self.tokens * BINDING_BYTES
    }
    /// Whether it must be handled on a large stack.
    pub fn is_deep(&self) -> bool {
        self.deep
    }
}
