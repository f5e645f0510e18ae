//! The result of parsing: a statement with its syntax tree, its text and its parameters.

use entasis_vector::Value;
use sqlparser::ast;

/// Bytes per token of a statement's syntax tree, bound plan and intermediate results of binding: measured.
const BINDING_BYTES: usize = 768;

/// A parsed statement with its text.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// Its syntax tree.
    pub ast: Ast,
    /// See [`Parsed::sql`].
    pub(super) text: String,
    /// See [`Parsed::parameters`].
    pub(super) parameters: usize,
    /// Names of the parameters, if they have names.
    pub(super) names: Vec<String>,
    /// See [`Parsed::is_deep`].
    pub(super) deep: bool,
    /// See [`Parsed::tokens`].
    pub(super) tokens: usize,
    /// The words before a dot, in lower case: names of tables, schemas or databases.
    pub qualifiers: Vec<String>,
}

/// The syntax tree of a statement.
#[derive(Debug, Clone)]
pub enum Ast {
    /// As the parser returns it.
    Sql(Box<ast::Statement>),
    /// `CREATE OR REPLACE` of kinds of objects for which the parser does not know it; the statement without
    /// it.
    CreateOrReplace(Box<ast::Statement>),
    /// `EXPLAIN [ANALYZE] [VERBOSE] statement`
    Explain {
        /// Run it, and show what each operator did.
        analyze: bool,
        /// Show more details.
        verbose: bool,
        /// Show it as JSON.
        json: bool,
        /// The statement.
        statement: Box<Ast>,
    },
    /// `EXPLAIN LAYOUT table [FOR 'workload']`
    ExplainLayout {
        /// The table.
        table: ast::ObjectName,
        /// Statements, or the path of a file of them.
        workload: Option<String>,
    },
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
    /// A command on a whole database.
    Command(Command<ast::ObjectName>),
    /// `SHOW TABLES [FROM schema, database or database.schema]`, in lower case
    ShowTables {
        /// The parts of the name.
        of: Option<Vec<String>>,
        /// `SHOW VIEWS`
        views: bool,
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
    Set {
        /// The setting, in lower case.
        name: String,
        /// Its value, as it is written.
        value: Value,
    },
    /// `RESET name`
    Reset(String),
    /// `COPY source TO 'path' (options)`
    CopyTo {
        /// The query.
        query: Box<ast::Query>,
        /// The file.
        path: String,
        /// The options in brackets.
        options: Vec<(String, Value)>,
    },
    /// `COPY table [(columns)] FROM 'path' (options)`
    CopyFrom {
        /// The table that receives the rows.
        table: ast::ObjectName,
        /// The columns that the file has; empty for all.
        columns: Vec<ast::Ident>,
        /// The file.
        path: String,
        /// The options in brackets.
        options: Vec<(String, Value)>,
    },
}

/// A command on a whole database, or a table of it, which is identified by a `T`.
#[derive(Debug, Clone)]
pub enum Command<T> {
    /// `EXPORT DATABASE 'path' (options)`: writes everything in it to files of a directory.
    Export {
        /// The directory.
        path: String,
        /// `(name value, …)`, names in lower case; an option without a value is true.
        options: Vec<(String, Value)>,
    },
    /// `IMPORT DATABASE 'path'`: reads everything that was exported to a directory.
    Import {
        /// The directory.
        path: String,
    },
    /// `PRAGMA integrity_check[(table)]`: returns all violations.
    CheckIntegrity {
        /// Only check this table.
        table: Option<T>,
    },
    /// `BACKUP TO 'path' (options)`: writes a copy of the database.
    Backup {
        /// The file.
        path: String,
        /// As those of an export.
        options: Vec<(String, Value)>,
    },
    /// `ATTACH [OR REPLACE] [DATABASE] [IF NOT EXISTS] 'path' [AS name] (options)`: attaches another
    /// database.
    Attach {
        /// The file.
        path: String,
        /// Its name, in lower case.
        name: Option<String>,
        /// A database attached under that name is kept, without an error.
        if_not_exists: bool,
        /// A database attached under that name is detached first.
        or_replace: bool,
        /// As those of an export.
        options: Vec<(String, Value)>,
    },
    /// `DETACH [DATABASE] [IF EXISTS] name`: detaches a database.
    Detach {
        /// Its name, in lower case.
        name: String,
        /// A missing database is not an error.
        if_exists: bool,
    },
    /// `SHOW DATABASES`
    ShowDatabases,
    /// `VACUUM [table]`: frees what is no longer needed.
    Vacuum {
        /// Only process this table.
        table: Option<T>,
    },
}

/// A command on prepared statements.
#[derive(Debug, Clone)]
pub enum Preparing {
    /// Prepares a statement.
    Prepare {
        /// Its name, in lower case.
        name: String,
        /// The statement to run.
        statement: Box<Parsed>,
        /// A query of one row that converts the arguments, its parameters, to the declared types.
        casts: Option<Box<Parsed>>,
    },
    /// Runs a prepared statement.
    Execute {
        /// Its name, in lower case.
        name: String,
        /// The arguments, as a query of one row.
        arguments: Option<Box<Parsed>>,
    },
    /// Forgets one prepared statement, or all.
    Deallocate {
        /// Its name, in lower case; `None` for all.
        name: Option<String>,
    },
}

impl Parsed {
    /// The statement's own text, without semicolon and surrounding white space.
    pub fn sql(&self) -> &str {
        &self.text
    }
    /// How many parameters it takes: the highest `$n`, or the number of `?` in its script up to its end; 0 if
    /// it has none itself.
    pub fn parameters(&self) -> usize {
        self.parameters
    }
    /// The names of all parameters up to the last one in this statement, including those of earlier
    /// statements in its script, in lower case; empty if they are written `?` or `$1`.
    pub fn parameter_names(&self) -> &[String] {
        &self.names
    }
    /// True if it is a query.
    pub fn is_query(&self) -> bool {
        matches!(&self.ast, Ast::Sql(statement) if matches!(**statement, ast::Statement::Query(_)))
    }
    /// True if it is a query, or changes rows of a table.
    pub fn is_of_rows(&self) -> bool {
        use ast::Statement::{Delete, Insert, Merge, Query, Update};
        matches!(&self.ast, Ast::Sql(statement)
            if matches!(**statement, Query(_) | Insert(_) | Update { .. } | Delete(_) | Merge { .. }))
    }
    /// The statement that an `EXPLAIN` is about.
    pub fn explained(&self) -> Option<Parsed> {
        match &self.ast {
            Ast::Explain { statement, .. } => Some(Parsed { ast: (**statement).clone(), ..self.clone() }),
            _ => None,
        }
    }
    /// The most bytes that binding it takes while it runs.
    pub fn binding_bytes(&self) -> usize {
        self.tokens * BINDING_BYTES
    }
    /// Number of its tokens: words, numbers, texts and signs.
    pub fn tokens(&self) -> usize {
        self.tokens
    }
    /// Its tree, to be freed apart from it; what is left is a statement of no meaning.
    pub fn take_ast(&mut self) -> Ast {
        std::mem::replace(&mut self.ast, Ast::ShowSettings)
    }
    /// Whether it needs a large stack.
    pub fn is_deep(&self) -> bool {
        self.deep
    }
}
