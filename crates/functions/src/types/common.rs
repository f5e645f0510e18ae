//! The common type of several expressions: of a set operation's inputs, the results of CASE, the elements of
//! a list, the operands of a comparison.
//!
//! One fold over what is given, however many they are: settled types first, written ones adopt the outcome.
//!
//! | of these | the common type |
//! |---|---|
//! | integers | the narrowest that holds both; BIGINT and UBIGINT: DECIMAL(20,0) |
//! | an exact number and a decimal | the more digits before and after the point |
//! | a float and an integer | the float; a float and a decimal: DOUBLE |
//! | DATE, TIMESTAMP, TIMESTAMPTZ | the later in this order; of DATE, TIMESTAMP and TIMESTAMP_NS likewise |
//! | TIME and TIMETZ | TIMETZ |
//! | JSON or an ENUM, and a column of texts | VARCHAR |
//! | two ENUMs | VARCHAR, but for an order |
//! | lists, maps, structs | by elements; by keys and values; the fields of both, by name |
//! | arrays `T[n]` | by elements; a list, if their lengths differ or one is a list |
//! | a column of texts and another type | see [`Meeting`] |
//! | a written number | the settled number type if it holds it, else as its own type |
//! | a written text | the type of all others; the value must be one |
//! | NULL, a parameter | the type of all others |

use super::Given;
use super::decimal::Digits;
use entasis_vector::DataType;
use entasis_vector::types::StructField;

/// Where expressions meet: what becomes of a column of texts beside another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meeting {
    /// Inputs of a set operation: both become texts.
    Union,
    /// `=`, `<>`, IN: the texts become the other type.
    Equality,
    /// An order, BETWEEN, CASE, `coalesce`, lists: an error.
    Strict,
}

/// What a fold has seen.
#[derive(Debug, Default)]
struct Seen {
    /// The common type of what is settled, but for texts.
    known: Option<DataType>,
    /// What is settled has no common type.
    clash: bool,
    /// A column of bytes, which never meet texts.
    has_blob: bool,
    /// A column of texts.
    has_column_of_text: bool,
    /// A text that was written.
    has_text: bool,
    /// The least and the greatest written integer.
    integers: Option<(i64, i64)>,
    /// The most digits of written decimals.
    decimal: Option<Digits>,
}

/// The common type of all these; `None` if there is none. [`DataType::Null`] if nothing says a type.
pub fn common(given: impl IntoIterator<Item = Given>, meeting: Meeting) -> Option<DataType> {
    let mut seen = Seen::default();
    for given in given {
        match given {
            Given::Known(DataType::Null) | Given::Null | Given::Parameter(_) => {}
            Given::Known(DataType::Varchar) => seen.has_column_of_text = true,
            Given::Known(ty) => {
                seen.has_blob |= ty == DataType::Blob;
                match seen.known {
                    None => seen.known = Some(ty),
                    Some(known) => match of_two(known, ty, meeting) {
                        None => seen.clash = true,
                        common => seen.known = common,
                    },
                }
            }
            Given::Text => seen.has_text = true,
            Given::Integer(value) => {
                let (low, high) = seen.integers.unwrap_or((value, value));
                seen.integers = Some((low.min(value), high.max(value)));
            }
            Given::Decimal { .. } => {
                let own = Digits::of(given)?;
                seen.decimal = Some(seen.decimal.map_or(own, |digits| digits.common(own)));
            }
        }
    }
    let numbers = seen.numbers();
    if seen.has_column_of_text {
        match (seen.known, meeting) {
            _ if seen.has_blob => return None,
            (None, _) if numbers.is_none() => return Some(DataType::Varchar),
            (Some(DataType::Json | DataType::Enum(_)), _) if !seen.clash && numbers.is_none() => {
                return Some(DataType::Varchar);
            }
            (_, Meeting::Union) => return Some(DataType::Varchar),
            (_, Meeting::Strict) => return None,
            (_, Meeting::Equality) => {}
        }
    }
    if seen.clash {
        return None;
    }
    match (seen.known, numbers) {
        (Some(known), None) => Some(known),
        (None, Some(number)) => Some(number.settled()),
        (None, None) if seen.has_text => Some(DataType::Varchar),
        (None, None) => Some(DataType::Null),
        (Some(known), Some(_)) => seen.adopted(known, meeting),
    }
}

/// The common type of arguments whose types are settled: texts become the other type, as for `=`.
pub fn common_of(types: &[DataType]) -> Option<DataType> {
    common(types.iter().copied().map(Given::of), Meeting::Equality)
}

impl Seen {
    /// One number that stands for all that were written.
    fn numbers(&self) -> Option<Given> {
        let widest = self.integers.map(|(low, high)| {
            // The one with more digits, or the negative of two with as many.
            let is_low = low < 0 && (low.unsigned_abs() > high.unsigned_abs() || high < 0);
            Given::Integer(if is_low { low } else { high })
        });
        match (widest, self.decimal) {
            (None, None) => None,
            (Some(integer), None) => Some(integer),
            (integer, Some(decimal)) => {
                let digits = integer.and_then(Digits::of).map_or(decimal, |own| own.common(decimal));
                match digits.ty() {
                    DataType::Decimal { precision, scale } => Some(Given::Decimal { precision, scale }),
                    _ => None,
                }
            }
        }
    }

