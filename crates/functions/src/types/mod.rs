//! Types of expressions: what a literal may become, implicit casts, common types, operators, the choice of an
//! overload.
//!
//! 1. An expression that is bound has a [`Given`]: a settled type, or what was written (NULL, a text, a
//!    number, a parameter). A *literal* adopts the type that is wanted, a column of the same type does not.
//! 2. Where several expressions meet, [`common`] finds the type of all; for operators [`arithmetic`] finds
//!    the types of both operands and of the result, for functions [`choose`] finds the overload.
//! 3. The caller casts what is not of that type. [`implicit`] says at which cost a cast is made unasked.
//!
//! Where the references differ, types and results of functions are DuckDB's, integer division and errors at
//! binding PostgreSQL's (`tests/differences.md`). All tables are written into `docs/types.md` by [`page`].
//!
//! ```text
//! page                        the tables, for people
//! overload  operators         functions and operators
//! common                      several expressions
//! implicit  decimal           two types
//! given                       one expression
//! ```

mod common;
mod decimal;
mod given;
mod implicit;
mod operators;
mod overload;
mod page;
#[cfg(test)]
mod tests;

pub use common::{Meeting, common, common_of};
pub use decimal::digits;
pub use given::Given;
pub use implicit::{Implicit, assignment, implicit};
pub use operators::{Operands, arithmetic};
pub use overload::{Ambiguous, Chosen, choose};
pub use page::page;
