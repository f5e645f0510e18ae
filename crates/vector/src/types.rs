//! Types: the SQL type of a value ([`DataType`]), separate from how a vector holds it ([`PhysicalType`]).
//!
//! A logical type says how a value is compared, printed and computed with. The physical type says which bytes
//! stand for it. Every logical type has a default physical type ([`DataType::physical`]), but where the range
//! of a column is known its values may travel in fewer bits ([`DataType::narrowest`]), so operators consult
//! the *column*, not the type.

mod physical;

pub use physical::PhysicalType;

use crate::labels::Labels;
use crate::time_tz;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The SQL type of a column or expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataType {
    /// The type of a bare `NULL`.
    Null,
    /// `BOOLEAN`
    Boolean,
    /// `TINYINT`
    Int8,
    /// `SMALLINT`
    Int16,
    /// `INTEGER`
    Int32,
    /// `BIGINT`
    Int64,
    /// `UTINYINT`
    UInt8,
    /// `USMALLINT`
    UInt16,
    /// `UINTEGER`
    UInt32,
    /// `UBIGINT`
    UInt64,
    /// `REAL`
    Float32,
    /// `DOUBLE`
    Float64,
    /// `DECIMAL(precision, scale)`: an integer counted in units of 10^-scale.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, at most `precision`.
        scale: u8,
    },
    /// `VARCHAR`: UTF-8 text, compared by bytes.
    Varchar,
    /// `JSON`: a VARCHAR that is JSON, kept as it was written. Compared as a text.
    Json,
    /// `BLOB`: bytes.
    Blob,
    /// `DATE`: days since 1970-01-01, or infinity.
    Date,
    /// `TIME`: microseconds since midnight, up to 24:00:00.
    Time,
    /// `TIME WITH TIME ZONE`: a time of day and the offset of its clock, see [`time_tz`].
    TimeTz,
    /// `TIMESTAMP` (without time zone): microseconds since 1970-01-01 00:00:00, or infinity.
    Timestamp,
    /// `TIMESTAMP_NS` (without time zone): nanoseconds since 1970-01-01 00:00:00, or infinity.
    TimestampNs,
    /// `TIMESTAMPTZ`: microseconds since 1970-01-01 00:00:00 UTC, an instant, or infinity.
    TimestampTz,
    /// `INTERVAL`: months, days and microseconds, stored separately.
    Interval,
    /// `UUID`: 128 bits.
    Uuid,
    /// `ENUM('a', 'b', …)`, which [`DataType::enumeration`] makes: a value is the position of its label.
    Enum(&'static Labels),
    /// `T[]`: a list of values of one type, which [`DataType::list`] makes. A value is bytes, see
    /// [`crate::value::nested`].
    List(&'static DataType),
    /// `STRUCT(name T, …)`, which [`DataType::structure`] makes. A value is bytes, see
    /// [`crate::value::nested`].
    // PERF: a thin pointer, so that a type is 16 bytes.
    Struct(&'static Vec<StructField>),
    /// `T[n]`: a list of exactly so many elements, which [`DataType::array`] makes. A value is that of a
    /// list.
    Array(&'static DataType, u32),
    /// `MAP(K, V)`: keys, none twice, and a value for each, which [`DataType::map`] makes. A value is the
    /// list of its entries, which have this type: `STRUCT(key K, value V)`.
    Map(&'static DataType),
}

// PERF: types are in every expression, value and column.
const _: () = assert!(size_of::<DataType>() == 16);

/// The most elements of an array of a fixed length.
pub const MOST_OF_ARRAY: u32 = 100_000;

/// A field of a STRUCT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StructField {
    /// Its name, as it was written.
    pub name: &'static str,
    /// The type of its values.
    pub ty: DataType,
}

impl DataType {
    /// Every type once but ENUMs and the nested ones, with three decimals: of few digits, of as many as 64
    /// bits hold, and of the most.
    pub const ALL: [DataType; 26] = [
        DataType::Null,
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal { precision: 4, scale: 1 },
        DataType::Decimal { precision: 18, scale: 2 },
        DataType::Decimal { precision: 38, scale: 10 },
        DataType::Varchar,
        DataType::Json,
        DataType::Blob,
        DataType::Date,
        DataType::Time,
        DataType::TimeTz,
        DataType::Timestamp,
        DataType::TimestampNs,
        DataType::TimestampTz,
        DataType::Interval,
        DataType::Uuid,
    ];

    /// The physical type that holds every value of this type.
    pub const fn physical(self) -> PhysicalType {
        match self {
            DataType::Null | DataType::Boolean => PhysicalType::Bool,
            DataType::Int8 => PhysicalType::I8,
            DataType::Int16 => PhysicalType::I16,
            DataType::Int32 | DataType::Date => PhysicalType::I32,
            DataType::Int64
            | DataType::Time
            | DataType::TimeTz
            | DataType::Timestamp
            | DataType::TimestampNs
            | DataType::TimestampTz => PhysicalType::I64,
            DataType::UInt8 => PhysicalType::U8,
            DataType::UInt16 => PhysicalType::U16,
            DataType::UInt32 => PhysicalType::U32,
            DataType::UInt64 => PhysicalType::U64,
            DataType::Float32 => PhysicalType::F32,
            DataType::Float64 => PhysicalType::F64,
            DataType::Decimal { precision, .. } => {
                if precision <= 18 {
                    PhysicalType::I64
                } else {
                    PhysicalType::I128
                }
            }
            DataType::Varchar
            | DataType::Json
            | DataType::Blob
            | DataType::List(_)
            | DataType::Struct(_)
            | DataType::Array(..)
            | DataType::Map(_) => PhysicalType::Str,
            DataType::Enum(labels) => {
                if labels.len() <= 1 << 8 {
                    PhysicalType::U8
                } else {
                    PhysicalType::U16
                }
            }
            DataType::Interval => PhysicalType::Interval,
            DataType::Uuid => PhysicalType::I128,
        }
    }

    /// The narrowest physical type in which values of this type from `range.0` to `range.1` are computed: the
    /// default one, or a signed one of 32 or 64 bits that is narrower and holds them.
    // PERF: 16 bits would save registers, not time: what they are multiplied with, and sums, are wider.
    pub fn narrowest(self, range: (i128, i128)) -> PhysicalType {
        match self.physical() {
            PhysicalType::I64 | PhysicalType::U64 | PhysicalType::I128 if PhysicalType::I32.holds(range) => {
                PhysicalType::I32
            }
            PhysicalType::I128 if PhysicalType::I64.holds(range) => PhysicalType::I64,
            default => default,
        }
    }

    /// True for the signed and unsigned integers (not decimals, not dates).
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::UInt8
                | DataType::UInt16
                | DataType::UInt32
                | DataType::UInt64
        )
    }

    /// True for integers, floats and decimals.
    pub const fn is_numeric(self) -> bool {
        self.is_integer() || self.is_float() || self.is_decimal()
    }

    /// True for `REAL` and `DOUBLE`.
    pub const fn is_float(self) -> bool {
        matches!(self, DataType::Float32 | DataType::Float64)
    }

    /// True for `DECIMAL`.
    pub const fn is_decimal(self) -> bool {
        matches!(self, DataType::Decimal { .. })
    }

    /// True for VARCHAR, JSON and BLOB.
    pub const fn is_string(self) -> bool {
        self.is_text() || matches!(self, DataType::Blob)
    }

    /// True for VARCHAR and JSON, whose bytes are UTF-8.
    pub const fn is_text(self) -> bool {
        matches!(self, DataType::Varchar | DataType::Json)
    }

    /// The smallest and largest unscaled integer that this type admits, for the types that are integers
    /// inside (integers, decimals, dates, times, timestamps, booleans, ENUMs); `None` for the others.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            DataType::Boolean => (0, 1),
            DataType::Int8 => (i8::MIN as i128, i8::MAX as i128),
            DataType::Int16 => (i16::MIN as i128, i16::MAX as i128),
            DataType::Int32 | DataType::Date => (i32::MIN as i128, i32::MAX as i128),
            DataType::Int64
            | DataType::Time
            | DataType::Timestamp
            | DataType::TimestampNs
            | DataType::TimestampTz => (i64::MIN as i128, i64::MAX as i128),
            DataType::TimeTz => (
                time_tz::pack(0, time_tz::MOST_OFFSET) as i128,
                time_tz::pack(MICROS_PER_DAY, -time_tz::MOST_OFFSET) as i128,
            ),
            DataType::UInt8 => (0, u8::MAX as i128),
            DataType::UInt16 => (0, u16::MAX as i128),
            DataType::UInt32 => (0, u32::MAX as i128),
            DataType::UInt64 => (0, u64::MAX as i128),
            DataType::Decimal { precision, .. } => {
                let bound = pow10(precision);
                (1 - bound, bound - 1)
            }
            DataType::Enum(labels) => (0, labels.len() as i128 - 1),
            _ => return None,
        })
    }
}

