//! The Python package `entasis`: DB-API 2.0 connections and cursors, results as Arrow, pandas and polars.
//!
//! | module | subject |
//! |---|---|
//! | `connection` | `Connection`: runs SQL, registers objects |
//! | `cursor` | `Cursor` and `Relation`: results, row by row or whole |
//! | `stream` | `Stream`: rows that are read while the query runs |
//! | `fetch` | rows on their way to tuples, part by part |
//! | `functions` | Python functions that SQL may call |
//! | `give_way` | lets other Python threads run |
//! | `run` | runs a statement without the GIL, and turns Ctrl-C into cancellation |
//! | `scan` | names that the catalog does not have: variables of the caller |
//! | `tables` | which objects are tables |
//! | `arrow` | the Arrow PyCapsule interface, in and out |
//! | `readers` | objects whose rows can be read only once |
//! | `values` | conversion of single values, in and out |
//! | `show` | a result as text |
//! | `errors` | the exceptions |
//!
//! Parts that need no Rust are written in Python: `python/entasis/__init__.py`, and data frames in
//! `_frames.py`.

mod arrow;
mod connection;
mod cursor;
mod errors;
mod fetch;
mod functions;
mod give_way;
mod readers;
mod run;
mod runner;
mod scan;
mod show;
mod stream;
mod tables;
mod values;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
fn _entasis(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_class::<cursor::Relation>()?;
    module.add_class::<stream::Stream>()?;
    module.add_function(wrap_pyfunction!(connection::connect, module)?)?;
    errors::add_to_class(&module.py().get_type::<connection::Connection>())?;
    errors::add_to(module)
}
