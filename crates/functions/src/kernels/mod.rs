//! Kernels of the catalog's scalar functions, next to their definitions: a file for each subject.

pub(super) mod bytes;
pub(super) mod calendar;
pub(super) mod elements;
pub(super) mod formats;
pub(super) mod general;
pub mod lists;
pub(super) mod maps;
mod number_patterns;
pub(super) mod numbers;
pub(super) mod patterns;
mod printf;
pub(super) mod similarity;
mod special;
mod strftime;
pub(super) mod text;
mod to_char;
pub(super) mod written;

use crate::definition::Definition;

/// `date_trunc` of intervals.
pub const TRUNCATE_INTERVAL: Definition = calendar::TRUNCATE_INTERVAL;

/// `substring` of bytes, and by a pattern; the engine has that of text.
pub const SUBSTRING: Definition = text::SUBSTRING;
