//! Splits text into the pieces that the shell runs in order: statements and dot commands.
//!
//! A statement ends with a semicolon or at the end of the text. A dot command is a line of its own that
//! starts with a dot where a statement could start. Each piece has the number of the line on which it starts,
//! for error messages. A comment that is not closed is a piece, too, so that it is an error and what it hides
//! is not forgotten.

use crate::lex::{Kind, tokens, tokens_from};
use std::io;
use std::path::Path;

/// What the shell runs in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    /// SQL without its semicolon, and the line (from 1) on which it starts.
    Statement {
        /// The text.
        sql: &'a str,
        /// Its first line in the script.
        line: usize,
    },
    /// A dot command.
    Command {
        /// The text without its dot, such as `mode csv`.
        text: &'a str,
        /// Its line in the script.
        line: usize,
    },
}

/// The text of a script in a file; `-` is standard input.
///
/// # Errors
/// Those of reading it.
pub fn read(path: &Path) -> io::Result<String> {
    if path == Path::new("-") { io::read_to_string(io::stdin()) } else { std::fs::read_to_string(path) }
}

/// The pieces of `source`, in order. Text of only blanks and closed comments is not a piece.
pub fn pieces(source: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut rest, mut line) = (before(source), 1);
    // PERF: each byte is looked at once, however many statements there are.
    while rest < source.len() {
        let end = next(source, rest, line, &mut pieces);
        line += lines(&source[rest..end]);
        rest = end;
    }
    pieces
}

/// The bytes before the first piece: a byte order mark, and the line that names the program to run a script
/// with.
fn before(source: &str) -> usize {
    let mark = if source.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    match source[mark..].starts_with("#!") {
        true => source.find('\n').unwrap_or(source.len()),
        false => mark,
    }
}

/// Reads the piece that starts at or after byte `from`, which is on `line`; returns where the next one may
/// start.
fn next<'a>(source: &'a str, from: usize, line: usize, pieces: &mut Vec<Piece<'a>>) -> usize {
    let statement = |start: usize, end: usize| Piece::Statement {
        sql: source[start..end].trim_end(),
        line: line + lines(&source[from..start]),
    };
    let mut start = None;
    for token in tokens_from(source, from) {
        let text = token.text(source);
        let at = token.range.start;
        match start {
            None if token.is_blank() && !token.open || text == ";" => {}
            None if text.starts_with('.') => {
                let end = source[at..].find('\n').map_or(source.len(), |n| at + n);
                let text = without_semicolon(source[at + 1..end].trim());
                pieces.push(Piece::Command { text, line: line + lines(&source[from..at]) });
                return end;
            }
            None => start = Some(at),
            Some(start) if text == ";" && token.kind == Kind::Symbol => {
                pieces.push(statement(start, at));
                return at + 1;
            }
            Some(_) => {}
        }
    }
    if let Some(start) = start {
        pieces.push(statement(start, source.len()));
    }
    source.len()
}

/// A command without the semicolon that hands put after it. After a blank, it is an argument.
fn without_semicolon(command: &str) -> &str {
    match command.strip_suffix(';') {
        Some(before) if !before.ends_with(char::is_whitespace) => before,
        _ => command,
    }
}

/// How many lines end in a text.
fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

/// True if Enter should run the typed text: a dot command, nothing at all, or statements of which the last
/// ends with a semicolon. Words that people type to leave or to get help need none.
pub fn is_complete(source: &str) -> bool {
    let trimmed = source.trim();
    if trimmed.is_empty() || trimmed.starts_with('.') || is_plain_command(trimmed) {
        return true;
    }
    let tokens = tokens(source);
    match tokens.iter().rfind(|t| !t.is_blank()) {
        Some(last) => last.text(source) == ";" && !tokens.iter().any(|t| t.open),
        None => !tokens.iter().any(|t| t.open),
    }
}

/// True for words of other shells that this one accepts for `.quit` and `.help`.
pub fn is_plain_command(word: &str) -> bool {
    matches!(word, "quit" | "exit" | "help" | "\\q")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_strings_and_comments() {
        let source = "-- first; \nselect ';' ; ;\n.mode csv\n select 2 -- ;\n + 1;select 3";
        let statement = |sql, line| Piece::Statement { sql, line };
        assert_eq!(
            pieces(source),
            [
                statement("select ';'", 2),
                Piece::Command { text: "mode csv", line: 3 },
                statement("select 2 -- ;\n + 1", 4),
                statement("select 3", 5)
            ]
        );
        assert_eq!(pieces(" ; -- nothing\n/* at all */"), []);
    }

    #[test]
    fn what_is_not_closed_is_a_piece() {
        for open in ["/* open", "/*", "/* /* */ select 2;\n.mode csv", "'open", "\"open ;", "$tag$ open; $$"]
        {
            let piece = |line| Piece::Statement { sql: open, line };
            assert_eq!(pieces(open), [piece(1)]);
            assert_eq!(pieces(&format!("-- first\n {open}")), [piece(2)]);
            let select = Piece::Statement { sql: "select 1", line: 1 };
            assert_eq!(pieces(&format!("select 1;\n\n{open}\n")), [select, piece(3)]);
            assert_eq!(
                pieces(&format!(".mode csv\n{open}\n")),
                [Piece::Command { text: "mode csv", line: 1 }, piece(2)]
            );
        }
    }

    #[test]
    fn what_is_before_a_script_is_not_part_of_it() {
        let select = |line| [Piece::Statement { sql: "select 1", line }];
        assert_eq!(pieces("\u{FEFF}select 1;"), select(1));
        assert_eq!(pieces("#!/usr/bin/env -S entasis -f\nselect 1;"), select(2));
        assert_eq!(pieces("\u{FEFF}#! entasis\r\n\nselect 1;"), select(3));
        assert_eq!(pieces("#!"), []);
        assert_eq!(pieces(".tables;\n"), [Piece::Command { text: "tables", line: 1 }]);
        assert_eq!(pieces(".separator ;"), [Piece::Command { text: "separator ;", line: 1 }]);
        assert_eq!(pieces("\u{FEFF}.tables"), [Piece::Command { text: "tables", line: 1 }]);
    }

    #[test]
    fn numbers_with_a_leading_dot_do_not_start_commands_inside_statements() {
        assert_eq!(pieces("select\n.5;"), [Piece::Statement { sql: "select\n.5", line: 1 }]);
    }

    #[test]
    fn enter_runs_only_what_is_complete() {
        for text in ["", "select 1;", "select 1; -- done", ".mode", "quit", "select 1;\n"] {
            assert!(is_complete(text), "{text}");
        }
        for text in ["select 1", "select ';", "select 1; /* ;", "select 1; select", "/* a"] {
            assert!(!is_complete(text), "{text}");
        }
    }
}
