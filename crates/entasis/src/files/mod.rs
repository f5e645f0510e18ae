//! Files as relations, and relations as files: Parquet and CSV.
//!
//! A path or glob becomes a [`Relation`] by [`open`]; its scan hands out row groups (Parquet) or blocks of lines (CSV)
//! as morsels to all workers. The other way, [`copy_to`] gives a sink that writes beside the target and renames at the
//! end, so that a failed `COPY` leaves no half file.
//!
//! | module | subject |
//! |---|---|
//! | [`glob`] | patterns to sorted lists of files |
//! | [`parquet`] | reading Parquet: projection, pruning by statistics, several files as one |
//! | [`prune`] | whether a condition can hold within known bounds |
//! | [`csv`] | CSV: options, guessing, reading, writing |
//! | [`copy`] | the sink that puts the workers' rows in order and on disk |
//!
//! Every error names its file; a malformed file is an input error, never a panic.

pub mod copy;
pub mod csv;
mod glob;
pub mod parquet;
mod prune;
mod row_groups;
mod type_name;

pub use copy::{FileSink, copy_to};
pub use csv::CsvOptions;

use entasis_engine::relation::Relation;
use entasis_vector::{DataType, Error, Field, Result, Value};
use std::path::Path;
use std::sync::Arc;

/// The formats that files may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Separated values, with commas or otherwise.
    Csv,
}

impl Format {
    /// The format that a path's extension names.
    fn of_path(path: &str) -> Option<Format> {
        let extension = Path::new(path).extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "parquet" | "pq" => Some(Format::Parquet),
            "csv" | "tsv" | "tbl" | "txt" => Some(Format::Csv),
            _ => None,
        }
    }

    fn of_name(name: &str) -> Result<Format> {
        match name.to_ascii_lowercase().as_str() {
            "parquet" => Ok(Format::Parquet),
            "csv" | "tsv" | "text" => Ok(Format::Csv),
            _ => {
                Err(Error::not_supported(format!("the file format '{name}'"))
                    .with_hint("the formats are parquet and csv"))
            }
        }
    }
}

/// How a file is read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its format; by default what the extension says.
    pub format: Option<Format>,
    /// For CSV.
    pub csv: CsvOptions,
}

/// The files that `path` names, which may be a pattern, as one relation.
///
/// # Errors
/// I/O, if no file is there or it cannot be read; input, if it is malformed or its format is unknown.
pub fn open(path: &str, options: &Options) -> Result<Arc<dyn Relation>> {
    let format = options.format.or_else(|| Format::of_path(path)).ok_or_else(|| {
        Error::input(format!("the format of '{path}' is unknown"))
            .with_hint("name the file .parquet or .csv, or use read_parquet('…') or read_csv('…')")
    })?;
    let paths = glob::expand(path)?;
    match format {
        Format::Parquet => parquet::open(path, paths),
        Format::Csv => csv::open(path, paths, &options.csv),
    }
}

/// The relation of a call such as `read_csv('path', delim => '|', header => true)`: the path, then named options.
///
/// # Errors
/// As [`open`]; input, if an option is unknown or ill-typed.
pub fn read_function(format: Format, args: &[(Option<String>, Value, DataType)]) -> Result<Arc<dyn Relation>> {
    let mut path = None;
    let mut options = Options { format: Some(format), ..Options::default() };
    for (name, value, _) in args {
        match (name, value) {
            (None, Value::Text(text)) if path.is_none() => path = Some(text.clone()),
            (None, _) => {
                return Err(Error::input("the first argument is the path, the others are named: name => value"));
            }
            (Some(name), value) => read_option(&mut options, name, value)?,
        }
    }
    let path = path.ok_or_else(|| Error::input("the path of the file is missing"))?;
    open(&path, &options)
}

/// The file that `COPY … FROM` reads into `targets`: its columns are theirs, in order, and a CSV file's values are read
/// as their types.
///
/// # Errors
/// As [`open`]; input, if an option is unknown or ill-typed.
pub fn copy_from(path: &str, targets: &[Field], options: &[(String, Value)]) -> Result<Arc<dyn Relation>> {
    let mut read = Options::default();
    for (name, value) in options {
        read_option(&mut read, name, value)?;
    }
    let columns = targets.iter().map(|field| Field::new(field.name.clone(), field.ty)).collect();
    read.csv.columns = Some(columns);
    if read.format.is_none() && Format::of_path(path).is_none() {
        read.format = Some(Format::Csv);
    }
    open(path, &read)
}

