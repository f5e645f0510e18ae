//! The machine: one worker's registers, and the run of a [`Program`] over a chunk.

use super::{Expr, Program};
use crate::buffer::Buffer;
use crate::{Chunk, Error, Result, Selection, Vector};
use std::sync::Arc;

/// One worker's registers for a program.
#[derive(Debug)]
pub struct Machine {
    program: Arc<Program>,
    picks: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
}

impl Machine {
    /// Registers for `program`.
    pub fn new(program: Arc<Program>) -> Machine {
        Machine { program, picks: Vec::new(), spares: Vec::new() }
    }

    /// Computes all expressions for the rows of `input` and appends them to `output` as columns. The caller has reset
    /// `output` to the same row count; the groups that are needed are added.
    ///
    /// # Errors
    /// Input errors of the expressions.
    pub fn project(&mut self, input: &Chunk, output: &mut Chunk) -> Result<()> {
        for (expr, column) in self.program.exprs.iter().zip(&self.program.columns) {
            match (expr, column) {
                (_, Some(column)) => {
                    let group = output.push_group(input.groups()[input.column(*column).group].clone());
                    output.push_column(input.vector(*column).clone(), group);
                }
                (Expr::Literal { value, ty }, _) => {
                    let group = output.push_group(Selection::ALL);
                    output.push_column(Vector::constant(ty.physical(), value)?, group);
                }
                _ => {
                    let mut ids = Vec::new();
                    expr.collect_columns(&mut ids);
                    let metas = &self.program.input;
                    let columns: Vec<usize> = ids
                        .iter()
                        .map(|id| metas.iter().position(|meta| meta.id == *id))
                        .collect::<Option<_>>()
                        .ok_or_else(|| Error::internal("a column is not in the input"))?;
                    let mut vector = Vector::new(expr.ty().physical());
                    vector.begin(input.len().max(crate::CHUNK_ROWS));
                    for row in 0..input.len() {
                        let values: Vec<crate::Value> =
                            columns.iter().map(|c| input.value(row, *c, metas[*c].ty)).collect();
                        let row_values = super::fallback::expression::Row { columns: &ids, values: &values };
                        vector.write_value(row, &super::fallback::expression::evaluate(expr, row_values)?)?;
                    }
                    let group = output.push_group(Selection::ALL);
                    output.push_column(vector, group);
                }
            }
        }
        Ok(())
    }

    /// Narrows `chunk` to the rows for which all expressions, which are BOOLEAN, are true.
    ///
    /// # Errors
    /// Input errors of the expressions.
    pub fn filter(&mut self, chunk: &mut Chunk) -> Result<()> {
        self.select(chunk)?;
        chunk.select(&self.picks, &mut self.spares);
        Ok(())
    }

    /// The numbers of the rows for which all expressions, which are BOOLEAN, are true, ascending.
    ///
    /// # Errors
    /// Input errors of the expressions.
    pub fn select(&mut self, chunk: &Chunk) -> Result<&[u16]> {
        let mut output = Chunk::new();
        output.reset(chunk.len());
        self.project(chunk, &mut output)?;
        self.picks.clear();
        let ty = crate::DataType::Boolean;
        let columns = output.columns().len();
        let all = |r: &u16| (0..columns).all(|c| output.value(*r as usize, c, ty) == crate::Value::Boolean(true));
        self.picks.extend((0..chunk.len() as u16).filter(all));
        Ok(&self.picks)
    }
}
