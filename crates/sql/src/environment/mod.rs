//! What a statement is bound against: names and what they stand for, the session, the values of parameters.
//!
//! The [`Catalog`] is a trait, which whoever owns the tables implements. What is asked of the names in one
//! beyond that (what something new is called, what is not there) is [`schema`].

mod catalog;
mod parameters;
pub(crate) mod schema;
mod session;
mod time_zone;

pub use catalog::{Argument, Catalog, Sequence};
pub(crate) use parameters::Parameters;
pub use session::{Session, clock};
pub(crate) use time_zone::MICROS_PER_SECOND;
pub use time_zone::TimeZone;
