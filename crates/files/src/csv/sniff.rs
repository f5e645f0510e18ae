//! Guesses the dialect and columns of a file from its first rows.
//!
//! 1. **Delimiter and quote**: each combination is tried on the sample; the one with which most rows have the
//!    same number of fields wins, then the one with more fields, then the more usual one. A quote other than
//!    `"` must occur as one.
//! 2. **Types**: a column starts with all candidate types and loses those that do not accept a value
//!    ([`Guess`]). The first that remains is its type; a column without values is VARCHAR.
//! 3. **Header**: the first row is a header if it has a name in a column whose other rows have another type
//!    than text, or if everything is text and nothing in the first row looks like a value.

use super::CsvOptions;
use super::dialect::Dialect;
use super::guess::{Guess, is_value};
use super::record::{Scanner, Span};
use crate::delimiter::Delimiter;
use entasis_vector::{DataType, Error, Result};

const DELIMITERS: [u8; 4] = *b",\t|;";
const QUOTES: [u8; 2] = *b"\"'";
/// Number of rows used to find the delimiter.
const DIALECT_ROWS: usize = 500;

/// The findings about a file.
#[derive(Debug, Clone)]
pub(super) struct Sniffed {
    pub(super) dialect: Dialect,
    /// Whether the first row contains names.
    pub(super) header: bool,
    /// The names in the header, or `column0` and so on.
    pub(super) names: Vec<String>,
    /// The guess of each column.
    pub(super) guesses: Vec<Guess>,
    /// Average number of bytes in a row.
    pub(super) row_bytes: f64,
}

/// Examines the first rows of a file. `sample` begins with the first row and ends at the end of a row. `None`
/// if there are no rows.
///
/// # Errors
/// Input, if there is nothing but an unclosed quote.
pub(super) fn sniff(name: &str, sample: &[u8], options: &CsvOptions) -> Result<Option<Sniffed>> {
    let mut dialect = find_dialect(sample, options);
    let mut rows = Rows::scan(sample, dialect, options.sample_rows, options.strict);
    let is_one_column = options.columns.as_ref().is_some_and(|columns| columns.len() == 1);
    if rows.len() == 0 && !rows.unclosed && is_one_column && options.header != Some(true) {
        // Nothing but NULLs.
        dialect.blank_rows = true;
        rows = Rows::scan(sample, dialect, options.sample_rows, options.strict);
    }
    let Some(first) = rows.get(0) else {
        if rows.unclosed {
            return Err(Error::input(format!(
                "'{name}': a quote opens in the first row and is never closed"
            ))
            .with_hint("specify the quote character, or quote => '' for none"));
        }
        return Ok(None);
    };
    let width = match &options.columns {
        Some(columns) => columns.len(),
        None if options.null_padding => (0..rows.len()).map(|row| rows.width(row)).max().unwrap_or(0),
        None => first.len(),
    };
    dialect.blank_rows = width == 1;
    let row_bytes = rows.bytes as f64 / rows.len() as f64;
    let narrow = |guesses: &mut Vec<Guess>, row: &[(Span, &[u8])]| {
        for (guess, (span, text)) in guesses.iter_mut().zip(row) {
            if !options.is_null(*span, text, DataType::Null) {
                guess.narrow(text, &options.formats);
            }
        }
    };
    let mut guesses = vec![Guess::NOTHING; width];
    for row in 1..rows.len() {
        narrow(&mut guesses, &rows.get(row).unwrap_or_default());
    }
    let texts: Vec<&[u8]> = first.iter().map(|(_, text)| *text).collect();
    let header = options.header.unwrap_or_else(|| is_header(&texts, &guesses, options));
    if !header {
        narrow(&mut guesses, &first);
    }
    let names = match header {
        true => header_names(&texts, width),
        false => (0..width).map(|i| format!("column{i}")).collect(),
    };
    Ok(Some(Sniffed { dialect, header, names, guesses, row_bytes }))
}

