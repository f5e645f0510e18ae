//! Small databases to begin with: some that are made here, and files that somebody keeps.

use entasis_storage::backend::MemoryBackend;
use entasis_storage::checkpoint::{Checkpointed, Images, Moment, checkpoint};
use entasis_storage::definition::{Counting, Definition, Key, KeyKind, Sequence};
use entasis_storage::file::{DataFile, DatabaseId, State};
use entasis_storage::{
    Catalog, Compression, Datum, Entry, IfExists, Table, TableEntry, TableOptions, View, index,
};
use entasis_vector::{DataType, Field, Schema};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a segment of the logs here.
pub const LOG_SEGMENT: u32 = 2048;

/// A database.
pub struct Sample {
    /// Its id.
    pub id: DatabaseId,
    /// Its data file.
    pub file: Vec<u8>,
}

/// A table of two columns: what a log is beside.
pub fn small() -> Sample {
    saved(catalog(vec![Entry::Table(Arc::new(TableEntry::plain(numbers("t", TableOptions::default(), 5))))]))
}

/// What is made here: a database without anything, a small one, one with everything, and one for each
/// encoding that can be forced.
pub fn made() -> Vec<Sample> {
    let mut samples = vec![saved(catalog(Vec::new())), small(), everything()];
    for (_, compression) in Compression::NAMES {
        let table = types(Table::with_options(
            "t",
            schema(),
            tiny(TableOptions { compression, ..TableOptions::default() }),
        ));
        samples.push(saved(catalog(vec![Entry::Table(Arc::new(TableEntry::plain(table)))])));
    }
    samples
}

/// The database files below a directory.
pub fn kept(directory: &Path) -> Vec<Sample> {
    let mut samples = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory) else { return samples };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.extension().is_some_and(|end| end == "entasis" || end == "db") {
            true => {
                let Ok(file) = std::fs::read(&path) else { continue };
                let id = file.get(16..32).and_then(|id| id.try_into().ok()).map(DatabaseId);
                samples.extend(id.map(|id| Sample { id, file }));
            }
            false if path.is_dir() => samples.extend(kept(&path)),
            false => {}
        }
    }
    samples
}

fn catalog(entries: Vec<Entry>) -> Catalog {
    let catalog = Catalog::new();
    let base = catalog.version();
    let mut names = base.clone();
    for entry in entries {
        names.add(entry, IfExists::Fail).expect("names are new");
    }
    catalog.publish(&base, &names, &[], &mut || true).expect("nobody else is there");
    catalog
}

fn saved(catalog: Catalog) -> Sample {
    let (id, backend) = (DatabaseId(*b"0123456789abcdef"), MemoryBackend::new("sample"));
    let file = DataFile::create(Arc::new(backend.clone()), id, LOG_SEGMENT).expect("memory does not fail");
    let moment = Moment::take(&catalog, &Images::default(), || 0);
    checkpoint(&file, &moment, &Checkpointed::default(), State::Closed).expect("memory does not fail");
    drop(file);
    Sample { id, file: backend.bytes() }
}

/// Blocks and row groups of few slots, so that few rows have several.
fn tiny(options: TableOptions) -> TableOptions {
    TableOptions { block_slots: 32, group_slots: 128, ghost: 0.1, ..options }
}

fn numbers(name: &str, options: TableOptions, rows: i128) -> Arc<Table> {
    let schema = vec![
        Field { nullable: false, ..Field::new("k", DataType::Int64) },
        Field::new("v", DataType::Varchar),
    ];
    let table = Table::with_options(name, schema, tiny(options));
    for i in 0..rows {
        table
            .write()
            .insert(&[Datum::Integer(i * 7 % 101), Datum::Bytes(format!("text {}", i % 5).as_bytes())]);
    }
    table
}

fn schema() -> Schema {
    let decimal = |precision| DataType::Decimal { precision, scale: 3 };
    [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt16,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        decimal(12),
        decimal(30),
        DataType::Varchar,
        DataType::Blob,
        DataType::Date,
        DataType::Timestamp,
        DataType::Interval,
        DataType::Uuid,
    ]
    .into_iter()
    .enumerate()
    .map(|(number, ty)| Field::new(format!("c{number}"), ty))
    .collect()
}

/// Some rows of all types; encoded, as upkeep leaves them.
fn types(table: Arc<Table>) -> Arc<Table> {
    for i in 0..60i128 {
        let text = format!("the same beginning {}", i % 13);
        let row: Vec<Datum<'_>> = table
            .schema()
            .iter()
            .enumerate()
            .map(|(column, field)| match field.ty {
                _ if i % 11 == column as i128 => Datum::Null,
                DataType::Boolean => Datum::Integer(i % 2),
                DataType::Float32 | DataType::Float64 => Datum::Float(i as f64 / 4.0),
                DataType::Varchar | DataType::Blob => Datum::Bytes(text.as_bytes()),
                DataType::Interval => Datum::Interval(Default::default()),
                DataType::Int8 => Datum::Integer(i),
                DataType::Int64 => Datum::Integer(if i == 40 { 1 << 50 } else { 3 * i }),
                _ => Datum::Integer(i / 6 * 100),
            })
            .collect();
        table.write().insert(&row);
    }
    for _ in 0..3 {
        table.upkeep(Duration::from_secs(1));
    }
    table
}

/// Tables by key and in the order of insertion, an index, a view, a sequence, a schema.
pub fn everything() -> Sample {
    let key =
        |name: &str, columns: &[usize], kind| Key { name: name.into(), columns: columns.to_vec(), kind };
    let definition = Definition {
        keys: vec![key("pk", &[0], KeyKind::Primary), key("ix", &[1], KeyKind::Index)],
        ..Definition::default()
    };
    let keyed = numbers("keyed", TableOptions::keyed(vec![0]), 90);
    let indexes: Vec<_> =
        definition.keys.iter().map(|key| index::index_table(key, keyed.schema(), keyed.options())).collect();
    let snapshot = keyed.snapshot();
    for id in snapshot.row_ids() {
        for (key, index) in definition.keys.iter().zip(&indexes) {
            let columns = index::index_columns(key, keyed.options());
            let row: Vec<_> = columns.into_iter().map(|column| snapshot.datum(id, column)).collect();
            index.iter().for_each(|index| _ = index.write().insert(&row));
        }
    }
    let view = View {
        name: "v".into(),
        sql: "SELECT k FROM keyed".into(),
        schema: vec![Field::new("k", DataType::Int64)],
        needs: vec!["keyed".into()],
    };
    let counting = Counting { start: 1, increment: 1, min: 1, max: 9, cycle: true };
    let by_text = numbers("by_text", TableOptions::keyed(vec![1, 0]), 50);
    let definition = Arc::new(definition);
    saved(catalog(vec![
        Entry::Schema("other.".into()),
        Entry::Table(Arc::new(TableEntry {
            name: "keyed".into(),
            table: keyed.clone(),
            definition,
            indexes,
        })),
        Entry::Table(Arc::new(TableEntry::plain(by_text))),
        Entry::Table(Arc::new(TableEntry::plain(types(Table::with_options(
            "all",
            schema(),
            tiny(TableOptions::default()),
        ))))),
        Entry::Table(Arc::new(TableEntry::plain(Table::new("empty", schema())))),
        Entry::View(Arc::new(view)),
        Entry::Sequence(Arc::new(Sequence::new("s", counting))),
    ]))
}
