//! A stored table as a relation: a snapshot, taken when the statement was bound.

use crate::state::workload_stats::Record;
use entasis_engine::cost::Costs;
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{
    ForeignKey, Index, Key, ParentKey, Relation, ScanRequest, Source, Statistics,
};
use entasis_engine::scan_predicates::Question;
use entasis_storage::{RowId, SlotRange, TableEntry, TableSnapshot};
use entasis_vector::{DataType, Error, Field, Result, Schema};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct TableRelation {
    /// The table's name in the catalog; the table itself may have been created under another name.
    name: String,
    snapshot: TableSnapshot,
    indexes: Vec<Index>,
    /// The table's columns, and the row id if requested.
    schema: Schema,
    /// If given, the only rows to return.
    only: Option<Vec<RowId>>,
    /// If given, the only slots to return.
    slots: Option<Vec<SlotRange>>,
    costs: Arc<Costs>,
    /// Where scans note what they ask, if the table follows its workload.
    record: Option<Arc<Record>>,
    /// Declared keys.
    keys: Vec<Vec<usize>>,
    /// Foreign keys.
    parents: Vec<ParentKey>,
}

impl TableRelation {
    pub(crate) fn new(
        name: &str,
        snapshot: TableSnapshot,
        indexes: Vec<Index>,
        costs: Arc<Costs>,
    ) -> TableRelation {
        TableRelation {
            name: name.to_owned(),
            schema: snapshot.schema().clone(),
            snapshot,
            indexes,
            only: None,
            slots: None,
            costs,
            record: None,
            keys: Vec::new(),
            parents: Vec::new(),
        }
    }

    /// The relation with [`entasis_sql::ROW_ID`] as an additional column, which the engine's scan knows as
    /// the one after the table's last.
    pub(crate) fn with_row_ids(
        name: &str,
        snapshot: TableSnapshot,
        indexes: Vec<Index>,
        costs: Arc<Costs>,
    ) -> TableRelation {
        let mut relation = TableRelation::new(name, snapshot, indexes, costs);
        relation.schema.push(Field { nullable: false, ..Field::new(entasis_sql::ROW_ID, DataType::UInt64) });
        relation
    }

    /// The relation, whose scans note what they ask.
    pub(crate) fn noted(self, record: Option<Arc<Record>>) -> TableRelation {
        TableRelation { record, ..self }
    }

    /// The relation, with the keys and foreign keys that are declared for `entry`, the table of this
    /// snapshot. The snapshot has the rows after a statement, all of whose constraints hold. `parent` knows
    /// the tables to which foreign keys refer.
    pub(crate) fn declared(
        mut self,
        entry: &TableEntry,
        parent: impl Fn(&str) -> Option<Arc<TableEntry>>,
    ) -> TableRelation {
        let schema = entry.table.schema();
        let is_whole = |key: &&Key| key.columns.iter().all(|&column| !schema[column].nullable);
        let keys = entry.definition.unique_keys().filter(is_whole);
        self.keys = keys.map(|key| key.columns.clone()).collect();
        let refers = |key: &ForeignKey| {
            let table = parent(&key.table)?.table.id();
            Some(ParentKey { columns: key.columns.clone(), table, key: key.references.clone() })
        };
        self.parents = entry.definition.foreign_keys.iter().filter_map(refers).collect();
        self
    }

    /// Restricts the relation to these rows, in order.
    pub(crate) fn only(self, rows: Vec<RowId>) -> TableRelation {
        TableRelation { only: Some(rows), ..self }
    }

    /// Restricts the relation to the rows in these slots, which are in order.
    pub(crate) fn within(self, slots: Vec<SlotRange>) -> TableRelation {
        TableRelation { slots: Some(slots), ..self }
    }
}

impl Relation for TableRelation {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        let columns = (0..self.snapshot.schema().len())
            .map(|column| self.snapshot.column_statistics(column).into())
            .collect();
        Statistics { rows: self.rows(), columns }
    }

    fn rows(&self) -> Option<u64> {
        Some(match (&self.only, &self.slots) {
            (Some(rows), _) => rows.len() as u64,
            (_, Some(slots)) => slots.iter().map(|range| range.slots.len() as u64).sum(),
            _ => self.snapshot.rows(),
        })
    }

    fn keys(&self) -> &[Vec<usize>] {
        &self.keys
    }

    fn parents(&self) -> &[ParentKey] {
        &self.parents
    }

    fn table(&self) -> Option<&TableSnapshot> {
        Some(&self.snapshot)
    }

    fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    fn only_rows(&self) -> Option<&[RowId]> {
        self.only.as_deref()
    }

    fn only_slots(&self) -> Option<&[SlotRange]> {
        self.slots.as_deref()
    }

    fn asked(&self, slots: u64, question: &dyn Fn() -> Question) {
        self.record.iter().for_each(|record| record.note(self.snapshot.rows(), slots, question));
    }

    fn costs(&self) -> Arc<Costs> {
        self.costs.clone()
    }

    fn scan(&self, _request: &ScanRequest, _context: &QueryContext) -> Result<Arc<dyn Source>> {
        Err(Error::internal("the engine scans stored tables by itself"))
    }
}
