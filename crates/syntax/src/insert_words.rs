//! What an `INSERT` says between its table and its rows, and the parser does not know: `BY NAME` and
//! `OVERRIDING SYSTEM VALUE` or `USER VALUE`.
//!
//! Among the tokens they become columns that no user can write; `OVERRIDING` is the last one, also in the
//! `INSERT` of a `MERGE`. The binder asks the tree for them ([`overriding`]).

use super::tokens::{is_word, keyword, opening};
use crate::disguise::{BY_NAME, OVERRIDING_SYSTEM, OVERRIDING_USER};
use sqlparser::ast::ObjectName;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Which values an identity column gets instead of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overriding {
    /// The given values instead of the sequence's, also if it is `GENERATED ALWAYS`.
    System,
    /// The sequence's values instead of the given ones.
    User,
}

/// The columns of an `INSERT`, without the one that stands for `OVERRIDING`; and its meaning.
pub fn overriding(columns: &[ObjectName]) -> (&[ObjectName], Option<Overriding>) {
    let Some((last, others)) = columns.split_last() else { return (columns, None) };
    let name = match &last.0[..] {
        [part] => part.as_ident().map(|name| &*name.value),
        _ => None,
    };
    match name {
        Some(OVERRIDING_SYSTEM) => (others, Some(Overriding::System)),
        Some(OVERRIDING_USER) => (others, Some(Overriding::User)),
        _ => (columns, None),
    }
}

/// Replaces these words by columns.
pub(super) fn settle(tokens: &mut Vec<TokenWithSpan>) {
    by_name(tokens);
    overriding_clauses(tokens);
}

/// `INSERT INTO t BY NAME query`: the words become a column, of which there is no other.
fn by_name(tokens: &mut Vec<TokenWithSpan>) {
    for i in (1..tokens.len().saturating_sub(1)).rev() {
        let is_it = keyword(tokens.get(i)) == Keyword::BY && keyword(tokens.get(i + 1)) == Keyword::NAME;
        if is_it && is_inserted_into(tokens, i) {
            let span = tokens[i].span;
            let column = [Token::LParen, Token::make_word(BY_NAME, Some('"')), Token::RParen];
            tokens.splice(i..i + 2, column.map(|token| TokenWithSpan { token, span }));
        }
    }
}

/// `(a, b) OVERRIDING USER VALUE` becomes `(a, b, mark)`, and without columns `(mark)`.
fn overriding_clauses(tokens: &mut Vec<TokenWithSpan>) {
    for i in (1..tokens.len().saturating_sub(2)).rev() {
        if !is_word(tokens.get(i), "overriding") || !is_word(tokens.get(i + 2), "value") {
            continue;
        }
        let name = match () {
            () if is_word(tokens.get(i + 1), "system") => OVERRIDING_SYSTEM,
            () if is_word(tokens.get(i + 1), "user") => OVERRIDING_USER,
            () => continue,
        };
        let columns = match tokens[i - 1].token {
            Token::RParen => opening(tokens, i - 1),
            _ => None,
        };
        let end = columns.unwrap_or(i);
        if !is_inserted_into(tokens, end) && !is_merged(tokens, end) {
            continue;
        }
        let span = tokens[i].span;
        let mark = Token::make_word(name, Some('"'));
        let (from, made) = match columns {
            Some(_) => (i - 1, vec![Token::Comma, mark, Token::RParen]),
            None => (i, vec![Token::LParen, mark, Token::RParen]),
        };
        tokens.splice(from..i + 3, made.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// True if `INSERT INTO name` is before `end`.
pub(super) fn is_inserted_into(tokens: &[TokenWithSpan], end: usize) -> bool {
    let is_name = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => {
            word.quote_style.is_some()
                || !matches!(word.keyword, Keyword::INTO | Keyword::SELECT | Keyword::VALUES)
        }
        Token::Period => true,
        _ => false,
    };
    let names = tokens[..end].iter().rev().take_while(|token| is_name(token)).count();
    let Some(into) = (end - names).checked_sub(1).filter(|_| names > 0) else { return false };
    keyword(tokens.get(into)) == Keyword::INTO
        && tokens[..into].iter().rev().take(3).any(|token| keyword(Some(token)) == Keyword::INSERT)
}

/// True if `THEN INSERT` is before `end`.
fn is_merged(tokens: &[TokenWithSpan], end: usize) -> bool {
    let is = |back: usize, word| end >= back && keyword(tokens.get(end - back)) == word;
    is(1, Keyword::INSERT) && is(2, Keyword::THEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::parsed::Ast;
    use sqlparser::ast::{MergeAction, Statement};

    /// The columns of a statement and its `OVERRIDING`; `None` if it is a syntax error.
    fn of(sql: &str) -> Option<(usize, Option<Overriding>)> {
        let Ast::Sql(statement) = parse(sql).ok()?.pop()?.ast else { return None };
        let columns = match *statement {
            Statement::Insert(insert) => insert.columns,
            Statement::Merge(merge) => match &merge.clauses[0].action {
                MergeAction::Insert(insert) => insert.columns.clone(),
                _ => return None,
            },
            _ => return None,
        };
        let (columns, overriding) = overriding(&columns);
        Some((columns.len(), overriding))
    }

    #[test]
    fn overriding_is_found_wherever_rows_are_inserted() {
        let (system, user) = (Some(Overriding::System), Some(Overriding::User));
        for (sql, expected) in [
            ("INSERT INTO t VALUES (1)", Some((0, None))),
            ("INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (1)", Some((0, system))),
            ("INSERT INTO s.t AS x (a, \"b\") overriding user value SELECT 1, 2", Some((2, user))),
            ("INSERT INTO t (a) OVERRIDING SYSTEM VALUE FROM u", Some((1, system))),
            ("INSERT INTO t BY NAME OVERRIDING SYSTEM VALUE FROM u", Some((1, system))),
            ("INSERT INTO overriding (system, value) VALUES (1, 2)", Some((2, None))),
            ("INSERT INTO t (a) SELECT overriding FROM overriding", Some((1, None))),
            ("INSERT INTO t (a) OVERRIDING VALUES (1)", None),
            ("INSERT INTO t (a) OVERRIDING SYSTEM VALUES (1)", None),
            ("INSERT INTO t OVERRIDING SYSTEM VALUE DEFAULT VALUES", None),
            ("INSERT INTO t OVERRIDING SYSTEM VALUE (a) VALUES (1)", None),
            (
                "MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a, b) OVERRIDING USER VALUE \
                 VALUES (1, 2)",
                Some((2, user)),
            ),
            (
                "MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT OVERRIDING SYSTEM VALUE VALUES (1)",
                Some((0, system)),
            ),
        ] {
            assert_eq!(of(sql), expected, "{sql}");
        }
    }
}
