//! `COPY … TO`: a sink that writes a file.
//!
//! 1. Workers turn their chunks into text (CSV) or record batches (Parquet), without a lock, morsel by
//!    morsel.
//! 2. Under the lock, a finished part waits until no worker can produce an earlier one: each worker's current
//!    morsel number only grows, so parts up to the least of them may be written. So the rows in the file have
//!    the order of their source. Parquet row groups are encoded outside the lock ([`super::row_groups`]).
//! 3. Everything goes to a temporary file beside the target, which [`FileSink::commit`] renames. A statement
//!    that fails leaves neither a partial file nor a temporary one, and does not touch an older target.

use super::Format;
use super::csv::write::WriteOptions;
use super::option_values::{count_option, plain, text_option};
use super::row_groups::RowGroups;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use entasis_arrow::{chunk_to_batch, schema_to_arrow};
use entasis_engine::exec::{QueryContext, ResultSink, ResultWorker};
use entasis_vector::{Chunk, DataType, Error, Result, Schema, Value};
use parquet::basic::{BrotliLevel, Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of text after which a part is handed over before its morsel ends.
const PART_BYTES: usize = 1 << 20;
/// Rows after which a part of a Parquet file is handed over.
const PART_ROWS: usize = 16_384;

/// A sink that writes a file with columns `schema` at `path`; options by their SQL names, as in `COPY … TO
/// 'f' (HEADER false)`. The file appears at `path` with [`FileSink::commit`].
///
/// # Errors
/// Input, if an option is unknown or ill-typed; I/O, if the file cannot be created.
pub fn copy_to(
    path: &str,
    schema: &Schema,
    options: &[(String, Value)],
    context: &QueryContext,
) -> Result<Box<FileSink>> {
    let settings = Settings::new(path, options)?;
    let types: Vec<DataType> = schema.iter().map(|field| field.ty).collect();
    if settings.format == Format::Parquet && types.contains(&DataType::Interval) {
        return Err(Error::not_supported("INTERVAL in Parquet files").with_hint("cast it to VARCHAR"));
    }
    let temporary = Temporary::new(path)?;
    let file = File::create(&temporary.path).map_err(|e| Error::io(format!("'{path}'"), &e))?;
    let arrow: SchemaRef = Arc::new(schema_to_arrow(schema));
    let mut out = match settings.format {
        Format::Csv => Output::Csv(BufWriter::with_capacity(PART_BYTES, file)),
        Format::Parquet => {
            let properties = WriterProperties::builder().set_compression(settings.compression);
            Output::Parquet(Box::new(RowGroups::new(
                file,
                arrow.clone(),
                properties,
                settings.row_group_rows,
            )?))
        }
    };
    if settings.format == Format::Csv {
        let mut header = Vec::new();
        settings.csv.header(schema, &mut header);
        out.write(Part::Text(header), path)?;
    }
    let state = State { out: Some(out), waiting: BTreeMap::new(), current: Vec::new(), rows: 0 };
    let format = RowFormat { schema: schema.clone(), types, arrow, settings };
    let (path, context) = (path.to_owned(), context.clone());
    Ok(Box::new(FileSink(Arc::new(Shared { path, format, state: Mutex::new(state), temporary, context }))))
}

/// The options of `COPY … TO`.
#[derive(Debug)]
struct Settings {
    format: Format,
    csv: WriteOptions,
    compression: Compression,
    row_group_rows: usize,
}

impl Settings {
    fn new(path: &str, options: &[(String, Value)]) -> Result<Settings> {
        let mut format = Format::of_path(path.as_ref());
        let mut csv = WriteOptions::default();
        if path.to_ascii_lowercase().ends_with(".tsv") {
            csv.set("delim", &plain(&Value::Text("\\t".into())))?;
        }
        let mut compression = Compression::ZSTD(ZstdLevel::default());
        let mut row_group_rows = entasis_storage::ROW_GROUP_ROWS;
        // Options that only one format has.
        let mut of_format: Vec<(&str, Format)> = Vec::new();
        for (name, value) in options {
            let value = &plain(value);
            match name.to_ascii_lowercase().as_str() {
                "format" => format = Some(Format::of_name(text_option(name, value)?)?),
                "compression" | "codec" => {
                    compression = codec(text_option(name, value)?)?;
                    if compression != Compression::UNCOMPRESSED {
                        of_format.push((name, Format::Parquet));
                    }
                }
                "row_group_size" => {
                    row_group_rows = count_option(name, value)?.max(1);
                    of_format.push((name, Format::Parquet));
                }
                lower if csv.set(lower, value)? => of_format.push((name, Format::Csv)),
                _ => {
                    return Err(Error::input(format!("COPY TO has no option '{name}'")).with_hint(
                        "the options are format; header, delim, quote, nullstr, dateformat and timestampformat for CSV; \
                         compression and row_group_size for Parquet",
                    ));
                }
            }
        }
        let format = format.unwrap_or(Format::Csv);
        match of_format.iter().find(|(_, other)| *other != format) {
            Some((name, _)) => Err(Error::input(format!("COPY TO {format} has no option '{name}'"))),
            None => Ok(Settings { format, csv, compression, row_group_rows }),
        }
    }
}

fn codec(name: &str) -> Result<Compression> {
    match name.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => Ok(Compression::UNCOMPRESSED),
        "snappy" => Ok(Compression::SNAPPY),
        "gzip" => Ok(Compression::GZIP(Default::default())),
        "lz4" => Ok(Compression::LZ4_RAW),
        "zstd" => Ok(Compression::ZSTD(ZstdLevel::default())),
        "brotli" => Ok(Compression::BROTLI(BrotliLevel::default())),
        _ => Err(Error::input(format!("there is no compression '{name}'"))
            .with_hint("the compressions are zstd, snappy, gzip, brotli, lz4 and none")),
    }
}

