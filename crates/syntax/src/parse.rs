//! Text to syntax trees.
//!
//! A script is [tokenized](tokenize) once and split at its semicolons; every statement is parsed separately,
//! so that each knows its text:
//!
//! 1. tokens that the parser would misinterpret are replaced by ones that it knows: in the whole script
//!    numbers ([`integers`]) and as-of joins ([`asof`]), in each statement parameters ([`Places`]) and
//!    [`words`];
//! 2. statements that are nested too deeply are refused ([`is_deep`]);
//! 3. `PREPARE`, `EXECUTE` and `DEALLOCATE` are parsed by [`preparing`], every other statement by the
//!    [`StatementParser`].

use super::depth::{is_deep, on_deep_stack};
use super::grammar::StatementParser;
use super::parsed::{Ast, Parsed};
use super::place::{Lines, position, split_location};
use super::placeholders::Places;
use super::tokenize::Failed;
use super::{asof, integers, preparing, tokenize, words};
use entasis_vector::error::sqlstate;
use entasis_vector::statement::{STEP, check, reserve};
use entasis_vector::{Error, Result};
use sqlparser::ast;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// Parses a script: statements separated by semicolons. Comments and empty statements are dropped.
///
/// # Errors
/// Input, with its position in `sql`, for a syntax error; resource, for statements that are nested too
/// deeply.
pub fn parse(sql: &str) -> Result<Vec<Parsed>> {
    let _memory = match token_bytes(sql) {
        little if little < STEP => None,
        much => reserve(much)?,
    };
    let tokens = match tokenize::tokens(sql) {
        Ok(tokens) => tokens,
        Err(Failed::Cancelled(error)) => return Err(error),
        Err(Failed::Token(error, last)) => {
            let place = match is_open(&error.message) {
                // It begins where the last token ends.
                true => last.unwrap_or_else(Location::empty),
                false => error.location,
            };
            let told = Error::input(tokenizer_message(&error.message)).with_position(position(place));
            return Err(told.with_sqlstate(sqlstate::SYNTAX));
        }
    };
    let mut tokens = asof::settle(integers::settle(tokens)?)?;
    for token in &mut tokens {
        match &mut token.token {
            Token::Word(word) if word.value.contains('\0') => {
                return Err(Error::input("a name cannot contain the character NUL")
                    .with_position(position(token.span.start))
                    .with_sqlstate(sqlstate::SYNTAX));
            }
            // E'…': the tokenizer has replaced the escapes already.
            Token::EscapedStringLiteral(text) => {
                token.token = Token::SingleQuotedString(std::mem::take(text));
            }
            _ => {}
        }
    }
    let lines = Lines::of(sql);
    let mut places = Places::default();
    let mut statements = Vec::new();
    for tokens in at_semicolons(tokens) {
        statements.push(parse_statement(sql, &lines, tokens, &mut places)?);
    }
    Ok(statements)
}

/// The tokens of each statement that has any.
fn at_semicolons(mut tokens: Vec<TokenWithSpan>) -> Vec<Vec<TokenWithSpan>> {
    tokens.pop_if(|last| last.token == Token::EOF);
    let lengths: Vec<usize> =
        tokens.split(|token| token.token == Token::SemiColon).map(<[TokenWithSpan]>::len).collect();
    let mut statements = match lengths[..] {
        // A single statement stays where it is.
        [length] | [length, 0] => {
            tokens.truncate(length);
            vec![tokens]
        }
        _ => {
            let mut rest = tokens.into_iter();
            let next = |length: usize| {
                let own = rest.by_ref().take(length).collect();
                rest.next();
                own
            };
            lengths.into_iter().map(next).collect()
        }
    };
    statements.retain(|tokens| !tokens.is_empty());
    statements
}

/// About how many bytes the tokens of a text take, while it is taken apart: each blank is one.
fn token_bytes(sql: &str) -> usize {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let mut before = b' ';
    let mut tokens = 0;
    for byte in sql.bytes() {
        tokens += usize::from(!(is_part(byte) && is_part(before)));
        before = byte;
    }
    // The list of them has room for as many more.
    sql.len() + tokens * 2 * size_of::<TokenWithSpan>()
}

/// Parses the query of a view, from the catalog.
pub fn parse_query(sql: &str) -> Result<Box<ast::Query>> {
    let mut statements = parse(sql)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Parsed { ast: Ast::Sql(statement), .. }), true) => match *statement {
            ast::Statement::Query(query) => Ok(query),
            _ => Err(Error::input("a view is not a query")),
        },
        _ => Err(Error::input("a view is not a query")),
    }
}

fn parse_statement(
    sql: &str,
    lines: &Lines<'_>,
    mut tokens: Vec<TokenWithSpan>,
    places: &mut Places,
) -> Result<Parsed> {
    let deep = is_deep(&tokens)?;
    check()?;
    let count = tokens.len();
    let text = text_of(sql, lines, &tokens);
    let prepared = |tokens| parse_statement(sql, lines, tokens, &mut Places::default());
    if let Some(preparing) = preparing::read(&tokens, prepared)? {
        let ast = Ast::Preparing(preparing);
        let (names, qualifiers) = (Vec::new(), Vec::new());
        return Ok(Parsed { ast, text, parameters: 0, names, deep, tokens: count, qualifiers });
    }
    let qualifiers = qualifiers(&tokens);
    check()?;
    let parameters = places.number(&mut tokens)?;
    check()?;
    words::settle(&mut tokens, |span| &sql[lines.offset(span.start)..lines.offset(span.end)])?;
    let ast = on_deep_stack(deep, || StatementParser::new(tokens, lines).statement());
    let ast = ast.map_err(|error| check().err().unwrap_or(error))?;
    Ok(Parsed { ast, text, parameters, names: places.names(), deep, tokens: count, qualifiers })
}

/// The words before a dot, in lower case and without duplicates.
fn qualifiers(tokens: &[TokenWithSpan]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for pair in tokens.windows(2) {
        if let (Token::Word(word), Token::Period) = (&pair[0].token, &pair[1].token)
            && !found.iter().any(|other| other.eq_ignore_ascii_case(&word.value))
        {
            found.push(word.value.to_ascii_lowercase());
        }
    }
    found
}

/// The part of a script that consists of these tokens.
fn text_of(sql: &str, lines: &Lines<'_>, tokens: &[TokenWithSpan]) -> String {
    let start = tokens.first().map_or(Location::empty(), |t| t.span.start);
    let end = tokens.last().map_or(Location::empty(), |t| t.span.end);
    let start = lines.offset(start);
    sql[start..lines.offset(end).max(start)].trim().to_string()
}

/// What the tokenizer says of a comment that is not closed, and of a text between dollar signs.
const OPEN_COMMENT: &str = "Unexpected EOF while in a multi-line comment";
const OPEN_DOLLARS: [&str; 2] =
    ["Unterminated dollar-quoted string", "Unterminated dollar-quoted, expected $"];

/// True if a token is not closed, and the tokenizer says where the text ends.
fn is_open(message: &str) -> bool {
    let (text, _) = split_location(message);
    text == OPEN_COMMENT || OPEN_DOLLARS.contains(&text)
}

fn tokenizer_message(message: &str) -> String {
    let (text, _) = split_location(message);
    match text {
        "Unterminated string literal" | "Unterminated encoded string literal" => {
            "a text literal has no closing quote".into()
        }
        OPEN_COMMENT => "a comment has no closing */".into(),
        text if OPEN_DOLLARS.contains(&text) => "a text literal has no closing dollar sign".into(),
        other => format!("syntax error: {other}"),
    }
}
