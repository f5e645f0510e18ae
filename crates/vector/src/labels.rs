//! Labels: the texts that the values of an ENUM are, in their order.
//!
//! A value is held as the position of its label, so that values are compared, grouped, joined and stored as
//! small integers. Two types are one if they have the same labels: a type has no name of its own, and the
//! name that `CREATE TYPE` gives it stands for its labels. Like the fields of structs, the labels that
//! statements of the process have named are never freed.

use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The most labels of an ENUM: positions have 16 bits.
pub const MOST: usize = 1 << 16;

/// The labels of an ENUM. [`crate::DataType::enumeration`] makes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels {
    texts: Vec<Box<str>>,
    /// The positions in the order of their texts.
    by_text: Vec<u16>,
}

static KNOWN: Mutex<BTreeSet<&'static Labels>> = Mutex::new(BTreeSet::new());

impl Labels {
    /// The one object with these labels.
    ///
    /// # Errors
    /// Input, if there are none or too many of them, or one twice.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<&'static Labels> {
        let texts: Vec<Box<str>> = texts.into_iter().map(Box::from).collect();
        if texts.is_empty() || texts.len() > MOST {
            return Err(Error::input(format!("an ENUM has 1 to {MOST} labels, not {}", texts.len())));
        }
        let mut by_text: Vec<u16> = (0..texts.len()).map(|position| position as u16).collect();
        by_text.sort_unstable_by_key(|position| &texts[usize::from(*position)]);
        if let Some(twice) =
            by_text.windows(2).find(|two| texts[usize::from(two[0])] == texts[usize::from(two[1])])
        {
            return Err(Error::input(format!(
                "an ENUM has the label '{}' twice",
                texts[usize::from(twice[0])]
            )));
        }
        let labels = Labels { texts, by_text };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.get(&labels).copied().unwrap_or_else(|| {
            let labels: &'static Labels = Box::leak(Box::new(labels));
            known.insert(labels);
            labels
        }))
    }

    /// How many there are, at least one.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub const fn len(&self) -> usize {
        self.texts.len()
    }

    /// The labels in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// The label at a position, if there is one.
    pub fn get(&self, position: i128) -> Option<&str> {
        usize::try_from(position).ok().and_then(|position| self.texts.get(position)).map(|text| &**text)
    }

    /// The position of a label, if it is one.
    pub fn position(&self, text: &str) -> Option<u16> {
        let found = self.by_text.binary_search_by_key(&text, |position| &self.texts[usize::from(*position)]);
        found.ok().map(|at| self.by_text[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_positions() {
        let labels = Labels::of(["b", "", "a", "ä"]).unwrap();
        for (position, text) in labels.iter().enumerate() {
            assert_eq!(labels.position(text), Some(position as u16));
            assert_eq!(labels.get(position as i128), Some(text));
        }
        assert_eq!((labels.position("c"), labels.get(4), labels.get(-1)), (None, None, None));
        assert!(std::ptr::eq(labels, Labels::of(["b", "", "a", "ä"]).unwrap()));
    }

    #[test]
    fn labels_are_different_and_not_too_many() {
        let message = |texts: &[&str]| Labels::of(texts.iter().copied()).unwrap_err().message().to_owned();
        assert_eq!(message(&[]), "an ENUM has 1 to 65536 labels, not 0");
        assert_eq!(message(&["a", "b", "a"]), "an ENUM has the label 'a' twice");
        let many: Vec<String> = (0..=MOST).map(|n| n.to_string()).collect();
        assert!(Labels::of(many.iter().map(String::as_str)).is_err());
        assert_eq!(
            Labels::of(many[..MOST].iter().map(String::as_str)).unwrap().position("65535"),
            Some(65_535)
        );
    }
}
