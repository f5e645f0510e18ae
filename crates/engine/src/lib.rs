//! The engine: plans in, chunks out.
//!
//! A [`plan::Plan`] comes bound and typed from whoever reads SQL. [`optimizer::optimize`] rewrites it, [`exec::execute`]
//! cuts it into pipelines and runs them on a few workers, and the chunks end in a [`exec::ResultSink`].
//!
//! This crate knows no SQL text, no Arrow and no DataFusion. Tables and files reach it as [`relation::Relation`]s.

mod bounds;
pub mod cost;
pub mod exec;
mod facts;
pub mod optimizer;
pub mod plan;
mod reach;
pub mod recursive;
pub mod relation;
pub mod shared;
mod sync;
pub mod template;
