//! `INSERT … ON CONFLICT`.
use super::Target;
use crate::Statement;
use crate::bind::Binder;
use datafusion_sql::sqlparser::ast;
use entasis_vector::{Error, Result};

impl Binder<'_> {
    pub(super) fn insert_or(&self, _: &ast::Insert, _: Target) -> Result<Statement> {
        Err(Error::not_supported("INSERT … ON CONFLICT"))
    }
}
