//! Testkit: what the tests of Entasis stand on. Development only; nothing that is shipped depends on it.
//!
//! | module | what it is |
//! |---|---|
//! | [`reference`] | the reference engine: a slow and obvious interpreter of plans |
//! | [`random`] | seeded numbers |
//! | [`generator`] | random tables and queries, as SQL text |
//! | [`expressions`] | random expressions over random chunks |
//! | [`plans`] | random plans over stored tables |
//! | [`compare`] | when two results are the same |
//! | [`configuration`] | the settings under which tests run again |
//! | [`text_test`] | the runner of `tests/slt` |
//! | [`crashes`] | databases on a disk that stops anywhere, opened again |
//! | [`golden`] | files that hold what a test should print |
//! | [`scratch`] | directories for the files of a test |
//! | [`histories`] | what concurrent transactions did and saw, and the checker of it |
//!
//! The tests themselves are in `tests/suite`. `docs/design/testing.md` says which kind of test is for what.

pub mod compare;
pub mod configuration;
pub mod crashes;
pub mod expressions;
pub mod generator;
pub mod golden;
pub mod histories;
pub mod plans;
pub mod random;
pub mod reference;
pub mod scratch;
pub mod text_test;
