//! Guessing how a file is written from its first rows.
//!
//! 1. **Delimiter and quote**: each combination cuts the sample; the one that gives most rows the same number of fields
//!    wins, then the one with more fields, then the more usual one.
//! 2. **Types**: a column starts with all candidate types and loses those that a value is not of. The first that is left
//!    in the order BOOLEAN, BIGINT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, VARCHAR is its type; a column without
//!    values is VARCHAR.
//! 3. **Header**: the first row is one if it does not fit the types of the rows that follow, or if all are text, which
//!    decides nothing.

use super::field::{date, float, integer, time, timestamp, timestamp_tz};
use super::record::{Scanner, Span};
use super::{CsvOptions, Dialect};
use entasis_vector::{DataType, Error, Field, Result, Schema};

const DELIMITERS: [u8; 4] = *b",\t|;";
const QUOTES: [u8; 2] = *b"\"'";
const CANDIDATES: [DataType; 7] = [
    DataType::Boolean,
    DataType::Int64,
    DataType::Float64,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::TimestampTz,
];
/// Rows that are looked at to find the delimiter.
const DIALECT_ROWS: usize = 500;

/// What was found.
#[derive(Debug)]
pub(super) struct Sniffed {
    pub(super) dialect: Dialect,
    pub(super) header: bool,
    pub(super) schema: Schema,
    /// Bytes of a row, on average.
    pub(super) row_bytes: f64,
    /// Whether the types were guessed, so that a later value may not fit.
    pub(super) guessed: bool,
}

/// Looks at the first rows of a file. `sample` begins with the first row and ends with a row.
///
/// # Errors
/// Input, if there is nothing to tell the columns from, or not the columns that the options say.
pub(super) fn sniff(name: &str, sample: &[u8], options: &CsvOptions) -> Result<Sniffed> {
    let mut dialect = find_dialect(sample, options);
    let rows = Rows::scan(sample, dialect, options.sample_rows);
    let Some(first) = rows.get(0) else {
        return match &options.columns {
            Some(schema) => {
                Ok(Sniffed { dialect, header: false, schema: schema.clone(), row_bytes: 1.0, guessed: false })
            }
            None => Err(Error::input(format!("'{name}' is empty, so that its columns are unknown"))
                .with_hint("say them: columns => 'name: TYPE, …'")),
        };
    };
    let width = options.columns.as_ref().map_or(first.len(), |columns| columns.len());
    dialect.blank_rows = width == 1;
    let row_bytes = rows.bytes as f64 / rows.len() as f64;

    // Types of the rows that are not the header, if there may be one.
    let body = if options.header == Some(false) { 0 } else { 1 };
    let mut viable = vec![u8::MAX; width];
    let mut seen = vec![false; width];
    for row in body..rows.len() {
        for (column, text) in rows.get(row).unwrap_or_default().iter().take(width).enumerate() {
            if !text.is_empty() && *text != options.null.as_bytes() {
                seen[column] = true;
                viable[column] &= kinds(text, viable[column]);
            }
        }
    }
    let guess = |column: usize| match CANDIDATES.iter().enumerate().find(|(bit, _)| viable[column] & (1 << bit) != 0) {
        Some((_, ty)) if seen[column] => *ty,
        _ => DataType::Varchar,
    };
    let header = options.header.unwrap_or_else(|| {
        let differs = |column: usize| {
            let text = first[column];
            guess(column) != DataType::Varchar && !text.is_empty() && kinds(text, viable[column]) & viable[column] == 0
        };
        let columns = 0..width.min(first.len());
        if let Some(schema) = &options.columns {
            // Names that are known tell a header even among texts.
            let named = |column: usize| schema[column].name.as_bytes().eq_ignore_ascii_case(first[column]);
            return columns.clone().all(named) || columns.clone().any(differs);
        }
        let all_text = columns.clone().all(|column| guess(column) == DataType::Varchar);
        let all_named = columns.clone().all(|column| !first[column].is_empty());
        columns.clone().any(differs) || (all_text && all_named && rows.len() > 1)
    });
    if let Some(schema) = &options.columns {
        return Ok(Sniffed { dialect, header, schema: schema.clone(), row_bytes, guessed: false });
    }
    if !header && body == 1 {
        // What was taken for a header perhaps is a row like the others.
        for (column, text) in first.iter().enumerate() {
            if !text.is_empty() && *text != options.null.as_bytes() {
                seen[column] = true;
                viable[column] &= kinds(text, viable[column]);
            }
        }
    }
    let guess = |column: usize| match CANDIDATES.iter().enumerate().find(|(bit, _)| viable[column] & (1 << bit) != 0) {
        Some((_, ty)) if seen[column] => *ty,
        _ => DataType::Varchar,
    };
    let names = if header { header_names(first) } else { (0..width).map(|i| format!("column{i}")).collect() };
    for (name_of_type, _) in &options.types {
        if !names.iter().any(|name| name.eq_ignore_ascii_case(name_of_type)) {
            return Err(Error::input(format!("'{name}' has no column \"{name_of_type}\" to give a type")));
        }
    }
    let field = |(column, own): (usize, String)| {
        let guessed = if options.all_varchar { DataType::Varchar } else { guess(column) };
        let ty = options.type_of(&own).unwrap_or(guessed);
        Field::new(own, ty)
    };
    let schema = names.into_iter().enumerate().map(field).collect();
    Ok(Sniffed { dialect, header, schema, row_bytes, guessed: !options.all_varchar })
}

/// The records of a sample.
struct Rows<'a> {
    sample: &'a [u8],
    fields: Vec<Span>,
    copies: Vec<u8>,
    ends: Vec<usize>,
    bytes: usize,
}

