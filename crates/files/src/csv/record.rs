//! Splits bytes into records and fields. The only module that knows quotes.
//!
//! A field that begins with a quote ends at the next quote that is neither doubled nor escaped. Text between
//! that and the next delimiter is part of it, and the scanner reports where it is ([`Scanner::stray`]),
//! unless it is blank: most such fields are damaged. A quote elsewhere is ordinary text. A record ends at
//! `\n`, `\r\n` or `\r` outside quotes. This follows RFC 4180, and where that is silent the usual practice
//! (Python's `csv`, the crate `csv`).
//!
//! A quote that is never closed makes the rest of the bytes one field; the scanner reports its position
//! ([`Scanner::unclosed`]). A line that begins with the comment character is skipped.

use super::dialect::Dialect;
use crate::delimiter::Delimiter;

/// The position of a field's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
    form: Form,
}

/// The form in which a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Without quotes.
    Plain,
    /// In quotes.
    Quoted,
    /// In quotes with quotes inside, and copied without the extra ones.
    Copied,
    /// Missing: the record ends before it.
    Missing,
}

impl Span {
    /// A field that is missing because its record is too short.
    pub(super) const MISSING: Span = Span { start: 0, end: 0, form: Form::Missing };

    /// True if it is written in quotes.
    #[inline]
    pub(super) fn is_quoted(self) -> bool {
        matches!(self.form, Form::Quoted | Form::Copied)
    }

    /// True if it is missing.
    #[inline]
    pub(super) fn is_missing(self) -> bool {
        self.form == Form::Missing
    }

    /// The text of the field, which is in the scanned bytes or in the copies.
    #[inline]
    pub(super) fn text<'a>(self, bytes: &'a [u8], copies: &'a [u8]) -> &'a [u8] {
        let source = if self.form == Form::Copied { copies } else { bytes };
        &source[self.start as usize..self.end as usize]
    }
}

/// Where texts are copied to.
pub(super) trait Copies {
    /// Bytes that were copied so far.
    fn length(&self) -> usize;
    /// Copies `bytes` behind them.
    fn copy(&mut self, bytes: &[u8]);
}

impl Copies for Vec<u8> {
    fn length(&self) -> usize {
        self.len()
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Nowhere: only the ends of records are wanted.
struct Nowhere;

impl Copies for Nowhere {
    fn length(&self) -> usize {
        0
    }

    fn copy(&mut self, _: &[u8]) {}
}

/// Scans records in bytes that begin with a record and are shorter than 4 GiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner {
    dialect: Dialect,
    /// The start of the next record.
    pub(super) at: usize,
    start: usize,
    /// Whether a line end closed the last record, rather than the end of the bytes.
    closed: bool,
    /// Position of a quote in the last record that was not closed before the end of the bytes.
    pub(super) unclosed: Option<usize>,
    /// Position of text in the last record that follows a closing quote.
    pub(super) stray: Option<usize>,
}

impl Scanner {
    pub(super) fn new(dialect: Dialect, at: usize) -> Scanner {
        Scanner { dialect, at, start: at, closed: false, unclosed: None, stray: None }
    }

    /// Moves back to the line after the one on which the last record began.
    pub(super) fn skip_line(&mut self, bytes: &[u8]) {
        self.at = line_end(bytes, self.start);
    }

