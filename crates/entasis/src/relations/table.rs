//! A stored table as a relation: a snapshot, taken when the statement was bound.

use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{ColumnStatistics, Relation, ScanRequest, Source, Statistics};
use entasis_storage::TableSnapshot;
use entasis_vector::{DataType, Error, Field, Result, Schema, Value};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct TableRelation {
    snapshot: TableSnapshot,
    /// The table's columns, and the row id if that is wanted.
    schema: Schema,
}

impl TableRelation {
    pub(crate) fn new(snapshot: TableSnapshot) -> TableRelation {
        TableRelation { schema: snapshot.schema().clone(), snapshot }
    }

    /// With [`entasis_sql::ROW_ID`] as one more column, which the engine's scan knows as that after the table's last.
    pub(crate) fn with_row_ids(snapshot: TableSnapshot) -> TableRelation {
        let mut relation = TableRelation::new(snapshot);
        relation.schema.push(Field { nullable: false, ..Field::new(entasis_sql::ROW_ID, DataType::UInt64) });
        relation
    }
}

impl Relation for TableRelation {
    fn name(&self) -> &str {
        self.snapshot.name()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        let columns = (0..self.snapshot.schema().len())
            .map(|column| {
                let summary = self.snapshot.column_statistics(column);
                ColumnStatistics {
                    min: summary.min.clone().filter(|v| !matches!(v, Value::Null)),
                    max: summary.max.clone().filter(|v| !matches!(v, Value::Null)),
                    nulls: Some(summary.nulls),
                    distinct: Some(summary.distinct),
                    bounds_are_exact: true,
                }
            })
            .collect();
        Statistics { rows: Some(self.snapshot.rows()), columns }
    }

    fn table(&self) -> Option<&TableSnapshot> {
        Some(&self.snapshot)
    }

    fn scan(&self, _request: &ScanRequest, _context: &QueryContext) -> Result<Arc<dyn Source>> {
        Err(Error::internal("the engine scans stored tables by itself"))
    }
}
