//! Concurrent writers: the cost of a statement with one connection, and the throughput of several threads,
//! each with a connection of its own on one database. `threads.py` calls this and describes the measurements.
//!
//! A measurement runs for a fixed time. Each thread records the duration of each of its operations; counts
//! and times of all threads are combined. Within a round the numbers of threads take turns, in a different
//! order in each round, because the machine has fast and slow minutes. A first round is not counted.

use crate::random::Random;
use entasis::{Config, Connection, DataType, Database, ErrorKind, Value};
use std::error::Error;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Rows per transaction.
const TRANSACTION: u64 = 10;

/// The operations of the threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Workload {
    Reads,
    OneTable,
    Increments,
    TwoTables,
    Transactions,
    BesideScans,
    Indexed,
}

impl Workload {
    const ALL: [(Workload, &str); 7] = [
        (Workload::Reads, "reads of one table"),
        (Workload::OneTable, "one table"),
        (Workload::Increments, "increments in one table"),
        (Workload::TwoTables, "two tables"),
        (Workload::Transactions, "transactions of ten rows"),
        (Workload::BesideScans, "one table beside scans"),
        (Workload::Indexed, "indexed table"),
    ];
}

/// The combined figures of all threads.
#[derive(Default)]
struct Figures {
    seconds: f64,
    /// Nanoseconds of each operation that succeeded.
    times: Vec<u32>,
    conflicts: u64,
}

/// Loads two tables, and one with an index, of `rows` rows each, and prints a line of JSON for each
/// measurement of the workloads of which the name contains `only`.
pub fn run(
    rows: u64,
    threads: &[u64],
    rounds: u64,
    time: Duration,
    only: &str,
) -> Result<(), Box<dyn Error>> {
    let config = Config::new().with_threads(1).with_when_idle(entasis_allocator::give_back);
    let database = Database::in_memory(config)?;
    let connection = database.connect();
    for table in ["one", "two", "indexed"] {
        connection.execute(&format!(
            "CREATE TABLE {table} (k BIGINT PRIMARY KEY, v BIGINT NOT NULL, w INTEGER NOT NULL)"
        ))?;
        connection.execute(&format!(
            "INSERT INTO {table} SELECT i, i, i * 7919 % 1000003 FROM range({rows}) r(i)"
        ))?;
    }
    connection.execute("CREATE INDEX indexed_w ON indexed (w)")?;
    for round in 0..=rounds {
        for (workload, name) in Workload::ALL.into_iter().filter(|(_, name)| name.contains(only)) {
            for turn in 0..threads.len() {
                let threads = threads[(turn + round as usize) % threads.len()];
                let figures = measure(&database, workload, rows, threads, round, time)?;
                if round > 0 {
                    print(name, threads, round, figures);
                }
            }
        }
    }
    Ok(())
}

/// Runs a workload with a number of threads for some time.
fn measure(
    database: &Database,
    workload: Workload,
    rows: u64,
    threads: u64,
    round: u64,
    time: Duration,
) -> Result<Figures, Box<dyn Error>> {
    let is_over = AtomicBool::new(false);
    // All writers and this thread.
    let start = Barrier::new(threads as usize + 1);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..threads)
            .map(|number| {
                let (is_over, start) = (&is_over, &start);
                let stripe = (rows * number / threads, rows * (number + 1) / threads);
                let random = Random::new((round * 1000 + number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                scope.spawn(move || {
                    let connection = database.connect();
                    start.wait();
                    write(&connection, workload, rows, stripe, random, is_over)
                })
            })
            .collect();
        let reader = (workload == Workload::BesideScans).then(|| {
            scope.spawn(|| -> entasis::Result<()> {
                let connection = database.connect();
                while !is_over.load(Ordering::Relaxed) {
                    connection.execute("SELECT sum(v), sum(w) FROM one")?;
                }
                Ok(())
            })
        });
        start.wait();
        let began = Instant::now();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        let mut all = Figures::default();
        for writer in writers {
            let figures = writer.join().expect("a writer does not panic")?;
            all.times.extend(figures.times);
            all.conflicts += figures.conflicts;
        }
        all.seconds = began.elapsed().as_secs_f64();
        reader.map_or(Ok(()), |reader| reader.join().expect("a reader does not panic"))?;
        Ok(all)
    })
}

