//! Parameters of a statement: their values; or only their types, for a template, which is bound once for many
//! values.

use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result, Value};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub enum Parameters<'a> {
    /// Their values, each with its type.
    Values(&'a [(Value, DataType)]),
    /// Their types.
    Types(&'a [DataType]),
}

impl Parameters<'_> {
    /// How many there are.
    pub fn count(self) -> usize {
        match self {
            Parameters::Values(values) => values.len(),
            Parameters::Types(types) => types.len(),
        }
    }

    /// Their types, in order.
    pub fn types(self) -> Vec<DataType> {
        match self {
            Parameters::Values(values) => values.iter().map(|(_, ty)| *ty).collect(),
            Parameters::Types(types) => types.to_vec(),
        }
    }

    /// The expression for the parameter written as `id`, which is `$` and a number from 1.
    ///
    /// # Errors
    /// Input, if there is no such parameter.
    pub fn expr(self, id: &str) -> Result<Expr> {
        let index = id.trim_start_matches('$').parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let expr = index.and_then(|index| match self {
            Parameters::Values(values) => {
                values.get(index).map(|(value, ty)| Expr::literal(value.clone(), *ty))
            }
            Parameters::Types(types) => types.get(index).map(|&ty| Expr::Parameter { index, ty }),
        });
        expr.ok_or_else(|| Error::input(format!("the parameter {id} has no value")))
    }

    /// True for a template, which must not contain anything that holds only at one moment.
    pub fn are_open(self) -> bool {
        matches!(self, Parameters::Types(_))
    }
}