fn read_option(options: &mut Options, name: &str, value: &Value) -> Result<()> {
    if name.eq_ignore_ascii_case("format") {
        options.format = Some(Format::of_name(text_option(name, value)?)?);
        return Ok(());
    }
    if options.format == Some(Format::Parquet) {
        return Err(Error::input(format!("read_parquet has no option '{name}'")));
    }
    options.csv.set(name, value)
}

/// The value of an option that is text.
fn text_option<'a>(name: &str, value: &'a Value) -> Result<&'a str> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(Error::input(format!("option {name} takes a text, not {other:?}"))),
    }
}

/// The value of an option that is true or false.
fn flag_option(name: &str, value: &Value) -> Result<bool> {
    match value {
        Value::Boolean(value) => Ok(*value),
        Value::Integer(0) => Ok(false),
        Value::Integer(1) => Ok(true),
        Value::Text(text) if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("on") => Ok(true),
        Value::Text(text) if text.eq_ignore_ascii_case("false") || text.eq_ignore_ascii_case("off") => Ok(false),
        other => Err(Error::input(format!("option {name} takes true or false, not {other:?}"))),
    }
}

/// The value of an option that is a count.
fn count_option(name: &str, value: &Value) -> Result<usize> {
    match value {
        Value::Integer(count) if usize::try_from(*count).is_ok() => Ok(*count as usize),
        other => Err(Error::input(format!("option {name} takes a count, not {other:?}"))),
    }
}

#[cfg(test)]
pub(crate) mod test_files {
    //! Directories for tests, and rows to compare.

    use entasis_engine::exec::{QueryContext, Settings};
    use entasis_engine::relation::{Relation, ScanRequest};
    use entasis_vector::expr::Expr;
    use entasis_vector::{Chunk, ColumnId, Result};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A directory that vanishes with its owner.
    pub(crate) struct Directory(PathBuf);

    impl Directory {
        pub(crate) fn new() -> Directory {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("entasis-files-{}-{number}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Directory(path)
        }
        pub(crate) fn path(&self, name: &str) -> String {
            self.0.join(name).to_str().unwrap().to_owned()
        }
        pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
            let path = self.path(name);
            std::fs::write(&path, bytes).unwrap();
            path
        }
        pub(crate) fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(Path::new(&self.0)).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).ok();
        }
    }

    /// A context whose chunks have `chunk_rows` rows.
    pub(crate) fn context(chunk_rows: usize) -> QueryContext {
        QueryContext { settings: Arc::new(Settings { chunk_rows, ..Settings::default() }), ..QueryContext::default() }
    }

    /// All rows as text, read by two interleaved workers, in the order of their morsels.
    pub(crate) fn read(relation: &dyn Relation, filters: Vec<Expr>, chunk_rows: usize) -> Result<Vec<Vec<String>>> {
        let schema = relation.schema();
        let columns = (0..schema.len()).map(|i| (ColumnId(i as u32), i)).collect();
        let source = relation.scan(&ScanRequest { columns, filters }, &context(chunk_rows))?;
        let mut workers = [source.worker()?, source.worker()?];
        let mut rows = Vec::new();
        let mut chunk = Chunk::new();
        let mut live = [true; 2];
        while live[0] || live[1] {
            for (worker, live) in workers.iter_mut().zip(&mut live) {
                *live = *live && worker.next(&mut chunk)?;
                if !*live {
                    continue;
                }
                assert!(chunk.len() <= chunk_rows);
                for row in 0..chunk.len() {
                    let cells = schema.iter().enumerate();
                    let cells = cells.map(|(i, f)| chunk.value(row, i, f.ty).display(f.ty).to_string()).collect();
                    rows.push((worker.morsel(), cells));
                }
            }
        }
        rows.sort_by_key(|(morsel, _): &(u64, Vec<String>)| *morsel);
        Ok(rows.into_iter().map(|(_, cells)| cells).collect())
    }
}
