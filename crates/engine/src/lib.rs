//! The engine: plans in, chunks out.
//!
//! A [`plan::Plan`] comes bound and typed from whoever reads SQL. [`optimizer::optimize`] rewrites it,
//! [`exec::execute`] cuts it into pipelines and runs them on a few workers, and the chunks end in a
//! [`exec::ResultSink`].
//!
//! The modules stand on floors: each names only those of the lines above its own.
//!
//! ```text
//! sync                                        what workers meet by
//! memory  settings  cost                      plain figures: budgets, settings, what reading and accesses cost
//! context                                     what a running statement carries
//! relation                                    where rows come from
//! plan                                        what is to be done, and its text
//! facts  reach  estimate                      what is certain, where rows are, what is believed
//! bounds                                      by which inequalities a join searches
//! explain                                     the plan's text with what the floors below know of it
//! optimizer                                   an equal plan that runs faster
//! exec                                        pipelines, workers, operators
//! calibrate  recursive  shared  template      statements that the engine runs for others
//! ```
//!
//! This crate knows no SQL text, no Arrow and no DataFusion. Tables and files reach it as
//! [`relation::Relation`]s.

mod bounds;
mod calibrate;
mod context;
pub mod cost;
mod estimate;
pub mod exec;
mod explain;
mod facts;
mod memory;
pub mod optimizer;
pub mod plan;
pub mod reach;
pub mod recursive;
pub mod relation;
mod settings;
pub mod shared;
mod sync;
pub mod template;
