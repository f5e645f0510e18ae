//! The ground floor of Entasis: types, values, vectors, chunks, the expression machine and its kernels.
//!
//! Everything here works on a few thousand rows that are already in memory. This crate knows no table, no
//! plan and no I/O; `storage` fills its chunks, `engine` pushes them through operators.
//!
//! Reading order: [`types`] (what a column may hold) → [`value`] (one of them) → [`vector`] (2048 of them) →
//! [`chunk`] (several vectors, with selections) → [`expr`] (what is computed over a chunk).

pub mod aggregate;
pub mod array;
pub mod bitmap;
pub mod buffer;
pub mod buffers;
pub mod characters;
pub mod chunk;
pub mod error;
pub mod expr;
pub mod hash;
pub mod labels;
pub mod meter;
pub mod name;
mod pages;
pub mod parts;
pub mod prefetch;
pub mod relaxed;
pub mod selection;
pub mod simd;
pub mod slots;
pub mod statement;
pub mod stored;
pub mod string;
pub mod suggest;
pub mod time_tz;
pub mod types;
pub mod value;
pub mod vector;
pub mod writer;

pub use array::Array;
pub use bitmap::Bitmap;
pub use buffer::{Buffer, Native};
pub use buffers::Buffers;
pub use chunk::{Chunk, Column};
pub use error::{Error, ErrorKind, Result};
pub use selection::Selection;
pub use slots::Slots;
pub use stored::Stored;
pub use string::{StringHeap, StringView};
pub use types::{ColumnId, DataType, Field, Interval, PhysicalType, Schema};
pub use value::Value;
pub use vector::{Dictionary, Encoding, Vector};

/// Rows in a full chunk: two storage blocks. Small enough that a dozen live columns stay in the second-level
/// cache, large enough that the dispatch of a kernel is lost in it (`docs/design/vectors.md`).
pub const CHUNK_ROWS: usize = 2048;
