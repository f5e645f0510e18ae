//! Text to syntax trees.
//!
//! A script is tokenized once and cut at its semicolons; every statement is parsed on its own, so that each
//! knows its text. The forms that the parser does not know, or knows differently, are read here from the
//! tokens: `EXPLAIN`, `DESCRIBE`, `SUMMARIZE`, `SHOW`, `SET`, `RESET`, `PRAGMA` and `COPY`; and [`preparing`]
//! reads `PREPARE` and `EXECUTE`.
//!
//! **Depth.** Parser and binder are recursive, and so is the destruction of what they build. Before parsing,
//! the tokens say how deep a statement can become: by its brackets, and by the operators in a row at one
//! level (`a + b + c …` nests to the left). Beyond [`MAX_NESTING`] and [`MAX_CHAIN`] it is refused; deep ones
//! are handled on a thread with a large stack ([`on_deep_stack`]), all others on the caller's.

use crate::dialect::EntasisDialect;
use crate::placeholders::Places;
use crate::preparing::{self, Preparing};
use crate::words;
use datafusion_sql::sqlparser::ast;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, Word};
use entasis_vector::error::{Position, sqlstate};
use entasis_vector::expr::parse::parse_interval;
use entasis_vector::{Error, Result, Value, statement};

/// Brackets, `CASE`s and subqueries within each other.
pub(crate) const MAX_NESTING: usize = 200;
/// Operators in a row at one level.
pub(crate) const MAX_CHAIN: usize = 2000;
/// Up to these the caller's stack is enough, even that of a test's thread in a debug build.
const SHALLOW_NESTING: usize = 12;
const SHALLOW_CHAIN: usize = 40;
/// Address space, of which only what is used becomes memory.
const DEEP_STACK: usize = 512 << 20;

/// Bytes of a statement's syntax tree, bound plan and what binding makes of it meanwhile, for each of its
/// tokens: measured.
const BINDING_BYTES: usize = 768;

/// The setting of `SET search_path`, `SET schema` and `USE`.
pub(crate) const SEARCH_PATH: &str = "search_path";

/// The setting of `SET TIME ZONE`.
const TIME_ZONE: &str = "timezone";

/// The words that statements are made of, as far as they are worth completing.
pub(crate) const KEYWORDS: [&str; 161] = [
    "ABORT",
    "ADD",
    "ALL",
    "ALTER",
    "ALWAYS",
    "ANALYZE",
    "AND",
    "ANTI",
    "ANY",
    "AS",
    "ASC",
    "ASOF",
    "BEGIN",
    "BETWEEN",
    "BIGINT",
    "BLOB",
    "BOOLEAN",
    "BY",
    "CASE",
    "CAST",
    "CHECK",
    "COLUMN",
    "COMMIT",
    "CONFLICT",
    "CONSTRAINT",
    "COPY",
    "CREATE",
    "CROSS",
    "CSV",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "CYCLE",
    "DATE",
    "DEALLOCATE",
    "DECIMAL",
    "DEFAULT",
    "DELETE",
    "DELIMITER",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DO",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "ESCAPE",
    "EXCEPT",
    "EXCLUDE",
    "EXECUTE",
    "EXISTS",
    "EXPLAIN",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FIRST",
    "FOREIGN",
    "FORMAT",
    "FROM",
    "FULL",
    "GENERATED",
    "GROUP",
    "HAVING",
    "HEADER",
    "IDENTITY",
    "IF",
    "IGNORE",
    "ILIKE",
    "IN",
    "INCREMENT",
    "INDEX",
    "INNER",
    "INSERT",
    "INTEGER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "ISOLATION",
    "JOIN",
    "KEY",
    "LAST",
    "LATERAL",
    "LEFT",
    "LEVEL",
    "LIKE",
    "LIMIT",
    "MATCHED",
    "MAXVALUE",
    "MERGE",
    "MINVALUE",
    "NATURAL",
    "NO",
    "NOT",
    "NOTHING",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "PARQUET",
    "PREPARE",
    "PRIMARY",
    "READ",
    "REAL",
    "REFERENCES",
    "RELEASE",
    "RENAME",
    "REPEATABLE",
    "REPLACE",
    "RESET",
    "RETURNING",
    "RIGHT",
    "ROLLBACK",
    "SAMPLE",
    "SAVEPOINT",
    "SELECT",
    "SEMI",
    "SEQUENCE",
    "SET",
    "SETTINGS",
    "SHOW",
    "SMALLINT",
    "SNAPSHOT",
    "START",
    "SUMMARIZE",
    "TABLE",
    "TABLES",
    "TABLESAMPLE",
    "TEMP",
    "TEMPORARY",
    "THEN",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "TINYINT",
    "TO",
    "TRANSACTION",
    "TRUE",
    "TRUNCATE",
    "TRY_CAST",
    "TYPE",
    "UBIGINT",
    "UINTEGER",
    "UNION",
    "UNIQUE",
    "UPDATE",
    "USE",
    "USING",
    "USMALLINT",
    "UTINYINT",
    "UUID",
    "VALUES",
    "VARCHAR",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
    "WORK",
];

