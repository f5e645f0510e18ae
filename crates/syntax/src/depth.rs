//! Limits the nesting depth of statements, and provides enough stack for deep ones.
//!
//! Parser and binder are recursive, and so is the destruction of their trees. Before parsing, the tokens give
//! an upper bound on the depth of a statement: by its brackets, and by the operators in sequence at one level
//! (`a + b + c …` is left-deep). Beyond [`MAX_NESTING`] and [`MAX_CHAIN`] it is refused; deep statements run
//! on a thread with a large stack ([`on_deep_stack`]), all others on the caller's.

use super::place::position;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result, statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::cell::Cell;

/// Maximum nesting of brackets, `CASE`s and subqueries.
pub(super) const MAX_NESTING: usize = 200;
/// Maximum number of operators in sequence at one level.
const MAX_CHAIN: usize = 2000;
/// Nesting up to which the caller's stack is enough, even the 2 MB of a test's thread. Without optimization,
/// frames are several times as large.
const SHALLOW_NESTING: usize = if cfg!(debug_assertions) { 3 } else { 12 };
/// Operators in sequence up to which the same holds.
const SHALLOW_CHAIN: usize = if cfg!(debug_assertions) { 8 } else { 40 };
/// Address space; only what is used becomes memory.
const DEEP_STACK: usize = 512 << 20;

/// True if a statement of these tokens needs a large stack.
///
/// # Errors
/// Resource, if it is too deep even for that.
pub(super) fn is_deep(tokens: &[TokenWithSpan]) -> Result<bool> {
    let (nesting, chain) = depth(tokens)?;
    Ok(nesting > SHALLOW_NESTING || chain > SHALLOW_CHAIN)
}

/// Upper bounds on the depth of the statement: brackets, and operators in sequence.
fn depth(tokens: &[TokenWithSpan]) -> Result<(usize, usize)> {
    // One counter of operators for each open bracket; a comma at the same level begins a new chain.
    let mut chains = vec![0usize];
    let (mut nesting, mut longest, mut cases) = (0, 0, 0usize);
    for token in tokens {
        let too_deep = |what: &str, limit: usize| {
            Err(Error::resource(format!("the statement {what} (the limit is {limit})"))
                .with_sqlstate(sqlstate::TOO_COMPLEX)
                .with_position(position(token.span.start)))
        };
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => chains.push(0),
            Token::RParen | Token::RBracket | Token::RBrace => {
                chains.pop();
                if chains.is_empty() {
                    chains.push(0);
                }
            }
            Token::Comma => *chains.last_mut().expect("never empty") = 0,
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::CASE => cases += 1,
                Keyword::END => cases = cases.saturating_sub(1),
                Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::JOIN
                | Keyword::LIKE
                | Keyword::IS
                | Keyword::IN
                | Keyword::BETWEEN => {
                    *chains.last_mut().expect("never empty") += 1;
                }
                Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::HAVING => {}
                _ => continue,
            },
            Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Period => continue,
            _ => *chains.last_mut().expect("never empty") += 1,
        }
        longest = longest.max(*chains.last().expect("never empty"));
        nesting = nesting.max(chains.len() - 1 + cases);
        if nesting > MAX_NESTING {
            return too_deep("is nested too deeply", MAX_NESTING);
        }
        if longest > MAX_CHAIN {
            return too_deep("has too many operators in a row", MAX_CHAIN);
        }
    }
    Ok((nesting, longest))
}

thread_local! {
    /// True on a thread with a large stack.
    static IS_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// True if this thread has the stack for a deep statement.
pub fn is_on_deep_stack() -> bool {
    IS_DEEP.get()
}

/// The error of a statement that turns out to be deep on a thread that has not the stack for it: it is to be
/// run again, on one that has.
pub fn needs_deep_stack() -> Error {
    Error::resource("the statement needs a larger stack").with_sqlstate(sqlstate::NEEDS_STACK)
}

/// Runs `f` with enough stack for a deep statement; if it is not deep, on this thread.
///
/// # Errors
/// Those of `f`; resource, if no thread can be started.
pub fn on_deep_stack<T: Send>(deep: bool, f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if !deep || is_on_deep_stack() {
        return f();
    }
    let current = statement::current();
    let work = move || {
        IS_DEEP.set(true);
        match current {
            Some(statement) => statement::within(statement, f),
            None => f(),
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("deep statement".into()).stack_size(DEEP_STACK);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => {
                Err(Error::resource(format!("a deeply nested statement needs a thread of its own: {error}")))
            }
        }
    })
}
