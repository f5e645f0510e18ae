//! The engine: plans in, chunks out.
//!
//! The front end makes a [`plan::Plan`], bound and typed. [`optimizer::optimize`] rewrites it,
//! [`exec::execute`] cuts it into pipelines and runs them on a few workers, and the chunks end in a
//! [`exec::ResultSink`].
//!
//! The modules are layered: each depends only on those in the lines above its own.
//!
//! ```text
//! sync                                        locks and atomics
//! memory  settings  cost  learned             plain figures: budgets, settings, costs, what was learnt
//! context                                     what a running statement carries
//! pruning                                     conditions that bounds of columns decide
//! scan_predicates                             what a scan asks of a stored table
//! threshold                                   what a sort with a limit tells the operators below it
//! relation                                    where rows come from
//! work_table                                  what the step of a recursion reads
//! plan                                        what is to be done, and its text
//! facts  access_path  estimate                      what is certain, where rows are, what is estimated
//! bounds                                      the inequalities by which a join searches
//! explain                                     the plan's text, annotated by the modules above
//! optimizer                                   an equivalent plan that runs faster
//! exec                                        pipelines, workers, operators
//! calibrate  recursive  common_subplans  template  plans that are run for others
//! ```
//!
//! This crate knows no SQL text and no Arrow. Tables and files reach it as
//! [`relation::Relation`]s.

pub mod access_path;
mod bounds;
mod calibrate;
pub mod common_subplans;
mod context;
pub mod cost;
mod estimate;
pub mod exec;
mod explain;
mod facts;
mod learned;
mod memory;
pub mod optimizer;
pub mod plan;
pub mod pruning;
pub mod recursive;
pub mod relation;
pub mod scan_predicates;
mod settings;
mod sync;
pub mod template;
mod threshold;
pub mod work_table;

pub use explain::PlanNode;
