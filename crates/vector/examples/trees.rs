//! Trees of expressions that are interpreted, beside programs over registers, in nanoseconds a row of one
//! thread (Westmann et al., *The Implementation and Performance of Compressed Databases*, section 4.1.2).
//!
//! `cargo run --release -p entasis-vector --example trees -- [rounds]`
//!
//! The expressions are those of TPC-H's Q1, of which the paper's Figures 5 and 6 show two, and of Q6, and a
//! `CASE`. Chunks of 2048 rows without NULLs, values in cache; the fastest of the rounds counts.
//!
//! | | |
//! |---|---|
//! | tree, rows | the tree is walked for each row, as in the paper; AND and CASE leave out what they can |
//! | tree, vectors | the tree is walked for each chunk: a node is a loop over the values of its operands |
//! | program | [`Program`] over the same 64-bit columns |
//! | narrow | the same program over columns that are as narrow as their ranges, as in tables |
//!
//! The interpreters are small, so that they cannot be said to be slow for other reasons: numbers of 64 bits,
//! no NULLs, columns that are found by their number, constants that have their scale. Vectors of inner nodes
//! are used again. Overflow is an error, as in a program. All four give the same results, which is asserted.

mod timing;

use entasis_vector::expr::{ArithmeticOp, ColumnMeta, CompareOp, Expr, Machine, Program};
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, PhysicalType, Selection, Value, Vector};
use std::hint::black_box;
use std::time::Instant;

const MONEY: DataType = DataType::Decimal { precision: 15, scale: 2 };
/// Price, discount, tax, quantity, day.
const COLUMNS: [(DataType, i128, i128); 5] = [
    (MONEY, 90_000, 10_494_950),
    (MONEY, 0, 10),
    (MONEY, 0, 8),
    (MONEY, 100, 5000),
    (DataType::Int64, 8036, 10_561),
];

fn main() {
    let rounds = std::env::args().nth(1).map_or(2000, |rounds| rounds.parse().expect("rounds are a number"));
    let of = |id: u32| Expr::column(ColumnId(id), COLUMNS[id as usize].0);
    let one = || Expr::literal(Value::Integer(100), MONEY);
    let scaled = |op, left: Expr, right: Expr, scale| {
        let ty = DataType::Decimal { precision: 18, scale };
        Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty }
    };
    let less = scaled(ArithmeticOp::Subtract, one(), of(1), 2);
    let discounted = scaled(ArithmeticOp::Multiply, of(0), less, 4);
    let more = scaled(ArithmeticOp::Add, one(), of(2), 2);
    let charge = scaled(ArithmeticOp::Multiply, discounted.clone(), more, 6);
    let compare = |op, id: u32, v| Expr::compare(op, of(id), Expr::literal(Value::Integer(v), of(id).ty()));
    let q6 = [
        compare(CompareOp::GtEq, 4, 8766),
        compare(CompareOp::Lt, 4, 9131),
        compare(CompareOp::GtEq, 1, 5),
        compare(CompareOp::LtEq, 1, 7),
        compare(CompareOp::Lt, 3, 2400),
    ];
    let case = Expr::Case {
        branches: vec![(compare(CompareOp::Gt, 3, 2500), discounted.clone())],
        otherwise: Some(Box::new(Expr::literal(Value::Integer(0), discounted.ty()))),
        ty: discounted.ty(),
    };
    println!(
        "{:<44} {:>10} {:>13} {:>8} {:>7}",
        "ns a row", "tree, rows", "tree, vectors", "program", "narrow"
    );
    measure("Q1: day <= constant (Figure 5)", &compare(CompareOp::LtEq, 4, 10_471), rounds);
    measure("Q1: price * (1 - discount)", &discounted, rounds);
    measure("Q1: price * (1 - discount) * (1 + tax) (6)", &charge, rounds);
    measure("Q6: five comparisons", &Expr::and(q6), rounds);
    measure("Q6: price * discount", &scaled(ArithmeticOp::Multiply, of(0), of(1), 4), rounds);
    measure("CASE, price * (1 - discount) or 0", &case, rounds);
}

