//! The catalog of functions: every name, with argument and result types, a one-line description, and examples
//! that a test runs ([`definition`](crate::definition)). `docs/functions.md` is generated from it ([`page`]).
//!
//! The binder calls a scalar function through [`call`]. The others ([`Body::Elsewhere`]) are in
//! [`aggregates`], [`windows`], [`times`](crate::times), or expressions of the engine.

pub mod call;
#[cfg(test)]
mod looking_test;
pub mod page;
pub mod signature;
mod total;

use crate::definition::{Body, Definition, Overload, Section};
use crate::{aggregates, kernels, windows};
use entasis_vector::DataType;
use std::collections::HashMap;
use std::sync::OnceLock;

/// All functions, in the order of the page.
pub const SECTIONS: &[Section] = &[
    Section { title: "Any type", functions: &[kernels::general::FUNCTIONS] },
    Section {
        title: "Numbers",
        functions: &[
            kernels::numbers::FUNCTIONS,
            kernels::trigonometry::FUNCTIONS,
            kernels::integers::FUNCTIONS,
            kernels::numbers::PROPERTIES,
        ],
    },
    Section {
        title: "Text",
        functions: &[
            kernels::text::PARTS,
            kernels::padding::FUNCTIONS,
            kernels::text::FUNCTIONS,
            kernels::written::FUNCTIONS,
            kernels::similarity::FUNCTIONS,
        ],
    },
    Section {
        title: "Regular expressions",
        functions: &[kernels::patterns::FUNCTIONS, kernels::escapes::FUNCTIONS],
    },
    Section { title: "Bytes, codes and digests", functions: &[kernels::bytes::FUNCTIONS] },
    Section {
        title: "Dates and times",
        functions: &[
            kernels::calendar::PARTS,
            kernels::date_differences::FUNCTIONS,
            kernels::calendar::MADE,
            kernels::intervals::FUNCTIONS,
            kernels::calendar::CLOCKS,
        ],
    },
    Section {
        title: "Lists and structs",
        functions: &[
            kernels::lists::FUNCTIONS,
            kernels::list_texts::FUNCTIONS,
            kernels::structs::FUNCTIONS,
            kernels::elements::FUNCTIONS,
        ],
    },
    Section { title: "Maps", functions: &[kernels::maps::FUNCTIONS] },
    Section { title: "Formats", functions: &[kernels::formats::FUNCTIONS] },
    Section { title: "Aggregates", functions: &[aggregates::FUNCTIONS] },
    Section { title: "Window functions", functions: &[windows::FUNCTIONS] },
];

/// All scalar functions with kernels of ours, by name.
#[cfg(test)]
fn scalars() -> impl Iterator<Item = (&'static str, &'static Definition)> {
    let definitions = SECTIONS.iter().flat_map(|section| section.functions.iter().copied().flatten());
    let ours = definitions.filter(|definition| !matches!(definition.body, Body::Elsewhere));
    ours.flat_map(|definition| definition.names.iter().map(move |name| (*name, definition)))
}

/// What the catalog says about a function, for tests that call every one of them.
#[derive(Debug, Clone)]
pub struct FunctionEntry {
    /// The section of the page that it is in.
    pub section: &'static str,
    /// Its names.
    pub names: &'static [&'static str],
    /// The calls of its examples.
    pub examples: Vec<&'static str>,
    /// The argument types that it takes, where these do not depend on each other; a type NULL stands for any.
    pub signatures: Vec<Vec<DataType>>,
}

/// All functions, in the order of the page.
pub fn entries() -> Vec<FunctionEntry> {
    let entry = |section: &'static str, definition: &'static Definition| FunctionEntry {
        section,
        names: definition.names,
        examples: definition.examples.iter().map(|(call, _)| *call).collect(),
        signatures: match definition.body {
            Body::Overloads(overloads) => {
                let types =
                    |overload: &Overload| overload.args.iter().copied().chain(overload.rest).collect();
                overloads.iter().map(types).collect()
            }
            _ => Vec::new(),
        },
    };
    let of = |section: &'static Section| {
        let definitions = section.functions.iter().copied().flatten();
        definitions.map(move |definition| entry(section.title, definition))
    };
    SECTIONS.iter().flat_map(of).collect()
}

/// The definition of any name, whatever computes it.
pub fn definition(name: &str) -> Option<&'static Definition> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static Definition>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let definitions = SECTIONS.iter().flat_map(|section| section.functions.iter().copied().flatten());
        definitions
            .flat_map(|definition| definition.names.iter().map(move |name| (*name, definition)))
            .collect()
    });
    by_name.get(name).copied()
}