/// The types that lists have as elements, and the fields of structs. They are never freed: there are as many
/// as the statements of the process have named.
static ELEMENTS: Mutex<BTreeSet<&'static DataType>> = Mutex::new(BTreeSet::new());
static FIELDS: Mutex<BTreeSet<&'static Vec<StructField>>> = Mutex::new(BTreeSet::new());

impl DataType {
    /// The type of lists of `element`.
    pub fn list(element: DataType) -> DataType {
        DataType::List(kept(element))
    }

    /// The type of lists of exactly `length` values of `element`.
    ///
    /// # Errors
    /// Input, if that is none or more than [`MOST_OF_ARRAY`].
    pub fn array(element: DataType, length: u64) -> Result<DataType> {
        match u32::try_from(length) {
            Ok(length @ 1..=MOST_OF_ARRAY) => Ok(DataType::Array(kept(element), length)),
            _ => Err(Error::input(format!("an array has 1 to {MOST_OF_ARRAY} elements, not {length}"))),
        }
    }

    /// The type of lists of as many values as one likes, where this is one of arrays; else this type.
    pub fn of_any_length(self) -> DataType {
        match self {
            DataType::Array(element, _) => DataType::List(element),
            ty => ty,
        }
    }

    /// The type of maps from values of `key` to values of `value`.
    pub fn map(key: DataType, value: DataType) -> DataType {
        DataType::Map(kept(DataType::structure([("key", key), ("value", value)])))
    }

