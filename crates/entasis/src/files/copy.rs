//! `COPY … TO`: a sink that writes a file.
//!
//! 1. Workers turn their chunks into text (CSV) or record batches (Parquet), without a lock, morsel by
//!    morsel.
//! 2. The rows of a long morsel become Parquet row groups of their own, which the worker encodes at once: so
//!    all workers encode, whichever of them is behind. Short morsels are joined to row groups when they are
//!    written, and encoded outside the lock ([`super::row_groups`]).
//! 3. Under the lock, a finished part waits until no worker can produce an earlier one: each worker's current
//!    morsel number only grows, so parts up to the least of them may be written. So the rows in the file have
//!    the order of their source. If many bytes wait, whoever would add to them waits, too, for its turn: the
//!    worker of the least morsel never does.
//! 4. Everything goes to a temporary file beside the target, which [`FileSink::commit`] renames ([`Target`]
//!    says when it does not). A statement that fails leaves neither a partial file nor a temporary one, and
//!    does not touch an older target.

use super::Format;
use super::codec::{Codec, Compressor};
use super::csv::text::{PART_BYTES, Text};
use super::csv::write::WriteOptions;
use super::json::JsonRows;
use super::option_values::{count_option, flag_option, plain, text_option};
use super::pipe::LOOK_EVERY;
use super::row_groups::{Batch, Encoded, RowGroups, group_bytes, split};
use super::strings::string_bytes;
use super::target::{Target, TargetFile};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use entasis_arrow::{chunk_to_batch, schema_to_arrow, vector_to_array};
use entasis_engine::exec::{MemoryBudget, QueryContext, Reservation, ResultSink, ResultWorker};
use entasis_vector::{Chunk, DataType, Error, ErrorKind, Result, Schema, Value};
use parquet::basic::{BrotliLevel, Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Whose memory it is, in the words of an error.
const OWNER: &str = "a file being written";
/// The part of all memory that parts may take that wait for earlier ones.
const WAITING_SHARE: usize = 8;
/// Bytes of the strings of rows that become a record batch together.
const BATCH_BYTES: usize = 1 << 20;

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
    let path = if path == "-" { "/dev/stdout" } else { path };
    let settings = Settings::new(path, schema, options)?;
    let types: Vec<DataType> = schema.iter().map(|field| field.ty).collect();
    if settings.format == Format::Parquet && types.iter().any(|ty| ty.contains(DataType::Interval)) {
        return Err(Error::not_supported("INTERVAL in Parquet files").with_hint("cast it to VARCHAR"));
    }
    let (target, file) = Target::open(path, &context.cancel)?;
    let most_bytes = group_bytes(context.memory.limit());
    let arrow: SchemaRef = Arc::new(schema_to_arrow(schema));
    let mut out = match settings.format {
        Format::Csv | Format::Json => {
            let file = BufWriter::with_capacity(PART_BYTES, file);
            let out = settings.codec.writer(file).map_err(|e| Error::io(format!("'{path}'"), &e))?;
            Output::Text(Box::new(out))
        }
        Format::Parquet => {
            let properties = WriterProperties::builder().set_compression(settings.compression);
            Output::Parquet(Box::new(RowGroups::new(
                file,
                arrow.clone(),
                properties,
                (settings.row_group_rows, most_bytes),
            )?))
        }
    };
    let mut header = Text::default();
    let mut left_out = 0;
    match settings.format {
        Format::Csv => settings.csv.header(schema, &mut header),
        Format::Json => {
            header.plain(settings.json.begin().as_bytes());
            left_out = settings.json.first();
        }
        Format::Parquet => {}
    }
    if header.len() > 0 {
        out.write(Part::Text(header, None), &mut 0, path)?;
    }
    let state = State {
        out: Some(out),
        left_out,
        waiting: BTreeMap::new(),
        waiting_bytes: 0,
        current: Vec::new(),
        spare: Vec::new(),
        rows: 0,
    };
    Ok(Box::new(FileSink(Arc::new(Shared {
        path: path.to_owned(),
        format: RowFormat { schema: schema.clone(), types, arrow, settings, most_bytes },
        state: Mutex::new(state),
        turn: Condvar::new(),
        target,
        memory: MemoryBudget::part_of(&context.memory, OWNER),
        context: context.clone(),
    }))))
}

