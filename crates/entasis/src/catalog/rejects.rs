//! `reject_errors`: the rows that scans of this connection skipped with `store_rejects`, as a relation. Its
//! rows are determined when a statement is bound.

use super::listed::{listed, text};
use entasis_engine::relation::Relation;
use entasis_files::csv::{Reject, Rejects};
use entasis_vector::{DataType, Value};
use std::sync::Arc;

/// The name of the relation.
pub(crate) const NAME: &str = "reject_errors";

/// The relation.
pub(crate) fn reject_errors(rejects: &Rejects) -> Arc<dyn Relation> {
    let columns = [
        ("scan_id", DataType::Int64),
        ("file", DataType::Varchar),
        ("line", DataType::Int64),
        ("column_name", DataType::Varchar),
        ("error_type", DataType::Varchar),
        ("csv_line", DataType::Varchar),
        ("error_message", DataType::Varchar),
    ];
    listed(NAME, &columns, rejects.all().iter().map(row).collect())
}

fn row(reject: &Reject) -> Vec<Value> {
    vec![
        Value::Integer(reject.scan.into()),
        text(&reject.file),
        Value::Integer(reject.line as i128),
        reject.column.as_deref().map_or(Value::Null, text),
        text(reject.kind.name()),
        text(&reject.text),
        text(&reject.message),
    ]
}
