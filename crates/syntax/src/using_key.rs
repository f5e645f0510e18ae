//! `USING KEY` of a `WITH RECURSIVE` among the tokens: converted to columns, which the parser knows; the
//! binder gives it its meaning.
//!
//! The columns of the key become additional columns of their query, after one that no user can write. The
//! text of views is not changed.

use super::place::position;
use super::tokens::{closing, keyword};
use crate::disguise::KEY;
use entasis_vector::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Moves the columns of a `USING KEY (…)` to the end of those of its query.
///
/// # Errors
/// Not supported, for aggregates among them.
pub(super) fn settle(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    for at in (1..tokens.len()).rev() {
        let is_clause =
            keyword(tokens.get(at)) == Keyword::USING && keyword(tokens.get(at + 1)) == Keyword::KEY;
        let opens = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::LParen);
        if !is_clause || !opens(at + 2) {
            continue;
        }
        let Some(end) = closing(tokens, at + 2).filter(|&end| keyword(tokens.get(end + 1)) == Keyword::AS)
        else {
            continue;
        };
        if let Some(inner) = (at + 3..end).find(|&inner| opens(inner)) {
            let place = position(tokens[inner].span.start);
            return Err(Error::not_supported("aggregates and expressions in USING KEY").with_position(place));
        }
        let span = tokens[at].span;
        let token = |token| TokenWithSpan { token, span };
        let mark = token(Token::make_word(KEY, Some('"')));
        match tokens[at - 1].token {
            // t (a, b) USING KEY (a): the bracket that closes the first list is removed, and so is the one
            // that opens the second.
            Token::RParen => {
                drop(tokens.splice(at - 1..at + 3, [token(Token::Comma), mark, token(Token::Comma)]))
            }
            _ => drop(tokens.splice(at..at + 3, [token(Token::LParen), mark, token(Token::Comma)])),
        }
    }
    Ok(())
}

/// The text of a syntax tree as a user would write it.
pub fn restored(text: String) -> String {
    if !text.contains(KEY) {
        return text;
    }
    text.replace(&format!(", \"{KEY}\", "), ") USING KEY (").replace(&format!("(\"{KEY}\", "), "USING KEY (")
}

#[cfg(test)]
mod tests {
    use super::restored;
    use crate::parse::parse_query;

    #[test]
    fn texts_come_back() {
        for sql in [
            "WITH RECURSIVE t (a, b) USING KEY (a) AS (SELECT 1, 2 UNION SELECT a, b FROM recurring.t) SELECT * FROM t",
            "WITH RECURSIVE t USING KEY (a, b) AS (SELECT 1 AS a, 2 AS b UNION SELECT a, b FROM t) SELECT * FROM t",
        ] {
            let query = parse_query(sql).unwrap();
            assert_eq!(restored(query.to_string()), sql);
        }
        assert!(parse_query("WITH RECURSIVE t (a, b) USING KEY (a, max(b)) AS (SELECT 1) SELECT 1").is_err());
    }
}
