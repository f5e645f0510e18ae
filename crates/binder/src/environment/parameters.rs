//! Parameters of a statement: their values; or only their types, for a template, which is bound once for many
//! values; or what is to be learnt of their types, for a statement that is described.

use super::Uses;
use entasis_functions::{ClockReading, Session};
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result, Value};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub enum Parameters<'a> {
    /// Their values, each with its type.
    Values(&'a [(Value, DataType)]),
    /// Their types. What holds only at one moment becomes a hidden parameter ([`ClockReading`]).
    Types(&'a [DataType]),
    /// Those of a statement that is described: what is known of their types, and what binding adds to that.
    Described(&'a Uses),
}

impl<'a> Parameters<'a> {
    /// How many there are.
    pub fn count(self) -> usize {
        match self {
            Parameters::Values(values) => values.len(),
            Parameters::Types(types) => types.len(),
            Parameters::Described(uses) => uses.count(),
        }
    }

    /// Their types, in order.
    pub fn types(self) -> Vec<DataType> {
        match self {
            Parameters::Values(values) => values.iter().map(|(_, ty)| *ty).collect(),
            Parameters::Types(types) => types.to_vec(),
            Parameters::Described(uses) => {
                (0..uses.count()).filter_map(|index| uses.bound_as(index)).collect()
            }
        }
    }

    /// The expression for the parameter written as `id`, which is `$` and a number from 1.
    ///
    /// # Errors
    /// Input, if there is no such parameter.
    pub fn expr(self, id: &str) -> Result<Expr> {
        let parameter = |index, ty| Expr::Parameter { index, ty };
        let expr = index_of(id).and_then(|index| match self {
            Parameters::Values(values) => {
                values.get(index).map(|(value, ty)| Expr::literal(value.clone(), *ty))
            }
            Parameters::Types(types) => types.get(index).map(|&ty| parameter(index, ty)),
            Parameters::Described(uses) => uses.bound_as(index).map(|ty| parameter(index, ty)),
        });
        expr.ok_or_else(|| Error::input(format!("the parameter {id} has no value")))
    }

    /// The expression for what a function reads from the clock. In a template it is one of its hidden
    /// parameters, which come after those that are written, in the order of [`ClockReading::ALL`].
    ///
    /// # Errors
    /// Input, if the clock is out of range.
    pub(crate) fn clock_reading(self, reading: ClockReading, session: &Session) -> Result<Expr> {
        match self {
            Parameters::Types(types) => {
                Ok(Expr::Parameter { index: types.len() + reading as usize, ty: reading.ty() })
            }
            _ => Ok(Expr::literal(reading.value(session)?, reading.ty())),
        }
    }

    /// What is learnt of the parameters, if the statement is described.
    pub fn described(self) -> Option<&'a Uses> {
        match self {
            Parameters::Described(uses) => Some(uses),
            _ => None,
        }
    }
}

/// The place of a parameter written as `$` and a number from 1, counted from 0.
pub(crate) fn index_of(id: &str) -> Option<usize> {
    id.trim_start_matches('$').parse::<usize>().ok().and_then(|number| number.checked_sub(1))
}