fn measure(name: &str, expr: &Expr, rounds: usize) {
    let columns: Vec<Vec<i64>> = COLUMNS
        .iter()
        .map(|(_, low, high)| {
            let value = |row: usize| low + (row as i128 * 7919 * 104_729) % (high - low + 1);
            (0..CHUNK_ROWS).map(|row| value(row) as i64).collect()
        })
        .collect();
    let is_condition = expr.ty() == DataType::Boolean;
    // By rows.
    let mut by_rows = vec![0; CHUNK_ROWS];
    let rows = least(rounds / 10, || {
        for (row, out) in by_rows.iter_mut().enumerate() {
            *out = of_row(expr, &columns, row);
        }
    });
    // By vectors.
    let (mut by_vectors, mut spares) = (vec![0; CHUNK_ROWS], Vec::new());
    let vectors = least(rounds, || of_chunk(expr, &columns, &mut spares, &mut by_vectors));
    assert_eq!(by_rows, by_vectors, "{name}");
    let programs = [false, true].map(|narrow| {
        let (chunk, metas) = chunk(&columns, narrow);
        let program = Program::compile_narrow(std::slice::from_ref(expr), &metas, &|_| narrow)
            .expect("the expression is typed");
        let mut machine = Machine::new(program.clone());
        let results: Vec<i64> = match is_condition {
            true => {
                let mut holds = vec![0; CHUNK_ROWS];
                let chosen = machine.select(&chunk).expect("nothing fails");
                chosen.iter().for_each(|&row| holds[usize::from(row)] = 1);
                holds
            }
            false => {
                let mut output = Chunk::new();
                output.reset(CHUNK_ROWS);
                machine.project(&chunk, &mut output).expect("nothing fails");
                (0..CHUNK_ROWS).map(|row| number(&output.value(row, 0, expr.ty()))).collect()
            }
        };
        assert_eq!(by_rows, results, "{name}, narrow: {narrow}");
        timing::least(program, is_condition, &chunk, rounds)
    });
    let [program, narrow] = programs;
    println!("{name:<44} {rows:>10.2} {vectors:>13.2} {program:>8.2} {narrow:>7.2}");
}

/// The columns as a chunk, and what is known of them.
fn chunk(columns: &[Vec<i64>], narrow: bool) -> (Chunk, Vec<ColumnMeta>) {
    let (mut chunk, mut metas) = (Chunk::new(), Vec::new());
    chunk.reset(CHUNK_ROWS);
    let group = chunk.push_group(Selection::ALL);
    for ((id, values), (ty, low, high)) in (0u32..).zip(columns).zip(COLUMNS) {
        let physical = if narrow { ty.narrowest((low, high)) } else { PhysicalType::I64 };
        let range = Some((low, high));
        metas.push(ColumnMeta { physical, nullable: false, range, ..ColumnMeta::new(ColumnId(id), ty) });
        let values: Vec<Value> = values.iter().map(|&value| Value::Integer(value.into())).collect();
        let mut vector = Vector::from_values(physical, &values).expect("values are within their range");
        vector.set_validity(None);
        chunk.push_column(vector, group);
    }
    (chunk, metas)
}

/// Nanoseconds a row of the fastest round.
fn least(rounds: usize, mut run: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..10).for_each(|_| run());
        start.elapsed().as_nanos() as f64 / (10 * CHUNK_ROWS) as f64
    };
    (0..rounds.max(1)).map(round).fold(f64::INFINITY, f64::min)
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Integer(number) => *number as i64,
        other => unreachable!("{other:?} is no number"),
    }
}

fn holds(op: CompareOp, left: i64, right: i64) -> bool {
    match op {
        CompareOp::Eq | CompareOp::NotDistinctFrom => left == right,
        CompareOp::NotEq | CompareOp::DistinctFrom => left != right,
        CompareOp::Lt => left < right,
        CompareOp::LtEq => left <= right,
        CompareOp::Gt => left > right,
        CompareOp::GtEq => left >= right,
    }
}

fn computed(op: ArithmeticOp, left: i64, right: i64) -> Option<i64> {
    match op {
        ArithmeticOp::Add => left.checked_add(right),
        ArithmeticOp::Subtract => left.checked_sub(right),
        ArithmeticOp::Multiply => left.checked_mul(right),
        other => unreachable!("{other:?} is not in these expressions"),
    }
}

