//! Programs over narrow columns against programs that narrow nothing, and at the edges of every type.
//!
//! The twin is the same expression compiled as it is, over columns in their types' default physical types: 64
//! and 128 bits. Values are at the ends of random ranges, so that results are at the edges of 32 and 64 bits.

use super::fold::fold;
use super::tests::Random;
use super::*;
use crate::types::pow10;
use crate::{Chunk, Error, Selection, Vector};
use DataType::{
    Boolean, Decimal, Float64, Int8, Int16, Int32, Int64, Timestamp, UInt8, UInt16, UInt32, UInt64,
};

const TYPES: [DataType; 12] = [
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Decimal { precision: 4, scale: 1 },
    Decimal { precision: 9, scale: 2 },
    Decimal { precision: 18, scale: 2 },
    Decimal { precision: 38, scale: 3 },
];

impl Random {
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len() as u64) as usize]
    }

    /// A number near an edge, near a root of one, or small, within `low` and `high`.
    fn number(&mut self, low: i128, high: i128) -> i128 {
        let edge = match self.next(8) {
            0 => low,
            1 => high,
            2 => self.of(&[7, 8, 15, 16, 31, 32, 46, 63, 64]),
            _ => 0,
        };
        let edge = match self.next(6) {
            0 => 1 << (self.next(66)),
            1 => -(1 << (self.next(66))),
            2 => pow10(self.next(20) as u8),
            _ => edge,
        };
        let step = i128::from(self.next(9)) - 4;
        edge.saturating_add(step).clamp(low, high)
    }
}

/// A random expression of a numeric type over columns 0 to 3.
fn numeric(random: &mut Random, columns: &[DataType], depth: u32) -> Expr {
    let leaf = depth == 0 || random.next(5) == 0;
    if leaf {
        let at = random.next(columns.len() as u64) as usize;
        let ty = columns[at];
        if random.next(4) == 0 {
            let (low, high) = ty.integer_range().unwrap();
            return Expr::literal(Value::Integer(random.number(low, high)), ty);
        }
        return Expr::column(ColumnId(at as u32), ty);
    }
    let left = numeric(random, columns, depth - 1);
    match random.next(8) {
        0 => Expr::Negate(Box::new(left)),
        1 => {
            let ty = left.ty();
            Expr::Function { function: Function::Abs, args: vec![left], ty }
        }
        2 => Expr::Cast { input: Box::new(left), ty: random.of(&TYPES), lenient: random.next(3) == 0 },
        3 => {
            let ty = left.ty();
            let right = cast(numeric(random, columns, depth - 1), ty);
            let branches = vec![(condition(random, columns, depth - 1), left)];
            Expr::Case { branches, otherwise: (random.next(3) > 0).then(|| Box::new(right)), ty }
        }
        _ => {
            let right = numeric(random, columns, depth - 1);
            operation(random, left, right)
        }
    }
}

fn cast(input: Expr, ty: DataType) -> Expr {
    if input.ty() == ty { input } else { Expr::Cast { input: Box::new(input), ty, lenient: false } }
}

/// `left op right` as a front end would type it.
fn operation(random: &mut Random, left: Expr, right: Expr) -> Expr {
    use ArithmeticOp::{
        Add, BitAnd, BitOr, BitXor, Divide, Modulo, Multiply, ShiftLeft, ShiftRight, Subtract,
    };
    let (lt, rt) = (left.ty(), right.ty());
    let (op, left, right, ty) = match (lt, rt) {
        (Decimal { scale: ls, .. }, Decimal { scale: rs, .. }) if ls + rs < 30 => {
            let op = random.of(&[Add, Subtract, Multiply, Multiply, Modulo]);
            let scale = if op == Multiply { ls + rs } else { ls.max(rs) };
            (op, left, right, Decimal { precision: 38, scale })
        }
        _ if lt.is_integer() => {
            let ops = [
                Add, Subtract, Multiply, Multiply, Divide, Modulo, BitAnd, BitOr, BitXor, ShiftLeft,
                ShiftRight,
            ];
            (random.of(&ops), left, cast(right, lt), lt)
        }
        _ => {
            let ty = Decimal { precision: 18, scale: 2 };
            (
                random.of(&[Add, Subtract, Multiply]),
                cast(left, ty),
                cast(right, ty),
                Decimal { precision: 38, scale: 2 },
            )
        }
    };
    let ty = match (op, ty) {
        (Multiply, Decimal { .. }) => {
            let scale = |expr: &Expr| if let Decimal { scale, .. } = expr.ty() { scale } else { 0 };
            Decimal { precision: 38, scale: scale(&left) + scale(&right) }
        }
        _ => ty,
    };
    Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty }
}

