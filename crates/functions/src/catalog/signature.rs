//! The signature of a call: of several overloads the nearest one, else what the definition says for these
//! types.

use crate::definition::{Body, Definition, Overload, Signature};
use crate::types::{Given, choose};
use entasis_vector::{DataType, Error, Result, Value};

/// The signature of `definition` for arguments of these types.
///
/// # Errors
/// Input, if it does not accept such arguments.
pub fn resolve(
    name: &str,
    definition: &Definition,
    types: &[DataType],
    constants: &[Option<Value>],
) -> Result<Signature> {
    let typed = match definition.body {
        Body::Overloads(overloads) => nearest(overloads, types).map(Ok),
        Body::Typed(typed) => Some(typed(types)),
        Body::TypedByConstants(typed) => Some(typed(types, constants)),
        Body::Elsewhere => None,
    };
    // An error with a hint says more than that the types do not match.
    let found = match typed {
        Some(Err(error)) if error.hint().is_some() => return Err(error),
        other => other.and_then(Result::ok),
    };
    found.ok_or_else(|| {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        Error::input(format!("{name} does not take ({})", types.join(", ")))
            .with_hint(format!("it is {name}({})", definition.arguments))
    })
}

fn nearest(overloads: &[Overload], types: &[DataType]) -> Option<Signature> {
    let given: Vec<Given> = types.iter().copied().map(Given::of).collect();
    let chosen = choose(overloads, &given).ok()??;
    Some(Signature { args: chosen.args, result: chosen.overload.result, kernel: chosen.overload.kernel })
}
