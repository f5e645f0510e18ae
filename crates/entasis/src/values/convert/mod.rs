//! Rust values as SQL values, and back: [`ToValue`] for parameters, [`FromValue`] for cells.
//!
//! | SQL | Rust, in both directions | also read as |
//! |---|---|---|
//! | BOOLEAN | `bool` | |
//! | integers | `i8` to `i64`, `u8` to `u64`, `isize`, `usize` | any integer type that holds the value, `f64` |
//! | DECIMAL | [`Decimal`], `rust_decimal::Decimal`; `i128` and `u128` | integers, if its scale is 0; `f64` |
//! | REAL, DOUBLE | `f32`, `f64` | REAL as `f64` |
//! | VARCHAR | `String`, `&str`, `Box<str>`, `Arc<str>`, `Cow<str>` | |
//! | JSON | `serde_json::Value` | the types of texts |
//! | ENUM | | the types of texts |
//! | BLOB | `Vec<u8>`, `&[u8]`, `[u8; N]` | |
//! | DATE | [`Date`], `chrono::NaiveDate` | |
//! | TIME | [`Time`], `chrono::NaiveTime` | |
//! | TIMESTAMP | [`Timestamp`], `chrono::NaiveDateTime` | |
//! | TIMESTAMP_NS | | the same as TIMESTAMP |
//! | TIMESTAMPTZ | [`SystemTime`](std::time::SystemTime), `chrono::DateTime<Tz>` | `chrono::DateTime<Utc>` |
//! | INTERVAL | [`Interval`](entasis_vector::Interval), [`Duration`](std::time::Duration), `chrono::TimeDelta` | |
//! | UUID | `uuid::Uuid` | `u128` |
//! | lists, `T[n]` | `Vec<T>`, `&[T]`, `[T; N]` | |
//! | MAP | `HashMap<K, V>`, `BTreeMap<K, V>` | |
//! | STRUCT | | [`Struct<T>`](crate::Struct) |
//! | NULL | `Option<T>` | |
//! | any | [`Value`](entasis_vector::Value), with its [`DataType`](entasis_vector::DataType) in parameters | |
//!
//! Types of other crates need the feature of that crate's name: `chrono`, `uuid`, `rust_decimal`; and `json`
//! for `serde_json`.
//!
//! A value is never changed silently: what the other side cannot hold is an error. Two exceptions are those
//! of the types themselves: SQL counts microseconds, so a parameter with nanoseconds is rounded down; and
//! `f64` gives the number next to a DECIMAL.

#[cfg(feature = "chrono")]
mod chrono;
mod decimal;
mod from_value;
#[cfg(feature = "json")]
mod json;
mod moment;
mod nested;
#[cfg(feature = "rust_decimal")]
mod rust_decimal;
mod to_value;
#[cfg(feature = "uuid")]
mod uuid;

pub use decimal::Decimal;
pub use from_value::FromValue;
pub(crate) use from_value::read;
pub use moment::{Date, Time, Timestamp};
pub use to_value::ToValue;
