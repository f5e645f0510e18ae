//! Blocks as bytes, and back: the form in which a checkpoint stores them (docs/design/file-format.md,
//! "Blocks").
//!
//! The bytes are those of memory, except that long strings are compressed (`texts`, `entries`): so a block
//! that is read has the encoding and the size of the one that was written. A dictionary or a table of symbols
//! that the blocks of a row group share is written once beside them ([`Shared`]).
//!
//! | module | |
//! |---|---|
//! | `write` | a block to bytes. Dead slots become zeros if they may be written meanwhile |
//! | `read` | untrusted bytes to a block |
//! | `writer`, `reader` | what encodings write and read: numbers, codes, strings, patches |
//! | `texts` | strings, compressed where that saves much |
//! | `shared`, `read_shared`, `write_shared` | dictionaries and symbols |
//! | `entries` | those of a dictionary, shortened and compressed where that saves much |
//!
//! Reading never panics, whatever the bytes are, nor does reading the values of the resulting block: lengths,
//! codes, ends and patches are within their bounds, texts are UTF-8, and no number leaves its type's range.
//! The memory allocated is at most a small multiple of the bytes, or 16 MB for a dictionary. A changed value
//! is not noticed here: the caller, who stores the bytes, has a checksum.
//!
//! A block of views is compact when it is read: overwritten strings are gone.

mod entries;
mod read;
mod read_shared;
mod reader;
mod shared;
mod texts;
mod write;
mod write_shared;
mod writer;

pub use read::read;
pub(crate) use reader::{Flaw, Reader};
pub(crate) use shared::WeakShared;
pub use shared::{Shared, Symbols};
pub(crate) use write::forget_order;
pub use write::write;
pub(crate) use writer::BlockWriter;

use super::{Block, Values};
use entasis_vector::{DataType, PhysicalType};

/// The version of this form.
pub(crate) const VERSION: u8 = 1;
/// What is shared: nothing; a dictionary, as it is or shortened; symbols.
const NOTHING: u8 = 0;
const PLAIN_DICTIONARY: u8 = 1;
const SYMBOLS: u8 = 2;
const SHORTENED_DICTIONARY: u8 = 3;
/// A block has validity bits.
const HAS_VALIDITY: u8 = 1;
/// The live values of a block ascend.
const IS_ASCENDING: u8 = 2;
/// Added to the bits of packed codes; a lower width is the bytes of plain codes.
const PACKED: u8 = 16;

// Numbers are in blocks as they are in memory.
const _: () = assert!(cfg!(target_endian = "little"));

/// The column of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// How its values are held.
    pub physical: PhysicalType,
    /// Its strings are texts.
    pub is_text: bool,
}

impl Column {
    /// A column of a type, held by default.
    pub fn of(ty: DataType) -> Column {
        Column { physical: ty.physical(), is_text: ty.is_text() }
    }
}

/// The physical types by their numbers in files, which never change.
pub const PHYSICAL: [PhysicalType; 14] = [
    PhysicalType::Bool,
    PhysicalType::I8,
    PhysicalType::I16,
    PhysicalType::I32,
    PhysicalType::I64,
    PhysicalType::I128,
    PhysicalType::U8,
    PhysicalType::U16,
    PhysicalType::U32,
    PhysicalType::U64,
    PhysicalType::F32,
    PhysicalType::F64,
    PhysicalType::Str,
    PhysicalType::Interval,
];

impl Block {
    /// What the block shares with others.
    pub fn shared(&self) -> Shared {
        match &self.values {
            Values::Text(values) => values.shared(),
            Values::Null | Values::Fixed(_) => Shared::Nothing,
        }
    }
}
