//! Replaces words that the parser does not know or would misinterpret by ones that it knows.
//!
//! Each rewrite is a pass over the tokens of a statement: constructs for which the parser has no syntax (`DO
//! NOTHING` in a `MERGE`, columns without types, `DESCRIBE` in `FROM`) become names that no user can write,
//! where it expects a name. Words that it silently ignores are refused. Forms of whole statements are parsed
//! by [`super::grammar`].

use super::place::position;
use super::tokens::{enclosing, is_word, keyword};
use super::types::INSTEAD_OF_DIGITS;
use super::{brackets, fetch, insert_words, map_types, sample, using_key};
use crate::disguise::{DESCRIBE, EXCLUDE, MARK, MATERIALIZED, NO_TYPE, NOT_MATERIALIZED, NOTHING};
use entasis_vector::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// Converts the tokens of a statement, without white space, to the parser's syntax; `text` returns the source
/// text of a span.
///
/// # Errors
/// Not supported, for words that the parser would ignore.
pub(super) fn settle<'a>(tokens: &mut Vec<TokenWithSpan>, text: impl Fn(Span) -> &'a str) -> Result<()> {
    map_types::settle(tokens, &text);
    refuse_swallowed(tokens)?;
    other_words(tokens);
    singular_units(tokens);
    insert_words::settle(tokens);
    fetch::settle(tokens);
    trimmed(tokens);
    cast_offsets(tokens);
    brackets::tables(tokens);
    select_all_where_unsaid(tokens);
    describe_in_from(tokens, text);
    typed_literals(tokens)?;
    brackets::settle(tokens);
    using_key::settle(tokens)?;
    sample::settle(tokens)?;
    exclusions(tokens)
}

/// `OVER (… ROWS … EXCLUDE TIES)`: the exclusion becomes part of the name of the window that this one
/// extends, which the parser reads first.
fn exclusions(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let is = |token: Option<&TokenWithSpan>, word| is_word(token, word);
    for i in (0..tokens.len()).rev() {
        if !is(tokens.get(i), "exclude") {
            continue;
        }
        let (what, length) = match () {
            () if is(tokens.get(i + 1), "current") && is(tokens.get(i + 2), "row") => ("row", 3),
            () if is(tokens.get(i + 1), "no") && is(tokens.get(i + 2), "others") => ("none", 3),
            () if is(tokens.get(i + 1), "group") => ("group", 2),
            () if is(tokens.get(i + 1), "ties") => ("ties", 2),
            () => continue,
        };
        if tokens.get(i + length).is_none_or(|token| token.token != Token::RParen) {
            continue;
        }
        // The innermost bracket that encloses it, and the name after that.
        let Some(open) = enclosing(tokens, i).filter(|&open| open > 0) else { continue };
        if !is(tokens.get(open - 1), "over") && !is(tokens.get(open - 1), "as") {
            continue;
        }
        let span = tokens[i].span;
        tokens.drain(i..i + length);
        const BEFORE: [&str; 5] = ["partition", "order", "rows", "range", "groups"];
        let base = match tokens.get(open + 1).map(|token| &token.token) {
            Some(Token::Word(word)) if !BEFORE.iter().any(|own| word.value.eq_ignore_ascii_case(own)) => {
                let base = word.value.clone();
                tokens.remove(open + 1);
                base
            }
            _ => String::new(),
        };
        let name = format!("{EXCLUDE}{what}{MARK}{base}");
        tokens.insert(open + 1, TokenWithSpan { token: Token::make_word(&name, Some('"')), span });
    }
    Ok(())
}

