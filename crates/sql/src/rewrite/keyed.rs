//! `WITH RECURSIVE t (a, b) USING KEY (a) AS (start UNION step)`: rows by key, of which the last one counts.
//!
//! The parser does not know the clause, and the binder neither, so it travels through both:
//!
//! 1. *Tokens.* The columns of the key become further columns of `t`, behind one that no user can write.
//!    Views keep their text as it was.
//! 2. *Syntax tree.* They are taken out again, and `t` gets a name of which the key's number is a hidden
//!    part. `recurring.t`, by which the step reads all rows so far, becomes a table of that name with one
//!    more hidden part. The binder takes a query for a recursion only if it reads `t` itself: a step that
//!    does not is given no rows of it as well.
//! 3. *Lowering* finds the key by its number ([`crate::lower`]).
//!
//! `UNION` and `UNION ALL` mean the same here. Refused are aggregates in the place of columns, and a key of
//! what is no recursion.

use super::reads::reads;
use crate::hidden::MARK;
use crate::parse::{parse_query, position};
use crate::walk::Walk;
use crate::words::closing;
use datafusion_sql::sqlparser::ast::{
    Cte, Ident, ObjectName, Query, SetExpr, SetOperator, TableFactor, Visitor,
};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use entasis_vector::{Error, Result};
use std::ops::ControlFlow;

/// The column between those of a query and those of its key.
const KEY: &str = "\u{1}key";
/// What begins the hidden part that is a key's number.
const NUMBER: char = 'k';
/// The hidden part that tells all rows so far from those of the last round.
const ALL: &str = "\u{1}all\u{1}";

// ---- tokens -----------------------------------------------------------------------------------------------

fn keyword(token: Option<&TokenWithSpan>) -> Keyword {
    match token.map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Puts the columns of a `USING KEY (…)` behind those of its query.
///
/// # Errors
/// Not supported, for aggregates among them.
pub(crate) fn settle(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
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
            // t (a, b) USING KEY (a): the bracket that closes the list goes, and so does the one that opens
            // the other.
            Token::RParen => {
                drop(tokens.splice(at - 1..at + 3, [token(Token::Comma), mark, token(Token::Comma)]))
            }
            _ => drop(tokens.splice(at..at + 3, [token(Token::LParen), mark, token(Token::Comma)])),
        }
    }
    Ok(())
}

/// The text of a syntax tree as its user would write it.
pub(crate) fn restored(text: String) -> String {
    if !text.contains(KEY) {
        return text;
    }
    text.replace(&format!(", \"{KEY}\", "), ") USING KEY (").replace(&format!("(\"{KEY}\", "), "USING KEY (")
}

// ---- the syntax tree --------------------------------------------------------------------------------------

/// Takes the columns of its key from a query of a `WITH`, in lower case.
pub(super) fn take_key(cte: &mut Cte) -> Option<Vec<String>> {
    let columns = &mut cte.alias.columns;
    let at = columns.iter().position(|column| column.name.value == KEY)?;
    let key = columns.split_off(at).into_iter().skip(1).map(|column| column.name.value.to_lowercase());
    Some(key.collect())
}

/// The name of a query whose key has this number.
pub(super) fn numbered(name: &str, number: usize) -> String {
    format!("{name}{MARK}{NUMBER}{number:x}{MARK}")
}

/// The number of the key of the query of that name.
pub(crate) fn number_in(name: &str) -> Option<usize> {
    let mut hidden = name.split(MARK).skip(1).step_by(2);
    hidden.find_map(|part| usize::from_str_radix(part.strip_prefix(NUMBER)?, 16).ok())
}

/// The name of all rows so far of the query of this name.
pub(super) fn all_of(name: &str) -> String {
    format!("{name}{ALL}")
}

/// The query whose rows so far these are.
pub(crate) fn query_of_all(name: &str) -> Option<&str> {
    name.strip_suffix(ALL)
}

/// Gives a query with a key, of this name, what it needs to be bound as a recursion.
///
/// # Errors
/// Input, if it reads itself nowhere, or before there are rows.
pub(super) fn prepare(query: &mut Query, name: &str, shown: &str) -> Result<()> {
    let all = all_of(name);
    let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = &mut *query.body else {
        let text = format!("{shown} has a key, and is not of the form: start UNION [ALL] step");
        return Err(Error::input(text));
    };
    if reads(&**left, &all) > 0 {
        return Err(Error::input(format!("{shown} reads itself in its first side, before there are rows")));
    }
    if reads(&**right, name) > 0 {
        return Ok(());
    }
    if reads(&**right, &all) == 0 {
        return Err(Error::input(format!("{shown} has a key, and does not read itself")));
    }
    let mut template = parse_query("SELECT 1 UNION ALL SELECT * FROM itself WHERE FALSE")?;
    if let SetExpr::SetOperation { left: step, right: itself, .. } = &mut *template.body {
        std::mem::swap(step, right);
        if let SetExpr::Select(itself) = &mut **itself
            && let TableFactor::Table { name: table, .. } = &mut itself.from[0].relation
        {
            *table = ObjectName::from(Ident::with_quote('"', name));
        }
    }
    *right = template.body;
    Ok(())
}

/// True if a query reads all rows so far of a recursion around it.
pub(super) fn reads_all(query: &Query) -> bool {
    struct Look;
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            match relation.0.as_slice() {
                [part] if part.as_ident().is_some_and(|name| query_of_all(&name.value).is_some()) => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    query.walk(&mut Look).is_break()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_keys_and_rows() {
        let name = numbered("t", 27);
        assert_eq!(number_in(&name), Some(27));
        assert_eq!(number_in(&all_of(&name)), Some(27));
        assert_eq!(query_of_all(&all_of(&name)), Some(name.as_str()));
        assert_eq!(number_in("t"), None);
        assert_eq!(crate::hidden::visible(&all_of(&name)), "t");
    }

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
