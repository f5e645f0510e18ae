//! Calls of the functions of sequences, `nextval('s')` and `currval('s')`: which function, and which
//! sequence.

use super::object_name::in_schema;
use entasis_vector::{Error, Result, name};
use sqlparser::ast;

/// The function of a sequence that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `nextval`
    Next,
    /// `currval`
    Current,
}

impl Kind {
    /// The kind of the function `name`, in lower case.
    pub fn of(name: &str) -> Option<Kind> {
        match name {
            "nextval" => Some(Kind::Next),
            "currval" => Some(Kind::Current),
            _ => None,
        }
    }

    /// The function, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Next => "nextval",
            Kind::Current => "currval",
        }
    }
}

/// The names of the functions.
pub const NAMES: [&str; 2] = ["currval", "nextval"];

/// The sequence in a call, which is given as a text, in lower case.
///
/// # Errors
/// Input, if it is missing; not supported, if the name is computed.
pub fn named_sequence(function: &ast::Function) -> Result<String> {
    let ast::FunctionArguments::List(list) = &function.args else {
        return Err(Error::input(format!("{} needs the name of a sequence", function.name)));
    };
    let name = match list.args.as_slice() {
        [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value)))] => {
            match &value.value {
                ast::Value::SingleQuotedString(name) => name,
                _ => return Err(Error::input(format!("{value} is not the name of a sequence"))),
            }
        }
        [_] => {
            return Err(Error::not_supported(format!(
                "{} of a sequence whose name is computed",
                function.name
            )));
        }
        args => return Err(Error::input(format!("{} takes 1 argument, not {}", function.name, args.len()))),
    };
    match name::parts(name).as_slice() {
        [own] => Ok(name::joined(name::MAIN, own)),
        [schema, own] => Ok(in_schema(schema, own)),
        [database, schema, own] => Ok(name::in_database(database, &in_schema(schema, own))),
        _ => Err(Error::input(format!("'{name}' is not the name of a sequence"))),
    }
}
