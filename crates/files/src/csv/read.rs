//! The parallel scan of CSV files.
//!
//! 1. Workers take *blocks* ([`block`](super::block)), the morsels: under a lock, a worker reads the next
//!    megabytes and cuts them after the last record that ends there. This is the only sequential step: where
//!    a record ends depends on all quotes before it.
//! 2. Outside the lock the worker splits enough records for a chunk into fields, and then converts these
//!    column by column.
//!
//! A record that is longer than a block is read in full before it is split: what that takes is reserved
//! before it is read.
//!
//! A field that is not of its column's type, a record with the wrong number of fields and a quote that is
//! never closed are errors that name file, line, column and value. With `ignore_errors` the row is skipped
//! instead, and with `store_rejects` it is also recorded. Which rows these are must not depend on the query,
//! so all columns are converted then.

use super::CsvOptions;
use super::block::{Block, OWNER, Records, Splitter};
use super::field::{Texts, read_column};
use super::files::{CsvFile, CsvFiles};
use super::lines::lines;
use super::record::{Scanner, Span};
use super::reject::{Reject, RejectKind};
use crate::bounds::Bounds;
use crate::columns::{Origin, write_constants};
use entasis_engine::exec::{MemoryBudget, QueryContext, Reservation};
use entasis_engine::pruning::PruningPredicate;
use entasis_engine::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{Chunk, ColumnId, Error, Result, Schema, Selection, Vector};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a text that errors show at most.
const SHOWN_BYTES: usize = 1 << 10;

/// Files whose first rows were examined, as a relation.
pub(super) struct CsvRelation(Arc<CsvFiles>);

impl CsvRelation {
    /// The relation of `files`, which have `bytes` bytes in total, if that is known, and `row_bytes` bytes
    /// per row.
    pub(super) fn new(
        name: &str,
        schema: Schema,
        guessed: Vec<bool>,
        files: Vec<CsvFile>,
        bytes: Option<u64>,
        row_bytes: f64,
        options: CsvOptions,
    ) -> CsvRelation {
        CsvRelation(Arc::new(CsvFiles {
            name: name.to_owned(),
            schema,
            guessed,
            files,
            bytes,
            row_bytes,
            options,
        }))
    }
}

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
        &self.0.schema
    }

    fn statistics(&self) -> Statistics {
        let rows = self.0.bytes.map(|bytes| (bytes as f64 / self.0.row_bytes.max(1.0)) as u64);
        Statistics { rows, columns: Vec::new() }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let relation = &self.0;
        let mut columns: Vec<usize> = request.columns.iter().map(|(_, column)| *column).collect();
        let given = columns.len();
        if relation.options.leaves_out() {
            columns.extend(
                (0..relation.schema.len())
                    .filter(|column| !columns[..given].contains(column))
                    .collect::<Vec<_>>(),
            );
        }
        let column_of =
            |id: ColumnId| request.columns.iter().find(|(own, _)| *own == id).map(|(_, column)| *column);
        // Values from a file's path may rule the file out.
        let tests: Vec<PruningPredicate> =
            request.filters.iter().filter_map(|filter| PruningPredicate::of(filter, &column_of)).collect();
        let wanted = |file: &CsvFile| {
            let of_path = |origin: &Origin| match origin {
                Origin::Value(value) => Some(Bounds::constant(value, 1)),
                Origin::Column(_) => None,
            };
            let bounds: Vec<Option<Bounds>> = file.columns.iter().map(of_path).collect();
            let known = |column: usize| bounds.get(column)?.as_ref().map(Bounds::known);
            file.width > 0 && tests.iter().all(|test| test.may_pass(&known))
        };
        let files = (0..relation.files.len()).filter(|file| wanted(&relation.files[*file])).collect();
        let memory = MemoryBudget::part_of(&context.memory, OWNER);
        let splitter = Splitter::new(relation.clone(), files, context.cancel.clone(), &memory);
        Ok(Arc::new(CsvSource {
            relation: relation.clone(),
            columns,
            given,
            number: relation.options.rejects.as_ref().map_or(0, |rejects| rejects.begin()),
            chunk_rows: context.settings.chunk_rows.max(1),
            splitter: Arc::new(Mutex::new(splitter)),
            context: context.clone(),
            memory,
        }))
    }
}

struct CsvSource {
    relation: Arc<CsvFiles>,
    columns: Vec<usize>,
    given: usize,
    /// Distinguishes the rejects of this scan from those of others.
    number: u64,
    chunk_rows: usize,
    splitter: Arc<Mutex<Splitter>>,
    context: QueryContext,
    memory: Arc<MemoryBudget>,
}

