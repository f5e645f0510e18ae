//! Tables made of others: in another layout, or with other columns.
//!
//! - *In another layout* all rows are encoded again, row group by row group, so that the caller may share the
//!   work out among threads ([`TableSnapshot::encode_group`]).
//! - *With other columns* ([`TableSnapshot::with_columns`]) no value is looked at: encoded blocks are copied
//!   as they are, and a column of one value takes no memory. Blocks have no reference counts, so two tables
//!   cannot share one.
//!
//! The caller who replaces the old table holds its writers' turn meanwhile ([`crate::Transaction::alone`]),
//! and publishes the new table under its name ([`crate::Catalog::publish`]). Transactions that wrote to the
//! old one before will then conflict. Its readers go on.

use super::appender::AppendedRows;
use super::head::Table;
use super::snapshot::TableSnapshot;
use crate::block::Block;
use crate::definition::TableOptions;
use crate::node::Link;
use crate::sync::AtomicU32;
use crate::tree::{Edit, RowGroup, Shape, Slice};
use crate::value::{Datum, Sketch};
use entasis_vector::{CHUNK_ROWS, Chunk, Result, Schema, Selection, Value, Vector};
use std::sync::Arc;

/// Where a column of a new table comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnSource {
    /// A column of the old table, of the same type.
    Old(usize),
    /// One value in all rows.
    Constant(Value),
}

impl TableSnapshot {
    /// A new table with the same name, columns and rows in another layout.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB.
    pub fn relaid(&self, options: TableOptions) -> Result<Arc<Table>> {
        let table = Table::with_options(self.name(), self.schema().clone(), options);
        let groups = 0..self.row_groups().len();
        let appended = groups.map(|group| self.encode_group(group, &table)).collect::<Result<Vec<_>>>()?;
        table.commit(appended)?;
        Ok(table)
    }

    /// The rows of a row group, encoded to be added to `target`, which has the same columns. Several threads
    /// may do so for different row groups; added together, rows keep their order as far as the layout does.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB.
    pub fn encode_group(&self, group: usize, target: &Arc<Table>) -> Result<AppendedRows> {
        let mut appender = target.appender();
        let node = self.row_group(group).expect("there is such a row group");
        let mut positions: Vec<u16> = Vec::with_capacity(CHUNK_ROWS);
        let mut chunk = Chunk::new();
        for first in (0..node.slots()).step_by(CHUNK_ROWS) {
            let window = (node.slots() - first).min(CHUNK_ROWS);
            positions.clear();
            node.each_live(first..first + window, |position| positions.push(position as u16));
            chunk.reset(positions.len());
            let selected = chunk.push_group(Selection::from_indices(&positions));
            for (column, field) in self.schema().iter().enumerate() {
                let mut vector = Vector::new(field.ty.physical());
                node.decode(column, first, window, &mut vector);
                chunk.push_column(vector, selected);
            }
            if !positions.is_empty() {
                appender.append(&chunk, group as u64)?;
            }
        }
        Ok(appender.finish())
    }

    /// A new table with the same rows at the same places, and columns from `sources`, one for each field of
    /// `schema`. `options` must lay rows out by the same columns as before, wherever these stand now.
    ///
    /// # Panics
    /// If the layout key is another one, or a column has another type than its source.
    pub fn with_columns(
        &self,
        schema: Schema,
        sources: &[ColumnSource],
        options: TableOptions,
    ) -> Arc<Table> {
        let old = self.table();
        assert_eq!(schema.len(), sources.len());
        let source = |column: &usize| match sources[*column] {
            ColumnSource::Old(old) => Some(old),
            ColumnSource::Constant(_) => None,
        };
        let key: Option<Vec<usize>> = options.layout_key.iter().map(source).collect();
        assert!(
            options.layout == old.options().layout && key.as_ref() == Some(&old.options().layout_key),
            "the rows stay where they are"
        );
        let of_type = |(source, field): (&ColumnSource, &entasis_vector::Field)| match source {
            ColumnSource::Old(column) => old.schema()[*column].ty == field.ty,
            ColumnSource::Constant(_) => true,
        };
        assert!(sources.iter().zip(&schema).all(of_type), "columns keep their types");
        let table = Table::with_options(self.name(), schema, options);
        let old_sketches = old.head().sketches.clone();
        let mut head = table.head();
        for (column, source) in sources.iter().enumerate() {
            head.sketches[column] = match source {
                ColumnSource::Old(old) => old_sketches[*old].clone(),
                ColumnSource::Constant(value) => {
                    let (mut sketch, datum) =
                        (Sketch::default(), Datum::of_value(value, table.schema()[column].ty));
                    if !datum.is_null() {
                        sketch.add(datum.hash());
                    }
                    sketch
                }
            };
        }
        let branch = &mut head.branch;
        let edit = &branch.edit;
        let (root, _) = self.pinned();
        let groups =
            root.groups.iter().map(|group| Link::new(group_of(group, sources, &table.shape, edit))).collect();
        let new = branch.root.edit(&mut branch.edit);
        (new.groups, new.rows, new.fences) = (groups, root.rows, root.fences.clone());
        new.next_number = root.next_number;
        branch.recount();
        drop(head);
        table
    }
}

fn group_of(old: &RowGroup, sources: &[ColumnSource], shape: &Shape, edit: &Edit) -> RowGroup {
    let schema = &shape.schema;
    let slices: Vec<Link<Slice>> = old
        .slices
        .iter()
        .map(|slice| {
            let block = |(source, field): (&ColumnSource, &entasis_vector::Field)| match source {
                ColumnSource::Old(column) => slice.block(*column).twin(slice.live(), field.ty.physical()),
                ColumnSource::Constant(value) => Block::constant(value, old.block_slots, field.ty),
            };
            Link::new(Slice::new(*slice.live(), sources.iter().zip(schema).map(block).collect(), edit))
        })
        .collect();
    let zones = crate::tree::zones_of(&slices, schema.len());
    let mut group = RowGroup {
        stamp: edit.stamp,
        block_slots: old.block_slots,
        rows: old.rows,
        zones,
        slices,
        partitions: old.partitions.clone(),
        fences: old.fences.clone(),
        counters: old.counters.as_ref().and_then(|counters| counters.twin(shape)),
        numbers: old.numbers.clone(),
        digests: None,
        is_hot: old.is_hot,
        looks: AtomicU32::new(1),
        is_settled: false,
        settled: old.settled,
        upkept: None,
    };
    if group.partitions.is_empty() {
        group.digest(schema, edit);
    }
    group
}
