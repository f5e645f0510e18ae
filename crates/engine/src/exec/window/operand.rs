//! What a function takes besides its first argument: an offset, a number of buckets. It is mostly a constant,
//! which is not kept with every row.

use super::section::Section;
use entasis_vector::{Error, Interval, PhysicalType, Result, Value, Vector};
use std::ops::Range;

/// A constant, or a column of the rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// The same for all rows.
    Constant(Value),
    /// The column.
    Column(usize),
}

impl Operand {
    /// Its values at `positions`, integers, in order.
    ///
    /// # Errors
    /// Internal, if they are no integers.
    pub fn integers(
        &self,
        section: &Section,
        positions: Range<usize>,
        out: &mut Vec<Option<i128>>,
    ) -> Result<()> {
        out.clear();
        match self {
            Operand::Constant(Value::Null) => out.extend(std::iter::repeat_n(None, positions.len())),
            Operand::Constant(Value::Integer(v)) => {
                out.extend(std::iter::repeat_n(Some(*v), positions.len()))
            }
            Operand::Constant(other) => return Err(Error::internal(format!("{other:?} is no integer"))),
            Operand::Column(column) => {
                let mut vector = Vector::new(PhysicalType::I64);
                section.read(*column, positions.clone(), &mut vector);
                macro_rules! copy {
                    ($t:ty) => {
                        out.extend(vector.values::<$t>()[..positions.len()].iter().map(|&v| Some(v as i128)))
                    };
                }
                match vector.physical() {
                    PhysicalType::I8 => copy!(i8),
                    PhysicalType::I16 => copy!(i16),
                    PhysicalType::I32 => copy!(i32),
                    PhysicalType::I64 => copy!(i64),
                    PhysicalType::I128 => copy!(i128),
                    PhysicalType::U8 => copy!(u8),
                    PhysicalType::U16 => copy!(u16),
                    PhysicalType::U32 => copy!(u32),
                    PhysicalType::U64 => copy!(u64),
                    other => return Err(Error::internal(format!("{other:?} where integers are wanted"))),
                }
                blank(&vector, out);
            }
        }
        Ok(())
    }

    /// Its values at `positions`, floats.
    ///
    /// # Errors
    /// Internal, if they are no floats.
    pub fn floats(
        &self,
        section: &Section,
        positions: Range<usize>,
        out: &mut Vec<Option<f64>>,
    ) -> Result<()> {
        out.clear();
        match self {
            Operand::Constant(Value::Null) => out.extend(std::iter::repeat_n(None, positions.len())),
            Operand::Constant(Value::Float(v)) => out.extend(std::iter::repeat_n(Some(*v), positions.len())),
            Operand::Constant(other) => return Err(Error::internal(format!("{other:?} is no float"))),
            Operand::Column(column) => {
                let mut vector = Vector::new(PhysicalType::F64);
                section.read(*column, positions.clone(), &mut vector);
                match vector.physical() {
                    PhysicalType::F32 => {
                        out.extend(vector.values::<f32>()[..positions.len()].iter().map(|&v| Some(v.into())));
                    }
                    PhysicalType::F64 => {
                        out.extend(vector.values::<f64>()[..positions.len()].iter().map(|&v| Some(v)));
                    }
                    other => return Err(Error::internal(format!("{other:?} where floats are wanted"))),
                }
                blank(&vector, out);
            }
        }
        Ok(())
    }

    /// Its values at `positions`, intervals.
    ///
    /// # Errors
    /// Internal, if they are no intervals.
    pub fn intervals(
        &self,
        section: &Section,
        positions: Range<usize>,
        out: &mut Vec<Option<Interval>>,
    ) -> Result<()> {
        out.clear();
        match self {
            Operand::Constant(Value::Null) => out.extend(std::iter::repeat_n(None, positions.len())),
            Operand::Constant(Value::Interval(v)) => {
                out.extend(std::iter::repeat_n(Some(*v), positions.len()))
            }
            Operand::Constant(other) => return Err(Error::internal(format!("{other:?} is no interval"))),
            Operand::Column(column) => {
                let mut vector = Vector::new(PhysicalType::Interval);
                section.read(*column, positions.clone(), &mut vector);
                if vector.physical() != PhysicalType::Interval {
                    return Err(Error::internal(format!(
                        "{:?} where intervals are wanted",
                        vector.physical()
                    )));
                }
                out.extend(vector.values::<Interval>()[..positions.len()].iter().map(|&v| Some(v)));
                blank(&vector, out);
            }
        }
        Ok(())
    }
}

/// Takes out what is NULL.
fn blank<T>(vector: &Vector, values: &mut [Option<T>]) {
    if vector.validity().is_some() {
        values
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| !vector.is_valid(*i))
            .for_each(|(_, value)| *value = None);
    }
}
