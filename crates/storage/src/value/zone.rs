//! What is known of many values without looking at them: bounds and NULL counts, by block, row group and
//! table.

use super::Datum;
use entasis_vector::Value;
use std::cmp::Ordering;

/// Bounds of a column within some slots. Both occur, or did until rows were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// The least value, in the order of [`Value::total_cmp`]; NULL if there is no value.
    pub min: Value,
    /// The greatest value; NULL if there is none.
    pub max: Value,
    /// Slots that are NULL.
    pub nulls: u32,
}

impl Zone {
    /// The zone of no slots.
    pub const EMPTY: Zone = Zone { min: Value::Null, max: Value::Null, nulls: 0 };

    /// True if a value lies within the bounds, or if it is NULL and so are others.
    #[inline]
    pub(crate) fn holds(&self, datum: Datum<'_>) -> bool {
        match datum {
            Datum::Null => self.nulls > 0,
            datum => {
                !self.min.is_null()
                    && datum.cmp_bound(&self.min).is_ge()
                    && datum.cmp_bound(&self.max).is_le()
            }
        }
    }

    /// Widens this zone by `other`.
    pub fn merge(&mut self, other: &Zone) {
        self.nulls = self.nulls.saturating_add(other.nulls);
        if other.min.is_null() {
            return;
        }
        if self.min.is_null() || other.min.total_cmp(&self.min) == Ordering::Less {
            self.min = other.min.clone();
        }
        if self.max.is_null() || other.max.total_cmp(&self.max) == Ordering::Greater {
            self.max = other.max.clone();
        }
    }
}

/// What is known of a column of a whole table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSummary {
    /// No value is less, and some row has it, or had before it was removed; `None` if there is no value.
    pub min: Option<Value>,
    /// No value is greater, likewise; `None` if there is no value.
    pub max: Option<Value>,
    /// Rows that are NULL, exact.
    pub nulls: u64,
    /// Distinct values: exact for columns that ascend strictly (typical keys) and for constant ones, else an
    /// estimate within a few percent, which for an old snapshot may count values that were added later.
    pub distinct: u64,
    /// True if it is certain that no two rows have the same value and none is NULL: the column ascends
    /// strictly.
    pub unique: bool,
}
