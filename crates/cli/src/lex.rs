//! A light lexer of SQL text: enough to colour it, and to find the end of statements and the word being
//! typed.
//!
//! It never fails. A string, quoted name or comment that is not closed is a token that extends to the end of
//! the text and is marked as open. For everything else the parser of the database is authoritative.

use std::ops::Range;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Blanks and line ends.
    Space,
    /// `-- …` to the end of the line, `/* … */` nested.
    Comment,
    /// A name or keyword without quotes.
    Word,
    /// A name in double quotes.
    Name,
    /// A string in single quotes or between dollar tags.
    Text,
    /// A number.
    Number,
    /// Any other character, alone.
    Symbol,
}

/// A token: its kind and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// True if its end is missing.
    pub open: bool,
}

impl Token {
    /// The token's text; `source` is the text that was lexed.
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        &source[self.range.clone()]
    }
    /// True for blanks and comments.
    pub fn is_blank(&self) -> bool {
        matches!(self.kind, Kind::Space | Kind::Comment)
    }
}

/// All tokens of `source`; their ranges cover it without gaps.
pub fn tokens(source: &str) -> Vec<Token> {
    tokens_from(source, 0).collect()
}

/// The tokens of `source` from a byte on at which one starts, each found when it is asked for.
pub fn tokens_from(source: &str, mut start: usize) -> impl Iterator<Item = Token> + '_ {
    std::iter::from_fn(move || {
        let rest = source.get(start..).filter(|rest| !rest.is_empty())?;
        let (kind, len, open) = first(rest);
        let range = start..start + len;
        start = range.end;
        Some(Token { kind, range, open })
    })
}

/// Whether a statement begins with one of some words.
pub fn begins_with(sql: &str, words: &[&str]) -> bool {
    let first = tokens_from(sql, 0).find(|token| !token.is_blank());
    first.is_some_and(|token| words.iter().any(|word| token.text(sql).eq_ignore_ascii_case(word)))
}

/// The first token of a text that is not empty: kind, length in bytes, whether it is not closed.
fn first(rest: &str) -> (Kind, usize, bool) {
    let c = rest.chars().next().expect("the text is not empty");
    match c {
        _ if c.is_whitespace() => (Kind::Space, run(rest, char::is_whitespace), false),
        '-' if rest.starts_with("--") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len()), false),
        '/' if rest.starts_with("/*") => block_comment(rest),
        '\'' => quoted(rest, '\'', Kind::Text),
        '"' => quoted(rest, '"', Kind::Name),
        '$' => dollar(rest),
        '0'..='9' => (Kind::Number, number(rest), false),
        '.' if rest[1..].starts_with(|d: char| d.is_ascii_digit()) => (Kind::Number, number(rest), false),
        _ if c.is_alphabetic() || c == '_' => {
            (Kind::Word, run(rest, |c| c.is_alphanumeric() || c == '_' || c == '$'), false)
        }
        _ => (Kind::Symbol, c.len_utf8(), false),
    }
}

fn run(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !belongs(c)).unwrap_or(rest.len())
}

fn number(rest: &str) -> usize {
    let mut last = ' ';
    rest.find(|c: char| {
        let exponent_sign = (c == '+' || c == '-') && (last == 'e' || last == 'E');
        last = c;
        !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || exponent_sign)
    })
    .unwrap_or(rest.len())
}

/// A doubled quote stands for a single one and does not end the token.
fn quoted(rest: &str, quote: char, kind: Kind) -> (Kind, usize, bool) {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote && chars.next_if(|&(_, next)| next == quote).is_none() {
            return (kind, at + 1, false);
        }
    }
    (kind, rest.len(), true)
}

/// `$tag$ … $tag$`, or a lone `$` as in the parameter `$1`.
fn dollar(rest: &str) -> (Kind, usize, bool) {
    let tag = 1 + run(&rest[1..], |c| c.is_alphanumeric() || c == '_');
    let is_tag = rest[tag..].starts_with('$') && !rest[1..].starts_with(|c: char| c.is_ascii_digit());
    if !is_tag {
        return (Kind::Symbol, 1, false);
    }
    let tag = &rest[..tag + 1];
    match rest[tag.len()..].find(tag) {
        Some(at) => (Kind::Text, at + 2 * tag.len(), false),
        None => (Kind::Text, rest.len(), true),
    }
}

fn block_comment(rest: &str) -> (Kind, usize, bool) {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return (Kind::Comment, at, false);
                }
            }
            _ => at += 1,
        }
    }
    (Kind::Comment, rest.len(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(Kind, &str)> {
        let tokens = tokens(source);
        assert_eq!(tokens.iter().map(|t| t.text(source)).collect::<String>(), source, "no gaps");
        tokens.iter().filter(|t| t.kind != Kind::Space).map(|t| (t.kind, t.text(source))).collect()
    }

    #[test]
    fn tokens_are_told_apart() {
        use Kind::*;
        assert_eq!(
            kinds("select 'it''s', \"A \"\"b\", 1.5e-3-x -- end;\n/* a /* b; */ c */ $1 $q$ ; $q$;"),
            [
                (Word, "select"),
                (Text, "'it''s'"),
                (Symbol, ","),
                (Name, "\"A \"\"b\""),
                (Symbol, ","),
                (Number, "1.5e-3"),
                (Symbol, "-"),
                (Word, "x"),
                (Comment, "-- end;"),
                (Comment, "/* a /* b; */ c */"),
                (Symbol, "$"),
                (Number, "1"),
                (Text, "$q$ ; $q$"),
                (Symbol, ";"),
            ]
        );
    }

    #[test]
    fn statements_are_known_by_their_first_word() {
        assert!(begins_with("-- why\n explain select 1", &["with", "explain"]));
        assert!(!begins_with("select 'explain'", &["explain"]) && !begins_with("-- nothing", &["nothing"]));
    }

    #[test]
    fn what_does_not_end_is_open() {
        for source in ["'a", "'a''", "\"a", "/* /* */", "$$ a $", "/*"] {
            let tokens = tokens(source);
            assert!(tokens.len() == 1 && tokens[0].open, "{source}");
        }
    }
}
