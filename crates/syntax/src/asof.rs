//! `ASOF JOIN` among the tokens: replaced by a join that the parser knows; the binder gives it its meaning.
//!
//! The parser knows `ASOF` only with a `MATCH_CONDITION`. Elsewhere `ASOF` becomes `GLOBAL`, a keyword before
//! a join that has no meaning here and is refused if a user writes it. The text of views keeps `ASOF`.

use super::dialect::EntasisDialect;
use super::place::position;
use super::tokens::keyword;
use entasis_vector::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// The tokens with `ASOF` replaced by `GLOBAL` where the parser does not know what follows.
///
/// # Errors
/// Not supported, for a `GLOBAL JOIN` that the user wrote.
pub(super) fn settle(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    for at in 0..tokens.len() {
        let is_join = begins_join(tokens.get(at + 1));
        match keyword(tokens.get(at)) {
            Keyword::ASOF if is_join && !has_match_condition(&tokens[at + 1..]) => {
                tokens[at].token = Token::make_keyword("GLOBAL");
            }
            Keyword::GLOBAL if is_join => {
                return Err(
                    Error::not_supported("GLOBAL JOIN").with_position(position(tokens[at].span.start))
                );
            }
            _ => {}
        }
    }
    Ok(tokens)
}

/// True if a join begins with this token.
fn begins_join(token: Option<&TokenWithSpan>) -> bool {
    use Keyword::{CROSS, FULL, INNER, JOIN, LEFT, RIGHT};
    matches!(keyword(token), JOIN | INNER | LEFT | RIGHT | FULL | CROSS)
}

/// The text of a syntax tree as a user would write it, with `ASOF` restored.
pub fn restored(mut text: String) -> String {
    if !text.contains("GLOBAL") {
        return text;
    }
    let Ok(mut tokens) = Tokenizer::new(&EntasisDialect, &text).tokenize_with_location() else { return text };
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    for at in (0..tokens.len()).rev() {
        if keyword(tokens.get(at)) == Keyword::GLOBAL && begins_join(tokens.get(at + 1)) {
            let Location { line, column } = tokens[at].span.start;
            let before =
                text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum::<usize>();
            let within = text[before..].char_indices().nth(column.saturating_sub(1) as usize);
            if let Some((offset, _)) = within {
                let start = before + offset;
                text.replace_range(start..start + "GLOBAL".len(), "ASOF");
            }
        }
    }
    text
}

/// True if the join that begins here has a `MATCH_CONDITION`.
fn has_match_condition(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return false,
            Token::RParen => depth -= 1,
            Token::SemiColon => return false,
            _ if depth > 0 => {}
            _ => match keyword(Some(token)) {
                Keyword::MATCH_CONDITION => return true,
                Keyword::ON | Keyword::USING | Keyword::WHERE => return false,
                Keyword::JOIN if i > 0 => return false,
                _ => {}
            },
        }
    }
    false
}
