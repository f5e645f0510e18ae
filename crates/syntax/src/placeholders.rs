//! Placeholders: the parameters in the text of a statement.
//!
//! A placeholder is written `?`, `$1`, or with a name, `$name` or `:name`, in the same way throughout a
//! script; all are converted to `$n`, counted from 1 ([`Places`]). Each `?` is a parameter of its own, also
//! in different statements of a script. A number or a name is one parameter wherever it occurs, in all
//! statements of a script; the case of a name does not matter. For list parameters, see
//! [`super::lists`].

use super::place::position;
use super::tokens::keyword;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Refuses a number of values that differs from the number of parameters.
///
/// # Errors
/// Input.
pub fn check_arguments(parameters: usize, values: usize) -> Result<()> {
    if parameters == values {
        return Ok(());
    }
    let (takes, s) = (parameters, if parameters == 1 { "" } else { "s" });
    let text = match values {
        1 => format!("the statement has {takes} parameter{s}, but 1 value was given"),
        _ => format!("the statement has {takes} parameter{s}, but {values} values were given"),
    };
    Err(Error::input(text).with_sqlstate(sqlstate::PARAMETERS))
}

/// The way in which the placeholders of a script are written.
#[derive(Clone, Copy, PartialEq)]
enum Writing {
    Marks,
    Numbers,
    Names,
}

/// The placeholders of a script so far.
#[derive(Default)]
pub struct Places {
    writing: Option<Writing>,
    /// Number of `?` so far.
    marks: usize,
    /// Names in lower case; the first is number 1.
    names: Vec<String>,
}

impl Places {
    /// Numbers the placeholders of another statement. Returns the highest number in it, which is 0 if it has
    /// none.
    ///
    /// # Errors
    /// Input, if placeholders are written in several ways.
    pub fn number(&mut self, tokens: &mut Vec<TokenWithSpan>) -> Result<usize> {
        join_colons(tokens);
        let mut highest = 0;
        for token in tokens.iter_mut() {
            let at = token.span.start;
            let Token::Placeholder(written) = &mut token.token else { continue };
            let rest = written.get(1..).unwrap_or_default();
            let (writing, number) = match rest.parse::<usize>() {
                _ if rest.is_empty() => {
                    self.marks += 1;
                    (Writing::Marks, self.marks)
                }
                Ok(0) => {
                    return Err(Error::input("parameters are counted from 1").with_position(position(at)));
                }
                Ok(number) => (Writing::Numbers, number),
                Err(_) => (Writing::Names, self.number_of(rest)),
            };
            if *self.writing.get_or_insert(writing) != writing {
                let text = "a script writes its parameters in one way: ?, or $1, or $name";
                return Err(Error::input(text).with_sqlstate(sqlstate::SYNTAX).with_position(position(at)));
            }
            *written = format!("${number}");
            highest = highest.max(number);
        }
        lists_after_in(tokens);
        Ok(highest)
    }

    /// The names of the parameters so far, in lower case and in order; empty if they have numbers.
    pub fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn number_of(&mut self, name: &str) -> usize {
        let name = name.to_ascii_lowercase();
        let known = self.names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        }) + 1
    }
}

/// `:name` is a placeholder, if the colon directly precedes the name and is not part of a slice or struct
/// (`a[x:y]`, `{'a':b}`).
fn join_colons(tokens: &mut Vec<TokenWithSpan>) {
    for i in (0..tokens.len()).rev() {
        let Some(Token::Word(word)) = tokens.get(i + 1).map(|next| &next.token) else { continue };
        let ends_operand = |token: &Token| {
            matches!(
                token,
                Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_)
            ) || matches!(token, Token::RParen | Token::RBracket | Token::RBrace)
        };
        let within = i
            .checked_sub(1)
            .map(|before| &tokens[before])
            .is_some_and(|before| before.span.end == tokens[i].span.start && ends_operand(&before.token));
        let is_place = tokens[i].token == Token::Colon
            && word.quote_style.is_none()
            && tokens[i].span.end == tokens[i + 1].span.start
            && !within;
        if is_place {
            tokens[i].token = Token::Placeholder(format!("${}", word.value));
            tokens[i].span.end = tokens[i + 1].span.end;
            tokens.remove(i + 1);
        }
    }
}

/// `x IN $1` becomes `x = ANY ($1)`, and `x NOT IN $1` becomes `x <> ALL ($1)`: the parser requires brackets.
/// `position(x IN $1)` is not changed.
fn lists_after_in(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: Option<&TokenWithSpan>, word| keyword(token) == word;
    // For each open bracket, whether it belongs to a call in which IN separates arguments.
    let mut brackets = vec![false];
    let mut found = Vec::new();
    for i in 0..tokens.len() {
        match &tokens[i].token {
            Token::LParen => {
                let before = i.checked_sub(1).and_then(|before| tokens.get(before));
                brackets.push(is(before, Keyword::POSITION));
            }
            Token::RParen if brackets.len() > 1 => drop(brackets.pop()),
            Token::Placeholder(_)
                if brackets.last() == Some(&false) && i > 0 && is(tokens.get(i - 1), Keyword::IN) =>
            {
                found.push(i);
            }
            _ => {}
        }
    }
    for i in found.into_iter().rev() {
        let negated = i > 1 && is(tokens.get(i - 2), Keyword::NOT);
        let (operator, quantifier) = if negated { (Token::Neq, "ALL") } else { (Token::Eq, "ANY") };
        let first = if negated { i - 2 } else { i - 1 };
        let (span, place) = (tokens[i].span, tokens[i].token.clone());
        let made = [operator, Token::make_keyword(quantifier), Token::LParen, place, Token::RParen];
        tokens.splice(first..=i, made.map(|token| TokenWithSpan { token, span }));
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    #[test]
    fn places_are_numbered() {
        for (sql, parameters, names) in [
            ("SELECT ?, ?", 2, Vec::<&str>::new()),
            ("SELECT $2 - $1 - $2", 2, vec![]),
            ("SELECT $b - $a - :B", 2, vec!["b", "a"]),
            ("SELECT $b; SELECT $a", 2, vec!["b", "a"]),
            ("SELECT ?; SELECT ?", 2, vec![]),
            ("SELECT ?, ?; SELECT 1", 0, vec![]),
            ("SELECT ?, ?; SELECT 1; SELECT ?", 3, vec![]),
            ("SELECT 'a:b', x::INTEGER, \":c\" FROM t", 0, vec![]),
            ("SELECT a[x:y], {'a':b} FROM t", 0, vec![]),
            ("SELECT x=:x, (:y)", 2, vec!["x", "y"]),
        ] {
            let Ok(mut statements) = parse(sql) else { panic!("{sql}") };
            let last = statements.pop().unwrap();
            assert_eq!(last.parameters(), parameters, "{sql}");
            assert_eq!(last.parameter_names(), names, "{sql}");
        }
        assert!(parse("SELECT ?, $1").is_err());
        assert!(parse("SELECT $a; SELECT ?").is_err());
        assert!(parse("SELECT $0").is_err());
    }
}
