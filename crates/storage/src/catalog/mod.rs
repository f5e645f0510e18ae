//! The catalog: what tables, views and sequences there are, by name.
//!
//! ```text
//! version ◀── dependencies ◀── newest      names of one moment; which objects need which; what all connections share
//! ```
//!
//! The catalog has versions, as tables have: whoever begins something takes a [`CatalogVersion`] and sees the
//! names of that moment; whoever changes names changes a version of its own, which becomes the newest by
//! [`Catalog::publish`]: the first to change a name wins, also if it is a name that the other one's objects
//! need ([`dependencies`]). Dropping a name takes nothing from those that have looked it up.

pub mod dependencies;
mod newest;
mod version;

pub use newest::Catalog;
pub use version::{CatalogVersion, Entry, IfExists, NameChange, TEMPORARY, TableEntry, View, is_temporary};
