//! Colours, all in one place. Off when the output is not a terminal, or one that has none (`TERM=dumb`), or
//! `NO_COLOR` is set.

use std::fmt::Display;

/// Whether and how text is coloured. Cheap to copy; if colours are off, every function returns its text
/// unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    coloured: bool,
}

impl Style {
    /// No colours.
    #[cfg(test)]
    pub const PLAIN: Style = Style { coloured: false };

    /// Colours, if `terminal` and the user has not disabled them.
    pub fn new(terminal: bool) -> Style {
        let is_wanted = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Style { coloured: terminal && is_wanted && !is_dumb() }
    }

    fn paint(self, code: &str, text: impl Display) -> String {
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
    /// Less important: types, NULLs, footers.
    pub fn dim(self, text: impl Display) -> String {
        self.paint("2", text)
    }
    /// Headings.
    pub fn bold(self, text: impl Display) -> String {
        self.paint("1", text)
    }
    /// The kind of an error, its caret.
    pub fn error(self, text: impl Display) -> String {
        self.paint("1;31", text)
    }
    /// Hints.
    pub fn hint(self, text: impl Display) -> String {
        self.paint("1;33", text)
    }
    /// SQL keywords.
    pub fn keyword(self, text: impl Display) -> String {
        self.paint("1;34", text)
    }
    /// SQL strings.
    pub fn text(self, text: impl Display) -> String {
        self.paint("32", text)
    }
    /// Bars of a drawing.
    pub fn bar(self, text: impl Display) -> String {
        self.paint("36", text)
    }
    /// SQL numbers.
    pub fn number(self, text: impl Display) -> String {
        self.paint("35", text)
    }
}

/// True for a terminal that only takes characters.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