/// Whether the first row, with these texts, contains the names of the columns below it.
fn is_header(first: &[&[u8]], below: &[Guess], options: &CsvOptions) -> bool {
    let columns = || first.iter().zip(below);
    let mut differing = columns().filter(|(text, guess)| {
        !text.is_empty() && !is_value(text, &options.formats) && guess.is_refuted_by(text, &options.formats)
    });
    if differing.next().is_some() {
        return true;
    }
    if let Some(schema) = &options.columns {
        // If the names are known, a header is recognized even among texts.
        return first.len() == schema.len()
            && first
                .iter()
                .zip(schema)
                .all(|(text, field)| field.name.as_bytes().eq_ignore_ascii_case(text));
    }
    let all_text = columns().all(|(_, guess)| guess.ty() == DataType::Varchar);
    all_text && first.iter().all(|text| !text.is_empty() && !is_value(text, &options.formats))
}

/// The records of a sample.
struct Rows<'a> {
    sample: &'a [u8],
    fields: Vec<Span>,
    copies: Vec<u8>,
    ends: Vec<usize>,
    bytes: usize,
    /// Rows that cannot be read because text follows a closing quote.
    strays: Vec<usize>,
    /// Whether a quote in the record after them is not closed.
    unclosed: bool,
}

impl<'a> Rows<'a> {
    fn scan(sample: &'a [u8], dialect: Dialect, limit: usize, strict: bool) -> Rows<'a> {
        let mut rows = Rows {
            sample,
            fields: Vec::new(),
            copies: Vec::new(),
            ends: Vec::new(),
            bytes: 0,
            strays: Vec::new(),
            unclosed: false,
        };
        let mut scanner = Scanner::new(dialect, 0);
        let mut record = Vec::new();
        while rows.ends.len() < limit && scanner.record(sample, &mut record, &mut rows.copies) {
            if scanner.unclosed.is_some() {
                rows.unclosed = true;
                break;
            }
            if strict && scanner.stray.is_some() {
                rows.strays.push(rows.ends.len());
            }
            rows.fields.extend_from_slice(&record);
            rows.ends.push(rows.fields.len());
            rows.bytes = scanner.at;
        }
        rows
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn start(&self, row: usize) -> usize {
        if row == 0 { 0 } else { self.ends[row - 1] }
    }

    /// The fields of a row.
    fn get(&self, row: usize) -> Option<Vec<(Span, &[u8])>> {
        let end = *self.ends.get(row)?;
        let spans = &self.fields[self.start(row)..end];
        Some(spans.iter().map(|span| (*span, span.text(self.sample, &self.copies))).collect())
    }

    fn width(&self, row: usize) -> usize {
        self.ends[row] - self.start(row)
    }

    /// How well the dialect explains the sample: the number of rows that have the most frequent number of
    /// fields, and that number. If rows may be short, the number of rows with several fields, and the largest
    /// number of fields.
    fn score(&self, padding: bool) -> (usize, usize) {
        if padding {
            let widths = || (0..self.len()).map(|row| self.width(row));
            return (widths().filter(|width| *width > 1).count(), widths().max().unwrap_or(0));
        }
        let is_read = |row: &usize| self.strays.binary_search(row).is_err();
        let mut widths: Vec<usize> = (0..self.len()).filter(is_read).map(|row| self.width(row)).collect();
        widths.sort_unstable();
        let runs = widths.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0]));
        runs.max().unwrap_or((0, 0))
    }
}

fn find_dialect(sample: &[u8], options: &CsvOptions) -> Dialect {
    let delimiters =
        options.delimiter.map_or(DELIMITERS.map(Delimiter::byte).to_vec(), |delimiter| vec![delimiter]);
    let quotes = options.quote.map_or(QUOTES.map(Some).to_vec(), |quote| vec![quote]);
    let mut best: Option<((bool, f64, usize), Dialect)> = None;
    for &delimiter in &delimiters {
        for &quote in &quotes {
            let dialect = Dialect {
                delimiter,
                quote,
                escape: options.escape,
                comment: options.comment,
                blank_rows: false,
            };
            let rows = Rows::scan(sample, dialect, DIALECT_ROWS, options.strict);
            if quote != quotes[0] && !rows.fields.iter().any(|span| span.is_quoted()) {
                continue;
            }
            let (agreeing, width) = rows.score(options.null_padding);
            let share = agreeing as f64 / rows.len().max(1) as f64;
            // Text that only sometimes contains a delimiter is a single column.
            let columns = width > 1 && share > 0.5 && (options.null_padding || rows.width(0) == width);
            let score = (columns, share, width);
            if best.as_ref().is_none_or(|(other, _)| score > *other) {
                best = Some((score, dialect));
            }
        }
    }
    best.expect("the first quote is tried").1
}

