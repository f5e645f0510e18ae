//! Vectors to Arrow arrays and back.
//!
//! Entasis exchanges rows with the outside as Arrow (files, Python, function libraries), but does not use it
//! internally. This crate maps the types ([`types`]), copies vectors out ([`export`]) and arrays in
//! ([`import`]). Both directions copy: a chunk's memory is reused for the next chunk, and an array's belongs
//! to the program that made it.
//!
//! It does not depend on plans, tables or files.

pub mod export;
pub mod import;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod twin;
pub mod types;

pub use export::{chunk_to_batch, values_to_array, vector_of, vector_to_array};
pub use import::{Importer, array_to_vector};
pub use types::{from_arrow_field, from_arrow_type, schema_from_arrow, schema_to_arrow, to_arrow_type};

use entasis_vector::{Error, ErrorKind};

/// Converts an error of the Arrow library: an input error, unless Arrow indicates something else.
pub fn arrow_error(error: arrow_schema::ArrowError) -> Error {
    use arrow_schema::ArrowError;
    match error {
        ArrowError::NotYetImplemented(what) => Error::not_supported(what),
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::input(other.to_string()),
        },
        ArrowError::IoError(_, inner) => Error::io("reading Arrow data", &inner),
        ArrowError::MemoryError(what) => Error::resource(what),
        ArrowError::CastError(what)
        | ArrowError::ComputeError(what)
        | ArrowError::ParseError(what)
        | ArrowError::SchemaError(what)
        | ArrowError::InvalidArgumentError(what)
        | ArrowError::ArithmeticOverflow(what)
        | ArrowError::CsvError(what)
        | ArrowError::JsonError(what)
        | ArrowError::AvroError(what)
        | ArrowError::IpcError(what)
        | ArrowError::ParquetError(what) => Error::input(what),
        ArrowError::DivideByZero => Error::input("division by zero"),
        other => Error::new(ErrorKind::Input, other.to_string()),
    }
}
