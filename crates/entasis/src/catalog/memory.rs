//! `entasis_memory()`: who has what memory of the current database, a row for each holder, and in each row
//! the limit and what it leaves. Its rows are determined when a statement is bound.

use super::listed::{listed, text};
use crate::state::memory::{Accounts, Holder};
use entasis_engine::relation::Relation;
use entasis_vector::{DataType, Value};
use std::sync::Arc;

/// The name of the function.
pub(crate) const NAME: &str = "entasis_memory";

/// The relation of a call.
pub(crate) fn memory(accounts: &Accounts) -> Arc<dyn Relation> {
    let columns = [
        ("owner", DataType::Varchar),
        ("name", DataType::Varchar),
        ("bytes", DataType::Int64),
        ("temporary_bytes", DataType::Int64),
        ("limit_bytes", DataType::Int64),
        ("free_bytes", DataType::Int64),
    ];
    let (limit, free) = (accounts.limit, accounts.free());
    let row = |holder: &Holder| {
        vec![
            text(holder.owner),
            holder.name.as_deref().map_or(Value::Null, text),
            number(holder.bytes),
            number(holder.temporary_bytes),
            limit.map_or(Value::Null, number),
            free.map_or(Value::Null, number),
        ]
    };
    listed(NAME, &columns, accounts.holders.iter().map(row).collect())
}

fn number(bytes: i64) -> Value {
    Value::Integer(bytes.into())
}
