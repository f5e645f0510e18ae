//! `PREPARE`, `EXECUTE` and `DEALLOCATE`: statements that a connection keeps under a name.
//!
//! ```text
//! PREPARE name [(type, …)] AS statement with $1 or ?
//! EXECUTE name [(expression, …)]
//! DEALLOCATE [PREPARE] {name | ALL}
//! ```
//! They are parsed from the tokens. The prepared statement is parsed as a statement of its own, with its own
//! placeholders; the arguments of an `EXECUTE` are a query of one row, `SELECT expression, …`. The connection
//! keeps the statements and runs them.

use super::parsed::{Ast, Parsed, Preparing};
use super::place::position;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

impl Parsed {
    /// The command on prepared statements, if this is one.
    pub fn preparing(&self) -> Option<&Preparing> {
        match &self.ast {
            Ast::Preparing(preparing) => Some(preparing),
            _ => None,
        }
    }
}

/// Parses such a statement; `None` if it is another one. `parse` parses a statement from its tokens, at their
/// position in the script.
///
/// # Errors
/// Input, with the position, for a syntax error; those of `parse`.
pub(super) fn read(
    tokens: &[TokenWithSpan],
    mut parse: impl FnMut(Vec<TokenWithSpan>) -> Result<Parsed>,
) -> Result<Option<Preparing>> {
    let Some(first) = tokens.first().and_then(bare_word) else { return Ok(None) };
    let mut words = Words { tokens, at: 1 };
    Ok(Some(match first.to_ascii_uppercase().as_str() {
        "PREPARE" => {
            let name = words.name()?;
            let types = words.bracketed()?;
            words.expect("AS")?;
            let rest = words.rest();
            if rest.first().and_then(bare_word).is_some_and(|word| is_preparing(&word)) {
                return Err(words.error("a statement that can be prepared"));
            }
            let casts = match types {
                None => None,
                Some(types) => Some(Box::new(parse(casts(types))?)),
            };
            Preparing::Prepare { name, statement: Box::new(parse(rest.to_vec())?), casts }
        }
        "EXECUTE" => {
            let name = words.name()?;
            let arguments = words.bracketed()?;
            words.end()?;
            let arguments = match arguments {
                None | Some([]) => None,
                Some(arguments) => {
                    let mut query = vec![word("SELECT", &tokens[0])];
                    query.extend_from_slice(arguments);
                    Some(Box::new(parse(query)?))
                }
            };
            Preparing::Execute { name, arguments }
        }
        "DEALLOCATE" => {
            if words.is_next("PREPARE") && tokens.len() > 2 {
                words.at += 1;
            }
            let all = words.is_next("ALL");
            let name = words.name()?;
            words.end()?;
            Preparing::Deallocate { name: (!all).then_some(name) }
        }
        _ => return Ok(None),
    }))
}

fn is_preparing(word: &str) -> bool {
    ["PREPARE", "EXECUTE", "DEALLOCATE"].iter().any(|own| own.eq_ignore_ascii_case(word))
}

/// `SELECT CAST ($1 AS type), …`
fn casts(types: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut query = Vec::new();
    let Some(first) = types.first() else { return query };
    query.push(word("SELECT", first));
    let (mut depth, mut number) = (0, 0);
    let mut open = |query: &mut Vec<TokenWithSpan>, at: &TokenWithSpan| {
        number += 1;
        let made = [
            Token::make_keyword("CAST"),
            Token::LParen,
            Token::Placeholder(format!("${number}")),
            Token::make_keyword("AS"),
        ];
        query.extend(made.map(|token| TokenWithSpan { token, span: at.span }));
    };
    open(&mut query, first);
    for token in types {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => {
                query.push(TokenWithSpan { token: Token::RParen, span: token.span });
                query.push(token.clone());
                open(&mut query, token);
                continue;
            }
            _ => {}
        }
        query.push(token.clone());
    }
    query.push(TokenWithSpan { token: Token::RParen, span: first.span });
    query
}

fn word(text: &str, at: &TokenWithSpan) -> TokenWithSpan {
    TokenWithSpan { token: Token::make_keyword(text), span: at.span }
}

/// An unquoted word.
fn bare_word(token: &TokenWithSpan) -> Option<String> {
    match &token.token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value.clone()),
        _ => None,
    }
}

/// The tokens of a statement, starting at one of them.
struct Words<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
}

impl<'a> Words<'a> {
    /// A name, in lower case.
    fn name(&mut self) -> Result<String> {
        match self.tokens.get(self.at).map(|token| &token.token) {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word.value.to_ascii_lowercase())
            }
            _ => Err(self.error("the name of a prepared statement")),
        }
    }

    fn is_next(&self, word: &str) -> bool {
        self.tokens.get(self.at).and_then(bare_word).is_some_and(|next| next.eq_ignore_ascii_case(word))
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if !self.is_next(word) {
            return Err(self.error(word));
        }
        self.at += 1;
        Ok(())
    }

    /// The contents of the brackets that come next, if there are any.
    fn bracketed(&mut self) -> Result<Option<&'a [TokenWithSpan]>> {
        if self.tokens.get(self.at).is_none_or(|token| token.token != Token::LParen) {
            return Ok(None);
        }
        let start = self.at + 1;
        let mut depth = 0usize;
        for (i, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at = i + 1;
                return Ok(Some(&self.tokens[start..i]));
            }
        }
        self.at = self.tokens.len();
        Err(self.error("a closing bracket"))
    }

    fn rest(&self) -> &'a [TokenWithSpan] {
        &self.tokens[self.at..]
    }

    fn end(&self) -> Result<()> {
        if self.at < self.tokens.len() { Err(self.error("the end of the statement")) } else { Ok(()) }
    }

    fn error(&self, expected: &str) -> Error {
        let error = match self.tokens.get(self.at) {
            Some(token) => Error::input(format!("syntax error at {}: {expected} is expected", token.token))
                .with_position(position(token.span.start)),
            None => {
                let error =
                    Error::input(format!("syntax error: the statement ends where {expected} is expected"));
                match self.tokens.last() {
                    Some(last) => error.with_position(position(last.span.end)),
                    None => error,
                }
            }
        };
        error.with_sqlstate(sqlstate::SYNTAX)
    }
}
