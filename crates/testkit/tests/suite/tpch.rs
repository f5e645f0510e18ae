//! The 22 queries of TPC-H against known answers: decimals and everything else exact, averages to 1e-9
//! relative.

use entasis::{Config, Connection, DataType, Database, Value};
use entasis_testkit::configuration::{Configuration, tests_directory};
use std::sync::LazyLock;

pub static SMALL: LazyLock<Database> = LazyLock::new(|| loaded(0.01));
static LARGE: LazyLock<Database> = LazyLock::new(|| loaded(0.1));

fn loaded(scale: f64) -> Database {
    let database = Database::in_memory(Config::default()).expect("an empty database");
    entasis::tpch::load(&database.connect(), scale, &mut |_, _| {}).expect("the tables are made");
    database
}

fn check(database: &Database, scale: &str, configuration: &str) {
    let connection = database.connect();
    for setting in Configuration::load(configuration).settings {
        connection.execute(&setting).expect("the settings are valid");
    }
    let failures: Vec<String> = entasis::tpch::QUERIES
        .iter()
        .filter_map(|(name, sql)| {
            compare(&connection, sql, &answer(scale, name)).err().map(|e| format!("{name}: {e}"))
        })
        .collect();
    assert!(failures.is_empty(), "{} queries fail:\n{}", failures.len(), failures.join("\n"));
}

fn answer(scale: &str, query: &str) -> Vec<Vec<String>> {
    let path = tests_directory().join(format!("tpch/answers/{scale}/{query}.csv"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().skip(1).map(cells).collect()
}

/// The cells of a line: separated by bars, quoted if a cell contains special characters, with quotes doubled.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            '|' if !quoted => cells.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    cells.push(cell);
    cells
}

fn compare(connection: &Connection, sql: &str, expected: &[Vec<String>]) -> Result<(), String> {
    let rows = connection.execute(sql).map_err(|e| e.to_string())?;
    let types: Vec<DataType> = rows.schema().iter().map(|field| field.ty).collect();
    if rows.rows() != expected.len() as u64 {
        return Err(format!("{} rows, expected {}", rows.rows(), expected.len()));
    }
    for (i, (found, expected)) in rows.row_values().zip(expected).enumerate() {
        if found.len() != expected.len() {
            return Err(format!("{} columns, expected {}", found.len(), expected.len()));
        }
        for ((value, ty), text) in found.iter().zip(&types).zip(expected) {
            if !same(value, *ty, text) {
                return Err(format!("row {i}: {} ({ty}), expected {text}", value.display(*ty)));
            }
        }
    }
    Ok(())
}

fn same(value: &Value, ty: DataType, text: &str) -> bool {
    match value {
        Value::Null => text.is_empty(),
        Value::Float(v) => {
            let expected: f64 = text.parse().unwrap_or(f64::NAN);
            (v - expected).abs() <= 1e-9 * expected.abs()
        }
        // The answers print a decimal with the digits of their own computation, which may be fewer than ours.
        Value::Integer(_) if ty.is_decimal() => {
            without_zeros(&value.display(ty).to_string()) == without_zeros(text)
        }
        _ => value.display(ty).to_string() == text,
    }
}

fn without_zeros(decimal: &str) -> &str {
    if decimal.contains('.') { decimal.trim_end_matches('0').trim_end_matches('.') } else { decimal }
}

/// A test for each configuration: its name, the scale, the configuration.
macro_rules! scales {
    ($($test:ident: $engine:ident, $scale:literal, $configuration:literal;)*) => { $(
        #[test]
        fn $test() {
            check(&$engine, $scale, $configuration);
        }
    )* };
}

scales! {
    scale_001_one_thread: SMALL, "sf0.01", "one_thread";
    scale_001_two_threads: SMALL, "sf0.01", "two_threads";
    scale_001_chunks_of_3: SMALL, "sf0.01", "chunks_of_3";
    scale_001_tuples: SMALL, "sf0.01", "tuples";
    scale_001_join_spill: SMALL, "sf0.01", "join_spill";
    scale_001_join_spill_half: SMALL, "sf0.01", "join_spill_half";
    scale_001_join_spill_deep: SMALL, "sf0.01", "join_spill_deep";
    scale_001_aggregate_spill: SMALL, "sf0.01", "aggregate_spill";
    scale_001_aggregate_spill_deep: SMALL, "sf0.01", "aggregate_spill_deep";
    scale_001_sort_spill: SMALL, "sf0.01", "sort_spill";
    scale_001_sort_spill_deep: SMALL, "sf0.01", "sort_spill_deep";
    scale_001_join_radix: SMALL, "sf0.01", "join_radix";
    scale_001_join_swap: SMALL, "sf0.01", "join_swap";
    scale_01_one_thread: LARGE, "sf0.1", "one_thread";
    scale_01_two_threads: LARGE, "sf0.1", "two_threads";
}
