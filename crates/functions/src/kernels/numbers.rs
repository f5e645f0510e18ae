//! Functions of numbers.
//!
//! Results out of range are errors or infinities as in DuckDB; a result that is undefined (`ln(0)`,
//! `asin(2)`) is an error.

use super::rounding::{at_digits, cut, out_of_range, round_float, round_wide, trunc_float, trunc_wide};
use crate::definition::{Body, Definition, Kernel, Row, Signature, define, elsewhere, takes};
use crate::types::{common_of, digits};
use entasis_vector::{DataType, Error, Result};

const DOUBLE: DataType = DataType::Float64;
const REAL: DataType = DataType::Float32;
const BIGINT: DataType = DataType::Int64;
const INTEGER: DataType = DataType::Int32;
const BOOLEAN: DataType = DataType::Boolean;
const WIDE: DataType = DataType::Decimal { precision: 38, scale: 0 };

/// A function of one DOUBLE that is defined everywhere.
macro_rules! float {
    ($f:expr) => {
        &[takes(
            &[DOUBLE],
            DOUBLE,
            Kernel::Float(|row| {
                let f: fn(f64) -> f64 = $f;
                Ok(Some(f(row.float(0))))
            }),
        )]
    };
}
pub(super) use float;

/// A function of one DOUBLE that is undefined where the condition fails.
macro_rules! partial {
    ($name:literal, $defined:expr, $f:expr) => {
        &[takes(
            &[DOUBLE],
            DOUBLE,
            Kernel::Float(|row| {
                let defined: fn(f64) -> bool = $defined;
                let f: fn(f64) -> f64 = $f;
                let x = row.float(0);
                if x.is_nan() || defined(x) { Ok(Some(f(x))) } else { undefined($name, x) }
            }),
        )]
    };
}
pub(super) use partial;

pub(super) fn undefined<T>(name: &str, x: f64) -> Result<T> {
    Err(Error::input(format!("{name}({x:?}) is not defined")))
}

