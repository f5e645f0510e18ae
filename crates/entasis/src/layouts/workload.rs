//! How often each partition of a column is touched, and where that is known from.

use super::column::Column;
use super::sample::{Act, Sample};
use entasis_engine::access_path::asked_of;
use entasis_engine::scan_predicates::Question;
use entasis_layout::frequency::{Frequency, Operation};
use entasis_vector::{Schema, Value};
use std::ops::Bound;

/// Where a workload is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkloadOrigin {
    /// There is none.
    Nothing,
    /// The table's counters.
    Recorded,
    /// SQL statements.
    Sample,
    /// Scans of a table that follows its workload.
    Asked,
}

/// Where an act touches a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeyPlace {
    /// In these partitions.
    At(Operation<usize>),
    /// Its conditions do not bound the key.
    Whole,
    /// It does not stand in the statement; why.
    Unknown(&'static str),
}

/// The workload of a column. See the module.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) origin: WorkloadOrigin,
    /// By partition.
    pub(super) frequency: Frequency,
    /// Statements of the sample, or scans that were recorded.
    pub(super) statements: u64,
    /// Acts that have to look at all rows.
    pub(super) whole: usize,
    /// Why some statements are left out, and how many.
    pub(super) skipped: Vec<(String, usize)>,
}

impl Workload {
    /// What was counted.
    pub(super) fn recorded(column: &Column) -> Workload {
        let blank = || Frequency::new(column.parts.len());
        Workload {
            origin: if column.recorded.is_some() {
                WorkloadOrigin::Recorded
            } else {
                WorkloadOrigin::Nothing
            },
            frequency: column.recorded.clone().unwrap_or_else(blank),
            statements: 0,
            whole: 0,
            skipped: Vec::new(),
        }
    }

    /// What a sample asks of the column.
    pub(super) fn sampled(column: &Column, schema: &Schema, mut sample: Sample) -> Workload {
        let (mut frequency, mut whole) = (Frequency::new(column.parts.len()), 0);
        for act in std::mem::take(&mut sample.acts) {
            match place(&act, column, schema) {
                KeyPlace::At(operation) => frequency.count(operation, sample.weight),
                KeyPlace::Whole => whole += 1,
                KeyPlace::Unknown(why) => sample.skip(why),
            }
        }
        let Sample { weight, statements, skipped, is_recorded, .. } = sample;
        let whole = (whole as f64 * weight).round() as usize;
        let origin = if is_recorded { WorkloadOrigin::Asked } else { WorkloadOrigin::Sample };
        Workload { origin, frequency, statements, whole, skipped }
    }

    /// The same over slices.
    pub(super) fn by_slice(&self, column: &Column) -> Frequency {
        self.frequency.refined(&column.widths())
    }
}

/// Where an act touches a column. A change of several rows counts as the range that finds them.
pub(super) fn place(act: &Act, column: &Column, schema: &Schema) -> KeyPlace {
    if column.curve.is_some() {
        return KeyPlace::Unknown("rows are in the order of a curve");
    }
    let read = |question: &Question| match asked_of(question, &column.key, schema) {
        Some(asked) => KeyPlace::At(column.locate(&asked)),
        None => KeyPlace::Whole,
    };
    match act {
        Act::Read(question) => read(question),
        Act::Delete(question) => match read(question) {
            KeyPlace::At(Operation::Point(part)) => KeyPlace::At(Operation::Delete(part)),
            other => other,
        },
        Act::Insert(row) => {
            let key: Option<Vec<Value>> =
                column.key.iter().map(|&own| row.get(own).cloned().flatten()).collect();
            match key {
                Some(_) if column.key.is_empty() => KeyPlace::At(Operation::Insert(column.parts.len() - 1)),
                Some(key) => KeyPlace::At(Operation::Insert(column.part_of(&key))),
                None => KeyPlace::Unknown("the key of a new row does not stand in it"),
            }
        }
        Act::Update { which, set } => {
            let new = |own: &usize| set.iter().find(|(column, _)| column == own).map(|(_, value)| value);
            if column.key.iter().all(|own| new(own).is_none()) {
                return read(which);
            }
            let Some(asked) = asked_of(which, &column.key, schema).filter(|asked| asked.is_point) else {
                return KeyPlace::Unknown("it changes the keys of several rows");
            };
            let Bound::Included(from) = asked.low else { return KeyPlace::Whole };
            let to: Option<Vec<Value>> = column
                .key
                .iter()
                .zip(&from)
                .map(|(own, old)| new(own).cloned().unwrap_or(Some(old.clone())))
                .collect();
            match to {
                Some(to) => {
                    let (from, to) = (column.part_of(&from), column.part_of(&to));
                    KeyPlace::At(Operation::Update { from, to })
                }
                None => KeyPlace::Unknown("the new key does not stand in it"),
            }
        }
    }
}
