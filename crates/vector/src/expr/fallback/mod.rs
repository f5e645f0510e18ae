//! A walk over the tree, a row at a time, until the kernels land.

mod cast;
pub mod expression;

use crate::{ColumnId, DataType, Error, Result, Value, Vector};

pub(crate) fn position(columns: &[ColumnId], id: ColumnId) -> Result<usize> {
    columns.iter().position(|c| *c == id).ok_or_else(|| Error::internal(format!("no column {id} in the input")))
}

pub(crate) fn call(
    function: &dyn crate::expr::ExternalFunction,
    args: &[(Value, DataType)],
    ty: DataType,
) -> Result<Value> {
    let vectors = args.iter().map(|(value, ty)| one_row(value, *ty)).collect::<Result<Vec<_>>>()?;
    let mut out = Vector::new(ty.physical());
    function.evaluate(&vectors, 1, &mut out)?;
    Ok(out.value(0, ty))
}

fn one_row(value: &Value, ty: DataType) -> Result<Vector> {
    Vector::from_values(ty.physical(), std::slice::from_ref(value))
}
