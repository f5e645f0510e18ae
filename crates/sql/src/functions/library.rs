//! All functions by name, as the binder finds them.
//!
//! A function of DataFusion's library is available if the catalog has an entry for it.

use super::{aggregates, average, catalog, native, sum, time, unifying};
use datafusion_expr::{AggregateUDF, ScalarUDF};
use entasis_functions::catalog::{self as entries, definition};
use entasis_functions::windows;
use entasis_syntax::sequence_call;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// DuckDB's and PostgreSQL's names for functions of DataFusion's library.
const ALIASES: &[(&str, &str)] =
    &[("every", "bool_and"), ("logical_and", "bool_and"), ("logical_or", "bool_or")];

/// Functions with nested arguments or results, which the engine does not support.
const NESTED: &[&str] = &["named_struct", "struct", "row", "regexp_match", "array_agg"];

/// All functions by lower-case name.
pub(crate) struct Library {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
}

impl Library {
    /// The only library, made on first use.
    pub(crate) fn get() -> &'static Library {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        LIBRARY.get_or_init(Library::new)
    }

    fn new() -> Library {
        let mut scalar = HashMap::new();
        for udf in datafusion_functions::all_default_functions() {
            for name in udf.aliases().iter().map(String::as_str).chain([udf.name()]) {
                scalar.insert(name.to_string(), udf.clone());
            }
        }
        let mut aggregate = HashMap::new();
        let own = [average::avg(), sum::sum()];
        for udf in datafusion_functions_aggregate::all_default_aggregate_functions().into_iter().chain(own) {
            for name in udf.aliases().iter().map(String::as_str).chain([udf.name()]) {
                aggregate.insert(name.to_string(), udf.clone());
            }
        }
        for (alias, name) in ALIASES {
            if let Some(udf) = scalar.get(*name).cloned() {
                scalar.entry(alias.to_string()).or_insert(udf);
            }
            if let Some(udf) = aggregate.get(*name).cloned() {
                aggregate.entry(alias.to_string()).or_insert(udf);
            }
        }
        let is_known = |name: &str| definition(name).is_some();
        scalar.retain(|name, _| is_known(name));
        aggregate.retain(|name, _| is_known(name));
        for name in unifying::NAMES {
            if let Some(library) = scalar.get(name).cloned() {
                scalar.insert(name.to_string(), unifying::unifying(library));
            }
        }
        for (name, definition) in entries::scalars() {
            scalar.insert(name.to_string(), catalog::udf(name, definition));
        }
        for (name, udf) in native::all().into_iter().chain(time::all()) {
            scalar.insert(name.to_string(), udf);
        }
        for (name, udf) in aggregates::all() {
            aggregate.insert(name.to_string(), udf);
        }
        Library { scalar, aggregate }
    }

    pub(crate) fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.scalar.get(name).cloned()
    }

    pub(crate) fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.aggregate.get(name).cloned()
    }

    /// True if there is a function of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.scalar.contains_key(name) || self.aggregate.contains_key(name)
    }

    /// True if a function of that name would need nested types.
    pub(crate) fn is_nested(name: &str) -> bool {
        NESTED.contains(&name) || name.starts_with("array_") || name.starts_with("list_") || name == "unnest"
    }

    /// All names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.scalar.keys().chain(self.aggregate.keys()).cloned().collect();
        names.extend(sequence_call::NAMES.map(String::from));
        names.extend(windows::names().map(String::from));
        names.sort();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_an_entry_and_every_entry_a_function() {
        let library = Library::get();
        for name in library.names() {
            assert!(definition(&name).is_some(), "{name} is not in the catalog");
        }
        for section in entries::SECTIONS {
            for definition in section.functions.iter().copied().flatten() {
                for name in definition.names {
                    assert!(
                        library.has(name)
                            || sequence_call::NAMES.contains(name)
                            || windows::is_window_function(name),
                        "there is no function {name}"
                    );
                    assert_eq!(*name, name.to_ascii_lowercase());
                }
                assert!(
                    !definition.examples.is_empty() || sequence_call::NAMES.contains(&definition.names[0])
                );
            }
        }
    }
}