fn condition(random: &mut Random, columns: &[DataType], depth: u32) -> Expr {
    use CompareOp::{DistinctFrom, Eq, Gt, GtEq, Lt, LtEq, NotDistinctFrom, NotEq};
    let left = numeric(random, columns, depth);
    let ty = left.ty();
    let op = random.of(&[Eq, NotEq, Lt, LtEq, Gt, GtEq, DistinctFrom, NotDistinctFrom]);
    let (low, high) = ty.integer_range().unwrap();
    match random.next(5) {
        0 => {
            let right = cast(numeric(random, columns, depth), ty);
            Expr::compare(op, left, right)
        }
        1 => {
            let list = (0..3).map(|_| Value::Integer(random.number(low, high))).collect();
            Expr::InList { input: Box::new(left), list }
        }
        2 => {
            let bound = |random: &mut Random| Expr::literal(Value::Integer(random.number(low, high)), ty);
            let (from, to) = (bound(random), bound(random));
            Expr::And(vec![Expr::compare(GtEq, left.clone(), from), Expr::compare(Lt, left, to)])
        }
        _ => Expr::compare(op, left, Expr::literal(Value::Integer(random.number(low, high)), ty)),
    }
}

/// The rows of `columns`, held as `metas` say.
fn chunk_of(
    metas: &[ColumnMeta],
    columns: &[Vec<Value>],
    rows: usize,
    selection: Selection,
    gap: usize,
) -> Chunk {
    let mut chunk = Chunk::new();
    chunk.reset(rows);
    let group = chunk.push_group(selection);
    for (meta, values) in metas.iter().zip(columns) {
        // Positions between the rows are NULL and out of the range.
        let spread: Vec<Value> = values.iter().flat_map(|v| std::iter::repeat_n(v.clone(), gap)).collect();
        let mut vector = Vector::from_values(meta.physical, &spread).unwrap();
        if !meta.nullable {
            vector.set_validity(None);
        }
        chunk.push_column(vector, group);
    }
    chunk
}

fn values_of(program: Arc<Program>, chunk: &Chunk, ty: DataType) -> Result<Vec<Value>> {
    let mut output = Chunk::new();
    output.reset(chunk.len());
    Machine::new(program).project(chunk, &mut output)?;
    Ok((0..chunk.len()).map(|row| output.value(row, 0, ty)).collect())
}

/// The twin's first error, row by row, or all its values.
fn row_by_row(expr: &Expr, metas: &[ColumnMeta], columns: &[Vec<Value>], rows: usize) -> Result<Vec<Value>> {
    let program = Program::compile_as_is(std::slice::from_ref(expr), metas)?;
    let mut all = Vec::new();
    for row in 0..rows {
        let row: Vec<Vec<Value>> = columns.iter().map(|values| vec![values[row].clone()]).collect();
        all.extend(values_of(program.clone(), &chunk_of(metas, &row, 1, Selection::ALL, 1), expr.ty())?);
    }
    Ok(all)
}

fn kind(result: &Result<Vec<Value>>) -> Result<&Vec<Value>, crate::ErrorKind> {
    result.as_ref().map_err(Error::kind)
}

