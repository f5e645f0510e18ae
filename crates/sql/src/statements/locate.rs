//! Finds positions for errors that have none: of names that they mention, and of constants that could not be
//! cast.

use super::bound::Statement as Bound;
use super::zone::plans;
use entasis_syntax::parsed::{Ast, Parsed};
use entasis_syntax::place::span_position;
use entasis_syntax::walk::Walk;
use entasis_vector::error::Position;
use entasis_vector::expr::{self, evaluate_constant};
use entasis_vector::{Error, ErrorKind, Value};
use sqlparser::ast::{Expr, Ident, ObjectName, SetExpr, Statement, ValueWithSpan, Visitor};
use std::ops::ControlFlow;

/// An error that mentions a name but has no position, with the first position of that name in the statement.
pub(super) fn locate(error: Error, ast: &Ast) -> Error {
    if error.position().is_some() || error.kind() != ErrorKind::Input {
        return error;
    }
    let message = error.message();
    let named = ["there is no table ", "there is no column ", "there are two columns named ", "the column "];
    let name = named.iter().find_map(|prefix| message.split(prefix).nth(1)).map(|rest| {
        let word = rest.split([' ', ',', ':']).next().unwrap_or(rest);
        word.rsplit('.').next().unwrap_or(word).to_ascii_lowercase()
    });
    let Some(name) = name else { return error };
    let mut finder = Finder { name };
    let place = match ast {
        Ast::CopyFrom { table, .. } => finder.pre_visit_relation(table),
        ast => within(ast, &mut finder),
    };
    match place {
        ControlFlow::Break((position, is_quoted)) => {
            let is_column = error.message().contains("there is no column ");
            let error = error.with_position(position);
            // Other systems read it as a text if there is no such column.
            match is_quoted && is_column && error.hint().is_none() {
                true => error.with_hint("a text is written in single quotes; double quotes are for names"),
                false => error,
            }
        }
        ControlFlow::Continue(()) => error,
    }
}

/// An error of a statement that ran, with the position of the constant that could not be cast, if it was one.
///
/// Casts of constants fail only if and when a row asks for them, and expressions have no positions. So the
/// statement is bound once more: a cast of a constant that fails in the same way is the culprit.
pub fn locate_constant(error: Error, parsed: &Parsed, bound: &mut Bound) -> Error {
    let mut constant = None;
    for plan in plans(bound) {
        plan.for_each_expr(&mut |whole| {
            whole.visit(&mut |part| {
                if constant.is_none()
                    && let expr::Expr::Cast { input, .. } = part
                    && let expr::Expr::Literal { value, ty } = &**input
                    && evaluate_constant(part).is_err_and(|own| error.message().ends_with(own.message()))
                {
                    constant = Some(match value {
                        Value::Text(text) => text.to_string(),
                        value => value.display(*ty).to_string(),
                    });
                }
            });
        });
    }
    match constant {
        Some(text) => at_constant(error, parsed, text),
        // Rows of constants are columns before they are cast.
        None if inserts_constants(&parsed.ast) => locate_named_constant(error, parsed),
        None => error,
    }
}

/// True for `INSERT … VALUES` and `INSERT … SELECT` of constants.
fn inserts_constants(ast: &Ast) -> bool {
    let Ast::Sql(statement) = ast else { return false };
    let Statement::Insert(insert) = &**statement else { return false };
    insert.source.as_ref().is_some_and(|source| match &*source.body {
        SetExpr::Values(_) => true,
        SetExpr::Select(select) => select.from.is_empty(),
        _ => false,
    })
}

/// The same for an error of binding, whose message has the constant: in quotes, or as `value 300`.
pub fn locate_named_constant(error: Error, parsed: &Parsed) -> Error {
    let quoted = error.message().split_once('\'').and_then(|(_, rest)| rest.rsplit_once('\''));
    let number = || error.message().strip_prefix("value ").and_then(|rest| rest.split_once(' '));
    match quoted.or_else(number).map(|(text, _)| text.to_owned()) {
        Some(text) => at_constant(error, parsed, text),
        None => error,
    }
}

/// The error with the position of a constant, if the statement has it once.
fn at_constant(error: Error, parsed: &Parsed, text: String) -> Error {
    let mut constant = Constant { text, place: None };
    let is_twice = within(&parsed.ast, &mut constant).is_break();
    match constant.place.filter(|place| !is_twice && place.line > 0) {
        Some(place) => error.with_position(place),
        None => error,
    }
}

/// Shows the part of a statement that has expressions to a visitor.
fn within<B>(ast: &Ast, visitor: &mut dyn Visitor<Break = B>) -> ControlFlow<B> {
    match ast {
        Ast::Sql(statement) | Ast::CreateOrReplace(statement) => statement.walk(visitor),
        Ast::Describe(query) | Ast::Summarize(query) | Ast::CopyTo { query, .. } => query.walk(visitor),
        Ast::Explain { statement, .. } => within(statement, visitor),
        _ => ControlFlow::Continue(()),
    }
}

/// Searches for a constant, as it is written without its quotes, and where it is. Expressions do not say
/// which one they are of, so it looks whether there are several.
struct Constant {
    text: String,
    place: Option<Position>,
}

impl Visitor for Constant {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        use sqlparser::ast::Value::{Number, SingleQuotedString};
        let (SingleQuotedString(text) | Number(text, _)) = &value.value else {
            return ControlFlow::Continue(());
        };
        if *text != self.text {
            return ControlFlow::Continue(());
        }
        match self.place.replace(span_position(value.span).unwrap_or(Position { line: 0, column: 0 })) {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Searches for an identifier.
struct Finder {
    name: String,
}

impl Finder {
    /// Where the name is, and whether it is in double quotes.
    fn check(&self, ident: &Ident) -> ControlFlow<(Position, bool)> {
        match span_position(ident.span) {
            Some(position) if ident.value.eq_ignore_ascii_case(&self.name) => {
                ControlFlow::Break((position, ident.quote_style == Some('"')))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Finder {
    type Break = (Position, bool);

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<(Position, bool)> {
        name.0.iter().filter_map(|part| part.as_ident()).try_for_each(|ident| self.check(ident))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<(Position, bool)> {
        match expr {
            Expr::Identifier(ident) => self.check(ident),
            Expr::CompoundIdentifier(idents) => {
                idents.last().map_or(ControlFlow::Continue(()), |i| self.check(i))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
