//! Files as relations, and relations as files: Parquet and CSV, and JSON to be written.
//!
//! [`open`] makes a [`Relation`] of a path or glob; its scan hands out row groups (Parquet) or blocks of
//! lines (CSV) as morsels to all workers. In the other direction, [`copy_to`] returns a sink that writes
//! beside the target and renames at the end, so that a failed `COPY` leaves no partial file.
//!
//! The extension of a file determines its format and, of text, its compression. What it promises is kept, or
//! the statement is refused: nothing is written as CSV because nothing better is known.
//!
//! | module | subject |
//! |---|---|
//! | [`options`], [`option_values`] | options by their SQL names, and their values |
//! | [`glob`] | patterns to sorted lists of files |
//! | [`columns`] | columns of several files as columns of one relation |
//! | [`delimiter`] | what separates fields |
//! | [`pipe`] | sources that can be read only once |
//! | [`codec`] | compressed text |
//! | [`source`] | the bytes of a text file |
//! | [`strings`] | long strings of a chunk |
//! | [`target`] | where a file is written |
//! | [`paths`] | columns from paths: `filename`, directories called `key=value` |
//! | [`parquet`] | Parquet, unless the build has it left out: projection, pruning by statistics, several files as one, row groups |
//! | [`bounds`] | what files know of the values in some of their rows |
//! | [`csv`] | CSV: options, guessing, reading, writing |
//! | [`json`] | values and rows as JSON |
//! | [`copy`] | the sink that puts the workers' rows in order and writes them |
//!
//! Every error names its file; a malformed file is an input error, never a panic.

// What only Parquet uses of the modules below.
#![cfg_attr(not(feature = "parquet"), allow(dead_code))]

mod bounds;
mod codec;
mod columns;
pub mod copy;
pub mod csv;
mod delimiter;
mod glob;
pub mod json;
mod option_values;
mod options;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
pub mod parquet;
mod paths;
mod pipe;
mod source;
mod strings;
mod target;

pub use copy::{FileSink, copy_to};
pub use csv::CsvOptions;
use csv::Rejects;
pub use delimiter::Delimiter;
pub use option_values::ParseType;
pub use options::Options;
pub use paths::FileOptions;

use codec::Codec;
use entasis_engine::exec::CancelFlag;
use entasis_engine::relation::Relation;
use entasis_functions::Argument;
use entasis_functions::TimeZone;
use entasis_vector::{Error, ErrorKind, Field, Result, Value};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An error if the file at a path must not be replaced by one that is written, such as a database.
pub type MayReplace = fn(&Path) -> Result<()>;

/// What reading files takes from the database that reads them.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// Raised when the statement is interrupted.
    pub cancel: &'a CancelFlag,
    /// The zone of instants that name none.
    pub zone: TimeZone,
    /// Types in options.
    pub parse_type: ParseType,
}

/// The supported file formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Separated values: CSV and its variants.
    Csv,
    /// JSON, which can only be written.
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Parquet => "Parquet",
            Format::Csv => "CSV",
            Format::Json => "JSON",
        })
    }
}

impl Format {
    /// The format for a path's extension, before that of its compression.
    fn of_path(path: &Path) -> Option<Format> {
        let extension = extension(&Codec::uncompressed_name(path))?;
        match extension.as_str() {
            // Their pages are compressed, and a reader needs to skip some.
            "parquet" | "pq" if Codec::of_path(path) == Codec::Plain => Some(Format::Parquet),
            "csv" | "tsv" | "tbl" | "txt" => Some(Format::Csv),
            _ => None,
        }
    }

    /// The format of a file to be written: that of its extension, or CSV if it has none.
    ///
    /// # Errors
    /// Input, if its extension promises something else.
    fn promised(path: &Path) -> Result<Format> {
        let extension = extension(&Codec::uncompressed_name(path));
        match (Format::of_path(path), extension.as_deref()) {
            (Some(format), _) => Ok(format),
            (None, Some("json" | "jsonl" | "ndjson")) => Ok(Format::Json),
            (None, None) => Ok(Format::Csv),
            (None, Some(_)) => Err(unknown_format(&path.display().to_string()).with_hint(
                "name it .csv, .csv.gz, .tsv, .json or .parquet, or say what it is: (FORMAT csv)",
            )),
        }
    }

