//! Text to tokens, without blanks and comments.
//!
//! A long text is tokenized in pieces, so that a statement that is cancelled ends soon and its blanks are not
//! all kept at once. A piece ends behind a comma that is in no quotes and no comment; places in it are moved
//! to where it begins. It ends in a long row of blanks as well: the tokenizer would make a token of each, so
//! all but the first and the last one are left out. Texts with quotes of which the ends are harder to find
//! (`E'…'`, `$$…$$`) are one piece from there on.

use entasis_vector::Result;
use entasis_vector::statement::check;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError};

use super::dialect::EntasisDialect;

/// Bytes from which a piece ends at the next place where it may.
const PIECE: usize = 64 << 10;

/// Blanks in a row from which those within are left out.
const BLANKS: usize = 64;

/// A text that is no sequence of tokens.
pub(super) enum Failed {
    /// The tokenizer's error, at its place in the whole text, and where the last token before it ends.
    Token(TokenizerError, Option<Location>),
    /// The statement was cancelled.
    Cancelled(entasis_vector::Error),
}

/// The tokens of a text, with their places, without blanks and comments.
///
/// # Errors
/// Where there is none; interrupted.
pub(super) fn tokens(sql: &str) -> std::result::Result<Vec<TokenWithSpan>, Failed> {
    in_pieces(sql, PIECE, check)
}

fn in_pieces(
    sql: &str,
    size: usize,
    check: impl Fn() -> Result<()>,
) -> std::result::Result<Vec<TokenWithSpan>, Failed> {
    let mut tokens = Vec::new();
    let mut own = Vec::new();
    let mut rest = sql;
    let mut start = Location::new(1, 1);
    while !rest.is_empty() {
        let (blanks, text) = rest.split_at(blanks_before(rest, size));
        start = end_of(blanks, start);
        rest = text;
        let (piece, after) = rest.split_at(piece_end(rest, size));
        let moved = |place: Location| match place.line {
            // What has no place stays without.
            0 => place,
            1 => Location::new(start.line, start.column + place.column - 1),
            line => Location::new(start.line + line - 1, place.column),
        };
        let result = Tokenizer::new(&EntasisDialect, piece).tokenize_with_location_into_buf(&mut own);
        let last = own.last().map(|token| moved(token.span.end));
        let last = last.or_else(|| tokens.last().map(|token: &TokenWithSpan| token.span.end));
        if let Err(TokenizerError { message, location }) = result {
            return Err(Failed::Token(TokenizerError { message, location: moved(location) }, last));
        }
        tokens.reserve(own.len());
        tokens.extend(own.drain(..).filter(|token| !matches!(token.token, Token::Whitespace(_))).map(
            |token| {
                let span = Span::new(moved(token.span.start), moved(token.span.end));
                TokenWithSpan { token: token.token, span }
            },
        ));
        start = end_of(piece, start);
        rest = after;
        check().map_err(Failed::Cancelled)?;
    }
    Ok(tokens)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The number of blanks at the beginning of these bytes.
fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_blank(**byte)).count()
}

/// How many bytes are left out at the beginning of a piece: many blanks, but for one that the tokenizer sees
/// before the next token.
fn blanks_before(text: &str, size: usize) -> usize {
    match blanks(text.as_bytes()) {
        few if few < BLANKS.min(size) => 0,
        many => many - 1,
    }
}

/// The place behind a piece that begins at `start`.
fn end_of(piece: &str, start: Location) -> Location {
    let lines = piece.bytes().filter(|byte| *byte == b'\n').count() as u64;
    match piece.rfind('\n') {
        Some(at) => Location::new(start.line + lines, piece[at + 1..].chars().count() as u64 + 1),
        None => Location::new(start.line, start.column + piece.chars().count() as u64),
    }
}

