//! Queries of several rows by the only column of the layout key: a list or a range of keys, in the order of
//! the key.
//!
//! Keys of a list are sorted and looked up one by one. A range is read partition by partition
//! ([`TableReader::first_rows`]). More than [`MOST`] rows are left to a plan, which others do not wait for.

use super::{MOST, Run};
use crate::prepared::program::{Keys, Several, Source};
use entasis_storage::{Datum, KeyRange, RowId, TableReader};
use entasis_vector::Value;
use std::ops::Bound;

impl Run<'_> {
    /// The rows; `None` if they are too many, or a bound is NULL or must be converted.
    pub(super) fn read_several(
        self,
        reader: &TableReader<'_>,
        columns: &[usize],
        several: &Several,
    ) -> Option<Vec<Vec<Value>>> {
        let mut datums = Vec::with_capacity(columns.len());
        let values = |place| {
            datums.clear();
            reader.read(place, columns, &mut datums);
            self.program.values(&datums, columns)
        };
        Some(self.places(reader, several)?.into_iter().map(values).collect())
    }

    fn places(self, reader: &TableReader<'_>, several: &Several) -> Option<Vec<RowId>> {
        let limit = match &several.limit {
            None => None,
            Some(limit) => match limit.datum(self.arguments)? {
                Datum::Integer(limit) => Some(usize::try_from(limit).ok().filter(|&limit| limit <= MOST)?),
                _ => return None,
            },
        };
        match &several.keys {
            Keys::List(sources) => {
                let keys = self.keys(sources, several.descends)?;
                let places = keys.iter().filter_map(|&key| reader.find(&[key]));
                Some(places.take(limit.unwrap_or(MOST)).collect())
            }
            Keys::Range(low, high) => {
                let (low, high) = (self.bound(low)?, self.bound(high)?);
                let range = KeyRange { low, high, descends: several.descends };
                let places = reader.first_rows(&range, limit.unwrap_or(MOST + 1));
                (places.len() <= MOST).then_some(places)
            }
        }
    }

    /// The keys of a list, each once, in order, and without NULL, which nothing equals.
    fn keys<'a>(&'a self, sources: &'a [Source], descends: bool) -> Option<Vec<Datum<'a>>> {
        let keys = sources.iter().map(|source| source.datum(self.arguments)).collect::<Option<Vec<_>>>();
        let mut keys: Vec<Datum<'_>> = keys?.into_iter().filter(|key| !key.is_null()).collect();
        keys.sort_by(|a, b| if descends { b.total_cmp(*a) } else { a.total_cmp(*b) });
        keys.dedup_by(|a, b| a.total_cmp(*b).is_eq());
        Some(keys)
    }

    fn bound<'a>(&'a self, bound: &'a Bound<Source>) -> Option<Bound<Datum<'a>>> {
        let datum = |source: &'a Source| source.datum(self.arguments).filter(|datum| !datum.is_null());
        Some(match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(source) => Bound::Included(datum(source)?),
            Bound::Excluded(source) => Bound::Excluded(datum(source)?),
        })
    }
}
