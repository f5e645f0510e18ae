//! Testkit: the foundations of Entasis' tests. Only for development; nothing that is shipped depends on it.
//!
//! | module | content |
//! |---|---|
//! | [`mod@reference`] | the reference engine: a slow and obvious interpreter of plans |
//! | [`random`] | seeded numbers |
//! | [`generator`] | random tables and queries, as SQL text |
//! | [`expressions`] | random expressions over random chunks |
//! | [`plans`] | random plans over stored tables |
//! | [`compare`] | compares results |
//! | [`configuration`] | the settings under which tests are repeated |
//! | [`text_test`] | the runner of `tests/slt` |
//! | [`crashes`] | databases on a disk that stops at any operation, reopened |
//! | [`golden`] | files with the expected output of tests |
//! | [`scratch`] | directories for the files of a test |
//! | [`histories`] | records what concurrent transactions did and saw, and checks it |
//!
//! The tests themselves are in `tests/suite`. `docs/design/testing.md` describes the purpose of each kind of
//! test.

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
