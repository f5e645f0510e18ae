//! Columns of several files as columns of one relation.
//!
//! Values never change on their way from a file to the relation: the type of a column holds the values of
//! each file exactly ([`joined`]), or there is no such type, which is an error.

use entasis_vector::{DataType, Field, Result, Value, Vector};

/// The source of a column's values in one file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    /// The file's own column of that number.
    Column(usize),
    /// One value for all rows of the file: NULL if it lacks the column, its path, or a value from the name of
    /// a directory.
    Value(Value),
}

/// Makes the vectors of those of `columns` that have one value in the whole file, and empty vectors for those
/// that had one value in the previous file.
///
/// # Errors
/// Internal, if a value is not of its column's type.
pub(super) fn write_constants(
    vectors: &mut [Vector],
    columns: &[usize],
    schema: &[Field],
    origins: &[Origin],
) -> Result<()> {
    for (vector, &column) in vectors.iter_mut().zip(columns) {
        let ty = schema[column].ty.physical();
        *vector = match &origins[column] {
            Origin::Value(value) => Vector::constant(ty, value)?,
            Origin::Column(_) if vector.is_constant() => Vector::new(ty),
            Origin::Column(_) => continue,
        };
    }
    Ok(())
}

/// The index of a name among others: one with the same spelling, or else one that differs only in case.
pub(super) fn place_of<'a>(name: &str, mut names: impl Iterator<Item = &'a str> + Clone) -> Option<usize> {
    names.clone().position(|own| own == name).or_else(|| names.position(|own| own.eq_ignore_ascii_case(name)))
}

/// The narrowest type that holds every value of both exactly.
pub(super) fn joined(a: DataType, b: DataType) -> Option<DataType> {
    use DataType::*;
    if a == b {
        return Some(a);
    }
    match (a, b) {
        (Null, other) | (other, Null) => Some(other),
        (Date, Timestamp) | (Timestamp, Date) => Some(Timestamp),
        (Float32, Float64) | (Float64, Float32) => Some(Float64),
        (Float64, integer) | (integer, Float64) => is_within(integer, 53).then_some(Float64),
        (Float32, integer) | (integer, Float32) if is_within(integer, 24) => Some(Float32),
        (Float32, integer) | (integer, Float32) => is_within(integer, 53).then_some(Float64),
        _ if a.is_integer() && b.is_integer() => {
            let ((a_min, a_max), (b_min, b_max)) = (a.integer_range()?, b.integer_range()?);
            let holds = |ty: &DataType| {
                ty.integer_range()
                    .is_some_and(|(min, max)| min <= a_min.min(b_min) && max >= a_max.max(b_max))
            };
            let wider = [Int16, UInt16, Int32, UInt32, Int64, UInt64].into_iter().find(holds);
            Some(wider.unwrap_or(Decimal { precision: 20, scale: 0 }))
        }
        _ => {
            let ((a_whole, a_scale), (b_whole, b_scale)) = (digits(a)?, digits(b)?);
            let scale = a_scale.max(b_scale);
            let precision = a_whole.max(b_whole) + scale;
            (precision <= 38).then_some(Decimal { precision, scale })
        }
    }
}

/// True for integer types with at most this many bits besides the sign.
fn is_within(ty: DataType, bits: u32) -> bool {
    ty.is_integer() && ty.integer_range().is_some_and(|(min, max)| min >= -(1 << bits) && max <= 1 << bits)
}

/// The most digits that numbers of a type have before and after the decimal point.
fn digits(ty: DataType) -> Option<(u8, u8)> {
    match ty {
        DataType::Decimal { precision, scale } => Some((precision - scale, scale)),
        ty if ty.is_integer() => ty.integer_range().map(|(_, max)| (max.ilog10() as u8 + 1, 0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_type_holds_both() {
        use DataType::*;
        let decimal = |precision, scale| Decimal { precision, scale };
        for (a, b, expected) in [
            (Int8, Int16, Some(Int16)),
            (UInt8, Int8, Some(Int16)),
            (UInt32, Int64, Some(Int64)),
            (UInt32, Int8, Some(Int64)),
            (UInt64, Int8, Some(decimal(20, 0))),
            (Int32, Float32, Some(Float64)),
            (Int16, Float32, Some(Float32)),
            (Int64, Float64, None),
            (Date, Timestamp, Some(Timestamp)),
            (Timestamp, TimestampTz, None),
            (Int64, Varchar, None),
            (Null, Varchar, Some(Varchar)),
            (Int32, decimal(5, 2), Some(decimal(12, 2))),
            (decimal(10, 0), decimal(5, 4), Some(decimal(14, 4))),
            (decimal(38, 0), decimal(5, 4), None),
            (decimal(5, 4), Float64, None),
            (Boolean, Int8, None),
        ] {
            assert_eq!((joined(a, b), joined(b, a)), (expected, expected), "{a} and {b}");
        }
        for a in DataType::ALL {
            assert_eq!(joined(a, a), Some(a));
            for b in DataType::ALL {
                // The joined type, joined with either, remains the same.
                if let Some(both) = joined(a, b) {
                    assert_eq!((joined(both, a), joined(both, b)), (Some(both), Some(both)), "{a} and {b}");
                }
            }
        }
    }
}
