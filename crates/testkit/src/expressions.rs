//! Random expressions over random chunks, for the expression machine alone.
//!
//! **Strategy.** A [`Case`] is a chunk of a few dozen rows with one to three columns of every type it needs,
//! in every encoding, under selections that skip and repeat positions, and some expressions over them. Half
//! of the cases are *tame*: values are small and errors are rare, so that results are compared. The others
//! contain the extremes of their types, so that errors are compared.
//!
//! **Invariants.** Positions that are not selected, and positions that are NULL, contain extremes in all
//! cases: this detects a kernel that raises an error for one of them, or lets it affect a result. Column
//! ranges hold only for the rows.

use crate::random::Random;
use entasis_vector::expr::{ArithmeticOp, ColumnMeta, CompareOp, DatePart, Expr, Function};
use entasis_vector::time_tz;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::vector::uuid_to_ordered;
use entasis_vector::{
    Chunk, ColumnId, DataType, Dictionary, Encoding, Interval, PhysicalType, Selection, Value, Vector,
};
use std::sync::{Arc, LazyLock};

/// A chunk, its rows as values, and expressions over it.
#[derive(Debug)]
pub struct Case {
    /// The metadata of the columns.
    pub columns: Vec<ColumnMeta>,
    /// The rows, as values.
    pub rows: Vec<Vec<Value>>,
    /// The same rows, as a chunk.
    pub chunk: Chunk,
    /// Expressions of any type.
    pub exprs: Vec<Expr>,
    /// BOOLEAN expressions, to be used together as a filter.
    pub predicates: Vec<Expr>,
}

const MONEY: DataType = DataType::Decimal { precision: 6, scale: 2 };
const FINE: DataType = DataType::Decimal { precision: 18, scale: 4 };
const WIDE: DataType = DataType::Decimal { precision: 30, scale: 3 };
const PRODUCT: DataType = DataType::Decimal { precision: 38, scale: 6 };

/// Types of columns and expressions: all types of values, with the decimals above, and text more often.
pub static TYPES: LazyLock<Vec<DataType>> = LazyLock::new(|| {
    let types = DataType::ALL.into_iter().flat_map(|ty| match ty {
        DataType::Null | DataType::Decimal { .. } => vec![],
        DataType::Varchar => vec![MONEY, FINE, WIDE, PRODUCT, ty, ty],
        _ => vec![ty],
    });
    types.collect()
});

const NUMBERS: &[DataType] = &[
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float32,
    DataType::Float64,
    MONEY,
    FINE,
    WIDE,
];

/// The case of `seed`.
pub fn case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let tame = random.chance(50);
    let mut generator = Expressions { random, tame, columns: Vec::new() };
    let rows = *generator.random.pick(&[1, 2, 7, 40, 130]);
    let (columns, values, chunk) = generator.chunk(rows);
    let depth = if tame { 3 } else { 2 };
    let exprs = (0..3)
        .map(|_| {
            let ty = *generator.random.pick(&TYPES);
            generator.expression(ty, depth)
        })
        .collect();
    let predicates = (0..generator.random.between(1, 3)).map(|_| generator.boolean(depth)).collect();
    let rows = (0..rows).map(|r| values.iter().map(|column| column[r].clone()).collect()).collect();
    Case { columns, rows, chunk, exprs, predicates }
}

/// Generates expressions over given columns.
#[derive(Debug)]
pub struct Expressions {
    /// The source of random choices.
    pub random: Random,
    /// True if literals are small and errors rare.
    pub tame: bool,
    /// The columns that may be read.
    pub columns: Vec<ColumnMeta>,
}

impl Expressions {
    // ---- columns ------------------------------------------------------------------------------------------

    /// Columns, their values by row, and the chunk that holds them.
    fn chunk(&mut self, rows: usize) -> (Vec<ColumnMeta>, Vec<Vec<Value>>, Chunk) {
        let mut chunk = Chunk::new();
        chunk.reset(rows);
        let positions = rows + self.random.below(40);
        let picks: Vec<u16> = (0..rows).map(|_| self.random.below(positions) as u16).collect();
        let sparse = chunk.push_group(Selection::from_indices(&picks));
        let dense = chunk.push_group(Selection::ALL);
        let mut all = Vec::new();
        for _ in 0..self.random.between(3, 7) {
            let ty = *self.random.pick(&TYPES);
            let at: Vec<usize> = if self.random.chance(60) {
                chunk.push_column(Vector::new(ty.physical()), sparse);
                picks.iter().map(|p| usize::from(*p)).collect()
            } else {
                chunk.push_column(Vector::new(ty.physical()), dense);
                (0..rows).collect()
            };
            all.push((ty, at));
        }
        let groups: Vec<usize> = chunk.columns().iter().map(|column| column.group).collect();
        let selections = chunk.groups().to_vec();
        chunk.reset(rows);
        for selection in selections {
            chunk.push_group(selection);
        }
        let mut values = Vec::new();
        for (i, (ty, at)) in all.into_iter().enumerate() {
            let (meta, vector, column) = self.column(ColumnId(i as u32), ty, &at, positions);
            chunk.push_column(vector, groups[i]);
            self.columns.push(meta);
            values.push(column);
        }
        (self.columns.clone(), values, chunk)
    }