/// The value of a tree for a row; a condition is 1 or 0.
fn of_row(expr: &Expr, columns: &[Vec<i64>], row: usize) -> i64 {
    match expr {
        Expr::Column { id, .. } => black_box(columns)[id.0 as usize][row],
        Expr::Literal { value, .. } => number(value),
        Expr::Arithmetic { op, left, right, .. } => {
            computed(*op, of_row(left, columns, row), of_row(right, columns, row))
                .expect("it does not overflow")
        }
        Expr::Compare { op, left, right } => {
            holds(*op, of_row(left, columns, row), of_row(right, columns, row)).into()
        }
        Expr::And(all) => all.iter().all(|expr| of_row(expr, columns, row) != 0).into(),
        Expr::Case { branches, otherwise, .. } => {
            let taken = branches.iter().find(|(condition, _)| of_row(condition, columns, row) != 0);
            let taken = taken.map(|(_, result)| result).or(otherwise.as_deref());
            of_row(taken.expect("there is an ELSE"), columns, row)
        }
        other => unreachable!("{other:?} is not in these expressions"),
    }
}

/// Writes the values of a tree for a chunk to `out`. Vectors come from `spares` and go back there.
fn of_chunk(expr: &Expr, columns: &[Vec<i64>], spares: &mut Vec<Vec<i64>>, out: &mut [i64]) {
    match expr {
        Expr::Column { id, .. } => out.copy_from_slice(&columns[id.0 as usize]),
        Expr::Literal { value, .. } => out.fill(number(value)),
        Expr::Arithmetic { op, left, right, .. } => {
            let (left, right) = (operand(left, columns, spares), operand(right, columns, spares));
            // The operation is chosen outside of the loop.
            let overflowed = match op {
                ArithmeticOp::Add => each(&left, &right, out, i64::overflowing_add),
                ArithmeticOp::Subtract => each(&left, &right, out, i64::overflowing_sub),
                ArithmeticOp::Multiply => each(&left, &right, out, i64::overflowing_mul),
                other => unreachable!("{other:?} is not in these expressions"),
            };
            assert!(!overflowed);
            spares.extend([left, right]);
        }
        Expr::Compare { op, left, right } => {
            let (left, right) = (operand(left, columns, spares), operand(right, columns, spares));
            match op {
                CompareOp::Lt => each(&left, &right, out, |a, b| ((a < b).into(), false)),
                CompareOp::LtEq => each(&left, &right, out, |a, b| ((a <= b).into(), false)),
                CompareOp::Gt => each(&left, &right, out, |a, b| ((a > b).into(), false)),
                CompareOp::GtEq => each(&left, &right, out, |a, b| ((a >= b).into(), false)),
                op => each(&left, &right, out, |a, b| (holds(*op, a, b).into(), false)),
            };
            spares.extend([left, right]);
        }
        Expr::And(all) => {
            out.fill(1);
            for expr in all {
                let holds = operand(expr, columns, spares);
                out.iter_mut().zip(&holds).for_each(|(out, &holds)| *out &= holds);
                spares.push(holds);
            }
        }
        Expr::Case { branches, otherwise, .. } => {
            of_chunk(otherwise.as_deref().expect("there is an ELSE"), columns, spares, out);
            for (condition, result) in branches.iter().rev() {
                let (holds, result) = (operand(condition, columns, spares), operand(result, columns, spares));
                for ((out, &holds), &result) in out.iter_mut().zip(&holds).zip(&result) {
                    *out = if holds != 0 { result } else { *out };
                }
                spares.extend([holds, result]);
            }
        }
        other => unreachable!("{other:?} is not in these expressions"),
    }
}

/// The values of a tree for a chunk, in a vector of its own.
fn operand(expr: &Expr, columns: &[Vec<i64>], spares: &mut Vec<Vec<i64>>) -> Vec<i64> {
    let mut own = spares.pop().unwrap_or_else(|| vec![0; CHUNK_ROWS]);
    of_chunk(expr, columns, spares, &mut own);
    own
}

/// Computes each of `out`. True if one has overflowed.
fn each(left: &[i64], right: &[i64], out: &mut [i64], of: impl Fn(i64, i64) -> (i64, bool)) -> bool {
    let mut overflowed = false;
    for ((out, &left), &right) in out.iter_mut().zip(left).zip(right) {
        let (value, over) = of(left, right);
        *out = value;
        overflowed |= over;
    }
    overflowed
}