    /// The type of written numbers and a settled type.
    fn adopted(&self, known: DataType, meeting: Meeting) -> Option<DataType> {
        let mut ty = known;
        if let Some((low, high)) = self.integers {
            let fits = |ty: DataType| {
                ty.is_integer()
                    && ty
                        .integer_range()
                        .is_some_and(|range| range.0 <= low.into() && i128::from(high) <= range.1)
            };
            ty = match ty {
                ty if fits(ty) || ty.is_float() => ty,
                // A decimal has the digits of what was written, an integer the range of its type.
                ty @ DataType::Decimal { .. } => {
                    let digits = [low, high].map(|value| Digits::of(Given::Integer(value)));
                    let [Some(low), Some(high)] = digits else { return None };
                    Digits::of_type(ty)?.common(low).common(high).ty()
                }
                ty => {
                    let own = Given::Integer(if Given::Integer(low).settled() == DataType::Int64 {
                        low
                    } else {
                        high
                    });
                    of_two(ty, own.settled(), meeting)?
                }
            };
        }
        if let Some(digits) = self.decimal {
            ty = match ty {
                ty if ty.is_float() => ty,
                ty => of_two(ty, digits.ty(), meeting)?,
            };
        }
        Some(ty)
    }
}

/// The common type of two that are settled.
fn of_two(a: DataType, b: DataType, meeting: Meeting) -> Option<DataType> {
    use DataType as T;
    Some(match (a, b) {
        _ if a == b => a,
        (T::Null, other) | (other, T::Null) => other,
        (T::Varchar, T::Json | T::Enum(_)) | (T::Json | T::Enum(_), T::Varchar) => T::Varchar,
        (T::Enum(_), T::Enum(_)) if meeting != Meeting::Strict => T::Varchar,
        (T::Varchar, other) | (other, T::Varchar) => match meeting {
            Meeting::Union if !matches!(other, T::Blob) => T::Varchar,
            Meeting::Equality if other != T::Blob => other,
            _ => return None,
        },
        (a, b) if a.is_float() || b.is_float() => match (a, b) {
            (T::Float32, other) | (other, T::Float32) if other.is_integer() => T::Float32,
            (a, b) if a.is_numeric() && b.is_numeric() => T::Float64,
            _ => return None,
        },
        (a, b) if a.is_integer() && b.is_integer() => narrowest(a, b)?,
        (a, b) if a.is_numeric() && b.is_numeric() => Digits::of_type(a)?.common(Digits::of_type(b)?).ty(),
        (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => T::Timestamp,
        (T::Date | T::Timestamp, T::TimestampNs) | (T::TimestampNs, T::Date | T::Timestamp) => T::TimestampNs,
        (T::Date | T::Timestamp, T::TimestampTz) | (T::TimestampTz, T::Date | T::Timestamp) => T::TimestampTz,
        (T::Time, T::TimeTz) | (T::TimeTz, T::Time) => T::TimeTz,
        (T::Array(a, length), T::Array(b, other)) if length == other => {
            T::array(of_two(*a, *b, meeting)?, length.into()).ok()?
        }
        (T::List(a) | T::Array(a, _), T::List(b) | T::Array(b, _)) => T::list(of_two(*a, *b, meeting)?),
        (T::Map(_), T::Map(_)) => {
            let ((own_key, own), (other_key, other)) = (a.key_and_value()?, b.key_and_value()?);
            T::map(of_two(own_key, other_key, meeting)?, of_two(own, other, meeting)?)
        }
        (T::Struct(a), T::Struct(b)) => {
            let find = |fields: &'static [StructField], name: &str| {
                fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.ty)
            };
            let own = a.iter().map(|field| match find(b, field.name) {
                Some(other) => Some((field.name, of_two(field.ty, other, meeting)?)),
                None => Some((field.name, field.ty)),
            });
            let others = b.iter().filter(|field| find(a, field.name).is_none());
            let others = others.map(|field| Some((field.name, field.ty)));
            T::structure(own.chain(others).collect::<Option<Vec<_>>>()?)
        }
        _ => return None,
    })
}

/// The narrowest type that holds the integers of two.
fn narrowest(a: DataType, b: DataType) -> Option<DataType> {
    use DataType as T;
    let (a, b) = (a.integer_range()?, b.integer_range()?);
    let holds = |ty: &T| ty.integer_range().is_some_and(|r| r.0 <= a.0.min(b.0) && r.1 >= a.1.max(b.1));
    let integers = [T::UInt8, T::Int8, T::UInt16, T::Int16, T::UInt32, T::Int32, T::UInt64, T::Int64];
    Some(integers.into_iter().find(holds).unwrap_or(T::Decimal { precision: 20, scale: 0 }))
}
