//! The function library: which functions exist, under which names, with which types, and what computes them.
//!
//! A function is a [`Definition`](definition::Definition): names, arguments, result, a description with
//! examples, and what computes it. Kernels of scalar functions work row by row ([`kernels`]), value by value
//! ([`by_value`]), or are expressions of the engine; aggregates keep a state for each group ([`aggregates`]).
//! Nothing here knows a binder, a plan or a table: calls are expressions over vectors.
//!
//! ```text
//! times  chance                               functions of time; those that read the clock; of chance
//! types                                       types of expressions: literals, casts, operators, overloads
//! catalog                                     every name, with its entry on the page
//! kernels  aggregates  windows  zoned         implementations, with their entries
//! definition  by_value  expressions           what an entry consists of; folding of constants
//! session  time_zone  date_part  argument     what calls take from their session; parts of dates; arguments of tables
//! host                                        functions of the host program
//! ```

pub mod aggregates;
mod argument;
pub mod by_value;
pub mod catalog;
pub mod chance;
mod date_part;
pub mod definition;
pub mod expressions;
pub mod host;
pub mod kernels;
mod session;
mod time_zone;
mod times;
pub mod types;
pub mod windows;
pub mod zoned;

pub use argument::Argument;
pub use date_part::date_part;
pub use session::{ClockReading, Session, clock};
pub use time_zone::TimeZone;
pub use times::{TimeFunction, TimeOverload, time_functions};
