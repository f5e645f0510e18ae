//! Positions in a statement's text: lines and columns, counted from 1.

use entasis_vector::Error;
use entasis_vector::error::Position;
use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Location, Span};

/// The position of a token.
pub fn position(location: Location) -> Position {
    Position { line: location.line.max(1) as usize, column: location.column.max(1) as usize }
}

/// The position at which a span starts, if it has one.
pub fn span_position(span: Span) -> Option<Position> {
    (span.start.line > 0).then(|| position(span.start))
}

/// The error with the position of a name, unless it has one already.
pub fn locate_ident(error: Error, name: &Ident) -> Error {
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

/// The lines of a text, in which positions are found without reading them from their beginnings: a script may
/// be one long line.
pub(super) struct Lines<'a> {
    text: &'a str,
    /// Byte offsets at which the lines start.
    starts: Vec<usize>,
    /// For each line, the byte offsets of its characters number 0, [`STRIDE`], 2 [`STRIDE`] …; none for a
    /// line in which every character is one byte.
    marks: Vec<Vec<usize>>,
}

/// Characters between two marks.
const STRIDE: usize = 128;

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Lines<'a> {
        let starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let marks = starts.iter().zip(ends).map(|(&start, end)| match text[start..end].is_ascii() {
            true => Vec::new(),
            false => text[start..end].char_indices().step_by(STRIDE).map(|(at, _)| start + at).collect(),
        });
        Lines { text, marks: marks.collect(), starts }
    }

    /// The position behind the last character.
    pub(super) fn end(&self) -> Position {
        let start = self.starts.last().copied().unwrap_or(0);
        Position { line: self.starts.len(), column: self.text[start..].chars().count() + 1 }
    }

    /// The byte offset of a position; that of the end of the text if there is no such position.
    pub(super) fn offset(&self, location: Location) -> usize {
        let line = (location.line as usize).wrapping_sub(1);
        let Some(&start) = self.starts.get(line) else { return self.text.len() };
        let column = (location.column as usize).saturating_sub(1);
        let marks = &self.marks[line];
        if marks.is_empty() {
            return (start + column).min(self.text.len());
        }
        let Some(&mark) = marks.get(column / STRIDE) else { return self.text.len() };
        let rest = &self.text[mark..];
        rest.char_indices().nth(column % STRIDE).map_or(self.text.len(), |(i, _)| mark + i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, read from the beginning of the line.
    fn slowly(text: &str, location: Location) -> usize {
        let starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let Some(&start) = starts.get((location.line as usize).wrapping_sub(1)) else { return text.len() };
        let mut line = text[start..].char_indices();
        line.nth((location.column as usize).saturating_sub(1)).map_or(text.len(), |(i, _)| start + i)
    }

    #[test]
    fn positions_are_those_of_a_slow_count() {
        let wide = "SELECT 'äöü€😀' , ".repeat(100);
        let plain = "SELECT 1; ".repeat(100);
        for text in ["", "a", "é", &wide, &plain, &format!("{plain}\n{wide}\n\n{plain}{wide}\nlast")] {
            let lines = Lines::of(text);
            for line in 0..=6 {
                let length = text
                    .split('\n')
                    .nth((line as usize).wrapping_sub(1))
                    .map_or(3, |line| line.chars().count());
                for column in 0..=length as u64 + 1 {
                    let location = Location { line, column };
                    assert_eq!(lines.offset(location), slowly(text, location), "{line}:{column}");
                }
            }
        }
    }
}
