//! What a scan asks of a stored table: the comparisons of columns with constants that all of its rows
//! satisfy. They own their values, and hold no snapshot of the table.

use crate::pruning::Comparison;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// The comparisons, in the order of the filters.
    pub comparisons: Vec<Comparison>,
}
