//! The grammar of statements about a whole database: `EXPORT DATABASE`, `IMPORT DATABASE`, `BACKUP`,
//! `VACUUM`, `ATTACH`, `DETACH`, `SHOW DATABASES` and `PRAGMA integrity_check`. The parser knows none of
//! them.

use super::grammar::StatementParser;
use super::parsed::{Ast, Command, Parsed};
use entasis_vector::{Error, Result};
use sqlparser::ast::{ObjectName, ObjectNamePart};
use sqlparser::keywords::{ALL_KEYWORDS, Keyword};
use sqlparser::tokenizer::Token;
use std::path::Path;

/// The pragma that checks a database.
const INTEGRITY_CHECK: &str = "integrity_check";

impl StatementParser<'_> {
    /// The command that begins with this word, in upper case, if there is one; nothing has been read yet.
    pub(super) fn command(&mut self, word: &str) -> Result<Option<Ast>> {
        Ok(Some(Ast::Command(match word {
            "EXPORT" => {
                self.database()?;
                Command::Export { path: self.path()?, options: self.copy_options()? }
            }
            "IMPORT" => {
                self.database()?;
                Command::Import { path: self.path()? }
            }
            "BACKUP" => {
                self.parser.next_token();
                if !self.parser.parse_keyword(Keyword::TO) {
                    let next = self.parser.peek_token();
                    return Err(self.unexpected("TO", &next));
                }
                Command::Backup { path: self.path()?, options: self.copy_options()? }
            }
            "VACUUM" => {
                self.parser.next_token();
                let is_all = self.parser.peek_token().token == Token::EOF;
                Command::Vacuum { table: if is_all { None } else { Some(self.object()?) } }
            }
            "ATTACH" => {
                self.parser.next_token();
                let or_replace = self.parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
                let _ = self.parser.parse_keyword(Keyword::DATABASE);
                let exists = [Keyword::IF, Keyword::NOT, Keyword::EXISTS];
                let if_not_exists = self.parser.parse_keywords(&exists);
                if or_replace && if_not_exists {
                    return Err(Error::input("OR REPLACE and IF NOT EXISTS exclude each other"));
                }
                let path = self.path()?;
                let name =
                    if self.parser.parse_keyword(Keyword::AS) { Some(self.database_name()?) } else { None };
                let options = self.copy_options()?;
                Command::Attach { path, name, if_not_exists, or_replace, options }
            }
            "DETACH" => {
                self.parser.next_token();
                let _ = self.parser.parse_keyword(Keyword::DATABASE);
                let if_exists = self.parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
                Command::Detach { name: self.database_name()?, if_exists }
            }
            "SHOW" if self.is_second("databases") => {
                (0..2).for_each(|_| drop(self.parser.next_token()));
                Command::ShowDatabases
            }
            "PRAGMA" if self.is_second(INTEGRITY_CHECK) => {
                (0..2).for_each(|_| drop(self.parser.next_token()));
                Command::CheckIntegrity { table: self.argument()? }
            }
            _ => return Ok(None),
        })))
    }

    /// Reads the first word and the `DATABASE` that follows it.
    fn database(&mut self) -> Result<()> {
        self.parser.next_token();
        if self.parser.parse_keyword(Keyword::DATABASE) {
            return Ok(());
        }
        let next = self.parser.peek_token();
        Err(self.unexpected("DATABASE", &next))
    }

    fn path(&mut self) -> Result<String> {
        let next = self.parser.next_token();
        match next.token {
            Token::SingleQuotedString(path) => Ok(path),
            _ => Err(self.unexpected("a path in quotes", &next)),
        }
    }

    fn object(&mut self) -> Result<ObjectName> {
        let name = self.parser.parse_object_name(false);
        self.check(name)
    }

    /// A database's name, in lower case.
    pub(super) fn database_name(&mut self) -> Result<String> {
        let name = self.parser.parse_identifier();
        Ok(self.check(name)?.value.to_ascii_lowercase())
    }

    /// The parts of the name of a database or a schema, in lower case.
    pub(super) fn place(&mut self) -> Result<Vec<String>> {
        let mut parts = vec![self.database_name()?];
        while self.parser.consume_token(&Token::Period) {
            parts.push(self.database_name()?);
        }
        Ok(parts)
    }

    /// True if the second word is this one.
    fn is_second(&self, expected: &str) -> bool {
        match self.parser.peek_nth_token(1).token {
            Token::Word(word) => word.value.eq_ignore_ascii_case(expected),
            _ => false,
        }
    }

    /// `(table)` or `('table')`, or nothing.
    fn argument(&mut self) -> Result<Option<ObjectName>> {
        if !self.parser.consume_token(&Token::LParen) {
            return Ok(None);
        }
        let mut name = self.object()?;
        let end = self.parser.expect_token(&Token::RParen);
        self.check(end)?;
        // A text is the name that it holds, and not a path.
        for part in &mut name.0 {
            if let ObjectNamePart::Identifier(ident) = part
                && ident.quote_style == Some('\'')
            {
                ident.quote_style = Some('"');
            }
        }
        Ok(Some(name))
    }
}

