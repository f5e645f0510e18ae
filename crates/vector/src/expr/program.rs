//! Programs: expressions over a chunk's columns, compiled.

use super::{ColumnMeta, Expr};
use crate::{ColumnId, Error, Result};
use std::sync::Arc;

/// Expressions compiled for chunks of one shape. Immutable, shared by all workers.
#[derive(Debug)]
pub struct Program {
    pub(super) exprs: Vec<Expr>,
    pub(super) columns: Vec<Option<usize>>,
    pub(super) input: Vec<ColumnMeta>,
    outputs: Vec<ColumnMeta>,
}

impl Program {
    /// Compiles `exprs` over chunks whose column i is `input[i]`.
    ///
    /// # Errors
    /// Internal, if an expression reads a column that is not in `input`; not supported, for operations without kernels.
    pub fn compile(exprs: &[Expr], input: &[ColumnMeta]) -> Result<Arc<Program>> {
        let mut outputs = Vec::new();
        let mut columns = Vec::new();
        for expr in exprs {
            let column = match expr {
                Expr::Column { id, .. } => {
                    let found = input.iter().position(|meta| meta.id == *id);
                    Some(found.ok_or_else(|| Error::internal(format!("column {id} is not in the input")))?)
                }
                _ => None,
            };
            columns.push(column);
            outputs.push(column.map_or_else(|| ColumnMeta::new(ColumnId(u32::MAX), expr.ty()), |i| input[i].clone()));
        }
        Ok(Arc::new(Program { exprs: exprs.to_vec(), columns, input: input.to_vec(), outputs }))
    }

    /// What is known of the results, in order. The id is `ColumnId(u32::MAX)` unless the expression is a plain column.
    pub fn outputs(&self) -> &[ColumnMeta] {
        &self.outputs
    }
}
