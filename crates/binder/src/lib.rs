//! The binder.

pub mod environment;