    /// The type of the elements of a value that is a list in its bytes: of a list or an array, the entries of
    /// a map.
    #[inline]
    pub const fn element(self) -> Option<DataType> {
        match self {
            DataType::List(element) | DataType::Array(element, _) | DataType::Map(element) => Some(*element),
            _ => None,
        }
    }

    /// The types of the keys and of the values of a map.
    pub fn key_and_value(self) -> Option<(DataType, DataType)> {
        match self {
            DataType::Map(DataType::Struct(fields)) => match fields.as_slice() {
                [key, value] => Some((key.ty, value.ty)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The type of values that are one of these labels, in their order.
    ///
    /// # Errors
    /// Input, if there are none or more than [`crate::labels::MOST`] of them, or one twice.
    pub fn enumeration<'a>(labels: impl IntoIterator<Item = &'a str>) -> Result<DataType> {
        Labels::of(labels).map(DataType::Enum)
    }

    /// The type of structs with these fields, in order.
    pub fn structure<'a>(fields: impl IntoIterator<Item = (&'a str, DataType)>) -> DataType {
        let fields: Vec<(&str, DataType)> = fields.into_iter().collect();
        let mut known = FIELDS.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |own: &&&'static Vec<StructField>| {
            let own = own.iter().map(|field| (field.name, field.ty));
            own.eq(fields.iter().copied())
        };
        if let Some(fields) = known.iter().find(is_same) {
            return DataType::Struct(fields);
        }
        let leaked =
            fields.iter().map(|(name, ty)| StructField { name: String::from(*name).leak(), ty: *ty });
        let fields: &'static Vec<StructField> = Box::leak(Box::new(leaked.collect()));
        known.insert(fields);
        DataType::Struct(fields)
    }

    /// True if this type, or one within it, is `ty`.
    pub fn contains(self, ty: DataType) -> bool {
        self == ty
            || match self {
                DataType::List(element) | DataType::Array(element, _) | DataType::Map(element) => {
                    element.contains(ty)
                }
                DataType::Struct(fields) => fields.iter().any(|field| field.ty.contains(ty)),
                _ => false,
            }
    }

    /// The type with others in place of those within it that are not nested.
    pub fn with_innermost(self, other: &dyn Fn(DataType) -> DataType) -> DataType {
        match self {
            DataType::List(element) => DataType::list(element.with_innermost(other)),
            DataType::Array(element, length) => DataType::Array(kept(element.with_innermost(other)), length),
            DataType::Map(entry) => DataType::Map(kept(entry.with_innermost(other))),
            DataType::Struct(fields) => {
                DataType::structure(fields.iter().map(|field| (field.name, field.ty.with_innermost(other))))
            }
            ty => other(ty),
        }
    }

    /// True for LIST, STRUCT, MAP and arrays of a fixed length.
    pub const fn is_nested(self) -> bool {
        use DataType::{Array, List, Map, Struct};
        matches!(self, List(_) | Struct(_) | Array(..) | Map(_))
    }
}

