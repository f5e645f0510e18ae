//! Other packages, which are imported when a call needs them.

use crate::errors::NotSupportedError;
use pyo3::prelude::*;

/// Imports the package that `method` needs.
pub fn package<'py>(py: Python<'py>, name: &str, method: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|_| NotSupportedError::new_err(format!("{method}() needs the package {name}")))
}