    /// One column whose rows are `at` these positions.
    fn column(
        &mut self,
        id: ColumnId,
        ty: DataType,
        at: &[usize],
        positions: usize,
    ) -> (ColumnMeta, Vector, Vec<Value>) {
        let nulls = *self.random.pick(&[0, 0, 20, 60]);
        let constant = self.random.chance(12);
        let domain: Vec<Value> = (0..5).map(|_| self.value(ty)).collect();
        // The values at each position; those that are not rows may be anything.
        let mut slots: Vec<Value> = (0..positions).map(|_| self.extreme(ty)).collect();
        for &position in at {
            slots[position] =
                if self.random.chance(nulls) { Value::Null } else { self.random.pick(&domain).clone() };
        }
        if constant {
            let value = if self.random.chance(nulls) { Value::Null } else { domain[0].clone() };
            slots.fill(value);
        }
        let column: Vec<Value> = at.iter().map(|&position| slots[position].clone()).collect();
        let wide = ty.physical() == PhysicalType::I128 && ty != DataType::Uuid;
        let fits = |v: &Value| matches!(v, Value::Integer(v) if i64::try_from(*v).is_ok()) || v.is_null();
        let narrow = wide && self.random.chance(60) && slots.iter().chain(&domain).all(fits);
        let physical = if narrow { PhysicalType::I64 } else { ty.physical() };
        let stored = |v: &Value| match v {
            Value::Integer(bits) if ty == DataType::Uuid => Value::Integer(uuid_to_ordered(*bits)),
            other => other.clone(),
        };
        let vector = if constant {
            Vector::constant(physical, &stored(&slots[0])).expect("values are of the column's type")
        } else if self.random.chance(40) {
            // Codes at NULL positions are arbitrary, so they refer to any entry.
            let mut entries: Vec<Value> = slots.iter().filter(|v| !v.is_null()).map(&stored).collect();
            entries.extend(domain.iter().map(&stored));
            let count = entries.len();
            let codes: Vec<u32> = slots
                .iter()
                .map(|v| entries.iter().position(|e| *e == stored(v)).unwrap_or(count - 1) as u32)
                .collect();
            let values = Vector::from_values(physical, &entries).expect("values are of the column's type");
            let dictionary = Dictionary::new(values, count);
            let mut vector = Vector::new(physical);
            vector
                .begin_codes(&dictionary, positions)
                .get_mut(..positions)
                .expect("as many")
                .copy_from_slice(&codes);
            for position in
                slots.iter().enumerate().filter(|(_, v)| v.is_null()).map(|(position, _)| position)
            {
                vector.set_null(position);
            }
            debug_assert_eq!(vector.encoding(), Encoding::Dictionary);
            vector
        } else {
            // The values under the NULLs are extremes.
            let below: Vec<Value> = slots
                .iter()
                .map(|v| if v.is_null() { self.extreme_for(ty, narrow) } else { v.clone() })
                .collect();
            let below: Vec<Value> = below.iter().map(stored).collect();
            let mut vector = Vector::from_values(physical, &below).expect("values are of the column's type");
            for position in
                slots.iter().enumerate().filter(|(_, v)| v.is_null()).map(|(position, _)| position)
            {
                vector.set_null(position);
            }
            vector
        };
        let mut meta = ColumnMeta::new(id, ty);
        meta.physical = physical;
        meta.nullable = column.iter().any(Value::is_null) || self.random.chance(50);
        let numbers: Vec<i128> =
            column.iter().filter_map(|v| if let Value::Integer(v) = v { Some(*v) } else { None }).collect();
        if let (Some(low), Some(high)) = (numbers.iter().min(), numbers.iter().max())
            && ty.integer_range().is_some()
            && self.random.chance(60)
        {
            meta.range = Some((*low, *high));
        } else if narrow {
            meta.range = Some((i64::MIN.into(), i64::MAX.into()));
        }
        (meta, vector, column)
    }