#[test]
fn narrow_programs_give_what_wide_ones_give() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut narrow, mut widening, mut failed, mut passed) = (0, 0, 0, 0);
    for round in 0..6000 {
        let rows = [1, 3, 40][round % 3];
        let types: Vec<DataType> = (0..4).map(|_| random.of(&TYPES)).collect();
        let mut columns = Vec::new();
        let mut metas = Vec::new();
        for (i, &ty) in types.iter().enumerate() {
            let (least, most) = ty.integer_range().unwrap();
            let (a, b) = (random.number(least, most), random.number(least, most));
            let range = (a.min(b), a.max(b));
            let nullable = random.next(2) == 0;
            let value = |random: &mut Random| match random.next(7) {
                0 if nullable => Value::Null,
                1 => Value::Integer(range.0),
                2 => Value::Integer(range.1),
                _ => Value::Integer(random.number(range.0, range.1)),
            };
            columns.push((0..rows).map(|_| value(&mut random)).collect::<Vec<Value>>());
            metas.push(ColumnMeta {
                nullable,
                range: Some(range),
                ..ColumnMeta::new(ColumnId(i as u32), ty)
            });
        }
        let expr =
            if round % 3 == 0 { condition(&mut random, &types, 2) } else { numeric(&mut random, &types, 3) };
        // The twin knows nothing but the types.
        let plain: Vec<ColumnMeta> = metas
            .iter()
            .map(|meta| ColumnMeta { nullable: meta.nullable, ..ColumnMeta::new(meta.id, meta.ty) })
            .collect();
        // Constants are folded on both sides: a resulting NULL hides errors of the other operand.
        let expected = row_by_row(&fold(&expr), &plain, &columns, rows);
        for width in 0..3 {
            let metas: Vec<ColumnMeta> = metas
                .iter()
                .map(|meta| {
                    let is_narrow = width == 2 || width == 1 && random.next(2) == 0;
                    let narrowest = meta.ty.narrowest(meta.range.unwrap());
                    ColumnMeta { physical: if is_narrow { narrowest } else { meta.physical }, ..meta.clone() }
                })
                .collect();
            let as_is = random.next(2) == 0;
            let program = Program::compile_narrow(std::slice::from_ref(&expr), &metas, &|_| as_is).unwrap();
            let output = program.outputs()[0].clone();
            if !as_is && output.physical != expr.ty().physical() {
                assert_eq!(
                    (output.physical, expr.ty().physical()),
                    (PhysicalType::I64, PhysicalType::I128),
                    "{program}"
                );
            }
            let text = program.to_string();
            narrow += usize::from(text.contains("[I32] for"));
            widening +=
                usize::from(text.contains("*(") && text.contains("[I64] for") && !text.contains("resize"));
            for gap in [1, 2] {
                let positions: Vec<u16> = (0..rows as u16).map(|row| row * gap + gap - 1).collect();
                let selection = if gap == 1 { Selection::ALL } else { Selection::from_indices(&positions) };
                let chunk = chunk_of(&metas, &columns, rows, selection, gap as usize);
                let found = values_of(program.clone(), &chunk, expr.ty());
                assert_eq!(kind(&found), kind(&expected), "{expr}\n{metas:?}\n{columns:?}\n{program}");
                if let (Ok(values), Some((low, high))) = (&found, output.range) {
                    let within = |value: &Value| !matches!(value, Value::Integer(v) if *v < low || *v > high);
                    assert!(values.iter().all(within), "{values:?} in {low} to {high}\n{expr}\n{program}");
                }
                if expr.ty() == Boolean && found.is_ok() {
                    let program = Program::compile(std::slice::from_ref(&expr), &metas).unwrap();
                    let picks: Vec<u16> = Machine::new(program).select(&chunk).unwrap().to_vec();
                    let truths = expected.as_ref().unwrap().iter().enumerate();
                    let truths =
                        truths.filter(|(_, v)| **v == Value::Boolean(true)).map(|(row, _)| row as u16);
                    assert_eq!(picks, truths.collect::<Vec<u16>>(), "{expr}");
                }
            }
        }
        if expected.is_ok() { passed += 1 } else { failed += 1 }
    }
    // Enough of the random cases are meaningful.
    assert!(
        narrow > 500 && widening > 30 && failed > 300 && passed > 1000,
        "{narrow} {widening} {failed} {passed}"
    );
}