    /// The start of the last record.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Scans one record into `fields`. Texts that must be copied are appended to `copies`. False at the end.
    pub(super) fn record(&mut self, bytes: &[u8], fields: &mut Vec<Span>, copies: &mut impl Copies) -> bool {
        fields.clear();
        self.closed = false;
        (self.unclosed, self.stray) = (None, None);
        loop {
            match bytes.get(self.at) {
                Some(b'\n' | b'\r') if !self.dialect.blank_rows => self.at += 1,
                Some(_) if bytes.get(self.at).copied() == self.dialect.comment => {
                    self.at = line_end(bytes, self.at)
                }
                _ => break,
            }
        }
        if self.at >= bytes.len() {
            return false;
        }
        self.start = self.at;
        loop {
            let quoted = self.dialect.quote.is_some() && bytes.get(self.at).copied() == self.dialect.quote;
            let span = if quoted { self.quoted(bytes, copies) } else { self.plain(bytes) };
            fields.push(span);
            self.closed = match bytes.get(self.at) {
                None => return true,
                // A field ends at a line end or a delimiter.
                Some(&byte) => matches!(byte, b'\n' | b'\r'),
            };
            if self.closed {
                self.at += if bytes[self.at..].starts_with(b"\r\n") { 2 } else { 1 };
                return true;
            }
            self.at += self.dialect.delimiter.len();
        }
    }

    fn plain(&mut self, bytes: &[u8]) -> Span {
        let start = self.at;
        self.at = field_end(bytes, start, self.dialect.delimiter);
        Span { start: start as u32, end: self.at as u32, form: Form::Plain }
    }

    fn quoted(&mut self, bytes: &[u8], copies: &mut impl Copies) -> Span {
        let Dialect { delimiter, quote, escape, .. } = self.dialect;
        let quote = quote.unwrap_or(b'"');
        let is_special = |&b: &u8| b == quote || Some(b) == escape;
        let start = self.at + 1;
        let copies_start = copies.length();
        let mut copied = false;
        // The text before `from` has been copied already, if any of it must be.
        let mut from = start;
        let mut at = start;
        loop {
            at = bytes[at..].iter().position(is_special).map_or(bytes.len(), |length| at + length);
            let doubled = bytes.get(at) == Some(&quote) && bytes.get(at + 1) == Some(&quote);
            let escaped =
                at + 1 < bytes.len() && Some(bytes[at]) == escape && (bytes[at] != quote || doubled);
            if doubled || escaped {
                copied = true;
                copies.copy(&bytes[from..at]);
                copies.copy(&bytes[at + 1..at + 2]);
                at += 2;
                from = at;
            } else {
                break;
            }
            if at >= bytes.len() {
                break;
            }
        }
        let end = at.min(bytes.len());
        if bytes.get(at) != Some(&quote) {
            self.unclosed = Some(start - 1);
        }
        // After the closing quote; an unclosed field ends at the end of the bytes.
        self.at = (end + 1).min(bytes.len());
        let rest = field_end(bytes, self.at, delimiter);
        if self.stray.is_none() && !bytes[self.at..rest].trim_ascii().is_empty() {
            self.stray = Some(self.at);
        }
        if copied || rest > self.at {
            copies.copy(&bytes[from..end]);
            copies.copy(&bytes[self.at..rest]);
            self.at = rest;
            return Span { start: copies_start as u32, end: copies.length() as u32, form: Form::Copied };
        }
        Span { start: start as u32, end: end as u32, form: Form::Quoted }
    }
}

/// The start of the line after the one at `at`.
fn line_end(bytes: &[u8], at: usize) -> usize {
    let end = bytes[at..]
        .iter()
        .position(|&b| matches!(b, b'\n' | b'\r'))
        .map_or(bytes.len(), |length| at + length);
    end + if bytes[end..].starts_with(b"\r\n") { 2 } else { usize::from(end < bytes.len()) }
}

/// The position of the first delimiter or line end from `at` on, or the end of the bytes.
///
/// Tests eight bytes at a time: a byte of `word ^ pattern` is zero where the byte is found, and `(v - 1) &
/// !v` has the top bit of the lowest zero byte set, and none below it.
#[inline]
fn field_end(bytes: &[u8], mut at: usize, delimiter: Delimiter) -> usize {
    loop {
        at = first_byte(bytes, at, delimiter.first());
        // The first byte of a longer delimiter may also be text.
        let is_text = delimiter.len() > 1
            && bytes.get(at) == Some(&delimiter.first())
            && !bytes[at..].starts_with(delimiter.as_bytes());
        if !is_text {
            return at;
        }
        at += 1;
    }
}

/// The position of the first byte from `at` on that is a line end or `delimiter`, or the end of the bytes.
#[inline]
fn first_byte(bytes: &[u8], mut at: usize, delimiter: u8) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);
    let zero_bytes = |v: u64| v.wrapping_sub(ONES) & !v & TOPS;
    let wanted = u64::from(delimiter) * ONES;
    while let Some(word) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let found = zero_bytes(word ^ wanted)
            | zero_bytes(word ^ (u64::from(b'\n') * ONES))
            | zero_bytes(word ^ (u64::from(b'\r') * ONES));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes[at..].iter().position(|&b| b == delimiter || b == b'\n' || b == b'\r');
    rest.map_or(bytes.len(), |length| at + length)
}