    fn of_name(name: &str) -> Result<Format> {
        match name.to_ascii_lowercase().as_str() {
            "parquet" => Ok(Format::Parquet),
            "csv" | "tsv" | "text" => Ok(Format::Csv),
            "json" | "jsonl" | "ndjson" => Ok(Format::Json),
            _ => Err(Error::not_supported(format!("the file format '{name}'"))
                .with_hint("the formats are parquet and csv, and for writing json")),
        }
    }
}

/// The last part of a file's name, in lower case.
fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// The error of a file whose name says nothing, or something else than what can be read and written.
fn unknown_format(path: &str) -> Error {
    let name = match extension(path.as_ref()).as_deref() {
        Some("json" | "jsonl" | "ndjson") => "reading JSON",
        Some("xlsx" | "xls" | "ods") => "spreadsheets",
        Some("arrow" | "feather" | "ipc") => "Arrow files",
        Some("avro") => "Avro",
        Some("orc") => "ORC",
        Some("db" | "sqlite" | "sqlite3" | "duckdb") => "databases of other programs",
        Some("zip" | "bz2" | "xz" | "lz4" | "br" | "snappy" | "7z" | "tar") => "this compression",
        _ => return Error::input(format!("the format of '{path}' is unknown")),
    };
    Error::not_supported(format!("{name} ('{path}')"))
}

/// The path of standard input for `-`, as in other programs.
fn input_path(path: &str) -> &str {
    if path == "-" { "/dev/stdin" } else { path }
}

/// Opens the files that `path`, which may be a pattern, matches, as one relation. Waiting for a pipe ends
/// when `cancel` is raised.
///
/// # Errors
/// I/O, if there is no file or it cannot be read; input, if it is malformed or its format is unknown.
pub fn open(path: &str, options: &Options, cancel: &CancelFlag) -> Result<Arc<dyn Relation>> {
    open_all(&[path.to_owned()], options, cancel)
}

/// Opens the files that these patterns match, in this order, as one relation.
fn open_all(patterns: &[String], options: &Options, cancel: &CancelFlag) -> Result<Arc<dyn Relation>> {
    let Some(first) = patterns.first() else { return Err(Error::input("a list of files is empty")) };
    let mut paths = Vec::new();
    for pattern in patterns {
        paths.append(&mut glob::expand(input_path(pattern))?);
    }
    let format =
        options.format.or_else(|| Format::of_path(first.as_ref())).or_else(|| Format::of_path(&paths[0]));
    let format = format.ok_or_else(|| {
        unknown_format(first)
            .with_hint("name the file .parquet or .csv, or use read_parquet('…') or read_csv('…')")
    })?;
    let name = if patterns.len() == 1 { first.clone() } else { format!("{first}, …") };
    match format {
        Format::Parquet => parquet::open(&name, paths, &options.files),
        Format::Json => Err(Error::not_supported(format!("reading JSON ('{name}')"))),
        Format::Csv => csv::open(&name, paths, &options.files, &options.csv, cancel),
    }
}

/// The relation of a call such as `read_csv('path', delim => '|', header => true)`: a path, a pattern or a
/// list of these, then named options. Skipped rows go to `rejects`, if an option asks for that; instants that
/// name no zone are in that of the host.
///
/// # Errors
/// Those of [`open`]; input, if an option is unknown or ill-typed.
pub fn read_function(
    function: &str,
    format: Format,
    args: &[(Option<String>, Argument)],
    rejects: &Arc<Rejects>,
    host: &Host<'_>,
) -> Result<Arc<dyn Relation>> {
    let mut patterns = None;
    let mut options = Options { format: Some(format), ..Options::default() };
    options.csv.zone = host.zone;
    for (name, value) in args {
        match name {
            Some(name) => options.set(function, name, value, host.parse_type)?,
            None if patterns.is_none() => patterns = Some(option_values::texts_option("path", value)?),
            None => {
                return Err(Error::input(
                    "the first argument is the path, the others are named: name => value",
                ));
            }
        }
    }
    let patterns =
        patterns.ok_or_else(|| Error::input(format!("{function}: the path of the file is missing")))?;
    options.csv.rejects = options.csv.store_rejects.then(|| rejects.clone());
    open_all(&patterns, &options, host.cancel)
}

