//! The definition of a function: its names, arguments and result, a one-line description, examples, and what
//! computes it.
//!
//! A scalar function whose kernel is ours has [`Overload`]s: argument types, a result type and a kernel over
//! one row ([`row`]); [`choose`](crate::types::choose) chooses the overload. The kernels are in
//! [`crate::kernels`], a file for each subject, next to their definitions; they do not depend on the binder.
//! All definitions together make up the [`crate::catalog`].

pub mod row;

use entasis_vector::{DataType, Result, Value};
pub use row::{Kernel, Row, nth, written};

/// A group of functions on one subject: a section of the page.
#[derive(Debug)]
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// Its functions, in the order of the page.
    pub functions: &'static [&'static [Definition]],
}

/// A function under all its names.
#[derive(Debug)]
pub struct Definition {
    /// The name, and others that mean the same.
    pub names: &'static [&'static str],
    /// Arguments, as the page shows them: `text, n`.
    pub arguments: &'static str,
    /// The type of the result, as the page shows it.
    pub gives: &'static str,
    /// Its description: "the last day of the month".
    pub does: &'static str,
    /// Calls and their results, as text.
    pub examples: &'static [(&'static str, &'static str)],
    /// What computes it.
    pub body: Body,
}

/// What computes a function.
pub enum Body {
    /// The overload whose argument types are nearest to the given ones, the first of several.
    Overloads(&'static [Overload]),
    /// Argument and result types that depend on each other.
    Typed(fn(&[DataType]) -> Result<Signature>),
    /// As [`Body::Typed`], with a result type that also depends on constant arguments.
    TypedByConstants(fn(&[DataType], &[Option<Value>]) -> Result<Signature>),
    /// Another module.
    Elsewhere,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Body::Overloads(_) => "overloads",
            Body::Typed(_) | Body::TypedByConstants(_) => "typed",
            Body::Elsewhere => "elsewhere",
        })
    }
}

/// One signature of a function.
pub struct Overload {
    /// The types of the arguments; [`DataType::Null`] accepts any type.
    pub args: &'static [DataType],
    /// The type of any number of further arguments; [`DataType::Null`] accepts any type.
    pub rest: Option<DataType>,
    /// The type of the result.
    pub result: DataType,
    /// What computes it.
    pub kernel: Kernel,
}

/// An overload, with the types of a call.
pub struct Signature {
    /// The types of the arguments.
    pub args: Vec<DataType>,
    /// The type of the result.
    pub result: DataType,
    /// What computes it.
    pub kernel: Kernel,
}

/// An overload with exactly these arguments.
pub const fn takes(args: &'static [DataType], result: DataType, kernel: Kernel) -> Overload {
    Overload { args, rest: None, result, kernel }
}

/// A definition with overloads.
pub const fn define(
    names: &'static [&'static str],
    arguments: &'static str,
    gives: &'static str,
    does: &'static str,
    overloads: &'static [Overload],
    examples: &'static [(&'static str, &'static str)],
) -> Definition {
    Definition { names, arguments, gives, does, examples, body: Body::Overloads(overloads) }
}

/// A definition of a function that another module computes.
pub const fn elsewhere(
    names: &'static [&'static str],
    arguments: &'static str,
    gives: &'static str,
    does: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Definition {
    Definition { names, arguments, gives, does, examples, body: Body::Elsewhere }
}