/// The options of `COPY … TO`.
#[derive(Debug)]
struct Settings {
    format: Format,
    csv: WriteOptions,
    json: JsonRows,
    /// Of CSV and JSON.
    codec: Codec,
    /// Of the pages of Parquet.
    compression: Compression,
    row_group_rows: usize,
}

impl Settings {
    fn new(path: &str, schema: &Schema, options: &[(String, Value)]) -> Result<Settings> {
        let plain_name = Codec::uncompressed_name(path.as_ref());
        let mut format = None;
        let mut csv = WriteOptions::default();
        if super::extension(&plain_name).as_deref() == Some("tsv") {
            csv.set("delim", &plain(&Value::Text("\\t".into())))?;
        }
        let mut compression = None;
        // Lines of objects can be appended to, but a file called .json is one value.
        let mut array = super::extension(&plain_name).as_deref() == Some("json");
        let mut row_group_rows = entasis_storage::ROW_GROUP_ROWS;
        // Options that only one format has.
        let mut of_format: Vec<(&str, Format)> = Vec::new();
        for (name, value) in options {
            let value = &plain(value);
            match name.to_ascii_lowercase().as_str() {
                "format" => format = Some(Format::of_name(text_option(name, value)?)?),
                "compression" | "codec" => compression = Some((name, value.clone())),
                "array" => {
                    array = flag_option(name, value)?;
                    of_format.push((name, Format::Json));
                }
                "row_group_size" => {
                    row_group_rows = count_option(name, value)?.max(1);
                    of_format.push((name, Format::Parquet));
                }
                lower if csv.set(lower, value)? => of_format.push((name, Format::Csv)),
                _ => {
                    return Err(Error::input(format!("COPY TO has no option '{name}'")).with_hint(
                        "the options are format; header, delim, quote, nullstr, dateformat and timestampformat for CSV; \
                         row_group_size for Parquet; array for JSON; \
                         compression",
                    ));
                }
            }
        }
        let format = format.map_or_else(|| Format::promised(path.as_ref()), Ok)?;
        let mut codec = Codec::Plain;
        let mut of_pages = Compression::ZSTD(ZstdLevel::default());
        match (format, compression) {
            (Format::Csv | Format::Json, option) => {
                let given = option.map(|(name, value)| Codec::of_option(name, &value)).transpose()?.flatten();
                codec = given.unwrap_or_else(|| Codec::of_path(path.as_ref()));
            }
            (Format::Parquet, Some((name, value))) => of_pages = page_codec(text_option(name, &value)?)?,
            (Format::Parquet, None) => {}
        }
        match of_format.iter().find(|(_, other)| *other != format) {
            Some((name, _)) => Err(Error::input(format!("COPY TO {format} has no option '{name}'"))),
            None => Ok(Settings {
                json: JsonRows::new(schema, array),
                format,
                csv,
                codec,
                compression: of_pages,
                row_group_rows,
            }),
        }
    }
}

fn page_codec(name: &str) -> Result<Compression> {
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

/// Writes the rows that are pushed to it to a file. Made by [`copy_to`].
pub struct FileSink(Arc<Shared>);

struct Shared {
    path: String,
    format: RowFormat,
    state: Mutex<State>,
    /// Tells workers that wait that others have gone on.
    turn: Condvar,
    target: Target,
    /// The memory of rows on their way to the file.
    memory: Arc<MemoryBudget>,
    context: QueryContext,
}

/// How rows become parts.
struct RowFormat {
    schema: Schema,
    types: Vec<DataType>,
    arrow: SchemaRef,
    settings: Settings,
    /// The most bytes of rows that become a row group.
    most_bytes: usize,
}

struct State {
    /// Taken out by the commit.
    out: Option<Output>,
    /// Bytes at the start of the next text that are not written: the comma before the first row.
    left_out: usize,
    /// Parts by morsel that wait for earlier ones.
    waiting: BTreeMap<u64, Vec<Part>>,
    /// Their bytes.
    waiting_bytes: usize,
    /// The current morsel of each worker; `None` once it has finished.
    current: Vec<Option<u64>>,
    /// Buffers of text that has been written, at most one for each worker.
    spare: Vec<Text>,
    rows: u64,
}

impl State {
    /// The morsel whose parts may be written, as those of all before it.
    fn least(&self) -> u64 {
        self.current.iter().flatten().min().copied().unwrap_or(u64::MAX)
    }
}

enum Output {
    Text(Box<Compressor<BufWriter<TargetFile>>>),
    Parquet(Box<RowGroups>),
}

/// Rows of one morsel, ready to be written.
enum Part {
    /// A text, with its memory if it is to wait.
    Text(Text, Option<Reservation>),
    Batch(Batch),
    /// A row group, encoded.
    Group(Encoded),
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Part::Text(text, _) => text.memory(),
            Part::Batch(batch) => batch.bytes(),
            Part::Group(group) => group.bytes(),
        }
    }
}

