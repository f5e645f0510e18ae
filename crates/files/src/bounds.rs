//! What files know of the values of a column in some of their rows: in their statistics, page indexes and
//! paths. Scans skip rows by it ([`entasis_engine::pruning`]).

use entasis_engine::pruning::{KnownBounds, Nulls};
use entasis_vector::Value;

/// What is known about a column over some rows.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    /// A lower bound of the values, if known.
    pub(super) min: Option<Value>,
    /// An upper bound of the values, if known. NaN may exceed it.
    pub(super) max: Option<Value>,
    /// True if both are values that occur, unless they are unknown.
    pub(super) occur: bool,
    /// The number of NULLs, if known.
    pub(super) nulls: Option<u64>,
    /// The number of rows.
    pub(super) rows: u64,
}

impl Bounds {
    /// The bounds of rows that all have the same value.
    pub(super) fn constant(value: &Value, rows: u64) -> Bounds {
        let bound = (!value.is_null()).then(|| value.clone());
        let nulls = Some(if value.is_null() { rows } else { 0 });
        Bounds { min: bound.clone(), max: bound, occur: true, nulls, rows }
    }

    /// The same for pruning.
    pub(super) fn known(&self) -> KnownBounds<'_> {
        let nulls = match self.nulls {
            None => Nulls::Unknown,
            Some(nulls) if nulls == self.rows => Nulls::All,
            Some(0) => Nulls::No,
            Some(_) => Nulls::Some,
        };
        KnownBounds { min: self.min.as_ref(), max: self.max.as_ref(), max_has_nan: false, nulls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_counted() {
        let nulls = |nulls, rows| Bounds { min: None, max: None, occur: false, nulls, rows }.known().nulls;
        assert_eq!(
            [nulls(None, 9), nulls(Some(0), 9), nulls(Some(2), 9), nulls(Some(9), 9)],
            [Nulls::Unknown, Nulls::No, Nulls::Some, Nulls::All]
        );
        assert_eq!(Bounds::constant(&Value::Null, 3).known().nulls, Nulls::All);
    }
}
