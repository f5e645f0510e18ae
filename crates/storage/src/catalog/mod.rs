//! The catalog: the tables, views and sequences of a database, by name.
//!
//! ```text
//! version ◀── dependencies ◀── newest      names of one moment; which objects need which; what all connections share
//! ```
//!
//! The catalog has versions, as tables have. A statement or transaction takes a [`CatalogVersion`] and sees
//! the names of that moment. Changes of names are made in a version of one's own, which becomes the newest by
//! [`Catalog::publish`]. The first to change a name wins; the second fails, even if its change only needs
//! that name ([`dependencies`]). Dropping a name does not affect those that have looked it up.

pub mod dependencies;
mod newest;
mod version;

pub use newest::Catalog;
pub use version::{CatalogVersion, Entry, IfExists, NameChange, TEMPORARY, TableEntry, View, is_temporary};