impl Output {
    /// Writes a part, without the first bytes of a text that are left out. Returns the text, of which only
    /// the buffer is of use.
    fn write(&mut self, part: Part, left_out: &mut usize, path: &str) -> Result<Option<Text>> {
        let in_file = |e: Error| e.with_context(format!("'{path}'"));
        match (self, part) {
            (Output::Text(out), Part::Text(text, _)) => {
                out.write_all(&text.as_bytes()[std::mem::take(left_out)..])
                    .map_err(|e| Error::io(format!("'{path}'"), &e))?;
                Ok(Some(text))
            }
            (Output::Parquet(out), Part::Batch(batch)) => out.add(batch).map(|()| None).map_err(in_file),
            (Output::Parquet(out), Part::Group(group)) => {
                out.add_encoded(group).map(|()| None).map_err(in_file)
            }
            _ => Err(Error::internal("a part of another format than the file's")),
        }
    }

    fn finish(self, end: &str, path: &str) -> Result<()> {
        match self {
            Output::Text(mut out) => {
                let ended = out.write_all(end.as_bytes()).and_then(|()| (*out).finish());
                ended.and_then(|mut out| out.flush()).map_err(|e| Error::io(format!("'{path}'"), &e))
            }
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
        self.0.interruptible(|| self.finish())
    }

    fn finish(&self) -> Result<u64> {
        let mut state = self.0.lock();
        self.0.write_ready(&mut state)?;
        if let Some(Output::Parquet(out)) = &mut state.out {
            out.complete().map_err(|e| e.with_context(format!("'{}'", self.0.path)))?;
        }
        drop(state);
        self.0.encode_complete()?;
        let mut state = self.0.lock();
        let out = state.out.take().ok_or_else(|| Error::internal("the file has been committed before"))?;
        let settings = &self.0.format.settings;
        out.finish(if settings.format == Format::Json { settings.json.end() } else { "" }, &self.0.path)?;
        // Somebody may have made a database there meanwhile.
        self.0.target.refuse_database()?;
        self.0.target.commit().map_err(|e| Error::io(format!("'{}'", self.0.path), &e))?;
        Ok(state.rows)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `write`. If that failed because waiting for a reader was interrupted, it is that error.
    fn interruptible<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        write().map_err(|error| match error.kind() {
            ErrorKind::Io if self.context.cancel.is_raised() => Error::interrupted(),
            _ => error,
        })
    }

    /// Waits until `parts` of `morsel` may be written or added to those that wait, and reserves their memory
    /// if they are to wait.
    fn wait_for_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        morsel: u64,
        parts: &mut [Part],
    ) -> Result<MutexGuard<'a, State>> {
        let bytes: usize = parts.iter().map(Part::bytes).sum();
        let most = self.memory.free().saturating_add(state.waiting_bytes) / WAITING_SHARE;
        while bytes > 0 && morsel > state.least() {
            if state.waiting_bytes + bytes <= most && self.reserve(parts).is_ok() {
                break;
            }
            let waited = self.turn.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            self.context.check()?;
        }
        Ok(state)
    }

    /// Reserves the memory of texts; other parts have theirs.
    fn reserve(&self, parts: &mut [Part]) -> Result<()> {
        for part in parts {
            if let Part::Text(text, memory) = part {
                let mut own = Reservation::new(&self.memory);
                own.resize(text.memory())?;
                *memory = Some(own);
            }
        }
        Ok(())
    }

    /// Writes all parts that no earlier part can precede any more.
    fn write_ready(&self, state: &mut State) -> Result<()> {
        let least = state.least();
        while let Some(entry) = state.waiting.first_entry().filter(|entry| *entry.key() <= least) {
            let parts = entry.remove();
            let State { out, left_out, spare, current, waiting_bytes, .. } = &mut *state;
            let out = out.as_mut().ok_or_else(|| Error::internal("the file has been committed before"))?;
            for part in parts {
                *waiting_bytes -= part.bytes();
                let text = out.write(part, left_out, &self.path)?;
                if spare.len() < current.len() {
                    spare.extend(text);
                }
            }
        }
        Ok(())
    }

    /// The encoded row group of `batches`.
    fn encode(&self, batches: Vec<Batch>) -> Result<Part> {
        let encoder = match &mut self.lock().out {
            Some(Output::Parquet(out)) => out.encoder(&batches),
            _ => Err(Error::internal("row groups of another format than Parquet")),
        };
        let in_file = |e: Error| e.with_context(format!("'{}'", self.path));
        encoder.map_err(in_file)?.encode(&batches, &self.memory, &self.context).map(Part::Group)
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
            let encoded = encoder.encode(&group.batches, &self.memory, &self.context)?;
            if let Some(Output::Parquet(out)) = &mut self.lock().out {
                out.append(group.number, encoded).map_err(|e| e.with_context(format!("'{}'", self.path)))?;
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
            begun: None,
            text: Text::default(),
            batches: Vec::new(),
            kept_rows: 0,
            kept_bytes: 0,
            parts: Vec::new(),
            rows: 0,
        }))
    }
}

