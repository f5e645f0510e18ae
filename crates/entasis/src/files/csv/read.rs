//! The parallel scan of CSV files.
//!
//! 1. Opening guesses the dialect and the columns from the start of the first file.
//! 2. Workers take *blocks*, the morsels: under a lock, one reads the next megabytes and cuts them behind the last
//!    record that ends there. This is the only sequential step: where a record ends depends on all quotes before it.
//! 3. Outside of the lock the worker scans a chunk's worth of records, and then reads its fields column by column.
//!
//! A field that is not of its column's type, and a record with the wrong number of fields, are errors that name file,
//! line, column and value; with `ignore_errors` the row is left out.

use super::CsvOptions;
use super::field::{Texts, read_column};
use super::record::{Scanner, Span, last_record_end};
use super::sniff::{Sniffed, sniff};
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{Chunk, Error, Result, Schema, Selection, Vector};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are looked at to guess.
const SAMPLE_BYTES: usize = 8 << 20;
/// Bytes of the first blocks of a scan: a `LIMIT` needs no more.
const BLOCK_BYTES_MIN: usize = 1 << 20;
/// Bytes of later blocks: enough rows for a row group of their own when they are loaded.
const BLOCK_BYTES_MAX: usize = 8 << 20;
/// A record may be as long as this.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// The files at `paths` as one relation that is called `name`. They are written alike and have the same columns.
///
/// # Errors
/// I/O, if a file cannot be read; input, if the columns cannot be told.
pub fn open(name: &str, paths: Vec<PathBuf>, options: &CsvOptions) -> Result<Arc<dyn Relation>> {
    let mut bytes = 0;
    for path in &paths {
        bytes += std::fs::metadata(path).map_err(|e| io_error(path, &e))?.len();
    }
    let sniffed = sniff(name, &sample(&paths[0], options)?, options)?;
    Ok(Arc::new(CsvRelation(Arc::new(Inner {
        name: name.to_owned(),
        paths,
        bytes,
        options: options.clone(),
        sniffed,
    }))))
}

fn io_error(path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("'{}'", path.display()), error)
}

/// The start of a file, from its first row to the end of a row.
fn sample(path: &Path, options: &CsvOptions) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| io_error(path, &e))?;
    file.take(SAMPLE_BYTES as u64).read_to_end(&mut bytes).map_err(|e| io_error(path, &e))?;
    let cut = bytes.len() == SAMPLE_BYTES;
    bytes.drain(..preamble(&bytes, options.skip).0);
    if cut {
        let end = bytes.iter().rposition(|&b| b == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.truncate(end);
    }
    Ok(bytes)
}

/// Bytes and lines before the first row: the byte order mark and the lines that are skipped.
fn preamble(bytes: &[u8], skip: usize) -> (usize, usize) {
    let mut at = if bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    for line in 0..skip {
        match bytes[at..].iter().position(|&b| b == b'\n') {
            Some(length) => at += length + 1,
            None => return (bytes.len(), line),
        }
    }
    (at, skip)
}

struct Inner {
    name: String,
    paths: Vec<PathBuf>,
    bytes: u64,
    options: CsvOptions,
    sniffed: Sniffed,
}

struct CsvRelation(Arc<Inner>);

impl fmt::Debug for CsvRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Csv({})", self.0.name)
    }
}

impl Relation for CsvRelation {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn schema(&self) -> &Schema {
        &self.0.sniffed.schema
    }

    fn statistics(&self) -> Statistics {
        let rows = self.0.bytes as f64 / self.0.sniffed.row_bytes.max(1.0);
        Statistics { rows: Some(rows as u64), columns: Vec::new() }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let splitter = Splitter {
            relation: self.0.clone(),
            next_file: 0,
            file: None,
            fresh: false,
            carry: Vec::new(),
            line: 1,
            blocks: 0,
            bytes: 0,
        };
        Ok(Arc::new(CsvSource {
            relation: self.0.clone(),
            columns: request.columns.iter().map(|(_, column)| *column).collect(),
            chunk_rows: context.settings.chunk_rows.max(1),
            splitter: Arc::new(Mutex::new(splitter)),
        }))
    }
}

/// Cuts the files into blocks of whole records.
struct Splitter {
    relation: Arc<Inner>,
    next_file: usize,
    file: Option<File>,
    /// Whether nothing of it has been read yet.
    fresh: bool,
    /// What stood behind the last record that ended in the block before.
    carry: Vec<u8>,
    /// The line on which it begins, counted from 1.
    line: usize,
    blocks: u64,
    bytes: u64,
}

/// Whole records of one file.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    number: u64,
    file: usize,
    /// The line on which the block begins.
    line: usize,
    /// Whether its first record holds the names of the columns.
    header: bool,
}

