use super::decimal::Digits;
use super::*;
use crate::definition::{Kernel, Overload, takes};
use entasis_vector::DataType::{
    self as T, Date, Float64, Int8, Int32, Int64, Interval, Timestamp, UInt64, Varchar,
};
use entasis_vector::expr::ArithmeticOp as Op;

const fn dec(precision: u8, scale: u8) -> T {
    T::Decimal { precision, scale }
}

fn known(ty: T) -> Given {
    Given::Known(ty)
}

fn met(given: &[Given]) -> Option<T> {
    common(given.iter().copied(), Meeting::Strict)
}

/// Types that are not nested.
fn plain() -> Vec<T> {
    vec![
        T::Boolean,
        Int8,
        T::Int16,
        Int32,
        Int64,
        T::UInt8,
        T::UInt16,
        T::UInt32,
        UInt64,
        T::Float32,
        Float64,
        dec(3, 1),
        dec(12, 2),
        dec(38, 0),
        Varchar,
        T::Blob,
        Date,
        T::Time,
        Timestamp,
        T::TimestampTz,
        Interval,
        T::Uuid,
    ]
}

#[test]
fn literals_adopt_types_and_columns_do_not() {
    assert_eq!(met(&[known(Int8), Given::Integer(1)]), Some(Int8));
    assert_eq!(met(&[known(Int8), Given::Integer(300)]), Some(Int32));
    assert_eq!(met(&[known(Int8), Given::Integer(1 << 40)]), Some(Int64));
    assert_eq!(met(&[known(UInt64), Given::Integer(-1)]), Some(dec(20, 0)));
    assert_eq!(met(&[Given::Integer(1), Given::Integer(1 << 40)]), Some(Int64));
    assert_eq!(met(&[Given::Integer(1), Given::Decimal { precision: 2, scale: 1 }]), Some(dec(2, 1)));
    assert_eq!(met(&[known(Int32), Given::Decimal { precision: 2, scale: 1 }]), Some(dec(11, 1)));
    assert_eq!(met(&[known(T::Float32), Given::Decimal { precision: 2, scale: 1 }]), Some(T::Float32));
    assert_eq!(met(&[known(T::Float32), known(dec(2, 1))]), Some(Float64));
    assert_eq!(met(&[known(Date), Given::Text]), Some(Date));
    assert_eq!(met(&[Given::Text, Given::Integer(1)]), Some(Int32));
    assert_eq!(met(&[Given::Text, Given::Null]), Some(Varchar));
    assert_eq!(met(&[Given::Null, Given::Parameter(0)]), Some(T::Null));
    // A column of texts.
    assert_eq!(met(&[known(Varchar), Given::Integer(1)]), None);
    assert_eq!(common([known(Varchar), Given::Integer(1)], Meeting::Equality), Some(Int32));
    assert_eq!(common([known(Varchar), known(Date)], Meeting::Union), Some(Varchar));
}

/// The common type does not depend on the order, and each is cast to it unasked, or is written.
#[test]
fn common_types_hold_all_and_do_not_depend_on_the_order() {
    let mut all: Vec<Given> = plain().into_iter().map(known).collect();
    all.extend([Given::Null, Given::Text, Given::Integer(1), Given::Integer(-200), Given::Integer(i64::MIN)]);
    all.push(Given::Decimal { precision: 4, scale: 3 });
    for meeting in [Meeting::Union, Meeting::Equality, Meeting::Strict] {
        for &a in &all {
            for &b in &all {
                let ab = common([a, b], meeting);
                assert_eq!(ab, common([b, a], meeting), "{a:?} {b:?}");
                for &c in &all {
                    let abc = common([a, b, c], meeting);
                    assert_eq!(abc.is_some(), common([c, a, b], meeting).is_some(), "{a:?} {b:?} {c:?}");
                }
                let Some(ty) = ab.filter(|_| meeting == Meeting::Strict) else { continue };
                let is_lossless = |given: Given| {
                    implicit(given, ty).is_some()
                        // Digits of a decimal may be cut where both have too many together.
                        || (ty.is_decimal() && Digits::of(given).is_some())
                        || ty == T::Null
                };
                assert!(is_lossless(a) && is_lossless(b), "{a:?} {b:?} {ty}");
            }
        }
    }
}

#[test]
fn a_fold_over_many_is_that_over_few() {
    let rows = (0..30_000).map(|i| Given::Integer(i % 100)).chain([known(T::Int16)]);
    assert_eq!(common(rows, Meeting::Union), Some(T::Int16));
}

#[test]
fn implicit_casts_never_narrow() {
    for from in plain() {
        assert_eq!(implicit(known(from), from).map(|cost| cost.0), Some(0));
        for to in plain() {
            let Some(cost) = implicit(known(from), to) else { continue };
            assert!(from == to || implicit(known(to), from).is_none(), "{from} and {to} become each other");
            assert!(from == to || cost.0 > 0);
            // What is stored is never less free.
            assert!(assignment(known(from), to));
        }
    }
    assert_eq!(implicit(known(Int32), Varchar), None);
    assert_eq!(implicit(known(Varchar), Int32), None);
    assert!(
        assignment(known(Varchar), Date)
            && assignment(known(Int64), Int8)
            && !assignment(known(T::Boolean), Date)
    );
}