/// A file beside the target that is removed unless it has been renamed.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn new(target: &str) -> Result<Temporary> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let target = Path::new(target);
        let Some(name) = target.file_name() else {
            return Err(Error::input(format!("'{}' is not the path of a file", target.display())));
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{}-{number}.tmp", name.to_string_lossy(), std::process::id());
        Ok(Temporary { path: target.with_file_name(name) })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a commit it no longer exists; otherwise nothing better can be done about a failure here.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes the rows that are pushed to it to a file. Made by [`copy_to`].
pub struct FileSink(Arc<Shared>);

struct Shared {
    path: String,
    format: RowFormat,
    state: Mutex<State>,
    temporary: Temporary,
    context: QueryContext,
}

/// How rows become parts.
struct RowFormat {
    schema: Schema,
    types: Vec<DataType>,
    arrow: SchemaRef,
    settings: Settings,
}

struct State {
    /// Taken out by the commit.
    out: Option<Output>,
    /// Parts by morsel that wait for earlier ones.
    waiting: BTreeMap<u64, Vec<Part>>,
    /// The current morsel of each worker; `None` once it has finished.
    current: Vec<Option<u64>>,
    rows: u64,
}

enum Output {
    Csv(BufWriter<File>),
    Parquet(Box<RowGroups>),
}

/// Rows of one morsel, ready to be written.
enum Part {
    Text(Vec<u8>),
    Batch(RecordBatch),
}

impl Output {
    fn write(&mut self, part: Part, path: &str) -> Result<()> {
        match (self, part) {
            (Output::Csv(out), Part::Text(text)) => {
                out.write_all(&text).map_err(|e| Error::io(format!("'{path}'"), &e))
            }
            (Output::Parquet(out), Part::Batch(batch)) => {
                out.add(batch).map_err(|e| e.with_context(format!("'{path}'")))
            }
            _ => Err(Error::internal("a part of another format than the file's")),
        }
    }

    fn finish(self, path: &str) -> Result<()> {
        match self {
            Output::Csv(mut out) => out.flush().map_err(|e| Error::io(format!("'{path}'"), &e)),
            Output::Parquet(out) => out.finish().map_err(|e| e.with_context(format!("'{path}'"))),
        }
    }
}

impl FileSink {
    /// Completes the file and gives it its name. Returns its number of rows.
    ///
    /// # Errors
    /// I/O, if the rest cannot be written or the file cannot be renamed; then there is no file.
    pub fn commit(&self) -> Result<u64> {
        let mut state = self.0.lock();
        self.0.write_ready(&mut state)?;
        if let Some(Output::Parquet(out)) = &mut state.out {
            out.complete().map_err(|e| e.with_context(format!("'{}'", self.0.path)))?;
        }
        drop(state);
        self.0.encode_complete()?;
        let mut state = self.0.lock();
        let out = state.out.take().ok_or_else(|| Error::internal("the file has been committed before"))?;
        out.finish(&self.0.path)?;
        std::fs::rename(&self.0.temporary.path, &self.0.path)
            .map_err(|e| Error::io(format!("'{}'", self.0.path), &e))?;
        Ok(state.rows)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all parts that no earlier part can precede any more.
    fn write_ready(&self, state: &mut State) -> Result<()> {
        let least = state.current.iter().flatten().min().copied().unwrap_or(u64::MAX);
        while let Some(entry) = state.waiting.first_entry().filter(|entry| *entry.key() <= least) {
            let out =
                state.out.as_mut().ok_or_else(|| Error::internal("the file has been committed before"))?;
            for part in entry.remove() {
                out.write(part, &self.path)?;
            }
        }
        Ok(())
    }

    /// Encodes row groups while there are complete ones.
    fn encode_complete(&self) -> Result<()> {
        loop {
            let (group, encoder) = match &mut self.lock().out {
                Some(Output::Parquet(out)) => match out.take() {
                    Some(taken) => taken,
                    None => return Ok(()),
                },
                _ => return Ok(()),
            };
            let columns = encoder.encode(&group, &self.context)?;
            if let Some(Output::Parquet(out)) = &mut self.lock().out {
                out.append(group.number, columns).map_err(|e| e.with_context(format!("'{}'", self.path)))?;
            }
        }
    }
}

impl ResultSink for FileSink {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        let mut state = self.0.lock();
        state.current.push(Some(0));
        Ok(Box::new(FileWorker {
            shared: self.0.clone(),
            number: state.current.len() - 1,
            morsel: 0,
            text: Vec::new(),
            parts: Vec::new(),
            rows: 0,
            kept_rows: 0,
        }))
    }
}

struct FileWorker {
    shared: Arc<Shared>,
    number: usize,
    morsel: u64,
    text: Vec<u8>,
    parts: Vec<Part>,
    /// Rows that have not been handed over, and the number of them that are in `parts`.
    rows: u64,
    kept_rows: usize,
}

impl FileWorker {
    /// Moves the parts to the shared state, and records that this worker is now at morsel `next`.
    fn give(&mut self, next: Option<u64>, state: &mut State) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text)));
        }
        if !self.parts.is_empty() {
            state.waiting.entry(self.morsel).or_default().append(&mut self.parts);
        }
        state.rows += std::mem::take(&mut self.rows);
        state.current[self.number] = next;
        self.kept_rows = 0;
    }

    /// Hands the parts over, and writes what can be written.
    fn hand_over(&mut self, next: Option<u64>) -> Result<()> {
        let shared = self.shared.clone();
        {
            let mut state = shared.lock();
            self.give(next, &mut state);
            shared.write_ready(&mut state)?;
        }
        shared.encode_complete()
    }
}

