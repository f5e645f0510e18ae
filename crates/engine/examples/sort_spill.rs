//! A sort that is larger than memory: seconds, bytes written, the most memory that was reserved and used.
//!
//! `make bench-sort-spill`, or
//! ```text
//! cargo run --release -p entasis-engine --example sort_spill [MILLIONS OF ROWS [MEGABYTES [COLUMN]]]
//! ```
//!
//! Rows of 32 bytes: a key of 8 bytes that occurs once (column 0), the row's number (1), a number below 1000
//! (2), a double. They are computed when they are read, on as many threads as the machine has. So by column 1
//! they are in order, and by column 2 there are many ties. Whoever takes them checks their order.

mod computed;

use computed::{COLUMNS, Computed, key_of};
use entasis_engine::exec::{MemoryBudget, QueryContext, ResultSink, ResultWorker, Settings, execute};
use entasis_engine::plan::{Columns, Node, Output, Plan, Scan, Sort, SortKey};
use entasis_vector::{Chunk, ColumnId, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// Counts rows, adds up two columns, and checks that a column ascends, and where it stays the row's number.
struct Sums {
    sums: Arc<[AtomicI64; 3]>,
    by: usize,
}

impl ResultSink for Sums {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(SumsWorker { sums: self.sums.clone(), by: self.by, last: (i64::MIN, 0) }))
    }
}

struct SumsWorker {
    sums: Arc<[AtomicI64; 3]>,
    by: usize,
    /// The last key, and the number of its row.
    last: (i64, i64),
}

impl ResultWorker for SumsWorker {
    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        self.sums[0].fetch_add(chunk.len() as i64, Ordering::Relaxed);
        let value = |column: usize, row: usize| {
            chunk.vector(column).values::<i64>()[chunk.positions(column).map_or(row, |at| at[row] as usize)]
        };
        for column in [0, 1] {
            let sum = (0..chunk.len()).map(|row| value(column, row)).fold(0, i64::wrapping_add);
            self.sums[1 + column].fetch_add(sum, Ordering::Relaxed);
        }
        for row in 0..chunk.len() {
            let next = (value(self.by, row), value(1, row));
            assert!(self.last <= next, "rows are in order");
            self.last = next;
        }
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn main() {
    let arguments: Vec<u64> =
        std::env::args().skip(1).map(|text| text.parse().expect("arguments are numbers")).collect();
    let rows = arguments.first().unwrap_or(&50) * 1_000_000;
    let limit = arguments.get(1).unwrap_or(&256) * 1_000_000;
    let by = *arguments.get(2).unwrap_or(&0) as usize;
    let mut columns = Columns::default();
    let relation = Arc::new(Computed::new(rows, 1));
    let ids: Vec<ColumnId> = COLUMNS.iter().map(|(name, ty)| columns.add(*name, *ty, false)).collect();
    let scan = Scan::all(relation, ids.iter().copied().zip(0..).collect());
    let key = SortKey { expr: columns.expr(ids[by]), descending: false, nulls_first: false };
    let root = Node::Sort(Sort { input: Box::new(Node::Scan(scan)), keys: vec![key], limit: None });
    let output = ids.iter().map(|&column| Output { name: column.to_string(), column }).collect();
    let plan = Plan { root, columns, output };
    let settings = Settings { profile: true, ..Settings::default() };
    let memory = Arc::new(MemoryBudget::new(limit as usize));
    let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
    let sums = Sums { sums: Arc::default(), by };
    let start = Instant::now();
    let profile = execute(&plan, &context, &sums).expect("a sort of integers runs");
    let seconds = start.elapsed().as_secs_f64();
    let [count, keys, numbers] = sums.sums.each_ref().map(|sum| sum.load(Ordering::Relaxed));
    let expected = (0..rows).map(key_of).fold(0, i64::wrapping_add);
    assert_eq!(
        (count, keys, numbers),
        (rows as i64, expected, (rows * (rows - 1) / 2) as i64),
        "all rows come out"
    );
    println!(
        "{:.1} GB by column {by}, memory_limit {} MB: {seconds:.1} s",
        rows as f64 * 32e-9,
        limit / 1_000_000
    );
    println!("{} MB were reserved at most, {} resident", context.memory.peak() / 1_000_000, resident());
    println!("{profile}");
}

/// The most memory that the process had, where the system tells.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".into(), |text| text.trim().to_string())
}
