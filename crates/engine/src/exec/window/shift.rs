//! `lag` and `lead`: the value of a row at a given distance before or after.
//!
//! A call finds a row; its value is then gathered like any other. Rows whose value is NULL may be ignored:
//! then the list of rows that count gives the row at that distance.

use super::counted::Counted;
use super::operand::Operand;
use super::section::{Places, Section};
use super::view::View;
use crate::exec::materialized::Materialized;
use entasis_vector::{CHUNK_ROWS, PhysicalType, Result, StringView, Value, Vector};

/// A call of `lag` or `lead`.
#[derive(Debug)]
pub struct Shift {
    /// The column of the value.
    pub value: usize,
    /// How many rows away.
    pub offset: Operand,
    /// The column of the default, where there is no such row; without one, NULL.
    pub default: Option<usize>,
    /// True: after the row; false: before it.
    pub leads: bool,
    /// The state that tells which rows count, if not all do.
    pub counted: Option<usize>,
}

impl Shift {
    /// Finds the rows whose values the rows at `places` get, and which of these get the default. `counted`
    /// has the rows that count, if not all do.
    ///
    /// # Errors
    /// Internal, if the offset is no integer.
    pub fn find(
        &self,
        counted: Option<&Counted>,
        section: &Section,
        places: &Places,
        ids: &mut Vec<u32>,
        defaulted: &mut Vec<usize>,
    ) -> Result<()> {
        if let (Operand::Constant(Value::Integer(offset)), None, None) = (&self.offset, counted, self.default)
        {
            // PERF: most calls are like this.
            // No partition has so many rows.
            let offset = (*offset).clamp(-i128::from(u32::MAX), u32::MAX.into()) as i64;
            let moved = if self.leads { offset } else { -offset };
            let partitions = places.partition_start.iter().zip(&places.partition_end);
            ids.extend(places.rows.clone().zip(partitions).map(|(position, (&start, &end))| {
                let target = section.row(position as u32) + moved;
                let is_there = target >= section.row(start) && target < section.row(end);
                if is_there { section.id(section.position(target)) } else { Materialized::NO_ROW }
            }));
            return Ok(());
        }
        let mut offsets = Vec::new();
        self.offset.integers(section, places.rows.clone(), &mut offsets)?;
        for (row, (position, offset)) in places.rows.clone().zip(offsets).enumerate() {
            let Some(offset) = offset else {
                ids.push(Materialized::NO_ROW);
                continue;
            };
            let offset = if self.leads { offset } else { offset.saturating_neg() };
            let target = match counted {
                Some(counted) if offset != 0 => {
                    let rows = counted.before(places.partition_start[row] as usize).into()
                        ..counted.before(places.partition_end[row] as usize).into();
                    // The first one after this row follows all those up to it.
                    let from =
                        if offset > 0 { counted.before(position + 1) } else { counted.before(position) };
                    let nth = i128::from(from).saturating_add(if offset > 0 { offset - 1 } else { offset });
                    Some(nth).filter(|nth| rows.contains(nth)).map(|nth| counted.nth(nth as u32, section))
                }
                _ => {
                    let [first, after] = [places.partition_start[row], places.partition_end[row]]
                        .map(|end| i128::from(section.row(end)));
                    let target = i128::from(section.row(position as u32)).saturating_add(offset);
                    let is_there = (first..after).contains(&target);
                    is_there.then(|| section.position(target as i64))
                }
            };
            match target {
                Some(target) => ids.push(section.id(target)),
                None => {
                    ids.push(Materialized::NO_ROW);
                    defaulted.push(row);
                }
            }
        }
        Ok(())
    }

    /// Writes the values for the rows. `counted` has the rows that count, if not all do.
    ///
    /// # Errors
    /// Internal, if the offset is no integer.
    pub fn write(&self, counted: Option<&Counted>, view: &View<'_>, out: &mut Vector) -> Result<()> {
        let (section, places) = (view.section, view.places);
        let mut ids = Vec::with_capacity(places.rows.len());
        let mut defaulted = Vec::new();
        self.find(counted, section, places, &mut ids, &mut defaulted)?;
        section.gather(self.value, &ids, out);
        if let Some(default) = self.default.filter(|_| !defaulted.is_empty()) {
            let mut defaults = Vector::new(PhysicalType::Bool);
            section.read(default, places.rows.clone(), &mut defaults);
            put(&defaults, &defaulted, places.rows.len(), out);
        }
        Ok(())
    }
}

/// Puts the values of `from` in `rows` into their places in `out`, which are NULL. Both are flat, of one
/// type, from the same kept rows.
fn put(from: &Vector, rows: &[usize], count: usize, out: &mut Vector) {
    macro_rules! copy {
        ($t:ty) => {{
            let values = from.values::<$t>();
            let to = out.values_mut::<$t>();
            rows.iter().for_each(|&row| to[row] = values[row]);
        }};
    }
    match from.physical() {
        PhysicalType::Str => {
            // Long strings of either may be in the heap that both columns share.
            if let Some(heap) = from.heap().filter(|_| !from.strings_are_stable()) {
                let stable = out.strings_are_stable();
                debug_assert!(stable || out.heap().is_some());
                out.share_heap(heap);
                out.set_strings_stable(false);
            }
            copy!(StringView);
        }
        other => match other.width() {
            1 => copy!(u8),
            2 => copy!(u16),
            4 => copy!(u32),
            8 => copy!(u64),
            _ => copy!(i128),
        },
    }
    let validity = out.validity_mut(count.max(CHUNK_ROWS));
    rows.iter().for_each(|&row| entasis_vector::bitmap::set(validity, row, from.is_valid(row)));
}