/// A parsed statement with its text.
#[derive(Debug, Clone)]
pub struct Parsed {
    pub(crate) ast: Ast,
    text: String,
    pub(crate) parameters: usize,
    /// Of the parameters, if they have any.
    pub(crate) names: Vec<String>,
    deep: bool,
    /// Words, numbers, texts and signs, of which it consists.
    tokens: usize,
}

/// The syntax tree of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Ast {
    /// As the parser gives it.
    Sql(Box<ast::Statement>),
    /// `CREATE OR REPLACE` of what the parser does not know it of; the statement without it.
    CreateOrReplace(Box<ast::Statement>),
    /// `EXPLAIN [ANALYZE] [VERBOSE] statement`
    Explain { analyze: bool, verbose: bool, statement: Box<Ast> },
    /// `DESCRIBE query`, `DESCRIBE table`
    Describe(Box<ast::Query>),
    /// `SUMMARIZE query`, `SUMMARIZE table`
    Summarize(Box<ast::Query>),
    /// `PREPARE`, `EXECUTE`, `DEALLOCATE`
    Preparing(Preparing),
    /// `CALIBRATE`
    Calibrate,
    /// `SHOW TABLES`
    ShowTables,
    /// `SHOW ALL`
    ShowSettings,
    /// `SHOW name`
    ShowSetting(ast::Ident),
    /// `SET name = value`
    Set { name: String, value: Value },
    /// `RESET name`
    Reset(String),
    /// `COPY source TO 'path' (options)`
    CopyTo { query: Box<ast::Query>, path: String, options: Vec<(String, Value)> },
    /// `COPY table [(columns)] FROM 'path' (options)`
    CopyFrom {
        /// The table that takes the rows.
        table: ast::ObjectName,
        /// Its columns that the file has; all, if there are none.
        columns: Vec<ast::Ident>,
        /// The file.
        path: String,
        /// What stands in brackets behind it.
        options: Vec<(String, Value)>,
    },
}

impl Parsed {
    /// The statement's own text, without semicolon and surrounding space.
    pub fn sql(&self) -> &str {
        &self.text
    }
    /// How many parameters it takes: the highest `$n`, or the number of `?`.
    pub fn parameters(&self) -> usize {
        self.parameters
    }
    /// The names of the parameters from the first to the last that it or a statement before it in its script
    /// has, in lower case; none, if they are written `?` or `$1`.
    pub fn parameter_names(&self) -> &[String] {
        &self.names
    }
    /// What it says, if it only names rows by values of their columns.
    pub fn keyed(&self) -> Option<crate::Keyed> {
        crate::keyed::keyed(self)
    }
    /// True if it is a query, and nothing else.
    pub fn is_query(&self) -> bool {
        matches!(&self.ast, Ast::Sql(statement) if matches!(**statement, ast::Statement::Query(_)))
    }
    /// Bytes that binding it takes at most, while it lasts.
    pub(crate) fn binding_bytes(&self) -> usize {
        self.tokens * BINDING_BYTES
    }
    /// Whether it must be handled on a large stack.
    pub fn is_deep(&self) -> bool {
        self.deep
    }
}

