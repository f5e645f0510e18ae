//! All tests that need the whole database, in one binary. See `docs/design/testing.md`.

mod bad_input;
mod beside;
mod commands;
mod crashes;
mod differential;
mod documents;
mod durability;
mod expressions;
mod faults;
mod floors;
mod functions;
mod histories;
mod plans;
mod random_plans;
mod referential_actions;
mod slt;
mod spilling;
mod tpch;
mod transactions;
mod type_names;
mod unsafe_modules;
