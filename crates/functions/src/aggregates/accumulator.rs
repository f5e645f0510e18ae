//! The interface of an aggregate's accumulator, for one group.

use super::kind::Kind;
use crate::definition::row::Row;
use entasis_vector::{DataType, Result, Value};

/// The state of a function for one group.
pub(super) trait Accumulator: Default + Clone + Send + 'static {
    /// True if rows with NULLs count.
    const TAKES_NULLS: bool = false;
    /// Adds a row.
    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()>;
    /// Adds the state of another one, whose rows come after.
    fn merge(&mut self, call: &Call, other: Self) -> Result<()>;
    /// Bytes of memory besides its own size. Asked before and after each row, so it must not count values.
    fn held(&self) -> usize {
        0
    }
    /// The result.
    fn result(&mut self, call: &Call) -> Result<Value>;
}

/// An aggregate with the types of a call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name of the function, as the call wrote it.
    pub name: String,
    /// What it computes.
    pub kind: Kind,
    /// The types of its arguments.
    pub args: Vec<DataType>,
    /// The type of its result.
    pub result: DataType,
    /// With `IGNORE NULLS`.
    pub ignore_nulls: bool,
}

/// Bytes of an allocation besides those that were asked for, about.
const HEAD: usize = 16;

/// Bytes that a value takes besides its own size.
pub(super) fn held(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len() + 2 * HEAD,
        Value::Bytes(bytes) => bytes.len() + 2 * HEAD,
        _ => 0,
    }
}

/// Bytes that a list takes besides its own size and those of its values.
pub(super) fn room<T>(list: &Vec<T>) -> usize {
    if list.capacity() == 0 { 0 } else { list.capacity() * size_of::<T>() + HEAD }
}
