//! DataFusion's binder: what it asks of us, and the types that are settled behind it.
//!
//! ```text
//! context                       one statement's world, and a query on its way through the binder
//! relations  source             what stands in FROM
//! operators                     operators, and the special syntax of functions
//! coerce  types                 types of operands, and their names
//! ```

pub(crate) mod coerce;
pub(crate) mod context;
pub(crate) mod operators;
pub(crate) mod relations;
pub(crate) mod source;
mod types;