#[test]
fn operators_have_the_references_types() {
    let result = |op, left, right| arithmetic(op, left, right).map(|operands| operands.result);
    let (one, half) = (Given::Integer(1), Given::Decimal { precision: 2, scale: 1 });
    for (op, left, right, expected) in [
        (Op::Add, known(Int8), one, Some(Int8)),
        (Op::Add, known(Int8), Given::Integer(300), Some(Int32)),
        (Op::Add, one, one, Some(Int32)),
        (Op::Divide, known(Int32), one, Some(Int32)),
        (Op::Add, known(Int32), half, Some(dec(12, 1))),
        (Op::Multiply, known(Int32), half, Some(dec(12, 1))),
        (Op::Add, one, half, Some(dec(3, 1))),
        (Op::Modulo, known(dec(10, 2)), Given::Integer(3), Some(dec(10, 2))),
        (Op::Multiply, known(dec(12, 2)), known(dec(12, 2)), Some(dec(24, 4))),
        (Op::Multiply, known(dec(38, 2)), known(dec(38, 2)), Some(dec(38, 4))),
        (Op::Divide, known(dec(12, 2)), Given::Integer(2), Some(Float64)),
        (Op::Add, known(T::Float32), known(Int32), Some(T::Float32)),
        (Op::Subtract, known(dec(12, 2)), known(T::Float32), Some(Float64)),
        (Op::BitAnd, known(Float64), one, None),
        (Op::BitAnd, known(Int32), Given::Integer(3), Some(Int32)),
        (Op::Add, known(UInt64), known(Int64), Some(dec(21, 0))),
        (Op::Add, known(Date), one, Some(Date)),
        (Op::Subtract, known(Date), known(Timestamp), Some(Interval)),
        (Op::Subtract, known(Date), Given::Text, Some(Int64)),
        (Op::Add, known(Timestamp), Given::Text, Some(Timestamp)),
        (Op::Add, known(Date), Given::Text, Some(Timestamp)),
        (Op::Multiply, known(Interval), half, Some(Interval)),
        (Op::Multiply, known(Interval), Given::Null, Some(Interval)),
        (Op::Add, known(Date), known(Date), None),
        (Op::Add, known(Varchar), one, None),
        (Op::Add, Given::Text, one, Some(Int32)),
        (Op::Add, Given::Text, Given::Text, None),
        (Op::Add, known(T::Boolean), one, None),
    ] {
        assert_eq!(result(op, left, right), expected, "{left:?} {op:?} {right:?}");
    }
    // The interval of a product is beside an integer if one was written.
    assert_eq!(arithmetic(Op::Multiply, known(Interval), one).unwrap().right, Int64);
    assert_eq!(arithmetic(Op::Multiply, known(Interval), half).unwrap().right, Float64);
}

#[test]
fn the_nearest_overload_is_chosen() {
    const KERNEL: Kernel = Kernel::Test(|_| Ok(None));
    const OVERLOADS: &[Overload] = &[
        takes(&[Int64], Int64, KERNEL),
        takes(&[Float64], Float64, KERNEL),
        takes(&[Varchar], Varchar, KERNEL),
        takes(&[Date, Date], Int64, KERNEL),
        takes(&[Timestamp, Timestamp], Interval, KERNEL),
        takes(&[Varchar, Int64], Varchar, KERNEL),
    ];
    let chosen = |given: &[Given]| choose(OVERLOADS, given).unwrap().map(|chosen| chosen.args);
    assert_eq!(chosen(&[known(Int8)]), Some(vec![Int64]));
    assert_eq!(chosen(&[known(dec(4, 2))]), Some(vec![Float64]));
    assert_eq!(chosen(&[Given::Text]), Some(vec![Varchar]));
    assert_eq!(chosen(&[known(T::Boolean)]), None);
    assert_eq!(chosen(&[known(Date), Given::Text]), Some(vec![Date, Date]));
    assert_eq!(chosen(&[known(Date), known(Timestamp)]), Some(vec![Timestamp, Timestamp]));
    assert_eq!(chosen(&[Given::Text, Given::Integer(1)]), Some(vec![Varchar, Int64]));
    assert_eq!(chosen(&[known(Int64), known(Int64), known(Int64)]), None);
    // A parameter alone is whatever the preferred overload takes.
    assert_eq!(chosen(&[Given::Parameter(0)]).map(|args| args.len()), Some(1));
    const SAME: &[Overload] = &[takes(&[Date], Date, KERNEL), takes(&[T::Time], Date, KERNEL)];
    assert_eq!(choose(SAME, &[Given::Null]).err(), Some(Ambiguous));
}
