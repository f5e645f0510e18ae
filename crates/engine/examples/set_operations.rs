//! INTERSECT and EXCEPT of inputs that are larger than memory: seconds, bytes written, the most memory that
//! was reserved and used.
//!
//! `make bench-set-operations`, or
//! ```text
//! cargo run --release -p entasis-engine --example set_operations [MILLIONS OF ROWS [MEGABYTES [OPERATION]]]
//! ```
//!
//! Both inputs have so many numbers of 64 bits, each once and in no order, and a third of them in common.
//! They are computed when they are read, on as many threads as the machine has. Operations: 0 `INTERSECT`, 1
//! `INTERSECT ALL`, 2 `EXCEPT`, 3 `EXCEPT ALL`, 4 `UNION`. What comes out is counted and added up.

mod computed;

use computed::{Computed, key_of};
use entasis_engine::exec::{MemoryBudget, QueryContext, ResultSink, ResultWorker, Settings, execute};
use entasis_engine::plan::{Columns, Node, Output, Plan, Scan, SetKind, SetOperation};
use entasis_vector::{Chunk, DataType, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// Rows, and their sum.
#[derive(Clone, Default)]
struct Sums(Arc<[AtomicI64; 2]>);

impl ResultSink for Sums {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(self.clone()))
    }
}

impl ResultWorker for Sums {
    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let values = chunk.vector(0).values::<i64>();
        let value = |row: usize| values[chunk.positions(0).map_or(row, |at| at[row] as usize)];
        self.0[0].fetch_add(chunk.len() as i64, Ordering::Relaxed);
        self.0[1].fetch_add((0..chunk.len()).map(value).fold(0, i64::wrapping_add), Ordering::Relaxed);
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn main() {
    let arguments: Vec<u64> =
        std::env::args().skip(1).map(|text| text.parse().expect("arguments are numbers")).collect();
    let rows = arguments.first().unwrap_or(&20) * 1_000_000;
    let limit = arguments.get(1).unwrap_or(&256) * 1_000_000;
    let operations = [
        (SetKind::Intersect, false),
        (SetKind::Intersect, true),
        (SetKind::Except, false),
        (SetKind::Except, true),
        (SetKind::Union, false),
    ];
    let (kind, all) = operations[*arguments.get(2).unwrap_or(&0) as usize];
    let mut columns = Columns::default();
    // The left input has even numbers, the right one multiples of three.
    let inputs = [2, 3].map(|step| {
        let id = columns.add("k", DataType::Int64, false);
        let relation = Arc::new(Computed::new(rows, step));
        (Node::Scan(Scan::all(relation, vec![(id, 0)])), vec![id])
    });
    let out = columns.add("k", DataType::Int64, false);
    let set = SetOperation { kind, all, inputs: inputs.into(), columns: vec![out] };
    let output = vec![Output { name: "k".into(), column: out }];
    let plan = Plan { root: Node::SetOperation(set), columns, output };
    let settings = Settings { profile: true, ..Settings::default() };
    let memory = Arc::new(MemoryBudget::new(limit as usize));
    let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
    let sums = Sums::default();
    let start = Instant::now();
    let profile = execute(&plan, &context, &sums).expect("a set operation of integers runs");
    let seconds = start.elapsed().as_secs_f64();
    let found = sums.0.each_ref().map(|sum| sum.load(Ordering::Relaxed));
    let wanted = |number: &u64| match kind {
        SetKind::Intersect => number.is_multiple_of(6),
        SetKind::Except => !number.is_multiple_of(3) || *number >= 3 * rows,
        SetKind::Union => true,
    };
    let of_right =
        (0..rows).map(|row| 3 * row).filter(|number| !number.is_multiple_of(2) || *number >= 2 * rows);
    let of_right = of_right.filter(|_| kind == SetKind::Union);
    let numbers = (0..rows).map(|row| 2 * row).filter(wanted).chain(of_right);
    let expected = numbers.fold([0, 0], |[count, sum], n| [count + 1, key_of(n).wrapping_add(sum)]);
    assert_eq!(found, expected, "the right rows come out");
    let name = format!("{kind:?}{}", if all { " all" } else { "" });
    println!(
        "{name} of twice {} M rows, memory_limit {} MB: {seconds:.2} s",
        rows / 1_000_000,
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