impl Splitter {
    /// Fills `block` with the next records. False at the end of the last file.
    fn next(&mut self, block: &mut Block) -> Result<bool> {
        block.bytes.clear();
        block.header = false;
        let wanted = (BLOCK_BYTES_MIN << (self.blocks / 4).min(8)).min(BLOCK_BYTES_MAX);
        loop {
            if self.file.is_none() {
                let Some(path) = self.relation.paths.get(self.next_file) else { return Ok(false) };
                self.file = Some(File::open(path).map_err(|e| io_error(path, &e))?);
                self.next_file += 1;
                self.fresh = true;
                self.carry.clear();
                self.line = 1;
                block.header = self.relation.sniffed.header;
            }
            let index = self.next_file - 1;
            let path = &self.relation.paths[index];
            let Some(file) = &mut self.file else { continue };
            block.bytes.append(&mut self.carry);
            let read = file.take(wanted as u64).read_to_end(&mut block.bytes).map_err(|e| io_error(path, &e))?;
            self.bytes += read as u64;
            let ended = read < wanted;
            if std::mem::take(&mut self.fresh) {
                let (bytes, lines) = preamble(&block.bytes, self.relation.options.skip);
                block.bytes.drain(..bytes);
                self.line += lines;
            }
            if ended {
                self.file = None;
            } else {
                match last_record_end(&block.bytes, self.relation.sniffed.dialect) {
                    Some(end) => self.carry = block.bytes.split_off(end),
                    None if block.bytes.len() < RECORD_BYTES_MAX => {
                        self.carry = std::mem::take(&mut block.bytes);
                        continue;
                    }
                    None => {
                        let text = format!("'{}', line {}: a record of more than 1 GB", path.display(), self.line);
                        return Err(Error::input(text).with_hint("a quote may be missing; try quote => ''"));
                    }
                }
            }
            block.file = index;
            block.line = self.line;
            self.line += lines(&block.bytes);
            if block.bytes.is_empty() {
                continue;
            }
            block.number = self.blocks;
            self.blocks += 1;
            return Ok(true);
        }
    }
}

/// Line ends, counted in bytes first, many side by side.
fn lines(bytes: &[u8]) -> usize {
    let count = |part: &[u8]| part.iter().map(|&b| u8::from(b == b'\n')).sum::<u8>();
    bytes.chunks(u8::MAX as usize).map(|part| usize::from(count(part))).sum()
}

struct CsvSource {
    relation: Arc<Inner>,
    columns: Vec<usize>,
    chunk_rows: usize,
    splitter: Arc<Mutex<Splitter>>,
}

impl Source for CsvSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let schema = &self.relation.sniffed.schema;
        Ok(Box::new(CsvWorker {
            relation: self.relation.clone(),
            splitter: self.splitter.clone(),
            chunk_rows: self.chunk_rows,
            block: Block::default(),
            scanner: Scanner::new(self.relation.sniffed.dialect, 0),
            record: Vec::new(),
            copies: Vec::new(),
            starts: Vec::new(),
            spans: self.columns.iter().map(|_| Vec::new()).collect(),
            vectors: self.columns.iter().map(|&column| Vector::new(schema[column].ty.physical())).collect(),
            bad: Vec::new(),
            columns: self.columns.clone(),
        }))
    }

    fn progress(&self) -> Option<f64> {
        let splitter = self.splitter.lock().unwrap_or_else(PoisonError::into_inner);
        Some((splitter.bytes as f64 / self.relation.bytes.max(1) as f64).min(1.0))
    }
}

struct CsvWorker {
    relation: Arc<Inner>,
    splitter: Arc<Mutex<Splitter>>,
    columns: Vec<usize>,
    chunk_rows: usize,
    block: Block,
    scanner: Scanner,
    /// The fields of the record that was scanned last.
    record: Vec<Span>,
    copies: Vec<u8>,
    /// Where each record of the chunk begins in the block.
    starts: Vec<usize>,
    /// The fields of each requested column in the chunk.
    spans: Vec<Vec<Span>>,
    vectors: Vec<Vector>,
    /// Rows with a field that is not of its column's type.
    bad: Vec<usize>,
}

impl CsvWorker {
    /// Scans records until the chunk is full or the block ends.
    fn scan_records(&mut self) -> Result<()> {
        self.starts.clear();
        self.copies.clear();
        self.spans.iter_mut().for_each(Vec::clear);
        let width = self.relation.sniffed.schema.len();
        while self.starts.len() < self.chunk_rows {
            if !self.scanner.record(&self.block.bytes, &mut self.record, &mut self.copies) {
                break;
            }
            if self.block.header {
                self.block.header = false;
                continue;
            }
            if self.record.len() != width {
                if self.relation.options.ignore_errors {
                    continue;
                }
                return Err(self.wrong_width());
            }
            self.starts.push(self.scanner.start());
            for (spans, &column) in self.spans.iter_mut().zip(&self.columns) {
                spans.push(self.record[column]);
            }
        }
        Ok(())
    }

