//! Align: a stream's columns in another order, fewer or repeated, each in the requested physical type.
//!
//! Order and physical types matter where streams meet (`UNION`), where an operator keeps all columns of its
//! input (a sort), and where a result leaves the engine. Only decimals change their physical type: a 64-bit
//! one is widened to 128 bits, and a 128-bit one whose type needs no more than 64 is narrowed. All other
//! columns pass through with their selection.

use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Error, PhysicalType, Result, Selection, Vector};

/// Reorders and converts columns.
#[derive(Debug)]
pub(crate) struct Align {
    /// For each output column, its position in the input, and the type that it is converted to, if any.
    columns: Vec<(usize, Option<PhysicalType>)>,
}

impl Align {
    /// The `input` columns at `positions`, in the physical types of `output`.
    ///
    /// # Errors
    /// Internal, if the types differ in more than the width of decimals.
    pub(crate) fn new(input: &[ColumnMeta], positions: &[usize], output: &[ColumnMeta]) -> Result<Align> {
        let columns = positions.iter().zip(output).map(|(&position, to)| {
            match (input[position].physical, to.physical) {
                (from, ty) if from == ty => Ok((position, None)),
                (PhysicalType::I64, PhysicalType::I128) | (PhysicalType::I128, PhysicalType::I64) => {
                    Ok((position, Some(to.physical)))
                }
                (from, ty) => Err(Error::internal(format!("a column cannot change from {from:?} to {ty:?}"))),
            }
        });
        Ok(Align { columns: columns.collect::<Result<_>>()? })
    }
}

impl OperatorFactory for Align {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        let changed =
            self.columns.iter().map(|(_, ty)| Vector::new(ty.unwrap_or(PhysicalType::I64))).collect();
        Ok(Box::new(Worker {
            columns: self.columns.clone(),
            changed,
            flat: Vector::new(PhysicalType::I64),
            output: Chunk::new(),
        }))
    }
}

struct Worker {
    columns: Vec<(usize, Option<PhysicalType>)>,
    changed: Vec<Vector>,
    flat: Vector,
    output: Chunk,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let output = &mut self.output;
        output.reset(chunk.len());
        for group in chunk.groups() {
            output.push_group(group.clone());
        }
        let mut dense = None;
        for ((position, change), changed) in self.columns.iter().zip(&mut self.changed) {
            if let Some(ty) = change {
                chunk.flatten_column(*position, &mut self.flat);
                match ty {
                    PhysicalType::I128 => widen(&self.flat, chunk.len(), changed),
                    _ => narrow(&self.flat, chunk.len(), changed),
                }
                let group = *dense.get_or_insert_with(|| output.push_group(Selection::ALL));
                output.push_column(changed.clone(), group);
            } else {
                let column = chunk.column(*position);
                output.push_column(column.vector.clone(), column.group);
            }
        }
        let flow = next.push(output);
        self.output.reset(0);
        flow
    }
}

/// The first `rows` positions of a flat vector of 64-bit integers as 128-bit ones.
pub(crate) fn widen(flat: &Vector, rows: usize, out: &mut Vector) {
    let values = out.begin_flat::<i128>(rows.max(entasis_vector::CHUNK_ROWS));
    for (to, &from) in values.iter_mut().zip(&flat.values::<i64>()[..rows]) {
        *to = from.into();
    }
    out.set_validity(flat.validity_buffer().cloned());
}

/// The first `rows` positions of a flat vector of 128-bit integers, which fit 64 bits, as 64-bit ones.
fn narrow(flat: &Vector, rows: usize, out: &mut Vector) {
    let values = out.begin_flat::<i64>(rows.max(entasis_vector::CHUNK_ROWS));
    for (to, &from) in values.iter_mut().zip(&flat.values::<i128>()[..rows]) {
        // A value that does not fit is at a NULL position.
        *to = from as i64;
    }
    out.set_validity(flat.validity_buffer().cloned());
}