#[test]
fn every_type_overflows_at_its_edges() {
    use ArithmeticOp::{Add, Divide, Modulo, Multiply, Subtract};
    let columns = |a: i128, b: i128, ty: DataType| {
        let meta = |id, value| ColumnMeta {
            physical: ty.narrowest((value, value)),
            nullable: false,
            range: Some((value, value)),
            ..ColumnMeta::new(ColumnId(id), ty)
        };
        // One case with facts, one without.
        let known = [meta(0, a), meta(1, b)];
        let unknown = [ColumnMeta::new(ColumnId(0), ty), ColumnMeta::new(ColumnId(1), ty)];
        (known, unknown)
    };
    let result = |expr: &Expr, a: i128, b: i128, ty: DataType| -> Result<i128> {
        let (known, unknown) = columns(a, b, ty);
        let values = [vec![Value::Integer(a)], vec![Value::Integer(b)]];
        let compute = |metas: &[ColumnMeta]| {
            let program = Program::compile(std::slice::from_ref(expr), metas).unwrap();
            values_of(program, &chunk_of(metas, &values, 1, Selection::ALL, 1), expr.ty())
        };
        let (known, unknown) = (compute(&known), compute(&unknown));
        assert_eq!(kind(&known), kind(&unknown), "{expr} of {a}, {b} as {ty}");
        known.map(|values| match values[0] {
            Value::Integer(v) => v,
            ref other => panic!("{expr} is {other:?}"),
        })
    };
    for ty in TYPES {
        let (low, high) = ty.integer_range().unwrap();
        let out = if let Decimal { scale, .. } = ty { Decimal { precision: 38, scale } } else { ty };
        let (least, most) = out.integer_range().unwrap();
        let edges = [low, low + 1, -1, 0, 1, 2, high - 1, high].map(|v: i128| v.clamp(low, high));
        for (a, b) in edges.iter().flat_map(|&a| edges.map(|b| (a, b))) {
            for op in [Add, Subtract, Multiply, Divide, Modulo] {
                let out = match (op, ty) {
                    (Multiply, Decimal { scale, .. }) => Decimal { precision: 38, scale: 2 * scale },
                    (Divide, Decimal { .. }) => continue,
                    _ => out,
                };
                let exact = match op {
                    Add => a.checked_add(b),
                    Subtract => a.checked_sub(b),
                    Multiply => a.checked_mul(b),
                    Divide => a.checked_div(b),
                    _ => a.checked_rem(b),
                };
                let (left, right) = (Expr::column(ColumnId(0), ty), Expr::column(ColumnId(1), ty));
                let expr = Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty: out };
                let expected = exact.filter(|v| (least..=most).contains(v));
                assert_eq!(result(&expr, a, b, ty).ok(), expected, "{a} {op} {b} as {ty}");
            }
            let column = || Box::new(Expr::column(ColumnId(0), ty));
            let within = |v: i128, ty: DataType| {
                let (low, high) = ty.integer_range().unwrap();
                Some(v).filter(|v| (low..=high).contains(v))
            };
            assert_eq!(result(&Expr::Negate(column()), a, b, ty).ok(), within(-a, ty), "-{a} as {ty}");
            let abs = Expr::Function { function: Function::Abs, args: vec![*column()], ty };
            assert_eq!(result(&abs, a, b, ty).ok(), within(a.abs(), ty), "abs({a}) as {ty}");
            for to in TYPES.into_iter().filter(|to| to.is_integer() && ty.is_integer()) {
                let cast = cast(*column(), to);
                assert_eq!(result(&cast, a, b, ty).ok(), within(a, to), "{a} from {ty} to {to}");
            }
        }
    }
}

#[test]
fn constants_without_room_decide_comparisons() {
    let meta = |nullable| ColumnMeta {
        physical: PhysicalType::I32,
        range: Some((-5, 5)),
        nullable,
        ..ColumnMeta::new(ColumnId(0), Int64)
    };
    let values = [vec![Value::Integer(-5), Value::Integer(5), Value::Null]];
    for (op, bound, expected) in [
        (CompareOp::Lt, 1i128 << 40, true),
        (CompareOp::GtEq, 1 << 40, false),
        (CompareOp::Eq, -(1 << 40), false),
        (CompareOp::NotEq, -(1 << 40), true),
        (CompareOp::Gt, i64::MIN.into(), true),
        (CompareOp::LtEq, i64::MIN.into(), false),
    ] {
        let constant = Expr::literal(Value::Integer(bound), Int64);
        let expr = Expr::compare(op, Expr::column(ColumnId(0), Int64), constant);
        let metas = [meta(true)];
        let program = Program::compile(std::slice::from_ref(&expr), &metas).unwrap();
        assert!(!program.to_string().contains("resize"), "{program}");
        let found = values_of(program, &chunk_of(&metas, &values, 3, Selection::ALL, 1), Boolean).unwrap();
        assert_eq!(found, [Value::Boolean(expected), Value::Boolean(expected), Value::Null], "{expr}");
        // Without NULLs nothing remains to be computed.
        let program = Program::compile(&[expr], &[meta(false)]).unwrap();
        assert!(!program.to_string().contains("column"), "{program}");
    }
}

