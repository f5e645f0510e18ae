//! SQL in the line editor: completion by Tab, colours, and whether Enter runs the text.

use crate::complete::{self, Names};
use crate::lex::{Kind, tokens};
use crate::script;
use crate::style::Style;
use entasis::Connection;
use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

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
}

/// The names that a connection currently knows.
struct Live(Arc<Connection>);

impl Names for Live {
    fn keywords(&self) -> Vec<String> {
        entasis::keywords()
    }
    fn functions(&self) -> Vec<String> {
        entasis::functions()
    }
    fn tables(&self) -> Vec<String> {
        self.0.tables()
    }
    fn columns(&self, relation: &str) -> Vec<String> {
        let Ok(described) = self.0.describe(&format!("SELECT * FROM {relation}"), &[]) else {
            return Vec::new();
        };
        described.columns.iter().map(|field| field.name.to_string()).collect()
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
        let paint = |kind, text: &str| match kind {
            Kind::Comment => self.style.dim(text),
            Kind::Word if self.keywords.contains(&text.to_uppercase()) => self.style.keyword(text),
            Kind::Text => self.style.text(text),
            Kind::Number => self.style.number(text),
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
            Cow::Owned(self.colours.sql(line))
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
