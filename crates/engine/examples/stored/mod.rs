//! A table as a relation of a plan, for examples and tests of the engine alone.

use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, Statistics};
use entasis_storage::TableSnapshot;
use entasis_vector::{Result, Schema};
use std::sync::Arc;

/// What a snapshot of a table shows.
#[derive(Debug)]
pub struct Stored(pub TableSnapshot);

impl Relation for Stored {
    fn name(&self) -> &str {
        "stored"
    }
    fn schema(&self) -> &Schema {
        self.0.schema()
    }
    fn statistics(&self) -> Statistics {
        let columns =
            (0..self.0.schema().len()).map(|column| self.0.column_statistics(column).into()).collect();
        Statistics { rows: Some(self.0.rows()), columns }
    }
    fn table(&self) -> Option<&TableSnapshot> {
        Some(&self.0)
    }
    fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        unreachable!("tables are scanned by the engine")
    }
}
