//! Kernels of the catalog's scalar functions, next to their definitions: a file for each subject.

pub(super) mod bytes;
pub(super) mod calendar;
pub(super) mod date_differences;
mod date_patterns;
pub(super) mod elements;
pub(super) mod escapes;
pub(super) mod formats;
pub(super) mod general;
pub(super) mod integers;
pub(super) mod intervals;
pub(super) mod list_texts;
pub mod lists;
pub(super) mod maps;
mod number_patterns;
pub(super) mod numbers;
pub(super) mod padding;
pub(super) mod patterns;
mod printf;
mod rounding;
pub(super) mod similarity;
mod special;
mod strftime;
pub(super) mod structs;
pub(super) mod text;
mod to_char;
mod to_date;
pub(super) mod trigonometry;
pub(super) mod written;

use crate::definition::Definition;

/// `date_trunc` of intervals.
pub const TRUNCATE_INTERVAL: Definition = intervals::TRUNCATE_INTERVAL;

/// `substring` of bytes, and by a pattern; the engine has that of text.
pub const SUBSTRING: Definition = text::SUBSTRING;
