//! Constant folding: what an expression without columns is, computed once.

use super::{Expr, Machine, Program};
use crate::{Chunk, Result, Value};

/// The value of an expression that reads no column, computed over a chunk of one row.
///
/// # Errors
/// Whatever the evaluation raises; internal if the expression reads a column.
pub fn evaluate_constant(expr: &Expr) -> Result<Value> {
    let program = Program::compile(std::slice::from_ref(expr), &[])?;
    let mut input = Chunk::new();
    input.reset(1);
    let mut output = Chunk::new();
    output.reset(1);
    Machine::new(program).project(&input, &mut output)?;
    Ok(output.value(0, 0, expr.ty()))
}
