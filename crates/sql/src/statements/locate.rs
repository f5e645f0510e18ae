//! Finds positions for errors that mention a name but have no position.

use entasis_syntax::parsed::Ast;
use entasis_syntax::place::span_position;
use entasis_syntax::walk::Walk;
use entasis_vector::error::Position;
use entasis_vector::{Error, ErrorKind};
use sqlparser::ast::{Expr, Ident, ObjectName, Visitor};
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
        Ast::Sql(statement) | Ast::CreateOrReplace(statement) => statement.walk(&mut finder),
        Ast::Describe(query) | Ast::Summarize(query) | Ast::CopyTo { query, .. } => query.walk(&mut finder),
        Ast::Explain { statement, .. } => return locate(error, statement),
        Ast::CopyFrom { table, .. } => finder.pre_visit_relation(table),
        _ => ControlFlow::Continue(()),
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
