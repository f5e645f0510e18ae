//! DataFusion's binder: the information that it requests from us, and the types of what it returns.
//!
//! ```text
//! context                       what the binder sees of a statement, and how a query passes through it
//! relations  source             items of FROM
//! operators                     operators, and the special syntax of functions
//! coerce  types                 types of operands, and their names
//! ```

pub(crate) mod coerce;
pub(crate) mod context;
pub(crate) mod operators;
pub(crate) mod relations;
pub(crate) mod source;
mod types;
