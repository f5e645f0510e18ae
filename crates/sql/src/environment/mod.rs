//! What a statement is bound against: names and the objects to which they refer, the session, the values of
//! parameters.
//!
//! The [`Catalog`] is a trait, which the owner of the tables implements. Further functions on the names of a
//! catalog (names of new objects, errors for missing ones) are in [`schema`].

mod catalog;
mod conversions;
mod parameters;
pub(crate) mod schema;
mod session;
mod time_zone;

pub use catalog::{Argument, Catalog, Sequence};
pub(crate) use parameters::Parameters;
pub use session::{Session, clock};
pub use time_zone::TimeZone;
pub(crate) use time_zone::{MICROS_PER_SECOND, write_offset};
