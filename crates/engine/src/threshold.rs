//! Thresholds: what a sort that keeps only its first rows publishes while it runs.
//!
//! Once a sort with `LIMIT n` has seen n rows, no row whose first key is behind that of the last of these can
//! be among the first. The sort publishes this key, which moves ever nearer to the front. Operators below
//! drop rows whose key is beyond it: a scan does so before it decodes other columns, and skips blocks and row
//! groups whose bounds are beyond it. So `SELECT * … ORDER BY x LIMIT 10` decodes one column of most rows.
//!
//! Rows whose key equals the threshold pass, since further keys and the order of arrival decide among them.
//! Every threshold is valid for all rows of the sort, whichever worker found it, and drops no row that a
//! later one would keep; so it does not matter when an operator learns of a new one.
//!
//! The key must be a column whose bounds are in the order of its values, which those of UUIDs and intervals
//! are not.

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use entasis_storage::Zone;
use entasis_vector::expr::{ColumnMeta, CompareOp, Expr, Machine, Program};
use entasis_vector::{DataType, Result, Value};
use std::cmp;
use std::sync::Arc;

/// The first key of the last of the first rows, as far as it is known.
#[derive(Debug)]
pub struct Threshold {
    descending: bool,
    nulls_first: bool,
    /// How often the value has changed: 0 while there is none.
    version: AtomicU64,
    value: Mutex<Option<Value>>,
}

impl Threshold {
    /// False if bounds of this type are in another order than its values: there is no threshold then.
    pub(crate) fn is_possible(ty: DataType) -> bool {
        !matches!(ty, DataType::Uuid | DataType::Interval)
    }

    /// A threshold without a value for an order whose first key is of a type with ordered bounds.
    pub(crate) fn new(descending: bool, nulls_first: bool) -> Arc<Threshold> {
        let (version, value) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Threshold { descending, nulls_first, version, value })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Value>> {
        lock(&self.value)
    }

    /// The place of `a` in the order, seen from `b`.
    fn compare(&self, a: &Value, b: &Value) -> cmp::Ordering {
        match (a.is_null(), b.is_null()) {
            (true, true) => cmp::Ordering::Equal,
            (a_is_null, b_is_null) if a_is_null || b_is_null => {
                if a_is_null == self.nulls_first {
                    cmp::Ordering::Less
                } else {
                    cmp::Ordering::Greater
                }
            }
            _ if self.descending => b.total_cmp(a),
            _ => a.total_cmp(b),
        }
    }

    /// Publishes the first key of the last of the first rows that somebody has seen, unless a threshold
    /// nearer to the front is known.
    pub(crate) fn tighten(&self, value: Value) {
        let mut known = self.lock();
        if known.as_ref().is_none_or(|known| self.compare(&value, known).is_lt()) {
            *known = Some(value);
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// How often it has changed: 0 while no row can be dropped.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// What `key`, which is NULL for some rows if `nullable`, must satisfy for a row to be among the first;
    /// `None` if all rows may be.
    pub fn condition(&self, key: Expr, nullable: bool) -> Option<Expr> {
        let value = self.lock().clone()?;
        let is_null = || Expr::IsNull(Box::new(key.clone()));
        match (value, self.nulls_first) {
            (Value::Null, true) => Some(is_null()),
            (Value::Null, false) => None,
            (value, nulls_first) => {
                let op = if self.descending { CompareOp::GtEq } else { CompareOp::LtEq };
                let ty = key.ty();
                let within = Expr::compare(op, key.clone(), Expr::literal(value, ty));
                Some(if nulls_first && nullable { Expr::Or(vec![is_null(), within]) } else { within })
            }
        }
    }

    /// False if all values within the bounds are beyond it.
    pub(crate) fn may_be_in(&self, zone: &Zone) -> bool {
        let value = self.lock();
        value.as_ref().is_none_or(|value| self.compare(self.foremost(zone), value).is_le())
    }

    /// The order in which rows with such bounds should be read, so that the threshold is soon near the front.
    pub fn compare_zones(&self, a: &Zone, b: &Zone) -> cmp::Ordering {
        self.compare(self.foremost(a), self.foremost(b))
    }

    /// A value that no value within the bounds precedes.
    fn foremost<'z>(&self, zone: &'z Zone) -> &'z Value {
        match (zone.nulls > 0 && self.nulls_first, self.descending) {
            (true, _) => &Value::Null,
            (false, true) => &zone.max,
            (false, false) => &zone.min,
        }
    }
}

