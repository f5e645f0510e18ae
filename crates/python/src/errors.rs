//! The exceptions of DB-API 2.0, and which one is raised for each kind of error. All have the attribute
//! `sqlstate`, which is `None` for errors outside the database.

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

/// The attribute of exceptions that contains the SQLSTATE, with PostgreSQL's codes.
const SQLSTATE: &str = "sqlstate";

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
    py.get_type::<Error>().setattr(SQLSTATE, py.None())?;
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

/// The exception for an error of the database.
pub fn raised(error: &Failure) -> PyErr {
    let mut text = match error.kind() {
        ErrorKind::NotSupported => format!("not supported yet: {}", error.message()),
        ErrorKind::Conflict => format!("Conflict: {}", error.message()),
        _ => error.message().to_owned(),
    };
    if let Some(place) = error.position() {
        text += &format!(" (line {}, column {})", place.line, place.column);
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
        ErrorKind::Internal => InternalError::new_err(text),
    };
    Python::attach(|py| match raised.value(py).setattr(SQLSTATE, error.sqlstate()) {
        Ok(()) => raised,
        Err(error) => error,
    })
}
