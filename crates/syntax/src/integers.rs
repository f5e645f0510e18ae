//! Integers in bases other than ten, which the tokenizer does not recognize: `0xFF`, `0o17`, `0b11`, each
//! with optional underscores.
//!
//! It takes the first for a binary string, like `X'FF'`, and the others for a number followed by a name. Here
//! they are converted to decimal numbers. A word directly after a number is an error: `12abc` is neither `12
//! abc` nor a name.

use super::place::position;
use entasis_vector::{Error, Result};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

/// The tokens with such integers converted to decimal numbers.
///
/// # Errors
/// Input, for digits that the base does not have, and for words directly after a number.
pub fn settle(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let may_differ = |pair: &[TokenWithSpan]| is_number(&pair[0]) && follows(&pair[0], &pair[1]);
    if !tokens.windows(2).any(may_differ) && !tokens.iter().any(is_in_base_16) {
        return Ok(tokens);
    }
    let mut settled: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if !is_number(&token) {
            settled.push(token);
            continue;
        }
        let mut span = token.span;
        let tail = tokens.next_if(|next| follows(&token, next)).map(|next| {
            span.end = next.span.end;
            match next.token {
                Token::Word(word) => word.value,
                _ => String::new(),
            }
        });
        let number = match (&token.token, &tail) {
            (Token::HexStringLiteral(digits), tail) => {
                in_base(16, &format!("{digits}{}", tail.as_deref().unwrap_or_default()))
            }
            (Token::Number(zero, false), Some(tail)) if zero == "0" => match tail.split_at_checked(1) {
                Some(("x" | "X", digits)) => in_base(16, digits),
                Some(("o" | "O", digits)) => in_base(8, digits),
                Some(("b" | "B", digits)) => in_base(2, digits),
                _ => None,
            },
            (_, Some(_)) => None,
            (_, None) => {
                settled.push(token);
                continue;
            }
        };
        let Some(number) = number else {
            let text = format!("{}{}", written(&token.token), tail.unwrap_or_default());
            return Err(Error::input(format!("{text} is not a number")).with_position(position(span.start)));
        };
        settled.push(TokenWithSpan { token: Token::Number(number, false), span });
    }
    Ok(settled)
}

fn is_number(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Number(..)) || is_in_base_16(token)
}

/// True for `0xFF`, which differs from `X'FF'` in its length only.
fn is_in_base_16(token: &TokenWithSpan) -> bool {
    let Token::HexStringLiteral(digits) = &token.token else { return false };
    length(token.span) == Some(digits.chars().count() as u64 + 2)
}

/// True if `next` is a word directly after a token.
fn follows(token: &TokenWithSpan, next: &TokenWithSpan) -> bool {
    matches!(&next.token, Token::Word(Word { quote_style: None, .. })) && next.span.start == token.span.end
}

/// Length in characters of a token on a single line.
fn length(span: Span) -> Option<u64> {
    (span.start.line == span.end.line).then(|| span.end.column - span.start.column)
}

fn written(token: &Token) -> String {
    match token {
        Token::HexStringLiteral(digits) => format!("0x{digits}"),
        other => other.to_string(),
    }
}

/// The integer with these digits, in decimal. Each digit may be preceded by an underscore.
fn in_base(base: u32, digits: &str) -> Option<String> {
    if digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let digits: String = digits.chars().filter(|digit| *digit != '_').collect();
    let sign = digits.starts_with(['+', '-']);
    (!sign).then(|| u128::from_str_radix(&digits, base).ok()).flatten().map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn integers_of_all_bases() {
        let shown = |sql: &str| crate::parse(sql).map(|mut parsed| format!("{:?}", parsed.pop().unwrap()));
        for (sql, number) in [
            ("SELECT 0xFF", "255"),
            ("SELECT 0XfF_0A", "65290"),
            ("SELECT 0x_1F+1", "31"),
            ("SELECT 0b1_01, 2", "5"),
            ("SELECT 0o17", "15"),
            ("SELECT 0xFFFFFFFFFFFFFFFFFF", "4722366482869645213695"),
            ("SELECT 1_000", "1000"),
        ] {
            let found = shown(sql).unwrap();
            assert!(
                found.contains(&format!("Number(\"{number}\"")) || found.contains("1_000"),
                "{sql}: {found}"
            );
        }
        assert!(shown("SELECT X'FF'").unwrap().contains("HexStringLiteral(\"FF\")"));
        for sql in [
            "SELECT 12abc",
            "SELECT 0b12",
            "SELECT 0x",
            "SELECT 0xG",
            "SELECT 0o8",
            "SELECT 0b1__0",
            "SELECT 1e",
        ] {
            assert!(shown(sql).is_err(), "{sql}");
        }
    }
}