/// The end of the last record that ends within `bytes`, which begin with a record; `None` if none does.
///
/// Bytes without quotes are only searched for their last line end. Otherwise quotes have to be followed from
/// the start: whether a line end ends a record depends on everything before it.
pub(super) fn last_record_end(bytes: &[u8], dialect: Dialect) -> Option<usize> {
    if !dialect.quote.is_some_and(|quote| bytes.contains(&quote)) {
        return bytes.iter().rposition(|&b| b == b'\n').map(|at| at + 1);
    }
    let mut scanner = Scanner::new(dialect, 0);
    let mut fields = Vec::new();
    let mut last = None;
    while scanner.record(bytes, &mut fields, &mut Nowhere) {
        // A final \r may be the first half of a line end.
        if scanner.closed && bytes[scanner.at - 1] == b'\n' {
            last = Some(scanner.at);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAS: Dialect = Dialect {
        delimiter: Delimiter::byte(b','),
        quote: Some(b'"'),
        escape: None,
        comment: None,
        blank_rows: false,
    };

    fn records(bytes: &[u8], dialect: Dialect) -> Vec<Vec<String>> {
        let (mut scanner, mut fields, mut copies) = (Scanner::new(dialect, 0), Vec::new(), Vec::new());
        let mut records = Vec::new();
        while scanner.record(bytes, &mut fields, &mut copies) {
            let text = |span: &Span| String::from_utf8_lossy(span.text(bytes, &copies)).into_owned();
            records.push(fields.iter().map(text).collect());
        }
        records
    }

    /// The crate `csv`, an independent implementation of the same rules.
    fn twin(bytes: &[u8], dialect: Dialect) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(dialect.delimiter.first())
            .quote(dialect.quote.unwrap_or(b'"'))
            .quoting(dialect.quote.is_some())
            .escape(dialect.escape)
            .from_reader(bytes);
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        reader.byte_records().map(|record| record.unwrap().iter().map(text).collect()).collect()
    }

    #[test]
    fn any_bytes_are_cut_as_another_implementation_cuts_them() {
        let alphabet = b"a\",\n\r\\;";
        let mut state = 0x0123_4567_89AB_CDEFu64;
        for round in 0..20_000 {
            let mut bytes = Vec::new();
            for _ in 0..round % 17 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                bytes.push(alphabet[state as usize % alphabet.len()]);
            }
            for dialect in [
                COMMAS,
                Dialect { delimiter: Delimiter::byte(b';'), quote: None, ..COMMAS },
                Dialect { escape: Some(b'\\'), ..COMMAS },
            ] {
                let (ours, theirs) = (records(&bytes, dialect), twin(&bytes, dialect));
                assert_eq!(ours, theirs, "{:?} {dialect:?}", String::from_utf8_lossy(&bytes));
                // Cutting after a record changes nothing.
                if let Some(end) = last_record_end(&bytes, dialect) {
                    let parts = [records(&bytes[..end], dialect), records(&bytes[end..], dialect)].concat();
                    assert_eq!(parts, ours, "{:?} cut at {end}", String::from_utf8_lossy(&bytes));
                }
            }
        }
    }

    #[test]
    fn a_long_delimiter_is_a_short_one_written_longer() {
        let mut state = 7u64;
        for _ in 0..5_000 {
            let mut bytes = Vec::new();
            for _ in 0..20 {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                bytes.push(b"a\",\n\rb"[(state >> 33) as usize % 6]);
            }
            let short = records(&bytes, COMMAS);
            for long in ["||", "|:|", "§"] {
                let text = String::from_utf8(bytes.clone()).unwrap();
                // A comma within quotes becomes text of the same length on both sides.
                let expected: Vec<Vec<String>> =
                    short.iter().map(|row| row.iter().map(|f| f.replace(',', long)).collect()).collect();
                let dialect = Dialect { delimiter: Delimiter::new(long).unwrap(), ..COMMAS };
                assert_eq!(records(text.replace(',', long).as_bytes(), dialect), expected, "{text:?}");
            }
        }
        let bars = Dialect { delimiter: Delimiter::new("||").unwrap(), ..COMMAS };
        assert_eq!(records(b"a|b||c|||d|\n|", bars), [vec!["a|b", "c", "|d|"], vec!["|"]]);
        assert!(Delimiter::new("").is_none() && Delimiter::new("12345").is_none());
        assert!(Delimiter::new("|\n").is_none());
    }

    #[test]
    fn text_behind_a_closing_quote_is_told() {
        let (mut fields, mut copies) = (Vec::new(), Vec::new());
        for (bytes, stray) in [
            (&b"\"a\"b,c"[..], Some(3)),
            (b"x,\"a\" \"b\"", Some(5)),
            (b"\"a\nb\"c", Some(5)),
            (b"\"a\" ,c", None),
            (b"\"a\"\"b\",c", None),
            (b"a\"b\"c", None),
            (b"\"a", None),
        ] {
            let mut scanner = Scanner::new(COMMAS, 0);
            scanner.record(bytes, &mut fields, &mut copies);
            assert_eq!(scanner.stray, stray, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn quotes_that_are_not_closed_are_told() {
        let (mut fields, mut copies) = (Vec::new(), Vec::new());
        let escaping = Dialect { escape: Some(b'\\'), ..COMMAS };
        for (bytes, dialect, unclosed) in [
            (&b"a,\"b"[..], COMMAS, Some(2)),
            (b"\"", COMMAS, Some(0)),
            (b"\"a\"\"", COMMAS, Some(0)),
            (b"\"a\"\"\"", COMMAS, None),
            (b"\"a\" b", COMMAS, None),
            (b"a\"", COMMAS, None),
            (b"\"a\\\"", escaping, Some(0)),
            (b"\"a\\", escaping, Some(0)),
            (b"\"a\\\"\"", escaping, None),
        ] {
            let mut scanner = Scanner::new(dialect, 0);
            scanner.record(bytes, &mut fields, &mut copies);
            assert_eq!(scanner.unclosed, unclosed, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn lines_that_are_comments_are_no_records() {
        let dialect = Dialect { comment: Some(b'#'), ..COMMAS };
        let bytes = b"# \"x\r\na,#b\n#\n\n#,\n\"#c\",d\n# end";
        assert_eq!(records(bytes, dialect), [["a", "#b"], ["#c", "d"]]);
        assert_eq!(last_record_end(bytes, dialect), Some(bytes.len() - 5));
        let one = Dialect { blank_rows: true, ..dialect };
        assert_eq!(records(b"#\n\na\n", one), [[""], ["a"]]);
    }

    #[test]
    fn an_empty_line_is_a_row_of_files_of_one_column() {
        let one = Dialect { blank_rows: true, ..COMMAS };
        assert_eq!(records(b"a\n\r\n\nb", one), [["a"], [""], [""], ["b"]]);
        assert_eq!(last_record_end(b"a\n\"b\n", one), Some(2));
    }
}
