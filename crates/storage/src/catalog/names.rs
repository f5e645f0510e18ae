//! The objects of a version by their keys, and what is found by other words: which objects need one, and
//! which tables have an index of a name.

use super::entry::{Entry, is_temporary, key, needs};
use super::map::Map;
use std::sync::Arc;

/// See the module. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct NameIndex {
    /// By key: the space and the name in lower case.
    entries: Map<Entry>,
    /// For each name that an object needs: the name, [`NEXT`], and the key of the object.
    needed: Map<()>,
    /// For each key of a table: `t` if the table is temporary and `p` if not, the name of the key, [`NEXT`],
    /// and the key of the table.
    indexed: Map<()>,
    /// How many of the objects are types.
    types: usize,
}

/// Separates two texts; it is in no name.
const NEXT: char = '\0';

impl NameIndex {
    /// The objects by their keys.
    pub(super) fn entries(&self) -> &Map<Entry> {
        &self.entries
    }

    /// The object of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// True if one of the objects is a type.
    pub(super) fn has_types(&self) -> bool {
        self.types > 0
    }

    /// True if one is a clone of the other, and neither has changed since.
    pub(super) fn is(&self, other: &NameIndex) -> bool {
        self.entries.is(&other.entries)
    }

    /// Gives a key to an object.
    pub(super) fn insert(&mut self, key: Arc<str>, entry: Entry) {
        let (needed, indexed) = words(&key, &entry);
        self.remove(&key);
        self.types += usize::from(matches!(entry, Entry::Type(_)));
        for word in needed {
            self.needed.insert(word.into(), ());
        }
        for word in indexed {
            self.indexed.insert(word.into(), ());
        }
        self.entries.insert(key, entry);
    }

    /// Removes a key; false if there is none.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.types -= usize::from(matches!(entry, Entry::Type(_)));
        let (needed, indexed) = words(key, &entry);
        for word in &needed {
            self.needed.remove(word);
        }
        for word in &indexed {
            self.indexed.remove(word);
        }
        true
    }

    /// The keys of the objects that need the one of a name, in lower case.
    pub(super) fn users(&self, name: &str) -> Vec<&str> {
        keys_behind(&self.needed, &format!("{name}{NEXT}"))
    }

    /// The keys of the tables that have an index of a name.
    pub(super) fn tables_with_index(&self, name: &str, temporary: bool) -> Vec<&str> {
        keys_behind(&self.indexed, &index_word(name, temporary))
    }
}

/// The keys in the words that begin with `start`.
fn keys_behind<'a>(words: &'a Map<()>, start: &str) -> Vec<&'a str> {
    let found = words.from(start).map(|(word, ())| &**word).take_while(|word| word.starts_with(start));
    found.map(|word| &word[start.len()..]).collect()
}

/// The words under which an object is found besides its key.
fn words(key: &str, entry: &Entry) -> (Vec<String>, Vec<String>) {
    let needed = needs(entry).into_iter().map(|needed| format!("{needed}{NEXT}{key}"));
    let indexed = match entry {
        Entry::Table(table) => {
            let word = |name: &String| index_word(name, is_temporary(&table.name)) + key;
            table.definition.keys.iter().map(|key| word(&key.name)).collect()
        }
        _ => Vec::new(),
    };
    (needed.collect(), indexed)
}

fn index_word(name: &str, temporary: bool) -> String {
    format!("{}{}{NEXT}", if temporary { 't' } else { 'p' }, key(name))
}
