//! The page of functions: it is what the catalog generates, and every example on it has the result stated
//! there.

use entasis::{Config, DataType, Database, Value};
use entasis_testkit::golden;

#[test]
fn the_page_is_up_to_date() {
    if let Err(difference) = golden::check("../docs/functions.md", &entasis_functions::catalog::page::page())
    {
        panic!("{difference}");
    }
}

#[test]
fn the_page_of_types_is_up_to_date() {
    if let Err(difference) = golden::check("../docs/types.md", &entasis_functions::types::page()) {
        panic!("{difference}");
    }
}

#[test]
fn the_examples_give_what_they_say() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    let mut failures = Vec::new();
    for (query, expected) in entasis_functions::catalog::page::examples() {
        let found = match connection.execute(&query) {
            Ok(rows) => {
                let shown =
                    |row: Vec<Value>| row.iter().map(|v| v.display(DataType::Varchar).to_string()).collect();
                rows.row_values().map(shown).collect::<Vec<String>>().join(", ")
            }
            Err(error) => error.to_string(),
        };
        if found != expected {
            failures.push(format!("{query}\n  expected: {expected}\n  found:    {found}"));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn what_the_page_says_is_left_out_is_not_there() {
    let page = entasis_functions::catalog::page::page();
    let (_, rest) = page.split_once("## What is left out").expect("the section");
    let (section, _) = rest.split_once("Where PostgreSQL and DuckDB disagree").expect("its end");
    let known = entasis::functions();
    let names = section.split('`').skip(1).step_by(2);
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let there: Vec<&str> =
        names.filter(is_plain).filter(|name| known.iter().any(|own| own == name)).collect();
    assert!(there.is_empty(), "these functions exist: {there:?}");
    assert!(known.iter().any(|own| own == "lower"), "the list of functions has another form");
}
