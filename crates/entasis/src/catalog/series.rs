//! `generate_series(start, stop[, step])` and `range([start,] stop[, step])`: integers, computed as they are
//! read.

use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{ColumnStatistics, Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_functions::Argument;
use entasis_vector::{Chunk, DataType, Error, Field, PhysicalType, Result, Schema, Selection, Value, Vector};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a morsel.
const MORSEL_ROWS: u64 = 128 * 1024;

/// The numbers `start + i * step` for i below `rows`.
#[derive(Debug)]
struct Series {
    name: &'static str,
    schema: Schema,
    start: i64,
    step: i64,
    rows: u64,
}

/// The relation of a call. `generate_series` includes its stop, as in PostgreSQL; `range` does not, as in
/// Python.
pub(super) fn series(
    name: &'static str,
    args: &[(Option<String>, Argument)],
    inclusive: bool,
) -> Result<Arc<dyn Relation>> {
    if let Some(option) = args.iter().find_map(|(option, _)| option.as_ref()) {
        return Err(Error::input(format!("{name} has no option {option}")));
    }
    let numbers =
        args.iter()
            .map(|(_, value)| match value {
                Argument::Value(Value::Integer(v), ty) if ty.is_integer() => i64::try_from(*v)
                    .map_err(|_| Error::input(format!("{name}: {v} is out of range for BIGINT"))),
                _ => Err(Error::input(format!("{name} takes integers"))),
            })
            .collect::<Result<Vec<i64>>>()?;
    let (start, stop, step) = match numbers[..] {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] => (start, stop, step),
        _ => return Err(Error::input(format!("{name} takes one to three integers: [start,] stop[, step]"))),
    };
    if step == 0 {
        return Err(Error::input(format!("{name}: the step must not be zero")));
    }
    // The distance in the direction of the step; if negative, there are no rows.
    let distance = (stop as i128 - start as i128) * (step as i128).signum();
    let step_size = (step as i128).abs();
    let rows = match distance {
        d if d < 0 => 0,
        d if inclusive => d / step_size + 1,
        d => (d + step_size - 1) / step_size,
    };
    let schema = vec![Field { name: name.into(), ty: DataType::Int64, nullable: false }];
    let rows = u64::try_from(rows).map_err(|_| Error::input(format!("{name}: too many rows")))?;
    Ok(Arc::new(Series { name, schema, start, step, rows }))
}

impl Relation for Series {
    fn name(&self) -> &str {
        self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        let last = self.start as i128 + self.step as i128 * self.rows.saturating_sub(1) as i128;
        let (low, high) = (last.min(self.start as i128), last.max(self.start as i128));
        let column = ColumnStatistics {
            min: Some(Value::Integer(low)),
            max: Some(Value::Integer(high)),
            nulls: Some(0),
            distinct: Some(self.rows),
            bounds_are_exact: true,
        };
        Statistics { rows: Some(self.rows), columns: vec![column] }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(SeriesScan {
            next: Arc::default(),
            start: self.start,
            step: self.step,
            rows: self.rows,
            columns: request.columns.len(),
            chunk_rows: context.settings.chunk_rows,
        }))
    }
}

/// A scan: workers take morsels from `next`.
#[derive(Clone)]
struct SeriesScan {
    next: Arc<AtomicU64>,
    start: i64,
    step: i64,
    rows: u64,
    columns: usize,
    chunk_rows: usize,
}

impl Source for SeriesScan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let vector = Vector::new(PhysicalType::I64);
        Ok(Box::new(SeriesWorker { scan: self.clone(), morsel: 0, at: 0, end: 0, vector }))
    }

    fn progress(&self) -> Option<f64> {
        let taken = self.next.load(Ordering::Relaxed).saturating_mul(MORSEL_ROWS).min(self.rows);
        Some(taken as f64 / self.rows.max(1) as f64)
    }
}

struct SeriesWorker {
    scan: SeriesScan,
    morsel: u64,
    at: u64,
    end: u64,
    vector: Vector,
}

impl SourceWorker for SeriesWorker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        if self.at == self.end {
            self.morsel = self.scan.next.fetch_add(1, Ordering::Relaxed);
            self.at = self.morsel.saturating_mul(MORSEL_ROWS);
            self.end = self.at.saturating_add(MORSEL_ROWS).min(self.scan.rows);
            if self.at >= self.scan.rows {
                self.end = self.at;
                return Ok(false);
            }
        }
        let rows = (self.end - self.at).min(self.scan.chunk_rows as u64) as usize;
        let first = self.scan.start.wrapping_add(self.scan.step.wrapping_mul(self.at as i64));
        let step = self.scan.step;
        chunk.reset(rows);
        let group = chunk.push_group(Selection::ALL);
        let mut value = first;
        for slot in &mut self.vector.begin_flat::<i64>(rows)[..rows] {
            *slot = value;
            value = value.wrapping_add(step);
        }
        for _ in 0..self.scan.columns {
            chunk.push_column(self.vector.clone(), group);
        }
        self.at += rows as u64;
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.morsel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(args: &[i128], inclusive: bool) -> Vec<i64> {
        let args: Vec<_> =
            args.iter().map(|v| (None, Argument::Value(Value::Integer(*v), DataType::Int64))).collect();
        let relation = series("range", &args, inclusive).unwrap();
        let request = ScanRequest::all(vec![(entasis_vector::ColumnId(0), 0)]);
        let mut worker = relation.scan(&request, &QueryContext::default()).unwrap().worker().unwrap();
        let (mut chunk, mut out) = (Chunk::new(), vec![]);
        while worker.next(&mut chunk).unwrap() {
            out.extend_from_slice(&chunk.vector(0).values::<i64>()[..chunk.len()]);
        }
        out
    }

    #[test]
    fn series_count_up_and_down_to_their_stop() {
        assert_eq!(numbers(&[3], false), [0, 1, 2]);
        assert_eq!(numbers(&[1, 4], true), [1, 2, 3, 4]);
        assert_eq!(numbers(&[5, 1, -2], true), [5, 3, 1]);
        assert_eq!(numbers(&[5, 1, -2], false), [5, 3]);
        assert_eq!(numbers(&[5, 1], true), [0i64; 0]);
        assert_eq!(numbers(&[0, 300_000], false).len(), 300_000);
    }
}
