//! Files as relations, and relations as files: Parquet and CSV.
//!
//! [`open`] makes a [`Relation`] of a path or glob; its scan hands out row groups (Parquet) or blocks of
//! lines (CSV) as morsels to all workers. In the other direction, [`copy_to`] returns a sink that writes
//! beside the target and renames at the end, so that a failed `COPY` leaves no partial file.
//!
//! | module | subject |
//! |---|---|
//! | [`options`], [`option_values`] | options by their SQL names, and their values |
//! | [`glob`] | patterns to sorted lists of files |
//! | [`columns`] | columns of several files as columns of one relation |
//! | [`paths`] | columns from paths: `filename`, directories called `key=value` |
//! | [`parquet`] | reading Parquet: projection, pruning by statistics, several files as one |
//! | [`prune`] | whether a condition can hold within known bounds |
//! | [`csv`] | CSV: options, guessing, reading, writing |
//! | [`copy`] | the sink that puts the workers' rows in order and writes them |
//!
//! Every error names its file; a malformed file is an input error, never a panic.

mod columns;
pub mod copy;
pub mod csv;
mod dictionaries;
mod glob;
mod option_values;
mod options;
pub mod parquet;
mod paths;
mod prune;
mod row_groups;

pub use copy::{FileSink, copy_to};
pub use csv::CsvOptions;
use csv::Rejects;
pub use options::Options;
pub use paths::FileOptions;

use entasis_engine::relation::Relation;
use entasis_sql::Argument;
use entasis_vector::{Error, Field, Result, Value};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The supported file formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Separated values: CSV and its variants.
    Csv,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Parquet => "Parquet",
            Format::Csv => "CSV",
        })
    }
}

impl Format {
    /// The format for a path's extension.
    fn of_path(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
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
            _ => Err(Error::not_supported(format!("the file format '{name}'"))
                .with_hint("the formats are parquet and csv")),
        }
    }
}

/// Opens the files that `path`, which may be a pattern, matches, as one relation.
///
/// # Errors
/// I/O, if there is no file or it cannot be read; input, if it is malformed or its format is unknown.
pub fn open(path: &str, options: &Options) -> Result<Arc<dyn Relation>> {
    open_all(&[path.to_owned()], options)
}

/// Opens the files that these patterns match, in this order, as one relation.
fn open_all(patterns: &[String], options: &Options) -> Result<Arc<dyn Relation>> {
    let Some(first) = patterns.first() else { return Err(Error::input("a list of files is empty")) };
    let mut paths = Vec::new();
    for pattern in patterns {
        paths.append(&mut glob::expand(pattern)?);
    }
    let format =
        options.format.or_else(|| Format::of_path(first.as_ref())).or_else(|| Format::of_path(&paths[0]));
    let format = format.ok_or_else(|| {
        Error::input(format!("the format of '{first}' is unknown"))
            .with_hint("name the file .parquet or .csv, or use read_parquet('…') or read_csv('…')")
    })?;
    let name = if patterns.len() == 1 { first.clone() } else { format!("{first}, …") };
    match format {
        Format::Parquet => parquet::open(&name, paths, &options.files),
        Format::Csv => csv::open(&name, paths, &options.files, &options.csv),
    }
}

/// The relation of a call such as `read_csv('path', delim => '|', header => true)`: a path, a pattern or a
/// list of these, then named options. Skipped rows go to `rejects`, if an option asks for that.
///
/// # Errors
/// Those of [`open`]; input, if an option is unknown or ill-typed.
pub fn read_function(
    function: &str,
    format: Format,
    args: &[(Option<String>, Argument)],
    rejects: &Arc<Rejects>,
) -> Result<Arc<dyn Relation>> {
    let mut patterns = None;
    let mut options = Options { format: Some(format), ..Options::default() };
    for (name, value) in args {
        match name {
            Some(name) => options.set(function, name, value)?,
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
    open_all(&patterns, &options)
}

/// Opens the file that `COPY … FROM` reads into `targets`: its columns correspond to these, in order, and the
/// values of a CSV file are read as their types.
///
/// # Errors
/// Those of [`open`]; input, if an option is unknown or ill-typed.
pub fn copy_from(path: &str, targets: &[Field], options: &[(String, Value)]) -> Result<Arc<dyn Relation>> {
    let mut read = Options::default();
    for (name, value) in options {
        read.set_for_copy(name, value)?;
    }
    read.files.hive_partitioning = Some(false);
    read.csv.columns = Some(targets.iter().map(|field| Field::new(field.name.clone(), field.ty)).collect());
    let format = read.format.or_else(|| Format::of_path(path.as_ref())).unwrap_or(Format::Csv);
    read.format = Some(format);
    let of_csv = |(name, _): &&(String, Value)| !name.eq_ignore_ascii_case("format");
    if let (Format::Parquet, Some((name, _))) = (format, options.iter().find(of_csv)) {
        return Err(Error::input(format!("COPY FROM {format} has no option '{name}'")));
    }
    open(path, &read)
}

#[cfg(test)]
pub(crate) mod test_files {
    //! Directories for tests, and rows for comparison.

    use entasis_engine::exec::{QueryContext, Settings};
    use entasis_engine::relation::{Relation, ScanRequest};
    use entasis_vector::expr::Expr;
    use entasis_vector::{Chunk, ColumnId, Result};
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
