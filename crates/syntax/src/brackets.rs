//! Queries in brackets that the parser takes for something else, and `TABLE t`, which is a query as well.
//!
//! | as it is written | what the parser reads |
//! |---|---|
//! | `TABLE t` | `FROM t` |
//! | `INSERT INTO t (VALUES (1))`, `(WITH …)`, `((…))` | the same without the outer brackets, which would hold columns |
//! | `FROM VALUES (1), (2) t(a)` | `FROM (VALUES (1), (2)) t(a)` |
//! | `x = ALL ((SELECT 1) UNION SELECT 2)`, `ALL (VALUES (1))` | `ALL (SELECT * FROM (…))` |
//! | `SELECT ((SELECT 1) UNION SELECT 2)`, `(VALUES (1))` | `(SELECT * FROM (…))`; the inner bracket would be that of a value |
//!
//! What stands in `FROM`, `IN` and `EXISTS` the parser reads as it is.

use super::insert_words::is_inserted_into;
use super::tokens::{closing, is_word, keyword, opening};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Replaces `TABLE` by `FROM` where a query begins with it.
pub(super) fn tables(tokens: &mut [TokenWithSpan]) {
    for i in (0..tokens.len()).rev() {
        if keyword(tokens.get(i)) != Keyword::TABLE
            || !is_name(tokens.get(i + 1))
            || !begins_a_query(tokens, i)
        {
            continue;
        }
        let before = |back: usize| i.checked_sub(back).map(|at| &tokens[at]);
        let is_query = match before(1).map(|token| &token.token) {
            // A column may have this name: `CREATE TABLE t (table INTEGER)`.
            Some(Token::LParen) => !is_name(before(2)),
            Some(_) => !matches!(keyword(before(1)), Keyword::DESCRIBE | Keyword::DESC),
            None => true,
        };
        if is_query {
            tokens[i].token = Token::make_keyword("FROM");
        }
    }
}

/// Does the rest.
pub(super) fn settle(tokens: &mut Vec<TokenWithSpan>) {
    values_in_from(tokens);
    for i in (1..tokens.len()).rev() {
        // From the end, so that brackets that are added or left out are behind.
        if tokens.get(i).is_some_and(|token| token.token == Token::LParen) {
            while is_around_rows(tokens, i) {
                let Some(end) = closing(tokens, i) else { break };
                tokens.remove(end);
                tokens.remove(i);
            }
            select_all_of_combined(tokens, i);
        }
    }
}

/// Puts brackets around `VALUES` that is a table in `FROM`.
fn values_in_from(tokens: &mut Vec<TokenWithSpan>) {
    for i in (1..tokens.len()).rev() {
        let is_table = keyword(tokens.get(i)) == Keyword::VALUES
            && matches!(keyword(tokens.get(i - 1)), Keyword::FROM | Keyword::JOIN);
        let opens = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::LParen);
        if !is_table || !opens(i + 1) {
            continue;
        }
        let mut end = closing(tokens, i + 1);
        // What follows may be another row, or another table.
        while let Some(last) = end
            && tokens.get(last + 1).is_some_and(|token| token.token == Token::Comma)
            && opens(last + 2)
            && !begins_as_query(tokens, last + 2)
        {
            end = closing(tokens, last + 2);
        }
        let Some(last) = end else { continue };
        let span = tokens[i].span;
        tokens.insert(last + 1, TokenWithSpan { token: Token::RParen, span });
        tokens.insert(i, TokenWithSpan { token: Token::LParen, span });
    }
}

/// True for the bracket at `open` if it holds the whole query of an `INSERT`.
fn is_around_rows(tokens: &[TokenWithSpan], open: usize) -> bool {
    let is_query = match tokens.get(open + 1).map(|token| &token.token) {
        Some(Token::LParen) => true,
        Some(_) => match keyword(tokens.get(open + 1)) {
            Keyword::VALUES => tokens.get(open + 2).is_some_and(|token| token.token == Token::LParen),
            Keyword::WITH => true,
            _ => false,
        },
        None => false,
    };
    tokens[open].token == Token::LParen
        && is_query
        && is_inserted_into(tokens, open)
        && closing(tokens, open).is_some_and(|end| {
            end + 1 == tokens.len()
                || matches!(keyword(tokens.get(end + 1)), Keyword::RETURNING | Keyword::ON)
        })
}

