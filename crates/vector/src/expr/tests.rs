//! Programs against single rows, and against what SQL says.
//!
//! One row of constants takes none of the paths that make programs fast: no list of positions, no vector
//! loop, no dictionary, no shared group. So the same expression over many rows, in every encoding and
//! selection, must give what it gives row by row, errors included. What the single row gives is checked by
//! the statements below.

use super::*;
use crate::value::days_from_civil;
use crate::vector::Dictionary;
use crate::{Chunk, Error, Selection};
use DataType::{Boolean, Date, Float64, Int8, Int32, Int64, Varchar};

const MONEY: DataType = DataType::Decimal { precision: 15, scale: 2 };

pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn column(i: u32, ty: DataType) -> Expr {
    Expr::column(ColumnId(i), ty)
}

fn int(v: i128, ty: DataType) -> Expr {
    Expr::literal(Value::Integer(v), ty)
}

fn text(v: &str) -> Expr {
    Expr::literal(Value::Text(v.into()), Varchar)
}

fn null(ty: DataType) -> Expr {
    Expr::literal(Value::Null, ty)
}

fn arithmetic(op: ArithmeticOp, left: Expr, right: Expr, ty: DataType) -> Expr {
    Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty }
}

fn cast(input: Expr, ty: DataType) -> Expr {
    Expr::Cast { input: Box::new(input), ty, lenient: false }
}

fn like(input: Expr, pattern: &str) -> Expr {
    Expr::Like {
        input: Box::new(input),
        pattern: Box::new(text(pattern)),
        escape: None,
        case_insensitive: false,
    }
}

fn case(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    let ty = then.ty();
    Expr::Case { branches: vec![(condition, then)], otherwise: Some(Box::new(otherwise)), ty }
}

fn function(function: Function, args: Vec<Expr>, ty: DataType) -> Expr {
    Expr::Function { function, args, ty }
}

const TYPES: [DataType; 8] = [Int32, Int32, Int64, MONEY, Float64, Varchar, Date, Boolean];

fn metas() -> Vec<ColumnMeta> {
    TYPES.iter().enumerate().map(|(i, ty)| ColumnMeta::new(ColumnId(i as u32), *ty)).collect()
}

fn random_value(random: &mut Random, ty: DataType) -> Value {
    if random.next(6) == 0 {
        return Value::Null;
    }
    match ty {
        Boolean => Value::Boolean(random.next(2) == 0),
        Float64 => Value::Float([0.0, -1.5, 2.5, 1e10, f64::NAN, 3.0][random.next(6) as usize]),
        Varchar => Value::Text(
            ["", "apple", "Apple pie", "a text of some length", "12", "größer als zuvor gedacht", "-7"]
                [random.next(7) as usize]
                .into(),
        ),
        Date => Value::Integer(
            i128::from(days_from_civil(1990 + random.next(12) as i64, 2, 1)) + random.next(60) as i128,
        ),
        Int32 if random.next(40) == 0 => Value::Integer(i32::MAX.into()),
        _ => Value::Integer(random.next(9) as i128 - 4),
    }
}

