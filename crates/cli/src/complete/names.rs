//! The names that completion offers.

/// The source of names.
pub trait Names {
    /// Keywords, in upper case.
    fn keywords(&self) -> Vec<String>;
    /// Functions.
    fn functions(&self) -> Vec<String>;
    /// Settings.
    fn settings(&self) -> Vec<String>;
    /// Tables and views.
    fn tables(&self) -> Vec<String>;
    /// Tables and views of a schema or a database, written as in SQL.
    fn tables_of(&self, space: &str) -> Vec<String>;
    /// Schemas and databases.
    fn spaces(&self) -> Vec<String>;
    /// Columns of a query; empty if it is wrong.
    fn columns(&self, query: &str) -> Vec<String>;
    /// Columns of all tables and views.
    fn all_columns(&self) -> Vec<String>;
}
