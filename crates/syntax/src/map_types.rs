//! The type `MAP(K, V)`, which the parser does not know.
//!
//! The types within become texts, which it takes for the modifiers of a type of some other name:
//! `MAP('VARCHAR', 'DECIMAL(10, 2)')`, from which [`super::types`] makes the type. Since `map(keys, values)`
//! is a function, only a MAP that stands where a type does is changed: at the start of a text that is a type,
//! after `::`, the AS of a CAST or TYPE, and after the name of a column or of a field.

use super::tokens::{closing, enclosing, is_word};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// Changes the types among these tokens; `text` returns the source text of a span.
pub(super) fn settle<'a>(tokens: &mut Vec<TokenWithSpan>, text: impl Fn(Span) -> &'a str) {
    for at in 0..tokens.len() {
        if !is_type(tokens, at) {
            continue;
        }
        let Some(end) = closing(tokens, at + 1) else { continue };
        let Some((key, value)) = halves(&tokens[at + 2..end]) else { continue };
        let of = |part: &[TokenWithSpan]| {
            let span = Span::new(part.first()?.span.start, part.last()?.span.end);
            Some(TokenWithSpan { token: Token::SingleQuotedString(text(span).to_owned()), span })
        };
        if let (Some(key), Some(value)) = (of(key), of(value)) {
            let comma = TokenWithSpan { token: Token::Comma, span: key.span };
            tokens.splice(at + 2..end, [key, comma, value]);
        }
    }
}

/// True if a type begins here that is a MAP.
fn is_type(tokens: &[TokenWithSpan], at: usize) -> bool {
    /// What is no name of a column where a call may follow.
    const BEFORE_CALLS: [&str; 7] = ["select", "distinct", "all", "not", "case", "exists", "lateral"];
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    if !is_word(tokens.get(at), "map") || token(at + 1) != Some(&Token::LParen) {
        return false;
    }
    let Some(before) = at.checked_sub(1) else { return true };
    match token(before) {
        Some(Token::DoubleColon) => true,
        _ if is_word(tokens.get(before), "type") => true,
        _ if is_word(tokens.get(before), "as") => {
            let cast = enclosing(tokens, at).and_then(|open| open.checked_sub(1));
            let is_cast = |word| is_word(cast.and_then(|cast| tokens.get(cast)), word);
            is_cast("cast") || is_cast("try_cast") || is_cast("safe_cast")
        }
        Some(Token::Word(_)) if !BEFORE_CALLS.iter().any(|word| is_word(tokens.get(before), word)) => {
            let first = before.checked_sub(1);
            let is = |word| is_word(first.and_then(|first| tokens.get(first)), word);
            matches!(first.and_then(token), Some(Token::LParen | Token::Comma))
                || is("column")
                || is("exists")
                || is("add")
        }
        _ => false,
    }
}

/// What stands before the only comma outside of brackets, and what stands behind it.
fn halves(tokens: &[TokenWithSpan]) -> Option<(&[TokenWithSpan], &[TokenWithSpan])> {
    let mut level = 0usize;
    let mut commas = tokens.iter().enumerate().filter_map(|(at, token)| {
        match token.token {
            Token::LParen => level += 1,
            Token::RParen => level = level.saturating_sub(1),
            _ => {}
        }
        (level == 0 && token.token == Token::Comma).then_some(at)
    });
    match (commas.next(), commas.next()) {
        (Some(comma), None) => Some((&tokens[..comma], &tokens[comma + 1..])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;
    use crate::parsed::Ast;
    use crate::types::parse_type;

    /// The statement as it is parsed.
    fn parsed(sql: &str) -> String {
        match parse(sql).map(|mut all| all.pop().unwrap().ast) {
            Ok(Ast::Sql(statement)) => statement.to_string(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn maps_are_types_where_types_are() {
        for sql in [
            "CREATE TABLE t (a MAP(VARCHAR, DECIMAL(10, 2)), key MAP(DATE, MAP(TEXT, INT))[])",
            "ALTER TABLE t ADD COLUMN m MAP(ENUM('it''s', 'b'), STRUCT(a INT, b INT[]))",
            "SELECT CAST(a AS MAP(INT, INT)), a::MAP(INT, INT)",
            "SELECT CAST(a AS STRUCT(m MAP(INT, INT)))",
            "SELECT map(a, b), count(DISTINCT map(a, b)), (map(a, b))",
            "SELECT CASE WHEN map(a, b) = map(b, a) THEN map(a, b) END AS map",
            "SELECT k FROM f AS map(k, v)",
        ] {
            assert_eq!(parsed(&parsed(sql)), parsed(sql));
        }
        assert_eq!(
            parse_type("map(varchar, MAP(DECIMAL(4, 1), STRUCT(a INT, b ENUM('it''s')))[])")
                .unwrap()
                .to_string(),
            "MAP(VARCHAR, MAP(DECIMAL(4,1), STRUCT(a INTEGER, b ENUM('it''s')))[])"
        );
        for wrong in ["MAP", "MAP(INT)", "MAP()"] {
            let error = parse_type(wrong).unwrap_err();
            assert_eq!(error.hint(), Some("write MAP(VARCHAR, INTEGER)"), "{wrong}");
        }
        assert!(parse_type("MAP(INT, NOTHING)").unwrap_err().message().contains("NOTHING"));
        assert!(parse_type("MAP(INT, INT, INT)").is_err());
    }
}
