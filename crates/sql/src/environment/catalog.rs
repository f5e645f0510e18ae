//! What the binder asks of whoever owns the tables.

use super::session::Session;
use entasis_engine::relation::{Definition, Relation};
use entasis_vector::{DataType, Field, Result, Value};
use std::sync::Arc;

/// What a table function is given. Only there can it be nested: there are no values of such types.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A constant and its type.
    Value(Value, DataType),
    /// `['a', 'b']`
    List(Vec<Argument>),
    /// `{'name': 'VARCHAR'}` or `MAP {'name': 'VARCHAR'}`
    Struct(Vec<(String, Argument)>),
}

/// Names that a statement may use. One statement is bound against one consistent state of it.
pub trait Catalog: Sync {
    /// The table of that name. Names are case-insensitive and arrive in lower case, quoted or not.
    fn table(&self, name: &str) -> Option<Arc<dyn Relation>>;

    /// The table of that name with one more column, [`crate::ROW_ID`], as the last: what `UPDATE` and
    /// `DELETE` ask for the rows that they change. `None` if there is none whose rows can be changed.
    fn table_with_row_ids(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let _ = name;
        None
    }

    /// What is declared of the table of that name besides its columns; `None` if there is no table that rows
    /// can be added to.
    fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        let _ = name;
        None
    }

    /// The sequence of that name.
    fn sequence(&self, name: &str) -> Option<Arc<dyn Sequence>> {
        let _ = name;
        None
    }

    /// The table, a temporary one or not, that has an index or a key of that name: names that are made up for
    /// others avoid it.
    fn table_with_index(&self, name: &str, temporary: bool) -> Option<String> {
        let _ = (name, temporary);
        None
    }

    /// True if there is a schema of that name, in lower case, besides the main one. The name may have that of
    /// a database before it.
    fn has_schema(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// True if what is named without a schema may be somewhere else than in the main one.
    fn has_other_schemas(&self) -> bool {
        false
    }

    /// The schema besides the main one in which the object is found that is named without one: that of
    /// temporary objects, or one of the search path; `None` for the main one, and if there is no such object.
    fn schema_of(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// The schema besides the main one in which an object is made that is named without one.
    fn schema_of_new(&self) -> Option<String> {
        None
    }

    /// The names of the current database and of the current schema, in which names are looked for.
    fn current(&self) -> (String, String) {
        ("memory".to_owned(), "main".to_owned())
    }

    /// True if there is a schema of that name, in lower case, in the current database, besides the main one.
    fn has_current_schema(&self, name: &str) -> bool {
        self.has_schema(name)
    }

    /// True if a database has that name, in lower case.
    fn has_database(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// True if that is the database that the statement works on, whose objects have no database in their
    /// names.
    fn is_home(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// What a name means where there are several databases: its parts, as this catalog knows the object by
    /// them. `None` if these are the parts that it has. Within what is `declared` of a table, the current
    /// database is that of the table.
    fn place(&self, parts: &[String], declared: bool) -> Option<Vec<String>> {
        let _ = (parts, declared);
        None
    }

    /// True if the object of that name is in another database, and is only read.
    fn is_elsewhere(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// The text of the `SELECT` behind the view of that name.
    fn view(&self, name: &str) -> Option<String>;

    /// The file or files that `FROM 'path'` names; the path may be a pattern.
    ///
    /// # Errors
    /// I/O, if it cannot be read; input, if it is no such file.
    fn file(&self, path: &str) -> Result<Arc<dyn Relation>>;

    /// The file or files that `COPY … FROM 'path' (options)` reads, whose columns go to `targets`.
    ///
    /// # Errors
    /// As [`Catalog::file`]; input, for an option that there is not.
    fn copied_file(
        &self,
        path: &str,
        targets: &[Field],
        options: &[(String, Value)],
    ) -> Result<Arc<dyn Relation>>;

    /// The result of a table function: `read_parquet`, `read_csv`, `generate_series`, `range`. Arguments come
    /// in order, those that were named with their names in lower case.
    ///
    /// # Errors
    /// Input, if there is no such function or the arguments are wrong.
    fn table_function(&self, name: &str, args: &[(Option<String>, Argument)]) -> Result<Arc<dyn Relation>>;

    /// Names of all tables and views, for advice on unknown ones.
    fn names(&self) -> Vec<String>;

    /// Names of all table functions, for advice on unknown ones.
    fn table_functions(&self) -> Vec<String> {
        Vec::new()
    }

    /// The value of a setting, as `SHOW` prints it; `None` if there is no such setting.
    fn setting(&self, name: &str) -> Option<String>;

    /// The time, and the time zone.
    fn session(&self) -> Session {
        Session::now()
    }
}

/// A sequence of numbers, shared by all connections. What a transaction takes stays taken.
pub trait Sequence: std::fmt::Debug + Send + Sync {
    /// The next value.
    ///
    /// # Errors
    /// Input, if there are no more.
    fn next(&self) -> Result<i64>;

    /// The value that this connection took last.
    ///
    /// # Errors
    /// Input, if it has taken none.
    fn current(&self) -> Result<i64>;
}