/// Expressions of all kinds; those that may fail do so for some rows.
fn subjects() -> Vec<Expr> {
    let (a, b, big, money) = (column(0, Int32), column(1, Int32), column(2, Int64), column(3, MONEY));
    let (float, string, date, flag) =
        (column(4, Float64), column(5, Varchar), column(6, Date), column(7, Boolean));
    let less = Expr::compare(CompareOp::Lt, a.clone(), b.clone());
    let not_zero = Expr::compare(CompareOp::NotEq, b.clone(), int(0, Int32));
    let quotient = arithmetic(ArithmeticOp::Divide, a.clone(), b.clone(), Int32);
    let wide = DataType::Decimal { precision: 38, scale: 4 };
    let one_less = DataType::Decimal { precision: 16, scale: 2 };
    let is = |text_: &str| Expr::compare(CompareOp::Eq, string.clone(), text(text_));
    let year = function(Function::Extract(DatePart::Year), vec![date.clone()], Int64);
    let mut all = vec![
        arithmetic(ArithmeticOp::Add, a.clone(), b.clone(), Int32),
        arithmetic(ArithmeticOp::Subtract, int(7, Int32), b.clone(), Int32),
        arithmetic(ArithmeticOp::Multiply, big.clone(), big.clone(), Int64),
        quotient.clone(),
        arithmetic(ArithmeticOp::Modulo, big.clone(), int(3, Int64), Int64),
        arithmetic(ArithmeticOp::BitXor, a.clone(), b.clone(), Int32),
        arithmetic(ArithmeticOp::ShiftLeft, a.clone(), b.clone(), Int32),
        arithmetic(
            ArithmeticOp::Multiply,
            money.clone(),
            arithmetic(ArithmeticOp::Subtract, int(100, MONEY), money.clone(), one_less),
            wide,
        ),
        arithmetic(ArithmeticOp::Divide, float.clone(), float.clone(), Float64),
        arithmetic(ArithmeticOp::Multiply, float.clone(), Expr::literal(Value::Float(0.5), Float64), Float64),
        Expr::Negate(Box::new(a.clone())),
        less.clone(),
        Expr::compare(CompareOp::DistinctFrom, string.clone(), text("apple")),
        Expr::compare(CompareOp::NotDistinctFrom, a.clone(), b.clone()),
        Expr::compare(CompareOp::GtEq, float.clone(), Expr::literal(Value::Float(2.5), Float64)),
        Expr::And(vec![
            Expr::compare(CompareOp::GtEq, a.clone(), int(-2, Int32)),
            Expr::compare(CompareOp::Lt, a.clone(), int(3, Int32)),
        ]),
        Expr::And(vec![not_zero.clone(), Expr::compare(CompareOp::Eq, quotient.clone(), int(1, Int32))]),
        Expr::Or(vec![
            Expr::compare(CompareOp::Eq, b.clone(), int(0, Int32)),
            Expr::compare(CompareOp::Gt, quotient.clone(), int(0, Int32)),
            flag.clone(),
        ]),
        Expr::Or(vec![flag.clone(), less.clone()]),
        Expr::Not(Box::new(Expr::And(vec![flag.clone(), less.clone()]))),
        Expr::IsNull(Box::new(string.clone())),
        Expr::Not(Box::new(Expr::IsNull(Box::new(quotient.clone())))),
        case(not_zero.clone(), quotient.clone(), int(-1, Int32)),
        case(flag.clone(), money.clone(), int(0, MONEY)),
        case(less.clone(), string.clone(), text("a constant of some length")),
        // One of two is NULL, or has no bytes beyond its view.
        case(Expr::compare(CompareOp::Eq, a.clone(), b.clone()), null(Int32), a.clone()),
        case(less.clone(), null(MONEY), case(flag.clone(), money.clone(), null(MONEY))),
        Expr::compare(CompareOp::Gt, case(flag.clone(), big.clone(), null(Int64)), int(0, Int64)),
        case(flag.clone(), float.clone(), null(Float64)),
        case(is("apple"), null(Varchar), string.clone()),
        case(less.clone(), null(Varchar), string.clone()),
        case(less.clone(), text("short"), case(flag.clone(), string.clone(), text(""))),
        case(less.clone(), text("short"), text("shorter")),
        case(flag.clone(), text("a constant of some length"), null(Varchar)),
        case(like(string.clone(), "%p%e%"), a.clone(), case(flag.clone(), b.clone(), null(Int32))),
        case(Expr::compare(CompareOp::Gt, quotient.clone(), int(0, Int32)), a.clone(), int(1, Int32)),
        Expr::Case {
            branches: vec![(is("apple"), int(1, Int32)), (flag.clone(), a.clone())],
            otherwise: None,
            ty: Int32,
        },
        cast(a.clone(), Int8),
        cast(big.clone(), MONEY),
        cast(money.clone(), Int32),
        cast(money.clone(), Float64),
        cast(money.clone(), Varchar),
        cast(float.clone(), Int32),
        cast(float.clone(), MONEY),
        cast(date.clone(), DataType::Timestamp),
        cast(date.clone(), Varchar),
        cast(string.clone(), Int32),
        Expr::Cast { input: Box::new(string.clone()), ty: Int64, lenient: true },
        Expr::Cast { input: Box::new(string.clone()), ty: MONEY, lenient: true },
        like(string.clone(), "%p%e%"),
        Expr::Not(Box::new(like(string.clone(), "a%"))),
        Expr::And(vec![less.clone(), like(string.clone(), "_p%")]),
        Expr::InList {
            input: Box::new(string.clone()),
            list: vec![Value::Text("apple".into()), Value::Null],
        },
        Expr::InList { input: Box::new(a.clone()), list: vec![Value::Integer(1), Value::Integer(-3)] },
        Expr::InList { input: Box::new(big.clone()), list: vec![Value::Integer(1 << 40), Value::Integer(2)] },
        year.clone(),
        function(Function::Truncate(DatePart::Month), vec![date.clone()], Date),
        arithmetic(
            ArithmeticOp::Add,
            date.clone(),
            Expr::literal(
                Value::Interval(crate::Interval { months: 1, days: 0, micros: 0 }),
                DataType::Interval,
            ),
            Date,
        ),
        function(Function::Substring, vec![string.clone(), int(2, Int64), int(3, Int64)], Varchar),
        function(Function::Substring, vec![string.clone(), a.clone()], Varchar),
        function(Function::Substring, vec![string.clone(), int(3, Int64), b.clone()], Varchar),
        function(Function::Upper, vec![string.clone()], Varchar),
        case(
            flag.clone(),
            function(
                Function::Lower,
                vec![function(Function::Substring, vec![string.clone(), b.clone()], Varchar)],
                Varchar,
            ),
            string.clone(),
        ),
        function(Function::CharLength, vec![string.clone()], Int64),
        function(Function::Concat, vec![string.clone(), text("|"), cast(a.clone(), Varchar)], Varchar),
        case(Expr::IsNull(Box::new(string.clone())), text("none"), string.clone()),
        function(Function::Abs, vec![a.clone()], Int32),
    ];
    // Two expressions that share a part, one of them under a condition.
    all.push(case(less, arithmetic(ArithmeticOp::Add, year.clone(), big, Int64), year));
    all
}

