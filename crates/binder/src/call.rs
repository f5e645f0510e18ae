//! Calls of functions: which function, and with which types.
//!
//! | kind | where it is bound |
//! |---|---|
//! | `unnest`, `grouping`, sequences, names of the session | here |
//! | aggregates | [`crate::aggregate`] |
//! | window functions: whatever has an `OVER` | [`crate::window`] |
//! | functions that are expressions of the engine | [`crate::native`] |
//! | functions of time, which read the session | [`entasis_functions::TimeFunction`] |
//! | all others | their definitions in the catalog of functions, by [`choose`] |

use crate::aggregate::Arg;
use crate::binder::Binder;
use crate::bound::Bound;
use crate::operator::unified;
use entasis_functions::TimeFunction;
use entasis_functions::catalog::call::catalog_call;
use entasis_functions::catalog::signature::resolve;
use entasis_functions::catalog::{self, definition};
use entasis_functions::definition::{Body, Definition};
use entasis_functions::expressions::external::fold_external;
use entasis_functions::host::{HostCall, HostFunction};
use entasis_functions::time_functions;
use entasis_functions::types::{Given, Meeting, choose};
use entasis_functions::windows::is_window_function;
use entasis_syntax::clauses;
use entasis_syntax::sequence_call::{self, named_sequence};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::{Expr, ExternalFunction};
use entasis_vector::suggest::nearest;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Result, Value, Vector, name};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments, Ident};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Functions whose arguments are of one type.
const UNIFYING: [&str; 4] = ["greatest", "least", "list_pack", "list_value"];

/// The names of the session that are functions.
const OF_SESSION: [&str; 4] = ["current_catalog", "current_database", "current_schema", "current_user"];

/// The name of a function, in lower case; a schema before it says nothing.
pub(crate) fn name_of(function: &ast::Function) -> String {
    let own = function.name.0.last().and_then(|part| part.as_ident());
    own.map_or_else(|| function.name.to_string(), |ident| ident.value.clone()).to_ascii_lowercase()
}

impl<'a, 'q> Binder<'a, 'q> {
    /// A call as it is written.
    pub(crate) fn function(&mut self, function: &'q ast::Function) -> Result<Bound> {
        // `t.current_date`: the parser takes it for a function that has no parentheses.
        if matches!(function.args, FunctionArguments::None) && function.name.0.len() > 1 {
            let names = function.name.0.iter().filter_map(|part| part.as_ident().cloned());
            return self.qualified_name(&names.collect::<Vec<Ident>>());
        }
        let name = name_of(function);
        if function.over.is_some() {
            return self.window_call(&name, function);
        }
        if let Some(kind) = sequence_call::Kind::of(&name) {
            return self.sequence(kind, function);
        }
        match name.as_str() {
            "unnest" => return self.unnest(function),
            "grouping" | "grouping_id" => return self.grouping(&name, function),
            "struct_pack" => return self.struct_pack(function),
            name if OF_SESSION.contains(&name) && !has_arguments(function) => {
                let (database, schema) = self.catalog.current();
                return Ok(Bound::text(match name {
                    "current_schema" => &schema,
                    "current_user" => "entasis",
                    _ => &database,
                })
                .into(DataType::Varchar));
            }
            _ => {}
        }
        if self.is_aggregate(&name) {
            return self.aggregate_call(&name, function);
        }
        if is_window_function(&name) {
            let error = Error::input(format!("{name} is a window function, and needs OVER (…)"));
            return Err(error.with_sqlstate(sqlstate::SYNTAX));
        }
        let is_excused = self.excused.is_some_and(|excused| std::ptr::eq(excused, function));
        if !is_excused {
            clauses::function(function, |_| false)?;
        }
        let args = self.arguments(&name, function)?;
        self.call(&name, args)
    }

    /// The arguments of a call of a scalar function.
    fn arguments(&mut self, name: &str, function: &'q ast::Function) -> Result<Vec<Bound>> {
        let list = match &function.args {
            FunctionArguments::None => return Ok(Vec::new()),
            FunctionArguments::List(list) => list,
            FunctionArguments::Subquery(query) => return Ok(vec![self.scalar_subquery(query)?]),
        };
        let mut args = Vec::with_capacity(list.args.len());
        for arg in &list.args {
            args.push(match Arg::of(arg) {
                Some(arg) => self.argument_of(arg)?,
                None if matches!(arg, FunctionArg::Unnamed(_)) => {
                    let error = Error::input(format!("{name} does not take *"));
                    return Err(error.with_sqlstate(sqlstate::SYNTAX));
                }
                None => return Err(Error::not_supported(format!("arguments of {name} by name"))),
            });
        }
        Ok(args)
    }