/// Arithmetic, rounding, powers and logarithms.
pub const FUNCTIONS: &[Definition] = &[
    elsewhere(&["abs"], "x", "type of x", "absolute value", &[("abs(-5)", "5"), ("abs(-1.5)", "1.5")]),
    Definition {
        names: &["sign", "signum"],
        arguments: "x",
        gives: "TINYINT",
        does: "-1, 0 or 1",
        examples: &[("sign(-3)", "-1"), ("sign(0.0)", "0"), ("sign(0.4)", "1")],
        body: Body::Typed(|types| {
            let (arg, kernel) = match types {
                [ty] if ty.is_integer() || ty.is_decimal() => {
                    (*ty, Kernel::Whole(|row| Ok(Some(row.wide(0).signum() as i64))))
                }
                [ty] if ty.is_float() || matches!(ty, DataType::Null | DataType::Varchar) => {
                    let kernel = Kernel::Whole(|row| {
                        let x = row.float(0);
                        Ok(Some(i64::from(x > 0.0) - i64::from(x < 0.0)))
                    });
                    (DOUBLE, kernel)
                }
                _ => return Err(Error::input("not a number")),
            };
            Ok(Signature { args: vec![arg], result: DataType::Int8, kernel })
        }),
    },
    elsewhere(
        &["mod"],
        "a, b",
        "number",
        "remainder, with the sign of a: a % b",
        &[("mod(5, 3)", "2"), ("mod(-5, 3)", "-2")],
    ),
    define(
        &["fmod"],
        "a, b",
        "DOUBLE",
        "remainder of the quotient fdiv(a, b), with the sign of b",
        &[takes(
            &[DOUBLE, DOUBLE],
            DOUBLE,
            Kernel::Float(|row| {
                let rest = row.float(0) % row.float(1);
                let turns = rest != 0.0 && (rest < 0.0) != (row.float(1) < 0.0);
                Ok(Some(if turns { rest + row.float(1) } else { rest }))
            }),
        )],
        &[("fmod(5.5, 2)", "1.5"), ("fmod(-5.5, 2)", "0.5")],
    ),
    elsewhere(&["add"], "a, b", "number", "a + b", &[("add(1, 2)", "3")]),
    elsewhere(&["subtract"], "a, b", "number", "a - b", &[("subtract(3, 2)", "1")]),
    elsewhere(&["multiply"], "a, b", "number", "a * b", &[("multiply(3, 2)", "6")]),
    elsewhere(&["xor"], "a, b", "integer", "bits that are set in one of both", &[("xor(5, 3)", "6")]),
    Definition {
        names: &["div", "divide"],
        arguments: "a, b",
        gives: "integer, DECIMAL or DOUBLE",
        does: "quotient without its fraction",
        examples: &[("div(9, 4)", "2"), ("div(-9.5, 4)", "-2")],
        body: Body::Typed(|types| {
            let ty =
                unified(types).filter(|ty| types.len() == 2 && (ty.is_numeric() || *ty == DataType::Null));
            let (ty, result, kernel) = match ty {
                Some(ty) if ty.is_decimal() => (ty, WIDE, Kernel::Wide(quotient)),
                Some(ty) if ty.is_integer() => (ty, ty, Kernel::Wide(quotient)),
                Some(_) => {
                    let kernel = Kernel::Float(|row| match row.float(1) {
                        0.0 => Err(by_zero()),
                        b => Ok(Some((row.float(0) / b).trunc())),
                    });
                    (DOUBLE, DOUBLE, kernel)
                }
                None => return Err(Error::input("not two numbers")),
            };
            Ok(Signature { args: vec![ty; 2], result, kernel })
        }),
    },
    define(
        &["fdiv"],
        "a, b",
        "DOUBLE",
        "largest integer not above a / b",
        &[takes(
            &[DOUBLE, DOUBLE],
            DOUBLE,
            Kernel::Float(|row| Ok(Some((row.float(0) / row.float(1)).floor()))),
        )],
        &[("fdiv(-5, 2)", "-3.0")],
    ),
    Definition {
        names: &["round"],
        arguments: "x [, digits]",
        gives: "type of x",
        does: "rounded, half away from zero; negative digits are those before the point",
        examples: &[
            ("round(42.4332, 2)", "42.43"),
            ("round(-1234, -2)", "-1200"),
            ("round(2.5::DOUBLE)", "3.0"),
        ],
        body: Body::TypedByConstants(|types, constants| {
            cut(types, constants, Kernel::Float(round_float), round_wide)
        }),
    },
    Definition {
        names: &["trunc", "truncate"],
        arguments: "x [, digits]",
        gives: "type of x",
        does: "without the digits that follow",
        examples: &[
            ("trunc(42.4382, 2)", "42.43"),
            ("trunc(-1299, -2)", "-1200"),
            ("trunc(-2.5::DOUBLE)", "-2.0"),
        ],
        body: Body::TypedByConstants(|types, constants| {
            cut(types, constants, Kernel::Float(trunc_float), trunc_wide)
        }),
    },
    define(
        &["round_even", "roundbankers"],
        "x, digits",
        "DOUBLE",
        "rounded, half to even",
        &[takes(
            &[DOUBLE, BIGINT],
            DOUBLE,
            Kernel::Float(|row| Ok(Some(at_digits(row.float(0), row.whole(1), f64::round_ties_even)))),
        )],
        &[("round_even(24.5, 0)", "24.0"), ("round_even(0.125, 2)", "0.12")],
    ),
    elsewhere(&["floor"], "x", "DOUBLE", "largest integer not above", &[("floor(-2.5)", "-3.0")]),
    elsewhere(&["ceil", "ceiling"], "x", "DOUBLE", "smallest integer not below", &[("ceil(2.1)", "3.0")]),
    define(
        &["even"],
        "x",
        "DOUBLE",
        "next even number away from zero",
        float!(|x| (x.abs() / 2.0).ceil() * 2.0 * x.signum()),
        &[("even(2.9)", "4.0"), ("even(-2.1)", "-4.0")],
    ),
    elsewhere(&["sqrt"], "x", "DOUBLE", "square root", &[("sqrt(16)", "4.0")]),
    define(&["cbrt"], "x", "DOUBLE", "cube root", float!(f64::cbrt), &[("cbrt(27)", "3.0")]),
    define(&["exp"], "x", "DOUBLE", "e to the power of x", float!(f64::exp), &[("exp(0)", "1.0")]),
    define(
        &["power", "pow"],
        "x, y",
        "DOUBLE",
        "x to the power of y",
        &[takes(&[DOUBLE, DOUBLE], DOUBLE, Kernel::Float(|row| Ok(Some(row.float(0).powf(row.float(1))))))],
        &[("power(2, 10)", "1024.0"), ("pow(4, 0.5)", "2.0")],
    ),
    define(
        &["ln"],
        "x",
        "DOUBLE",
        "natural logarithm",
        partial!("ln", |x| x > 0.0, f64::ln),
        &[("ln(1)", "0.0")],
    ),
    define(
        &["log"],
        "[b,] x",
        "DOUBLE",
        "logarithm to the base b, or 10",
        &[
            takes(
                &[DOUBLE],
                DOUBLE,
                Kernel::Float(|row| match row.float(0) {
                    x if x.is_nan() || x > 0.0 => Ok(Some(x.log10())),
                    x => undefined("log", x),
                }),
            ),
            takes(
                &[DOUBLE, DOUBLE],
                DOUBLE,
                Kernel::Float(|row| {
                    let (base, x) = (row.float(0), row.float(1));
                    if base <= 0.0 || x <= 0.0 || base == 1.0 {
                        return Err(Error::input(format!("log({base:?}, {x:?}) is not defined")));
                    }
                    Ok(Some(logarithm(base, x)))
                }),
            ),
        ],
        &[("log(0.001)", "-3.0"), ("log(2, 64)", "6.0")],
    ),
    define(
        &["log2"],
        "x",
        "DOUBLE",
        "logarithm to the base 2",
        partial!("log2", |x| x > 0.0, f64::log2),
        &[("log2(8)", "3.0")],
    ),
    define(
        &["log10"],
        "x",
        "DOUBLE",
        "logarithm to the base 10",
        partial!("log10", |x| x > 0.0, f64::log10),
        &[("log10(1000)", "3.0")],
    ),
];

