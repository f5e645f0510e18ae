//! `entasis_layout_profile`: a table's partitions in the order of the layout key, with what a workload does
//! to each, and the ghosts that would suit it.

use super::column::Column;
use super::looked::{Binding, Looked};
use super::workload::Workload;
use crate::catalog::listed;
use entasis_engine::relation::Relation;
use entasis_layout::frequency::Kind;
use entasis_layout::ghosts::{Need, allocate, budget};
use entasis_vector::{DataType, Result, Value};
use std::sync::Arc;

/// Ghosts are handed out in lots, so that there are no more than so many.
const LOTS: u64 = 1 << 14;

/// The relation of a call: a row for each partition.
pub(crate) fn profile(
    looked: &Looked<'_>,
    binding: &Binding<'_>,
    workload: Option<&str>,
) -> Result<Arc<dyn Relation>> {
    let columns = [
        ("partition", DataType::Int64),
        ("first_key", DataType::Varchar),
        ("rows", DataType::Int64),
        ("slots", DataType::Int64),
        ("slices", DataType::Int64),
        ("ghosts", DataType::Int64),
        ("wanted_ghosts", DataType::Int64),
        ("reads", DataType::Float64),
        ("writes", DataType::Float64),
    ];
    let column = Column::present(looked.snapshot, &looked.interrupt)?;
    let workload = match looked.sample(binding, workload)? {
        Some(sample) => Workload::sampled(&column, looked.snapshot.schema(), sample),
        None => Workload::recorded(&column),
    };
    let wanted = wanted(looked, &column, &workload);
    let of = |part: usize, kinds: &[Kind]| -> f64 {
        kinds.iter().map(|&kind| workload.frequency.of(kind)[part]).sum()
    };
    let integer = |number: usize| Value::Integer(number as i128);
    let row = |number: usize| {
        let part = &column.parts[number];
        let first_key = part
            .first_key
            .as_ref()
            .map_or(Value::Null, |key| Value::Text(looked.key_text(&column.key, key).into()));
        vec![
            integer(number),
            first_key,
            integer(part.rows),
            integer(part.slots),
            integer(part.width),
            integer(part.ghosts),
            wanted.as_ref().map_or(Value::Null, |wanted| integer(wanted[number] as usize)),
            Value::Float(of(number, &READS)),
            Value::Float(of(number, &WRITES)),
        ]
    };
    let rows = (0..column.parts.len()).map(row).collect();
    Ok(listed("entasis_layout_profile", &columns, rows))
}

const READS: [Kind; 4] = [Kind::PointQuery, Kind::RangeStart, Kind::Scan, Kind::RangeEnd];
const WRITES: [Kind; 6] = [
    Kind::Insert,
    Kind::Delete,
    Kind::UpdateFromForward,
    Kind::UpdateToForward,
    Kind::UpdateFromBackward,
    Kind::UpdateToBackward,
];

/// The ghosts that each partition should have, if the table's share of them goes where rows are inserted;
/// `None` if none are.
fn wanted(looked: &Looked<'_>, column: &Column, workload: &Workload) -> Option<Vec<u64>> {
    let options = looked.snapshot.table().options();
    if !options.layout.is_keyed() {
        return None;
    }
    let of = |kind: Kind| workload.frequency.of(kind);
    let inserts = |part: usize| {
        of(Kind::Insert)[part] + of(Kind::UpdateToForward)[part] + of(Kind::UpdateToBackward)[part]
    };
    let all: f64 = (0..column.parts.len()).map(inserts).sum();
    if all <= 0.0 {
        return None;
    }
    let ghosts = budget(looked.snapshot.rows() as usize, options.ghost / (1.0 - options.ghost));
    let lot = ghosts.div_ceil(LOTS).max(1);
    // A sample says where inserts go, not how many come: as many as there are ghosts for.
    let scale = ghosts as f64 / all / lot as f64;
    let need = |part: usize| Need { inserts: inserts(part) * scale, room: 1.0 };
    let needs: Vec<Need> = (0..column.parts.len()).map(need).collect();
    Some(allocate(&needs, ghosts / lot).into_iter().map(|lots| lots * lot).collect())
}

impl Looked<'_> {
    /// A key as users write it: one value, or several between brackets.
    pub(super) fn key_text(&self, columns: &[usize], key: &[Value]) -> String {
        let schema = self.snapshot.schema();
        let shown: Vec<String> = columns
            .iter()
            .zip(key)
            .map(|(&column, value)| value.display(schema[column].ty).to_string())
            .collect();
        match &shown[..] {
            [one] => one.clone(),
            several => format!("({})", several.join(", ")),
        }
    }
}
