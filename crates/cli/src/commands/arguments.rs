//! The arguments of a dot command. None of them is ignored: what a command does not take is an error.

use entasis::{Error, Result};

/// A command as it was typed.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The command's full name.
    pub name: &'static str,
    /// What follows it.
    pub text: &'a str,
    /// Its line in the script.
    pub line: usize,
}

impl Call<'_> {
    /// An error about the arguments.
    pub fn error(&self, what: impl std::fmt::Display) -> Error {
        Error::input(format!(".{} {what}", self.name)).with_hint(format!(".help {} says how", self.name))
    }

    /// The words of the text. A word in single or double quotes may contain blanks.
    ///
    /// # Errors
    /// Input, if a quote is not closed.
    pub fn words(&self) -> Result<Vec<String>> {
        let mut words = Vec::new();
        let mut rest = self.text.trim_start();
        while !rest.is_empty() {
            let (word, after) = self.word(rest)?;
            words.push(word);
            rest = after.trim_start();
        }
        Ok(words)
    }

    /// The first word of a text, and what follows it.
    fn word<'t>(&self, text: &'t str) -> Result<(String, &'t str)> {
        let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            return Ok((text[..end].to_owned(), &text[end..]));
        };
        let mut word = String::new();
        let mut chars = text.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c != quote {
                word.push(c);
            } else if chars.next_if(|(_, next)| *next == quote).is_some() {
                word.push(quote);
            } else {
                return Ok((word, &text[at + 1..]));
            }
        }
        Err(self.error(format!("has a quote that is not closed: {text}")))
    }

    /// Nothing.
    ///
    /// # Errors
    /// Input, if there is an argument.
    pub fn nothing(&self) -> Result<()> {
        match self.text.is_empty() {
            true => Ok(()),
            false => Err(self.error(format!("takes no argument, not {}", self.text))),
        }
    }

    /// At most one word.
    ///
    /// # Errors
    /// Input, if there are more.
    pub fn at_most_one(&self) -> Result<Option<String>> {
        let mut words = self.words()?.into_iter();
        match (words.next(), words.next()) {
            (word, None) => Ok(word),
            (_, Some(more)) => Err(self.error(format!("takes one argument; {more} is too much"))),
        }
    }

    /// One word, which is `what`.
    ///
    /// # Errors
    /// Input, if there is none, or more.
    pub fn one(&self, what: &str) -> Result<String> {
        self.at_most_one()?.ok_or_else(|| self.error(format!("takes {what}")))
    }

    /// Whether it is `on` or `off`; `None`, if nothing is said.
    ///
    /// # Errors
    /// Input, if it is anything else.
    pub fn on_or_off(&self) -> Result<Option<bool>> {
        match self.at_most_one()?.as_deref() {
            None => Ok(None),
            Some("on") => Ok(Some(true)),
            Some("off") => Ok(Some(false)),
            Some(other) => Err(self.error(format!("takes on or off, not {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> Call<'_> {
        Call { name: "test", text, line: 1 }
    }

    #[test]
    fn words_may_be_quoted() {
        let words = |text| call(text).words().unwrap();
        assert_eq!(words("a  'b c' \"it''s\" 'it''s' ''"), ["a", "b c", "it''s", "it's", ""]);
        assert_eq!(words(""), Vec::<String>::new());
        assert!(call("'a b").words().is_err());
    }

    #[test]
    fn what_is_too_much_or_missing_is_an_error() {
        assert!(call("").nothing().is_ok() && call("x").nothing().is_err());
        assert_eq!(call("x").at_most_one().unwrap(), Some("x".into()));
        assert!(call("x y").at_most_one().is_err() && call("").one("a file").is_err());
        assert_eq!(call("off").on_or_off().unwrap(), Some(false));
        assert!(call("maybe").on_or_off().unwrap_err().message().contains("on or off, not maybe"));
    }
}
