//! Relations about a stored table, given its name: how its rows are encoded (`entasis_blocks`,
//! `entasis_dictionaries`), how they are laid out (`entasis_partitions`), how often they are touched
//! (`entasis_workload`), and what upkeep has decided about that (`entasis_layout_decisions`). A morsel is a
//! row group; its rows are made when a worker takes it.

use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_functions::Argument;
use entasis_storage::{
    BinInfo, Compression, Decision, Frequencies, PartitionInfo, RowGroup, TableOptions, TableSnapshot,
};
use entasis_vector::{Chunk, DataType, Error, Field, Result, Schema, Selection, Value, Vector};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes the result rows for a row group, given by its number.
type RowsOf = fn(&TableSnapshot, usize, &RowGroup) -> Vec<Vec<Value>>;

/// A relation about the row groups of a table.
#[derive(Debug, Clone)]
struct Inspection {
    name: &'static str,
    snapshot: TableSnapshot,
    schema: Schema,
    rows_of: RowsOf,
}

/// `entasis_blocks`: a row for each column of each block.
pub(super) fn blocks(snapshot: TableSnapshot) -> Arc<dyn Relation> {
    let schema = schema(&[
        ("column_name", DataType::Varchar, false),
        ("row_group", DataType::Int64, false),
        ("block", DataType::Int64, false),
        ("partition", DataType::Int64, true),
        ("encoding", DataType::Varchar, false),
        ("rows", DataType::Int64, false),
        ("slots", DataType::Int64, false),
        ("nulls", DataType::Int64, false),
        ("bits_per_value", DataType::Float64, false),
        ("bytes", DataType::Int64, false),
        ("min", DataType::Varchar, true),
        ("max", DataType::Varchar, true),
        ("hot", DataType::Boolean, false),
        ("why", DataType::Varchar, false),
    ]);
    Arc::new(Inspection { name: "entasis_blocks", snapshot, schema, rows_of: blocks_of })
}

/// `entasis_dictionaries`: a row for each dictionary.
pub(super) fn dictionaries(snapshot: TableSnapshot) -> Arc<dyn Relation> {
    let schema = schema(&[
        ("column_name", DataType::Varchar, false),
        ("row_group", DataType::Int64, false),
        ("entries", DataType::Int64, false),
        ("bytes", DataType::Int64, false),
        ("blocks", DataType::Int64, false),
    ]);
    Arc::new(Inspection { name: "entasis_dictionaries", snapshot, schema, rows_of: dictionaries_of })
}

/// `entasis_partitions`: a row for each partition; none if the table has no layout key. Frequencies are
/// estimates, in which what is long ago counts less, and NULL unless the layout is `casper`.
pub(super) fn partitions(snapshot: TableSnapshot) -> Arc<dyn Relation> {
    let schema = schema(&[
        ("row_group", DataType::Int64, false),
        ("partition", DataType::Int64, false),
        ("first_key", DataType::Varchar, true),
        ("rows", DataType::Int64, false),
        ("slots", DataType::Int64, false),
        ("ghosts", DataType::Int64, false),
        ("wanted_ghosts", DataType::Int64, true),
        ("reads", DataType::Float64, true),
        ("inserts", DataType::Float64, true),
        ("updates", DataType::Float64, true),
        ("deletes", DataType::Float64, true),
    ]);
    Arc::new(Inspection { name: "entasis_partitions", snapshot, schema, rows_of: partitions_of })
}

/// `entasis_workload`: a row for each range of keys for which operations are counted.
pub(super) fn workload(snapshot: TableSnapshot) -> Arc<dyn Relation> {
    let mut columns = vec![
        ("row_group", DataType::Int64, false),
        ("key_range", DataType::Int64, false),
        ("first_key", DataType::Varchar, true),
        ("rows", DataType::Int64, false),
    ];
    columns.extend(Frequencies::NAMES.map(|name| (name, DataType::Float64, false)));
    let schema = schema(&columns);
    Arc::new(Inspection { name: "entasis_workload", snapshot, schema, rows_of: workload_of })
}

