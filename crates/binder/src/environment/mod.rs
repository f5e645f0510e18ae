//! What a statement is bound against: names and the objects to which they refer, and the values of
//! parameters, or what is to be learnt of their types.
//!
//! The [`Catalog`] is a trait, which the owner of the tables implements. Further functions on the names of a
//! catalog (names of new objects, errors for missing ones) are in [`schema`].

mod catalog;
mod parameters;
pub mod schema;
mod uses;

pub use catalog::{Catalog, Sequence};
pub use parameters::Parameters;
pub(crate) use parameters::index_of;
pub use uses::Uses;
