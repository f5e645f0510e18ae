//! What stands for Parquet in a build without the feature `parquet`: files of the format are refused, so
//! there is no value of the types here.

use crate::copy::Batch;
use crate::paths::FileOptions;
use crate::target::TargetFile;
use arrow_schema::SchemaRef;
use entasis_engine::exec::{MemoryBudget, QueryContext};
use entasis_engine::relation::Relation;
use entasis_vector::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;

fn refused() -> Error {
    Error::not_supported("Parquet in this build").with_hint("build it with the feature parquet")
}

/// Refuses to read Parquet files.
pub fn open(_: &str, _: Vec<PathBuf>, _: &FileOptions) -> Result<Arc<dyn Relation>> {
    Err(refused())
}

/// The compression of pages: none can be named.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageCompression;

impl PageCompression {
    pub(crate) fn of_name(_: &str) -> Result<PageCompression> {
        Err(refused())
    }
}

/// A file that is being written.
pub(crate) enum RowGroups {}

/// A row group that has been encoded.
pub(crate) enum Encoded {}

/// What encodes row groups.
pub(crate) enum Encoder {}

/// The rows of one row group.
pub(crate) struct RowGroup {
    pub(crate) number: usize,
    pub(crate) batches: Vec<Batch>,
}

impl RowGroups {
    pub(crate) fn new(
        _: TargetFile,
        _: SchemaRef,
        _: PageCompression,
        _: (usize, usize),
    ) -> Result<RowGroups> {
        Err(refused())
    }

    pub(crate) fn encoder(&mut self, _: &[Batch]) -> Result<Encoder> {
        match *self {}
    }

    pub(crate) fn add(&mut self, _: Batch) -> Result<()> {
        match *self {}
    }

    pub(crate) fn add_encoded(&mut self, _: Encoded) -> Result<()> {
        match *self {}
    }

    pub(crate) fn complete(&mut self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn take(&mut self) -> Option<(RowGroup, Encoder)> {
        match *self {}
    }

    pub(crate) fn append(&mut self, _: usize, _: Encoded) -> Result<()> {
        match *self {}
    }

    pub(crate) fn finish(self) -> Result<()> {
        match self {}
    }
}

impl Encoder {
    pub(crate) fn encode(&self, _: &[Batch], _: &Arc<MemoryBudget>, _: &QueryContext) -> Result<Encoded> {
        match *self {}
    }
}

impl Encoded {
    pub(crate) fn bytes(&self) -> usize {
        match *self {}
    }
}
