//! What conditional expressions, functions of texts and of dates cost, in nanoseconds a row of one thread.
//!
//! `cargo run --release -p entasis-vector --example expressions -- [rounds]`
//!
//! Columns like those of TPC-H's lineitem, without NULLs; chunks of 2048 rows, values in cache. The fastest
//! of the rounds counts.

mod timing;

use entasis_vector::expr::{ColumnMeta, CompareOp, DatePart, Expr, Function, Program};
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Selection, Value, Vector};

const MONEY: DataType = DataType::Decimal { precision: 15, scale: 2 };
/// Quantity, price, discount, tax; line number; day.
const NUMBERS: [(DataType, i128, i128); 6] = [
    (MONEY, 100, 5000),
    (MONEY, 90_000, 10_494_950),
    (MONEY, 0, 10),
    (MONEY, 0, 8),
    (DataType::Int32, 1, 7),
    (DataType::Date, 8036, 10_561),
];
const COMMENT: u32 = 6;

fn main() {
    let rounds = std::env::args().nth(1).map_or(2000, |rounds| rounds.parse().expect("rounds are a number"));
    let column = |id: u32| {
        let ty = NUMBERS.get(id as usize).map_or(DataType::Varchar, |(ty, ..)| *ty);
        Expr::column(ColumnId(id), ty)
    };
    let like = |id: u32, v| Expr::literal(Value::Integer(v), column(id).ty());
    let compare = |op, id: u32, v| Expr::compare(op, column(id), like(id, v));
    let case = |condition, then: Expr, otherwise| {
        let ty = then.ty();
        Expr::Case { branches: vec![(condition, then)], otherwise, ty }
    };
    let or_else = |expr: Expr| Some(Box::new(expr));
    let null_if = |id: u32, v| {
        let null = Expr::literal(Value::Null, column(id).ty());
        case(compare(CompareOp::Eq, id, v), null, or_else(column(id)))
    };
    let text = |v: &str| Expr::literal(Value::Text(v.into()), DataType::Varchar);
    let integer = |v| Expr::literal(Value::Integer(v), DataType::Int64);
    let call = |function, args, ty| Expr::Function { function, args, ty };
    let start = |count| {
        let args = vec![column(COMMENT), integer(1), integer(count)];
        call(Function::Substring, args, DataType::Varchar)
    };
    let upper = |of| call(Function::Upper, vec![of], DataType::Varchar);
    let of_day = |function, ty| call(function, vec![column(5)], ty);

    let left = [
        Expr::compare(CompareOp::Lt, null_if(0, 700), like(0, 1000)),
        Expr::compare(CompareOp::Gt, null_if(3, 5), like(3, 3)),
    ];
    let right = [
        Expr::compare(CompareOp::Gt, null_if(4, 3), like(4, 4)),
        Expr::compare(CompareOp::Lt, null_if(2, 2), like(2, 5)),
    ];
    measure("nullif", null_if(0, 700), rounds);
    measure("four comparisons of nullif", Expr::Or(vec![Expr::and(left), Expr::and(right)]), rounds);
    let above = || compare(CompareOp::Gt, 0, 2500);
    measure("CASE, a column or 0", case(above(), column(1), or_else(like(1, 0))), rounds);
    measure("CASE, two constants", case(above(), like(1, 1), or_else(like(1, 0))), rounds);
    measure("CASE, two columns", case(above(), column(1), or_else(column(0))), rounds);
    measure("CASE, a column or NULL", case(above(), column(1), None), rounds);
    let of_null = Expr::compare(CompareOp::Lt, null_if(3, 5), like(3, 3));
    measure("CASE of nullif, two columns", case(of_null, column(1), or_else(column(0))), rounds);
    measure("CASE, two short texts", case(above(), text("high"), or_else(text("low"))), rounds);
    measure("CASE, a text or ''", case(above(), column(COMMENT), or_else(text(""))), rounds);
    let matches = Expr::Like {
        input: Box::new(column(COMMENT)),
        pattern: Box::new(text("%ly%")),
        escape: None,
        case_insensitive: false,
    };
    measure("CASE of LIKE, a column or 0", case(matches, column(1), or_else(like(1, 0))), rounds);
    measure("substr(text, 1, 10)", start(10), rounds);
    measure("substr(text, 1, 20)", start(20), rounds);
    measure("upper(substr(text, 1, 10))", upper(start(10)), rounds);
    measure("upper(text)", upper(column(COMMENT)), rounds);
    measure("date_trunc('month', day)", of_day(Function::Truncate(DatePart::Month), DataType::Date), rounds);
    measure("month(day)", of_day(Function::Extract(DatePart::Month), DataType::Int64), rounds);
    measure("year(day)", of_day(Function::Extract(DatePart::Year), DataType::Int64), rounds);
}

/// A vector of values that repeat irregularly within their bounds.
fn numbers(meta: &ColumnMeta, low: i128, high: i128) -> Vector {
    let value = |row: usize| Value::Integer(low + (row as i128 * 7919 * 104_729) % (high - low + 1));
    let values: Vec<Value> = (0..CHUNK_ROWS).map(value).collect();
    Vector::from_values(meta.physical, &values).expect("values are within their range")
}

/// Texts of 10 to 43 bytes.
fn comments(meta: &ColumnMeta) -> Vector {
    const WORDS: &str = "carefully final deposits detect slyly across the ironic, express theodolites nag";
    let value = |row: usize| {
        let (start, length) = (row * 7919 % 37, 10 + row * 104_729 % 34);
        Value::Text(WORDS[start..start + length].into())
    };
    let values: Vec<Value> = (0..CHUNK_ROWS).map(value).collect();
    Vector::from_values(meta.physical, &values).expect("texts")
}

fn measure(name: &str, expr: Expr, rounds: usize) {
    let mut metas = Vec::new();
    let mut chunk = Chunk::new();
    chunk.reset(CHUNK_ROWS);
    let group = chunk.push_group(Selection::ALL);
    for (id, (ty, low, high)) in (0u32..).zip(NUMBERS) {
        let physical = ty.narrowest((low, high));
        let range = Some((low, high));
        let meta = ColumnMeta { physical, nullable: false, range, ..ColumnMeta::new(ColumnId(id), ty) };
        chunk.push_column(numbers(&meta, low, high), group);
        metas.push(meta);
    }
    let meta = ColumnMeta { nullable: false, ..ColumnMeta::new(ColumnId(COMMENT), DataType::Varchar) };
    chunk.push_column(comments(&meta), group);
    metas.push(meta);
    let is_condition = expr.ty() == DataType::Boolean;
    let program = Program::compile_narrow(&[expr], &metas, &|_| true).expect("the expression is typed");
    if std::env::var_os("SHOW").is_some() {
        println!("{program}");
    }
    let least = timing::least(program, is_condition, &chunk, rounds);
    println!("{name:<30} {least:>8.2}");
}