fn run(expr: &Expr, input: &Chunk, metas: &[ColumnMeta]) -> Result<Vec<Value>> {
    let program = Program::compile(std::slice::from_ref(expr), metas)?;
    let mut machine = Machine::new(program.clone());
    let mut values = Vec::new();
    // Twice: the second run finds used registers.
    for _ in 0..2 {
        let mut output = Chunk::new();
        output.reset(input.len());
        machine.project(input, &mut output)?;
        assert_eq!(output.vector(0).physical(), program.outputs()[0].physical);
        values = (0..input.len()).map(|r| output.value(r, 0, expr.ty())).collect();
    }
    Ok(values)
}

/// The rows one by one, as constants, up to the first error.
fn one_by_one(expr: &Expr, rows: &[Vec<Value>]) -> Result<Vec<Value>> {
    let metas = metas();
    let mut values = Vec::new();
    for row in rows {
        let mut chunk = Chunk::new();
        chunk.reset(1);
        let group = chunk.push_group(Selection::ALL);
        for (value, meta) in row.iter().zip(&metas) {
            chunk.push_column(Vector::constant(meta.physical, value).unwrap(), group);
        }
        values.extend(run(expr, &chunk, &metas)?);
    }
    Ok(values)
}

/// A vector with `values` at `positions` and garbage elsewhere.
fn spread(
    random: &mut Random,
    values: &[Value],
    positions: &[u16],
    ty: DataType,
    dictionary: bool,
) -> Vector {
    let length = positions.iter().max().map_or(1, |&p| p as usize + 1);
    let mut all: Vec<Value> = (0..length).map(|_| random_value(random, ty)).collect();
    positions.iter().zip(values).for_each(|(&p, v)| all[p as usize] = v.clone());
    if !dictionary {
        return Vector::from_values(ty.physical(), &all).unwrap();
    }
    let mut entries: Vec<Value> = all.iter().filter(|v| !v.is_null()).cloned().collect();
    entries.push(Value::Text("an entry of no row".into()));
    entries.sort_by(Value::total_cmp);
    entries.dedup();
    let entries = Dictionary::new(Vector::from_values(ty.physical(), &entries).unwrap(), entries.len());
    let mut vector = Vector::new(ty.physical());
    let codes: Vec<u32> = all
        .iter()
        .map(|v| (0..entries.len()).position(|i| entries.values().value(i, ty) == *v).unwrap_or(0) as u32)
        .collect();
    vector.begin_codes(&entries, length)[..length].copy_from_slice(&codes);
    all.iter().enumerate().filter(|(_, v)| v.is_null()).for_each(|(p, _)| vector.set_null(p));
    vector
}

