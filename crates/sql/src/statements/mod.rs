//! Statements: what each kind of them becomes.
//!
//! ```text
//! bind                                         all kinds, and positions of errors
//! alter  altered  violations  create  index    data definition
//! definition                                   declarations of a table
//! change                                       changes of rows
//! schema  layout  sequence  transaction  zone  parts of statements
//! binder                                       their queries
//! resolve  named_types                         names without a schema, and of types
//! columns  locate  rows  bound                 columns, positions, constants; the results
//! ```

mod alter;
mod altered;
mod bind;
mod binder;
mod bound;
mod change;
mod columns;
mod create;
mod definition;
mod index;
mod layout;
mod locate;
mod named_types;
mod resolve;
mod rows;
mod schema;
mod sequence;
mod transaction;
mod violations;
mod zone;

pub use bind::{bind, bind_stored, bind_template, describe};
pub use bound::{
    Action, Alteration, Change, Columns, Insert, ObjectKind, Proposed, Repeated, SequenceOptions, Statement,
};
pub use locate::{locate_constant, locate_named_constant};
pub use resolve::view_of;
pub use transaction::transaction_control;

pub use change::{Consequence, ROW_ID, Referring, follow};