/// `TIMESTAMP_S '…'` becomes `'…'::TIMESTAMP_S`: the parser does not know these types, and would take the
/// type for a column and the text for its alias.
fn typed_literals(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    const UNKNOWN: [&str; 4] = ["TIMESTAMP_US", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"];
    const MISSING: [&str; 2] = ["TIMESTAMPTZ_NS", "TIME_NS"];
    for at in (1..tokens.len()).rev() {
        let (Token::Word(word), Token::SingleQuotedString(_)) = (&tokens[at - 1].token, &tokens[at].token)
        else {
            continue;
        };
        let name = word.value.to_ascii_uppercase();
        if word.quote_style.is_some() {
            continue;
        }
        let span = tokens[at - 1].span;
        if UNKNOWN.contains(&name.as_str()) {
            tokens.swap(at - 1, at);
            tokens.insert(at, TokenWithSpan { token: Token::DoubleColon, span });
        } else if MISSING.contains(&name.as_str()) {
            let error = Error::not_supported(name).with_hint(INSTEAD_OF_DIGITS);
            return Err(error.with_position(position(span.start)));
        }
    }
    Ok(())
}

/// `trim(BOTH FROM x)` becomes `trim(BOTH x)`: the parser wants the characters before the `FROM`.
fn trimmed(tokens: &mut Vec<TokenWithSpan>) {
    for i in (2..tokens.len()).rev() {
        if keyword(tokens.get(i)) != Keyword::FROM {
            continue;
        }
        let side = matches!(keyword(tokens.get(i - 1)), Keyword::BOTH | Keyword::LEADING | Keyword::TRAILING);
        let open = i - 1 - usize::from(side);
        if open > 0 && tokens[open].token == Token::LParen && keyword(tokens.get(open - 1)) == Keyword::TRIM {
            tokens.remove(i);
        }
    }
}

/// `RANGE '1 day'::INTERVAL PRECEDING` becomes `RANGE ('1 day'::INTERVAL) PRECEDING`: the parser takes the
/// text for the whole offset of a frame.
fn cast_offsets(tokens: &mut Vec<TokenWithSpan>) {
    for i in (1..tokens.len()).rev() {
        const BEFORE: [Keyword; 5] =
            [Keyword::ROWS, Keyword::RANGE, Keyword::GROUPS, Keyword::BETWEEN, Keyword::AND];
        let is_cast = matches!(tokens[i].token, Token::SingleQuotedString(_))
            && tokens.get(i + 1).is_some_and(|token| token.token == Token::DoubleColon)
            && matches!(keyword(tokens.get(i + 3)), Keyword::PRECEDING | Keyword::FOLLOWING);
        if is_cast && BEFORE.contains(&keyword(tokens.get(i - 1))) {
            let span = tokens[i].span;
            tokens.insert(i + 3, TokenWithSpan { token: Token::RParen, span });
            tokens.insert(i, TokenWithSpan { token: Token::LParen, span });
        }
    }
}

/// Puts the options of a sequence into the order that the parser expects; the first token is not an option.
fn order_sequence_options(tokens: &mut [TokenWithSpan]) {
    const ORDER: [&str; 7] = ["increment", "minvalue", "maxvalue", "start", "cache", "cycle", "owned"];
    let word = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let rank = |name: &str| ORDER.iter().position(|option| *option == name).map(|rank| rank + 1);
    let mut ranks = vec![0; tokens.len()];
    for i in 1..tokens.len() {
        let this = word(&tokens[i]);
        ranks[i] = match rank(&this) {
            Some(rank) => rank,
            None if this == "no" => {
                tokens.get(i + 1).and_then(|next| rank(&word(next))).unwrap_or(ranks[i - 1])
            }
            None => ranks[i - 1],
        };
    }
    let mut ordered: Vec<(usize, TokenWithSpan)> = ranks.into_iter().zip(tokens.iter().cloned()).collect();
    ordered.sort_by_key(|(rank, _)| *rank);
    for (slot, (_, token)) in tokens.iter_mut().zip(ordered) {
        *slot = token;
    }
}

/// Units of intervals that the parser knows only in the singular.
const UNITS: [(&str, &str); 6] = [
    ("decades", "DECADE"),
    ("centuries", "CENTURY"),
    ("millennia", "MILLENNIUM"),
    ("millenniums", "MILLENNIUM"),
    ("quarters", "QUARTER"),
    ("weeks", "WEEK"),
];

/// `INTERVAL 3 decades`: replaces the unit by the one that the parser knows; it would take it for an alias.
fn singular_units(tokens: &mut [TokenWithSpan]) {
    for i in 0..tokens.len() {
        if keyword(tokens.get(i)) != Keyword::INTERVAL {
            continue;
        }
        // The value: a literal, with or without a sign, or an expression in brackets.
        let mut end = i + 1;
        while matches!(tokens.get(end).map(|t| &t.token), Some(Token::Minus | Token::Plus)) {
            end += 1;
        }
        let mut level = 0usize;
        for token in tokens.get(end..).unwrap_or_default() {
            match token.token {
                Token::LParen => level += 1,
                Token::RParen => level = level.saturating_sub(1),
                _ => {}
            }
            end += 1;
            if level == 0 {
                break;
            }
        }
        if let Some(TokenWithSpan { token, .. }) = tokens.get_mut(end)
            && let Token::Word(word) = &*token
            && let Some((_, unit)) = UNITS
                .iter()
                .find(|(name, _)| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name))
        {
            *token = Token::make_keyword(unit);
        }
    }
}

