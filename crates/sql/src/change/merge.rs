//! `MERGE`.
use crate::Statement;
use crate::bind::Binder;
use datafusion_sql::sqlparser::ast::Merge;
use entasis_vector::{Error, Result};

impl Binder<'_> {
    pub(crate) fn merge(&self, _: &Merge) -> Result<Statement> {
        Err(Error::not_supported("MERGE"))
    }
}