/// A type that others have within them.
fn kept(element: DataType) -> &'static DataType {
    let mut known = ELEMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(&element).copied().unwrap_or_else(|| {
        let element: &'static DataType = Box::leak(Box::new(element));
        known.insert(element);
        element
    })
}

/// 10 to the power of `exponent`, for exponents up to 38.
pub const fn pow10(exponent: u8) -> i128 {
    10i128.pow(exponent as u32)
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::Null => "NULL",
            DataType::Boolean => "BOOLEAN",
            DataType::Int8 => "TINYINT",
            DataType::Int16 => "SMALLINT",
            DataType::Int32 => "INTEGER",
            DataType::Int64 => "BIGINT",
            DataType::UInt8 => "UTINYINT",
            DataType::UInt16 => "USMALLINT",
            DataType::UInt32 => "UINTEGER",
            DataType::UInt64 => "UBIGINT",
            DataType::Float32 => "REAL",
            DataType::Float64 => "DOUBLE",
            DataType::Decimal { precision, scale } => return write!(f, "DECIMAL({precision},{scale})"),
            DataType::Varchar => "VARCHAR",
            DataType::Json => "JSON",
            DataType::Blob => "BLOB",
            DataType::Date => "DATE",
            DataType::Time => "TIME",
            DataType::TimeTz => "TIME WITH TIME ZONE",
            DataType::Timestamp => "TIMESTAMP",
            DataType::TimestampNs => "TIMESTAMP_NS",
            DataType::TimestampTz => "TIMESTAMP WITH TIME ZONE",
            DataType::Interval => "INTERVAL",
            DataType::Uuid => "UUID",
            DataType::Enum(labels) => {
                let labels = labels.iter().map(|label| format!("'{}'", label.replace('\'', "''")));
                return write!(f, "ENUM({})", labels.collect::<Vec<_>>().join(", "));
            }
            DataType::List(element) => return write!(f, "{element}[]"),
            DataType::Array(element, length) => return write!(f, "{element}[{length}]"),
            DataType::Map(entry) => {
                return match self.key_and_value() {
                    Some((key, value)) => write!(f, "MAP({key}, {value})"),
                    None => write!(f, "MAP of {entry}"),
                };
            }
            DataType::Struct(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|field| format!("{} {}", Name(field.name), field.ty)).collect();
                return write!(f, "STRUCT({})", fields.join(", "));
            }
        })
    }
}

/// The name of a field, in quotes where it is not plain.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = self.0.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && self.0.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_plain { f.write_str(self.0) } else { write!(f, "\"{}\"", self.0.replace('"', "\"\"")) }
    }
}

/// A span of time. Months and days have no fixed length, so the three parts are stored separately, as in
/// PostgreSQL.
///
/// Intervals are compared by their estimated length (a month counts as 30 days, a day as 24 hours).
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Interval {
    /// Calendar months.
    pub months: i32,
    /// Calendar days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// The DATE `infinity`; `-infinity` is its opposite.
pub const INFINITE_DATE: i32 = i32::MAX;
/// The TIMESTAMP, TIMESTAMP_NS or TIMESTAMPTZ `infinity`; `-infinity` is its opposite.
pub const INFINITE_TIMESTAMP: i64 = i64::MAX;

/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400_000_000;

impl Interval {
    /// The estimated length in microseconds, the order and the identity of intervals.
    pub fn estimate(self) -> i128 {
        (self.months as i128 * 30 + self.days as i128) * MICROS_PER_DAY as i128 + self.micros as i128
    }
}

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        self.estimate() == other.estimate()
    }
}
impl Eq for Interval {}
impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Interval) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Interval {
    fn cmp(&self, other: &Interval) -> std::cmp::Ordering {
        self.estimate().cmp(&other.estimate())
    }
}
impl std::hash::Hash for Interval {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.estimate().hash(state);
    }
}

/// The identity of a column inside one plan. Two scans of one table have different column ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

impl fmt::Display for ColumnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A named column of a table or result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name as the user wrote it.
    pub name: Arc<str>,
    /// Its type.
    pub ty: DataType,
    /// Whether NULL may occur.
    pub nullable: bool,
}

impl Field {
    /// A field that may hold NULL.
    pub fn new(name: impl Into<Arc<str>>, ty: DataType) -> Field {
        Field { name: name.into(), ty, nullable: true }
    }
}

/// The columns of a table or result, in order.
pub type Schema = Vec<Field>;