#[test]
fn many_rows_give_what_single_rows_give() {
    let mut random = Random(11);
    let metas = metas();
    for round in 0..60 {
        let count = [1, 3, 17, 200][round % 4];
        let rows: Vec<Vec<Value>> =
            (0..count).map(|_| TYPES.iter().map(|ty| random_value(&mut random, *ty)).collect()).collect();
        let dense: Vec<u16> = (0..count as u16).collect();
        // Positions that are not contiguous, and in random order.
        let sparse: Vec<u16> = dense.iter().map(|p| (count as u16 - 1 - p) * [2, 9][round % 2]).collect();
        let (one_group, dictionary) = (round % 3 != 0, round % 5 != 0);
        let mut chunk = Chunk::new();
        chunk.reset(count);
        let first =
            chunk.push_group(if round % 2 == 0 { Selection::ALL } else { Selection::from_indices(&sparse) });
        let second = if one_group { first } else { chunk.push_group(Selection::from_indices(&sparse)) };
        for (c, ty) in TYPES.iter().enumerate() {
            let values: Vec<Value> = rows.iter().map(|row| row[c].clone()).collect();
            let group = if c % 2 == 0 { first } else { second };
            let positions = if chunk.groups()[group].is_all() { &dense } else { &sparse };
            let vector = spread(&mut random, &values, positions, *ty, dictionary && *ty == Varchar);
            chunk.push_column(vector, group);
        }
        for expr in subjects() {
            let expected = one_by_one(&expr, &rows);
            match (&run(&expr, &chunk, &metas), &expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{expr} in round {round}"),
                (Err(found), Err(expected)) => assert_eq!(found.kind(), expected.kind(), "{expr}"),
                (found, expected) => panic!("{expr} in round {round}: {found:?}, row by row {expected:?}"),
            }
            if expr.ty() == Boolean {
                let program = Program::compile(std::slice::from_ref(&expr), &metas).unwrap();
                let picks = Machine::new(program.clone()).select(&chunk).map(<[u16]>::to_vec);
                if let Ok(expected) = expected {
                    let holds = |r: &u16| expected[*r as usize] == Value::Boolean(true);
                    let picked: Vec<u16> = dense.iter().copied().filter(holds).collect();
                    assert_eq!(picks.unwrap(), picked, "{expr} in round {round}\n{program}");
                }
            }
        }
    }
}

fn value(expr: Expr) -> Value {
    evaluate_constant(&expr).expect("no error")
}

fn message(expr: Expr) -> String {
    evaluate_constant(&expr).map_err(|error: Error| error.message().to_string()).expect_err("an error")
}

#[test]
fn logic_has_three_values() {
    let (t, f, null) = (Expr::boolean(true), Expr::boolean(false), Expr::literal(Value::Null, Boolean));
    assert_eq!(value(Expr::And(vec![null.clone(), f.clone()])), Value::Boolean(false));
    assert_eq!(value(Expr::And(vec![null.clone(), t.clone()])), Value::Null);
    assert_eq!(value(Expr::Or(vec![null.clone(), t])), Value::Boolean(true));
    assert_eq!(value(Expr::Or(vec![null.clone(), f])), Value::Null);
    assert_eq!(value(Expr::Not(Box::new(null))), Value::Null);
}

