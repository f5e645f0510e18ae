//! The information that the binder requests from the owner of the tables.

use entasis_engine::relation::{Definition, Relation};
use entasis_functions::host::HostFunction;
use entasis_functions::{Argument, Session};
use entasis_vector::{DataType, Field, Result, Value};
use std::sync::Arc;

/// Names that a statement may use. One statement is bound against one consistent state of it.
pub trait Catalog: Sync {
    /// The table of that name. Names are case-insensitive and arrive in lower case, quoted or not. What the
    /// host program calls so hides no table: see [`Catalog::registered`].
    fn table(&self, name: &str) -> Option<Arc<dyn Relation>>;

    /// The relation that the host program has registered under that name, without a schema. It is what a
    /// *query* means by the name if it is written without a schema, and hides tables and views there. Nothing
    /// else means it: neither the table that a statement changes, nor what the statement reads to do so, nor
    /// the text of a view.
    fn registered(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let _ = name;
        None
    }

    /// The table of that name with [`crate::ROW_ID`] as an additional last column: `UPDATE` and `DELETE`
    /// identify the rows that they change by it. `None` if there is no table of that name with rows that can
    /// be changed.
    fn table_with_row_ids(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let _ = name;
        None
    }

    /// What is declared for the table of that name besides its columns; `None` if there is no table of that
    /// name to which rows can be added.
    fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        let _ = name;
        None
    }

    /// The function that the host program has registered under that name, which is in lower case.
    fn host_function(&self, name: &str) -> Option<HostFunction> {
        let _ = name;
        None
    }

    /// True for the name of a table function of the host program.
    fn is_host_table(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// The sequence of that name.
    fn sequence(&self, name: &str) -> Option<Arc<dyn Sequence>> {
        let _ = name;
        None
    }

    /// The type of that name.
    fn named_type(&self, name: &str) -> Option<DataType> {
        let _ = name;
        None
    }

    /// True if any type has a name.
    fn has_types(&self) -> bool {
        false
    }

    /// The table, temporary or not, that has an index or key of that name: generated names avoid it.
    fn table_with_index(&self, name: &str, temporary: bool) -> Option<String> {
        let _ = (name, temporary);
        None
    }

    /// True if there is a schema of that name, in lower case, other than the main one. The name may be
    /// qualified by a database.
    fn has_schema(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// True if an object named without a schema may be in a schema other than the main one.
    fn has_other_schemas(&self) -> bool {
        false
    }

    /// The schema other than the main one in which an object named without a schema is found: that of
    /// temporary objects, or one of the search path. `None` for the main schema, and if there is no such
    /// object.
    fn schema_of(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// The schema other than the main one in which an object named without a schema is created.
    fn schema_of_new(&self) -> Option<String> {
        None
    }

    /// The names of the current database and of the current schema, in which names are looked up.
    fn current(&self) -> (String, String) {
        ("memory".to_owned(), "main".to_owned())
    }

    /// True if there is a schema of that name, in lower case, other than the main one, in the current
    /// database.
    fn has_current_schema(&self, name: &str) -> bool {
        self.has_schema(name)
    }

    /// True if a database has that name, in lower case.
    fn has_database(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// True if that is the database on which the statement works, whose objects have no database in their
    /// names.
    fn is_target_database(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Resolves a name if there are several databases: returns the parts by which this catalog knows the
    /// object. `None` if these are the given ones. If `declared`, the name is in a table's declaration, and
    /// the current database is that of the table.
    fn place(&self, parts: &[String], declared: bool) -> Option<Vec<String>> {
        let _ = (parts, declared);
        None
    }

    /// True if the object of that name is in another database, and can only be read.
    fn is_elsewhere(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// The text of the `SELECT` that defines the view of that name.
    fn view(&self, name: &str) -> Option<String>;

    /// The file or files of `FROM 'path'`; the path may be a pattern.
    ///
    /// # Errors
    /// I/O, if it cannot be read; input, if it is not a supported file.
    fn file(&self, path: &str) -> Result<Arc<dyn Relation>>;

    /// The file or files that `COPY … FROM 'path' (options)` reads into `targets`.
    ///
    /// # Errors
    /// Those of [`Catalog::file`]; input, for an unknown option.
    fn copied_file(
        &self,
        path: &str,
        targets: &[Field],
        options: &[(String, Value)],
    ) -> Result<Arc<dyn Relation>>;

    /// The result of a table function: `read_parquet`, `read_csv`, `generate_series`, `range`. Arguments are
    /// in order; named ones come with their names in lower case.
    ///
    /// # Errors
    /// Input, if there is no such function or the arguments are wrong.
    fn table_function(&self, name: &str, args: &[(Option<String>, Argument)]) -> Result<Arc<dyn Relation>>;

    /// Names of all tables and views, to suggest corrections of unknown ones.
    fn names(&self) -> Vec<String>;

    /// Names of all table functions, to suggest corrections of unknown ones.
    fn table_functions(&self) -> Vec<String> {
        Vec::new()
    }

    /// The value of a setting, as `SHOW` prints it; `None` if there is no such setting.
    fn setting(&self, name: &str) -> Option<String>;

    /// The current time and the time zone.
    fn session(&self) -> Session {
        Session::now()
    }
}

/// A sequence of numbers, shared by all connections. Values taken by a transaction are not returned by a
/// rollback.
pub trait Sequence: std::fmt::Debug + Send + Sync {
    /// The next value.
    ///
    /// # Errors
    /// Input, if there are no more values.
    fn next(&self) -> Result<i64>;

    /// The value that this connection took last.
    ///
    /// # Errors
    /// Input, if it has taken none.
    fn current(&self) -> Result<i64>;
}