impl Parsed {
    /// The statement with the file of a `COPY` in a directory, unless its path is absolute.
    #[must_use]
    pub fn in_directory(mut self, directory: &Path) -> Parsed {
        if let Ast::CopyFrom { path, .. } | Ast::CopyTo { path, .. } = &mut self.ast {
            *path = directory.join(&*path).display().to_string();
        }
        self
    }
}

/// Keywords that are common names of columns, and are never taken for anything else.
const NAMES: [&str; 1] = ["id"];

/// A name as a statement contains it: in quotes if it would be parsed as something else.
pub fn quoted(name: &str) -> String {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_plain = name.bytes().all(is_part) && !name.is_empty() && !name.as_bytes()[0].is_ascii_digit();
    let is_word = ALL_KEYWORDS.binary_search(&&*name.to_ascii_uppercase()).is_ok();
    match is_plain && (!is_word || NAMES.contains(&name)) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;
    use crate::parse;

    #[test]
    fn names_are_quoted_if_they_must_be() {
        assert_eq!([quoted("a_1"), quoted("id")], ["a_1", "id"]);
        for (name, text) in [
            ("", "\"\""),
            ("A", "\"A\""),
            ("1a", "\"1a\""),
            ("select", "\"select\""),
            ("a b", "\"a b\""),
            ("größe", "\"größe\""),
            ("a\"b", "\"a\"\"b\""),
        ] {
            assert_eq!(quoted(name), text);
        }
    }

    #[test]
    fn commands_are_read() {
        for sql in [
            "EXPORT DATABASE 'd'",
            "export database 'd' (FORMAT parquet, COMPRESSION zstd)",
            "IMPORT DATABASE 'd'",
            "BACKUP TO 'f'",
            "BACKUP TO 'f' (OVERWRITE)",
            "VACUUM",
            "VACUUM s.t",
            "PRAGMA integrity_check",
            "PRAGMA INTEGRITY_CHECK(\"T\")",
            "ATTACH 'f'",
            "ATTACH DATABASE 'f' AS b (READ_ONLY)",
            "ATTACH IF NOT EXISTS 'f' AS b",
            "ATTACH OR REPLACE DATABASE 'f' AS b",
            "DETACH b",
            "DETACH DATABASE IF EXISTS b",
            "SHOW DATABASES",
        ] {
            parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        for (sql, expected) in [
            ("EXPORT 'd'", "DATABASE is expected"),
            ("IMPORT DATABASE", "ends where a path in quotes is expected"),
            ("IMPORT DATABASE d", "a path in quotes is expected"),
            ("BACKUP 'f'", "TO is expected"),
            ("VACUUM t u", "the end of the statement is expected"),
            ("ATTACH OR REPLACE IF NOT EXISTS 'f'", "exclude each other"),
            ("USE b.", "identifier is expected"),
            ("SHOW TABLES FROM", "identifier is expected"),
            ("PRAGMA integrity_check(", "expected"),
        ] {
            let error = parse(sql).expect_err(sql);
            assert!(error.message().contains(expected), "{sql}: {error}");
        }
    }
}
