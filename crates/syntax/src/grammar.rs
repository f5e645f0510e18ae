//! The grammar of single statements: the parser's, and the forms that it does not know, or parses
//! differently. These are `EXPLAIN`, `DESCRIBE`, `SUMMARIZE`, `SHOW`, `SET`, `USE`, `RESET`, `PRAGMA`,
//! `CALIBRATE`, `COPY`, `CREATE OR REPLACE` of a sequence, an index or a schema, and those of
//! [`super::commands`].

use super::depth::MAX_NESTING;
use super::dialect::EntasisDialect;
use super::parsed::Ast;
use super::place::{Lines, position, split_location};
use entasis_vector::error::{Position, sqlstate};
use entasis_vector::expr::parse::parse_interval;
use entasis_vector::suggest::nearest;
use entasis_vector::{Error, Result, Value};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The setting behind `SET search_path` and `SET schema`.
pub const SEARCH_PATH: &str = "search_path";

/// The setting behind `SET TIME ZONE`.
const TIME_ZONE: &str = "timezone";

/// Parses one statement from its tokens.
pub(super) struct StatementParser<'a> {
    pub(super) parser: Parser<'a>,
    /// The script.
    lines: &'a Lines<'a>,
}

impl<'a> StatementParser<'a> {
    /// A parser for a statement of these tokens in a script with these line offsets.
    pub(super) fn new(tokens: Vec<TokenWithSpan>, lines: &'a Lines<'a>) -> StatementParser<'a> {
        let parser = Parser::new(&EntasisDialect)
            .with_recursion_limit(MAX_NESTING * 4 + 100)
            .with_tokens_with_locations(tokens);
        StatementParser { parser, lines }
    }

    /// Parses the statement.
    ///
    /// # Errors
    /// Input, with its position, for a syntax error; resource, if it is nested too deeply.
    pub(super) fn statement(mut self) -> Result<Ast> {
        let ast = self.ast()?;
        match self.parser.peek_token() {
            TokenWithSpan { token: Token::EOF, .. } => Ok(ast),
            found => Err(self.unexpected("the end of the statement", &found)),
        }
    }

    fn ast(&mut self) -> Result<Ast> {
        let first = self.parser.peek_token();
        let Token::Word(word) = &first.token else { return self.sql() };
        let word = word.value.to_ascii_uppercase();
        if let Some(command) = self.command(&word)? {
            return Ok(command);
        }
        match word.as_str() {
            "EXPLAIN" => self.explain(),
            "DESCRIBE" | "DESC" => {
                self.parser.next_token();
                Ok(Ast::Describe(self.query_or_table()?))
            }
            "SUMMARIZE" => {
                self.parser.next_token();
                Ok(Ast::Summarize(self.query_or_table()?))
            }
            "CALIBRATE" => {
                self.parser.next_token();
                Ok(Ast::Calibrate)
            }
            "CHECKPOINT" => {
                self.parser.next_token();
                let is_all = self.parser.peek_token().token == Token::EOF;
                Ok(Ast::Checkpoint { database: if is_all { None } else { Some(self.database_name()?) } })
            }
            "SHOW" => self.show(),
            "SET" | "PRAGMA" => self.set(),
            "USE" => {
                self.parser.next_token();
                // As other systems write it.
                if matches!(self.parser.peek_nth_token(1).token, Token::Word(_)) {
                    let _ = self.parser.parse_one_of_keywords(&[Keyword::DATABASE, Keyword::SCHEMA]);
                }
                Ok(Ast::Use { name: self.place()? })
            }
            "RESET" => {
                self.parser.next_token();
                Ok(Ast::Reset(self.name()?))
            }
            "COPY" => self.copy(),
            "REPLACE" => {
                let error = Error::not_supported("REPLACE INTO");
                Err(error.with_hint("write INSERT OR REPLACE INTO, or INSERT … ON CONFLICT … DO UPDATE"))
            }
            "CREATE" if self.replaces_what_the_parser_does_not() => {
                (0..3).for_each(|_| drop(self.parser.next_token()));
                let statement = self.parser.parse_create();
                Ok(Ast::CreateOrReplace(Box::new(self.check(statement)?)))
            }
            _ => self.sql(),
        }
    }

    fn sql(&mut self) -> Result<Ast> {
        self.known_kind()?;
        let statement = self.parser.parse_statement();
        let mut statement = self.check(statement)?;
        // The parser accepts what follows the tables only for PostgreSQL.
        if let ast::Statement::Truncate(truncate) = &mut statement {
            truncate.cascade = match self.parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT])
            {
                Some(Keyword::CASCADE) => Some(ast::CascadeOption::Cascade),
                Some(_) => Some(ast::CascadeOption::Restrict),
                None => truncate.cascade.take(),
            };
        }
        Ok(Ast::Sql(Box::new(statement)))
    }

    /// Refuses `DROP tabel`: the parser would list everything that may follow.
    fn known_kind(&self) -> Result<()> {
        let (first, kind) = (self.parser.peek_token(), self.parser.peek_nth_token(1));
        let (Token::Word(first), Token::Word(word)) = (&first.token, &kind.token) else { return Ok(()) };
        let is_drop = first.quote_style.is_none() && first.keyword == Keyword::DROP;
        if !is_drop || (word.quote_style.is_none() && word.keyword != Keyword::NoKeyword) {
            return Ok(());
        }
        let error = self.unexpected("TABLE, VIEW, INDEX, SEQUENCE or SCHEMA", &kind);
        Err(match nearest(&word.value, ["TABLE", "VIEW", "INDEX", "SEQUENCE", "SCHEMA"]) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error,
        })
    }

    /// `CREATE OR REPLACE` of a sequence, an index or a schema.
    fn replaces_what_the_parser_does_not(&self) -> bool {
        let keyword = |at: usize| match self.parser.peek_nth_token(at).token {
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
        let what =
            if matches!(keyword(3), Keyword::TEMP | Keyword::TEMPORARY | Keyword::UNIQUE) { 4 } else { 3 };
        keyword(1) == Keyword::OR
            && keyword(2) == Keyword::REPLACE
            && matches!(keyword(what), Keyword::SEQUENCE | Keyword::TYPE | Keyword::INDEX | Keyword::SCHEMA)
    }

    fn explain(&mut self) -> Result<Ast> {
        self.parser.next_token();
        let (mut analyze, mut verbose, mut json) = (false, false, false);
        if self.parser.consume_token(&Token::LParen) {
            loop {
                match self.name()?.as_str() {
                    "analyze" => analyze = true,
                    "verbose" => verbose = true,
                    "format" => {
                        json = match self.name()?.as_str() {
                            "json" => true,
                            "text" => false,
                            other => {
                                let error = Error::input(format!("EXPLAIN has no format {other}"));
                                return Err(error.with_hint("formats are text and json"));
                            }
                        }
                    }
                    other => {
                        let error = Error::input(format!("EXPLAIN has no option {other}"));
                        return Err(error.with_hint("options are ANALYZE, VERBOSE and FORMAT text | json"));
                    }
                }
                if !self.parser.consume_token(&Token::Comma) {
                    break;
                }
            }
            let end = self.parser.expect_token(&Token::RParen);
            self.check(end)?;
        } else {
            analyze = self.parser.parse_keyword(Keyword::ANALYZE);
            verbose = self.parser.parse_keyword(Keyword::VERBOSE);
        }
        let is_layout = matches!(&self.parser.peek_token().token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("layout"));
        if is_layout && !analyze && !verbose {
            self.parser.next_token();
            return self.explain_layout();
        }
        Ok(Ast::Explain { analyze, verbose, json, statement: Box::new(self.ast()?) })
    }

    /// `SELECT …`, or a table, view or file, which stands for a query of all its rows.
    fn query_or_table(&mut self) -> Result<Box<ast::Query>> {
        let next = self.parser.peek_token();
        let is_query = match &next.token {
            Token::LParen => true,
            Token::Word(word) => matches!(
                word.keyword,
                Keyword::SELECT | Keyword::WITH | Keyword::FROM | Keyword::VALUES | Keyword::TABLE
            ),
            _ => false,
        };
        if is_query {
            let query = self.parser.parse_query();
            return self.check(query);
        }
        let factor = self.parser.parse_table_factor();
        let factor = self.check(factor)?;
        Ok(select_all(factor))
    }

    fn show(&mut self) -> Result<Ast> {
        self.parser.next_token();
        let next = self.parser.peek_token();
        match self.name()?.as_str() {
            "time" if self.parser.parse_keyword(Keyword::ZONE) => {
                Ok(Ast::ShowSetting(ast::Ident::new(TIME_ZONE)))
            }
            what @ ("tables" | "views") => {
                let views = what == "views";
                let has_place = self.parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]).is_some();
                Ok(Ast::ShowTables { of: if has_place { Some(self.place()?) } else { None }, views })
            }
            "all" => match self.parser.parse_keyword(Keyword::TABLES) {
                true => Ok(Ast::ShowAllTables),
                false => Ok(Ast::ShowSettings),
            },
            "settings" | "variables" => Ok(Ast::ShowSettings),
            name => {
                Ok(Ast::ShowSetting(ast::Ident { value: name.into(), quote_style: None, span: next.span }))
            }
        }
    }

    fn set(&mut self) -> Result<Ast> {
        self.parser.next_token();
        if let Some(scope @ (Keyword::LOCAL | Keyword::GLOBAL)) =
            self.parser.parse_one_of_keywords(&[Keyword::SESSION, Keyword::LOCAL, Keyword::GLOBAL])
        {
            let text = format!("SET {scope:?}");
            return Err(
                Error::not_supported(text).with_hint("plain SET applies to the connection from now on")
            );
        }
        let name = self.name()?;
        if name == "time" && self.parser.parse_keyword(Keyword::ZONE) {
            return self.set_time_zone();
        }
        if name == SEARCH_PATH || name == "schema" {
            return self.set_search_path(name == SEARCH_PATH);
        }
        if !self.parser.consume_token(&Token::Eq) && !self.parser.parse_keyword(Keyword::TO) {
            let next = self.parser.peek_token();
            return Err(self.unexpected("= or TO", &next));
        }
        if self.parser.parse_keyword(Keyword::DEFAULT) {
            return Ok(Ast::Reset(name));
        }
        let value = self.value()?;
        Ok(Ast::Set { name, value })
    }

    /// The rest of `SET search_path`, or of `SET schema`, which takes a single schema: names, as identifiers
    /// or as texts. A text may contain several.
    fn set_search_path(&mut self, several: bool) -> Result<Ast> {
        let name = SEARCH_PATH.to_owned();
        let has_sign = self.parser.consume_token(&Token::Eq) || self.parser.parse_keyword(Keyword::TO);
        let next = self.parser.peek_token();
        // PostgreSQL also has SET SCHEMA 'a'.
        if !has_sign && (several || !matches!(next.token, Token::SingleQuotedString(_))) {
            return Err(self.unexpected("= or TO", &next));
        }
        if self.parser.parse_keyword(Keyword::DEFAULT) {
            return Ok(Ast::Reset(name));
        }
        let mut schemas = Vec::new();
        loop {
            let token = self.parser.next_token();
            schemas.push(match &token.token {
                Token::SingleQuotedString(text) => text.clone(),
                Token::Word(word) if word.quote_style.is_some() => format!("\"{}\"", word.value),
                Token::Word(word) => word.value.clone(),
                _ => return Err(self.unexpected("the name of a schema", &token)),
            });
            if !several || !self.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        Ok(Ast::Set { name, value: Value::Text(schemas.join(", ").into()) })
    }

    /// The rest of `SET TIME ZONE`.
    fn set_time_zone(&mut self) -> Result<Ast> {
        let name = TIME_ZONE.to_owned();
        if self.parser.parse_keyword(Keyword::DEFAULT) || self.parser.parse_keyword(Keyword::LOCAL) {
            return Ok(Ast::Reset(name));
        }
        if self.parser.parse_keyword(Keyword::INTERVAL) {
            let interval = self.parser.parse_interval();
            let ast::Expr::Interval(interval) = self.check(interval)? else {
                return Err(Error::internal("an INTERVAL is one"));
            };
            let ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::SingleQuotedString(text), .. }) =
                *interval.value
            else {
                return Err(Error::input("the INTERVAL of a time zone is a literal"));
            };
            // Hours to the east, as for a number.
            let span = parse_interval(&text).filter(|span| span.months == 0 && span.days == 0);
            let span = span.ok_or_else(|| Error::input(format!("'{text}' is not an INTERVAL of hours")))?;
            return Ok(Ast::Set { name, value: Value::Float(span.micros as f64 / 3.6e9) });
        }
        Ok(Ast::Set { name, value: self.value()? })
    }

    fn copy(&mut self) -> Result<Ast> {
        self.parser.next_token();
        let (query, table) = if self.parser.peek_token().token == Token::LParen {
            self.parser.next_token();
            let query = self.parser.parse_query();
            let query = self.check(query)?;
            let end = self.parser.expect_token(&Token::RParen);
            self.check(end)?;
            (Some(query), None)
        } else {
            let name = self.parser.parse_object_name(false);
            let name = self.check(name)?;
            let columns =
                self.parser.parse_parenthesized_column_list(sqlparser::parser::IsOptional::Optional, false);
            (None, Some((name, self.check(columns)?)))
        };
        let direction = self.parser.peek_token();
        let to = match self.parser.parse_one_of_keywords(&[Keyword::TO, Keyword::FROM]) {
            Some(Keyword::TO) => true,
            Some(_) if query.is_none() => false,
            _ => return Err(self.unexpected("TO or FROM", &direction)),
        };
        let path = match self.parser.parse_one_of_keywords(&[Keyword::STDIN, Keyword::STDOUT]) {
            Some(Keyword::STDIN) if !to => "/dev/stdin".to_owned(),
            Some(Keyword::STDOUT) if to => "/dev/stdout".to_owned(),
            Some(_) => return Err(Error::input("COPY reads FROM STDIN and writes TO STDOUT")),
            None => {
                let path = self.parser.parse_literal_string();
                self.check(path)?
            }
        };
        let _ = self.parser.parse_keyword(Keyword::WITH);
        let options = self.copy_options()?;
        Ok(match (to, query, table) {
            (true, Some(query), _) => Ast::CopyTo { query, path, options },
            (true, None, Some((name, columns))) => {
                Ast::CopyTo { query: select_columns(name, columns), path, options }
            }
            (_, _, Some((table, columns))) => Ast::CopyFrom { table, columns, path, options },
            (_, _, None) => return Err(Error::internal("COPY without a source")),
        })
    }

    /// The rest of `EXPLAIN LAYOUT`.
    fn explain_layout(&mut self) -> Result<Ast> {
        let table = self.parser.parse_object_name(false);
        let table = self.check(table)?;
        if !self.parser.parse_keyword(Keyword::FOR) {
            return Ok(Ast::ExplainLayout { table, workload: None });
        }
        let workload = self.parser.parse_literal_string();
        Ok(Ast::ExplainLayout { table, workload: Some(self.check(workload)?) })
    }

    /// `(name [=] value, name, …)`
    pub(super) fn copy_options(&mut self) -> Result<Vec<(String, Value)>> {
        let mut options = Vec::new();
        if !self.parser.consume_token(&Token::LParen) {
            return Ok(options);
        }
        loop {
            let name = self.name()?;
            let _ = self.parser.consume_token(&Token::Eq);
            let bare = matches!(self.parser.peek_token().token, Token::Comma | Token::RParen);
            let value = if bare { Value::Boolean(true) } else { self.value()? };
            options.push((name, value));
            if !self.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        let end = self.parser.expect_token(&Token::RParen);
        self.check(end)?;
        Ok(options)
    }

    /// A name in lower case, keywords included.
    fn name(&mut self) -> Result<String> {
        let token = self.parser.next_token();
        match token.token {
            Token::Word(Word { value, .. }) => Ok(value.to_ascii_lowercase()),
            _ => Err(self.unexpected("a name", &token)),
        }
    }

    /// A literal for an option or setting. Unquoted words are text.
    fn value(&mut self) -> Result<Value> {
        let negative = self.parser.consume_token(&Token::Minus);
        let token = self.parser.next_token();
        let number = |text: &str| -> Option<Value> {
            let sign = if negative { "-" } else { "" };
            let text = format!("{sign}{text}");
            text.parse::<i128>().map(Value::Integer).or_else(|_| text.parse::<f64>().map(Value::Float)).ok()
        };
        let value = match &token.token {
            Token::Number(text, _) => number(text),
            _ if negative => None,
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
                Some(Value::Text(text.as_str().into()))
            }
            Token::Word(word) => Some(match word.keyword {
                _ if word.quote_style.is_some() => Value::Text(word.value.as_str().into()),
                Keyword::TRUE | Keyword::ON => Value::Boolean(true),
                Keyword::FALSE => Value::Boolean(false),
                Keyword::NULL => Value::Null,
                _ if word.value.eq_ignore_ascii_case("off") => Value::Boolean(false),
                _ => Value::Text(word.value.as_str().into()),
            }),
            _ => None,
        };
        value.ok_or_else(|| self.unexpected("a value", &token))
    }

    // ---- errors -------------------------------------------------------------------------------------------

    pub(super) fn check<T>(&self, result: Result<T, ParserError>) -> Result<T> {
        result.map_err(|error| match error {
            ParserError::RecursionLimitExceeded => {
                Error::resource(format!("the statement is nested too deeply (the limit is {MAX_NESTING})"))
                    .with_sqlstate(sqlstate::TOO_COMPLEX)
            }
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
                self.syntax_error(&message)
            }
        })
    }

    /// The parser's messages end with their position; without one, it is the end of the text.
    fn syntax_error(&self, message: &str) -> Error {
        let (message, place) = split_location(message);
        let (expected, found) =
            match message.strip_prefix("Expected: ").and_then(|m| m.split_once(", found: ")) {
                Some((expected, found)) => (Some(expected.trim_end_matches(',')), found),
                None => (None, ""),
            };
        let error = match expected {
            Some(expected) if found == "EOF" => {
                Error::input(format!("syntax error: the statement ends where {expected} is expected"))
            }
            Some(expected) => Error::input(format!("syntax error at {found}: {expected} is expected")),
            None => Error::input(format!("syntax error: {message}")),
        };
        error.with_sqlstate(sqlstate::SYNTAX).with_position(place.unwrap_or_else(|| self.end()))
    }

    pub(super) fn unexpected(&self, expected: &str, found: &TokenWithSpan) -> Error {
        let (text, place) = match &found.token {
            Token::EOF => {
                (format!("syntax error: the statement ends where {expected} is expected"), self.end())
            }
            token => (format!("syntax error at {token}: {expected} is expected"), position(found.span.start)),
        };
        Error::input(text).with_sqlstate(sqlstate::SYNTAX).with_position(place)
    }

    fn end(&self) -> Position {
        self.lines.end()
    }
}

/// `SELECT * FROM t`, from which the following two are made.
fn all_of_t() -> Box<ast::Query> {
    let parser = Parser::new(&EntasisDialect).try_with_sql("SELECT * FROM t");
    parser.and_then(|mut parser| parser.parse_query()).expect("a constant")
}

/// `SELECT * FROM factor`
fn select_all(factor: ast::TableFactor) -> Box<ast::Query> {
    let mut query = all_of_t();
    if let ast::SetExpr::Select(select) = &mut *query.body {
        select.from[0].relation = factor;
    }
    query
}

/// `SELECT columns FROM name`
fn select_columns(name: ast::ObjectName, columns: Vec<ast::Ident>) -> Box<ast::Query> {
    let mut query = all_of_t();
    if let ast::SetExpr::Select(select) = &mut *query.body {
        if let ast::TableFactor::Table { name: slot, .. } = &mut select.from[0].relation {
            *slot = name;
        }
        if !columns.is_empty() {
            let items = columns.into_iter().map(|c| ast::SelectItem::UnnamedExpr(ast::Expr::Identifier(c)));
            select.projection = items.collect();
        }
    }
    query
}
