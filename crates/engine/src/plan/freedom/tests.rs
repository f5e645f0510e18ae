use super::*;
use entasis_vector::ColumnId;
use entasis_vector::expr::{CompareOp, Expr, evaluate_constant};
use std::collections::HashMap;

const DECIMAL: DataType = DataType::Decimal { precision: 9, scale: 2 };
const TYPES: [DataType; 7] = [
    DataType::Int8,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt64,
    DECIMAL,
    DataType::Decimal { precision: 38, scale: 4 },
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }
}

/// An expression of type `ty` over columns whose number is that of their type.
fn expression(ty: DataType, depth: usize, chance: &mut Chance) -> Expr {
    let number = TYPES.iter().position(|own| *own == ty).expect("one of the types");
    let column = || Expr::column(ColumnId(number as u32), ty);
    if depth == 0 {
        return match chance.below(3) {
            0 => Expr::literal(Value::Integer([0, 1, 2, 100][chance.below(4)]), ty),
            _ => column(),
        };
    }
    match chance.below(8) {
        0 => Expr::Negate(Box::new(expression(ty, depth - 1, chance))),
        1 => Expr::Function { function: Function::Abs, args: vec![expression(ty, depth - 1, chance)], ty },
        2 => {
            let from = TYPES[chance.below(TYPES.len())];
            Expr::Cast { input: Box::new(expression(from, depth - 1, chance)), ty, lenient: false }
        }
        3 if ty.is_integer() => binary(ArithmeticOp::Divide, ty, depth, chance),
        4 if ty.is_integer() => binary(ArithmeticOp::Multiply, ty, depth, chance),
        5 | 6 => binary(ArithmeticOp::Subtract, ty, depth, chance),
        _ => binary(ArithmeticOp::Add, ty, depth, chance),
    }
}

fn binary(op: ArithmeticOp, ty: DataType, depth: usize, chance: &mut Chance) -> Expr {
    let [left, right] = [(), ()].map(|()| Box::new(expression(ty, depth - 1, chance)));
    Expr::Arithmetic { op, left, right, ty }
}

/// What is said not to fail gives a value for the least and the greatest values of all columns, and for those
/// near zero.
#[test]
fn what_does_not_fail_gives_values_for_all_extremes() {
    let mut chance = Chance(0x5EED_1234_5678_9ABC);
    let (mut safe, mut failed) = (0, 0);
    for _ in 0..20_000 {
        let ty = TYPES[chance.below(TYPES.len())];
        let depth = 1 + chance.below(3);
        let expr = expression(ty, depth, &mut chance);
        let is_safe = !may_fail(&expr);
        safe += usize::from(is_safe);
        for _ in 0..6 {
            let value = |(number, ty): (usize, &DataType)| {
                let (low, high) = ty.integer_range().expect("numbers");
                let value = [low, high, 0.max(low), 1, (-1).max(low)][chance.below(5)];
                (ColumnId(number as u32), Expr::literal(Value::Integer(value), *ty))
            };
            let values: HashMap<ColumnId, Expr> = TYPES.iter().enumerate().map(value).collect();
            let computed = evaluate_constant(&crate::plan::tree::substitute(expr.clone(), &values));
            failed += usize::from(computed.is_err());
            assert!(!is_safe || computed.is_ok(), "{expr} of {values:?}: {computed:?}");
        }
    }
    assert!(safe > 2_000 && failed > 2_000, "both kinds are many: {safe}, {failed}");
}

#[test]
fn known_ranges_tell_more_than_types() {
    let x = Expr::column(ColumnId(0), DataType::Int64);
    let one = Expr::literal(Value::Integer(1), DataType::Int64);
    let sum = Expr::Arithmetic {
        op: ArithmeticOp::Add,
        left: Box::new(x),
        right: Box::new(one),
        ty: DataType::Int64,
    };
    assert!(may_fail(&sum));
    let top = i128::from(i64::MAX);
    with_ranges(HashMap::from([(ColumnId(0), (0, 1000))]), || {
        assert!(!may_fail(&sum));
        with_ranges(HashMap::from([(ColumnId(0), (0, top))]), || assert!(may_fail(&sum)));
        assert!(!may_fail(&sum), "the ranges around are back");
    });
    assert!(may_fail(&sum));
}

#[test]
fn forms_are_seen_by_all_but_comparisons() {
    let of = |ty| Expr::column(ColumnId(0), ty);
    let text = |ty| Expr::Cast { input: Box::new(of(ty)), ty: DataType::Varchar, lenient: false };
    let positive = |ty| Expr::compare(CompareOp::Gt, of(ty), Expr::literal(Value::Null, ty));
    let nested = DataType::list(DataType::structure([("a", DataType::Int32), ("b", DataType::Float64)]));
    for ty in [DataType::Float64, DataType::Interval, nested] {
        assert!(ignores_form(&of(ty)) && ignores_form(&positive(ty)) && !ignores_form(&text(ty)), "{ty}");
        let choice = Expr::Case { branches: vec![(positive(ty), of(ty))], otherwise: None, ty };
        assert!(ignores_form(&choice), "{ty}");
        assert!(!ignores_form(&Expr::compare(CompareOp::Eq, text(ty), text(ty))), "{ty}");
    }
    for ty in [DataType::Int64, DataType::Varchar, DECIMAL, DataType::list(DataType::Int32)] {
        assert!(ignores_form(&text(ty)), "{ty}");
    }
}
