//! Helpers for lists of tokens without white space.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The keyword that a token represents, unless it is quoted; [`Keyword::NoKeyword`] if it is none.
pub(super) fn keyword(token: Option<&TokenWithSpan>) -> Keyword {
    match token.map(|token| &token.token) {
        Some(Token::Word(Word { quote_style: None, keyword, .. })) => *keyword,
        _ => Keyword::NoKeyword,
    }
}

/// True for a token that is `word`, in any case and without quotes.
pub(super) fn is_word(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(own))
        if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word))
}

/// The index of the bracket that closes the one at `open`.
pub(super) fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut level = 0usize;
    tokens[open..]
        .iter()
        .position(|token| {
            match token.token {
                Token::LParen => level += 1,
                Token::RParen => level -= 1,
                _ => {}
            }
            level == 0
        })
        .map(|length| open + length)
}

/// The index of the bracket that the one at `close` closes.
pub(super) fn opening(tokens: &[TokenWithSpan], close: usize) -> Option<usize> {
    let mut level = 0usize;
    (0..=close).rev().find(|&at| {
        match tokens[at].token {
            Token::RParen => level += 1,
            Token::LParen => level -= 1,
            _ => {}
        }
        level == 0
    })
}

/// The index of the bracket that opens the innermost pair around the token at `at`.
pub(super) fn enclosing(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut level = 0usize;
    (0..at).rev().find(|&at| match tokens[at].token {
        Token::RParen => {
            level += 1;
            false
        }
        Token::LParen if level > 0 => {
            level -= 1;
            false
        }
        Token::LParen => true,
        _ => false,
    })
}