/// Writes `SELECT * FROM` before what the bracket at `open` holds, if that begins with a bracket or `VALUES`
/// and is a query, where a value is expected.
fn select_all_of_combined(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let opens = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::LParen);
    let are_rows = keyword(tokens.get(open + 1)) == Keyword::VALUES && opens(open + 2);
    let is_combined = || {
        let end = closing(tokens, open + 1);
        begins_as_query(tokens, open + 1) && end.is_some_and(|end| goes_on_as_query(tokens.get(end + 1)))
    };
    if !(are_rows || opens(open + 1) && is_combined()) {
        return;
    }
    let Some(end) = closing(tokens, open).filter(|end| is_value(tokens, open, *end)) else { return };
    let span = tokens[open].span;
    let at = |token| TokenWithSpan { token, span };
    tokens.insert(end, at(Token::RParen));
    let begin = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM"), Token::LParen];
    tokens.splice(open + 1..open + 1, begin.map(at));
}

/// True if the `FROM` or `TABLE` at `i` begins a query, by what is before it.
pub(super) fn begins_a_query(tokens: &[TokenWithSpan], i: usize) -> bool {
    let Some(before) = i.checked_sub(1) else { return true };
    let word = |at: usize| keyword(tokens.get(at));
    match &tokens[before].token {
        Token::LParen => true,
        Token::RParen => {
            let Some(open) = opening(tokens, before).filter(|open| *open > 0) else { return false };
            match word(open - 1) {
                // A query of a WITH, or the options of EXPLAIN.
                Keyword::AS | Keyword::MATERIALIZED | Keyword::EXPLAIN | Keyword::ANALYZE => true,
                _ => is_inserted_into(tokens, open),
            }
        }
        Token::Word(_) => match word(before) {
            Keyword::EXPLAIN | Keyword::ANALYZE | Keyword::DESCRIBE | Keyword::DESC => true,
            // It may also be the name of a column.
            Keyword::VERBOSE => {
                let at = before.checked_sub(1);
                at.is_some_and(|at| matches!(word(at), Keyword::EXPLAIN | Keyword::ANALYZE))
            }
            // Of CREATE TABLE and CREATE VIEW.
            Keyword::AS | Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::ALL => true,
            // IS DISTINCT FROM compares.
            Keyword::DISTINCT => before
                .checked_sub(1)
                .is_some_and(|at| matches!(word(at), Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT)),
            Keyword::NAME => before.checked_sub(1).is_some_and(|at| word(at) == Keyword::BY),
            _ => is_word(tokens.get(before), "summarize") || is_inserted_into(tokens, i),
        },
        _ => false,
    }
}

/// True if a value is expected where a bracket opens, and not a table, by what is around it.
fn is_value(tokens: &[TokenWithSpan], open: usize, end: usize) -> bool {
    let after = tokens.get(end + 1);
    match &tokens[open - 1].token {
        Token::LParen | Token::RParen | Token::Period => false,
        // A table would have a name.
        Token::Comma => !is_name(after) && keyword(after) != Keyword::AS,
        Token::Word(word) if word.quote_style.is_some() => false,
        Token::Word(word) => match word.keyword {
            Keyword::ALL => is_compared(tokens, open - 1),
            Keyword::SELECT | Keyword::WHERE | Keyword::HAVING | Keyword::BY => true,
            Keyword::ANY | Keyword::SOME | Keyword::AND | Keyword::OR | Keyword::NOT | Keyword::BETWEEN => {
                true
            }
            Keyword::CASE | Keyword::WHEN | Keyword::THEN | Keyword::ELSE => true,
            _ => false,
        },
        _ => true,
    }
}

/// True if what the brackets from `open` on hold begins as a query.
fn begins_as_query(tokens: &[TokenWithSpan], open: usize) -> bool {
    let first = tokens[open..].iter().find(|token| token.token != Token::LParen);
    matches!(keyword(first), Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM)
}

