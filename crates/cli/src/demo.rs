//! `entasis demo`: the 22 queries of TPC-H on generated data, then three questions about real flights.

use crate::editor::Highlight;
use crate::progress::Steps;
use crate::session::{Failure, Outcome, Session};
use crate::words::{count, duration};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// TPC-H scale factor: a tenth is 866,602 rows, about 100 MB of text.
const SCALE: f64 = 0.1;

/// The question that each TPC-H query answers, in order.
const ASKS: [&str; 22] = [
    "pricing summary of shipped lines",
    "cheapest supplier of a part in a region",
    "unshipped orders of the highest value",
    "orders with late lines, by priority",
    "revenue by nation within a region",
    "revenue that smaller discounts would bring",
    "trade between two nations",
    "a nation's market share by year",
    "profit by nation and year",
    "customers who return parts",
    "stock of importance by value",
    "late orders by shipping mode",
    "customers by number of orders",
    "revenue share of promoted parts",
    "the supplier of the largest revenue",
    "suppliers by kind of part",
    "revenue lost without small orders",
    "customers of large orders",
    "discounted revenue of picked parts",
    "suppliers with too much of a part",
    "suppliers who kept orders waiting",
    "countries worth a sales call",
];

/// The files of the flight data that the questions need, embedded in the program.
const FILES: [(&str, &[u8]); 3] = [
    ("flights.parquet", include_bytes!("../../../data/flights/flights.parquet")),
    ("airlines.csv", include_bytes!("../../../data/flights/airlines.csv")),
    ("weather.csv", include_bytes!("../../../data/flights/weather.csv")),
];

/// Questions about them: `{}` is the directory.
const QUESTIONS: [(&str, &str); 3] = [
    (
        "Which airlines keep New York waiting?",
        "SELECT a.name AS airline, count(*) AS flights, round(avg(f.dep_delay), 1) AS minutes_late
FROM '{}/flights.parquet' f JOIN '{}/airlines.csv' a ON f.carrier = a.carrier
GROUP BY a.name
ORDER BY minutes_late DESC
LIMIT 5",
    ),
    (
        "When in the day is it best to leave?",
        "SELECT hour, count(*) AS flights,
       round(100.0 * sum(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) / count(*), 1) AS percent_late
FROM '{}/flights.parquet'
WHERE dep_delay IS NOT NULL
GROUP BY hour
ORDER BY hour",
    ),
    (
        "What does fog do?",
        "SELECT CASE WHEN w.visib < 1 THEN 'under 1 mile' WHEN w.visib < 10 THEN '1 to 10 miles' ELSE '10 miles' END AS visibility,
       count(*) AS flights, count(*) - count(f.dep_time) AS cancelled, round(avg(f.dep_delay), 1) AS minutes_late
FROM '{}/flights.parquet' f
JOIN '{}/weather.csv' w
  ON f.origin = w.origin AND f.year = w.year AND f.month = w.month AND f.day = w.day AND f.hour = w.hour
GROUP BY visibility
ORDER BY minutes_late",
    ),
];

/// Runs the demo.
///
/// # Errors
/// Those of the output, and of writing the flight data if they are not found.
pub fn run(session: &mut Session) -> io::Result<Outcome> {
    let outcome = tpch(session)?;
    if outcome != Outcome::Done {
        return Ok(outcome);
    }
    let directory = flights()?;
    let style = session.style();
    writeln!(session.out(), "\n{}", style.bold("Questions about the 336,776 flights from New York in 2013"))?;
    let highlight = Highlight::new(style);
    for (question, sql) in QUESTIONS {
        let sql = sql.replace("{}", &directory.display().to_string());
        writeln!(session.out(), "\n{}\n{};", style.bold(question), highlight.sql(&sql))?;
        session.out().flush()?;
        let outcome = session.statement(&sql, 1)?;
        if outcome != Outcome::Done {
            return Ok(outcome);
        }
    }
    let command = std::env::args().next().unwrap_or_else(|| "entasis".to_owned());
    let out = session.out();
    writeln!(out, "\n{}", style.bold("Now your own data"))?;
    writeln!(
        out,
        "  {command} -c \"SUMMARIZE SELECT * FROM 'your-file.csv'\"      the columns of a CSV or Parquet file"
    )?;
    writeln!(out, "  {command} -c \"SELECT count(*) FROM 'directory/*.parquet'\"   many files as one table")?;
    writeln!(
        out,
        "  {command}                                                 a prompt; .help lists its commands"
    )?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// Generates the tables, runs the queries, prints rows and times.
fn tpch(session: &mut Session) -> io::Result<Outcome> {
    let style = session.style();
    let start = Instant::now();
    let bar = Steps::new("Generating TPC-H");
    let loaded = entasis::tpch::load(session.connection(), SCALE, &mut |share, table| bar.set(share, table));
    drop(bar);
    if let Err(error) = loaded {
        eprintln!("{error}");
        return Ok(Outcome::Failed(Failure::Statement));
    }
    let took = duration(start.elapsed());
    writeln!(session.out(), "{}", style.bold("The 22 queries of TPC-H at scale 0.1, in memory"))?;
    writeln!(
        session.out(),
        "{}",
        style.dim(format!("866,602 rows in 8 tables, generated and loaded in {took}"))
    )?;
    writeln!(
        session.out(),
        "\n  {}",
        style.dim(format!("{:5} {:44} {:>7} {:>8}", "query", "asks for", "rows", "ms"))
    )?;
    let mut total = Duration::ZERO;
    for ((name, sql), ask) in entasis::tpch::QUERIES.iter().zip(ASKS) {
        let start = Instant::now();
        match session.connection().execute(sql) {
            Ok(rows) => {
                let took = start.elapsed();
                total += took;
                let ms = took.as_secs_f64() * 1e3;
                writeln!(session.out(), "  {name:5} {ask:44} {:>7} {ms:>8.1}", rows.rows())?;
                session.out().flush()?;
            }
            Err(error) => {
                session.out().flush()?;
                eprintln!("{name}: {error}");
                return Ok(Outcome::Failed(Failure::Statement));
            }
        }
    }
    let queries = count(entasis::tpch::QUERIES.len() as u64, "query", "queries");
    writeln!(session.out(), "  {}", style.bold(format!("{queries} in {}", duration(total))))?;
    Ok(Outcome::Done)
}

/// A directory with the flight data: `data/flights` in the working directory, if this is a clone of the
/// project. Otherwise a copy of the embedded data in the directory for temporary files, which is kept for the
/// user to explore further.
fn flights() -> io::Result<PathBuf> {
    let here = Path::new("data/flights");
    if FILES.iter().all(|(name, _)| here.join(name).is_file()) {
        return Ok(here.to_owned());
    }
    let directory = std::env::temp_dir().join("entasis-demo");
    std::fs::create_dir_all(&directory)?;
    for (name, bytes) in FILES {
        std::fs::write(directory.join(name), bytes)?;
    }
    Ok(directory)
}
