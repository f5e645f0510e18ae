//! The function library behind the front end: DataFusion's scalar and aggregate functions, called by the engine.
//!
//! The engine sees [`entasis_vector::expr::ExternalFunction`] and [`entasis_engine::plan::ExternalAggregate`]. The
//! adapters here turn vectors into Arrow arrays of exactly the types that the binder coerced the arguments to, call the
//! library, and turn what comes back into a vector. That costs a copy a chunk and argument; functions that matter have
//! native kernels and never come here.

mod aggregate;
mod scalar;

pub(crate) use aggregate::aggregate;
pub(crate) use scalar::scalar;

use arrow_array::ArrayRef;
use arrow_schema::DataType as ArrowType;
use datafusion_common::DataFusionError;
use datafusion_common::config::ConfigOptions;
use entasis_vector::{DataType, Error, Result, Vector};
use std::sync::{Arc, LazyLock};

/// The library's options: its defaults. Time zones are UTC.
static OPTIONS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(|| Arc::new(ConfigOptions::default()));

/// An argument as the library wants it: what the vector holds, and the Arrow type that the binder chose.
#[derive(Debug, Clone)]
struct Argument {
    ty: DataType,
    arrow: ArrowType,
}

impl Argument {
    fn new(arrow: ArrowType) -> Result<Argument> {
        Ok(Argument { ty: entasis_arrow::from_arrow_type(&arrow)?, arrow })
    }

    /// The first `rows` positions of a flat vector, or the one value of a constant.
    fn array(&self, vector: &Vector, rows: usize) -> Result<ArrayRef> {
        let rows = if vector.is_constant() { 1 } else { rows };
        let array = entasis_arrow::vector_to_array(vector, None, rows, self.ty)?;
        cast(array, &self.arrow)
    }
}

/// `array` as `ty`; mostly it is already.
fn cast(array: ArrayRef, ty: &ArrowType) -> Result<ArrayRef> {
    if array.data_type() == ty { Ok(array) } else { arrow_cast::cast(&array, ty).map_err(entasis_arrow::arrow_error) }
}

/// What the library says went wrong, under the function's name and without the library's own jargon.
fn library_error(function: &str, error: DataFusionError) -> Error {
    match error.find_root() {
        DataFusionError::NotImplemented(message) => Error::not_supported(format!("{function}: {}", first_line(message))),
        DataFusionError::Execution(message) | DataFusionError::Plan(message) => {
            Error::input(format!("{function}: {}", first_line(message)))
        }
        DataFusionError::ArrowError(error, _) => Error::input(format!("{function}: {error}")),
        DataFusionError::Internal(message) => Error::internal(format!("{function}: {}", first_line(message))),
        other => Error::input(format!("{function}: {}", first_line(&other.strip_backtrace()))),
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default().trim_end_matches('.')
}