/// `entasis_layout_decisions`: a row for each row group: what upkeep did and why, and in layout `casper` what
/// it decided by the workload.
pub(super) fn layout_decisions(snapshot: TableSnapshot) -> Arc<dyn Relation> {
    let schema = schema(&[
        ("row_group", DataType::Int64, false),
        ("upkeep", DataType::Varchar, false),
        ("decision", DataType::Varchar, true),
        ("moved_rows", DataType::Int64, true),
        ("slots_before", DataType::Int64, true),
        ("slots_after", DataType::Int64, true),
        ("ghost_budget", DataType::Int64, true),
        ("cost_ns", DataType::Float64, true),
        ("saving_ns", DataType::Float64, true),
    ]);
    Arc::new(Inspection { name: "entasis_layout_decisions", snapshot, schema, rows_of: decisions_of })
}

/// The table that a call names, by its only argument.
pub(super) fn table_argument<'a>(name: &str, args: &'a [(Option<String>, Argument)]) -> Result<&'a str> {
    match args {
        [(None, Argument::Value(Value::Text(table), _))] => Ok(table),
        _ => Err(Error::input(format!("{name} takes the name of a table, as in {name}('orders')"))),
    }
}

fn schema(columns: &[(&str, DataType, bool)]) -> Schema {
    columns.iter().map(|&(name, ty, nullable)| Field { nullable, ..Field::new(name, ty) }).collect()
}

fn integer(number: usize) -> Value {
    Value::Integer(number as i128)
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn blocks_of(snapshot: &TableSnapshot, number: usize, group: &RowGroup) -> Vec<Vec<Value>> {
    let columns = snapshot.schema().iter().enumerate();
    let rows = columns.flat_map(|(column, field)| {
        (0..group.blocks()).map(move |block| {
            let info = group.block_info(column, block);
            let bound = |value: &Value| match value.is_null() || field.ty == DataType::Uuid {
                true => Value::Null,
                false => text(&value.display(field.ty).to_string()),
            };
            vec![
                text(&field.name),
                integer(number),
                integer(block),
                info.partition.map_or(Value::Null, integer),
                text(info.encoding),
                integer(info.rows),
                integer(info.slots),
                integer(info.zone.nulls as usize),
                Value::Float(info.bits_per_value),
                integer(info.bytes),
                bound(&info.zone.min),
                bound(&info.zone.max),
                Value::Boolean(info.is_hot),
                text(why(snapshot.table().options(), column, info.is_hot)),
            ]
        })
    });
    rows.collect()
}

/// Why the blocks of a column are encoded as they are.
fn why(options: &TableOptions, column: usize, is_hot: bool) -> &'static str {
    let own = options.column_compressions.iter().find(|(own, _)| *own == column);
    match own.map_or(options.compression, |(_, compression)| *compression) {
        _ if is_hot => "written since it was encoded",
        Compression::None => "values as they are, as declared",
        Compression::Auto if options.layout.is_keyed() => {
            "the smallest of the arrays that rows can be written to"
        }
        Compression::Auto => "the smallest of those that are read about as fast as any",
        _ => "as declared, where it is possible",
    }
}

fn dictionaries_of(snapshot: &TableSnapshot, number: usize, group: &RowGroup) -> Vec<Vec<Value>> {
    let columns = snapshot.schema().iter().enumerate();
    let rows = columns.flat_map(|(column, field)| {
        let row = |info: entasis_storage::inspect::DictionaryInfo| {
            let sizes = [info.entries, info.bytes, info.blocks].map(integer);
            [text(&field.name), integer(number)].into_iter().chain(sizes).collect()
        };
        group.dictionary_infos(column).into_iter().map(row).collect::<Vec<_>>()
    });
    rows.collect()
}

/// A key as users write it: one value, or several between parentheses.
fn key(snapshot: &TableSnapshot, key: Option<Vec<Value>>) -> Value {
    let Some(values) = key else { return Value::Null };
    let columns = snapshot.table().options().layout_key.iter();
    let shown =
        columns.zip(&values).map(|(&column, value)| value.display(snapshot.schema()[column].ty).to_string());
    let shown: Vec<String> = shown.collect();
    match &shown[..] {
        [one] => text(one),
        several => text(&format!("({})", several.join(", "))),
    }
}

