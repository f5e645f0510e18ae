//! Positions in a statement's text: lines and columns, counted from 1.

use datafusion_sql::sqlparser::ast::Ident;
use datafusion_sql::sqlparser::tokenizer::{Location, Span};
use entasis_vector::Error;
use entasis_vector::error::Position;

/// The position of a token.
pub(crate) fn position(location: Location) -> Position {
    Position { line: location.line.max(1) as usize, column: location.column.max(1) as usize }
}

/// The position at which a span starts, if it has one.
pub(crate) fn span_position(span: Span) -> Option<Position> {
    (span.start.line > 0).then(|| position(span.start))
}

/// The error with the position of a name, unless it has one already.
pub(crate) fn locate_ident(error: Error, name: &Ident) -> Error {
    match (error.position(), span_position(name.span)) {
        (None, Some(position)) => error.with_position(position),
        _ => error,
    }
}

/// The text of an error of the parser or the tokenizer, and the position at its end.
pub(super) fn split_location(message: &str) -> (&str, Option<Position>) {
    let Some((text, place)) = message.rsplit_once(" at Line: ") else { return (message, None) };
    let place = place.split_once(", Column: ").and_then(|(line, column)| {
        Some(Position { line: line.parse().ok()?, column: column.trim().parse().ok()? })
    });
    match place {
        Some(_) => (text, place),
        None => (message, None),
    }
}

/// Byte offsets at which the lines start.
pub(super) fn line_starts(sql: &str) -> Vec<usize> {
    std::iter::once(0).chain(sql.match_indices('\n').map(|(i, _)| i + 1)).collect()
}

/// The byte offset of a position; that of the end of the text if there is no such position.
pub(super) fn offset(sql: &str, lines: &[usize], location: Location) -> usize {
    let Some(&start) = lines.get((location.line as usize).wrapping_sub(1)) else { return sql.len() };
    let line = &sql[start..];
    line.char_indices()
        .nth((location.column as usize).saturating_sub(1))
        .map_or(sql.len(), |(i, _)| start + i)
}
