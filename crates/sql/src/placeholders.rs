//! The places for parameters in the text of a statement, and lists in them.
//!
//! A place is written `?`, `$1`, or with a name, `$name` or `:name`, in one way throughout a script; all
//! become `$n`, counted from 1 ([`Places`]). A name is one parameter wherever it occurs, in all statements of
//! a script; case does not matter.
//!
//! **Lists.** A parameter may be a list where its values are compared with one: `x IN ?`, `x IN (?)`,
//! `x = ANY(?)`, `x > ALL(?)`. There is no type for lists, so a statement that is given some is made into one
//! with a place for each of their values ([`Parsed::with_lists`]).

use crate::change::query_of;
use crate::parse::{Ast, Parsed, position};
use crate::walk::WalkMut;
use crate::words::keyword;
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Parens, SetExpr, Value, ValueWithSpan, Values, VisitorMut,
};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use std::ops::{ControlFlow, Range};

/// Refuses a number of values that is not the number of parameters.
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

// ---- numbers and names ------------------------------------------------------------------------------------

/// How the places of a script are written.
#[derive(Clone, Copy, PartialEq)]
enum Writing {
    Marks,
    Numbers,
    Names,
}

/// The places that a script has so far.
#[derive(Default)]
pub(crate) struct Places {
    writing: Option<Writing>,
    /// In lower case; the first is number 1.
    names: Vec<String>,
}

impl Places {
    /// Numbers the places of one more statement. Returns the highest number in it.
    ///
    /// # Errors
    /// Input, if places are written in several ways.
    pub(crate) fn number(&mut self, tokens: &mut Vec<TokenWithSpan>) -> Result<usize> {
        join_colons(tokens);
        let (mut marks, mut highest) = (0, 0);
        for token in tokens.iter_mut() {
            let at = token.span.start;
            let Token::Placeholder(written) = &mut token.token else { continue };
            let rest = written.get(1..).unwrap_or_default();
            let (writing, number) = match rest.parse::<usize>() {
                _ if rest.is_empty() => {
                    marks += 1;
                    (Writing::Marks, marks)
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

    /// The names of the parameters so far, in lower case and in order; none, if they have numbers.
    pub(crate) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn number_of(&mut self, name: &str) -> usize {
        let name = name.to_lowercase();
        let known = self.names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        }) + 1
    }
}

/// `:name` is a place, if the colon stands at the name and is not within something (`a[x:y]`, `{'a':b}`).
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

/// `x IN $1` is `x = ANY ($1)`, and `x NOT IN $1` is `x <> ALL ($1)`: the parser wants brackets.
/// `position(x IN $1)` stays.
fn lists_after_in(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: Option<&TokenWithSpan>, word| keyword(token) == Some(word);
    // Of each open bracket, whether it is that of a call in which IN separates arguments.
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

// ---- lists ------------------------------------------------------------------------------------------------

impl Parsed {
    /// The same statement for parameters of which some are lists: of so many values each; `None` stands for
    /// one value. It takes all of these values in their order.
    ///
    /// # Errors
    /// Input, if a list stands where only one value can, or the number of parameters is another one.
    pub fn with_lists(&self, lengths: &[Option<usize>]) -> Result<Parsed> {
        let mut next = 1;
        let places: Vec<Range<usize>> = lengths
            .iter()
            .map(|length| {
                let first = next;
                next += length.unwrap_or(1);
                first..next
            })
            .collect();
        let mut statement = self.clone();
        let mut spread = Spread { lengths, places };
        if let ControlFlow::Break(error) = visit(&mut statement.ast, &mut spread) {
            return Err(error);
        }
        if let ControlFlow::Break(error) = visit(&mut statement.ast, &mut NoList) {
            return Err(error);
        }
        statement.parameters = next - 1;
        statement.names.clear();
        Ok(statement)
    }
}

fn visit<V: VisitorMut<Break = Error>>(ast: &mut Ast, visitor: &mut V) -> ControlFlow<Error> {
    match ast {
        Ast::Sql(statement) => statement.walk_mut(visitor),
        Ast::Explain { statement, .. } => visit(statement, visitor),
        Ast::Describe(query) | Ast::Summarize(query) | Ast::CopyTo { query, .. } => query.walk_mut(visitor),
        _ => ControlFlow::Continue(()),
    }
}

/// Before the number of a place that is a list, until that is where it may stand.
const LIST: &str = "\u{1}list ";

/// Numbers places anew, and puts a place for each value where a list stands.
struct Spread<'a> {
    lengths: &'a [Option<usize>],
    /// By parameter.
    places: Vec<Range<usize>>,
}

impl Spread<'_> {
    /// The places of a list's values, if `expr` is a list.
    fn list(&self, expr: &Expr) -> Option<Vec<Expr>> {
        let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), span }) = expr else { return None };
        let index: usize = name.strip_prefix(LIST)?.parse().ok()?;
        let place = |number| {
            Expr::Value(ValueWithSpan { value: Value::Placeholder(format!("${number}")), span: *span })
        };
        Some(self.places.get(index)?.clone().map(place).collect())
    }
}