/// Bytes of the text up to the end of its first piece.
fn piece_end(text: &str, size: usize) -> usize {
    let bytes = text.as_bytes();
    if bytes.len() <= size {
        return bytes.len();
    }
    // The place behind a closing mark; the end, without one.
    let behind = |at: usize, mark: &[u8]| {
        let found = bytes[at..].windows(mark.len()).position(|part| part == mark);
        found.map_or(bytes.len(), |distance| at + distance + mark.len())
    };
    let mut at = 0;
    while at < bytes.len() {
        let next = bytes.get(at + 1);
        at = match bytes[at] {
            b',' if at >= size => return at + 1,
            byte if is_blank(byte) => match blanks(&bytes[at..]) {
                many if many >= BLANKS.min(size) => return at + 1,
                few => at + few,
            },
            // A doubled quote ends one text and begins another.
            b'"' => behind(at + 1, b"\""),
            b'\'' if at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'&') => break,
            b'\'' => behind(at + 1, b"'"),
            b'-' if next == Some(&b'-') => behind(at + 2, b"\n"),
            b'/' if next == Some(&b'*') => break,
            b'$' if !next.is_some_and(u8::is_ascii_digit) => break,
            _ => at + 1,
        };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(sql: &str) -> Option<Vec<TokenWithSpan>> {
        let tokens = Tokenizer::new(&EntasisDialect, sql).tokenize_with_location().ok()?;
        Some(tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect())
    }

    /// Any text in pieces of any size has the tokens that it has as a whole, at the same places.
    #[test]
    fn pieces_are_no_others_than_the_whole() {
        let parts = [
            "SELECT ",
            "    ",
            " \t\r\n  \n ",
            "a",
            ",",
            ", ",
            "'x'",
            "'it''s, so'",
            "\"q, r\"",
            "--c, d\n",
            "\n",
            "/* e, /* f, */ g */",
            "E'h\\', i'",
            "$j$ k, $j$",
            "$1",
            "'",
            "\"",
            "ä,",
            "1.5",
            ".",
            "x'00'",
            "(",
            ")",
            "\r\n",
            "-",
            "/",
            "U&'l, m'",
            "$$",
        ];
        let mut state = 7u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut cut = 0;
        for _ in 0..20_000 {
            let text: String = (0..random(30)).map(|_| parts[random(parts.len())]).collect();
            let size = 1 + random(20);
            cut += usize::from(piece_end(&text, size) < text.len());
            match (whole(&text), in_pieces(&text, size, || Ok(()))) {
                (Some(whole), Ok(pieces)) => assert_eq!(whole, pieces, "{text:?} in pieces of {size}"),
                (None, Err(_)) => {}
                (whole, _) => panic!("{text:?} in pieces of {size}: {whole:?}"),
            }
        }
        assert!(cut > 1500, "{cut}");
    }

    /// An error is where it is in the whole text.
    #[test]
    fn errors_have_their_places() {
        let text = "SELECT 1, 2,\n 3, 'open";
        let Err(Failed::Token(error, last)) = in_pieces(text, 3, || Ok(())) else { panic!("no error") };
        assert_eq!((error.location.line, last.map(|place| place.line)), (2, Some(2)));
        let whole = Tokenizer::new(&EntasisDialect, text).tokenize_with_location().unwrap_err();
        assert_eq!(whole, error);
    }

    /// A text of blanks is pieces of a few, and no token is moved.
    #[test]
    fn blanks_in_a_row_are_left_out() {
        let blanks = " \n\t".repeat(PIECE / 2);
        let text = format!("{blanks}SELECT{blanks}1,{blanks}' {blanks}'{blanks}");
        assert_eq!(blanks_before(&text, PIECE), blanks.len() - 1);
        let text = &text[blanks.len() - 1..];
        assert_eq!(piece_end(text, PIECE), "\tSELECT ".len());
        let Ok(tokens) = tokens(text) else { panic!("no tokens") };
        assert_eq!(tokens, whole(text).expect("tokens"));
        let Err(Failed::Token(error, _)) = super::tokens(&format!("{text}'")) else { panic!("no error") };
        assert_eq!(error.location.line, 1 + 2 * PIECE as u64);
    }

    #[test]
    fn a_cancelled_statement_ends_between_pieces() {
        let cancelled = || Err(entasis_vector::Error::input("cancelled"));
        assert!(matches!(in_pieces("a, b, c, d", 3, cancelled), Err(Failed::Cancelled(_))));
    }
}
