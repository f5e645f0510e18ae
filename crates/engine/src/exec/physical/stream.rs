//! Streams: what a node of the plan becomes, until a sink ends it.

use super::physical_plan::PlannedPart;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, Error, Result};

/// Rows on their way to a sink.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) parts: Vec<PlannedPart>,
    pub(super) columns: Vec<ColumnMeta>,
    /// The node whose output it is.
    pub(super) node: usize,
}

impl Stream {
    /// The rows of a source.
    pub(super) fn of(source: usize, columns: Vec<ColumnMeta>, node: usize) -> Stream {
        Stream { parts: vec![PlannedPart::of(source)], columns, node }
    }

    /// The stream for a consumer that takes stored rows.
    pub(super) fn leaving_stored(mut self) -> Stream {
        let untouched = self.parts.iter_mut().filter(|part| part.operators.is_empty());
        untouched.for_each(|part| part.leaves_stored = true);
        self
    }

    /// The stream, which runs only if the sides of that join are swapped, or only if they are not.
    pub(super) fn only_if(mut self, join: usize, is_swapped: bool) -> Stream {
        self.parts.iter_mut().for_each(|part| part.only_if.push((join, is_swapped)));
        self
    }

    /// The stream after an operator that dropped an unknown share of its rows.
    pub(super) fn sparse(mut self) -> Stream {
        self.parts.iter_mut().for_each(|part| part.sparse = true);
        self
    }
}

impl PlannedPart {
    /// The rows of a source, which pass no operators so far.
    pub(super) fn of(source: usize) -> PlannedPart {
        PlannedPart {
            source,
            operators: Vec::new(),
            ordered: false,
            sparse: false,
            stops_early: false,
            leaves_stored: false,
            only_if: Vec::new(),
        }
    }
}

/// The place of a column.
pub(super) fn find(metas: &[ColumnMeta], id: ColumnId) -> Result<usize> {
    let place = metas.iter().position(|meta| meta.id == id);
    place.ok_or_else(|| Error::internal(format!("column {id} is read and nothing below gives it")))
}
