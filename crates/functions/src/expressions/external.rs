//! Calls of functions that the engine does not know by itself ([`ExternalFunction`]).

use entasis_vector::expr::{Expr, ExternalFunction};
use entasis_vector::statement::ahead;
use entasis_vector::{DataType, Result, Vector};
use std::sync::Arc;

/// A call of such a function, computed now if it depends on no row.
pub fn fold_external(function: Arc<dyn ExternalFunction>, args: Vec<Expr>, ty: DataType) -> Result<Expr> {
    let call = Expr::External { function: function.clone(), args, ty };
    let Expr::External { args, .. } = &call else { return Ok(call) };
    if !function.is_immutable() || args.is_empty() {
        return Ok(call);
    }
    let mut vectors = Vec::with_capacity(args.len());
    for arg in args {
        let Expr::Literal { value, ty } = arg else { return Ok(call) };
        let mut vector = Vector::of_values(*ty, std::slice::from_ref(value))?;
        vector.make_constant();
        vectors.push(vector);
    }
    let mut out = Vector::new(ty.physical());
    // An error is raised only if and when the call is evaluated.
    match ahead(|| function.evaluate(&vectors, 1, &mut out)) {
        Ok(()) => Ok(Expr::literal(out.value(0, ty), ty)),
        Err(_) => Ok(call),
    }
}
