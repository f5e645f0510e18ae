//! Samples among the tokens: converted to the forms that the parser knows; the binder gives them their
//! meaning.
//!
//! DuckDB's forms are converted to the parser's: `10%`, `reservoir(10 ROWS)`, `10 PERCENT (bernoulli, 7)`.
//! `USING SAMPLE` becomes a last result of its `SELECT`, with a name that no user can write.

use super::place::position;
use crate::disguise::SAMPLE;
use entasis_vector::{Error, Result};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A sample as DuckDB and PostgreSQL write it.
struct Written {
    number: TokenWithSpan,
    /// `None` if neither rows nor percent is written.
    is_rows: Option<bool>,
    is_bracketed: bool,
    seed: Option<TokenWithSpan>,
    /// The index of the token after it.
    end: usize,
}

fn is_word(token: Option<&TokenWithSpan>, words: &[&str]) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && words.iter().any(|own| word.value.eq_ignore_ascii_case(own)))
}

const METHODS: [&str; 3] = ["bernoulli", "system", "reservoir"];

/// Parses the sample that begins at a token, if there is one.
fn written(tokens: &[TokenWithSpan], start: usize) -> Option<Written> {
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|found| found.token == *token);
    let number = |at: usize| tokens.get(at).filter(|token| matches!(token.token, Token::Number(..))).cloned();
    let mut at = start;
    let has_method = is_word(tokens.get(at), &METHODS);
    at += usize::from(has_method);
    let is_bracketed = is(at, &Token::LParen);
    if has_method && !is_bracketed {
        return None;
    }
    at += usize::from(is_bracketed);
    let quantity = number(at)?;
    at += 1;
    let is_rows = match () {
        () if is(at, &Token::Mod) || is_word(tokens.get(at), &["percent"]) => Some(false),
        () if is_word(tokens.get(at), &["rows", "row"]) => Some(true),
        () => None,
    };
    at += usize::from(is_rows.is_some());
    let mut seed = None;
    if is_bracketed {
        if !is(at, &Token::RParen) {
            return None;
        }
        at += 1;
    } else if is(at, &Token::LParen) && is_word(tokens.get(at + 1), &METHODS) {
        at += 2;
        if is(at, &Token::Comma) {
            seed = Some(number(at + 1)?);
            at += 2;
        }
        if !is(at, &Token::RParen) {
            return None;
        }
        at += 1;
    }
    if is_word(tokens.get(at), &["repeatable"]) && is(at + 1, &Token::LParen) && is(at + 3, &Token::RParen) {
        seed = Some(number(at + 2)?);
        at += 4;
    }
    Some(Written { number: quantity, is_rows, is_bracketed, seed, end: at })
}

/// Converts samples to the forms that the parser knows.
///
/// # Errors
/// Input, for a `USING SAMPLE` that does not follow a `SELECT … FROM`.
pub(super) fn settle(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let mut next = tokens.len();
    while next > 0 {
        next -= 1;
        let at = next;
        let span = tokens[at].span;
        let token = |token| TokenWithSpan { token, span };
        if is_word(tokens.get(at), &["tablesample"]) {
            let Some(Written { number, is_rows, is_bracketed, seed, end }) = written(tokens, at + 1) else {
                continue;
            };
            // As in PostgreSQL, and as in DuckDB.
            let unit = if is_rows.unwrap_or(!is_bracketed) { "ROWS" } else { "PERCENT" };
            let mut new =
                vec![token(Token::LParen), number, token(Token::make_keyword(unit)), token(Token::RParen)];
            if let Some(seed) = seed {
                new.extend([
                    token(Token::make_keyword("REPEATABLE")),
                    token(Token::LParen),
                    seed,
                    token(Token::RParen),
                ]);
            }
            tokens.splice(at + 1..end, new);
        } else if is_word(tokens.get(at), &["using"]) && is_word(tokens.get(at + 1), &["sample"]) {
            let Some(Written { number, is_rows, seed, end, .. }) = written(tokens, at + 2) else { continue };
            let Some(from) = from_of(tokens, at) else {
                let error = Error::input("USING SAMPLE must follow the FROM clause of a SELECT");
                return Err(error.with_position(position(span.start)));
            };
            // A number alone is a number of rows.
            let unit = if is_rows == Some(false) { "percent" } else { "rows" };
            let name = Token::make_word(SAMPLE, Some('"'));
            let unit = token(Token::SingleQuotedString(unit.into()));
            let mut mark = vec![
                token(Token::Comma),
                token(name),
                token(Token::LParen),
                number,
                token(Token::Comma),
                unit,
            ];
            if let Some(seed) = seed {
                mark.extend([token(Token::Comma), seed]);
            }
            mark.push(token(Token::RParen));
            tokens.drain(at..end);
            next += mark.len();
            tokens.splice(from..from, mark);
        }
    }
    Ok(())
}

/// The `FROM` of the `SELECT` to which a token belongs.
fn from_of(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let (mut level, mut from) = (0usize, None);
    for i in (0..at).rev() {
        match &tokens[i].token {
            Token::RParen => level += 1,
            Token::LParen if level == 0 => return None,
            Token::LParen => level -= 1,
            _ if level > 0 => {}
            // IS DISTINCT FROM
            _ if is_word(tokens.get(i), &["from"])
                && !(i > 0 && is_word(tokens.get(i - 1), &["distinct"])) =>
            {
                from = Some(i);
            }
            _ if is_word(tokens.get(i), &["select"]) => return from,
            _ => {}
        }
    }
    None
}