/// Properties of a number: as a float, of its digits, of its bucket; and `random`.
pub const PROPERTIES: &[Definition] = &[
    define(
        &["isnan"],
        "x",
        "BOOLEAN",
        "whether it is not a number",
        &[
            takes(&[REAL], BOOLEAN, Kernel::Test(|row| Ok(Some(row.float(0).is_nan())))),
            takes(&[DOUBLE], BOOLEAN, Kernel::Test(|row| Ok(Some(row.float(0).is_nan())))),
        ],
        &[("isnan('nan'::DOUBLE)", "true"), ("isnan(1.0)", "false")],
    ),
    define(
        &["isinf"],
        "x",
        "BOOLEAN",
        "whether it is infinite; no date is",
        &[
            takes(&[DOUBLE], BOOLEAN, Kernel::Test(|row| Ok(Some(row.float(0).is_infinite())))),
            takes(&[DataType::Date], BOOLEAN, Kernel::Test(|_| Ok(Some(false)))),
            takes(&[DataType::TimestampTz], BOOLEAN, Kernel::Test(|_| Ok(Some(false)))),
        ],
        &[("isinf('inf'::DOUBLE)", "true"), ("isinf(1.0)", "false")],
    ),
    define(
        &["isfinite"],
        "x",
        "BOOLEAN",
        "whether it is a number and not infinite; every date is",
        &[
            takes(&[DOUBLE], BOOLEAN, Kernel::Test(|row| Ok(Some(row.float(0).is_finite())))),
            takes(&[DataType::Date], BOOLEAN, Kernel::Test(|_| Ok(Some(true)))),
            takes(&[DataType::TimestampTz], BOOLEAN, Kernel::Test(|_| Ok(Some(true)))),
            takes(&[DataType::Interval], BOOLEAN, Kernel::Test(|_| Ok(Some(true)))),
        ],
        &[("isfinite(1.0)", "true"), ("isfinite('-inf'::DOUBLE)", "false")],
    ),
    define(
        &["signbit"],
        "x",
        "BOOLEAN",
        "whether the sign is negative, also of zero",
        &[takes(&[DOUBLE], BOOLEAN, Kernel::Test(|row| Ok(Some(row.float(0).is_sign_negative()))))],
        &[("signbit(-1.5)", "true")],
    ),
    define(
        &["iszero"],
        "x",
        "BOOLEAN",
        "whether it is zero",
        &[takes(&[DOUBLE], BOOLEAN, Kernel::Test(|row| Ok(Some(row.float(0) == 0.0))))],
        &[("iszero(0)", "true")],
    ),
    define(
        &["nanvl"],
        "x, y",
        "DOUBLE",
        "x, or y if x is not a number",
        &[takes(
            &[DOUBLE, DOUBLE],
            DOUBLE,
            Kernel::Float(|row| Ok(Some(if row.float(0).is_nan() { row.float(1) } else { row.float(0) }))),
        )],
        &[("nanvl('nan'::DOUBLE, 1)", "1.0")],
    ),
    define(
        &["nextafter"],
        "x, y",
        "type of x",
        "the next number after x in the direction of y",
        &[
            takes(
                &[REAL, REAL],
                REAL,
                Kernel::Float(|row| {
                    let (x, y) = (row.float(0) as f32, row.float(1) as f32);
                    let next = if x < y {
                        x.next_up()
                    } else if x > y {
                        x.next_down()
                    } else if x == y {
                        y
                    } else {
                        f32::NAN
                    };
                    Ok(Some(next.into()))
                }),
            ),
            takes(
                &[DOUBLE, DOUBLE],
                DOUBLE,
                Kernel::Float(|row| {
                    let (x, y) = (row.float(0), row.float(1));
                    Ok(Some(if x < y {
                        x.next_up()
                    } else if x > y {
                        x.next_down()
                    } else if x == y {
                        y
                    } else {
                        f64::NAN
                    }))
                }),
            ),
        ],
        &[("nextafter(1.0::DOUBLE, 2.0::DOUBLE)", "1.0000000000000002")],
    ),
    define(
        &["width_bucket"],
        "x, low, high, count",
        "INTEGER",
        "number of the bucket of equal width; 0 below low, count + 1 from high on",
        &[takes(&[DOUBLE, DOUBLE, DOUBLE, BIGINT], INTEGER, Kernel::Whole(width_bucket))],
        &[("width_bucket(5.35, 0.024, 10.06, 5)", "3")],
    ),
    Definition {
        names: &["scale"],
        arguments: "x",
        gives: "INTEGER",
        does: "digits after the point of the type of x",
        examples: &[("scale(8.4100)", "4")],
        body: Body::Typed(|types| {
            let kernel = Kernel::Whole(|row| match row.ty(0) {
                DataType::Decimal { scale, .. } => Ok(Some(scale.into())),
                _ => Ok(Some(0)),
            });
            one_decimal(types, INTEGER, kernel)
        }),
    },
    Definition {
        names: &["min_scale"],
        arguments: "x",
        gives: "INTEGER",
        does: "digits after the point that x needs",
        examples: &[("min_scale(8.4100)", "2")],
        body: Body::Typed(|types| {
            let kernel = Kernel::Whole(|row| {
                let DataType::Decimal { scale, .. } = row.ty(0) else { return Ok(Some(0)) };
                let mut x = row.wide(0);
                let mut needed = i64::from(scale);
                while needed > 0 && x % 10 == 0 {
                    x /= 10;
                    needed -= 1;
                }
                Ok(Some(needed))
            });
            one_decimal(types, INTEGER, kernel)
        }),
    },
    elsewhere(
        &["random"],
        "",
        "DOUBLE",
        "a random number from 0 to 1, 1 excluded",
        &[("random() < 1", "true")],
    ),
];