/// Parses a script: statements separated by semicolons. Comments and empty statements vanish.
///
/// # Errors
/// Input, with its position in `sql`, for what is no SQL; resource, for statements that are nested too
/// deeply.
pub fn parse(sql: &str) -> Result<Vec<Parsed>> {
    let mut tokens = Tokenizer::new(&EntasisDialect, sql)
        .tokenize_with_location()
        .map_err(|e| Error::input(tokenizer_message(&e.message)).with_position(position(e.location)))
        .map_err(|e| e.with_sqlstate(sqlstate::SYNTAX))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let tokens = crate::asof::settle(crate::integers::settle(tokens)?)?;
    let lines = line_starts(sql);
    let mut statements = Vec::new();
    let mut places = Places::default();
    let mut current: Vec<TokenWithSpan> = Vec::new();
    let mut finish = |tokens: &mut Vec<TokenWithSpan>| -> Result<()> {
        let tokens = std::mem::take(tokens);
        if !tokens.is_empty() {
            statements.push(parse_statement(sql, &lines, tokens, &mut places)?);
        }
        Ok(())
    };
    for token in tokens {
        match token.token {
            Token::SemiColon => finish(&mut current)?,
            Token::EOF => {}
            // E'…': the tokenizer has replaced the escapes already.
            Token::EscapedStringLiteral(text) => {
                current.push(TokenWithSpan { token: Token::SingleQuotedString(text), span: token.span });
            }
            _ => current.push(token),
        }
    }
    finish(&mut current)?;
    Ok(statements)
}

/// Parses a query that stands in the catalog: a view.
pub(crate) fn parse_query(sql: &str) -> Result<Box<ast::Query>> {
    let mut statements = parse(sql)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Parsed { ast: Ast::Sql(statement), .. }), true) => match *statement {
            ast::Statement::Query(query) => Ok(query),
            _ => Err(Error::input("a view is not a query")),
        },
        _ => Err(Error::input("a view is not a query")),
    }
}

/// Runs `f` with enough stack for a deep statement, on this thread if it is not deep.
///
/// # Errors
/// Those of `f`; resource, if there is no thread to be had.
pub fn on_deep_stack<T: Send>(deep: bool, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if !deep {
        return f();
    }
    let current = statement::current();
    let work = move || match current {
        Some(statement) => statement::within(statement, f),
        None => f(),
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("deep statement".into()).stack_size(DEEP_STACK);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => {
                Err(Error::resource(format!("a deeply nested statement needs a thread of its own: {error}")))
            }
        }
    })
}

fn parse_statement(
    sql: &str,
    lines: &[usize],
    mut tokens: Vec<TokenWithSpan>,
    places: &mut Places,
) -> Result<Parsed> {
    let (nesting, chain) = depth(&tokens)?;
    let count = tokens.len();
    let deep = nesting > SHALLOW_NESTING || chain > SHALLOW_CHAIN;
    let text = text_of(sql, lines, &tokens);
    let prepared = |tokens| parse_statement(sql, lines, tokens, &mut Places::default());
    if let Some(preparing) = preparing::read(&tokens, prepared)? {
        let ast = Ast::Preparing(preparing);
        return Ok(Parsed { ast, text, parameters: 0, names: Vec::new(), deep, tokens: count });
    }
    let parameters = places.number(&mut tokens)?;
    words::settle(&mut tokens, |span| &sql[offset(sql, lines, span.start)..offset(sql, lines, span.end)])?;
    let ast = on_deep_stack(deep, || StatementParser::new(tokens, sql, lines).statement())?;
    Ok(Parsed { ast, text, parameters, names: places.names(), deep, tokens: count })
}

/// The part of a script that these tokens stand in.
fn text_of(sql: &str, lines: &[usize], tokens: &[TokenWithSpan]) -> String {
    let start = tokens.first().map_or(Location::empty(), |t| t.span.start);
    let end = tokens.last().map_or(Location::empty(), |t| t.span.end);
    sql[offset(sql, lines, start)..offset(sql, lines, end).max(offset(sql, lines, start))].trim().to_string()
}

// ---- depth ------------------------------------------------------------------------------------------------

