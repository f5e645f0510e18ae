//! Constant folding: the value of an expression without columns, computed once.

use super::{Expr, Machine, Program};
use crate::statement::ahead;
use crate::{Chunk, Result, Value};

/// The value of an expression that reads no column, computed over a chunk of one row.
///
/// # Errors
/// Whatever the evaluation raises; internal if the expression reads a column.
pub fn evaluate_constant(expr: &Expr) -> Result<Value> {
    let program = Program::compile_as_is(std::slice::from_ref(expr), &[])?;
    let mut input = Chunk::new();
    input.reset(1);
    let mut output = Chunk::new();
    output.reset(1);
    Machine::new(program).project(&input, &mut output)?;
    Ok(output.value(0, 0, expr.ty()))
}

/// The same expression with every part that is constant computed, unless computing it raises an error: that
/// is raised only when a row evaluates it.
pub(super) fn fold(expr: &Expr) -> Expr {
    expr.clone().transform(&mut |part| {
        let operands = part.children();
        let ready =
            !operands.is_empty() && operands.iter().all(|operand| matches!(operand, Expr::Literal { .. }));
        let fixed = match &part {
            Expr::External { function, .. } => function.is_immutable() && !function.is_volatile(),
            _ => true,
        };
        if !(ready && fixed) {
            return part;
        }
        match ahead(|| evaluate_constant(&part)) {
            Ok(value) => Expr::literal(value, part.ty()),
            Err(_) => part,
        }
    })
}