fn quotient(row: &Row<'_>) -> Result<Option<i128>> {
    match row.wide(1) {
        0 => Err(by_zero()),
        b => row.wide(0).checked_div(b).map(Some).ok_or_else(|| out_of_range("div")),
    }
}

fn by_zero() -> Error {
    Error::input("division by zero")
}

fn one_decimal(types: &[DataType], result: DataType, kernel: Kernel) -> Result<Signature> {
    match types {
        [ty] if ty.is_decimal() || ty.is_integer() => Ok(Signature { args: vec![*ty], result, kernel }),
        _ => Err(Error::input("not a decimal")),
    }
}

/// The logarithm to any base, exact for powers of integer bases.
fn logarithm(base: f64, x: f64) -> f64 {
    if base == 2.0 {
        return x.log2();
    }
    if base == 10.0 {
        return x.log10();
    }
    let quotient = x.log10() / base.log10();
    let whole = quotient.round();
    if (quotient - whole).abs() < 1e-9 && whole.abs() < 1024.0 && base.powf(whole) == x {
        whole
    } else {
        quotient
    }
}

/// Where a number is between two others: 0 at the first, 1 at the second.
pub(super) fn share(x: f64, low: f64, high: f64) -> f64 {
    match high - low {
        width if width.is_finite() => (x - low) / width,
        // The difference of halves does not overflow.
        _ => (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0),
    }
}

fn width_bucket(row: &Row<'_>) -> Result<Option<i64>> {
    let (x, low, high, count) = (row.float(0), row.float(1), row.float(2), row.whole(3));
    if count <= 0 {
        return Err(Error::input("width_bucket: the count must be greater than zero"));
    }
    if low == high || !low.is_finite() || !high.is_finite() || x.is_nan() {
        return Err(Error::input("width_bucket: the bounds must be finite and different"));
    }
    let place = share(x, low, high);
    Ok(Some(match place {
        p if p < 0.0 => 0,
        p if p >= 1.0 => count.checked_add(1).ok_or_else(|| out_of_range("width_bucket"))?,
        p => (p * count as f64).floor() as i64 + 1,
    }))
}

/// The type in which values of several types are compared; for `greatest` and `least`.
pub fn unified(types: &[DataType]) -> Option<DataType> {
    let ty = common_of(types)?;
    // A decimal must hold all integers among the values, as far as 38 digits allow.
    let whole = types.iter().filter(|ty| ty.is_integer()).map(|ty| digits(*ty)).max();
    match (ty, whole) {
        (DataType::Decimal { precision, scale }, Some(digits)) => {
            Some(DataType::Decimal { precision: precision.max((digits + scale).min(38)), scale })
        }
        _ => Some(ty),
    }
}
