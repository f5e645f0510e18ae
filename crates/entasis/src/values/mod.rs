//! Values of the host program: parameters of statements, and cells and rows of results in Rust's types.

pub(crate) mod arguments;
pub mod convert;
#[cfg(feature = "serde")]
mod deserialize;
pub mod params;
pub mod row;
pub mod rows;
