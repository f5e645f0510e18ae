//! Tables: row groups of 1024-slot blocks, snapshots, and the catalog that names them.
//!
//! Knows no SQL and no operator.

use entasis_vector::Schema;

/// placeholder until the storage module lands
#[derive(Debug, Clone)]
pub struct TableSnapshot {
    schema: Schema,
}

impl TableSnapshot {
    /// Its columns.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}
