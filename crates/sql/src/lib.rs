//! The SQL front end: text in, bound statements out.
//!
//! ```text
//! text ──parse──▶ Parsed ──bind──▶ Statement (entasis_engine::plan::Plan inside)
//! ```
//!
//! 1. [`parse`] splits a script into statements, refuses statements that are nested too deeply, and parses
//!    the forms that the parser does not know ([`entasis_syntax`]).
//! 2. [`bind`] resolves the names of relations, and decides what each kind of statement becomes
//!    (`statements`). Queries, and changes of rows, which are queries for the rows to be changed, are bound
//!    by [`entasis_binder`]; finally the session's time zone is applied.
//!
//! This crate knows nothing about storage, files, or execution. Tables, files and table functions are
//! [`entasis_engine::relation::Relation`]s that the catalog returns.

mod statements;
#[cfg(test)]
mod tests;

pub use entasis_binder::environment::{Catalog, Sequence};
use entasis_functions::catalog::entries;
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
pub use entasis_syntax::{FreedAside, aside, is_on_deep_stack, on_deep_stack};
pub use statements::{
    Action, Alteration, Change, Columns, Consequence, Insert, ObjectKind, Proposed, ROW_ID, Referring,
    Repeated, SequenceOptions, Statement, bind, bind_stored, bind_template, describe, follow,
    locate_constant, locate_named_constant, transaction_control, view_of,
};

/// Names of all functions, sorted, for completion.
pub fn functions() -> Vec<String> {
    let mut names: Vec<String> =
        entries().iter().flat_map(|entry| entry.names).map(|name| (*name).to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The keywords of the language, in upper case and sorted, for completion.
pub fn keywords() -> Vec<String> {
    let mut words: Vec<String> =
        entasis_syntax::keywords::KEYWORDS.iter().map(|word| word.to_string()).collect();
    words.sort();
    words
}
