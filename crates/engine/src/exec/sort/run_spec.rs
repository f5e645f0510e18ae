//! The common properties of a sort's runs: used by workers that write runs, by passes that merge some, and by
//! the last merge.

use super::codes::OrderKey;
use crate::context::QueryContext;
use crate::exec::spill::policy::SpillPolicy;
use crate::exec::spill::rows::RowFormat;
use crate::settings::Spilling;
use crate::sync::{AtomicU64, OnceLock, Ordering};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, DataType};

/// Bytes of a block in memory: a share of what is left to others, a minimum, a maximum.
const BLOCK_PART: usize = 16;
const LEAST_BLOCK: usize = 8 << 10;
const MOST_BLOCK: usize = 256 << 10;
const DEEP_BLOCK_ROWS: usize = 4;
/// The most rows of a block.
pub const MOST_BLOCK_ROWS: usize = 8192;

/// The size of blocks.
#[derive(Debug, Clone, Copy)]
pub struct BlockSize {
    /// The most rows.
    pub rows: usize,
    /// Bytes of long strings at which no further row is added.
    pub text: usize,
}

/// The common properties of one sort's runs: their rows, how these are written, and the size of blocks.
pub struct RunSpec {
    pub(super) setting: Spilling,
    /// The stored columns, and the morsel.
    columns: Vec<ColumnMeta>,
    /// The keys, and the morsel.
    keys: Vec<OrderKey>,
    limit: Option<usize>,
    /// Created on demand: most sorts write nothing.
    format: OnceLock<RowFormat>,
    /// When memory is short.
    policy: SpillPolicy,
    /// Bytes written and read, for the profile.
    written: AtomicU64,
    read: AtomicU64,
    context: QueryContext,
}

impl RunSpec {
    /// The specification for a sort of rows with these columns.
    pub fn new(
        stored: &[ColumnMeta],
        keys: &[OrderKey],
        limit: Option<usize>,
        context: &QueryContext,
    ) -> RunSpec {
        let morsel = OrderKey { column: stored.len(), descending: false, nulls_first: false };
        RunSpec {
            setting: context.settings.sort_spill,
            columns: with_morsel(stored),
            keys: keys.iter().copied().chain([morsel]).collect(),
            limit,
            format: OnceLock::new(),
            policy: SpillPolicy::new(&context.memory),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            context: context.clone(),
        }
    }

    /// The columns of rows in runs: the stored ones, and the morsel.
    pub fn columns(&self) -> &[ColumnMeta] {
        &self.columns
    }
    /// The keys of rows in runs, and the morsel.
    pub fn keys(&self) -> &[OrderKey] {
        &self.keys
    }
    /// The most rows that are needed.
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }
    /// The statement.
    pub fn context(&self) -> &QueryContext {
        &self.context
    }
    /// How rows are written.
    pub fn format(&self) -> &RowFormat {
        self.format.get_or_init(|| RowFormat::new(&self.columns))
    }
    /// Records that so many bytes were written.
    pub fn note_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    /// Records that so many bytes were read.
    pub fn note_read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    /// Bytes written, and bytes read.
    pub fn traffic(&self) -> (u64, u64) {
        (self.written.load(Ordering::Relaxed), self.read.load(Ordering::Relaxed))
    }

    /// True if all rows go to runs even if there is memory.
    pub fn is_forced(&self) -> bool {
        self.setting != Spilling::Auto
    }

    /// When memory is short.
    pub(crate) fn policy(&self) -> &SpillPolicy {
        &self.policy
    }

    /// The size of blocks.
    pub fn block_size(&self) -> BlockSize {
        let bytes = (self.policy.left() / BLOCK_PART).clamp(LEAST_BLOCK, MOST_BLOCK);
        let width: usize = self.columns.iter().map(|meta| meta.physical.width()).sum();
        let most = if self.setting == Spilling::Deep { DEEP_BLOCK_ROWS } else { MOST_BLOCK_ROWS };
        BlockSize { rows: (bytes / width).clamp(1, most), text: bytes }
    }
}

/// `columns`, and a last one that holds the morsel of a row.
pub fn with_morsel(columns: &[ColumnMeta]) -> Vec<ColumnMeta> {
    let morsel = ColumnMeta::new(ColumnId(u32::MAX - columns.len() as u32), DataType::UInt64);
    columns.iter().cloned().chain([ColumnMeta { nullable: false, ..morsel }]).collect()
}