/// One worker's test of a threshold on a column of its chunks.
pub(crate) struct ThresholdTest {
    threshold: Arc<Threshold>,
    /// The columns of the chunks.
    input: Vec<ColumnMeta>,
    key: usize,
    /// The version of the threshold that `machine` tests.
    version: u64,
    machine: Option<Machine>,
}

impl ThresholdTest {
    /// A test on column `key` of chunks with these columns.
    pub(crate) fn new(threshold: Arc<Threshold>, input: Vec<ColumnMeta>, key: usize) -> ThresholdTest {
        ThresholdTest { threshold, input, key, version: 0, machine: None }
    }

    /// What keeps the rows that may be among the first; `None` if all may be.
    ///
    /// # Errors
    /// Those of compiling a comparison.
    pub(crate) fn machine(&mut self) -> Result<Option<&mut Machine>> {
        let version = self.threshold.version();
        if version != self.version {
            let meta = &self.input[self.key];
            let condition = self.threshold.condition(Expr::column(meta.id, meta.ty), meta.nullable);
            let program =
                condition.map(|condition| Program::compile(&[condition], &self.input)).transpose()?;
            (self.machine, self.version) = (program.map(Machine::new), version);
        }
        Ok(self.machine.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(descending: bool, nulls_first: bool) -> Arc<Threshold> {
        Threshold::new(descending, nulls_first)
    }

    fn value(value: Option<i128>) -> Value {
        value.map_or(Value::Null, Value::Integer)
    }

    #[test]
    fn it_moves_to_the_front_only() {
        for (descending, nulls_first, order) in [
            (false, false, [Some(1), Some(2), Some(3), None]),
            (false, true, [None, Some(1), Some(2), Some(3)]),
            (true, false, [Some(3), Some(2), Some(1), None]),
            (true, true, [None, Some(3), Some(2), Some(1)]),
        ] {
            for (i, &first) in order.iter().enumerate() {
                for (j, &second) in order.iter().enumerate() {
                    let threshold = threshold(descending, nulls_first);
                    assert_eq!(threshold.version(), 0);
                    threshold.tighten(value(first));
                    threshold.tighten(value(second));
                    assert_eq!(*threshold.lock(), Some(value(order[i.min(j)])));
                    assert_eq!(threshold.version(), 1 + u64::from(j < i));
                }
            }
        }
    }

    #[test]
    fn bounds_rule_out_what_no_row_within_them_survives() {
        let values = [None, Some(-1), Some(0), Some(1), Some(2), Some(3)];
        for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
            for published in values {
                let threshold = threshold(descending, nulls_first);
                let all = Zone { min: Value::Integer(0), max: Value::Integer(0), nulls: 0 };
                assert!(threshold.may_be_in(&all));
                threshold.tighten(value(published));
                for (min, max) in [(0, 0), (0, 2), (1, 3)] {
                    for nulls in [0, 1] {
                        let zone = Zone { min: Value::Integer(min), max: Value::Integer(max), nulls };
                        let mut rows: Vec<Value> = (min..=max).map(Value::Integer).collect();
                        rows.extend((nulls > 0).then_some(Value::Null));
                        let limit = value(published);
                        let may = rows.iter().any(|row| threshold.compare(row, &limit).is_le());
                        assert_eq!(threshold.may_be_in(&zone), may, "{published:?} {min} {max} {nulls}");
                    }
                }
                let nulls = Zone { min: Value::Null, max: Value::Null, nulls: 7 };
                assert_eq!(threshold.may_be_in(&nulls), nulls_first || published.is_none());
            }
        }
    }
}
