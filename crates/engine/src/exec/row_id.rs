//! Row ids of rows that are kept: `segment << 16 | offset`, four bytes.

/// Rows of a full segment.
pub const SEGMENT_ROWS: usize = 1 << 16;
/// The row id that stands for no row: gathering it gives NULL.
pub const NO_ROW: u32 = u32::MAX;