    /// A call of a scalar function by its name, which is in lower case.
    ///
    /// # Errors
    /// Input, if there is no such function, or it does not take such arguments.
    pub(crate) fn call(&mut self, name: &str, args: Vec<Bound>) -> Result<Bound> {
        if crate::native::is_native(name) {
            return self.native(name, args);
        }
        if let Some(function) = time_function(name) {
            return self.time_call(function, args);
        }
        match definition(name) {
            Some(definition) if !matches!(definition.body, Body::Elsewhere) => {
                self.defined(name, definition, args)
            }
            _ => match self.catalog.host_function(name) {
                Some(function) => host_call(function, args),
                None => Err(unknown_function(name)),
            },
        }
    }

    fn time_call(&mut self, function: &TimeFunction, args: Vec<Bound>) -> Result<Bound> {
        let given: Vec<DataType> = args.iter().map(Bound::ty).collect();
        let (wanted, result) = *function.overload(&given)?;
        let args = args.into_iter().zip(wanted).map(|(arg, ty)| arg.cast(*ty)).collect();
        let (params, session) = (self.params, self.session);
        let call =
            function.call(args, result, session.zone, |reading| params.clock_reading(reading, &session));
        call.map(Bound::known)
    }

    /// A call of a function by its definition.
    fn defined(&mut self, name: &str, definition: &'static Definition, args: Vec<Bound>) -> Result<Bound> {
        let own = definition.names.iter().copied().find(|own| *own == name).unwrap_or(definition.names[0]);
        let args: Vec<Expr> = match definition.body {
            _ if UNIFYING.contains(&name) => {
                let what = if name == "list_value" { "a list" } else { name };
                unified(args, Meeting::Strict, what)?.0
            }
            Body::Overloads(overloads) => {
                let given: Vec<Given> = args.iter().map(|arg| arg.given).collect();
                let settled = |given: &Given| match given {
                    // What is written as a text is a time, where that decides.
                    Given::Text => Given::Known(DataType::Timestamp),
                    other => *other,
                };
                let ambiguous = |_| {
                    let types: Vec<String> = given.iter().map(Given::to_string).collect();
                    Error::input(format!("{name}({}) may be several functions", types.join(", ")))
                        .with_hint("cast an argument: CAST(value AS type)")
                };
                let chosen = choose(overloads, &given).or_else(|error| {
                    let given: Vec<Given> = given.iter().map(settled).collect();
                    choose(overloads, &given).map_err(|_| error)
                });
                let chosen = chosen.map_err(ambiguous)?.or_else(|| {
                    // Calendar functions of an instant are those of its local time.
                    let local = |given: &Given| match given {
                        Given::Known(DataType::TimestampTz) => Given::Known(DataType::Timestamp),
                        other => *other,
                    };
                    let given: Vec<Given> = given.iter().map(local).collect();
                    choose(overloads, &given).ok().flatten()
                });
                match chosen {
                    Some(chosen) => args.into_iter().zip(chosen.args).map(|(arg, ty)| arg.cast(ty)).collect(),
                    None => return Err(not_taken(name, definition, &args)),
                }
            }
            _ => {
                // A constant that is computed says nothing of the result's type.
                let types: Vec<DataType> = args.iter().map(Bound::ty).collect();
                let constants = args.iter().map(written).collect::<Vec<Option<Value>>>();
                let result = resolve(own, definition, &types, &constants)?.result;
                let args = args.into_iter().map(|arg| arg.expr).collect();
                return Ok(Bound::known(catalog_call(
                    own,
                    definition,
                    args,
                    Some(result),
                    self.session.zone,
                )?));
            }
        };
        Ok(Bound::known(catalog_call(own, definition, args, None, self.session.zone)?))
    }

    /// `struct_pack(x := a)`: a struct.
    fn struct_pack(&mut self, function: &'q ast::Function) -> Result<Bound> {
        let nameless = || Error::not_supported("struct_pack without names, as in struct_pack(a := 1)");
        let FunctionArguments::List(list) = &function.args else { return Err(nameless()) };
        let mut args = Vec::with_capacity(2 * list.args.len());
        for arg in &list.args {
            let (name, value) = match arg {
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
                | FunctionArg::ExprNamed {
                    name: ast::Expr::Identifier(name),
                    arg: FunctionArgExpr::Expr(value),
                    ..
                } => (name, value),
                _ => return Err(nameless()),
            };
            args.push(Bound::text(&name.value));
            args.push(self.expr(value)?);
        }
        if args.is_empty() { Err(nameless()) } else { self.call("named_struct", args) }
    }

