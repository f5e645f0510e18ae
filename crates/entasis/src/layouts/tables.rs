//! `entasis_tables`: the tables of the current database, and what was chosen for each: its layout and why,
//! partitions, ghosts, bounds, compression.

use super::chosen::Chosen;
use super::words::time;
use crate::catalog::listed;
use entasis_engine::relation::{Definition, Relation};
use entasis_storage::TableSnapshot;
use entasis_vector::{DataType, Value};
use std::sync::Arc;

/// A table: its name, its rows and what it declares.
pub(crate) type NamedTable = (String, TableSnapshot, Arc<Definition>);

/// The relation of a call: a row for each of some tables, in their order.
pub(crate) fn tables(tables: &[NamedTable]) -> Arc<dyn Relation> {
    let columns = [
        ("table_name", DataType::Varchar),
        ("rows", DataType::Int64),
        ("bytes", DataType::Int64),
        ("layout", DataType::Varchar),
        ("layout_key", DataType::Varchar),
        ("why", DataType::Varchar),
        ("partitions", DataType::Int64),
        ("ghost", DataType::Float64),
        ("read_sla", DataType::Varchar),
        ("update_sla", DataType::Varchar),
        ("compression", DataType::Varchar),
    ];
    listed("entasis_tables", &columns, tables.iter().map(row).collect())
}

fn row((name, snapshot, definition): &NamedTable) -> Vec<Value> {
    let options = snapshot.table().options();
    let (chosen, bounds) = (Chosen::of(definition, snapshot), definition.layout.sla_bounds());
    let is_keyed = options.layout.is_keyed();
    let text = |text: &str| Value::Text(text.into());
    let integer = |number: usize| Value::Integer(number as i128);
    let maybe = |shown: Option<String>| shown.map_or(Value::Null, |shown| text(&shown));
    let keyed = |value: Value| if is_keyed { value } else { Value::Null };
    vec![
        text(name),
        integer(snapshot.rows() as usize),
        integer(snapshot.bytes()),
        text(chosen.layout),
        maybe(chosen.key),
        text(&chosen.why),
        keyed(integer(options.partitions)),
        keyed(Value::Float(options.ghost)),
        maybe(bounds.read.map(time)),
        maybe(bounds.update.map(time)),
        text(options.compression.name()),
    ]
}
