//! The exceptions of DB-API 2.0, which one is raised for each kind of error, and their attributes:
//!
//! | attribute | of an error of the database |
//! |---|---|
//! | `sqlstate` | PostgreSQL's code |
//! | `hint` | what can be done about it |
//! | `line`, `column` | where it is in the statement, both counted from 1 |
//! | `table`, `column_name`, `constraint` | what refuses the change |
//!
//! Each is `None` where it is not known, and for errors outside the database. They are kept in the
//! exception's `__dict__`, and so survive pickling.

use crate::report;
use entasis_vector::{Error as Failure, ErrorKind};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyWarning};
use pyo3::prelude::*;
use pyo3::types::PyType;

create_exception!(entasis, Warning, PyWarning, "Something worth knowing. Entasis raises none today.");
create_exception!(entasis, Error, PyException, "Any error of Entasis.");
create_exception!(entasis, InterfaceError, Error, "The package is used in a way that it does not allow.");
create_exception!(entasis, DatabaseError, Error, "An error of the database.");
create_exception!(entasis, DataError, DatabaseError, "A parameter cannot be what the statement needs.");
create_exception!(
    entasis,
    OperationalError,
    DatabaseError,
    "Memory, files, cancellation, conflicts: not the statement's fault."
);
create_exception!(
    entasis,
    ConflictError,
    OperationalError,
    "Another transaction was first: roll back, and try this one again."
);
create_exception!(entasis, IntegrityError, DatabaseError, "A constraint refuses the change.");
create_exception!(entasis, InternalError, DatabaseError, "A defect of Entasis.");
create_exception!(entasis, ProgrammingError, DatabaseError, "The statement or its data are wrong.");
create_exception!(entasis, NotSupportedError, DatabaseError, "Entasis does not do this yet.");

/// The attributes of all exceptions.
const ATTRIBUTES: [&str; 7] = ["sqlstate", "hint", "line", "column", "constraint", "table", "column_name"];

/// Gives a class the exceptions as attributes, as DB-API suggests: `except con.IntegrityError`.
pub fn add_to_class(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    for exception in [
        py.get_type::<Warning>(),
        py.get_type::<Error>(),
        py.get_type::<InterfaceError>(),
        py.get_type::<DatabaseError>(),
        py.get_type::<DataError>(),
        py.get_type::<OperationalError>(),
        py.get_type::<ConflictError>(),
        py.get_type::<IntegrityError>(),
        py.get_type::<InternalError>(),
        py.get_type::<ProgrammingError>(),
        py.get_type::<NotSupportedError>(),
    ] {
        class.setattr(exception.name()?, &exception)?;
    }
    Ok(())
}

/// Adds the exceptions to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Warning", py.get_type::<Warning>())?;
    module.add("Error", py.get_type::<Error>())?;
    for attribute in ATTRIBUTES {
        py.get_type::<Error>().setattr(attribute, py.None())?;
    }
    module.add("InterfaceError", py.get_type::<InterfaceError>())?;
    module.add("DatabaseError", py.get_type::<DatabaseError>())?;
    module.add("DataError", py.get_type::<DataError>())?;
    module.add("OperationalError", py.get_type::<OperationalError>())?;
    module.add("ConflictError", py.get_type::<ConflictError>())?;
    module.add("IntegrityError", py.get_type::<IntegrityError>())?;
    module.add("InternalError", py.get_type::<InternalError>())?;
    module.add("ProgrammingError", py.get_type::<ProgrammingError>())?;
    module.add("NotSupportedError", py.get_type::<NotSupportedError>())
}

/// The exception for an error of the database that no text of SQL has caused.
pub fn raised(error: &Failure) -> PyErr {
    raised_by(error, "")
}

/// The exception for an error of the statements in `sql`.
pub fn raised_by(error: &Failure, sql: &str) -> PyErr {
    let mut text = match error.kind() {
        ErrorKind::NotSupported => format!("not supported yet: {}", error.message()),
        ErrorKind::Conflict => format!("Conflict: {}", error.message()),
        _ => error.message().to_owned(),
    };
    if let Some(place) = error.position() {
        match report::excerpt(sql, place) {
            Some(excerpt) => text += &format!("\n{excerpt}"),
            None => text += &format!(" (line {}, column {})", place.line, place.column),
        }
    }
    if let Some(hint) = error.hint() {
        text += &format!("\nHint: {hint}");
    }
    let raised = match error.kind() {
        ErrorKind::Input => ProgrammingError::new_err(text),
        ErrorKind::NotSupported => NotSupportedError::new_err(text),
        ErrorKind::Constraint => IntegrityError::new_err(text),
        ErrorKind::Conflict => ConflictError::new_err(text),
        ErrorKind::Resource | ErrorKind::Interrupted | ErrorKind::Io => OperationalError::new_err(text),
        ErrorKind::Corruption => DatabaseError::new_err(text),
        _ => InternalError::new_err(text),
    };
    let described = |py: Python<'_>| {
        let exception = raised.value(py);
        exception.setattr("sqlstate", error.sqlstate())?;
        exception.setattr("hint", error.hint())?;
        exception.setattr("line", error.position().map(|place| place.line))?;
        exception.setattr("column", error.position().map(|place| place.column))?;
        exception.setattr("table", error.table())?;
        exception.setattr("column_name", error.column())?;
        exception.setattr("constraint", error.constraint())
    };
    Python::attach(described).err().unwrap_or(raised)
}

/// The same exception with `context` before its text, if it is one of ours.
pub fn in_context(py: Python<'_>, error: PyErr, context: &str) -> PyErr {
    if !error.is_instance_of::<Error>(py) {
        return error;
    }
    let extended = || {
        let text = format!("{context}: {}", error.value(py).str()?);
        let same = error.get_type(py).call1((text,))?;
        same.getattr("__dict__")?.call_method1("update", (error.value(py).getattr("__dict__")?,))?;
        Ok(PyErr::from_value(same))
    };
    extended().unwrap_or_else(|failed: PyErr| failed)
}