impl VisitorMut for Spread<'_> {
    type Break = Error;

    fn post_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        if let Value::Placeholder(name) = &mut value.value
            && let Some(index) =
                name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok()).and_then(|n| n.checked_sub(1))
        {
            match (self.lengths.get(index), self.places.get(index)) {
                (Some(Some(_)), _) => *name = format!("{LIST}{index}"),
                (Some(None), Some(place)) => *name = format!("${}", place.start),
                _ => return ControlFlow::Break(Error::input(format!("the parameter {name} has no value"))),
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let taken = |expr: &mut Expr| Box::new(std::mem::replace(expr, boolean(false)));
        match expr {
            Expr::InList { list, .. } => {
                let spread =
                    std::mem::take(list).into_iter().flat_map(|item| self.list(&item).unwrap_or(vec![item]));
                *list = spread.collect();
                // Nothing is in an empty list.
                if let Expr::InList { list, negated, .. } = expr
                    && list.is_empty()
                {
                    *expr = boolean(*negated);
                }
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                let Some(list) = self.list(right) else { return ControlFlow::Continue(()) };
                match compare_op {
                    _ if list.is_empty() => *expr = boolean(false),
                    BinaryOperator::Eq => *expr = Expr::InList { expr: taken(left), list, negated: false },
                    _ => **right = rows(list),
                }
            }
            Expr::AllOp { left, compare_op, right } => {
                let Some(list) = self.list(right) else { return ControlFlow::Continue(()) };
                match compare_op {
                    _ if list.is_empty() => *expr = boolean(true),
                    BinaryOperator::NotEq => *expr = Expr::InList { expr: taken(left), list, negated: true },
                    _ => **right = rows(list),
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Refuses the lists that are left.
struct NoList;

impl VisitorMut for NoList {
    type Break = Error;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        match &value.value {
            Value::Placeholder(name) if name.starts_with(LIST) => {
                let error = Error::input("a parameter that is a list stands after IN, or in ANY or ALL");
                ControlFlow::Break(error.with_position(position(value.span.start)))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn boolean(value: bool) -> Expr {
    Expr::Value(Value::Boolean(value).into())
}

/// `(VALUES (a), (b), …)`
fn rows(values: Vec<Expr>) -> Expr {
    let row = |value| Parens::with_empty_span(vec![value]);
    let values =
        Values { explicit_row: false, value_keyword: false, rows: values.into_iter().map(row).collect() };
    Expr::Subquery(Box::new(query_of(SetExpr::Values(values))))
}

#[cfg(test)]
mod tests {
    use crate::parse::{Parsed, parse};

    fn parsed(sql: &str) -> Parsed {
        parse(sql).unwrap().pop().unwrap()
    }

    #[test]
    fn places_are_numbered() {
        for (sql, parameters, names) in [
            ("SELECT ?, ?", 2, Vec::<&str>::new()),
            ("SELECT $2 - $1 - $2", 2, vec![]),
            ("SELECT $b - $a - :B", 2, vec!["b", "a"]),
            ("SELECT $b; SELECT $a", 2, vec!["b", "a"]),
            ("SELECT ?; SELECT ?", 1, vec![]),
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

    #[test]
    fn lists_become_a_place_for_each_value() {
        let list = Some(2);
        for (sql, lengths, expected) in [
            ("SELECT 1 IN ?, ?", [list, None], "SELECT 1 IN ($1, $2), $3"),
            ("SELECT ?, 1 NOT IN ?", [None, list], "SELECT $1, 1 NOT IN ($2, $3)"),
            ("SELECT 1 IN (?, 7), 2 = ANY(?)", [list, list], "SELECT 1 IN ($1, $2, 7), 2 IN ($3, $4)"),
            ("SELECT 1 < ALL(?), ?", [list, None], "SELECT 1 < ALL(VALUES ($1), ($2)), $3"),
            ("SELECT 1 < ALL(?), ?", [Some(0), None], "SELECT true, $1"),
            ("SELECT 1 IN ?, 1 NOT IN ?", [Some(0), Some(0)], "SELECT false, true"),
            ("SELECT position('a' IN ?), ?", [None, None], "SELECT POSITION('a' IN $1), $2"),
        ] {
            let spread = parsed(sql).with_lists(&lengths).unwrap();
            match &spread.ast {
                crate::parse::Ast::Sql(statement) => assert_eq!(statement.to_string(), expected, "{sql}"),
                other => panic!("{other:?}"),
            }
            let given: usize = lengths.iter().map(|length| length.unwrap_or(1)).sum();
            assert_eq!(spread.parameters(), given, "{sql}");
        }
        assert!(parsed("SELECT 1 + ?").with_lists(&[list]).is_err());
        assert!(parsed("SELECT 1 IN ?").with_lists(&[]).is_err());
    }
}
