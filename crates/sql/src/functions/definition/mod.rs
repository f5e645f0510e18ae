//! What there is to say of a function: its names, what it takes and gives, a line on what it does, examples,
//! and what computes it.
//!
//! A scalar function whose kernel is ours has [`Overload`]s: argument types, a result type and a kernel over
//! one row ([`row`]); [`types`] chooses the overload. The kernels are in [`super::kernels`], a file for each
//! subject, beside their definitions; they know nothing of the binder. All definitions together are the
//! [`super::catalog`].

pub(crate) mod row;
pub(crate) mod types;

use entasis_vector::{DataType, Result, Value};
pub(crate) use row::{Kernel, Row, Writer, written};

/// A group of functions on one subject: a section of the page.
#[derive(Debug)]
pub(crate) struct Section {
    pub title: &'static str,
    pub functions: &'static [&'static [Definition]],
}

/// One function under all its names.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The name, and others that mean the same.
    pub names: &'static [&'static str],
    /// Arguments, as the page shows them: `text, n`.
    pub arguments: &'static str,
    /// The type of the result, as the page shows it.
    pub gives: &'static str,
    /// What it does: "the last day of the month".
    pub does: &'static str,
    /// Calls and what they give, as text.
    pub examples: &'static [(&'static str, &'static str)],
    pub body: Body,
}

/// What computes a function.
pub(crate) enum Body {
    /// The first overload whose arguments are nearest to the given ones.
    Overloads(&'static [Overload]),
    /// Types that depend on each other.
    Typed(fn(&[DataType]) -> Result<Signature>),
    /// As [`Body::Typed`], where the result also depends on arguments that are constants.
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

/// One way to call a function.
pub(crate) struct Overload {
    pub args: &'static [DataType],
    /// The type of any number of further arguments; [`DataType::Null`] takes each as it comes.
    pub rest: Option<DataType>,
    pub result: DataType,
    pub kernel: Kernel,
}

/// An overload, with the types of a call.
pub(crate) struct Signature {
    pub args: Vec<DataType>,
    pub result: DataType,
    pub kernel: Kernel,
}

/// A call with exactly these arguments.
pub(crate) const fn takes(args: &'static [DataType], result: DataType, kernel: Kernel) -> Overload {
    Overload { args, rest: None, result, kernel }
}

/// A definition with overloads.
pub(crate) const fn define(
    names: &'static [&'static str],
    arguments: &'static str,
    gives: &'static str,
    does: &'static str,
    overloads: &'static [Overload],
    examples: &'static [(&'static str, &'static str)],
) -> Definition {
    Definition { names, arguments, gives, does, examples, body: Body::Overloads(overloads) }
}

/// A definition of what another module computes.
pub(crate) const fn elsewhere(
    names: &'static [&'static str],
    arguments: &'static str,
    gives: &'static str,
    does: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Definition {
    Definition { names, arguments, gives, does, examples, body: Body::Elsewhere }
}