    /// `nextval('s')`, `currval('s')`
    fn sequence(&mut self, kind: sequence_call::Kind, function: &'q ast::Function) -> Result<Bound> {
        let name = named_sequence(function)?;
        let Some(sequence) = self.catalog.sequence(&name) else {
            let what = if self.catalog.table(&name).is_some() { " but a table" } else { "" };
            return Err(Error::input(format!("there is no sequence {}{what}", name::shown(&name))));
        };
        let function = Arc::new(SequenceCall { kind, sequence });
        Ok(Bound::known(Expr::External { function, args: Vec::new(), ty: DataType::Int64 }))
    }
}

/// A call of a scalar function of the host program.
///
/// # Errors
/// Input, if it does not take such arguments.
fn host_call(function: HostFunction, args: Vec<Bound>) -> Result<Bound> {
    let given: Vec<Given> = args.iter().map(|arg| arg.given).collect();
    let types = function.types(&given)?;
    let args = args.into_iter().zip(&types).map(|(arg, ty)| arg.cast(*ty)).collect();
    let ty = function.result;
    fold_external(Arc::new(HostCall::new(function, types)), args, ty).map(Bound::known)
}

/// The next or the current value of a sequence, for each row.
#[derive(Debug)]
struct SequenceCall {
    kind: sequence_call::Kind,
    sequence: Arc<dyn crate::environment::Sequence>,
}

impl ExternalFunction for SequenceCall {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn is_volatile(&self) -> bool {
        true
    }

    fn evaluate(&self, _: &[Vector], rows: usize, out: &mut Vector) -> Result<()> {
        out.begin(rows.max(CHUNK_ROWS));
        for value in &mut out.values_mut::<i64>()[..rows] {
            *value = match self.kind {
                sequence_call::Kind::Next => self.sequence.next()?,
                sequence_call::Kind::Current => self.sequence.current()?,
            };
        }
        Ok(())
    }
}

/// The value of a literal as it is written.
fn written(arg: &Bound) -> Option<Value> {
    match (&arg.expr, arg.given) {
        (Expr::Literal { value, .. }, Given::Text | Given::Integer(_) | Given::Decimal { .. }) => {
            Some(value.clone())
        }
        _ => None,
    }
}

/// The function of time of this name.
fn time_function(name: &str) -> Option<&'static TimeFunction> {
    static BY_NAME: OnceLock<HashMap<&'static str, TimeFunction>> = OnceLock::new();
    let all = BY_NAME.get_or_init(|| time_functions().map(|function| (function.name(), function)).collect());
    all.get(name)
}

/// True if a call has arguments.
fn has_arguments(function: &ast::Function) -> bool {
    matches!(&function.args, FunctionArguments::List(list) if !list.args.is_empty())
}

/// The error for arguments that a function does not take.
fn not_taken(name: &str, definition: &Definition, args: &[Bound]) -> Error {
    let types: Vec<String> = args.iter().map(|arg| arg.given.to_string()).collect();
    Error::input(format!("{name} does not take ({})", types.join(", ")))
        .with_sqlstate(sqlstate::NO_FUNCTION)
        .with_hint(format!("it is {name}({})", definition.arguments))
}

/// The error for a function that does not exist.
pub(crate) fn unknown_function(name: &str) -> Error {
    // Functions of lists that others have and we do not, yet.
    if name.starts_with("list_") || name.starts_with("array_") {
        return Error::not_supported(format!("the function {name}"));
    }
    let error = Error::input(format!("there is no function {name}")).with_sqlstate(sqlstate::NO_FUNCTION);
    let entries = catalog::entries();
    let names = entries.iter().flat_map(|entry| entry.names.iter().copied());
    match nearest(name, names) {
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::is_aggregate;
    use crate::native::is_native;

    /// Functions that [`Binder::function`] names itself.
    const NAMED: [&str; 4] = ["grouping", "grouping_id", "struct_pack", "unnest"];

    #[test]
    fn every_function_of_the_catalog_is_bound() {
        for entry in catalog::entries() {
            for name in entry.names {
                let body = &definition(name).expect("the entry has it").body;
                let is_bound = NAMED.contains(name)
                    || sequence_call::NAMES.contains(name)
                    || is_aggregate(name)
                    || is_window_function(name)
                    || is_native(name)
                    || time_function(name).is_some()
                    || OF_SESSION.contains(name)
                    || !matches!(body, Body::Elsewhere);
                assert!(is_bound, "nothing binds {name}");
            }
        }
    }
}