#[test]
fn the_first_query_of_tpch_runs_in_32_bits_up_to_the_last_product() {
    const MONEY: DataType = Decimal { precision: 15, scale: 2 };
    let column = |id, range| ColumnMeta {
        physical: PhysicalType::I32,
        nullable: false,
        range: Some(range),
        ..ColumnMeta::new(ColumnId(id), MONEY)
    };
    let metas = [column(0, (90_000, 10_494_950)), column(1, (0, 10)), column(2, (0, 8))];
    let scaled = |scale| Decimal { precision: 38, scale };
    let arithmetic = |op, left: Expr, right: Expr, scale| Expr::Arithmetic {
        op,
        left: Box::new(left),
        right: Box::new(right),
        ty: scaled(scale),
    };
    let one = || Expr::literal(Value::Integer(1), Decimal { precision: 1, scale: 0 });
    let of = |id| Expr::column(ColumnId(id), MONEY);
    let price =
        arithmetic(ArithmeticOp::Multiply, of(0), arithmetic(ArithmeticOp::Subtract, one(), of(1), 2), 4);
    let charge =
        arithmetic(ArithmeticOp::Multiply, price.clone(), arithmetic(ArithmeticOp::Add, one(), of(2), 2), 6);
    let program = Program::compile_narrow(&[price, charge], &metas, &|_| true).unwrap();
    let held: Vec<PhysicalType> = program.outputs().iter().map(|meta| meta.physical).collect();
    assert_eq!(held, [PhysicalType::I32, PhysicalType::I64]);
    let text = program.to_string();
    assert_eq!((text.matches("[I32] for").count(), text.matches("[I64] for").count()), (3, 1), "{program}");
}

#[test]
fn what_knows_one_physical_type_gets_that() {
    // Functions of timestamps, floats and text read what is held in 32 bits as what it is.
    let meta = |id, ty| ColumnMeta {
        physical: PhysicalType::I32,
        range: Some((-1_000_000, 2_000_000_000)),
        ..ColumnMeta::new(ColumnId(id), ty)
    };
    let metas = [meta(0, Timestamp), meta(1, Int64)];
    let wide: Vec<ColumnMeta> = metas.iter().map(|meta| ColumnMeta::new(meta.id, meta.ty)).collect();
    let values: Vec<Vec<Value>> = vec![[-1_000_000, 0, 2_000_000_000].map(Value::Integer).to_vec(); 2];
    let (time, number) = (Expr::column(ColumnId(0), Timestamp), Expr::column(ColumnId(1), Int64));
    let day = crate::Interval { months: 1, days: 1, micros: -1 };
    let interval = Expr::literal(Value::Interval(day), DataType::Interval);
    let function = |function, arg: &Expr, ty| Expr::Function { function, args: vec![arg.clone()], ty };
    let plain = |input: &Expr, ty| Expr::Cast { input: Box::new(input.clone()), ty, lenient: false };
    let all = [
        function(Function::Extract(DatePart::Minute), &time, Int64),
        function(Function::Truncate(DatePart::Minute), &time, Timestamp),
        Expr::Arithmetic {
            op: ArithmeticOp::Add,
            left: Box::new(time.clone()),
            right: Box::new(interval),
            ty: Timestamp,
        },
        plain(&time, DataType::Date),
        plain(&time, DataType::TimestampTz),
        plain(&time, DataType::Varchar),
        plain(&number, DataType::Varchar),
        plain(&number, Float64),
        plain(&number, Boolean),
        Expr::compare(
            CompareOp::NotDistinctFrom,
            number.clone(),
            Expr::literal(Value::Integer(1 << 40), Int64),
        ),
        Expr::IsNull(Box::new(number)),
        time,
    ];
    for expr in all {
        let program = Program::compile(std::slice::from_ref(&expr), &metas).unwrap();
        assert_eq!(program.outputs()[0].physical, expr.ty().physical(), "{expr}");
        let found = values_of(program, &chunk_of(&metas, &values, 3, Selection::ALL, 1), expr.ty());
        let expected = row_by_row(&expr, &wide, &values, 3);
        assert_eq!(found.unwrap(), expected.unwrap(), "{expr}");
    }
}
