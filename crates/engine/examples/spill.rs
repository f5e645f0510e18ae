//! A join of two sides that are larger than memory: seconds, bytes written, the most memory that was reserved
//! and used.
//!
//! `make bench-spill`, or
//! `cargo run --release -p entasis-engine --example spill [MILLIONS OF ROWS [MEGABYTES OF MEMORY]]`
//!
//! Each side has rows of 32 bytes: a key of 8 bytes that occurs once, two numbers, a double. Every second row
//! has a partner. Rows are computed when they are read, in the order of no column, on as many threads as the
//! machine has.

mod computed;

use computed::{COLUMNS, Computed};
use entasis_engine::exec::{MemoryBudget, QueryContext, ResultSink, ResultWorker, Settings, execute};
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_vector::{Chunk, ColumnId, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// Counts rows and adds up two columns.
#[derive(Default)]
struct Sums(Arc<[AtomicI64; 3]>);

impl ResultSink for Sums {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(SumsWorker(self.0.clone())))
    }
}

struct SumsWorker(Arc<[AtomicI64; 3]>);

impl ResultWorker for SumsWorker {
    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        self.0[0].fetch_add(chunk.len() as i64, Ordering::Relaxed);
        for column in [0, 1] {
            let values = chunk.vector(column).values::<i64>();
            let sum: i64 = match chunk.positions(column) {
                None => values[..chunk.len()].iter().sum(),
                Some(at) => at.iter().map(|&p| values[p as usize]).sum(),
            };
            self.0[1 + column].fetch_add(sum, Ordering::Relaxed);
        }
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn side(columns: &mut Columns, name: &str, rows: u64, step: u64) -> (Box<Node>, Vec<ColumnId>) {
    let relation = Arc::new(Computed::new(rows, step));
    let ids: Vec<ColumnId> =
        COLUMNS.iter().map(|(column, ty)| columns.add(format!("{name}.{column}"), *ty, false)).collect();
    let scanned = ids.iter().copied().zip(0..).collect();
    (Box::new(Node::Scan(Scan::all(relation, scanned))), ids)
}

fn main() {
    let arguments: Vec<u64> =
        std::env::args().skip(1).map(|text| text.parse().expect("arguments are numbers")).collect();
    let rows = arguments.first().unwrap_or(&125) * 1_000_000;
    let limit = arguments.get(1).unwrap_or(&512) * 1_000_000;
    let mut columns = Columns::default();
    let ((left, l), (right, r)) =
        (side(&mut columns, "probe", rows, 1), side(&mut columns, "build", rows, 2));
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null: false }];
    let root = Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() });
    // All columns go through the join.
    let output =
        [l[1], r[1], l[2], r[2], l[3], r[3]].map(|column| Output { name: column.to_string(), column });
    let plan = Plan { root, columns, output: output.to_vec() };
    let settings = Settings { profile: true, ..Settings::default() };
    let memory = Arc::new(MemoryBudget::new(limit as usize));
    let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
    let sums = Sums::default();
    let start = Instant::now();
    let profile = execute(&plan, &context, &sums).expect("a join of integers runs");
    let seconds = start.elapsed().as_secs_f64();
    // Row 2i of the probe side has the key of row i of the build side.
    let partners = rows.div_ceil(2) as i64;
    let [count, left, right] = sums.0.each_ref().map(|sum| sum.load(Ordering::Relaxed));
    let sum = partners * (partners - 1) / 2;
    assert_eq!((count, left, right), (partners, 2 * sum, sum), "every second row has a partner");
    println!(
        "two sides of {:.1} GB, memory_limit {} MB: {seconds:.1} s",
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