#[test]
fn errors_name_what_failed() {
    let add = arithmetic(ArithmeticOp::Add, int(i64::MAX.into(), Int64), int(1, Int64), Int64);
    assert_eq!(message(add), "integer overflow: 9223372036854775807 + 1 does not fit BIGINT");
    let divide = |a, b| arithmetic(ArithmeticOp::Divide, int(a, Int32), int(b, Int32), Int32);
    assert_eq!(message(divide(1, 0)), "division by zero");
    assert_eq!(value(divide(-7, 2)), Value::Integer(-3));
    assert!(message(divide(i32::MIN.into(), -1)).contains("overflow"));
    assert_eq!(message(cast(int(300, Int32), Int8)), "value 300 is out of range for TINYINT");
    assert_eq!(message(cast(text("abc"), Int32)), "cannot cast 'abc' to INTEGER");
}

#[test]
fn casts_round_as_postgresql_does() {
    let float = |v| Expr::literal(Value::Float(v), Float64);
    assert_eq!(value(cast(float(2.5), Int32)), Value::Integer(2));
    assert_eq!(value(cast(float(3.5), Int32)), Value::Integer(4));
    assert_eq!(value(cast(int(-250, MONEY), Int32)), Value::Integer(-3));
    assert_eq!(value(cast(int(149, MONEY), Int32)), Value::Integer(1));
    assert_eq!(value(cast(text("1.005"), MONEY)), Value::Integer(101));
    assert_eq!(value(cast(int(5, Int32), MONEY)), Value::Integer(500));
    assert_eq!(value(cast(int(-5, MONEY), Varchar)), Value::Text("-0.05".into()));
}

#[test]
fn substrings_and_cases() {
    let substring = |start, count| {
        function(Function::Substring, vec![text("größe"), int(start, Int64), int(count, Int64)], Varchar)
    };
    assert_eq!(value(substring(0, 3)), Value::Text("gr".into()));
    assert_eq!(value(substring(3, 2)), Value::Text("öß".into()));
    assert_eq!(value(substring(9, 2)), Value::Text("".into()));
    assert!(message(substring(1, -1)).contains("negative"));
    assert_eq!(value(function(Function::Upper, vec![text("größe")], Varchar)), Value::Text("GRÖSSE".into()));
}

#[test]
fn wide_decimals_run_in_64_bits_where_ranges_allow_it() {
    let (price, rate) = (ColumnId(0), ColumnId(1));
    let ranged = |id, range| ColumnMeta { range: Some(range), ..ColumnMeta::new(id, MONEY) };
    let input = [ranged(price, (90_000, 10_494_950)), ranged(rate, (0, 10))];
    let by = |scale| DataType::Decimal { precision: 38, scale };
    let factor = |op| arithmetic(op, int(100, MONEY), Expr::column(rate, MONEY), MONEY);
    let product = arithmetic(
        ArithmeticOp::Multiply,
        arithmetic(ArithmeticOp::Multiply, Expr::column(price, MONEY), factor(ArithmeticOp::Subtract), by(4)),
        factor(ArithmeticOp::Add),
        by(6),
    );
    let program = Program::compile(std::slice::from_ref(&product), &input).unwrap();
    assert_eq!(program.outputs()[0].physical, PhysicalType::I64);
    assert_eq!(program.outputs()[0].range, Some((90_000 * 90 * 100, 10_494_950 * 100 * 110)));
    assert!(!program.to_string().contains("checked"), "{program}");
    let unknown = [ColumnMeta::new(price, MONEY), ColumnMeta::new(rate, MONEY)];
    let program = Program::compile(&[product], &unknown).unwrap();
    assert_eq!(program.outputs()[0].physical, PhysicalType::I128);
}

