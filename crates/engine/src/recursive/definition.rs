//! What a recursion computes.

use crate::plan::{Keeps, Plan};
use crate::relation::Relation;
use crate::work_table::WorkTable;
use entasis_vector::DataType;
use std::sync::Arc;

/// What a recursion computes.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) start: Plan,
    pub(super) step: Plan,
    pub(super) work: Arc<WorkTable>,
    pub(super) keeps: Keeps,
}

impl Definition {
    /// The types of its columns.
    pub(super) fn types(&self) -> Vec<DataType> {
        self.work.schema().iter().map(|field| field.ty).collect()
    }
}
