//! What a program passes for the parameters of a statement.
//!
//! | parameters in SQL | in Rust |
//! |---|---|
//! | none | `()` |
//! | `?`, `$1` | a tuple of up to 16 values, an array, a slice or a `Vec` of values of one type, [`params!`](crate::params!) |
//! | `$name`, `:name` | [`named!`](crate::named), pairs of names and values in an array, a slice or a `Vec`, a map |
//!
//! Names are compared without regard to their case, and may begin with `$`, `:` or `@` as in the statement.
//! By position, parameters with names are given in the order in which they first appear.

use crate::values::arguments::Arguments;
use crate::values::convert::ToValue;
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, Result, Value, name};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// The parameters of one run of a statement.
///
/// ```
/// use entasis::{Config, Database, named, params};
/// use std::collections::HashMap;
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let sum = "SELECT ? + ?";
/// assert_eq!(connection.query_row_as::<i64>(sum, (1, 2_i64))?, 3);
/// assert_eq!(connection.query_row_as::<i64>(sum, [1_i64, 2])?, 3);
/// assert_eq!(connection.query_row_as::<i64>(sum, &vec![1_i64, 2])?, 3);
/// assert_eq!(connection.query_row_as::<f64>(sum, params![1, 0.5])?, 1.5);
///
/// let named_sum = "SELECT $a + $b";
/// assert_eq!(connection.query_row_as::<f64>(named_sum, named! { "a": 1, "b": 0.5 })?, 1.5);
/// assert_eq!(connection.query_row_as::<i64>(named_sum, [("$b", 1_i64), ("$a", 2)])?, 3);
/// assert_eq!(connection.query_row_as::<i64>(named_sum, HashMap::from([("a", 1_i64), ("b", 2)]))?, 3);
///
/// let error = connection.query_row_as::<i64>(named_sum, named! { "a": 1 }).unwrap_err();
/// assert_eq!(error.message(), "the parameter b has no value");
/// # Ok::<(), entasis::Error>(())
/// ```
///
/// A list is the values with which `IN ?`, `= ANY(?)` or `> ALL(?)` compares, and a value everywhere else:
///
/// ```
/// use entasis::{Config, Database};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let found: Vec<i64> = connection.query_as("SELECT * FROM range(5) WHERE range IN ?", (vec![1, 3, 7],))?;
/// assert_eq!(found, [1, 3]);
/// assert_eq!(connection.query_row_as::<i64>("SELECT length(?)", (vec![1, 3, 7],))?, 3);
/// # Ok::<(), entasis::Error>(())
/// ```
pub trait Params {
    /// The values.
    ///
    /// # Errors
    /// Input, if SQL has no such value.
    fn given(&self) -> Result<Given<'_>>;
}

/// The values of parameters, in their order or with their names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Given<'a> {
    /// A value for each parameter, in order.
    InOrder(Vec<(Value, DataType)>),
    /// A value for each name, in any order.
    ByName(Vec<(&'a str, (Value, DataType))>),
    /// Arguments as they are.
    Arguments(&'a Arguments),
}

/// Positional parameters of different types, as a slice: `params![1, "one", None::<i64>]`.
///
/// A tuple does the same for up to 16 of them; a slice may be kept, and be of any length.
///
/// ```
/// use entasis::{Config, Database, ToValue, params};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let mut all: Vec<&dyn ToValue> = params![1, "one"].to_vec();
/// all.push(&2.5);
/// let row: (i32, String, f64) = connection.query_row_as("SELECT ?, ?, ?", all)?;
/// assert_eq!(row, (1, "one".to_owned(), 2.5));
/// # Ok::<(), entasis::Error>(())
/// ```
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::ToValue),*] as &[&dyn $crate::ToValue]
    };
}

/// Parameters by their names: `named! { "id": 1, "name": "one" }`.
///
/// ```
/// use entasis::{Config, Database, named};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let greeting = "SELECT 'Hello, ' || :name || repeat('!', :times)";
/// let text: String = connection.query_row_as(greeting, named! { "times": 2, "name": "world" })?;
/// assert_eq!(text, "Hello, world!!");
/// # Ok::<(), entasis::Error>(())
/// ```
#[macro_export]
macro_rules! named {
    ($($name:literal : $value:expr),* $(,)?) => {
        &[$(($name, &$value as &dyn $crate::ToValue)),*] as &[(&str, &dyn $crate::ToValue)]
    };
}

impl Given<'_> {
    /// The values in the order of the parameters, whose names, in lower case, `names` returns.
    ///
    /// # Errors
    /// Those of `names`; input, if a name is not that of a parameter, or occurs twice, or a parameter has no
    /// value.
    pub(crate) fn in_order(
        self,
        names: impl FnOnce() -> Result<Vec<String>>,
    ) -> Result<Vec<(Value, DataType)>> {
        match self {
            Given::InOrder(values) => Ok(values),
            Given::ByName(pairs) => ordered(pairs, &names()?),
            Given::Arguments(Arguments::Values(values)) => Ok(values.clone()),
            Given::Arguments(Arguments::Lists(_)) => {
                Err(Error::not_supported("arguments that are lists, for several runs or rows"))
            }
        }
    }
}