/// Upper bounds on how deep the statement nests: brackets, and operators in a row.
fn depth(tokens: &[TokenWithSpan]) -> Result<(usize, usize)> {
    // One counter of operators for each open bracket; a comma at the same level starts a new chain.
    let mut chains = vec![0usize];
    let (mut nesting, mut longest, mut cases) = (0, 0, 0usize);
    for token in tokens {
        let too_deep = |what: &str, limit: usize| {
            Err(Error::resource(format!("the statement {what} (the limit is {limit})"))
                .with_sqlstate(sqlstate::TOO_COMPLEX)
                .with_position(position(token.span.start)))
        };
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => chains.push(0),
            Token::RParen | Token::RBracket | Token::RBrace => {
                chains.pop();
                if chains.is_empty() {
                    chains.push(0);
                }
            }
            Token::Comma => *chains.last_mut().expect("never empty") = 0,
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::CASE => cases += 1,
                Keyword::END => cases = cases.saturating_sub(1),
                Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::JOIN
                | Keyword::LIKE
                | Keyword::IS
                | Keyword::IN
                | Keyword::BETWEEN => {
                    *chains.last_mut().expect("never empty") += 1;
                }
                Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::HAVING => {}
                _ => continue,
            },
            Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Period => continue,
            _ => *chains.last_mut().expect("never empty") += 1,
        }
        longest = longest.max(*chains.last().expect("never empty"));
        nesting = nesting.max(chains.len() - 1 + cases);
        if nesting > MAX_NESTING {
            return too_deep("is nested too deeply", MAX_NESTING);
        }
        if longest > MAX_CHAIN {
            return too_deep("has too many operators in a row", MAX_CHAIN);
        }
    }
    Ok((nesting, longest))
}

// ---- statements -------------------------------------------------------------------------------------------

struct StatementParser<'a> {
    parser: Parser<'a>,
    sql: &'a str,
    lines: &'a [usize],
}