struct FileWorker {
    shared: Arc<Shared>,
    number: usize,
    /// The morsel of the rows that have not been handed over.
    morsel: u64,
    /// A later morsel, which has begun since.
    begun: Option<u64>,
    text: Text,
    /// Rows that are in no part yet, their number and their bytes.
    batches: Vec<Batch>,
    kept_rows: usize,
    kept_bytes: usize,
    parts: Vec<Part>,
    /// Rows that have not been counted in the file.
    rows: u64,
}

impl FileWorker {
    /// Ends the current morsel: hands its rows over, and goes on with morsel `next`.
    fn end_morsel(&mut self, next: Option<u64>) -> Result<()> {
        let RowFormat { settings, most_bytes, .. } = &self.shared.format;
        let most_rows = settings.row_group_rows;
        if self.kept_rows >= most_rows.div_ceil(2) || self.kept_bytes >= most_bytes.div_ceil(2) {
            let share = self.kept_rows.div_ceil(self.kept_rows.div_ceil(most_rows));
            while self.kept_rows > 0 {
                self.encode(share.min(self.kept_rows))?;
            }
        }
        (self.kept_rows, self.kept_bytes) = (0, 0);
        self.parts.extend(self.batches.drain(..).map(Part::Batch));
        self.hand_over(next)
    }

    /// Hands over what has become parts or text, and writes what can be written.
    fn hand_over(&mut self, next: Option<u64>) -> Result<()> {
        if self.text.len() > 0 {
            self.parts.push(Part::Text(std::mem::take(&mut self.text), None));
        }
        let shared = self.shared.clone();
        shared.context.check()?;
        {
            let mut state = shared.wait_for_room(shared.lock(), self.morsel, &mut self.parts)?;
            if !self.parts.is_empty() {
                state.waiting_bytes += self.parts.iter().map(Part::bytes).sum::<usize>();
                state.waiting.entry(self.morsel).or_default().append(&mut self.parts);
            }
            state.rows += std::mem::take(&mut self.rows);
            state.current[self.number] = next;
            shared.write_ready(&mut state)?;
            shared.turn.notify_all();
            if let Some(spare) = state.spare.pop() {
                self.text = spare;
                self.text.clear();
            }
        }
        shared.encode_complete()
    }

    /// Makes a row group of the first `rows` rows that are kept.
    fn encode(&mut self, rows: usize) -> Result<()> {
        let first = split(&mut self.batches, rows);
        self.kept_rows -= rows;
        self.kept_bytes = self.batches.iter().map(Batch::bytes).sum();
        self.parts.push(self.shared.encode(first)?);
        Ok(())
    }