/// Gives columns without types a placeholder type, as the parser requires one: `CREATE TABLE t (a, b) AS`.
fn type_bare_columns(tokens: &mut Vec<TokenWithSpan>) {
    let Some(open) = tokens.iter().position(|token| token.token == Token::LParen) else { return };
    // A call in the query is no list of columns: `CREATE TABLE t AS SELECT sum(x) AS s`.
    if tokens[..open].iter().any(|token| keyword(Some(token)) == Keyword::AS) {
        return;
    }
    let names = tokens[open + 1..].iter().enumerate().take_while(|(i, token)| match (i % 2, &token.token) {
        (0, Token::Word(_)) => true,
        (1, separator) => *separator == Token::Comma,
        _ => false,
    });
    let close = open + 1 + names.count();
    let is_list = (close - open).is_multiple_of(2)
        && tokens.get(close).is_some_and(|token| token.token == Token::RParen)
        && keyword(tokens.get(close + 1)) == Keyword::AS;
    if !is_list {
        return;
    }
    for i in (open + 1..close).rev().step_by(2) {
        let span = tokens[i].span;
        tokens.insert(i + 1, TokenWithSpan { token: Token::make_word(NO_TYPE, Some('"')), span });
    }
}

/// Refuses words after a column that the parser silently ignores.
fn refuse_swallowed(tokens: &[TokenWithSpan]) -> Result<()> {
    const SWALLOWED: [&str; 6] = ["AUTO_INCREMENT", "AUTOINCREMENT", "IDENTITY", "ASC", "DESC", "SRID"];
    // These may be followed by a name that is one of the words.
    const BEFORE_NAMES: [&str; 10] =
        ["AS", "TABLE", "COLUMN", "ADD", "ALTER", "DROP", "RENAME", "TO", "EXISTS", "CONSTRAINT"];
    let word = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        _ => String::new(),
    };
    let columns = match tokens.first().map(word).as_deref() {
        Some("CREATE") => 1,
        Some("ALTER") => 0,
        _ => return Ok(()),
    };
    if !tokens.iter().take(5).any(|token| word(token) == "TABLE") {
        return Ok(());
    }
    let mut level = 0usize;
    for pair in tokens.windows(2) {
        let [before, token] = pair else { continue };
        match before.token {
            Token::LParen => level += 1,
            Token::RParen => level = level.saturating_sub(1),
            _ => {}
        }
        let this = word(token);
        if level == 0 && this == "AS" {
            break;
        }
        let is_name =
            matches!(before.token, Token::LParen | Token::Comma) || BEFORE_NAMES.contains(&&*word(before));
        if level == columns && !is_name && SWALLOWED.contains(&&*this) {
            let error =
                Error::not_supported(format!("{this} of a column")).with_position(position(token.span.start));
            return Err(match this.as_str() {
                "ASC" | "DESC" | "SRID" => error,
                _ => error.with_hint("write GENERATED BY DEFAULT AS IDENTITY"),
            });
        }
    }
    Ok(())
}

/// `AS [NOT] MATERIALIZED (query)` in a `WITH` becomes `AS (WITH mark AS (SELECT 1) query)`; the mark says
/// which of the two it was, and the binder reads it.
fn mark_materialized(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: Option<&TokenWithSpan>, word| is_word(token, word);
    for i in (1..tokens.len()).rev() {
        let opens = tokens.get(i + 1).is_some_and(|next| next.token == Token::LParen);
        if !opens || !is(tokens.get(i), "materialized") {
            continue;
        }
        let (first, name) = if is(tokens.get(i - 1), "as") {
            (i, MATERIALIZED)
        } else if i >= 2 && is(tokens.get(i - 1), "not") && is(tokens.get(i - 2), "as") {
            (i - 1, NOT_MATERIALIZED)
        } else {
            continue;
        };
        let mark = [
            Token::make_word(name, Some('"')),
            Token::make_keyword("AS"),
            Token::LParen,
            Token::make_keyword("SELECT"),
            Token::Number("1".into(), false),
            Token::RParen,
        ];
        let has_with = is(tokens.get(i + 2), "with");
        let is_recursive = has_with && is(tokens.get(i + 3), "recursive");
        let (before, after) = match has_with {
            true => (None, Some(Token::Comma)),
            false => (Some(Token::make_keyword("WITH")), None),
        };
        let at = i + 2 + usize::from(has_with) + usize::from(is_recursive);
        let span = tokens[i].span;
        let made = before.into_iter().chain(mark).chain(after);
        tokens.splice(at..at, made.map(|token| TokenWithSpan { token, span }));
        tokens.drain(first..=i);
    }
}

