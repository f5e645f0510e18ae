//! Joins whose probe side is read from a file, with the file in the system's page cache and not: nanoseconds
//! a probe row.
//!
//! `make bench-cold-probe`, or
//! `cargo run --release -p entasis-engine --example cold_probe [BUILD [PROBE [DIRECTORY]]]`, in millions
//! of rows.
//!
//! Barber et al., *Memory-Efficient Hash Joins*, section 4.4, Figure 10: the build side fits into memory, and
//! the probe side streams by from a disk. As in `joins`, build keys are n numbers of 8 bytes out of 2n
//! values, with a number beside, and probe rows are drawn from them; probe rows are only a key, 8 bytes in
//! the file, which is as the paper's is not compressed. Before a cold run the file is dropped from the page
//! cache (`dd oflag=nocache`). The first line is what reading alone takes: the same scan, of which nothing
//! but a sum is made. Each worker reads pieces of 4 MB. Times are medians of several rounds, tables in turns,
//! without those of building, which are measured with the first piece alone.

mod random;
mod ready;

use entasis_engine::exec::{QueryContext, Settings, TableKind, execute};
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_engine::relation::{ColumnStatistics, Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{
    CHUNK_ROWS, Chunk, ColumnId, DataType, Error, Field, Result, Schema, Selection, Vector,
};
use random::Random;
use ready::{Ready, Sum};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const ROUNDS: usize = 5;
/// Rows that a worker reads at once: 4 MB.
const PIECE_ROWS: usize = 256 * CHUNK_ROWS;

/// A file of keys of 8 bytes in the machine's byte order.
#[derive(Debug)]
struct Keys {
    schema: Schema,
    path: PathBuf,
    /// Rows that are read.
    rows: u64,
    /// Rows and distinct keys that the optimizer is told.
    claimed: (u64, u64),
}

impl Relation for Keys {
    fn name(&self) -> &str {
        "keys"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn statistics(&self) -> Statistics {
        let column = ColumnStatistics { distinct: Some(self.claimed.1), ..ColumnStatistics::default() };
        Statistics { rows: Some(self.claimed.0), columns: vec![column] }
    }
    fn scan(&self, request: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        let file = File::open(&self.path).map_err(|error| Error::internal(error.to_string()))?;
        let columns = request.columns.len();
        Ok(Arc::new(Reading { file: Arc::new(file), rows: self.rows, columns, next: Arc::default() }))
    }
}

struct Reading {
    file: Arc<File>,
    rows: u64,
    /// How often the key is asked for.
    columns: usize,
    next: Arc<AtomicU64>,
}

impl Source for Reading {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let shared = Reading {
            file: self.file.clone(),
            rows: self.rows,
            columns: self.columns,
            next: self.next.clone(),
        };
        Ok(Box::new(ReadingWorker { shared, piece: Vec::new(), first: 0, at: 0, keys: Vec::new() }))
    }
}

struct ReadingWorker {
    shared: Reading,
    piece: Vec<u8>,
    /// The number of the piece's first row, and bytes of the piece that have been given.
    first: u64,
    at: usize,
    keys: Vec<i64>,
}

impl SourceWorker for ReadingWorker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        if self.at == self.piece.len() {
            self.first = self.shared.next.fetch_add(PIECE_ROWS as u64, Ordering::Relaxed);
            if self.first >= self.shared.rows {
                return Ok(false);
            }
            let rows = (self.shared.rows - self.first).min(PIECE_ROWS as u64);
            self.piece.resize(8 * rows as usize, 0);
            let read = self.shared.file.read_exact_at(&mut self.piece, 8 * self.first);
            read.map_err(|error| Error::internal(error.to_string()))?;
            self.at = 0;
        }
        let end = self.piece.len().min(self.at + 8 * CHUNK_ROWS);
        let values = self.piece[self.at..end].chunks_exact(8);
        self.keys.clear();
        self.keys.extend(values.map(|bytes| i64::from_ne_bytes(bytes.try_into().expect("eight bytes"))));
        self.at = end;
        chunk.reset(self.keys.len());
        let group = chunk.push_group(Selection::ALL);
        (0..self.shared.columns).for_each(|_| chunk.push_column(Vector::from_slice(&self.keys), group));
        Ok(true)
    }
    fn morsel(&self) -> u64 {
        self.first / PIECE_ROWS as u64
    }
}