    /// Writes the rows of a chunk as text.
    fn write_text(&mut self, chunk: &Chunk) -> Result<()> {
        let shared = self.shared.clone();
        let (schema, settings) = (&shared.format.schema, &shared.format.settings);
        let mut text = std::mem::take(&mut self.text);
        let mut take = |text: &mut Text| {
            self.text = std::mem::take(text);
            self.hand_over(Some(self.morsel))?;
            *text = std::mem::take(&mut self.text);
            Ok(())
        };
        match settings.format {
            Format::Json => settings.json.rows(chunk, schema, &mut text, &mut take)?,
            _ => settings.csv.rows(chunk, schema, &mut text, &mut take)?,
        }
        self.text = text;
        Ok(())
    }

    /// Keeps the rows of a chunk as record batches, and encodes row groups.
    fn keep(&mut self, chunk: &Chunk) -> Result<()> {
        let shared = self.shared.clone();
        let RowFormat { settings, most_bytes, .. } = &shared.format;
        let most_rows = settings.row_group_rows;
        for rows in parts_of(chunk) {
            let batch = shared.batch(chunk, rows)?;
            self.kept_rows += batch.rows();
            self.kept_bytes += batch.bytes();
            self.batches.push(batch);
            // What is left is enough for a row group, too.
            while self.kept_rows >= most_rows + most_rows.div_ceil(2) {
                self.encode(most_rows)?;
                self.hand_over(Some(self.morsel))?;
            }
            if self.kept_bytes >= *most_bytes {
                self.encode(self.kept_rows)?;
                self.hand_over(Some(self.morsel))?;
            }
        }
        Ok(())
    }
}

impl Shared {
    /// Some rows of a chunk as a record batch.
    fn batch(&self, chunk: &Chunk, rows: Range<usize>) -> Result<Batch> {
        let RowFormat { types, arrow, .. } = &self.format;
        let mut memory = Reservation::new(&self.memory);
        memory.resize(rows.clone().map(|row| string_bytes(chunk, row)).sum())?;
        let batch = if rows.len() == chunk.len() {
            chunk_to_batch(chunk, arrow, types)?
        } else {
            let array = |(column, &ty): (usize, &DataType)| {
                let positions: Vec<u16> = match chunk.positions(column) {
                    Some(positions) => positions[rows.clone()].to_vec(),
                    None => rows.clone().map(|row| row as u16).collect(),
                };
                vector_to_array(chunk.vector(column), Some(&positions), rows.len(), ty)
            };
            let arrays = types.iter().enumerate().map(array).collect::<Result<Vec<_>>>()?;
            RecordBatch::try_new(arrow.clone(), arrays)
                .map_err(|e| Error::internal(format!("rows do not fit their schema: {e}")))?
        };
        memory.resize(batch.get_array_memory_size())?;
        Ok(Batch::new(batch, memory))
    }
}

/// Cuts the rows of a chunk into parts whose strings have about [`BATCH_BYTES`], or one row.
fn parts_of(chunk: &Chunk) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for row in 0..chunk.len() {
        let own = string_bytes(chunk, row);
        if row > start && bytes + own > BATCH_BYTES {
            parts.push(start..row);
            (start, bytes) = (row, 0);
        }
        bytes += own;
    }
    parts.push(start..chunk.len());
    parts
}

impl ResultWorker for FileWorker {
    fn start_morsel(&mut self, morsel: u64) {
        // The rest is left to the next push: encoding and writing can fail, and this call cannot.
        if morsel != self.morsel {
            self.begun = Some(morsel);
        }
    }

    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let shared = self.shared.clone();
        shared.interruptible(|| {
            if let Some(morsel) = self.begun.take() {
                self.end_morsel(Some(morsel))?;
                self.morsel = morsel;
            }
            self.rows += chunk.len() as u64;
            match shared.format.settings.format {
                Format::Csv | Format::Json => self.write_text(chunk),
                Format::Parquet => self.keep(chunk),
            }
        })
    }

    fn finish(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        shared.interruptible(|| self.end_morsel(None))
    }
}

