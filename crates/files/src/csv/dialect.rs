//! The rules by which the bytes of a file are split into fields.

use crate::delimiter::Delimiter;

/// The rules by which the bytes of a file are split into fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) delimiter: Delimiter,
    pub(super) quote: Option<u8>,
    pub(super) escape: Option<u8>,
    pub(super) comment: Option<u8>,
    /// Whether an empty line is a row. In files of one column it is a row with a NULL.
    pub(super) blank_rows: bool,
}
