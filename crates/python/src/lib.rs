//! The Python package `entasis`: DB-API 2.0 connections and cursors, results as Arrow, pandas and polars.
//!
//! | module | subject |
//! |---|---|
//! | `connection` | `Connection`: runs SQL, registers objects |
//! | `named` | databases in memory that have a name |
//! | `cursor` | `Cursor` and `Relation`: results, row by row or whole |
//! | `stream` | `Stream`: rows that are read while the query runs |
//! | `fetch` | rows on their way to tuples, part by part |
//! | `functions` | Python functions that SQL may call |
//! | `rows` | rows as dicts, or as a row factory makes them |
//! | `batches`, `numpy` | results as batches of Arrow, and as arrays |
//! | `give_way` | lets other Python threads run |
//! | `run` | runs a statement without the GIL, and turns Ctrl-C into cancellation |
//! | `bar` | the progress bar of a long statement |
//! | `package` | other packages, which are imported when a call needs them |
//! | `scan` | names that the catalog does not have: variables of the caller |
//! | `tables` | which objects are tables |
//! | `arrow` | the Arrow PyCapsule interface, in and out |
//! | `readers` | objects whose rows can be read only once |
//! | `values` | cells as values of Python |
//! | `parameters` | the arguments of a statement |
//! | `from_python` | values of Python as parameters |
//! | `nested` | lists and dicts as parameters |
//! | `show` | a result as text, and for notebooks |
//! | `errors`, `report` | the exceptions, and the line of SQL with a caret |
//!
//! Parts that need no Rust are written in Python, in `python/entasis`: the class of connections that programs
//! see (`_connection.py`), queries that are composed (`_query.py`), data frames (`_frames.py`), and more.

mod arrow;
mod bar;
mod batches;
mod connection;
mod cursor;
mod errors;
mod fetch;
mod from_python;
mod functions;
mod give_way;
mod named;
mod nested;
mod numpy;
mod package;
mod parameters;
mod readers;
mod report;
mod rows;
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
    errors::add_to_class(&module.py().get_type::<connection::Connection>())?;
    errors::add_to(module)
}
