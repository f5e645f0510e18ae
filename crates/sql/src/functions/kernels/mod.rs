//! Kernels of the catalog's scalar functions, beside their definitions: a file for each subject.

mod bytes;
mod calendar;
mod formats;
mod general;
mod number_patterns;
mod numbers;
mod patterns;
mod printf;
mod similarity;
mod special;
mod strftime;
mod text;
mod to_char;

use super::catalog::{Definition, Section};
use super::{aggregates, window};

/// All functions, in the order of the page.
pub(crate) const SECTIONS: &[Section] = &[
    Section { title: "Any type", functions: &[general::FUNCTIONS] },
    Section { title: "Numbers", functions: &[numbers::FUNCTIONS] },
    Section { title: "Text", functions: &[text::FUNCTIONS, similarity::FUNCTIONS] },
    Section { title: "Regular expressions", functions: &[patterns::FUNCTIONS] },
    Section { title: "Bytes, codes and digests", functions: &[bytes::FUNCTIONS] },
    Section { title: "Dates and times", functions: &[calendar::FUNCTIONS] },
    Section { title: "Formats", functions: &[formats::FUNCTIONS] },
    Section { title: "Aggregates", functions: &[aggregates::FUNCTIONS] },
    Section { title: "Window functions", functions: &[window::FUNCTIONS] },
];

/// `date_trunc` of intervals.
pub(crate) const TRUNCATE_INTERVAL: Definition = calendar::TRUNCATE_INTERVAL;

/// `substring` of bytes, and of a pattern; that of text is the engine's.
pub(crate) const SUBSTRING: Definition = text::SUBSTRING;