/// Opens the file that `COPY … FROM` reads into `targets`: its columns correspond to these, in order, and the
/// values of a CSV file are read as their types, instants that name no zone in that of the host.
///
/// # Errors
/// Those of [`open`]; input, if an option is unknown or ill-typed.
pub fn copy_from(
    path: &str,
    targets: &[Field],
    options: &[(String, Value)],
    host: &Host<'_>,
) -> Result<Arc<dyn Relation>> {
    let mut read = Options::default();
    read.csv.zone = host.zone;
    for (name, value) in options {
        read.set_for_copy(name, value, host.parse_type)?;
    }
    read.files.hive_partitioning = Some(false);
    read.csv.columns = Some(targets.iter().map(|field| Field::new(field.name.clone(), field.ty)).collect());
    let format = match read.format.or_else(|| Format::of_path(path.as_ref())) {
        Some(format) => format,
        None => {
            let error = unknown_format(path);
            // Text may have any extension, but not one that says that it is something else.
            if error.kind() == ErrorKind::NotSupported {
                return Err(error.with_hint("say what it is: (FORMAT csv)"));
            }
            Format::Csv
        }
    };
    read.format = Some(format);
    let of_csv = |(name, _): &&(String, Value)| !name.eq_ignore_ascii_case("format");
    if let (Format::Parquet, Some((name, _))) = (format, options.iter().find(of_csv)) {
        return Err(Error::input(format!("COPY FROM {format} has no option '{name}'")));
    }
    open(path, &read, host.cancel)
}

#[cfg(test)]
pub(crate) mod test_files {
    //! Directories for tests, and rows for comparison.

    use entasis_engine::exec::{QueryContext, Settings};
    use entasis_engine::relation::{Relation, ScanRequest};
    use entasis_vector::expr::Expr;
    use entasis_vector::{Chunk, ColumnId, DataType, Result};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A directory that is removed when it is dropped.
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

    /// The types that tests name, as they are shown.
    pub(crate) fn parse_type(name: &str) -> Result<DataType> {
        use DataType as T;
        let digits = name.strip_prefix("DECIMAL(").and_then(|rest| rest.strip_suffix(')')?.split_once(','));
        if let Some((precision, scale)) = digits
            && let (Ok(precision), Ok(scale)) = (precision.parse(), scale.trim().parse())
            && precision <= 38
        {
            return Ok(T::Decimal { precision, scale });
        }
        let types = [T::UInt8, T::Int32, T::Int64, T::Float64, T::Varchar, T::Date, T::Timestamp];
        let name = if name.eq_ignore_ascii_case("text") { "VARCHAR" } else { name };
        let found = types.into_iter().find(|ty| ty.to_string().eq_ignore_ascii_case(name));
        found.ok_or_else(|| entasis_vector::Error::input(format!("there is no type '{name}'")))
    }

    /// A context for chunks of `chunk_rows` rows.
    pub(crate) fn context(chunk_rows: usize) -> QueryContext {
        QueryContext {
            settings: Arc::new(Settings { chunk_rows, ..Settings::default() }),
            ..QueryContext::default()
        }
    }

    /// All rows as text, read by two interleaved workers, in the order of their morsels.
    pub(crate) fn read(
        relation: &dyn Relation,
        filters: Vec<Expr>,
        chunk_rows: usize,
    ) -> Result<Vec<Vec<String>>> {
        let schema = relation.schema();
        let columns = (0..schema.len()).map(|i| (ColumnId(i as u32), i)).collect();
        let source =
            relation.scan(&ScanRequest { filters, ..ScanRequest::all(columns) }, &context(chunk_rows))?;
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
                    let cells =
                        cells.map(|(i, f)| chunk.value(row, i, f.ty).display(f.ty).to_string()).collect();
                    rows.push((worker.morsel(), cells));
                }
            }
        }
        rows.sort_by_key(|(morsel, _): &(u64, Vec<String>)| *morsel);
        Ok(rows.into_iter().map(|(_, cells)| cells).collect())
    }
}
