//! Work tables: what the step of a recursion reads.

use crate::context::QueryContext;
use crate::relation::{Relation, ScanRequest, Source, Statistics};
use crate::sync::{Mutex, lock};
use entasis_vector::{Error, Field, Result, Schema};
use std::fmt;
use std::sync::Arc;

/// Scans the rows that a work table has at the moment.
pub(crate) type WorkRows = Arc<dyn Fn(&ScanRequest, &QueryContext) -> Arc<dyn Source> + Send + Sync>;

/// The rows of the last round, or all rows so far, as the step of a recursion reads them.
pub struct WorkTable {
    name: String,
    schema: Schema,
    rows: Mutex<Option<WorkRows>>,
}

impl WorkTable {
    /// A table that has rows while a recursion runs that it is the work table of.
    pub fn new(name: String, schema: Schema) -> WorkTable {
        WorkTable { name, schema, rows: Mutex::default() }
    }

    /// Another one of the same name, with further columns.
    pub(crate) fn widened(&self, further: &[Field]) -> WorkTable {
        WorkTable::new(self.name.clone(), self.schema.iter().chain(further).cloned().collect())
    }

    /// Gives it other rows, or takes them away.
    pub(crate) fn set(&self, rows: Option<WorkRows>) {
        *lock(&self.rows) = rows;
    }
}

impl fmt::Debug for WorkTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkTable({} {:?})", self.name, self.schema)
    }
}

impl Relation for WorkTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let rows = lock(&self.rows).clone();
        let rows =
            rows.ok_or_else(|| Error::internal(format!("{} is read outside of its recursion", self.name)))?;
        Ok(rows(request, context))
    }
}
