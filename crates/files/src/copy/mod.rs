//! `COPY … TO`: a sink that writes a file.
//!
//! 1. Workers turn their chunks into text (CSV) or record batches (Parquet), without a lock, morsel by
//!    morsel.
//! 2. The rows of a long morsel become Parquet row groups of their own, which the worker encodes at once: so
//!    all workers encode, whichever of them is behind. Short morsels are joined to row groups when they are
//!    written, and encoded outside the lock ([`RowGroups`]).
//! 3. Under the lock, a finished part waits until no worker can produce an earlier one: each worker's current
//!    morsel number only grows, so parts up to the least of them may be written. So the rows in the file have
//!    the order of their source. If many bytes wait, whoever would add to them waits, too, for its turn: the
//!    worker of the least morsel never does ([`turns`]).
//! 4. Everything goes to a temporary file beside the target, which [`FileSink::commit`] renames ([`Target`]
//!    says when it does not). A statement that fails leaves neither a partial file nor a temporary one, and
//!    does not touch an older target.

mod batch;
mod parts;
mod settings;
#[cfg(test)]
mod tests;
mod turns;
mod worker;

use super::csv::text::{PART_BYTES, Text};
use super::parquet::RowGroups;
use super::target::Target;
use super::{Format, MayReplace};
use arrow_schema::SchemaRef;
use batch::group_bytes;
use entasis_arrow::schema_to_arrow;
use entasis_engine::exec::{MemoryBudget, QueryContext, ResultSink, ResultWorker};
use entasis_vector::{DataType, Error, Result, Schema, Value};
use parts::{FilePart, Output, RowFormat};
use settings::Settings;
use std::collections::BTreeMap;
use std::io::BufWriter;
use std::sync::{Arc, Condvar, Mutex};
use turns::{FileState, SharedFile};
use worker::FileWorker;

pub(crate) use batch::Batch;

/// Whose memory it is, in the words of an error.
const OWNER: &str = "a file being written";

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
    may_replace: MayReplace,
) -> Result<Box<FileSink>> {
    let path = if path == "-" { "/dev/stdout" } else { path };
    let settings = Settings::new(path, schema, options)?;
    let types: Vec<DataType> = schema.iter().map(|field| field.ty).collect();
    if settings.format == Format::Parquet && types.iter().any(|ty| ty.contains(DataType::Interval)) {
        return Err(Error::not_supported("INTERVAL in Parquet files").with_hint("cast it to VARCHAR"));
    }
    let (target, file) = Target::open(path, &context.cancel, may_replace)?;
    let most_bytes = group_bytes(context.memory.limit());
    let arrow: SchemaRef = Arc::new(schema_to_arrow(schema));
    let mut out = match settings.format {
        Format::Csv | Format::Json => {
            let file = BufWriter::with_capacity(PART_BYTES, file);
            let out = settings.codec.writer(file).map_err(|e| Error::io(format!("'{path}'"), &e))?;
            Output::Text(Box::new(out))
        }
        Format::Parquet => Output::Parquet(Box::new(RowGroups::new(
            file,
            arrow.clone(),
            settings.compression,
            (settings.row_group_rows, most_bytes),
        )?)),
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
        out.write(FilePart::Text(header, None), &mut 0, path)?;
    }
    let state = FileState {
        out: Some(out),
        left_out,
        waiting: BTreeMap::new(),
        waiting_bytes: 0,
        current: Vec::new(),
        spare: Vec::new(),
        rows: 0,
    };
    Ok(Box::new(FileSink(Arc::new(SharedFile {
        path: path.to_owned(),
        format: RowFormat { schema: schema.clone(), types, arrow, settings, most_bytes },
        state: Mutex::new(state),
        turn: Condvar::new(),
        target,
        memory: MemoryBudget::part_of(&context.memory, OWNER),
        context: context.clone(),
    }))))
}

/// Writes the rows that are pushed to it to a file. Made by [`copy_to`].
pub struct FileSink(Arc<SharedFile>);

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
        self.0.target.may_be_replaced()?;
        self.0.target.commit().map_err(|e| Error::io(format!("'{}'", self.0.path), &e))?;
        Ok(state.rows)
    }
}

impl ResultSink for FileSink {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(FileWorker::new(&self.0)))
    }
}
