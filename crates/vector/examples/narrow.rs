//! What narrow types are worth: the expressions of TPC-H Q1 and Q6, in nanoseconds a row of one thread.
//!
//! `cargo run --release -p entasis-vector --example narrow -- [rounds]`
//!
//! The same programs over the same values, once held in 64 bits, once in 32. Chunks of 2048 rows, values in
//! cache. The fastest of the rounds counts.

mod timing;

use entasis_vector::expr::{ArithmeticOp, ColumnMeta, CompareOp, Expr, Program};
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, PhysicalType, Selection, Value, Vector};

const MONEY: DataType = DataType::Decimal { precision: 15, scale: 2 };
/// Price, discount, tax, quantity.
const RANGES: [(i128, i128); 4] = [(90_000, 10_494_950), (0, 10), (0, 8), (100, 5000)];

fn main() {
    let rounds = std::env::args().nth(1).map_or(2000, |rounds| rounds.parse().expect("rounds are a number"));
    let of = |id| Expr::column(ColumnId(id), MONEY);
    let one = || Expr::literal(Value::Integer(1), DataType::Decimal { precision: 1, scale: 0 });
    let scaled = |op, left: Expr, right: Expr, scale| Expr::Arithmetic {
        op,
        left: Box::new(left),
        right: Box::new(right),
        ty: DataType::Decimal { precision: 38, scale },
    };
    let discounted =
        || scaled(ArithmeticOp::Multiply, of(0), scaled(ArithmeticOp::Subtract, one(), of(1), 2), 4);
    let charge = scaled(ArithmeticOp::Multiply, discounted(), scaled(ArithmeticOp::Add, one(), of(2), 2), 6);
    let number = |v| Expr::literal(Value::Integer(v), MONEY);
    let conditions = vec![
        Expr::compare(CompareOp::GtEq, of(1), number(5)),
        Expr::compare(CompareOp::LtEq, of(1), number(7)),
        Expr::compare(CompareOp::Lt, of(3), number(2400)),
    ];
    println!("{:<40} {:>8} {:>8}", "ns a row", "64 bits", "32 bits");
    compare("price * (1 - discount)", &[discounted()], rounds);
    compare("and that * (1 + tax)", &[discounted(), charge], rounds);
    compare("price * discount", &[scaled(ArithmeticOp::Multiply, of(0), of(1), 4)], rounds);
    compare("a range and a comparison", &conditions, rounds);
}

fn compare(name: &str, exprs: &[Expr], rounds: usize) {
    let times = [false, true].map(|narrow| measure(exprs, narrow, rounds));
    println!("{name:<40} {:>8.2} {:>8.2}", times[0], times[1]);
}

fn measure(exprs: &[Expr], narrow: bool, rounds: usize) -> f64 {
    let metas: Vec<ColumnMeta> = (0u32..)
        .zip(RANGES)
        .map(|(id, range)| {
            let physical = if narrow { MONEY.narrowest(range) } else { PhysicalType::I64 };
            ColumnMeta {
                physical,
                nullable: false,
                range: Some(range),
                ..ColumnMeta::new(ColumnId(id), MONEY)
            }
        })
        .collect();
    let mut chunk = Chunk::new();
    chunk.reset(CHUNK_ROWS);
    let group = chunk.push_group(Selection::ALL);
    for (meta, (low, high)) in metas.iter().zip(RANGES) {
        let value = |row: usize| Value::Integer(low + (row as i128 * 7919 * 104_729) % (high - low + 1));
        let values: Vec<Value> = (0..CHUNK_ROWS).map(value).collect();
        let mut vector = Vector::from_values(meta.physical, &values).expect("values are within their range");
        vector.set_validity(None);
        chunk.push_column(vector, group);
    }
    let program = Program::compile_narrow(exprs, &metas, &|_| narrow).expect("the expressions are typed");
    let are_conditions = exprs[0].ty() == DataType::Boolean;
    timing::least(program, are_conditions, &chunk, rounds)
}
