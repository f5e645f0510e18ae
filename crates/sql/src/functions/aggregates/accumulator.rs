//! The interface of an aggregate's accumulator, for one group.

use super::Kind;
use crate::functions::definition::row::Row;
use entasis_vector::{DataType, Result, Value};

/// The state of a function for one group.
pub(super) trait Accumulator: Default + Clone + Send + 'static {
    /// True if rows with NULLs count.
    const TAKES_NULLS: bool = false;
    /// Adds a row; returns by how many bytes the state has grown beyond its own size.
    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<usize>;
    /// Adds the state of another one, whose rows come after.
    fn merge(&mut self, call: &Call, other: Self) -> Result<()>;
    /// The result.
    fn result(&mut self, call: &Call) -> Result<Value>;
}

/// An aggregate with the types of a call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) args: Vec<DataType>,
    pub(crate) result: DataType,
    pub(crate) ignore_nulls: bool,
}

/// Bytes that a value takes besides its own size.
pub(super) fn held(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}
