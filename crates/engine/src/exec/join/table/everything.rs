//! The table of joins without keys: every build row is a candidate for every probe row.

use super::{Cursor, JoinTable, Pairs, ProbeKeys};
use crate::exec::materialized::Materialized;
use entasis_vector::CHUNK_ROWS;

/// Every build row is a candidate for every probe row.
///
/// Each step pairs all probe rows with a few build rows, as many as fill a chunk.
pub(crate) struct Everything {
    ids: Vec<u32>,
}

impl Everything {
    pub(super) fn new(rows: &Materialized) -> Everything {
        Everything { ids: rows.ids().collect() }
    }
}

impl JoinTable for Everything {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        cursor.at = 0;
        self.next(keys, pairs, cursor);
    }
    fn next(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        pairs.clear();
        let stride = (CHUNK_ROWS / keys.count().max(1)).max(1);
        let end = (cursor.at + stride).min(self.ids.len());
        for &id in &self.ids[cursor.at..end] {
            pairs.rows.extend(0..keys.count() as u16);
            pairs.ids.resize(pairs.rows.len(), id);
        }
        cursor.at = end;
    }
    fn is_exact(&self, _: &Cursor) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        self.ids.len() * 4
    }
}
