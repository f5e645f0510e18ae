//! The checker of histories.
//!
//! Several threads run random transactions on one database and write down what they did and saw
//! ([`history`]). When all of them have come to rest, the history of that window is checked: whether the
//! versions of each row are one chain of commits, whether all snapshots and commits can be put in one order
//! that also respects the clock, whether everything that was ever shown satisfies keys and foreign keys, and
//! whether the tables hold what a slow model holds after the same commits. Write skew is all that snapshot
//! isolation leaves.
//!
//! | module | subject |
//! |---|---|
//! | [`history`] | what is written down |
//! | `unfold`, `written`, `walk` | versions that bulk statements wrote; what counts; one transaction by itself |
//! | `chains` | the versions of each row in their order |
//! | `observe`, `order`, `cycles`, `classify` | from what was seen to the order of moments, and names for its cycles |
//! | `constraints`, `stamps`, `model` | keys; blind writes; the slow twin |
//! | [`check`](mod@check) | all of that |
//! | `tables` | the tables of the workload |
//! | `session`, `transaction` | who runs statements, and which come next |
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