impl<'a> StatementParser<'a> {
    fn new(tokens: Vec<TokenWithSpan>, sql: &'a str, lines: &'a [usize]) -> StatementParser<'a> {
        let parser = Parser::new(&EntasisDialect)
            .with_recursion_limit(MAX_NESTING * 4 + 100)
            .with_tokens_with_locations(tokens);
        StatementParser { parser, sql, lines }
    }

    fn statement(mut self) -> Result<Ast> {
        let ast = self.ast()?;
        match self.parser.peek_token() {
            TokenWithSpan { token: Token::EOF, .. } => Ok(ast),
            found => Err(self.unexpected("the end of the statement", &found)),
        }
    }

    fn ast(&mut self) -> Result<Ast> {
        let first = self.parser.peek_token();
        let Token::Word(word) = &first.token else { return self.sql() };
        match word.value.to_ascii_uppercase().as_str() {
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
            "SHOW" => self.show(),
            "SET" | "PRAGMA" => self.set(),
            "USE" => {
                self.parser.next_token();
                let name = self.parser.parse_identifier();
                let name = self.check(name)?;
                Ok(Ast::Set {
                    name: SEARCH_PATH.to_owned(),
                    value: Value::Text(quoted_if_needed(&name).into()),
                })
            }
            "RESET" => {
                self.parser.next_token();
                Ok(Ast::Reset(self.name()?))
            }
            "COPY" => self.copy(),
            "CREATE" if self.replaces_what_the_parser_does_not() => {
                (0..3).for_each(|_| drop(self.parser.next_token()));
                let statement = self.parser.parse_create();
                Ok(Ast::CreateOrReplace(Box::new(self.check(statement)?)))
            }
            _ => self.sql(),
        }
    }

    fn sql(&mut self) -> Result<Ast> {
        let statement = self.parser.parse_statement();
        let mut statement = self.check(statement)?;
        // The parser takes what follows the tables for PostgreSQL's alone.
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
            && matches!(keyword(what), Keyword::SEQUENCE | Keyword::INDEX | Keyword::SCHEMA)
    }

    fn explain(&mut self) -> Result<Ast> {
        self.parser.next_token();
        let (mut analyze, mut verbose) = (false, false);
        if self.parser.consume_token(&Token::LParen) {
            loop {
                match self.name()?.as_str() {
                    "analyze" => analyze = true,
                    "verbose" => verbose = true,
                    other => return Err(Error::input(format!("EXPLAIN has no option {other}"))),
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
        Ok(Ast::Explain { analyze, verbose, statement: Box::new(self.ast()?) })
    }

    /// `SELECT …`, or a table, view or file, which stands for all of its rows.
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
            "tables" | "views" => Ok(Ast::ShowTables),
            "all" => match self.parser.parse_keyword(Keyword::TABLES) {
                true => Ok(Ast::ShowTables),
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
                Error::not_supported(text).with_hint("SET alone holds for the connection, and from now on")
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

    /// What follows `SET search_path`, or `SET schema`, which is followed by one schema: names, as such or as
    /// texts. A text may have several.
    fn set_search_path(&mut self, several: bool) -> Result<Ast> {
        let name = SEARCH_PATH.to_owned();
        let has_sign = self.parser.consume_token(&Token::Eq) || self.parser.parse_keyword(Keyword::TO);
        let next = self.parser.peek_token();
        // PostgreSQL has SET SCHEMA 'a', too.
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

    /// What follows `SET TIME ZONE`.
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
            // Hours to the east, as a number is.
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
            let columns = self.parser.parse_parenthesized_column_list(
                datafusion_sql::sqlparser::parser::IsOptional::Optional,
                false,
            );
            (None, Some((name, self.check(columns)?)))
        };
        let direction = self.parser.peek_token();
        let to = match self.parser.parse_one_of_keywords(&[Keyword::TO, Keyword::FROM]) {
            Some(Keyword::TO) => true,
            Some(_) if query.is_none() => false,
            _ => return Err(self.unexpected("TO or FROM", &direction)),
        };
        let path = self.parser.parse_literal_string();
        let path = self.check(path)?;
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

    /// `(name [=] value, name, …)`
    fn copy_options(&mut self) -> Result<Vec<(String, Value)>> {
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

    /// A literal of an option or setting. Bare words are text.
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

    fn check<T>(&self, result: Result<T, ParserError>) -> Result<T> {
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

    /// The parser's messages end in their place; a missing place means the end of the text.
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

    fn unexpected(&self, expected: &str, found: &TokenWithSpan) -> Error {
        let (text, place) = match &found.token {
            Token::EOF => {
                (format!("syntax error: the statement ends where {expected} is expected"), self.end())
            }
            token => (format!("syntax error at {token}: {expected} is expected"), position(found.span.start)),
        };
        Error::input(text).with_sqlstate(sqlstate::SYNTAX).with_position(place)
    }

    fn end(&self) -> Position {
        let line = self.lines.len();
        let start = self.lines.last().copied().unwrap_or(0);
        Position { line, column: self.sql[start..].chars().count() + 1 }
    }
}

/// A name, in quotes if it was.
fn quoted_if_needed(name: &ast::Ident) -> String {
    if name.quote_style.is_some() { format!("\"{}\"", name.value) } else { name.value.clone() }
}

/// `SELECT * FROM factor`
fn select_all(factor: ast::TableFactor) -> Box<ast::Query> {
    let mut query = parse_query("SELECT * FROM t").expect("a constant");
    if let ast::SetExpr::Select(select) = &mut *query.body {
        select.from[0].relation = factor;
    }
    query
}

/// `SELECT columns FROM name`
fn select_columns(name: ast::ObjectName, columns: Vec<ast::Ident>) -> Box<ast::Query> {
    let mut query = parse_query("SELECT * FROM t").expect("a constant");
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

// ---- places -----------------------------------------------------------------------------------------------

/// The place of a token.
pub(crate) fn position(location: Location) -> Position {
    Position { line: location.line.max(1) as usize, column: location.column.max(1) as usize }
}

/// The place where a span starts, if it has one.
pub(crate) fn span_position(span: Span) -> Option<Position> {
    (span.start.line > 0).then(|| position(span.start))
}

fn split_location(message: &str) -> (&str, Option<Position>) {
    let Some((text, place)) = message.rsplit_once(" at Line: ") else { return (message, None) };
    let place = place.split_once(", Column: ").and_then(|(line, column)| {
        Some(Position { line: line.parse().ok()?, column: column.trim().parse().ok()? })
    });
    match place {
        Some(_) => (text, place),
        None => (message, None),
    }
}

fn tokenizer_message(message: &str) -> String {
    let (text, _) = split_location(message);
    match text {
        "Unterminated string literal" => "a text literal has no closing quote".into(),
        other => format!("syntax error: {other}"),
    }
}

/// Byte offsets at which the lines start.
fn line_starts(sql: &str) -> Vec<usize> {
    std::iter::once(0).chain(sql.match_indices('\n').map(|(i, _)| i + 1)).collect()
}

fn offset(sql: &str, lines: &[usize], location: Location) -> usize {
    let Some(&start) = lines.get((location.line as usize).wrapping_sub(1)) else { return sql.len() };
    let line = &sql[start..];
    line.char_indices()
        .nth((location.column as usize).saturating_sub(1))
        .map_or(sql.len(), |(i, _)| start + i)
}
