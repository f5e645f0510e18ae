//! Arguments of table functions, and values of options.

use entasis_vector::{DataType, Value};

/// An argument of a table function, such as `read_csv`, or the value of an option: constants, which may be
/// nested.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A constant and its type.
    Value(Value, DataType),
    /// `['a', 'b']`
    List(Vec<Argument>),
    /// `{'name': 'VARCHAR'}` or `MAP {'name': 'VARCHAR'}`
    Struct(Vec<(String, Argument)>),
}