/// Names of columns: missing and repeated names get a number.
fn header_names(header: &[&[u8]], width: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(width);
    for i in 0..width {
        let text = header
            .get(i)
            .map_or(String::new(), |text| String::from_utf8_lossy(text.trim_ascii()).into_owned());
        let wanted = if text.is_empty() { format!("column{i}") } else { text };
        let mut name = wanted.clone();
        let mut number = 0;
        while names.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::Field;

    fn sniffed(sample: &str) -> Sniffed {
        sniff("x.csv", sample.as_bytes(), &CsvOptions::default()).unwrap().unwrap()
    }

    fn types(sample: &str) -> Vec<DataType> {
        sniffed(sample).guesses.iter().map(|guess| guess.ty()).collect()
    }

    #[test]
    fn delimiters_headers_and_types_are_found() {
        for delimiter in [",", ";", "\t", "|"] {
            let text = "id,name,price,day,at,ok,empty\n1,Ann,1.5,2024-01-01,2024-01-01 10:00:00,true,\n,Bob,2,2024-01-02,2024-01-02,false,\n";
            let found = sniffed(&text.replace(',', delimiter));
            assert_eq!((found.dialect.delimiter, found.header), (Delimiter::new(delimiter).unwrap(), true));
            use DataType::*;
            let expected = [Int64, Varchar, Float64, Date, Timestamp, Boolean, Varchar];
            assert!(found.guesses.iter().map(|guess| guess.ty()).eq(expected));
            assert_eq!(found.names[3], "day");
        }
        for (text, ty) in [("12:00:00", DataType::Time), ("2024-01-01T10:00:00Z", DataType::TimestampTz)] {
            assert_eq!(types(&format!("a,b\n1,{text}\n2,\n"))[1], ty);
        }
    }

    #[test]
    fn empty_lines_are_rows_of_the_only_column() {
        let found = |columns: usize, header| {
            let columns = Some(vec![Field::new("a", DataType::Int64); columns]);
            let options = CsvOptions { columns, header, ..CsvOptions::default() };
            sniff("x.csv", b"\n\n", &options).unwrap().is_some_and(|found| found.dialect.blank_rows)
        };
        assert!(found(1, None) && found(1, Some(false)));
        assert!(!found(1, Some(true)) && !found(2, Some(false)));
    }

    #[test]
    fn a_first_row_of_names_is_a_header() {
        for (text, header) in [
            ("1,a\n2,b\n", false),
            ("a,a\nx,y\nz,w\n", true),
            ("id,name\n", true),
            ("1,ann\n", false),
            ("007,ann\n12,ben\n", false),
            ("007,ann\n012,ben\n", false),
            ("id,2020\n1,5\n", true),
            ("2020,2021\n1,5\n", false),
            ("zip\n01234\n", true),
            ("\"\",b\nx,y\n", false),
        ] {
            assert_eq!(sniffed(text).header, header, "{text:?}");
        }
        assert_eq!(sniffed("1,a\n").names, ["column0", "column1"]);
        assert_eq!(sniffed("a,a\nx,y\nz,w\n").names, ["a", "a_1"]);
    }

    #[test]
    fn quotes_hide_delimiters_and_line_ends() {
        let found = sniffed("name,text\n'a,b','x\ny'\n'c','d,e'\n");
        assert_eq!((found.dialect.quote, found.names.len()), (Some(b'\''), 2));
        // An unclosed quote does not make a different dialect more likely.
        let found = sniffed("a,b,c\n1,\"x,2\n3,y,4\n");
        let comma = Delimiter::byte(b',');
        assert_eq!((found.dialect.quote, found.dialect.delimiter, found.names.len()), (Some(b'"'), comma, 3));
        let error = sniff("x.csv", b"\"a,b\n", &CsvOptions::default()).unwrap_err();
        assert!(error.message().contains("never closed"), "{error}");
        assert!(sniff("x.csv", b"\n\n", &CsvOptions::default()).unwrap().is_none());
    }
}
