//! Limits the nesting depth of statements, and provides enough stack for deep ones.
//!
//! Parser and binder are recursive, and so is the destruction of their trees. Before parsing, the tokens give
//! upper bounds on the depth of a statement:
//! - its brackets ([`MAX_NESTING`]);
//! - the operators in sequence at one level (`a + b + c …` is left-deep), which are as deep in an expression
//!   of the plan ([`MAX_CHAIN`]);
//! - the syntax tree, where AND, OR and set operations are left-deep, too; in a plan they are flat
//!   ([`MAX_DEPTH`]).
//!
//! Beyond them it is refused; deep statements run on a thread with a large stack ([`on_deep_stack`]), and so
//! does what is done aside (the module `aside`); all others run on the caller's.

use super::place::position;
use super::tokens::keyword;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result, statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::cell::Cell;
use std::io;
use std::thread::Builder;

/// Maximum nesting of brackets, `CASE`s and subqueries.
pub(super) const MAX_NESTING: usize = 200;
/// Maximum number of operators in sequence at one level, between those that are flat in a plan.
const MAX_CHAIN: usize = 2000;
/// Maximum number of operators of any kind, in sequence or around each other.
const MAX_DEPTH: usize = 50_000;
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
    let (nesting, depth) = depth(tokens)?;
    Ok(nesting > SHALLOW_NESTING || depth > SHALLOW_CHAIN)
}

/// Operators in sequence at one level of brackets. Set operations lean to the left, with joins below, which
/// do the same, as AND and OR do, with other operators below.
#[derive(Clone, Copy, Default)]
struct Sequence {
    sets: usize,
    /// Those that are not one with the ones before them in a plan.
    mixed: usize,
    /// The word behind the last UNION: what it does with duplicates and names.
    union: Option<Keyword>,
    /// Of the query.
    joins: usize,
    /// AND and OR of the expression.
    connectives: usize,
    /// Its other operators, since the last of these.
    chain: usize,
    longest: usize,
}

impl Sequence {
    /// Begins another query.
    fn next_query(&mut self) {
        self.sets += 1;
        *self = Self { sets: self.sets, mixed: self.mixed, union: self.union, ..Self::default() };
    }

    /// Begins another expression.
    fn next(&mut self) {
        (self.connectives, self.chain, self.longest) = (0, 0, 0);
    }

    fn push(&mut self) {
        self.chain += 1;
        self.longest = self.longest.max(self.chain);
    }

    /// Counts AND or OR.
    fn push_connective(&mut self) {
        self.connectives += 1;
        self.chain = 0;
    }

    /// Counts UNION, by the word behind it: those of a kind are flat in a plan.
    fn push_union(&mut self, word: Keyword) {
        self.mixed += usize::from(self.union.replace(word).is_some_and(|before| before != word));
        self.next_query();
    }

    /// Counts another set operation.
    fn push_set(&mut self) {
        self.mixed += 1;
        self.next_query();
    }

    fn depth(&self) -> usize {
        self.sets + self.joins + self.connectives + self.longest
    }
}

/// Upper bounds on the depth of the statement: brackets, and operators in sequence or around each other.
fn depth(tokens: &[TokenWithSpan]) -> Result<(usize, usize)> {
    // One for each open bracket; a comma at the same level begins a new one.
    let mut sequences = vec![Sequence::default()];
    // `around`: the depth of the levels around the last one.
    let (mut nesting, mut around, mut deepest, mut cases) = (0, 0, 0, 0usize);
    for (at, token) in tokens.iter().enumerate() {
        let too_deep = |what: &str, limit: usize| {
            Err(Error::resource(format!("the statement {what} (the limit is {limit})"))
                .with_sqlstate(sqlstate::TOO_COMPLEX)
                .with_position(position(token.span.start)))
        };
        let own = sequences.last_mut().expect("never empty");
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                around += own.depth();
                sequences.push(Sequence::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                sequences.pop();
                match sequences.last() {
                    Some(outer) => around -= outer.depth(),
                    None => sequences.push(Sequence::default()),
                }
            }
            Token::Comma => own.next(),
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::CASE => cases += 1,
                Keyword::END => cases = cases.saturating_sub(1),
                Keyword::AND | Keyword::OR => own.push_connective(),
                Keyword::UNION => own.push_union(keyword(tokens.get(at + 1))),
                Keyword::EXCEPT | Keyword::INTERSECT => own.push_set(),
                Keyword::JOIN => own.joins += 1,
                Keyword::NOT | Keyword::LIKE | Keyword::IS | Keyword::IN | Keyword::BETWEEN => own.push(),
                Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::HAVING => {}
                _ => continue,
            },
            Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Period => continue,
            _ => own.push(),
        }
        let own = sequences.last().expect("never empty");
        nesting = nesting.max(sequences.len() - 1 + cases);
        deepest = deepest.max(around + own.depth());
        if nesting > MAX_NESTING {
            return too_deep("is nested too deeply", MAX_NESTING);
        }
        if own.mixed + own.joins + own.chain > MAX_CHAIN {
            return too_deep("has too many operators in a row", MAX_CHAIN);
        }
        if deepest > MAX_DEPTH {
            return too_deep("has too many operators", MAX_DEPTH);
        }
    }
    Ok((nesting, deepest))
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
        let thread = Builder::new().name("deep statement".into()).stack_size(DEEP_STACK);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => {
                Err(Error::resource(format!("a deeply nested statement needs a thread of its own: {error}")))
            }
        }
    })
}

/// Runs `work` on a thread of this name that nobody waits for, with enough stack for a deep statement.
///
/// # Errors
/// I/O, if no thread can be started; `work` has been dropped then.
pub(super) fn detach(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let body = move || {
        IS_DEEP.set(true);
        work();
    };
    Builder::new().name(name.into()).stack_size(DEEP_STACK).spawn(body).map(drop)
}