    fn place(&self, start: usize) -> String {
        let path = self.relation.paths[self.block.file].display();
        format!("'{path}', line {}", self.block.line + lines(&self.block.bytes[..start]))
    }

    fn wrong_width(&self) -> Error {
        let found = self.record.len();
        let width = self.relation.sniffed.schema.len();
        let fields = if found == 1 { "field" } else { "fields" };
        Error::input(format!("{}: {found} {fields} where {width} are expected", self.place(self.scanner.start())))
            .with_hint(
                "say how the file is written with delim, quote and skip, or leave such rows out with ignore_errors",
            )
    }

    fn wrong_value(&self, row: usize, slot: usize) -> Error {
        let column = self.columns[slot];
        let field = &self.relation.sniffed.schema[column];
        let text = self.spans[slot][row].text(&self.block.bytes, &self.copies);
        let mut shown = String::from_utf8_lossy(text).into_owned();
        if let Some((end, _)) = shown.char_indices().nth(100) {
            shown.replace_range(end.., "…");
        }
        let place = self.place(self.starts[row]);
        let wrong = match std::str::from_utf8(text) {
            Ok(_) => format!("{place}, column \"{}\": '{shown}' is not a {}", field.name, field.ty),
            Err(_) => format!("{place}, column \"{}\": '{shown}' is not UTF-8 text", field.name),
        };
        let hint = if self.relation.sniffed.guessed {
            format!(
                "the type was guessed from the first rows; say it with types => '{}: VARCHAR', or use all_varchar => true",
                field.name
            )
        } else {
            "leave such rows out with ignore_errors => true".to_owned()
        };
        Error::input(wrong).with_hint(hint)
    }
}

