//! SQL in the line editor: completion by Tab, colours, and whether Enter runs the text.
//!
//! Lines after the first begin with `...> ` below the prompt. The line editor has no prompts for them, so
//! Enter indents the next line by as much as the prompt is wide, and these blanks are shown as the mark.
//! Within quotes, where blanks would be part of a text, it does not.

use crate::complete::{self, Names};
use crate::lex::{Kind, tokens};
use crate::script;
use crate::style::Style;
use entasis::{Connection, Value};
use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, ConditionalEventHandler, Context, Event, EventContext, Helper, RepeatCount, Result};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The width of the prompt, which the handler of a key must know.
static INDENT: AtomicUsize = AtomicUsize::new(0);

/// Implements the callbacks of the line editor.
pub struct Editor {
    names: Live,
    colours: Highlight,
}

impl Editor {
    /// An editor for statements on `connection`.
    pub fn new(connection: Arc<Connection>, style: Style) -> Editor {
        Editor { names: Live(connection), colours: Highlight::new(style) }
    }

    /// Before a line is read: its connection, and the width of its prompt.
    pub fn prepare(&mut self, connection: &Arc<Connection>, width: usize) {
        self.names = Live(connection.clone());
        INDENT.store(width, Ordering::Relaxed);
    }
}

/// What Enter does: it begins an indented line, unless it runs the text.
pub struct Enter;

impl ConditionalEventHandler for Enter {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let indent = INDENT.load(Ordering::Relaxed);
        new_line(context.line(), context.pos(), indent).map(|text| Cmd::Insert(1, text))
    }
}

/// The line that Enter begins at byte `cursor`; `None`, if it runs the text, or indents nothing.
fn new_line(text: &str, cursor: usize, indent: usize) -> Option<String> {
    let is_quoted = tokens(&text[..cursor]).iter().any(|token| token.open && token.kind != Kind::Comment);
    (!script::is_complete(text) && !is_quoted).then(|| format!("\n{}", " ".repeat(indent)))
}

/// Lines after the first with the mark in place of their indent; its width is unchanged.
fn marked(text: &str, indent: usize, style: Style) -> String {
    let mark: String = format!("{:>indent$}", "...> ").chars().rev().take(indent).collect();
    let mark = style.dim(mark.chars().rev().collect::<String>());
    text.replace(&format!("\n{}", " ".repeat(indent)), &format!("\n{mark}"))
}

/// The names that a connection currently knows.
struct Live(Arc<Connection>);

impl Live {
    /// The first column of a query's rows.
    fn texts(&self, sql: &str) -> Vec<String> {
        let Ok(rows) = self.0.execute(sql) else { return Vec::new() };
        let first = |row: Vec<Value>| match row.into_iter().next() {
            Some(Value::Text(text)) => Some(text.to_string()),
            _ => None,
        };
        rows.row_values().filter_map(first).collect()
    }
}

impl Names for Live {
    fn keywords(&self) -> Vec<String> {
        entasis::keywords()
    }
    fn functions(&self) -> Vec<String> {
        entasis::functions()
    }
    fn settings(&self) -> Vec<String> {
        self.texts("SHOW ALL")
    }
    fn tables(&self) -> Vec<String> {
        self.0.tables()
    }
    fn tables_of(&self, space: &str) -> Vec<String> {
        self.texts(&format!("SHOW TABLES FROM {space}"))
    }
    fn spaces(&self) -> Vec<String> {
        let mut spaces = self.texts("SELECT DISTINCT schema_name FROM information_schema.schemata");
        spaces.extend(self.texts("SHOW DATABASES"));
        spaces
    }
    fn columns(&self, query: &str) -> Vec<String> {
        let Ok(described) = self.0.describe(query, &[]) else { return Vec::new() };
        described.columns.iter().map(|field| field.name.to_string()).collect()
    }
    fn all_columns(&self) -> Vec<String> {
        self.texts(
            "SELECT DISTINCT column_name FROM information_schema.columns \
             WHERE table_schema <> 'information_schema'",
        )
    }
}

/// Colours SQL.
pub struct Highlight {
    keywords: HashSet<String>,
    style: Style,
}

impl Highlight {
    /// A highlighter with the colours of `style`.
    pub fn new(style: Style) -> Highlight {
        Highlight { keywords: entasis::keywords().into_iter().collect(), style }
    }

    /// `sql` with colours; its width is unchanged.
    pub fn sql(&self, sql: &str) -> String {
        self.lines(sql, 0)
    }

    /// The same, with the mark of lines after the first in place of an indent that is not zero.
    fn lines(&self, sql: &str, indent: usize) -> String {
        let paint = |kind, text: &str| match kind {
            Kind::Comment => self.style.dim(text),
            Kind::Word if self.keywords.contains(&text.to_uppercase()) => self.style.keyword(text),
            Kind::Text => self.style.text(text),
            Kind::Number => self.style.number(text),
            Kind::Space if indent > 0 => marked(text, indent, self.style),
            _ => text.to_owned(),
        };
        tokens(sql).iter().map(|token| paint(token.kind, token.text(sql))).collect()
    }
}

impl Completer for Editor {
    type Candidate = String;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> Result<(usize, Vec<String>)> {
        Ok(complete::complete(line, cursor, &self.names))
    }
}

impl Highlighter for Editor {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if line.trim_start().starts_with('.') {
            Cow::Borrowed(line)
        } else {
            Cow::Owned(self.colours.lines(line, INDENT.load(Ordering::Relaxed)))
        }
    }
    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

impl Validator for Editor {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        Ok(if script::is_complete(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Hinter for Editor {
    type Hint = String;
}

impl Helper for Editor {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_indented_outside_of_quotes() {
        assert_eq!(new_line("select 1", 8, 3), Some("\n   ".into()));
        assert_eq!(new_line("select 1;", 9, 3), None);
        assert_eq!(new_line("select 'a", 9, 3), None);
        assert_eq!(new_line("select 'a', 1", 11, 3), Some("\n   ".into()));
        assert_eq!(new_line(".mode", 5, 3), None);
    }

    #[test]
    fn indents_are_shown_as_marks_of_the_same_width() {
        let shown = |sql, indent| Highlight::new(Style::PLAIN).lines(sql, indent);
        assert_eq!(shown("select\n       1,\n  2", 7), "select\n  ...> 1,\n  2");
        assert_eq!(shown("select\n   1", 3), "select\n.> 1");
        assert_eq!(shown("select '\n       1'", 7), "select '\n       1'");
        assert_eq!(shown("select\n       1", 0), "select\n       1");
    }
}