/// True for what a query may go on with behind a query in brackets.
fn goes_on_as_query(token: Option<&TokenWithSpan>) -> bool {
    let word = keyword(token);
    matches!(word, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT)
        || matches!(word, Keyword::ORDER | Keyword::LIMIT | Keyword::OFFSET)
}

/// True if the `ALL` at `at` is behind a comparison, and not `UNION ALL`.
fn is_compared(tokens: &[TokenWithSpan], at: usize) -> bool {
    at > 0
        && matches!(
            tokens[at - 1].token,
            Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq | Token::DoubleEq
        )
}

/// True for a word that may be a name.
fn is_name(token: Option<&TokenWithSpan>) -> bool {
    match token.map(|token| &token.token) {
        Some(Token::Word(word)) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use crate::parsed::Ast;

    /// The statement as the parser reads it; `None` if it is a syntax error.
    fn read(sql: &str) -> Option<String> {
        match parse(sql).ok()?.pop()?.ast {
            Ast::Sql(statement) => Some(statement.to_string()),
            _ => None,
        }
    }

    #[test]
    fn queries_in_brackets_are_read_as_queries() {
        for (sql, same) in [
            ("TABLE t", "SELECT * FROM t"),
            ("TABLE s.t ORDER BY a LIMIT 1", "SELECT * FROM s.t ORDER BY a LIMIT 1"),
            ("SELECT 1 UNION ALL TABLE t", "SELECT 1 UNION ALL SELECT * FROM t"),
            ("SELECT a IN (TABLE t)", "SELECT a IN (SELECT * FROM t)"),
            ("INSERT INTO u TABLE t", "INSERT INTO u SELECT * FROM t"),
            ("INSERT INTO t (VALUES (1), (2))", "INSERT INTO t VALUES (1), (2)"),
            ("INSERT INTO t ((SELECT 1)) RETURNING a", "INSERT INTO t (SELECT 1) RETURNING a"),
            (
                "INSERT INTO t (WITH c AS (SELECT 1) FROM c)",
                "INSERT INTO t WITH c AS (SELECT 1) SELECT * FROM c",
            ),
            ("INSERT INTO t ((SELECT 1) UNION SELECT 2)", "INSERT INTO t (SELECT 1) UNION SELECT 2"),
            (
                "SELECT ((SELECT 1) UNION SELECT 2), (VALUES (1))",
                "SELECT (SELECT * FROM ((SELECT 1) UNION SELECT 2)), (SELECT * FROM (VALUES (1)))",
            ),
            (
                "SELECT a FROM t WHERE a = (((SELECT 1)) LIMIT 1)",
                "SELECT a FROM t WHERE a = (SELECT * FROM (((SELECT 1)) LIMIT 1))",
            ),
            (
                "SELECT a FROM VALUES (1), (2) t(a) JOIN VALUES (3) AS u(b) ON true",
                "SELECT a FROM (VALUES (1), (2)) t(a) JOIN (VALUES (3)) AS u(b) ON true",
            ),
            ("SELECT 1 FROM VALUES (1), (SELECT 2) s", "SELECT 1 FROM (VALUES (1)), (SELECT 2) s"),
            ("SELECT a = ALL (VALUES (1))", "SELECT a = ALL(SELECT * FROM (VALUES (1)))"),
        ] {
            assert!(read(same).is_some(), "{same}");
            assert_eq!(read(sql), read(same), "{sql}");
        }
    }

    #[test]
    fn other_brackets_are_left_as_they_are() {
        for sql in [
            "CREATE TABLE t (\"table\" INT)",
            "INSERT INTO t (a) VALUES (1)",
            "INSERT INTO t (\"values\") VALUES (1)",
            "INSERT INTO t VALUES ((SELECT 1), 50) RETURNING a",
            "SELECT * FROM t, (VALUES (1)) AS v (a)",
            "SELECT * FROM ((SELECT 1) UNION SELECT 2) AS x",
            "SELECT ((SELECT 1)), ((SELECT 1) + 1)",
            "SELECT a IN ((SELECT 1) UNION ALL (VALUES (1)))",
            "(SELECT 1) UNION ALL (SELECT 2)",
        ] {
            assert_eq!(read(sql).as_deref(), Some(sql));
        }
    }
}