impl SourceWorker for CsvWorker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.reset(0);
        loop {
            self.scan_records()?;
            if !self.starts.is_empty() {
                break;
            }
            let mut splitter = self.splitter.lock().unwrap_or_else(PoisonError::into_inner);
            if !splitter.next(&mut self.block)? {
                return Ok(false);
            }
            self.scanner = Scanner::new(self.relation.sniffed.dialect, 0);
        }
        let rows = self.starts.len();
        self.bad.clear();
        let null = self.relation.options.null.as_bytes();
        for slot in 0..self.columns.len() {
            let ty = self.relation.sniffed.schema[self.columns[slot]].ty;
            let texts = Texts { spans: &self.spans[slot], bytes: &self.block.bytes, copies: &self.copies, null };
            read_column(&texts, ty, &mut self.vectors[slot], &mut self.bad);
            if let (Some(&row), false) = (self.bad.first(), self.relation.options.ignore_errors) {
                return Err(self.wrong_value(row, slot));
            }
        }
        let (selection, rows) = if self.bad.is_empty() {
            (Selection::ALL, rows)
        } else {
            let good: Vec<u16> = (0..rows as u16).filter(|row| !self.bad.contains(&usize::from(*row))).collect();
            (Selection::from_indices(&good), good.len())
        };
        chunk.reset(rows);
        let group = chunk.push_group(selection);
        self.vectors.iter().for_each(|vector| chunk.push_column(vector.clone(), group));
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.block.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_files::{Directory, read};
    use crate::files::{Format, Options, read_function};
    use entasis_vector::{DataType, ErrorKind, Value};

    fn open(path: &str) -> Result<Arc<dyn Relation>> {
        crate::files::open(path, &Options::default())
    }

    fn open_with(path: &str, options: &[(&str, Value)]) -> Result<Arc<dyn Relation>> {
        let named = options.iter().map(|(name, value)| (Some((*name).to_owned()), value.clone(), DataType::Varchar));
        let path = (None, Value::Text(path.into()), DataType::Varchar);
        read_function(Format::Csv, &std::iter::once(path).chain(named).collect::<Vec<_>>())
    }

    fn text(value: &str) -> Value {
        Value::Text(value.into())
    }

    #[test]
    fn rows_of_several_files_come_in_order_whatever_the_blocks() {
        let directory = Directory::new();
        let mut expected = Vec::new();
        for file in 0..2 {
            let mut content = String::from("id,text,day\r\n");
            for i in 0..40_000 {
                let id = file * 40_000 + i;
                // Line ends and quotes inside of quotes, so that blocks must not be cut at just any line end.
                let (written, read) = match i % 3 {
                    0 => (format!("\"a\nb,\"\"{i}\"\"\""), format!("a\nb,\"{i}\"")),
                    1 => (String::new(), "NULL".to_owned()),
                    _ => (format!("plain text of row {i}"), format!("plain text of row {i}")),
                };
                content.push_str(&format!("{id},{written},2024-02-29\r\n"));
                expected.push([id.to_string(), read, "2024-02-29".to_owned()]);
            }
            directory.write(&format!("{file}.csv"), content);
        }
        let relation = open(&directory.path("*.csv")).unwrap();
        let rows = read(&*relation, vec![], 2048).unwrap();
        assert_eq!(rows.len(), expected.len());
        assert!(rows.iter().zip(&expected).all(|(row, expected)| row == expected));
        let estimate = relation.statistics().rows.unwrap();
        assert!(estimate.abs_diff(80_000) < 8_000, "{estimate}");
    }

    #[test]
    fn small_chunks_and_missing_final_line_ends() {
        let directory = Directory::new();
        let path = directory.write("a.csv", "\u{feff}n|s\n1|x\n\n2|\"y\"\"z\"\n3|");
        let relation = open(&path).unwrap();
        assert_eq!(relation.schema()[0].name.as_ref(), "n");
        assert_eq!(read(&*relation, vec![], 3).unwrap(), [["1", "x"], ["2", "y\"z"], ["3", "NULL"]]);
    }

    #[test]
    fn values_that_do_not_fit_are_named_with_file_line_and_column() {
        let directory = Directory::new();
        let mut content = String::from("id,name\n");
        (0..30_000).for_each(|i| content.push_str(&format!("{i},n{i}\n")));
        content.push_str("oops,x\n");
        let path = directory.write("a.csv", &content);
        let error = read(&*open(&path).unwrap(), vec![], 2048).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.message().ends_with("a.csv', line 30002, column \"id\": 'oops' is not a BIGINT"), "{error}");
        assert!(error.hint().unwrap().contains("id: VARCHAR"));

        let ignoring = open_with(&path, &[("ignore_errors", Value::Boolean(true))]).unwrap();
        assert_eq!(read(&*ignoring, vec![], 2048).unwrap().len(), 30_000);
        let typed = open_with(&path, &[("types", text("id: VARCHAR"))]).unwrap();
        assert_eq!(read(&*typed, vec![], 2048).unwrap()[30_000], ["oops", "x"]);
    }

    #[test]
    fn records_of_the_wrong_width_are_named() {
        let directory = Directory::new();
        let path = directory.write("a.csv", "a,b\n1,2\n3\n4,5\n");
        let error = read(&*open(&path).unwrap(), vec![], 2048).unwrap_err();
        assert!(error.message().ends_with("a.csv', line 3: 1 field where 2 are expected"), "{error}");
    }

    #[test]
    fn options_say_how_a_file_is_written() {
        let directory = Directory::new();
        let path = directory.write("a.txt", "comment\n1;NA;'x;''y'\n2;3.50;z\n");
        let options = [
            ("skip", Value::Integer(1)),
            ("delim", text(";")),
            ("quote", text("'")),
            ("header", Value::Boolean(false)),
            ("nullstr", text("NA")),
            ("columns", text("n: UTINYINT, d: DECIMAL(9,2), s: VARCHAR")),
        ];
        let relation = open_with(&path, &options).unwrap();
        assert_eq!(read(&*relation, vec![], 2048).unwrap(), [["1", "NULL", "x;'y"], ["2", "3.50", "z"]]);
        let all = open_with(&path, &[("skip", Value::Integer(1)), ("all_varchar", Value::Boolean(true))]).unwrap();
        assert!(all.schema().iter().all(|field| field.ty == DataType::Varchar));
        assert!(open_with(&path, &[("delimm", text(";"))]).unwrap_err().message().contains("delimm"));
        assert!(open_with(&path, &[("delim", text("ab"))]).is_err());
    }

    #[test]
    fn missing_empty_and_binary_files_are_errors() {
        let directory = Directory::new();
        let missing = open(&directory.path("none.csv")).unwrap_err();
        assert!(missing.kind() == ErrorKind::Io && missing.message().contains("none.csv"));
        assert!(open(&directory.write("empty.csv", "")).unwrap_err().message().contains("empty.csv"));
        let path = directory.write("latin.csv", b"a,b\n1,caf\xE9\n");
        let error = read(&*open(&path).unwrap(), vec![], 2048).unwrap_err();
        assert!(error.message().contains("line 2") && error.message().contains("UTF-8"), "{error}");
        let header = open(&directory.write("header.csv", "a,b\n")).unwrap();
        assert!(read(&*header, vec![], 2048).unwrap().len() <= 1);
    }
}
