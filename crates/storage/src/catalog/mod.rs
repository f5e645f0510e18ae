//! The catalog: the tables, views and sequences of a database, by name.
//!
//! ```text
//! entry ◀── names ◀── version ◀── dependencies ◀── newest    objects; by their names; names of one moment; which
//! map   ◀─┘                                                  objects need which; what all connections share
//! ```
//!
//! The catalog has versions, as tables have. A statement or transaction takes a [`CatalogVersion`] and sees
//! the names of that moment. Changes of names are made in a version of one's own, which becomes the newest by
//! [`Catalog::publish`]. The first to change a name wins; the second fails, even if its change only needs
//! that name ([`dependencies`]). Dropping a name does not affect those that have looked it up.

pub mod dependencies;
mod entry;
mod map;
mod names;
mod newest;
mod version;

pub use entry::{Entry, NamedType, TableEntry, View, is_temporary};
pub use newest::Catalog;
pub use version::{CatalogVersion, IfExists, NameChange};