fn partitions_of(snapshot: &TableSnapshot, number: usize, _: &RowGroup) -> Vec<Vec<Value>> {
    let row = |info: PartitionInfo| {
        let often = |of: fn(&Frequencies) -> f64| {
            info.frequencies.as_ref().map_or(Value::Null, |all| Value::Float(of(all)))
        };
        vec![
            integer(number),
            integer(info.partition),
            key(snapshot, info.first_key),
            integer(info.rows),
            integer(info.slots),
            integer(info.ghosts),
            info.wanted.map_or(Value::Null, integer),
            often(Frequencies::reads),
            often(Frequencies::inserts),
            often(Frequencies::updates),
            often(Frequencies::deletes),
        ]
    };
    snapshot.partitions(number).into_iter().map(row).collect()
}

fn workload_of(snapshot: &TableSnapshot, number: usize, _: &RowGroup) -> Vec<Vec<Value>> {
    let row = |info: BinInfo| {
        let first = [integer(number), integer(info.bin), key(snapshot, info.first_key), integer(info.rows)];
        first.into_iter().chain(info.frequencies.0.map(Value::Float)).collect()
    };
    snapshot.workload(number).into_iter().map(row).collect()
}

fn decisions_of(snapshot: &TableSnapshot, number: usize, _: &RowGroup) -> Vec<Vec<Value>> {
    let Some(reason) = snapshot.upkeep_reason(number) else { return Vec::new() };
    let decided = |decision: Decision| {
        [
            text(&decision.why),
            integer(decision.moved),
            integer(decision.slots.0),
            integer(decision.slots.1),
            integer(decision.budget),
            Value::Float(decision.cost),
            Value::Float(decision.saving),
        ]
    };
    let decision = snapshot.decision(number).map_or([const { Value::Null }; 7], decided);
    vec![[integer(number), text(&reason.to_string())].into_iter().chain(decision).collect()]
}

impl Relation for Inspection {
    fn name(&self) -> &str {
        self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        let blocks: usize = self.snapshot.row_groups().map(RowGroup::blocks).sum();
        Statistics { rows: Some((blocks * self.snapshot.schema().len()) as u64), columns: vec![] }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let columns = request.columns.iter().map(|&(_, index)| index).collect();
        let chunk_rows = context.settings.chunk_rows;
        Ok(Arc::new(Scan { of: self.clone(), columns, chunk_rows, next: Arc::default() }))
    }
}

#[derive(Clone)]
struct Scan {
    of: Inspection,
    columns: Arc<[usize]>,
    chunk_rows: usize,
    /// The next row group.
    next: Arc<AtomicUsize>,
}

impl Source for Scan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(Worker { scan: self.clone(), group: 0, rows: Vec::new().into_iter() }))
    }
}

struct Worker {
    scan: Scan,
    group: usize,
    /// The rows not yet output.
    rows: std::vec::IntoIter<Vec<Value>>,
}

impl SourceWorker for Worker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let Inspection { snapshot, schema, rows_of, .. } = &self.scan.of;
        while self.rows.as_slice().is_empty() {
            self.group = self.scan.next.fetch_add(1, Ordering::Relaxed);
            let Some(group) = snapshot.row_group(self.group) else { return Ok(false) };
            self.rows = rows_of(snapshot, self.group, group).into_iter();
        }
        let rows: Vec<Vec<Value>> = self.rows.by_ref().take(self.scan.chunk_rows).collect();
        chunk.reset(rows.len());
        let all = chunk.push_group(Selection::ALL);
        for &column in &*self.scan.columns {
            let values: Vec<Value> = rows.iter().map(|row| row[column].clone()).collect();
            chunk.push_column(Vector::of_values(schema[column].ty, &values)?, all);
        }
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.group as u64
    }
}
