//! Functions of the catalog that have a result for all values: what calls nothing else may be computed for
//! rows that a statement does not ask for, such as those that a join leaves out
//! ([`ExternalFunction::is_total`](entasis_vector::expr::ExternalFunction::is_total)).
//!
//! A function that is missing here is only computed later than it might be. Left out are functions whose
//! result may be too large, and all that refuse some of their arguments. Regular expressions are total once
//! their pattern is a constant that is one.

/// Under all of their names.
const TOTAL: &[&str] = &[
    "array_contains",
    "array_extract",
    "array_has",
    "array_indexof",
    "array_length",
    "array_position",
    "array_reverse",
    "array_sort",
    "ascii",
    "bit_count",
    "btrim",
    "cardinality",
    "dayname",
    "greatest",
    "initcap",
    "instr",
    "isfinite",
    "isinf",
    "isnan",
    "iszero",
    "least",
    "left",
    "list_contains",
    "list_element",
    "list_extract",
    "list_has",
    "list_indexof",
    "list_position",
    "list_reverse",
    "list_sort",
    "ltrim",
    "monthname",
    "ord",
    "position",
    "reverse",
    "right",
    "rtrim",
    "signbit",
    "strpos",
    "struct_extract",
    "translate",
    "trim",
    "typeof",
    "unicode",
];

/// Functions of a text and a pattern.
const OF_PATTERNS: &[&str] = &[
    "regexp_count",
    "regexp_extract",
    "regexp_full_match",
    "regexp_like",
    "regexp_matches",
    "regexp_substr",
];

/// True if it has a result for all values.
pub(super) fn is_total(name: &str) -> bool {
    TOTAL.binary_search(&name).is_ok()
}

/// True if it has one for all texts, with arguments behind the text that it takes at all.
pub(super) fn is_of_pattern(name: &str) -> bool {
    OF_PATTERNS.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::call::catalog_call;
    use crate::catalog::definition;
    use crate::time_zone::TimeZone;
    use entasis_vector::expr::{Expr, evaluate_constant};
    use entasis_vector::{DataType, Value};

    /// Values at the ends of their types, and unusual ones within.
    fn extremes(ty: DataType) -> Vec<Value> {
        match ty {
            DataType::Varchar => {
                ["", "a", "ä\u{10ffff}\0", "  x y ", "%_\\"].map(|text| Value::Text(text.into())).into()
            }
            DataType::Float64 => {
                [0.0, -0.0, f64::NAN, f64::INFINITY, f64::MIN, f64::MIN_POSITIVE].map(Value::Float).into()
            }
            DataType::Boolean => vec![Value::Boolean(true), Value::Boolean(false)],
            ty => {
                let (low, high) = ty.integer_range().expect("an integer inside");
                [low, high, 0, 1, -1].into_iter().filter(|v| low <= *v).map(Value::Integer).collect()
            }
        }
    }

    #[test]
    fn total_functions_have_results_for_extremes() {
        use DataType::{Boolean, Date, Float64, Int64, Timestamp, Varchar};
        let types = [Varchar, Int64, Float64, Boolean, Date, Timestamp];
        assert!(TOTAL.is_sorted() && OF_PATTERNS.is_sorted());
        for &name in TOTAL {
            let definition = definition(name).unwrap_or_else(|| panic!("there is no function {name}"));
            let mut calls = 0;
            let mut signatures: Vec<Vec<DataType>> = types.iter().map(|ty| vec![*ty]).collect();
            let pairs = types.iter().flat_map(|a| types.iter().map(|b| vec![*a, *b]));
            signatures.extend(pairs);
            signatures.push(vec![Varchar, Varchar, Varchar]);
            let lists =
                [Varchar, Int64].map(|ty| [vec![DataType::list(ty)], vec![DataType::list(ty), ty]]).concat();
            for signature in signatures.iter().chain(&lists) {
                // All combinations of the extremes of each argument.
                let of = |ty: &DataType| match ty {
                    DataType::List(element) => extremes(**element)
                        .into_iter()
                        .map(|value| {
                            let items = vec![Expr::literal(value, **element); 2];
                            crate::catalog::call::named_call("list_value", items, TimeZone::UTC).unwrap()
                        })
                        .collect(),
                    ty => extremes(*ty).into_iter().map(|value| Expr::literal(value, *ty)).collect(),
                };
                let choices: Vec<Vec<Expr>> = signature.iter().map(of).collect();
                let mut all: Vec<Vec<Expr>> = vec![Vec::new()];
                for choice in &choices {
                    all = all
                        .iter()
                        .flat_map(|args| choice.iter().map(|arg| [args.clone(), vec![arg.clone()]].concat()))
                        .collect();
                }
                for args in all {
                    let text = format!("{name}{args:?}");
                    // Not every function takes these types.
                    let Ok(call) = catalog_call(name, definition, args, None, TimeZone::UTC) else {
                        continue;
                    };
                    let value = evaluate_constant(&call);
                    // An argument is cast to the type that the function takes, and casts count by themselves.
                    let mut is_cast = false;
                    call.visit(&mut |part| is_cast |= matches!(part, Expr::Cast { .. }));
                    if is_cast && value.is_err() {
                        continue;
                    }
                    assert!(value.is_ok(), "{text}: {value:?}");
                    calls += 1;
                }
            }
            assert!(calls > 0 || name == "struct_extract", "{name} was never called");
        }
    }
}