/// Replaces words by those that the parser knows: `ABORT` by `ROLLBACK`; `DO NOTHING` in a `MERGE` by setting
/// or inserting a placeholder column.
fn other_words(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: Option<&TokenWithSpan>, word| is_word(token, word);
    if is(tokens.first(), "abort") {
        tokens[0].token = Token::make_keyword("ROLLBACK");
    }
    mark_materialized(tokens);
    if is(tokens.first(), "create") {
        if tokens.iter().take(4).any(|token| is(Some(token), "table")) {
            type_bare_columns(tokens);
        }
        if let Some(sequence) = tokens.iter().take(3).position(|token| is(Some(token), "sequence")) {
            order_sequence_options(tokens.get_mut(sequence + 1..).unwrap_or_default());
        }
        for i in 1..tokens.len() {
            if tokens[i].token == Token::LParen && is(tokens.get(i - 1), "identity") {
                let end = tokens[i..].iter().position(|token| token.token == Token::RParen);
                let end = end.map_or(tokens.len(), |length| i + length);
                order_sequence_options(&mut tokens[i..end]);
            }
        }
    }
    if !is(tokens.first(), "merge") {
        return;
    }
    for i in (2..tokens.len()).rev() {
        if !(is(tokens.get(i - 2), "then") && is(tokens.get(i - 1), "do") && is(tokens.get(i), "nothing")) {
            continue;
        }
        let when = tokens[..i].iter().rposition(|token| is(Some(token), "when")).unwrap_or(i);
        let inserts = is(tokens.get(when + 1), "not") && !is(tokens.get(when + 4), "source");
        let nothing = || Token::make_word(NOTHING, Some('"'));
        let made = match inserts {
            true => vec![
                Token::make_keyword("INSERT"),
                Token::LParen,
                nothing(),
                Token::RParen,
                Token::make_keyword("VALUES"),
                Token::LParen,
                Token::make_keyword("NULL"),
                Token::RParen,
            ],
            false => vec![
                Token::make_keyword("UPDATE"),
                Token::make_keyword("SET"),
                nothing(),
                Token::Eq,
                Token::make_keyword("NULL"),
            ],
        };
        let span = tokens[i - 1].span;
        tokens.splice(i - 1..=i, made.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// `FROM t WHERE …` without a `SELECT` selects all columns, which the parser needs to be written, wherever a
/// query may begin.
fn select_all_where_unsaid(tokens: &mut Vec<TokenWithSpan>) {
    for i in (0..tokens.len()).rev() {
        if keyword(tokens.get(i)) != Keyword::FROM || !brackets::begins_a_query(tokens, i) {
            continue;
        }
        let mut level = 0usize;
        let mut said = false;
        for token in &tokens[i..] {
            match token.token {
                Token::LParen => level += 1,
                Token::RParen if level == 0 => break,
                Token::RParen => level -= 1,
                _ if level > 0 => {}
                _ => match keyword(Some(token)) {
                    // Another query follows.
                    Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => break,
                    word => said |= word == Keyword::SELECT,
                },
            }
        }
        if !said {
            let span = tokens[i].span;
            let added = [Token::make_keyword("SELECT"), Token::Mul];
            tokens.splice(i..i, added.map(|token| TokenWithSpan { token, span }));
        }
    }
}

/// `FROM (DESCRIBE …)`: the parser allows only queries there, so the text becomes the argument of a function.
fn describe_in_from<'a>(tokens: &mut Vec<TokenWithSpan>, text: impl Fn(Span) -> &'a str) {
    let is = |token: Option<&TokenWithSpan>, words: &[&str]| match token.map(|token| &token.token) {
        Some(Token::Word(word)) => {
            word.quote_style.is_none() && words.iter().any(|w| word.value.eq_ignore_ascii_case(w))
        }
        Some(Token::Comma) => words.contains(&","),
        _ => false,
    };
    for open in (1..tokens.len()).rev() {
        let is_described = tokens[open].token == Token::LParen
            && is(tokens.get(open - 1), &["FROM", "JOIN", ","])
            && is(tokens.get(open + 1), &["DESCRIBE", "DESC"])
            && matches!(
                tokens.get(open + 2).map(|t| &t.token),
                Some(Token::Word(_) | Token::SingleQuotedString(_) | Token::LParen)
            );
        if !is_described {
            continue;
        }
        let mut level = 0usize;
        let close = tokens[open..].iter().position(|token| {
            match token.token {
                Token::LParen => level += 1,
                Token::RParen => level -= 1,
                _ => {}
            }
            level == 0
        });
        let Some(close) = close.map(|close| open + close) else { continue };
        let described = text(Span::new(tokens[open + 1].span.start, tokens[close - 1].span.end));
        let call = [
            Token::make_keyword("SELECT"),
            Token::Mul,
            Token::make_keyword("FROM"),
            Token::make_word(DESCRIBE, Some('"')),
            Token::LParen,
            Token::SingleQuotedString(described.to_string()),
            Token::RParen,
        ];
        let span = tokens[open + 1].span;
        tokens.splice(open + 1..close, call.map(|token| TokenWithSpan { token, span }));
    }
}
