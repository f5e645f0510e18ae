//! The SQL front end: text in, bound plans out.
//!
//! This is the only crate that depends on DataFusion. DataFusion provides the parser (`sqlparser`), the
//! binder, type coercion and the function library; subqueries, set operations and everything after the bound
//! plan are ours.
//!
//! ```text
//! text ──parse──▶ Parsed ──bind──▶ Statement (entasis_engine::plan::Plan inside)
//! ```
//!
//! 1. [`parse`] splits a script into statements, refuses statements that are nested too deeply, and parses
//!    the forms that the parser does not know (`SUMMARIZE`, `COPY … (any option)`, `DESCRIBE SELECT …`).
//! 2. [`bind`] rewrites the syntax tree where our semantics differ from DataFusion's (`rewrite`), binds names
//!    against a [`Catalog`] and coerces types (`binding`), and lowers the result to the engine's plan
//!    (`lower`), where subqueries become joins, dependent ones if they read columns of the rows around them;
//!    finally the session's time zone is applied.
//!
//! # Layers
//! A module uses only those in layers below its own; the head of each folder shows its own layers.
//!
//! ```text
//! statements             what each kind of statement becomes
//! rewrite  lower         trees for the binder; the binder's plans to the engine's
//! binding                what DataFusion's binder requests, and types
//! functions              the function library as the binder sees it
//! environment            what a statement is bound against: catalog, parameters
//! syntax  error          text to trees, and their parts; DataFusion's errors in our words
//! hidden
//! ```
//!
//! Queries within a query that are planned while the binder requests them (views, `DESCRIBE` in `FROM`) are
//! the only recursion across layers. It uses functions that `statements` passes down
//! (`binding::context::Steps`).
//!
//! This crate knows nothing about storage, files, or execution. Tables, files and table functions are
//! [`entasis_engine::relation::Relation`]s that the catalog returns.

mod binding;
mod error;
mod functions;
mod hidden;
mod lower;
mod rewrite;
mod statements;
#[cfg(test)]
mod tests;

pub use entasis_binder::environment::{Catalog, Sequence};
pub use entasis_syntax::commands::quoted;
pub use entasis_syntax::complete::is_complete;
pub use entasis_syntax::keyed::{
    Assigned, Insertable, Keyed, KeyedAction, Keys, OnConflict, Scalar, Several, constant,
};
pub use entasis_syntax::object_name::WrittenName;
pub use entasis_syntax::parse::parse;
pub use entasis_syntax::parsed::{Command, Parsed, Preparing};
pub use entasis_syntax::placeholders::check_arguments;
pub use entasis_syntax::stored::{Mentioned, called_sequences, mentioned_columns};
pub use entasis_syntax::targets::{Subject, What};
pub use entasis_syntax::types::parse_type;
pub use entasis_syntax::{is_on_deep_stack, on_deep_stack};
pub use statements::{
    Action, Alteration, Change, Columns, Consequence, Insert, ObjectKind, Proposed, ROW_ID, Referring,
    Repeated, SequenceOptions, Statement, bind, bind_stored, bind_template, follow, transaction_control,
    view_of,
};

/// Names of all scalar and aggregate functions, sorted, for completion.
pub fn functions() -> Vec<String> {
    functions::Library::get().names()
}

/// The keywords of the language, in upper case and sorted, for completion.
pub fn keywords() -> Vec<String> {
    let mut words: Vec<String> =
        entasis_syntax::keywords::KEYWORDS.iter().map(|word| word.to_string()).collect();
    words.sort();
    words
}
