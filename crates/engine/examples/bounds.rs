//! Joins by inequalities, searched in an order and by nested loops: seconds, pairs, and which table it was.
//!
//! `cargo run --release -p entasis-engine --example bounds [ROWS …]`
//!
//! Both sides have as many rows, in no order. A *band*: a value and the intervals that contain it,
//! `l.x BETWEEN r.lo AND r.hi`, or the values near it, `r.x BETWEEN l.lo AND l.hi`. *Overlaps*: intervals
//! that begin before the other one ends, and end after it begins. A row has about two partners. *One bound*
//! gives pairs in the square of the rows, so that is a semi join. Nested loops are left out beyond 100,000
//! rows. Times are the least of several rounds, on as many threads as the machine has.

mod random;
mod ready;

use entasis_engine::exec::{QueryContext, Searching, Settings, execute};
use entasis_engine::plan::{Columns, Join, JoinKind, Node, Output, Plan, Scan};
use entasis_vector::expr::{ArithmeticOp, CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Value};
use random::Random;
use ready::{Ready, Sum};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 3;
/// Width of the value range, for each row.
const SPARSE: u64 = 1000;

/// What a case compares, given the expressions `x` and `x + width` of both sides.
type Conditions = fn(left: [Expr; 2], right: [Expr; 2]) -> Vec<Expr>;

fn plan(kind: JoinKind, sides: &[Arc<Ready>; 2], conditions: Conditions) -> Plan {
    let mut columns = Columns::default();
    let mut scan = |relation: &Arc<Ready>, name: &str| {
        let ids: Vec<ColumnId> = ["k", "v"]
            .iter()
            .map(|column| columns.add(format!("{name}.{column}"), DataType::Int64, false))
            .collect();
        let columns = ids.iter().copied().zip(0..).collect();
        (Box::new(Node::Scan(Scan::all(relation.clone(), columns))), ids)
    };
    let ((left, l), (right, r)) = (scan(&sides[0], "l"), scan(&sides[1], "r"));
    let bounds = |id: ColumnId| {
        let width = Expr::literal(Value::Integer(SPARSE.into()), DataType::Int64);
        let (op, ty) = (ArithmeticOp::Add, DataType::Int64);
        let low = columns.expr(id);
        [low.clone(), Expr::Arithmetic { op, left: Box::new(low), right: Box::new(width), ty }]
    };
    let residual = conditions(bounds(l[0]), bounds(r[0]));
    let root = Node::Join(Join { left, right, kind, on: Vec::new(), residual });
    Plan { root, columns, output: vec![Output { name: "v".into(), column: l[1] }] }
}

/// Seconds, the sum, pairs, and why the table was chosen.
fn run(plan: &Plan, join_bounds: Searching) -> (f64, i64, u64, String) {
    let settings = Settings { join_bounds, profile: true, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let sum = Sum::default();
    let start = Instant::now();
    let profile = execute(plan, &context, &sum).expect("a join of integers runs");
    let seconds = start.elapsed().as_secs_f64();
    let root = profile.root.expect("asked for");
    (seconds, sum.total(), root.rows, root.details.join("; "))
}

fn main() {
    let sizes: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![20_000, 1_000_000] } else { sizes };
    let cases: [(&str, JoinKind, Conditions); 5] = [
        ("band, bounds on the right", JoinKind::Inner, |[l, _], [low, high]| {
            vec![Expr::compare(CompareOp::GtEq, l.clone(), low), Expr::compare(CompareOp::LtEq, l, high)]
        }),
        ("band, bounds on the left", JoinKind::Inner, |[low, high], [r, _]| {
            vec![Expr::compare(CompareOp::GtEq, r.clone(), low), Expr::compare(CompareOp::LtEq, r, high)]
        }),
        ("overlaps", JoinKind::Inner, |[low, high], [other_low, other_high]| {
            vec![Expr::compare(CompareOp::Lt, low, other_high), Expr::compare(CompareOp::Gt, high, other_low)]
        }),
        ("overlaps, anti join", JoinKind::Anti, |[low, high], [other_low, other_high]| {
            vec![Expr::compare(CompareOp::Lt, low, other_high), Expr::compare(CompareOp::Gt, high, other_low)]
        }),
        ("one bound, semi join", JoinKind::Semi, |[l, _], [r, _]| vec![Expr::compare(CompareOp::Lt, l, r)]),
    ];
    for rows in sizes {
        let mut random = Random(4711);
        let sides = [(); 2].map(|()| {
            let keys: Vec<i64> = (0..rows).map(|_| random.below(rows * SPARSE) as i64).collect();
            Arc::new(Ready::new(&keys, rows, Some(rows)))
        });
        println!("{rows} × {rows} rows");
        for (name, kind, conditions) in cases {
            let plan = plan(kind, &sides, conditions);
            let mut sums = Vec::new();
            for searching in [Searching::Auto, Searching::Off] {
                let is_loop = searching == Searching::Off;
                if is_loop && rows > 100_000 {
                    continue;
                }
                let rounds = (0..if is_loop { 1 } else { ROUNDS }).map(|_| run(&plan, searching));
                let best = rounds.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a round or more");
                println!("  {name:26} {:9.4} s, {} rows; {}", best.0, best.2, best.3);
                sums.push(best.1);
            }
            assert!(sums.iter().all(|sum| *sum == sums[0]), "both ways give the same");
        }
    }
}
