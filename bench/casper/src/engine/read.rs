//! Counts and sums of ranges of the key, on blocks as they are encoded: slots all of whose rows are in the
//! range are folded; others are selected by their keys first.

use entasis_storage::{Condition, Datum, RowId, TableSnapshot, ValueRange};
use entasis_vector::{PhysicalType, Vector};
use std::ops::{Bound, Range};

/// Slots that are selected from at once: what a vector holds.
const WINDOW: usize = 2048;

fn condition(low: i64, high: i64) -> [Condition; 1] {
    let (low, high) = (low.into(), high.into());
    [Condition::Range(ValueRange { column: 0, physical: PhysicalType::I64, low, high })]
}

/// Slots in windows.
fn windows(slots: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = slots.end;
    slots.step_by(WINDOW).map(move |start| start..end.min(start + WINDOW))
}

/// The number of rows with keys within bounds, both included, and the sum of some columns over them.
pub fn fold(snapshot: &TableSnapshot, low: i64, high: i64, columns: &[usize]) -> (u64, i64) {
    let condition = condition(low, high);
    let (low, high) = ([Datum::Integer(low.into())], [Datum::Integer(high.into())]);
    let (mut count, mut sum, mut positions) = (0, 0, Vec::new());
    let mut values = Vector::new(PhysicalType::I32);
    for range in snapshot.scan_range(Bound::Included(&low[..]), Bound::Included(&high[..])) {
        let group = snapshot.row_group(range.group).expect("it has the range");
        if range.is_whole {
            count += group.live_rows(range.slots.clone()) as u64;
            if columns.is_empty() {
                continue;
            }
            let (start, mut runs) = (range.slots.start, Vec::new());
            group.each_run(range.slots, |run| runs.push(start + run.start..start + run.end));
            let sums = columns.iter().map(|&column| group.sum_runs(column, PhysicalType::I32, &runs) as i64);
            sum += sums.sum::<i64>();
            continue;
        }
        for slots in windows(range.slots) {
            positions.clear();
            group.select_runs(&condition, std::slice::from_ref(&slots), &mut positions);
            count += positions.len() as u64;
            for &column in columns.iter().filter(|_| !positions.is_empty()) {
                group.decode_selected(column, slots.start, &positions, slots.len(), &mut values);
                let values = values.values::<i32>();
                sum += positions.iter().map(|&at| i64::from(values[at as usize])).sum::<i64>();
            }
        }
    }
    (count, sum)
}

/// The rows with keys within bounds, by a scan of all row groups.
pub fn rows(snapshot: &TableSnapshot, low: i64, high: i64) -> impl Iterator<Item = RowId> {
    let condition = condition(low, high);
    snapshot.row_groups().enumerate().flat_map(move |(number, group)| {
        let mut found = Vec::new();
        for slots in windows(0..group.slots()) {
            let mut positions = Vec::new();
            group.select_runs(&condition, std::slice::from_ref(&slots), &mut positions);
            let row = |at: u16| RowId { group: number as u32, slot: (slots.start + at as usize) as u32 };
            found.extend(positions.into_iter().map(row));
        }
        found
    })
}
