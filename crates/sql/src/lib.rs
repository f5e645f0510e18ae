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
//!    against a [`Catalog`] (`context`), coerces types (`coerce`), and lowers the result to the engine's plan
//!    (`lower`), where subqueries become joins; last, the session's time zone is put into it (`time_zone`).
//!
//! What this crate does not know: storage, files, how a plan is run. Tables, files and table functions are
//! [`entasis_engine::relation::Relation`]s that the catalog hands out.

mod alter;
mod asof;
mod bind;
mod catalog;
mod change;
mod clauses;
mod coerce;
mod complete;
mod context;
mod definition;
mod dialect;
mod error;
mod functions;
mod hidden;
mod index;
mod integers;
mod keyed;
mod layout;
mod lower;
mod names;
mod operators;
mod parameters;
mod parse;
mod placeholders;
mod preparing;
mod resolve;
mod rewrite;
mod schema;
mod sequence;
mod session;
mod statement;
mod stored;
mod targets;
#[cfg(test)]
mod tests;
mod time_zone;
mod transaction;
mod types;
mod walk;
mod words;

pub use bind::{bind, bind_template};
pub use catalog::{Argument, Catalog, Sequence};
pub use change::{Consequence, ROW_ID, Referring, follow};
pub use complete::is_complete;
pub use keyed::{Keyed, KeyedAction, Scalar};
pub use names::nearest;
pub use parse::{Parsed, on_deep_stack, parse};
pub use placeholders::check_arguments;
pub use preparing::Preparing;
pub use schema::WrittenName;
pub use session::{Session, clock};
pub use statement::{
    Action, Alteration, Change, Columns, Insert, ObjectKind, Repeated, SequenceOptions, Statement,
};
pub use stored::{Mentioned, called_sequences, mentioned_columns};
pub use time_zone::TimeZone;
pub use types::parse_type;

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
    let mut words: Vec<String> = parse::KEYWORDS.iter().map(|word| word.to_string()).collect();
    words.sort();
    words
}
