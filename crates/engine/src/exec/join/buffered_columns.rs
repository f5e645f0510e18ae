//! The columns of probe rows that are held back, and chunks of such rows.

use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Result, Selection, Value, Vector};

/// The columns of a side's chunks that are kept, because they are read later.
pub(crate) struct BufferedColumns {
    /// Their positions in a chunk.
    pub places: Vec<usize>,
    /// A NULL of the type of each of the chunk's columns.
    nulls: Vec<Vector>,
}

impl BufferedColumns {
    /// Those columns of chunks for which `is_read` is true.
    ///
    /// # Errors
    /// None is expected: NULL is of every type.
    pub(crate) fn new(
        columns: &[ColumnMeta],
        is_read: impl Fn(&ColumnMeta) -> bool,
    ) -> Result<BufferedColumns> {
        let places = (0..columns.len()).filter(|&i| is_read(&columns[i])).collect();
        let null = |meta: &ColumnMeta| Vector::constant(meta.physical, &Value::Null);
        Ok(BufferedColumns { places, nulls: columns.iter().map(null).collect::<Result<_>>()? })
    }

    /// The kept columns among those of a chunk.
    pub(crate) fn of(&self, columns: &[ColumnMeta]) -> Vec<ColumnMeta> {
        self.places.iter().map(|&place| columns[place].clone()).collect()
    }

    /// Fills a chunk with all columns of `rows` rows: the kept columns as given, the others NULL.
    pub(crate) fn fill<'v>(&self, chunk: &mut Chunk, rows: usize, kept: impl Iterator<Item = &'v Vector>) {
        chunk.reset(rows);
        let group = chunk.push_group(Selection::ALL);
        let mut kept = self.places.iter().zip(kept).peekable();
        for (i, null) in self.nulls.iter().enumerate() {
            let own = kept.next_if(|(place, _)| **place == i).map(|(_, vector)| vector);
            chunk.push_column(own.unwrap_or(null).clone(), group);
        }
    }
}