/// The loop of one thread until the time is over. Transactions use only the keys of the thread's own stripe,
/// so that no two need the same row.
fn write(
    connection: &Connection,
    workload: Workload,
    rows: u64,
    stripe: (u64, u64),
    mut random: Random,
    is_over: &AtomicBool,
) -> entasis::Result<Figures> {
    let mut figures = Figures::default();
    for number in 0_u64.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let start = Instant::now();
        let result = match workload {
            Workload::OneTable | Workload::BesideScans => {
                update(connection, "one", random.below(rows), &mut random)
            }
            Workload::Increments => change(
                connection,
                "UPDATE one SET v = v + ? WHERE k = ?",
                &[integer(random.below(100)), integer(random.below(rows))],
            ),
            Workload::Reads => read(connection, random.below(rows)),
            Workload::TwoTables => {
                let table = if number % 2 == 0 { "one" } else { "two" };
                update(connection, table, random.below(rows), &mut random)
            }
            Workload::Indexed => update(connection, "indexed", random.below(rows), &mut random),
            Workload::Transactions => transaction(connection, stripe, &mut random),
        };
        match result {
            Ok(()) => figures.times.push(u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX)),
            Err(error) if error.kind() == ErrorKind::Conflict => figures.conflicts += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(figures)
}

/// Updates the row with a key.
fn update(connection: &Connection, table: &str, key: i64, random: &mut Random) -> entasis::Result<()> {
    let sql = match table {
        "one" => "UPDATE one SET v = ? WHERE k = ?",
        "two" => "UPDATE two SET v = ? WHERE k = ?",
        _ => "UPDATE indexed SET w = ? WHERE k = ?",
    };
    change(connection, sql, &[integer(random.below(1_000_003)), integer(key)])
}

/// Runs an update of one row.
fn change(connection: &Connection, sql: &str, parameters: &[(Value, DataType)]) -> entasis::Result<()> {
    match connection.query(sql, parameters)?.changed() {
        Some(1) => Ok(()),
        other => {
            Err(entasis::Error::internal(format!("{other:?} rows were changed by {sql} with {parameters:?}")))
        }
    }
}

/// Reads a column of the row with a key.
fn read(connection: &Connection, key: i64) -> entasis::Result<()> {
    let rows = connection.query("SELECT v FROM one WHERE k = ?", &[integer(key)])?;
    match rows.rows() {
        1 => Ok(()),
        other => Err(entasis::Error::internal(format!("{other} rows of table one have the key {key}"))),
    }
}

/// A parameter.
fn integer(value: i64) -> (Value, DataType) {
    (Value::Integer(value.into()), DataType::Int64)
}

/// Updates rows of a stripe, all or nothing.
fn transaction(
    connection: &Connection,
    (first, end): (u64, u64),
    random: &mut Random,
) -> entasis::Result<()> {
    connection.query("BEGIN", &[])?;
    for _ in 0..TRANSACTION {
        let key = first as i64 + random.below(end - first);
        update(connection, "one", key, random)?;
    }
    connection.query("COMMIT", &[]).map(drop)
}

/// Prints a measurement as a line of JSON.
fn print(workload: &str, threads: u64, round: u64, mut figures: Figures) {
    let per_second = figures.times.len() as f64 / figures.seconds;
    figures.times.sort_unstable();
    let at = |share: f64| {
        let index = (figures.times.len() as f64 * share) as usize;
        figures.times.get(index).map_or(f64::NAN, |&nanoseconds| f64::from(nanoseconds) / 1000.0)
    };
    println!(
        "{{\"workload\": \"{workload}\", \"threads\": {threads}, \"round\": {round}, \"per_second\": {per_second:.1}, \
         \"median_us\": {:.3}, \"p99_us\": {:.3}, \"conflicts\": {}}}",
        at(0.5),
        at(0.99),
        figures.conflicts
    );
}