impl Drop for FileWorker {
    fn drop(&mut self) {
        // A worker that stops early, after an error elsewhere, must not hold up the others' parts.
        self.shared.lock().current[self.number] = None;
        self.shared.turn.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_files::{Directory, read};
    use crate::files::{Options, open};
    use entasis_engine::exec::CancelFlag;
    use entasis_vector::{Field, PhysicalType, Selection, Vector};
    use std::fs::File;

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
            let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
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
    fn long_morsels_become_row_groups_of_their_own() {
        let directory = Directory::new();
        let path = directory.path("a.parquet");
        let options = [("row_group_size".to_owned(), Value::Integer(700))];
        let sink = copy_to(&path, &schema(), &options, &QueryContext::default()).unwrap();
        let mut worker = sink.worker().unwrap();
        let mut first = 0;
        // By morsel, the rows of its chunks.
        for (morsel, chunks) in
            [&[700][..], &[100], &[500], &[1049], &[1050], &[2000, 3], &[349], &[300, 1]].iter().enumerate()
        {
            worker.start_morsel(morsel as u64);
            for rows in *chunks {
                worker.push(&chunk(first, *rows)).unwrap();
                first += *rows as i32;
            }
        }
        worker.finish().unwrap();
        assert_eq!(sink.commit().unwrap(), 6052);
        let file = parquet::file::serialized_reader::SerializedFileReader::new(File::open(&path).unwrap());
        let file = file.unwrap();
        let groups: Vec<i64> = parquet::file::reader::FileReader::metadata(&file)
            .row_groups()
            .iter()
            .map(|g| g.num_rows())
            .collect();
        assert_eq!(groups, [700, 100, 500, 525, 524, 700, 350, 700, 700, 603, 650]);
        let rows =
            read(&*open(&path, &Options::default(), &CancelFlag::default()).unwrap(), vec![], 2048).unwrap();
        assert!(rows.len() == 6052 && rows.iter().enumerate().all(|(i, row)| row[0] == i.to_string()));
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

    /// A context with so much memory.
    fn context_with(bytes: usize) -> QueryContext {
        QueryContext { memory: Arc::new(MemoryBudget::new(bytes)), ..QueryContext::default() }
    }

    /// A chunk of long texts.
    fn long_chunk(rows: usize, bytes: usize) -> Chunk {
        let mut chunk = Chunk::new();
        chunk.reset(rows);
        let group = chunk.push_group(Selection::ALL);
        // Of letters that hardly compress.
        let mut state = 1u64;
        let mut letter = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            char::from(b'!' + (state >> 58) as u8)
        };
        let texts: Vec<Value> =
            (0..rows).map(|_| Value::Text((0..bytes).map(|_| letter()).collect::<String>().into())).collect();
        chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).unwrap(), group);
        chunk
    }

    #[test]
    fn long_values_take_a_part_of_the_memory() {
        const LIMIT: usize = 48 << 20;
        let directory = Directory::new();
        let schema = vec![Field::new("a", DataType::Varchar)];
        let chunk = long_chunk(10, 3 << 20);
        for name in ["a.csv", "a.json", "a.parquet"] {
            let path = directory.path(name);
            let context = context_with(LIMIT);
            let sink = copy_to(&path, &schema, &[], &context).unwrap();
            let mut worker = sink.worker().unwrap();
            for morsel in 0..3 {
                worker.start_morsel(morsel);
                worker.push(&chunk).unwrap();
            }
            worker.finish().unwrap();
            assert_eq!(sink.commit().unwrap(), 30);
            drop((worker, sink));
            assert_eq!(context.memory.used(), 0, "{name}");
            assert!(context.memory.peak() < LIMIT / 2, "{name}: {}", context.memory.peak());
            if name == "a.json" {
                continue;
            }
            let rows =
                read(&*open(&path, &Options::default(), &CancelFlag::default()).unwrap(), vec![], 2048);
            let rows = rows.unwrap();
            assert_eq!(rows.len(), 30);
            for (i, row) in rows.iter().enumerate() {
                assert!(Value::Text(row[0].as_str().into()) == chunk.value(i % 10, 0, DataType::Varchar));
            }
        }
        // What is not there cannot be had.
        let context = context_with(2 << 20);
        let sink = copy_to(&directory.path("b.parquet"), &schema, &[], &context).unwrap();
        let error = sink.worker().unwrap().push(&chunk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Resource);
        assert!(error.message().contains(OWNER), "{error}");
    }

    #[test]
    fn rows_that_are_early_wait_with_their_worker() {
        const LIMIT: usize = 64 << 20;
        let schema = vec![Field::new("a", DataType::Varchar)];
        for name in ["a.csv", "a.parquet"] {
            for interrupted in [false, true] {
                let directory = Directory::new();
                let path = directory.path(name);
                let context = context_with(LIMIT);
                let sink = copy_to(&path, &schema, &[], &context).unwrap();
                let mut first = sink.worker().unwrap();
                let mut second = sink.worker().unwrap();
                first.push(&long_chunk(1, 4)).unwrap();
                let outcome = std::thread::scope(|scope| {
                    let late = scope.spawn(|| {
                        second.start_morsel(1);
                        for _ in 0..20 {
                            second.push(&long_chunk(2, 1 << 20))?;
                        }
                        second.finish()
                    });
                    // Until it waits: some is early, and no more comes.
                    let mut before = usize::MAX;
                    loop {
                        std::thread::sleep(5 * LOOK_EVERY);
                        let early = sink.0.lock().waiting_bytes;
                        if late.is_finished() || (early > 0 && early == before) {
                            break;
                        }
                        before = early;
                    }
                    assert!(sink.0.lock().waiting_bytes <= LIMIT / WAITING_SHARE);
                    assert!(!late.is_finished());
                    match interrupted {
                        true => context.cancel.raise(),
                        false => first.finish().unwrap(),
                    }
                    late.join().unwrap()
                });
                match interrupted {
                    true => assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Interrupted),
                    false => {
                        outcome.unwrap();
                        assert_eq!(sink.commit().unwrap(), 41);
                    }
                }
                assert!(context.memory.peak() < LIMIT);
            }
        }
    }

    #[test]
    fn row_groups_end_when_they_have_many_bytes() {
        let directory = Directory::new();
        let path = directory.path("a.parquet");
        let schema = vec![Field::new("a", DataType::Varchar)];
        let context = context_with(GROUPS << 24);
        let sink = copy_to(&path, &schema, &[], &context).unwrap();
        let mut worker = sink.worker().unwrap();
        const GROUPS: usize = 4;
        // Each has as many bytes as a row group may have.
        for _ in 0..GROUPS {
            worker.push(&long_chunk(8, group_bytes(GROUPS << 24) / 8)).unwrap();
        }
        worker.finish().unwrap();
        sink.commit().unwrap();
        let file = parquet::file::serialized_reader::SerializedFileReader::new(File::open(&path).unwrap());
        let groups = parquet::file::reader::FileReader::metadata(&file.unwrap()).num_row_groups();
        assert!((GROUPS..=GROUPS + 1).contains(&groups), "{groups}");
    }

    #[test]
    fn uuids_are_such_in_parquet() {
        use parquet::basic::{LogicalType, Type};
        let directory = Directory::new();
        let path = directory.path("a.parquet");
        let ids = [Some(0), None, Some(-1), Some(i128::MAX)];
        let ids: Vec<Value> = ids.iter().map(|id| id.map_or(Value::Null, Value::Integer)).collect();
        let schema = vec![Field::new("id", DataType::Uuid)];
        let mut chunk = Chunk::new();
        chunk.reset(ids.len());
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(entasis_arrow::vector_of(&ids, DataType::Uuid).unwrap(), group);
        let sink = copy_to(&path, &schema, &[], &QueryContext::default()).unwrap();
        let mut worker = sink.worker().unwrap();
        worker.push(&chunk).unwrap();
        worker.finish().unwrap();
        sink.commit().unwrap();
        let file = parquet::file::serialized_reader::SerializedFileReader::new(File::open(&path).unwrap());
        let file = file.unwrap();
        let column =
            parquet::file::reader::FileReader::metadata(&file).file_metadata().schema_descr().column(0);
        assert_eq!(column.physical_type(), Type::FIXED_LEN_BYTE_ARRAY);
        assert_eq!(column.logical_type_ref(), Some(&LogicalType::Uuid));
        let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
        assert_eq!(relation.schema()[0].ty, DataType::Uuid);
        let rows = read(&*relation, vec![], 2048).unwrap();
        let shown = ids.iter().map(|id| vec![id.display(DataType::Uuid).to_string()]);
        assert_eq!(rows, shown.collect::<Vec<_>>());
    }
}