/// Nanoseconds and the sum of what comes out: of the join with `build`, or of the keys alone.
fn run(build: Option<&Arc<Ready>>, probe: &Arc<Keys>, table: TableKind) -> (u64, i64) {
    let mut columns = Columns::default();
    let key = columns.add("f", DataType::Int64, false);
    let left = Box::new(Node::Scan(Scan::all(probe.clone(), vec![(key, 0)])));
    let (root, column) = match build {
        None => (*left, key),
        Some(build) => {
            let ids: Vec<ColumnId> = ["k", "v"].map(|name| columns.add(name, DataType::Int64, false)).into();
            let right =
                Box::new(Node::Scan(Scan::all(build.clone(), ids.iter().copied().zip(0..).collect())));
            let on = vec![JoinKey {
                left: columns.expr(key),
                right: columns.expr(ids[0]),
                null_equals_null: false,
            }];
            (Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() }), ids[1])
        }
    };
    let plan = Plan { root, columns, output: vec![Output { name: "v".into(), column }] };
    let settings = Settings { join_table: table, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let sum = Sum::default();
    let start = Instant::now();
    execute(&plan, &context, &sum).expect("a join of integers runs");
    (start.elapsed().as_nanos() as u64, sum.total())
}

/// Drops a file from the page cache.
fn drop_from_cache(path: &Path) {
    let argument = |name: &str| format!("{name}={}", path.display());
    let status = Command::new("dd")
        .args([argument("if"), "iflag=nocache".into(), "count=0".into(), "status=none".into()])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "dd of the GNU coreutils is needed");
}

fn median(mut all: Vec<u64>) -> f64 {
    all.sort_unstable();
    all[all.len() / 2] as f64
}

fn main() {
    use TableKind::{Array, Auto, Cat, Chained, Cht, Radix, Ranked, Unchained};
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let (n, rows) = (number(0, 10) * 1_000_000, number(1, 100) * 1_000_000);
    let directory = arguments.get(2).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = directory.join(format!("entasis-cold-probe-{}", std::process::id()));
    let mut random = Random(4711);
    let mut keys: Vec<i64> = (0..n as i64).map(|i| 2 * i + random.below(2) as i64).collect();
    (1..keys.len()).rev().for_each(|i| keys.swap(i, random.below(i as u64 + 1) as usize));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).expect("the directory is there"));
    for _ in 0..rows {
        let key = keys[random.below(n) as usize];
        file.write_all(&key.to_ne_bytes()).expect("there is room");
    }
    let file = file.into_inner().map_err(|error| error.into_error()).expect("there is room");
    // Pages that have not been written yet cannot be dropped.
    file.sync_all().expect("it is written");
    let build = Arc::new(Ready::new(&keys, n, Some(n)));
    let schema: Schema = [Field::new("f", DataType::Int64)].into_iter().collect();
    let of = |rows: u64, claimed: u64| {
        Arc::new(Keys { schema: schema.clone(), path: path.clone(), rows, claimed: (claimed, n) })
    };
    let (all, few) = (of(rows, rows), of(PIECE_ROWS as u64, rows));
    println!("{n} build rows, {rows} probe rows of 8 bytes in a file: ns a probe row, warm and cold");
    let kinds: Vec<Option<TableKind>> = std::iter::once(None)
        .chain([Auto, Array, Ranked, Cat, Cht, Unchained, Chained, Radix].map(Some))
        .collect();
    let mut times = vec![[const { Vec::new() }; 3]; kinds.len()];
    let mut sums = vec![0; kinds.len()];
    for _ in 0..ROUNDS {
        for (i, kind) in kinds.iter().enumerate() {
            let (build, table) = (kind.map(|_| &build), kind.unwrap_or(Auto));
            let built = if build.is_some() { run(build, &few, table).0 } else { 0 };
            let _ = run(None, &all, Auto);
            let (warm, sum) = run(build, &all, table);
            drop_from_cache(&path);
            let (cold, again) = run(build, &all, table);
            assert_eq!(sum, again, "the cache changes no result");
            sums[i] = sum;
            times[i].iter_mut().zip([built, warm, cold]).for_each(|(all, one)| all.push(one));
        }
    }
    assert!(sums[1..].iter().all(|&sum| sum == sums[1]), "all tables give the same");
    for (kind, times) in kinds.iter().zip(times) {
        let [built, warm, cold] = times.map(median);
        let name = kind.map_or("reading alone".into(), |kind| kind.to_string());
        let [warm, cold] = [warm, cold].map(|time| (time - built).max(0.0) / rows as f64);
        println!("  {name:14} {warm:6.2} {cold:6.2}, {:.2} times", cold / warm);
    }
    let _ = std::fs::remove_file(&path);
}
