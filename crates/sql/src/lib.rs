//! The SQL front end: text in, bound plans out.
//!
//! This is the one crate that names DataFusion. Of it come the parser (`sqlparser`), the binder, type
//! coercion and the function library; subqueries, set operations and everything after the bound plan are
//! ours.
//!
//! ```text
//! text ──parse──▶ Parsed ──bind──▶ Statement (entasis_engine::plan::Plan inside)
//! ```
//!
//! 1. [`parse`] cuts a script into statements, refuses what is nested too deeply, and reads the forms that
//!    the parser does not know (`SUMMARIZE`, `COPY … (any option)`, `DESCRIBE SELECT …`).
//! 2. [`bind`] rewrites the syntax tree where DataFusion's meaning is not ours (`rewrite`), binds names
//!    against a [`Catalog`] and coerces types (`binding`), and lowers the result to the engine's plan
//!    (`lower`), where subqueries become joins; last, the session's time zone is put into it.
//!
//! # Floors
//! A module names only those on floors below its own; the head of each folder draws what is in it.
//!
//! ```text
//! statements             what each kind of statement becomes
//! rewrite  lower         trees as the binder takes them; its plans as the engine's
//! binding  clauses       what DataFusion's binder asks, and types; what is refused by name
//! functions              the function library
//! environment            what a statement is bound against: catalog, session, parameters
//! syntax  error          text to trees, and what a tree says; DataFusion's errors in our words
//! expressions  hidden  names
//! ```
//!
//! The one recursion of the language, queries within a query that are planned while the binder asks for them
//! (views, `DESCRIBE` in `FROM`), goes up by functions that `statements` hands down
//! (`binding::context::Steps`).
//!
//! What this crate does not know: storage, files, how a plan is run. Tables, files and table functions are
//! [`entasis_engine::relation::Relation`]s that the catalog hands out.

mod binding;
mod clauses;
mod environment;
mod error;
mod expressions;
mod functions;
mod hidden;
mod lower;
mod names;
mod rewrite;
mod statements;
mod syntax;
#[cfg(test)]
mod tests;

pub use environment::{Argument, Catalog, Sequence, Session, TimeZone, clock};
pub use names::nearest;
pub use statements::{
    Action, Alteration, Change, Columns, Consequence, Insert, ObjectKind, ROW_ID, Referring, Repeated,
    SequenceOptions, Statement, bind, bind_stored, bind_template, follow, view_of,
};
pub use syntax::commands::quoted;
pub use syntax::complete::is_complete;
pub use syntax::keyed::{Assigned, Keyed, KeyedAction, OnConflict, Scalar};
pub use syntax::object_name::WrittenName;
pub use syntax::on_deep_stack;
pub use syntax::parse::parse;
pub use syntax::parsed::{Command, Parsed, Preparing};
pub use syntax::placeholders::check_arguments;
pub use syntax::stored::{Mentioned, called_sequences, mentioned_columns};
pub use syntax::targets::{Subject, What};
pub use syntax::types::parse_type;

/// Names of all scalar and aggregate functions, sorted, for completion.
pub fn functions() -> Vec<String> {
    functions::Library::get().names()
}

/// What `docs/functions.md` reads.
pub fn functions_page() -> String {
    functions::catalog::page::page()
}

/// The examples on that page: a query, and the text that it gives.
pub fn function_examples() -> Vec<(String, String)> {
    functions::catalog::page::examples()
}

/// The words of the language, in upper case and sorted, for completion.
pub fn keywords() -> Vec<String> {
    let mut words: Vec<String> = syntax::keywords::KEYWORDS.iter().map(|word| word.to_string()).collect();
    words.sort();
    words
}
