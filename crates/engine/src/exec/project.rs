//! Project: computes expressions over the rows. Plain columns pass through with their selection.

use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, ColumnId, Result};
use std::sync::Arc;

/// Computes expressions.
#[derive(Debug)]
pub(crate) struct Project {
    program: Arc<Program>,
    output: Vec<ColumnMeta>,
}

impl Project {
    /// Computes `exprs`, each with the id of its result, over `input`. Results for which `as_is` is true may
    /// be narrower than the default physical type.
    ///
    /// # Errors
    /// Those of compiling the expressions.
    pub(crate) fn new(
        exprs: &[(ColumnId, Expr)],
        input: &[ColumnMeta],
        as_is: &dyn Fn(ColumnId) -> bool,
    ) -> Result<Project> {
        let only: Vec<Expr> = exprs.iter().map(|(_, expr)| expr.clone()).collect();
        let program = Program::compile_narrow(&only, input, &|i| as_is(exprs[i].0))?;
        let output = program.outputs().iter().zip(exprs);
        let output = output.map(|(meta, (id, _))| ColumnMeta { id: *id, ..meta.clone() }).collect();
        Ok(Project { program, output })
    }

    /// The columns that come out.
    pub(crate) fn output(&self) -> &[ColumnMeta] {
        &self.output
    }
}

impl OperatorFactory for Project {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Worker { machine: Machine::new(self.program.clone()), output: Chunk::new() }))
    }

    fn programs(&self) -> Vec<&Program> {
        vec![&self.program]
    }
}

struct Worker {
    machine: Machine,
    output: Chunk,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        self.output.reset(chunk.len());
        self.machine.project(chunk, &mut self.output)?;
        let flow = next.push(&mut self.output);
        // Releases the machine's registers.
        self.output.reset(0);
        flow
    }
}
