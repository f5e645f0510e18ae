//! The function library: which functions there are, under which names, and who computes them.
//!
//! | | computed by |
//! |---|---|
//! | [`native`] | the engine's kernels |
//! | [`time`] | us, value by value ([`by_value`]) |
//! | [`scalar`], [`aggregate`] | DataFusion's library, over Arrow arrays |
//! | [`sequence`] | a sequence of the catalog |
//! | [`average`], [`sum`] | the engine; here only because the library types them otherwise |

pub(crate) mod aggregate;
pub(crate) mod average;
pub(crate) mod by_value;
pub(crate) mod native;
pub(crate) mod scalar;
pub(crate) mod sequence;
pub(crate) mod sum;
pub(crate) mod time;

use datafusion_expr::{AggregateUDF, ScalarUDF};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Names under which DuckDB and PostgreSQL know functions of the library.
const ALIASES: &[(&str, &str)] = &[
    ("strftime", "to_char"),
    ("regexp_matches", "regexp_like"),
    ("ifnull", "nvl"),
    ("instr", "strpos"),
    ("pow", "power"),
    ("log10", "log10"),
    ("first", "first_value"),
    ("last", "last_value"),
    ("arbitrary", "any_value"),
    ("approx_count_distinct", "approx_distinct"),
    ("quantile_cont", "percentile_cont"),
    ("group_concat", "string_agg"),
    ("listagg", "string_agg"),
    ("stddev_samp", "stddev"),
    ("variance", "var_samp"),
    ("every", "bool_and"),
    ("logical_and", "bool_and"),
    ("logical_or", "bool_or"),
];

/// Functions of the library whose arguments or results are nested, which the engine does not have.
const NESTED: &[&str] = &[
    "named_struct",
    "struct",
    "row",
    "get_field",
    "arrow_typeof",
    "arrow_cast",
    "arrow_metadata",
    "union_extract",
    "union_tag",
    "regexp_match",
    "array_agg",
    "nth_value",
    "grouping",
];

/// All functions by lower-case name.
pub(crate) struct Library {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
}

impl Library {
    /// The one library, made at first use.
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
        for name in NESTED {
            scalar.remove(*name);
            aggregate.remove(*name);
        }
        for (name, udf) in native::all().into_iter().chain(time::all()) {
            scalar.insert(name.to_string(), udf);
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
        names.extend(sequence::NAMES.map(String::from));
        names.sort();
        names.dedup();
        names
    }
}
