//! The HAP table driven from Rust: the cost of an operation without Python. `hap.py` calls this and describes
//! it.

use crate::random::Random;
use entasis::{Config, Connection, DataType, Database, Value};
use std::collections::HashSet;
use std::error::Error;
use std::iter;
use std::path::Path;
use std::time::Instant;

const POINT: &str = "SELECT a0, a1, a2, a3 FROM hap WHERE k = ?";
const COUNT: &str = "SELECT count(*) FROM hap WHERE k BETWEEN ? AND ?";
const SUM: &str = "SELECT sum(a0), sum(a1), sum(a2), sum(a3) FROM hap WHERE k BETWEEN ? AND ?";
const DELETE: &str = "DELETE FROM hap WHERE k = ?";
const UPDATE_KEY: &str = "UPDATE hap SET k = ? WHERE k = ?";
const UPDATE: &str = "UPDATE hap SET a7 = ? WHERE k = ?";
const SCAN: &str = "SELECT sum(a0), max(a1) FROM hap";

/// Median microseconds of a statement, run with each set of parameters, which are created when they are
/// needed.
fn median(connection: &Connection, sql: &str, sets: impl Iterator<Item = Vec<i64>>) -> entasis::Result<f64> {
    let mut times = Vec::new();
    for set in sets {
        let parameters: Vec<(Value, DataType)> =
            set.iter().map(|&value| (Value::Integer(value.into()), DataType::Int64)).collect();
        let start = Instant::now();
        let rows = connection.query(sql, &parameters)?;
        std::hint::black_box(rows.row_values().count());
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Loads `rows` rows with even keys, in ascending or random order, and prints the median microseconds of each
/// operation as JSON. If `file` is given, the table is in that new file, with `synchronous` off.
/// `compression` is the option of the table.
pub fn run(rows: u64, is_random: bool, file: Option<&Path>, compression: &str) -> Result<(), Box<dyn Error>> {
    let config = Config::new().with_threads(1).with_when_idle(entasis_allocator::give_back);
    let database = match file {
        Some(file) => Database::open(file, config)?,
        None => Database::in_memory(config)?,
    };
    let connection = database.connect();
    if file.is_some() {
        connection.execute("SET synchronous = 'off'")?;
    }
    let columns: Vec<String> = (0..16).map(|i| format!("a{i} INTEGER NOT NULL")).collect();
    let columns = columns.join(", ");
    connection.execute(&format!(
        "CREATE TABLE hap (k BIGINT PRIMARY KEY, {columns}) WITH (compression = '{compression}')"
    ))?;
    let key = if is_random { format!("i * 7368787 % {rows}") } else { "i".into() };
    let values: Vec<String> =
        (0..16u64).map(|j| format!("CAST(i * {} % 1000003 AS INTEGER)", 2_654_435_761 + 2 * j)).collect();
    connection.execute(&format!(
        "INSERT INTO hap SELECT CAST(2 * ({key}) AS BIGINT), {} FROM range({rows}) t(i)",
        values.join(", ")
    ))?;
    let mut random = Random::new(88_172_645_463_325_252);
    let span = (rows / 50) as i64;
    let mut odd = |count: usize| -> Vec<i64> {
        let mut seen = HashSet::new();
        (0..count).map(|_| 2 * random.below(rows) + 1).filter(|&key| seen.insert(key)).collect()
    };
    let new = odd(20_000);
    let (inserted, targets) = new.split_at(new.len() / 2);
    let mut dice = Random::new(1_234_567_891);
    let mut seen = HashSet::new();
    let points = (0..40_000).map(|_| vec![2 * dice.below(rows)]);
    let point = median(&connection, POINT, points)?;
    let mut ranges = |sql| {
        let lows = (0..400).map(|_| 2 * dice.below(rows));
        median(&connection, sql, lows.map(|low| vec![low, low + span - 1]))
    };
    let (count, sum) = (ranges(COUNT)?, ranges(SUM)?);
    let insert = format!("INSERT INTO hap VALUES ({})", vec!["?"; 17].join(", "));
    let rows_inserted =
        inserted.iter().map(|&key| [key].into_iter().chain((0..16).map(|_| dice.below(1_000_003))).collect());
    let inserts = median(&connection, &insert, rows_inserted)?;
    let payloads = (0..10_000).map(|_| vec![dice.below(1_000_003), 2 * dice.below(rows)]);
    let figures = [
        ("point", point),
        ("count 1 %", count),
        ("sum 1 %", sum),
        ("insert", inserts),
        ("update payload", median(&connection, UPDATE, payloads)?),
        ("delete", median(&connection, DELETE, inserted.iter().map(|&key| vec![key]))?),
        ("update key", {
            let old = iter::repeat_with(|| 2 * dice.below(rows)).filter(|&key| seen.insert(key));
            median(&connection, UPDATE_KEY, targets.iter().zip(old).map(|(&to, from)| vec![to, from]))?
        }),
        ("scan", median(&connection, SCAN, iter::repeat_n(vec![], 15))?),
    ];
    let json: Vec<String> = figures.iter().map(|(name, figure)| format!("\"{name}\": {figure:.2}")).collect();
    println!("{{{}}}", json.join(", "));
    Ok(())
}
