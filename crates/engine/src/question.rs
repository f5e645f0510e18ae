//! What a scan asks of a stored table: the comparisons of columns with constants that all of its rows
//! satisfy. They own their values, and hold no snapshot of the table.

use entasis_vector::expr::CompareOp;
use entasis_vector::{DataType, Value};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// The comparisons, in the order of the filters.
    pub comparisons: Vec<Comparison>,
}

/// A column of the table, compared with a constant of its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The index of the column.
    pub column: usize,
    /// The operator, with the column on its left.
    pub op: CompareOp,
    /// The constant; it is not NULL.
    pub value: Value,
    /// Its type, and the column's.
    pub ty: DataType,
}