impl<'a> Rows<'a> {
    fn scan(sample: &'a [u8], dialect: Dialect, limit: usize) -> Rows<'a> {
        let mut rows = Rows { sample, fields: Vec::new(), copies: Vec::new(), ends: Vec::new(), bytes: 0 };
        let mut scanner = Scanner::new(dialect, 0);
        let mut record = Vec::new();
        while rows.ends.len() < limit && scanner.record(sample, &mut record, &mut rows.copies) {
            rows.fields.extend_from_slice(&record);
            rows.ends.push(rows.fields.len());
        }
        rows.bytes = scanner.at;
        rows
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The fields of a row.
    fn get(&self, row: usize) -> Option<Vec<&[u8]>> {
        let end = *self.ends.get(row)?;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        Some(self.fields[start..end].iter().map(|span| span.text(self.sample, &self.copies)).collect())
    }

    fn width(&self, row: usize) -> usize {
        self.ends[row] - if row == 0 { 0 } else { self.ends[row - 1] }
    }

    /// How well the dialect explains the sample: rows that have the most frequent number of fields, and that number.
    fn score(&self) -> (usize, usize) {
        let mut widths: Vec<usize> = (0..self.len()).map(|row| self.width(row)).collect();
        widths.sort_unstable();
        let runs = widths.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0]));
        runs.max().unwrap_or((0, 0))
    }
}

fn find_dialect(sample: &[u8], options: &CsvOptions) -> Dialect {
    let delimiters = options.delimiter.map_or(DELIMITERS.to_vec(), |delimiter| vec![delimiter]);
    let quotes = options.quote.map_or(QUOTES.map(Some).to_vec(), |quote| vec![quote]);
    let mut best: Option<((bool, f64, usize), Dialect)> = None;
    for &delimiter in &delimiters {
        for &quote in &quotes {
            let dialect = Dialect { delimiter, quote, escape: options.escape, blank_rows: false };
            let rows = Rows::scan(sample, dialect, DIALECT_ROWS);
            let (agreeing, width) = rows.score();
            let share = agreeing as f64 / rows.len().max(1) as f64;
            // Text that happens to hold a delimiter here and there is one column.
            let columns = width > 1 && share > 0.5 && rows.width(0) == width;
            let score = (columns, share, width);
            if best.as_ref().is_none_or(|(other, _)| score > *other) {
                best = Some((score, dialect));
            }
        }
    }
    best.expect("there are combinations").1
}

/// Which of the candidates, as bits, the text is a value of, among those that `wanted` has.
fn kinds(text: &[u8], wanted: u8) -> u8 {
    let text = text.trim_ascii();
    let is = |ty: DataType| match ty {
        DataType::Boolean => text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"false"),
        DataType::Int64 => integer(text).is_some() || is_long_integer(text),
        DataType::Float64 => float::<f64>(text).is_some(),
        DataType::Date => date(text).is_some(),
        DataType::Time => time(text).is_some(),
        DataType::Timestamp => timestamp(text).is_some() || date(text).is_some(),
        _ => timestamp_tz(text).is_some(),
    };
    let candidates = CANDIDATES.iter().enumerate();
    candidates.filter(|(bit, ty)| wanted & (1 << bit) != 0 && is(**ty)).fold(0, |bits, (bit, _)| bits | 1 << bit)
}

/// Nineteen digits may still fit a BIGINT.
fn is_long_integer(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok())
}

/// Names of columns: those that are missing or there already get a number.
fn header_names(header: Vec<&[u8]>) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(header.len());
    for (i, text) in header.into_iter().enumerate() {
        let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
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

    fn columns(sample: &str) -> (Dialect, bool, Vec<(String, DataType)>) {
        let sniffed = sniff("x.csv", sample.as_bytes(), &CsvOptions::default()).unwrap();
        let columns = sniffed.schema.iter().map(|field| (field.name.to_string(), field.ty)).collect();
        (sniffed.dialect, sniffed.header, columns)
    }

    #[test]
    fn delimiters_headers_and_types_are_found() {
        for delimiter in [",", ";", "\t", "|"] {
            let text = "id,name,price,day,at,ok,empty\n1,Ann,1.5,2024-01-01,2024-01-01 10:00:00,true,\n,Bob,2,2024-01-02,2024-01-02,false,\n";
            let (dialect, header, columns) = columns(&text.replace(',', delimiter));
            assert_eq!((dialect.delimiter, header), (delimiter.as_bytes()[0], true));
            let types: Vec<DataType> = columns.iter().map(|(_, ty)| *ty).collect();
            use DataType::*;
            assert_eq!(types, [Int64, Varchar, Float64, Date, Timestamp, Boolean, Varchar]);
            assert_eq!(columns[3].0, "day");
        }
        for (text, ty) in [("12:00:00", DataType::Time), ("2024-01-01T10:00:00Z", DataType::TimestampTz)] {
            assert_eq!(columns(&format!("a,b\n1,{text}\n2,\n")).2[1].1, ty);
        }
    }

    #[test]
    fn a_first_row_like_the_others_is_no_header() {
        let (_, header, found) = columns("1,a\n2,b\n");
        assert_eq!((header, found[0].clone()), (false, ("column0".into(), DataType::Int64)));
        let (_, header, found) = columns("a,a\nx,y\nz,w\n");
        assert_eq!((header, found[1].0.as_str()), (true, "a_1"));
    }

    #[test]
    fn quotes_hide_delimiters_and_line_ends() {
        let (dialect, _, found) = columns("name,text\n'a,b','x\ny'\n'c','d,e'\n");
        assert_eq!((dialect.quote, found.len()), (Some(b'\''), 2));
    }
}
