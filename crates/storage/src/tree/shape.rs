//! Shapes: what never changes about a table.

use super::key::{Fences, LayoutKey};
use crate::block::Form;
use crate::definition::{Compression, TableOptions};
use entasis_vector::Schema;

/// What never changes about a table.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    pub(crate) options: TableOptions,
    /// `None` for tables in the order of insertion.
    pub(crate) key: Option<LayoutKey>,
}

impl Shape {
    pub(crate) fn new(name: String, schema: Schema, options: TableOptions) -> Shape {
        let keyed = options.layout.is_keyed() && !options.layout_key.is_empty();
        let key = keyed.then(|| LayoutKey::new(&options.layout_key, options.curve, &schema));
        Shape { name, schema, options, key }
    }

    /// What builders make the blocks of a column for.
    pub(crate) fn form(&self, column: usize) -> Form {
        match self.options.compression_of(column) {
            // Symbols make reading single rows slow.
            compression @ (Compression::Auto | Compression::Fsst | Compression::Strings)
                if self.key.is_some() =>
            {
                Form::Writable { dictionaries: compression.has_dictionaries() }
            }
            compression => Form::Cold(compression),
        }
    }

    /// What the blocks of a column are made for when their row group rests. Columns of the layout key, which
    /// every insert writes and point queries search, stay writable.
    pub(crate) fn form_at_rest(&self, column: usize) -> Form {
        match &self.key {
            Some(key) if key.columns.contains(&column) => self.form(column),
            _ => Form::Cold(self.options.compression_of(column)),
        }
    }

    /// The fences of a table without rows.
    pub(crate) fn no_fences(&self) -> Fences {
        self.key.as_ref().map_or(Fences::Words(Vec::new()), LayoutKey::no_fences)
    }
}
