//! Calls of functions of other libraries, which take contiguous rows.

use super::ExternalFunction;
use super::kernels::{Operand, Rows, operand};
use crate::buffer::Native;
use crate::types::PhysicalType;
use crate::vector::{Encoding, Vector};
use crate::{CHUNK_ROWS, Result, bitmap};

/// Scratch for functions that need contiguous rows.
#[derive(Debug)]
pub(super) struct External {
    args: Vec<Vector>,
    result: Vector,
}

impl External {
    /// Scratch with a vector for results.
    pub(super) fn new(result: Vector) -> External {
        External { args: Vec::new(), result }
    }

    /// Calls the function with contiguous rows, and puts the results at the rows' positions.
    pub(super) fn evaluate<'v>(
        &mut self,
        function: &dyn ExternalFunction,
        args: impl Iterator<Item = &'v Vector>,
        rows: Rows<'_>,
        out: &mut Vector,
    ) -> Result<()> {
        self.args.clear();
        let mut constant = !function.is_volatile();
        for arg in args {
            constant &= arg.is_constant();
            self.args.push(match rows {
                Rows::Sparse(list, _) if !arg.is_constant() => {
                    let mut dense = Vector::new(arg.physical());
                    arg.flatten_into(Some(list), list.len(), &mut dense);
                    dense
                }
                _ => arg.clone(),
            });
        }
        let done = match rows {
            _ if constant => function.evaluate(&self.args, 1, out).map(|()| {
                if out.encoding() == Encoding::Flat {
                    out.make_constant();
                }
            }),
            Rows::Dense(n) => function.evaluate(&self.args, n, out),
            Rows::Sparse(list, limit) => {
                if self.result.physical() != out.physical() {
                    self.result = Vector::new(out.physical());
                }
                function.evaluate(&self.args, list.len(), &mut self.result).map(|()| {
                    scatter(&self.result, list, limit, out);
                })
            }
        };
        self.args.clear();
        done
    }
}

/// Puts value i of `source` to position `list[i]` of `out`.
fn scatter(source: &Vector, list: &[u16], limit: usize, out: &mut Vector) {
    fn copy<T: Native>(source: &Vector, list: &[u16], out: &mut Vector) {
        let source: Operand<'_, T> = operand(source);
        let out = out.values_mut::<T>();
        list.iter().enumerate().for_each(|(i, &p)| out[p as usize] = source.get(i));
    }
    let mut flat = Vector::new(source.physical());
    let source = if source.encoding() == Encoding::Dictionary {
        source.flatten_into(None, list.len(), &mut flat);
        &flat
    } else {
        source
    };
    out.begin(limit.max(CHUNK_ROWS));
    out.share_strings(source);
    match out.physical() {
        PhysicalType::Str => copy::<crate::StringView>(source, list, out),
        other => match other.width() {
            1 => copy::<u8>(source, list, out),
            2 => copy::<u16>(source, list, out),
            4 => copy::<u32>(source, list, out),
            8 => copy::<u64>(source, list, out),
            _ => copy::<i128>(source, list, out),
        },
    }
    if source.validity().is_some() {
        let target = out.validity_mut(limit);
        list.iter().enumerate().for_each(|(i, &p)| bitmap::set(target, p as usize, source.is_valid(i)));
    }
}
