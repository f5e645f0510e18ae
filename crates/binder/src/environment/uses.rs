//! What is learnt of the types of parameters, while a statement is bound to be described.
//!
//! A parameter whose type is not known is bound like a text that is written: it becomes what its place asks
//! for. The casts that it got say its type. One that is used in several places gets the common type of
//! these, and one of which no place says anything is a VARCHAR, as a text is.

use entasis_engine::plan::Plan;
use entasis_functions::types::{Given, Meeting, common};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug)]
pub struct Uses {
    /// The types that are known from the beginning.
    known: Vec<Option<DataType>>,
    /// For each parameter what its places ask for, in the order in which they were found.
    asked: Mutex<Vec<Vec<DataType>>>,
}

impl Uses {
    /// Nothing learnt yet of parameters, of some of which the type is known.
    pub fn new(known: Vec<Option<DataType>>) -> Uses {
        let asked = Mutex::new(vec![Vec::new(); known.len()]);
        Uses { known, asked }
    }

    /// How many parameters there are.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// The type with which a parameter is bound; `None` if there is no such parameter.
    pub(crate) fn bound_as(&self, index: usize) -> Option<DataType> {
        self.known.get(index).map(|known| known.unwrap_or(DataType::Varchar))
    }

    /// Notes that a place asks for a value of type `ty`.
    pub(crate) fn asks(&self, index: usize, ty: DataType) {
        if let Some(asked) = self.asked().get_mut(index) {
            asked.push(ty);
        }
    }

    /// Notes what all places in a bound plan ask for.
    pub fn read(&self, plan: &mut Plan) {
        plan.for_each_expr(&mut |expr| {
            expr.visit(&mut |part| {
                // What may fail to be cast is meant to be a text.
                if let Expr::Cast { input, ty, lenient: false } = part
                    && let Expr::Parameter { index, .. } = **input
                {
                    self.asks(index, *ty);
                }
            });
        });
    }

    /// The types of all parameters.
    ///
    /// # Errors
    /// Input, if places ask for types of one parameter that have none in common.
    pub fn types(&self) -> Result<Vec<DataType>> {
        let asked = self.asked();
        let types = self.known.iter().zip(&*asked).enumerate().map(|(index, (known, asked))| match known {
            Some(ty) => Ok(*ty),
            None => met(index, asked),
        });
        types.collect()
    }

    fn asked(&self) -> MutexGuard<'_, Vec<Vec<DataType>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The common type of what the places of a parameter ask for.
fn met(index: usize, asked: &[DataType]) -> Result<DataType> {
    match common(asked.iter().copied().map(Given::of), Meeting::Strict) {
        Some(DataType::Null) => Ok(DataType::Varchar),
        Some(ty) => Ok(ty),
        None => {
            let mut types: Vec<String> = asked.iter().map(DataType::to_string).collect();
            types.sort();
            types.dedup();
            let number = index + 1;
            let text = format!("the parameter ${number} would have to be {}", types.join(" and "));
            Err(Error::input(text)
                .with_sqlstate(sqlstate::AMBIGUOUS_PARAMETER)
                .with_hint(format!("cast it where it stands: CAST(${number} AS type)")))
        }
    }
}
