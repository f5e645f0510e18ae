//! A median of BIGINTs, as a library may give it to the engine.

use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use entasis_vector::{Result, Value, Vector};
use std::any::Any;
use std::ops::RangeInclusive;

/// The aggregate.
#[derive(Debug)]
pub struct Median;

struct States(Vec<Vec<i64>>);

impl ExternalAggregate for Median {
    fn name(&self) -> &str {
        "median"
    }
    fn state(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(States(Vec::new())))
    }
    fn decisive(&self, count: usize) -> Option<RangeInclusive<usize>> {
        Some((count - 1) / 2..=count / 2)
    }
}

impl GroupStates for States {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        self.0.resize(group_count, Vec::new());
        for (row, &group) in groups[..rows].iter().enumerate().filter(|(row, _)| args[0].is_valid(*row)) {
            let position = if args[0].is_constant() { 0 } else { row };
            self.0[group as usize].push(args[0].values::<i64>()[position]);
        }
        Ok(())
    }
    fn merge(&mut self, _: Box<dyn GroupStates>, _: &[u32], _: usize) -> Result<()> {
        unreachable!("one worker has all states")
    }
    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        out.begin(rows);
        for row in 0..rows {
            let values = &mut self.0[start + row];
            values.sort_unstable();
            let last = values.len().checked_sub(1);
            let median = last.map(|last| (values[last / 2] + values[values.len() / 2]) as f64 / 2.0);
            out.write_value(row, &median.map_or(Value::Null, Value::Float))?;
        }
        Ok(())
    }
    fn bytes(&self) -> usize {
        self.0.iter().map(|values| values.capacity() * 8).sum()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
