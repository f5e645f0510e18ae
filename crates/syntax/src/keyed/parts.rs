//! A keyed statement, and what it consists of.

use crate::object_name::WrittenName;
use entasis_vector::{DataType, Value};
use std::ops::Bound;

/// A statement that names rows by values.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyed {
    /// The table.
    pub table: WrittenName,
    /// Columns, all different, and the values that the rows have in them. Empty for an insert.
    pub key: Vec<(String, Scalar)>,
    /// The action on the rows.
    pub action: KeyedAction,
    /// The columns that a change returns, all of them if there are no names; `None` without `RETURNING`.
    pub returning: Option<Vec<String>>,
}

/// The action of a [`Keyed`] on its rows. Names of columns are as written.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyedAction {
    /// Reads columns; all of them if there are no names.
    Read(Vec<String>),
    /// Reads columns, all of them if there are no names, of several rows.
    ReadSeveral(Vec<String>, Several),
    /// Adds rows: their columns, all of them if there are no names, and the values of each row.
    Insert(Vec<String>, Vec<Vec<Insertable>>, Option<OnConflict>),
    /// Sets columns.
    Update(Vec<(String, Assigned)>),
    /// Removes the rows.
    Delete,
}

/// Rows by the values of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Several {
    /// The column.
    pub column: String,
    /// Its values.
    pub keys: Keys,
    /// The order of the rows by the column; true if it descends.
    pub descends: Option<bool>,
    /// The greatest number of rows.
    pub limit: Option<Scalar>,
}

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Keys {
    /// Those of a list.
    List(Vec<Scalar>),
    /// All from a bound to another.
    Range(Bound<Scalar>, Bound<Scalar>),
}

/// A value of a row that is inserted.
#[derive(Debug, Clone, PartialEq)]
pub enum Insertable {
    /// A parameter or a constant.
    Scalar(Scalar),
    /// The default of the column.
    Default,
}

/// What an insert does if a row has the same key.
#[derive(Debug, Clone, PartialEq)]
pub struct OnConflict {
    /// The columns of the key.
    pub key: Vec<String>,
    /// The columns that are set in that row; none for `DO NOTHING`.
    pub set: Vec<(String, Assigned)>,
}

/// The new value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Assigned {
    /// A parameter or a constant.
    Scalar(Scalar),
    /// The row's value of a column plus or minus a scalar.
    Sum {
        /// The column.
        column: String,
        /// The scalar.
        by: Scalar,
        /// True if it is subtracted.
        is_negative: bool,
    },
    /// The value of a column in the row that was to be inserted.
    Excluded(String),
}

/// A value in the statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// The parameter with this index, counted from 0.
    Parameter(usize),
    /// A constant with its type: NULL, a boolean, a BIGINT, a DECIMAL or a text.
    Constant(Value, DataType),
}