impl Source for CsvSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let schema = &self.relation.schema;
        Ok(Box::new(CsvWorker {
            relation: self.relation.clone(),
            splitter: self.splitter.clone(),
            chunk_rows: self.chunk_rows,
            block: Block { records: Records::new(&self.memory), ..Block::default() },
            scanner: None,
            record: Vec::new(),
            copies: Vec::new(),
            copies_memory: Reservation::new(&self.memory),
            context: self.context.clone(),
            starts: Vec::new(),
            spans: self.columns.iter().map(|_| Vec::new()).collect(),
            vectors: self.columns.iter().map(|&column| Vector::new(schema[column].ty.physical())).collect(),
            bad: Vec::new(),
            columns: self.columns.clone(),
            given: self.given,
            number: self.number,
        }))
    }

    fn progress(&self) -> Option<f64> {
        let splitter = self.splitter.lock().unwrap_or_else(PoisonError::into_inner);
        Some((splitter.bytes() as f64 / self.relation.bytes?.max(1) as f64).min(1.0))
    }
}

struct CsvWorker {
    relation: Arc<CsvFiles>,
    splitter: Arc<Mutex<Splitter>>,
    columns: Vec<usize>,
    /// The number of requested columns; the others are only checked.
    given: usize,
    number: u64,
    chunk_rows: usize,
    block: Block,
    /// The scanner of the block; `None` before the first block.
    scanner: Option<Scanner>,
    /// The fields of the last scanned record.
    record: Vec<Span>,
    copies: Vec<u8>,
    /// The memory that is reserved for the copies of a long block.
    copies_memory: Reservation,
    context: QueryContext,
    /// The start of each record of the chunk in the block.
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
        let Some(mut scanner) = self.scanner else { return Ok(()) };
        self.reserve_copies()?;
        let is_long = self.block.records.memory.bytes() > 0;
        let relation = self.relation.clone();
        let file = &relation.files[self.block.file];
        let options = &relation.options;
        while self.starts.len() < self.chunk_rows {
            if is_long {
                self.context.check()?;
            }
            if !scanner.record(self.block.bytes(), &mut self.record, &mut self.copies) {
                break;
            }
            if let Some(quote) = scanner.unclosed {
                self.leave_out(RejectKind::UnclosedQuote, scanner.start(), None, |worker| {
                    worker.unclosed(quote)
                })?;
                scanner.skip_line(self.block.bytes());
                self.block.header = false;
                continue;
            }
            if let Some(stray) = scanner.stray.filter(|_| options.strict) {
                let start = scanner.start();
                self.leave_out(RejectKind::StrayText, start, None, |worker| worker.stray(start, stray))?;
                self.block.header = false;
                continue;
            }
            if self.block.header {
                self.block.header = false;
                continue;
            }
            if options.null_padding && self.record.len() < file.width {
                self.record.resize(file.width, Span::MISSING);
            }
            if self.record.len() != file.width {
                let kind = match self.record.len() < file.width {
                    true => RejectKind::MissingColumns,
                    false => RejectKind::TooManyColumns,
                };
                let start = scanner.start();
                self.leave_out(kind, start, None, |worker| worker.wrong_width(start))?;
                continue;
            }
            self.starts.push(scanner.start());
            for (spans, &column) in self.spans.iter_mut().zip(&self.columns) {
                if let Origin::Column(field) = file.columns[column] {
                    spans.push(self.record[field]);
                }
            }
        }
        self.scanner = Some(scanner);
        Ok(())
    }

    /// Makes room for copies of texts of a long block, of which some are in quotes with quotes inside.
    fn reserve_copies(&mut self) -> Result<()> {
        let quote = self.file().dialect.quote;
        let bytes = &self.block.records.bytes;
        if self.block.records.memory.bytes() == 0 || !quote.is_some_and(|quote| bytes.contains(&quote)) {
            if self.copies_memory.bytes() > 0 {
                self.copies = Vec::new();
                self.copies_memory.resize(0)?;
            }
            return Ok(());
        }
        self.copies_memory.resize(bytes.len())?;
        self.copies.reserve_exact(bytes.len());
        Ok(())
    }

    /// Skips the row that begins at `start`, if the options say so.
    ///
    /// # Errors
    /// `error` otherwise.
    fn leave_out(
        &self,
        kind: RejectKind,
        start: usize,
        column: Option<usize>,
        error: impl FnOnce(&CsvWorker) -> Error,
    ) -> Result<()> {
        let options = &self.relation.options;
        if !options.leaves_out() {
            return Err(error(self));
        }
        if let Some(rejects) = &options.rejects {
            let line =
                self.block.bytes()[start..].split(|b| matches!(b, b'\n' | b'\r')).next().unwrap_or_default();
            let reject = Reject {
                scan: self.number,
                file: self.file().path.display().to_string(),
                line: self.block.line + lines(&self.block.bytes()[..start]),
                column: column.map(|column| self.relation.schema[column].name.to_string()),
                kind,
                text: String::from_utf8_lossy(line).into_owned(),
                message: error(self).message().to_owned(),
            };
            rejects.add(reject, options.rejects_limit);
        }
        Ok(())
    }

    fn file(&self) -> &CsvFile {
        &self.relation.files[self.block.file]
    }

    fn place(&self, at: usize) -> String {
        let path = self.file().path.display();
        format!("'{path}', line {}", self.block.line + lines(&self.block.bytes()[..at]))
    }

    /// The name of field number `field` of a record.
    fn column_of(&self, field: usize) -> String {
        let column = self.file().columns.iter().position(|origin| *origin == Origin::Column(field));
        match column {
            Some(column) => format!("column \"{}\"", self.relation.schema[column].name),
            None => format!("field {}", field + 1),
        }
    }

    fn unclosed(&self, at: usize) -> Error {
        let column = self.column_of(self.record.len() - 1);
        Error::input(format!("{}, {column}: a quote opens here and is never closed", self.place(at))).with_hint(
            "close it; if quotes are ordinary text, use quote => \'\'; or skip such rows with ignore_errors => true",
        )
    }

    /// The error of a record that begins at `start` and has text at `at` behind a closing quote.
    fn stray(&self, start: usize, at: usize) -> Error {
        let (bytes, line) = (self.block.bytes(), |at| self.block.line + lines(&self.block.bytes()[..at]));
        let rest = bytes[at..].split(|b| matches!(b, b'\n' | b'\r')).next().unwrap_or_default();
        let mut shown = String::from_utf8_lossy(&rest[..rest.len().min(SHOWN_BYTES)]).into_owned();
        if let Some((end, _)) = shown.char_indices().nth(40) {
            shown.replace_range(end.., "…");
        }
        let place = self.place(start);
        let text = match line(at) == line(start) {
            true => format!("{place}: text follows a closing quote: {shown}"),
            false => format!(
                "{place}: text follows the closing quote of a field that ends in line {}: {shown}",
                line(at)
            ),
        };
        Error::input(text).with_hint(
            "a quote within quotes is doubled; if quotes are ordinary text, use quote => ''; strict_mode => false \
             takes such fields as they are, and ignore_errors => true skips such rows",
        )
    }

    fn wrong_width(&self, start: usize) -> Error {
        let found = self.record.len();
        let width = self.file().width;
        let fields = if found == 1 { "field" } else { "fields" };
        let (place, last) = (self.place(start), self.column_of(found.min(width - 1)));
        let text = match found < width {
            true => format!("{place}: {found} {fields} where {width} are expected, {last} is missing"),
            false => format!("{place}: {found} {fields} where {width} are expected, {last} is the last"),
        };
        Error::input(text).with_hint(
            "set the dialect with delim, quote and skip, fill short rows with null_padding => true, or skip such rows \
             with ignore_errors => true",
        )
    }

    fn wrong_value(&self, row: usize, slot: usize) -> Error {
        let column = self.columns[slot];
        let field = &self.relation.schema[column];
        let text = self.spans[slot][row].text(self.block.bytes(), &self.copies);
        let mut shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]).into_owned();
        if let Some((end, _)) = shown.char_indices().nth(100) {
            shown.replace_range(end.., "…");
        }
        let place = self.place(self.starts[row]);
        if std::str::from_utf8(text).is_err() {
            return Error::input(format!("{place}, column \"{}\": '{shown}' is not UTF-8 text", field.name))
                .with_hint("specify the encoding, for example encoding => 'latin-1'");
        }
        let hint = match self.relation.guessed[column] {
            true => format!(
                "the type was guessed from the first rows; say it with types => {{'{}': 'VARCHAR'}}, or use \
                 all_varchar => true",
                field.name
            ),
            false => "skip such rows with ignore_errors => true".to_owned(),
        };
        Error::input(format!("{place}, column \"{}\": '{shown}' is not a valid {}", field.name, field.ty))
            .with_hint(hint)
    }

    /// Makes the vectors of the columns that have one value in the whole file.
    fn write_constants(&mut self) -> Result<()> {
        let file = &self.relation.files[self.block.file];
        write_constants(&mut self.vectors, &self.columns, &self.relation.schema, &file.columns)
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
            let before = self.scanner.map(|_| self.block.file);
            {
                let mut splitter = self.splitter.lock().unwrap_or_else(PoisonError::into_inner);
                if !splitter.next(&mut self.block)? {
                    return Ok(false);
                }
            }
            self.scanner = Some(Scanner::new(self.file().dialect, 0));
            if before != Some(self.block.file) {
                self.write_constants()?;
            }
        }
        let rows = self.starts.len();
        self.bad.clear();
        let options = &self.relation.options;
        for (slot, &column) in self.columns.iter().enumerate() {
            let spans = &self.spans[slot];
            if let Origin::Value(_) = self.file().columns[column] {
                continue;
            }
            let (ty, guessed) = (self.relation.schema[column].ty, self.relation.guessed[column]);
            let bytes = self.block.bytes();
            let texts = Texts { spans, bytes, copies: &self.copies, ty, guessed, options };
            let known = self.bad.len();
            read_column(&texts, &mut self.vectors[slot], &mut self.bad)?;
            for &row in &self.bad[known..] {
                let error = |worker: &CsvWorker| worker.wrong_value(row, slot);
                self.leave_out(RejectKind::Cast, self.starts[row], Some(column), error)?;
            }
        }
        let (selection, rows) = if self.bad.is_empty() {
            (Selection::ALL, rows)
        } else {
            let good: Vec<u16> =
                (0..rows as u16).filter(|row| !self.bad.contains(&usize::from(*row))).collect();
            (Selection::from_indices(&good), good.len())
        };
        chunk.reset(rows);
        let group = chunk.push_group(selection);
        self.vectors[..self.given].iter().for_each(|vector| chunk.push_column(vector.clone(), group));
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.block.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option_values::plain;
    use crate::test_files::{Directory, parse_type, read};
    use crate::{Format, Options, read_function};
    use entasis_engine::exec::CancelFlag;
    use entasis_vector::{DataType, ErrorKind, Value};

    fn open(path: &str) -> Result<Arc<dyn Relation>> {
        crate::open(path, &Options::default(), &CancelFlag::default())
    }

    fn open_with(path: &str, options: &[(&str, Value)]) -> Result<Arc<dyn Relation>> {
        let named = options.iter().map(|(name, value)| (Some((*name).to_owned()), plain(value)));
        let path = (None, plain(&Value::Text(path.into())));
        read_function(
            "read_csv",
            Format::Csv,
            &std::iter::once(path).chain(named).collect::<Vec<_>>(),
            &Arc::default(),
            &crate::Host {
                cancel: &CancelFlag::default(),
                zone: entasis_functions::TimeZone::UTC,
                parse_type,
            },
        )
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
                // Line ends and quotes within quotes, so that blocks must not be cut at any line end.
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
        assert!(
            error.message().ends_with("a.csv', line 30002, column \"id\": 'oops' is not a valid BIGINT"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("'id': 'VARCHAR'"));

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
        assert!(
            error
                .message()
                .ends_with("a.csv', line 3: 1 field where 2 are expected, column \"b\" is missing"),
            "{error}"
        );
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
        let all =
            open_with(&path, &[("skip", Value::Integer(1)), ("all_varchar", Value::Boolean(true))]).unwrap();
        assert!(all.schema().iter().all(|field| field.ty == DataType::Varchar));
        assert!(open_with(&path, &[("delimm", text(";"))]).unwrap_err().message().contains("delimm"));
        assert!(open_with(&path, &[("delim", text("abcde"))]).is_err());
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
        assert!(read(&*header, vec![], 2048).unwrap().is_empty());
    }

    #[test]
    fn long_records_are_reserved_before_they_are_read() {
        const LIMIT: usize = 128 << 20;
        let directory = Directory::new();
        let long = 20 << 20;
        let texts = ["x".repeat(long), "x\"\"".repeat(long / 3), "é\n".repeat(long / 3)];
        for (text, encoding) in texts.iter().zip(["utf-8", "utf-8", "utf-16"]) {
            let file = |times: usize| {
                let text = format!("a,b\n1,short\n2,\"{}\"\n3,end\n", text.repeat(times));
                match encoding {
                    "utf-16" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
                    _ => text.into_bytes(),
                }
            };
            let scan = |times: usize| {
                let path = directory.write("a.csv", file(times));
                let relation = open_with(&path, &[("encoding", self::text(encoding))]).unwrap();
                let context =
                    QueryContext { memory: Arc::new(MemoryBudget::new(LIMIT)), ..Default::default() };
                let columns = (0..2).map(|i| (ColumnId(i as u32), i)).collect();
                let source = relation.scan(&ScanRequest::all(columns), &context)?;
                let (mut worker, mut chunk, mut lengths) = (source.worker()?, Chunk::new(), Vec::new());
                while worker.next(&mut chunk)? {
                    let length =
                        |row| chunk.value(row, 1, DataType::Varchar).display(DataType::Varchar).to_string();
                    lengths.extend((0..chunk.len()).map(|row| length(row).len()));
                }
                drop((worker, source));
                assert_eq!(context.memory.used(), 0);
                Ok::<_, Error>((lengths, context.memory.peak()))
            };
            let (lengths, peak) = scan(1).unwrap();
            assert_eq!(lengths, [5, text.replace("\"\"", "\"").len(), 3]);
            assert!((long..LIMIT).contains(&peak), "{peak}");
            let error = scan(8).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Resource, "{error}");
            assert!(error.message().contains(OWNER), "{error}");
        }
    }
}