    fn extreme_for(&mut self, ty: DataType, narrow: bool) -> Value {
        if narrow {
            Value::Integer(*self.random.pick(&[i64::MIN, i64::MAX, 0]) as i128)
        } else {
            self.extreme(ty)
        }
    }

    // ---- values -------------------------------------------------------------------------------------------

    /// A value of type `ty`, small if tame.
    pub fn value(&mut self, ty: DataType) -> Value {
        if !self.tame && self.random.chance(40) {
            return self.extreme(ty);
        }
        let text = |s: &str| Value::Text(s.into());
        match ty {
            DataType::Null => Value::Null,
            DataType::Boolean => Value::Boolean(self.random.chance(50)),
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Value::Integer(self.random.between(0, 9).into())
            }
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                Value::Integer(self.random.between(-3, 9).into())
            }
            DataType::Float32 | DataType::Float64 => Value::Float(self.random.between(-12, 12) as f64 / 4.0),
            DataType::Decimal { .. } => Value::Integer(self.random.between(-950, 950).into()),
            DataType::Varchar => {
                let of = [
                    "",
                    "a",
                    "ab",
                    "Ab",
                    "12",
                    "-7",
                    "größe",
                    "exactly12byt",
                    "a text longer than a view",
                    "a_b%c",
                ];
                text(self.random.pick::<&str>(&of))
            }
            DataType::Json => {
                text(self.random.pick::<&str>(&["1", "\"a\"", "null", "{\"a\": [1, 2]}", "[]"]))
            }
            DataType::Blob => Value::Bytes(Arc::from(*self.random.pick(&[
                &b""[..],
                b"a",
                b"\0\xff",
                b"a blob longer than a view",
            ]))),
            DataType::Date => Value::Integer(self.random.between(18_000, 20_000).into()),
            DataType::Time => Value::Integer((self.random.between(0, 86_399) * 1_000_000).into()),
            DataType::TimeTz => {
                let local = self.random.between(0, 86_400) * 1_000_000;
                Value::Integer(time_tz::pack(local, self.random.between(-2, 2) * 1800).into())
            }
            DataType::Timestamp | DataType::TimestampTz => {
                Value::Integer((self.random.between(-100_000, 2_000_000_000) * 1_000_000 + 250_000).into())
            }
            DataType::TimestampNs => Value::Integer(
                (self.random.between(-100_000, 2_000_000_000) * 1_000_000_000 + 250_000_001).into(),
            ),
            DataType::Interval => Value::Interval(Interval {
                months: self.random.between(-14, 14) as i32,
                days: self.random.between(-40, 40) as i32,
                micros: self.random.between(-90_000, 90_000) * 1_000_000,
            }),
            DataType::Uuid => Value::Integer(self.random.between(0, 3).into()),
            DataType::Enum(_)
            | DataType::List(_)
            | DataType::Struct(_)
            | DataType::Array(..)
            | DataType::Map(_) => Value::Null,
        }
    }

    fn extreme(&mut self, ty: DataType) -> Value {
        match ty {
            DataType::Date => Value::Integer(*self.random.pick(&[-719_162, 2_932_896, 0, -1])),
            DataType::Time => Value::Integer(*self.random.pick(&[0, MICROS_PER_DAY as i128 - 1])),
            DataType::Timestamp | DataType::TimestampTz => {
                Value::Integer(*self.random.pick(&[-62_135_596_800_000_000, 253_402_300_799_999_999, -1, 0]))
            }
            DataType::Uuid => Value::Integer(*self.random.pick(&[-1, i128::MIN, i128::MAX])),
            DataType::Boolean
            | DataType::Interval
            | DataType::Varchar
            | DataType::Json
            | DataType::Blob
            | DataType::Null => {
                let tame = std::mem::replace(&mut self.tame, true);
                let value = self.value(ty);
                self.tame = tame;
                value
            }
            DataType::Float32 => {
                Value::Float(*self.random.pick(&[f64::NAN, f64::INFINITY, f64::from(f32::MAX), -0.0]))
            }
            DataType::Float64 => {
                Value::Float(*self.random.pick(&[f64::NAN, f64::NEG_INFINITY, f64::MAX, -0.0]))
            }
            _ => {
                let (low, high) = ty.integer_range().expect("a type of integers");
                Value::Integer(*self.random.pick(&[low, high, 0]))
            }
        }
    }

    // ---- expressions --------------------------------------------------------------------------------------

    fn leaf(&mut self, ty: DataType) -> Expr {
        let fitting: Vec<ColumnId> = self.columns.iter().filter(|c| c.ty == ty).map(|c| c.id).collect();
        if !fitting.is_empty() && self.random.chance(85) {
            return Expr::column(*self.random.pick(&fitting), ty);
        }
        let value = if self.random.chance(8) { Value::Null } else { self.value(ty) };
        Expr::literal(value, ty)
    }

    fn boxed(&mut self, ty: DataType, depth: usize) -> Box<Expr> {
        Box::new(self.expression(ty, depth))
    }

    /// An expression of type `ty`, at most `depth` levels deep.
    pub fn expression(&mut self, ty: DataType, depth: usize) -> Expr {
        if depth == 0 || self.random.chance(20) {
            return self.leaf(ty);
        }
        let below = depth - 1;
        if ty != DataType::Boolean && self.random.chance(15) {
            return self.case(ty, below);
        }
        if self.random.chance(15)
            && let Some(cast) = self.cast(ty, below)
        {
            return cast;
        }
        match ty {
            DataType::Boolean => self.boolean(depth),
            DataType::Float32 | DataType::Float64 => self.float(ty, below),
            DataType::Decimal { .. } => self.decimal(ty, below),
            DataType::Varchar => self.text(below),
            _ if ty.is_integer() => self.integer(ty, below),
            DataType::Date => match self.random.below(2) {
                0 => self.arithmetic(
                    &[ArithmeticOp::Add, ArithmeticOp::Subtract],
                    ty,
                    DataType::Int64,
                    ty,
                    below,
                ),
                _ => self.truncate(ty, below),
            },
            DataType::Timestamp | DataType::TimestampTz => match self.random.below(3) {
                0 => self.truncate(ty, below),
                1 if ty == DataType::Timestamp => self.arithmetic(
                    &[ArithmeticOp::Add, ArithmeticOp::Subtract],
                    DataType::Date,
                    DataType::Interval,
                    ty,
                    below,
                ),
                _ => self.arithmetic(
                    &[ArithmeticOp::Add, ArithmeticOp::Subtract],
                    ty,
                    DataType::Interval,
                    ty,
                    below,
                ),
            },
            DataType::Time => self.arithmetic(
                &[ArithmeticOp::Add, ArithmeticOp::Subtract],
                ty,
                DataType::Interval,
                ty,
                below,
            ),
            DataType::Interval => match self.random.below(3) {
                0 => self.arithmetic(&[ArithmeticOp::Multiply], ty, DataType::Int64, ty, below),
                1 => self.arithmetic(
                    &[ArithmeticOp::Subtract],
                    DataType::Timestamp,
                    DataType::Timestamp,
                    ty,
                    below,
                ),
                _ => self.arithmetic(&[ArithmeticOp::Add, ArithmeticOp::Subtract], ty, ty, ty, below),
            },
            _ => self.leaf(ty),
        }
    }

    fn arithmetic(
        &mut self,
        ops: &[ArithmeticOp],
        left: DataType,
        right: DataType,
        ty: DataType,
        depth: usize,
    ) -> Expr {
        let op = *self.random.pick(ops);
        Expr::Arithmetic { op, left: self.boxed(left, depth), right: self.boxed(right, depth), ty }
    }

    fn call(&mut self, function: Function, args: &[DataType], ty: DataType, depth: usize) -> Expr {
        let args = args.iter().map(|arg| self.expression(*arg, depth)).collect();
        Expr::Function { function, args, ty }
    }

    fn case(&mut self, ty: DataType, depth: usize) -> Expr {
        let count = self.random.between(1, 2);
        let branches = (0..count).map(|_| (self.boolean(depth), self.expression(ty, depth))).collect();
        let otherwise = if self.random.chance(70) { Some(self.boxed(ty, depth)) } else { None };
        Expr::Case { branches, otherwise, ty }
    }

    /// A conversion to `ty` that the reference supports.
    fn cast(&mut self, ty: DataType, depth: usize) -> Option<Expr> {
        let from = match ty {
            _ if ty.is_numeric() && self.random.chance(15) => DataType::Varchar,
            _ if ty.is_integer() && self.random.chance(15) => DataType::Boolean,
            _ if ty.is_numeric() => *self.random.pick(NUMBERS),
            DataType::Boolean => DataType::Int32,
            DataType::Varchar => *self.random.pick(&[
                DataType::Int64,
                DataType::Int8,
                MONEY,
                WIDE,
                DataType::Date,
                DataType::Timestamp,
                DataType::Time,
                DataType::Uuid,
                DataType::Boolean,
                DataType::UInt64,
            ]),
            DataType::Date => *self.random.pick(&[DataType::Timestamp, DataType::Varchar]),
            DataType::Time => DataType::Timestamp,
            DataType::Timestamp => *self.random.pick(&[DataType::Date, DataType::TimestampTz]),
            DataType::TimestampTz => *self.random.pick(&[DataType::Date, DataType::Timestamp]),
            _ => return None,
        };
        if from == ty {
            return None;
        }
        let lenient = self.random.chance(50) || from == DataType::Varchar && self.random.chance(80);
        Some(Expr::Cast { input: self.boxed(from, depth), ty, lenient })
    }

    fn integer(&mut self, ty: DataType, depth: usize) -> Expr {
        use ArithmeticOp::*;
        if ty == DataType::Int64 && self.random.chance(35) {
            let parts = [
                DatePart::Year,
                DatePart::Quarter,
                DatePart::Month,
                DatePart::Week,
                DatePart::Day,
                DatePart::DayOfWeek,
                DatePart::IsoDayOfWeek,
                DatePart::DayOfYear,
            ];
            let times = [DatePart::Hour, DatePart::Minute, DatePart::Second, DatePart::Microsecond];
            return match self.random.below(6) {
                0 => self.call(Function::CharLength, &[DataType::Varchar], ty, depth),
                1 => self.call(Function::OctetLength, &[DataType::Varchar], ty, depth),
                2 => self.call(Function::OctetLength, &[DataType::Blob], ty, depth),
                3 => self.arithmetic(&[Subtract], DataType::Date, DataType::Date, ty, depth),
                4 => {
                    let (part, of) = (
                        *self.random.pick(&times),
                        *self.random.pick(&[DataType::Timestamp, DataType::Time]),
                    );
                    self.call(Function::Extract(part), &[of], ty, depth)
                }
                _ => {
                    let (part, of) = (
                        *self.random.pick(&parts),
                        *self.random.pick(&[DataType::Date, DataType::Timestamp]),
                    );
                    self.call(Function::Extract(part), &[of], ty, depth)
                }
            };
        }
        match self.random.below(10) {
            0 => Expr::Negate(self.boxed(ty, depth)),
            1 => self.call(Function::Abs, &[ty], ty, depth),
            2 => self.arithmetic(&[BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight], ty, ty, ty, depth),
            3 => {
                // Divisors are mostly nonzero constants.
                let divisor = Expr::literal(Value::Integer(self.random.between(1, 7).into()), ty);
                let op = *self.random.pick(&[Divide, Modulo]);
                Expr::Arithmetic { op, left: self.boxed(ty, depth), right: Box::new(divisor), ty }
            }
            4 if !self.tame => self.arithmetic(&[Divide, Modulo], ty, ty, ty, depth),
            _ => self.arithmetic(&[Add, Subtract, Multiply], ty, ty, ty, depth),
        }
    }

    fn float(&mut self, ty: DataType, depth: usize) -> Expr {
        use ArithmeticOp::*;
        match self.random.below(8) {
            0 => Expr::Negate(self.boxed(ty, depth)),
            1 => self.call(Function::Abs, &[ty], ty, depth),
            2 if ty == DataType::Float64 => self.call(Function::Floor, &[ty], ty, depth),
            3 if ty == DataType::Float64 => self.call(Function::Ceil, &[ty], ty, depth),
            4 if ty == DataType::Float64 && !self.tame => self.call(Function::Sqrt, &[ty], ty, depth),
            5 => {
                let divisor = Expr::literal(Value::Float(*self.random.pick(&[2.0, -4.0, 0.5])), ty);
                let op = *self.random.pick(&[Divide, Modulo]);
                Expr::Arithmetic { op, left: self.boxed(ty, depth), right: Box::new(divisor), ty }
            }
            6 if !self.tame => self.arithmetic(&[Divide, Modulo], ty, ty, ty, depth),
            _ => self.arithmetic(&[Add, Subtract, Multiply], ty, ty, ty, depth),
        }
    }

    fn decimal(&mut self, ty: DataType, depth: usize) -> Expr {
        use ArithmeticOp::*;
        match self.random.below(6) {
            0 => Expr::Negate(self.boxed(ty, depth)),
            1 => self.call(Function::Abs, &[ty], ty, depth),
            2 if ty == FINE => self.arithmetic(&[Multiply], MONEY, MONEY, ty, depth),
            2 | 3 if ty == PRODUCT => self.arithmetic(&[Multiply], MONEY, FINE, ty, depth),
            4 if ty == FINE || ty == WIDE => self.arithmetic(&[Add, Subtract], MONEY, ty, ty, depth),
            4 if ty == PRODUCT => self.arithmetic(&[Add, Subtract], ty, WIDE, ty, depth),
            5 if !self.tame => self.arithmetic(&[Modulo], ty, ty, ty, depth),
            _ => self.arithmetic(&[Add, Subtract], ty, ty, ty, depth),
        }
    }

    fn text(&mut self, depth: usize) -> Expr {
        let ty = DataType::Varchar;
        match self.random.below(5) {
            0 => self.call(Function::Upper, &[ty], ty, depth),
            1 => self.call(Function::Lower, &[ty], ty, depth),
            2 => {
                let number = |v: i64| Expr::literal(Value::Integer(v.into()), DataType::Int64);
                let mut args = vec![self.expression(ty, depth), number(self.random.between(-2, 4))];
                if self.random.chance(70) {
                    args.push(number(self.random.between(0, 14)));
                }
                Expr::Function { function: Function::Substring, args, ty }
            }
            _ => self.call(Function::Concat, &[ty, ty], ty, depth),
        }
    }

    fn truncate(&mut self, ty: DataType, depth: usize) -> Expr {
        let parts = [DatePart::Year, DatePart::Quarter, DatePart::Month, DatePart::Week, DatePart::Day];
        let times = [DatePart::Hour, DatePart::Minute, DatePart::Second];
        let part = if ty != DataType::Date && self.random.chance(40) {
            *self.random.pick(&times)
        } else {
            *self.random.pick(&parts)
        };
        self.call(Function::Truncate(part), &[ty], ty, depth)
    }

    /// A BOOLEAN expression, at most `depth` + 1 levels deep.
    pub fn boolean(&mut self, depth: usize) -> Expr {
        let below = depth.saturating_sub(1);
        let choice = if depth == 0 { self.random.below(7) } else { self.random.below(11) };
        match choice {
            0 => self.leaf(DataType::Boolean),
            1 => {
                let ty = self.type_of_column();
                Expr::IsNull(self.boxed(ty, below))
            }
            2 => {
                let patterns = ["a%", "%b", "%a%", "_b%", "ab", "%", "", "a\\_b%", "%x%w", "%ö%", "A%"];
                let pattern =
                    Expr::literal(Value::Text((*self.random.pick(&patterns)).into()), DataType::Varchar);
                let case_insensitive = self.random.chance(30);
                Expr::Like {
                    input: self.boxed(DataType::Varchar, below),
                    pattern: Box::new(pattern),
                    escape: None,
                    case_insensitive,
                }
            }
            3 => {
                let ty = self.type_of_column();
                let mut list: Vec<Value> = (0..self.random.between(1, 9)).map(|_| self.value(ty)).collect();
                if self.random.chance(15) {
                    list.push(Value::Null);
                }
                Expr::InList { input: self.boxed(ty, below), list }
            }
            4..=6 => {
                use CompareOp::*;
                let ops = [Eq, NotEq, Lt, LtEq, Gt, GtEq, DistinctFrom, NotDistinctFrom];
                let ty = self.type_of_column();
                Expr::Compare {
                    op: *self.random.pick(&ops),
                    left: self.boxed(ty, below),
                    right: self.boxed(ty, below),
                }
            }
            7 => Expr::Not(Box::new(self.boolean(below))),
            8 => {
                let function =
                    *self.random.pick(&[Function::StartsWith, Function::EndsWith, Function::Contains]);
                self.call(function, &[DataType::Varchar, DataType::Varchar], DataType::Boolean, below)
            }
            9 => Expr::And((0..self.random.between(2, 3)).map(|_| self.boolean(below)).collect()),
            _ => Expr::Or((0..self.random.between(2, 3)).map(|_| self.boolean(below)).collect()),
        }
    }

    fn type_of_column(&mut self) -> DataType {
        if !self.columns.is_empty() && self.random.chance(80) {
            self.random.pick(&self.columns.clone()).ty
        } else {
            *self.random.pick(&TYPES)
        }
    }
}
