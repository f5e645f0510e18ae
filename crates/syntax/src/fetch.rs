//! `FETCH FIRST (expression) ROWS ONLY`: the parser takes only a literal between `FIRST` and `ROWS`.
//!
//! A literal or a parameter loses its brackets. Any other expression becomes that of a `LIMIT`, which means
//! the same; before `WITH TIES` and `PERCENT` it stays a syntax error.

use super::tokens::{closing, is_word};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Replaces brackets after `FETCH FIRST` and `FETCH NEXT`.
pub(super) fn settle(tokens: &mut Vec<TokenWithSpan>) {
    let is = |tokens: &[TokenWithSpan], at: usize, words: &[&str]| {
        words.iter().any(|word| is_word(tokens.get(at), word))
    };
    for fetch in (0..tokens.len()).rev() {
        let open = fetch + 2;
        if !is(tokens, fetch, &["fetch"])
            || !is(tokens, fetch + 1, &["first", "next"])
            || tokens.get(open).is_none_or(|token| token.token != Token::LParen)
        {
            continue;
        }
        let Some(close) = closing(tokens, open) else { continue };
        let is_only = is(tokens, close + 1, &["row", "rows"]) && is(tokens, close + 2, &["only"]);
        let is_literal = matches!(
            tokens.get(open + 1..close),
            Some([TokenWithSpan { token: Token::Number(..) | Token::Placeholder(_), .. }])
        );
        if is_literal {
            tokens.remove(close);
            tokens.remove(open);
        } else if is_only {
            tokens.drain(close + 1..close + 3);
            let span = tokens[fetch].span;
            let limit = TokenWithSpan { token: Token::make_keyword("LIMIT"), span };
            tokens.splice(fetch..open, [limit]);
        }
    }
}