fn ordered(pairs: Vec<(&str, (Value, DataType))>, names: &[String]) -> Result<Vec<(Value, DataType)>> {
    let wrong = |text: String| Error::input(text).with_sqlstate(sqlstate::PARAMETERS);
    let mut places: Vec<Option<(Value, DataType)>> = vec![None; names.len()];
    for (given, value) in pairs {
        let plain = given.strip_prefix([':', '$', '@']).unwrap_or(given);
        let index = names.iter().position(|own| name::same(own, plain)).ok_or_else(|| match names {
            [] => wrong(format!("the statement has no parameter {plain}: it has none with names")),
            names => wrong(format!("the statement has no parameter {plain}: it has {}", names.join(", "))),
        })?;
        if places[index].replace(value).is_some() {
            return Err(wrong(format!("the parameter {plain} is given twice")));
        }
    }
    let missing = places.iter().position(Option::is_none);
    match missing {
        Some(index) => Err(wrong(format!("the parameter {} has no value", names[index]))),
        None => Ok(places.into_iter().flatten().collect()),
    }
}

// ---- in order ---------------------------------------------------------------------------------------------

impl Params for () {
    fn given(&self) -> Result<Given<'_>> {
        Ok(Given::InOrder(Vec::new()))
    }
}

impl<T: ToValue> Params for [T] {
    fn given(&self) -> Result<Given<'_>> {
        self.iter().map(ToValue::to_value).collect::<Result<_>>().map(Given::InOrder)
    }
}

impl<T: ToValue, const N: usize> Params for [T; N] {
    fn given(&self) -> Result<Given<'_>> {
        self[..].given()
    }
}

impl<T: ToValue> Params for Vec<T> {
    fn given(&self) -> Result<Given<'_>> {
        self[..].given()
    }
}

macro_rules! tuples {
    ($($first:ident $($rest:ident)*)?) => {$(
        impl<$first: ToValue, $($rest: ToValue),*> Params for ($first, $($rest,)*) {
            #[expect(non_snake_case, reason = "each value has the name of its type")]
            fn given(&self) -> Result<Given<'_>> {
                let ($first, $($rest,)*) = self;
                Ok(Given::InOrder(vec![$first.to_value()?, $($rest.to_value()?),*]))
            }
        }
        tuples! { $($rest)* }
    )?};
}

tuples! { A B C D E F G H I J K L M N O P }

/// Several runs may be given the same.
impl<P: Params + ?Sized> Params for &P {
    fn given(&self) -> Result<Given<'_>> {
        P::given(self)
    }
}

impl Params for Arguments {
    fn given(&self) -> Result<Given<'_>> {
        Ok(Given::Arguments(self))
    }
}

// ---- by name ----------------------------------------------------------------------------------------------

/// The values of pairs.
fn by_name<'a, K: AsRef<str> + ?Sized + 'a, T: ToValue + 'a>(
    pairs: impl Iterator<Item = (&'a K, &'a T)>,
) -> Result<Given<'a>> {
    let pairs = pairs.map(|(name, value)| Ok((name.as_ref(), value.to_value()?)));
    pairs.collect::<Result<_>>().map(Given::ByName)
}

/// Pairs whose names are of one type.
macro_rules! pairs {
    ($($name:ty),*) => {$(
        impl<T: ToValue> Params for [($name, T)] {
            fn given(&self) -> Result<Given<'_>> {
                by_name(self.iter().map(|(name, value)| (name, value)))
            }
        }

        impl<T: ToValue, const N: usize> Params for [($name, T); N] {
            fn given(&self) -> Result<Given<'_>> {
                self[..].given()
            }
        }

        impl<T: ToValue> Params for Vec<($name, T)> {
            fn given(&self) -> Result<Given<'_>> {
                self[..].given()
            }
        }
    )*};
}

pairs! { &str, String, Cow<'_, str> }

impl<K: AsRef<str>, T: ToValue, S> Params for HashMap<K, T, S> {
    fn given(&self) -> Result<Given<'_>> {
        by_name(self.iter())
    }
}

impl<K: AsRef<str>, T: ToValue> Params for BTreeMap<K, T> {
    fn given(&self) -> Result<Given<'_>> {
        by_name(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit() {
        let names = || Ok(vec!["a".to_owned(), "b".to_owned()]);
        let message = |given: Result<Given<'_>>| match given.unwrap().in_order(names) {
            Ok(values) => format!("{values:?}"),
            Err(error) => error.message().to_owned(),
        };
        assert_eq!(message([("A", 1), (":b", 2)].given()), message([1, 2].given()));
        assert_eq!(message([("c", 1)].given()), "the statement has no parameter c: it has a, b");
        assert_eq!(message([("a", 1), ("$A", 1)].given()), "the parameter A is given twice");
        assert_eq!(message([("b".to_owned(), 1)].given()), "the parameter a has no value");
        let nothing: &[(&str, &dyn ToValue)] = named! {};
        assert_eq!(message(nothing.given()), "the parameter a has no value");
    }
}
