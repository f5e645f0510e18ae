//! The checker of histories.
//!
//! Several threads run random transactions on one database and record what they did and saw ([`history`]).
//! When all of them have stopped, the history of that window is checked: whether the versions of each row are
//! one chain of commits, whether all snapshots and commits can be put in one order that also agrees with the
//! clock, whether everything that was ever returned satisfies keys and foreign keys, and whether the tables
//! have the same contents as a slow model after the same commits. Write skew is the only anomaly that
//! snapshot isolation allows.
//!
//! | module | subject |
//! |---|---|
//! | [`history`] | what is recorded |
//! | `unfold`, `written`, `walk` | writes of bulk statements; which writes count; single transactions |
//! | `chains` | the versions of each row in order |
//! | `observe`, `order`, `cycles`, `classify` | the order of moments, and names for its cycles |
//! | `constraints`, `stamps`, `model` | keys; blind writes; the slow twin |
//! | [`check`](mod@check) | runs all of these |
//! | `tables` | the tables of the workload |
//! | `session`, `transaction` | running statements, and choosing the next ones |
//! | `read`, `write`, `bulk`, `rekey`, `family`, `define` | the statements |
//! | `common`, [`run`] | what sessions share; windows and the report |

pub mod anomaly;
mod bulk;
mod chains;
pub mod check;
mod classify;
mod common;
mod constraints;
mod cycles;
mod define;
mod family;
pub mod history;
mod model;
mod observe;
mod order;
mod read;
mod rekey;
pub mod run;
mod session;
mod stamps;
mod tables;
mod transaction;
mod unfold;
mod walk;
mod write;
mod written;

pub use anomaly::{Anomaly, Violation};
pub use check::{Checked, check};

#[cfg(test)]
mod tests;
