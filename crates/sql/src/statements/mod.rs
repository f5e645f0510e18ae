//! Statements: what each kind of them becomes.
//!
//! ```text
//! bind                                         every kind, and where in the text an error is
//! alter  create  index                         what there is
//! definition                                   what is declared of a table
//! change                                       rows
//! schema  layout  sequence  transaction  zone  parts of statements
//! binder                                       their queries, with the steps around DataFusion's binder
//! resolve  columns  locate  bound              names without a schema, columns, places; what comes out
//! ```

mod alter;
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
mod resolve;
mod schema;
mod sequence;
mod transaction;
mod zone;

pub use bind::{bind, bind_stored, bind_template};
pub use bound::{
    Action, Alteration, Change, Columns, Insert, ObjectKind, Repeated, SequenceOptions, Statement,
};
pub use resolve::view_of;

pub use change::{Consequence, ROW_ID, Referring, follow};
