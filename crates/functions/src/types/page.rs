//! `docs/types.md`, written from the rules.

use super::operators::SIGNATURES;
use super::{Given, Meeting, arithmetic, assignment, common, implicit};
use entasis_vector::DataType;
use entasis_vector::expr::ArithmeticOp;
use std::fmt::Write;

const HEAD: &str = "# Types of expressions

*What a literal becomes, which casts are made unasked, and the types of operators' results. This page is
written from the rules in the code ([types](../crates/functions/src/types/mod.rs)), and a test keeps it so.*

A literal has no type of its own until it meets something: `tinyint_column + 1` is a TINYINT, `'2026-01-01'`
beside a DATE is a date. An integer that nothing asks for anything is an INTEGER, or a BIGINT if it does not
fit; a number with a decimal point is a DECIMAL of its digits, one with an exponent a DOUBLE; a text is a
VARCHAR. A column never becomes a narrower type, nor a text, unasked: write `CAST(x AS type)` or `x::type`.

## Parameters

A parameter has the type of its value, and a text becomes what its place asks for, as one that is written
does. When a statement is described before there are values (`Connection::describe`, `connection.describe`
in Python), each parameter has the type that its place asks for: that of the other side of a comparison or
an operator, of the results beside it in CASE and `coalesce`, of the column in INSERT, UPDATE and MERGE, of
a cast that is written, BIGINT in LIMIT and OFFSET. One that several places ask for gets their common type
(see below), and it is an error if there is none. One of which no place says anything is a VARCHAR. A
program may fix the types of some, as hints. A statement that is run with values of these types has the
columns that were described.
";

/// The types of the tables, in their order.
const TYPES: [DataType; 21] = [
    DataType::Boolean,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt64,
    DataType::Decimal { precision: 12, scale: 2 },
    DataType::Float32,
    DataType::Float64,
    DataType::Varchar,
    DataType::Json,
    DataType::Blob,
    DataType::Date,
    DataType::Time,
    DataType::TimeTz,
    DataType::Timestamp,
    DataType::TimestampNs,
    DataType::TimestampTz,
    DataType::Interval,
    DataType::Uuid,
];

/// What is given in the tables, and how the page shows it.
fn given() -> Vec<(String, Given)> {
    let written = [
        ("`NULL`", Given::Null),
        ("`'text'`", Given::Text),
        ("`1`", Given::Integer(1)),
        ("`300`", Given::Integer(300)),
        ("`1.5`", Given::Decimal { precision: 2, scale: 1 }),
    ];
    let written = written.into_iter().map(|(shown, given)| (shown.to_owned(), given));
    written.chain(TYPES.map(|ty| (ty.to_string(), Given::Known(ty)))).collect()
}

/// The content of `docs/types.md`.
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    casts(&mut out);
    meetings(&mut out);
    operators(&mut out);
    out
}

fn casts(out: &mut String) {
    out.push_str(
        "\n## Casts\n\nA cell says how the value of a row becomes one of the column's type: `=` it is one, a\n\
         number: unasked, at this cost (a function is called in its cheapest form); `s`: where it is stored\n\
         (INSERT, UPDATE, DEFAULT), with a check; empty: only by a cast that is written.\n\n| |",
    );
    for ty in TYPES {
        let _ = write!(out, " {} |", short(ty));
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(TYPES.len()));
    for (shown, row) in given() {
        let _ = write!(out, "| {shown} |");
        for ty in TYPES {
            let _ = match implicit(row, ty) {
                Some(cost) if cost.0 == 0 => write!(out, " = |"),
                Some(cost) => write!(out, " {} |", cost.0),
                None if assignment(row, ty) => write!(out, " s |"),
                None => write!(out, " |"),
            };
        }
        out.push('\n');
    }
}

fn meetings(out: &mut String) {
    out.push_str(
        "\n## Common types\n\nThe type of two results of CASE, two elements of a list, two operands of `<`.\n\
         Beside a column of texts: `=` and IN take the texts for the other type, set operations write the other\n\
         as text.\n\n| |",
    );
    let all = given();
    for (shown, _) in &all {
        let _ = write!(out, " {} |", shown.replace("DECIMAL", "DEC").replace("TIMESTAMP", "TS"));
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(all.len()));
    for (shown, left) in &all {
        let _ = write!(out, "| {shown} |");
        for (_, right) in &all {
            match common([*left, *right], Meeting::Strict) {
                Some(ty) => _ = write!(out, " {} |", short(ty)),
                None => out.push_str(" |"),
            }
        }
        out.push('\n');
    }
}

fn operators(out: &mut String) {
    use ArithmeticOp as Op;
    out.push_str("\n## Operators\n\nOn numbers:\n\n| left | right | `+` `-` | `*` | `/` | `%` | `&` `<<` |\n|---|---|---|---|---|---|---|\n");
    let decimal = |precision, scale| Given::Known(DataType::Decimal { precision, scale });
    let known = Given::Known;
    let pairs = [
        (known(DataType::Int8), Given::Integer(1)),
        (known(DataType::Int8), Given::Integer(300)),
        (known(DataType::Int32), known(DataType::Int64)),
        (known(DataType::UInt64), known(DataType::Int64)),
        (known(DataType::Int32), Given::Decimal { precision: 2, scale: 1 }),
        (Given::Integer(1), Given::Decimal { precision: 2, scale: 1 }),
        (decimal(12, 2), Given::Integer(1)),
        (decimal(12, 2), known(DataType::Int32)),
        (decimal(12, 2), decimal(10, 4)),
        (decimal(38, 10), decimal(38, 2)),
        (known(DataType::Float32), known(DataType::Int32)),
        (known(DataType::Float32), Given::Decimal { precision: 2, scale: 1 }),
        (known(DataType::Float32), decimal(12, 2)),
        (known(DataType::Float64), decimal(12, 2)),
    ];
    let shown = |given: Given| match given {
        Given::Integer(value) => format!("`{value}`"),
        Given::Decimal { .. } => "`1.5`".to_owned(),
        given => given.to_string(),
    };
    for (left, right) in pairs {
        let _ = write!(out, "| {} | {} |", shown(left), shown(right));
        for op in [Op::Add, Op::Multiply, Op::Divide, Op::Modulo, Op::BitAnd] {
            match arithmetic(op, left, right) {
                Some(operands) => _ = write!(out, " {} |", operands.result),
                None => out.push_str(" |"),
            }
        }
        out.push('\n');
    }
    out.push_str("\nOn dates, times and intervals:\n\n| | | |\n|---|---|---|\n");
    for (op, signatures) in SIGNATURES {
        let sign = match op {
            Op::Add => "+",
            Op::Subtract => "-",
            Op::Multiply => "*",
            _ => "/",
        };
        for operands in *signatures {
            let _ =
                writeln!(out, "| {} | `{sign}` {} | {} |", operands.left, operands.right, operands.result);
        }
    }
}

/// A short name for the head of a column.
fn short(ty: DataType) -> String {
    match ty {
        DataType::Decimal { precision, scale } => format!("DEC({precision},{scale})"),
        DataType::TimeTz => "TIMETZ".to_owned(),
        DataType::Timestamp => "TS".to_owned(),
        DataType::TimestampNs => "TS_NS".to_owned(),
        DataType::TimestampTz => "TSTZ".to_owned(),
        ty => ty.to_string(),
    }
}
