//! Filter: keeps the rows for which all predicates are true. Narrows the chunk's selections; copies nothing.

use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// Keeps the rows for which all predicates are true.
#[derive(Debug)]
pub(crate) struct Filter(Arc<Program>);

impl Filter {
    /// A filter of `input` by `predicates`.
    ///
    /// # Errors
    /// Those of compiling the predicates.
    pub(crate) fn new(predicates: &[Expr], input: &[ColumnMeta]) -> Result<Filter> {
        Ok(Filter(Program::compile(predicates, input)?))
    }
}

impl OperatorFactory for Filter {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Worker(Machine::new(self.0.clone()))))
    }

    fn programs(&self) -> Vec<&Program> {
        vec![&self.0]
    }
}

struct Worker(Machine);

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        self.0.filter(chunk)?;
        next.push(chunk)
    }
}