impl ResultWorker for FileWorker {
    fn start_morsel(&mut self, morsel: u64) {
        if morsel != self.morsel {
            // What can be written now is left to the next push: writing can fail, and this call cannot.
            let shared = self.shared.clone();
            self.give(Some(morsel), &mut shared.lock());
            self.morsel = morsel;
        }
    }

    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let format = &self.shared.format;
        self.rows += chunk.len() as u64;
        match format.settings.format {
            Format::Csv => format.settings.csv.rows(chunk, &format.schema, &mut self.text),
            Format::Parquet => {
                self.parts.push(Part::Batch(chunk_to_batch(chunk, &format.arrow, &format.types)?));
                self.kept_rows += chunk.len();
            }
        }
        if self.text.len() >= PART_BYTES || self.kept_rows >= PART_ROWS {
            self.hand_over(Some(self.morsel))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.hand_over(None)
    }
}

impl Drop for FileWorker {
    fn drop(&mut self) {
        // A worker that stops early, after an error elsewhere, must not hold up the others' parts.
        self.shared.lock().current[self.number] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_files::{Directory, read};
    use crate::files::{Options, open};
    use entasis_vector::{Field, PhysicalType, Selection, Vector};

    fn schema() -> Schema {
        let decimal = DataType::Decimal { precision: 9, scale: 2 };
        vec![
            Field::new("n", DataType::Int32),
            Field::new("a text", DataType::Varchar),
            Field::new("d", decimal),
            Field::new("day", DataType::Date),
        ]
    }

    fn chunk(first: i32, rows: usize) -> Chunk {
        let mut chunk = Chunk::new();
        chunk.reset(rows);
        let group = chunk.push_group(Selection::ALL);
        let numbers: Vec<i32> = (first..first + rows as i32).collect();
        let texts = ["plain", "with, comma", "with \"quote\"", "two\nlines", "a b", "ü"];
        let texts: Vec<Value> = (0..rows)
            .map(|i| if i % 5 == 4 { Value::Null } else { Value::Text(texts[i % texts.len()].into()) })
            .collect();
        chunk.push_column(Vector::from_slice(&numbers), group);
        chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).unwrap(), group);
        chunk.push_column(
            Vector::from_slice(&numbers.iter().map(|n| i64::from(*n) * 7).collect::<Vec<_>>()),
            group,
        );
        chunk.push_column(Vector::from_slice(&numbers), group);
        chunk
    }

    #[test]
    fn what_two_workers_write_is_read_back_in_order() {
        let directory = Directory::new();
        let small_groups = [("row_group_size".to_owned(), Value::Integer(700))];
        for (name, options) in [("a.parquet", &small_groups[..]), ("b.parquet", &[]), ("a.csv", &[])] {
            let path = directory.path(name);
            let sink = copy_to(&path, &schema(), options, &QueryContext::default()).unwrap();
            let mut workers = [sink.worker().unwrap(), sink.worker().unwrap()];
            // Worker 1 is far ahead of worker 0.
            for (worker, morsels) in [(1, [1, 2, 5]), (0, [0, 3, 4])] {
                for morsel in morsels {
                    workers[worker].start_morsel(morsel);
                    for part in 0..3 {
                        workers[worker].push(&chunk(morsel as i32 * 3000 + part * 1000, 1000)).unwrap();
                    }
                }
                workers[worker].finish().unwrap();
            }
            assert!(!std::fs::exists(&path).unwrap(), "nothing is there before the commit");
            assert_eq!(sink.commit().unwrap(), 18_000);
            assert_eq!(
                directory.names().len(),
                ["a.parquet", "b.parquet", "a.csv"].iter().position(|n| *n == name).unwrap() + 1
            );
            let relation = open(&path, &Options::default()).unwrap();
            assert_eq!(relation.schema()[1].name.as_ref(), "a text");
            let rows = read(&*relation, vec![], 2048).unwrap();
            assert_eq!(rows.len(), 18_000);
            assert!(rows.iter().enumerate().all(|(i, row)| row[0] == i.to_string()));
            assert_eq!(rows[2][1], "with \"quote\"");
            assert_eq!(rows[3][1..], ["two\nlines", "0.21", "1970-01-04"]);
            assert_eq!(rows[4][1], "NULL");
        }
    }

    #[test]
    fn a_failed_copy_leaves_nothing() {
        let directory = Directory::new();
        let path = directory.write("a.csv", "old");
        let sink = copy_to(&path, &schema(), &[], &QueryContext::default()).unwrap();
        let mut worker = sink.worker().unwrap();
        worker.push(&chunk(0, 10)).unwrap();
        drop((worker, sink));
        assert_eq!(directory.names(), ["a.csv"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        let error =
            copy_to(&directory.path("none/a.csv"), &schema(), &[], &QueryContext::default()).err().unwrap();
        assert!(error.message().contains("none/a.csv"), "{error}");
        let interval = vec![Field::new("i", DataType::Interval)];
        assert!(copy_to(&directory.path("i.parquet"), &interval, &[], &QueryContext::default()).is_err());
    }

    #[test]
    fn options_say_how_text_is_written() {
        let directory = Directory::new();
        let path = directory.path("a.txt");
        let options = [
            ("header".to_owned(), Value::Boolean(false)),
            ("delim".to_owned(), Value::Text("|".into())),
            ("nullstr".to_owned(), Value::Text("NA".into())),
        ];
        let schema = vec![Field::new("s", DataType::Varchar), Field::new("b", DataType::Boolean)];
        let sink = copy_to(&path, &schema, &options, &QueryContext::default()).unwrap();
        let mut chunk = Chunk::new();
        chunk.reset(3);
        let group = chunk.push_group(Selection::from_indices(&[2, 1, 0]));
        let texts = [Value::Null, Value::Text("NA".into()), Value::Text("a|b".into())];
        chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).unwrap(), group);
        chunk.push_column(Vector::constant(PhysicalType::Bool, &Value::Boolean(true)).unwrap(), group);
        let mut worker = sink.worker().unwrap();
        worker.push(&chunk).unwrap();
        worker.finish().unwrap();
        assert_eq!(sink.commit().unwrap(), 3);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "\"a|b\"|true\n\"NA\"|true\nNA|true\n");
        assert!(
            copy_to(&path, &schema, &[("headr".to_owned(), Value::Null)], &QueryContext::default()).is_err()
        );
    }
}