#[test]
fn shared_subexpressions_are_computed_once() {
    let product = arithmetic(ArithmeticOp::Multiply, column(0, Int32), column(1, Int32), Int32);
    let guarded = case(
        like(column(5, Varchar), "a%"),
        arithmetic(ArithmeticOp::Divide, product.clone(), column(0, Int32), Int32),
        int(0, Int32),
    );
    let program = Program::compile(&[guarded, product], &metas()).unwrap();
    assert_eq!(program.to_string().matches("* checked").count(), 1, "{program}");
}

#[test]
fn uuids_are_the_same_as_text_as_constants_and_in_lists() {
    let text_of = |byte: &str| text(&format!("{byte}000000-0000-0000-0000-000000000001"));
    let (low, high) = (cast(text_of("01"), DataType::Uuid), cast(text_of("f1"), DataType::Uuid));
    let metas = [ColumnMeta::new(ColumnId(0), Varchar)];
    let mut chunk = Chunk::new();
    chunk.reset(2);
    let group = chunk.push_group(Selection::ALL);
    let texts = [evaluate_constant(&text_of("01")).unwrap(), evaluate_constant(&text_of("f1")).unwrap()];
    chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).unwrap(), group);
    let read = cast(column(0, Varchar), DataType::Uuid);
    let constants = [evaluate_constant(&low).unwrap(), evaluate_constant(&high).unwrap()];
    assert_eq!(run(&read, &chunk, &metas).unwrap(), constants);
    let holds = |expr| {
        run(&expr, &chunk, &metas).unwrap().iter().map(|v| *v == Value::Boolean(true)).collect::<Vec<_>>()
    };
    assert_eq!(holds(Expr::compare(CompareOp::Lt, read.clone(), high)), [true, false]);
    let list = vec![constants[1].clone()];
    assert_eq!(holds(Expr::InList { input: Box::new(read), list }), [false, true]);
}

/// Bounds of fields and truncated dates hold, at their edges too, and say that a year is not NULL.
#[test]
fn fields_are_within_their_bounds() {
    use DatePart::*;
    let parts = [
        Millennium,
        Century,
        Decade,
        Year,
        IsoYear,
        Quarter,
        Month,
        Week,
        YearWeek,
        Era,
        Day,
        DayOfWeek,
        IsoDayOfWeek,
        DayOfYear,
        Hour,
        Epoch,
    ];
    let near = i128::from(days_from_civil(1992, 1, 2));
    let end = i128::from(i32::MAX);
    let ranges =
        [(near, near + 2525), (-near, 5), (-end, 1 - end + 400), (1 - end, end - 1), (end - 500, end)];
    for ((low, high), part) in ranges.into_iter().flat_map(|range| parts.map(|part| (range, part))) {
        let meta =
            ColumnMeta { nullable: false, range: Some((low, high)), ..ColumnMeta::new(ColumnId(0), Date) };
        let exprs = [
            function(Function::Extract(part), vec![column(0, Date)], Int64),
            function(Function::Truncate(part), vec![column(0, Date)], Date),
        ];
        let program = Program::compile(&exprs, std::slice::from_ref(&meta)).unwrap();
        assert!(!program.is_fallible());
        let step = ((high - low) / 700).max(1) as usize;
        let days: Vec<Value> =
            (low..=high).step_by(step).chain([high - 1, high]).map(Value::Integer).collect();
        let mut chunk = Chunk::new();
        chunk.reset(days.len());
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::from_values(meta.physical, &days).unwrap(), group);
        let mut output = Chunk::new();
        output.reset(days.len());
        Machine::new(program.clone()).project(&chunk, &mut output).unwrap();
        for (c, (expr, of)) in exprs.iter().zip(program.outputs()).enumerate() {
            let (least, most) = of.range.unwrap();
            for (row, day) in days.iter().enumerate() {
                match output.value(row, c, of.ty) {
                    Value::Integer(v) => assert!((least..=most).contains(&v), "{expr} of {day:?} is {v}"),
                    Value::Null => assert!(of.nullable, "{expr} of {day:?} is NULL"),
                    other => panic!("{expr} is {other:?}"),
                }
            }
        }
    }
}
