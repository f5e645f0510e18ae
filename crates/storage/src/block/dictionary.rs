//! Dictionaries of strings. The blocks of a row group share them, so their memory is counted separately.

use super::{Block, Values};
use entasis_vector::StringView;
use std::sync::Arc;

impl Block {
    /// Bytes of its dictionary, which other blocks share.
    pub(crate) fn dictionary_bytes(&self) -> usize {
        match &self.values {
            Values::Dictionary { dictionary, .. } => {
                let heap = dictionary.values().heap().map_or(0, |heap| heap.bytes());
                dictionary.len() * size_of::<StringView>() + heap
            }
            _ => 0,
        }
    }

    /// Its share of those bytes among the blocks that now have the dictionary.
    pub(crate) fn dictionary_share(&self) -> usize {
        match &self.values {
            Values::Dictionary { dictionary, .. } => self.dictionary_bytes() / Arc::strong_count(dictionary),
            _ => 0,
        }
    }

    pub(crate) fn has_dictionary(&self) -> bool {
        matches!(self.values, Values::Dictionary { .. })
    }

    /// True if both have the same dictionary.
    pub(crate) fn shares_dictionary(&self, other: &Block) -> bool {
        match (&self.values, &other.values) {
            (Values::Dictionary { dictionary: a, .. }, Values::Dictionary { dictionary: b, .. }) => {
                Arc::ptr_eq(a, b)
            }
            _ => false,
        }
    }
}
