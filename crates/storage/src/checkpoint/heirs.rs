//! Tables that a commit makes of others with other columns, as bytes of its record
//! (docs/design/file-format.md, "Heirs"): the log does not have their rows again.
//!
//! Such a record says what [`crate::TableSnapshot::with_columns`] was told. It is written only if the commit
//! has changed no row of either table, so that the rows are those which the old one has at this point of the
//! log.

use super::objects::Relation;
use super::source::{Source, push_list, push_maybe};
use crate::backend::bytes::{push_counted, push_varint};
use crate::definition::ObjectId;
use crate::record::{damaged, push_values, read_values};
use crate::table::Table;
use crate::tree::{ColumnSource, Shape};
use crate::value::Datum;
use entasis_vector::Result;
use std::sync::Arc;

/// Where the rows of a table come from, of whose columns nothing is known yet.
pub(super) struct Inherited<'a> {
    /// The number of the old table.
    pub(super) old: u64,
    /// For each column the old one; `None` for a constant.
    columns: Vec<Option<usize>>,
    /// The constants, as a row of their columns.
    constants: &'a [u8],
}

/// Where the columns of a table of this shape come from.
pub(super) fn encode(old: ObjectId, sources: &[ColumnSource], shape: &Shape) -> Vec<u8> {
    let (mut out, mut row) = (Vec::new(), Vec::new());
    push_varint(&mut out, old.number());
    push_list(&mut out, sources, |out, source| {
        push_maybe(out, source.old(), |out, column| push_varint(out, column as u64));
    });
    let values = sources.iter().zip(&shape.schema).filter_map(|(source, field)| match source {
        ColumnSource::Old(_) => None,
        ColumnSource::Constant(value) => Some(Datum::of_value(value, field.ty)),
    });
    push_values(shape, &constant_columns(sources.iter().map(ColumnSource::old)), values, &mut row);
    push_counted(&mut out, &row);
    out
}

/// Reads what [`encode`] wrote.
pub(super) fn decode<'a>(source: &mut Source<'a>) -> Result<Inherited<'a>> {
    let old = source.varint()?;
    let columns = source.list(|source| source.maybe(Source::size))?;
    Ok(Inherited { old, columns, constants: source.counted()? })
}

impl Inherited<'_> {
    /// The table of a relation, which is made of the newest version of `old`.
    pub(super) fn table(self, relation: Relation, old: &Arc<Table>) -> Result<Arc<Table>> {
        let Relation { id, name, schema, options } = relation;
        if self.columns.len() != schema.len() {
            return Err(damaged("a table with other columns than it says"));
        }
        let shape = Shape::new(name, schema, options);
        let constants = constant_columns(self.columns.iter().copied());
        let values = read_values(&shape, &constants, self.constants).map_err(damaged)?;
        let types = constants.iter().map(|&column| shape.schema[column].ty);
        let mut values = values.into_iter().zip(types).map(|(datum, ty)| datum.value(ty));
        let source = |column: Option<usize>| match column {
            Some(column) => Some(ColumnSource::Old(column)),
            None => values.next().map(ColumnSource::Constant),
        };
        let sources: Option<Vec<ColumnSource>> = self.columns.into_iter().map(source).collect();
        let made = sources.and_then(|sources| {
            let Shape { schema, options, .. } = shape;
            old.snapshot().with_columns_as(id, schema, &sources, options)
        });
        made.ok_or_else(|| damaged("a table that cannot be made of the one that it names"))
    }
}

fn constant_columns(columns: impl Iterator<Item = Option<usize>>) -> Vec<usize> {
    columns.enumerate().filter_map(|(column, old)| old.is_none().then_some(column)).collect()
}
