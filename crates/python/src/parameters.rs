//! The arguments of a statement: values for its parameters, in order or by name.
//!
//! A list may be meant in two ways, by where its parameter is: as values to compare with (`x IN ?`,
//! `x = ANY(?)`), or as one value, a LIST. The statement is run in the first way, which is refused before
//! anything has happened if the parameter is elsewhere, and then in the second.

use crate::errors::{InterfaceError, in_context, raised};
use crate::from_python::parameter;
use crate::nested::Parameter;
use entasis::{Argument, Arguments};
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, Result, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping, PyString};

/// How a statement refuses a list where it needs one value, and one value where it needs a list.
const NO_LIST: &str = "a list parameter is only allowed after IN";
const NO_VALUE: &str = "is a list, not one value";

/// The arguments of one execution.
pub enum Given {
    /// One value for each parameter.
    Values(Arguments),
    /// Values of which some are lists.
    Lists(Vec<Parameter>),
}

impl Given {
    /// No arguments.
    pub fn none() -> Given {
        Given::Values(Arguments::Values(Vec::new()))
    }

    /// Calls `work` with the arguments, lists as what their statement needs.
    ///
    /// # Errors
    /// Those of `work`; input, if the elements of a list have no common type.
    pub fn run<T>(&self, work: impl Fn(&Arguments) -> Result<T>) -> Result<T> {
        match self {
            Given::Values(arguments) => work(arguments),
            Given::Lists(parameters) => match spread(parameters).and_then(|arguments| work(&arguments)) {
                Err(error) if is_no_list(&error) => {
                    work(&Arguments::Values(whole(parameters)?)).map_err(of_two_kinds)
                }
                result => result,
            },
        }
    }

    /// Calls `work` with the arguments, each list as one value.
    ///
    /// # Errors
    /// Those of [`Given::run`].
    pub fn run_whole<T>(&self, work: impl FnOnce(&[(Value, DataType)]) -> Result<T>) -> Result<T> {
        match self {
            Given::Values(Arguments::Values(values)) => work(values),
            Given::Values(_) => Err(Error::internal("lists are kept as such")),
            Given::Lists(parameters) => work(&whole(parameters)?).map_err(of_two_kinds),
        }
    }

    fn arguments(self, spread_lists: bool) -> Result<Arguments> {
        match self {
            Given::Values(arguments) => Ok(arguments),
            Given::Lists(parameters) if spread_lists => spread(&parameters),
            Given::Lists(parameters) => whole(&parameters).map(Arguments::Values),
        }
    }
}

/// As [`Given::run`], for the arguments of several executions.
///
/// # Errors
/// Those of [`Given::run`].
pub fn run_many<T>(sets: Vec<Given>, work: impl Fn(&[Arguments]) -> Result<T>) -> Result<T> {
    let arguments = |sets: Vec<Given>, spread_lists| {
        sets.into_iter().map(|set| set.arguments(spread_lists)).collect::<Result<Vec<_>>>()
    };
    if sets.iter().all(|set| matches!(set, Given::Values(_))) {
        return work(&arguments(sets, true)?);
    }
    let again = sets.iter().map(|set| match set {
        Given::Values(arguments) => Given::Values(arguments.clone()),
        Given::Lists(parameters) => Given::Lists(parameters.clone()),
    });
    let again = again.collect();
    match arguments(sets, true).and_then(|arguments| work(&arguments)) {
        Err(error) if is_no_list(&error) => work(&arguments(again, false)?),
        result => result,
    }
}

fn is_no_list(error: &Error) -> bool {
    error.message().starts_with(NO_LIST)
}

/// The error of a statement that was given lists as values, and compares with one of them.
fn of_two_kinds(error: Error) -> Error {
    let hint = "to compare with the values of a list beside others, write IN (SELECT unnest(?))";
    if error.message().contains(NO_VALUE) { error.with_hint(hint) } else { error }
}

/// Lists as values to compare with.
fn spread(parameters: &[Parameter]) -> Result<Arguments> {
    let argument = |parameter: &Parameter| match parameter {
        Parameter::List(elements) => {
            elements.iter().map(Parameter::value).collect::<Result<_>>().map(Argument::List)
        }
        single => single.value().map(|(value, ty)| Argument::Value(value, ty)),
    };
    Ok(Arguments::from(parameters.iter().map(argument).collect::<Result<Vec<_>>>()?))
}

/// Lists as values.
fn whole(parameters: &[Parameter]) -> Result<Vec<(Value, DataType)>> {
    parameters.iter().map(Parameter::value).collect()
}

/// The arguments of one execution, in the order of the parameters.
///
/// # Errors
/// If they are not a sequence, or contain a value for which SQL has no type.
pub fn in_order(given: &Bound<'_, PyAny>) -> PyResult<Given> {
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(no_sequence());
    }
    let mut items = given.try_iter().map_err(|_| no_sequence())?.enumerate();
    let converted = |(at, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        let called = |error| in_context(given.py(), error, &format!("parameter {}", at + 1));
        parameter(&item?).map_err(called)
    };
    let mut values = Vec::new();
    while let Some(item) = items.next() {
        match converted(item)? {
            Parameter::Value(value, ty) => values.push((value, ty)),
            list => {
                let before = values.into_iter().map(|(value, ty)| Parameter::Value(value, ty));
                let mut all: Vec<Parameter> = before.chain([list]).collect();
                for item in items {
                    all.push(converted(item)?);
                }
                return Ok(Given::Lists(all));
            }
        }
    }
    Ok(Given::Values(Arguments::Values(values)))
}

fn no_sequence() -> PyErr {
    InterfaceError::new_err(
        "parameters are a list or tuple, one value for each ? or $1, $2, …, or a dict, one for each $name or :name",
    )
}

/// The arguments of one execution by the names of the parameters, which are in lower case. The case of the
/// given names does not matter.
///
/// # Errors
/// If one is missing, is not the name of a parameter, or contains a value for which SQL has no type.
pub fn named(given: &Bound<'_, PyMapping>, names: &[String]) -> PyResult<Given> {
    let mut parameters: Vec<Option<Parameter>> = vec![None; names.len()];
    for item in given.items()?.try_iter()? {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let Ok(name) = name.extract::<String>() else {
            return Err(InterfaceError::new_err(format!("the name of a parameter is a str, not {name}")));
        };
        let index = names.iter().position(|own| *own == name.to_ascii_lowercase()).ok_or_else(|| {
            let has = match names {
                [] => "it has none with names".to_owned(),
                names => format!("it has {}", names.join(", ")),
            };
            parameters_error(format!("the statement has no parameter {name}: {has}"))
        })?;
        let called = |error| in_context(given.py(), error, &format!("parameter {name}"));
        if parameters[index].replace(parameter(&value).map_err(called)?).is_some() {
            return Err(parameters_error(format!("the parameter {name} is given twice")));
        }
    }
    if let Some(missing) = parameters.iter().position(Option::is_none) {
        return Err(parameters_error(format!("the parameter {} has no value", names[missing])));
    }
    let parameters: Vec<Parameter> = parameters.into_iter().flatten().collect();
    if parameters.iter().any(|parameter| !matches!(parameter, Parameter::Value(..))) {
        return Ok(Given::Lists(parameters));
    }
    let values = whole(&parameters).map_err(|error| raised(&error))?;
    Ok(Given::Values(Arguments::Values(values)))
}

fn parameters_error(text: String) -> PyErr {
    raised(&Error::input(text).with_sqlstate(sqlstate::PARAMETERS))
}
