//! Functions of numbers.
//!
//! Results out of range are errors or infinities as in DuckDB; a result that is undefined (`ln(0)`,
//! `asin(2)`) is an error.

use super::special::{gamma, ln_gamma};
use crate::definition::{Body, Definition, Kernel, Row, Signature, define, elsewhere, takes};
use crate::types::{common_of, digits};
use entasis_vector::types::pow10;
use entasis_vector::{DataType, Error, Result, Value};

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

fn undefined<T>(name: &str, x: f64) -> Result<T> {
    Err(Error::input(format!("{name}({x:?}) is not defined")))
}

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
    define(&["sin"], "x", "DOUBLE", "sine", partial!("sin", f64::is_finite, f64::sin), &[("sin(0)", "0.0")]),
    define(
        &["cos"],
        "x",
        "DOUBLE",
        "cosine",
        partial!("cos", f64::is_finite, f64::cos),
        &[("cos(0)", "1.0")],
    ),
    define(
        &["tan"],
        "x",
        "DOUBLE",
        "tangent",
        partial!("tan", f64::is_finite, f64::tan),
        &[("tan(0)", "0.0")],
    ),
    define(
        &["cot"],
        "x",
        "DOUBLE",
        "cotangent",
        partial!("cot", f64::is_finite, |x| 1.0 / x.tan()),
        &[("round(cot(1), 6)", "0.642093")],
    ),
    define(
        &["asin"],
        "x",
        "DOUBLE",
        "inverse of sine",
        partial!("asin", |x| x.abs() <= 1.0, f64::asin),
        &[("asin(0)", "0.0")],
    ),
    define(
        &["acos"],
        "x",
        "DOUBLE",
        "inverse of cosine",
        partial!("acos", |x| x.abs() <= 1.0, f64::acos),
        &[("acos(1)", "0.0")],
    ),
    define(&["atan"], "x", "DOUBLE", "inverse of tangent", float!(f64::atan), &[("atan(0)", "0.0")]),
    define(
        &["atan2"],
        "y, x",
        "DOUBLE",
        "angle of the point (x, y)",
        &[takes(&[DOUBLE, DOUBLE], DOUBLE, Kernel::Float(|row| Ok(Some(row.float(0).atan2(row.float(1))))))],
        &[("atan2(0, 1)", "0.0")],
    ),
    define(&["sinh"], "x", "DOUBLE", "hyperbolic sine", float!(f64::sinh), &[("sinh(0)", "0.0")]),
    define(&["cosh"], "x", "DOUBLE", "hyperbolic cosine", float!(f64::cosh), &[("cosh(0)", "1.0")]),
    define(&["tanh"], "x", "DOUBLE", "hyperbolic tangent", float!(f64::tanh), &[("tanh(0)", "0.0")]),
    define(&["asinh"], "x", "DOUBLE", "inverse of sinh", float!(f64::asinh), &[("asinh(0)", "0.0")]),
    define(
        &["acosh"],
        "x",
        "DOUBLE",
        "inverse of cosh",
        partial!("acosh", |x| x >= 1.0, f64::acosh),
        &[("acosh(1)", "0.0")],
    ),
    define(
        &["atanh"],
        "x",
        "DOUBLE",
        "inverse of tanh",
        partial!("atanh", |x| x.abs() <= 1.0, f64::atanh),
        &[("atanh(0)", "0.0")],
    ),
    define(
        &["sind"],
        "x",
        "DOUBLE",
        "sine of degrees",
        partial!("sind", f64::is_finite, |x| of_degrees(x, f64::sin)),
        &[("sind(30)", "0.5")],
    ),
    define(
        &["cosd"],
        "x",
        "DOUBLE",
        "cosine of degrees",
        partial!("cosd", f64::is_finite, |x| of_degrees(x, f64::cos)),
        &[("cosd(60)", "0.5")],
    ),
    define(
        &["tand"],
        "x",
        "DOUBLE",
        "tangent of degrees",
        partial!("tand", f64::is_finite, tangent_of_degrees),
        &[("tand(45)", "1.0")],
    ),
    define(
        &["asind"],
        "x",
        "DOUBLE",
        "inverse of sine, in degrees",
        partial!("asind", |x| x.abs() <= 1.0, |x| to_degrees(x.asin())),
        &[("asind(0.5)", "30.0")],
    ),
    define(
        &["acosd"],
        "x",
        "DOUBLE",
        "inverse of cosine, in degrees",
        partial!("acosd", |x| x.abs() <= 1.0, |x| to_degrees(x.acos())),
        &[("acosd(0.5)", "60.0")],
    ),
    define(
        &["atand"],
        "x",
        "DOUBLE",
        "inverse of tangent, in degrees",
        float!(|x| to_degrees(x.atan())),
        &[("atand(1)", "45.0")],
    ),
    define(
        &["cotd"],
        "x",
        "DOUBLE",
        "cotangent of degrees",
        partial!("cotd", f64::is_finite, |x| 1.0 / tangent_of_degrees(x)),
        &[("cotd(45)", "1.0")],
    ),
    define(
        &["atan2d"],
        "y, x",
        "DOUBLE",
        "angle of the point (x, y), in degrees",
        &[takes(
            &[DOUBLE, DOUBLE],
            DOUBLE,
            Kernel::Float(|row| Ok(Some(to_degrees(row.float(0).atan2(row.float(1)))))),
        )],
        &[("atan2d(1, 0)", "90.0")],
    ),
    define(
        &["degrees"],
        "x",
        "DOUBLE",
        "radians to degrees",
        float!(f64::to_degrees),
        &[("degrees(pi())", "180.0")],
    ),
    define(
        &["radians"],
        "x",
        "DOUBLE",
        "degrees to radians",
        float!(f64::to_radians),
        &[("radians(180) = pi()", "true")],
    ),
    define(
        &["pi"],
        "",
        "DOUBLE",
        "the number π",
        &[takes(&[], DOUBLE, Kernel::Float(|_| Ok(Some(std::f64::consts::PI))))],
        &[("pi()", "3.141592653589793")],
    ),
    define(
        &["gamma"],
        "x",
        "DOUBLE",
        "gamma function: (x - 1)! of integers",
        float!(gamma),
        &[("gamma(5)", "24.0")],
    ),
    define(
        &["lgamma"],
        "x",
        "DOUBLE",
        "logarithm of the gamma function",
        float!(ln_gamma),
        &[("lgamma(1)", "0.0")],
    ),
    define(
        &["factorial"],
        "n",
        "DECIMAL(38,0)",
        "product of 1 to n",
        &[takes(
            &[BIGINT],
            WIDE,
            Kernel::Wide(|row| {
                let n = row.whole(0);
                if n < 0 {
                    return Err(Error::input(format!("factorial({n}) is not defined")));
                }
                (1..=i128::from(n.min(40)))
                    .try_fold(1i128, i128::checked_mul)
                    .map(Some)
                    .ok_or_else(|| out_of_range("factorial"))
            }),
        )],
        &[("factorial(5)", "120")],
    ),
    define(
        &["gcd", "greatest_common_divisor"],
        "a, b",
        "BIGINT",
        "greatest common divisor",
        &[takes(&[BIGINT, BIGINT], BIGINT, Kernel::Wide(|row| Ok(Some(gcd(row.wide(0), row.wide(1))))))],
        &[("gcd(42, 57)", "3")],
    ),
    define(
        &["lcm", "least_common_multiple"],
        "a, b",
        "BIGINT",
        "least common multiple",
        &[takes(
            &[BIGINT, BIGINT],
            BIGINT,
            Kernel::Wide(|row| {
                let (a, b) = (row.wide(0), row.wide(1));
                Ok(Some(if a == 0 || b == 0 { 0 } else { (a / gcd(a, b) * b).abs() }))
            }),
        )],
        &[("lcm(42, 57)", "798")],
    ),
    define(
        &["bit_count"],
        "x",
        "INTEGER",
        "bits that are set; of a BLOB in all of its bytes",
        &[
            takes(
                &[DataType::Int8],
                INTEGER,
                Kernel::Whole(|row| Ok(Some((row.whole(0) as u8).count_ones().into()))),
            ),
            takes(
                &[DataType::Int16],
                INTEGER,
                Kernel::Whole(|row| Ok(Some((row.whole(0) as u16).count_ones().into()))),
            ),
            takes(
                &[INTEGER],
                INTEGER,
                Kernel::Whole(|row| Ok(Some((row.whole(0) as u32).count_ones().into()))),
            ),
            takes(
                &[BIGINT],
                INTEGER,
                Kernel::Whole(|row| Ok(Some((row.whole(0) as u64).count_ones().into()))),
            ),
            takes(
                &[DataType::Blob],
                INTEGER,
                Kernel::Whole(|row| Ok(Some(row.bytes(0).iter().map(|b| i64::from(b.count_ones())).sum()))),
            ),
        ],
        &[("bit_count(31)", "5"), ("bit_count(-1::TINYINT)", "8")],
    ),
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

fn out_of_range(name: &str) -> Error {
    Error::input(format!("{name}: the result is out of range"))
}

fn one_decimal(types: &[DataType], result: DataType, kernel: Kernel) -> Result<Signature> {
    match types {
        [ty] if ty.is_decimal() || ty.is_integer() => Ok(Signature { args: vec![*ty], result, kernel }),
        _ => Err(Error::input("not a decimal")),
    }
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
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

/// A function of an angle in degrees; exact where the angle is a multiple of 15 and the result a simple
/// number.
fn of_degrees(x: f64, f: fn(f64) -> f64) -> f64 {
    let y = f((x % 360.0).to_radians());
    let halves = (y * 2.0).round() / 2.0;
    if x % 15.0 == 0.0 && (y - halves).abs() < 1e-12 { halves } else { y }
}

/// The tangent of an angle in degrees; infinite at right angles.
fn tangent_of_degrees(x: f64) -> f64 {
    let angle = x % 360.0;
    if angle == 90.0 || angle == -270.0 {
        f64::INFINITY
    } else if angle == -90.0 || angle == 270.0 {
        f64::NEG_INFINITY
    } else {
        of_degrees(x, f64::tan)
    }
}

fn to_degrees(x: f64) -> f64 {
    let degrees = x.to_degrees();
    if (degrees - degrees.round()).abs() < 1e-12 { degrees.round() } else { degrees }
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

// ---- round and trunc --------------------------------------------------------------------------------------

/// The signature of `round` and `trunc`: integers and floats keep their type, a decimal keeps as many digits
/// after the decimal point as the second argument says, if that is constant.
fn cut(
    types: &[DataType],
    constants: &[Option<Value>],
    float: Kernel,
    wide: fn(&Row<'_>) -> Result<Option<i128>>,
) -> Result<Signature> {
    let (Some(&x), 1..=2) = (types.first(), types.len()) else {
        return Err(Error::input("one or two numbers"));
    };
    let mut args = vec![x];
    if let Some(&count) = types.get(1) {
        if !(count.is_integer() || matches!(count, DataType::Null | DataType::Varchar)) {
            return Err(Error::input("the number of digits must be an integer"));
        }
        args.push(BIGINT);
    }
    let (result, kernel) = match x {
        ty if ty.is_integer() => (ty, Kernel::Wide(wide)),
        DataType::Decimal { precision, scale } => {
            let known = match constants.get(1) {
                _ if types.len() == 1 => Some(0),
                Some(Some(Value::Integer(n))) => Some((*n).clamp(-100, 100) as i64),
                _ => None,
            };
            let kept = known.map_or(scale, |n| n.clamp(0, scale.into()) as u8);
            // A carry fits into the digits that are dropped.
            let carried = kept == scale && known.is_none_or(|n| n < 0);
            let precision = (precision + u8::from(carried)).min(38);
            (DataType::Decimal { precision, scale: kept }, Kernel::Wide(wide))
        }
        REAL => (REAL, float),
        DOUBLE | DataType::Null | DataType::Varchar => {
            args[0] = DOUBLE;
            (DOUBLE, float)
        }
        _ => return Err(Error::input("not a number")),
    };
    Ok(Signature { args, result, kernel })
}

fn wanted_digits(row: &Row<'_>) -> i64 {
    if row.count() > 1 { row.whole(1) } else { 0 }
}

fn round_float(row: &Row<'_>) -> Result<Option<f64>> {
    Ok(Some(at_digits(row.float(0), wanted_digits(row), f64::round)))
}

fn trunc_float(row: &Row<'_>) -> Result<Option<f64>> {
    Ok(Some(at_digits(row.float(0), wanted_digits(row), f64::trunc)))
}

/// Applies `f` to a float at a number of digits after the decimal point. A float without so many digits is
/// returned as it is.
fn at_digits(x: f64, digits: i64, f: fn(f64) -> f64) -> f64 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    let exponent = x.abs().log10().floor() as i64;
    if digits.saturating_add(exponent) >= 17 {
        return x;
    }
    if digits < -exponent - 1 || digits < -308 {
        // Less than half a unit.
        return 0.0_f64.copysign(x);
    }
    let power = power_of_ten(digits.unsigned_abs().min(350) as u32);
    if !power.is_finite() || !(x * power).is_finite() {
        // A tiny number with digits far after the decimal point: scaled in two steps.
        let (first, second) =
            (power_of_ten(300), power_of_ten(digits.saturating_sub(300).clamp(0, 350) as u32));
        return f(x * first * second) / second / first;
    }
    if digits >= 0 { f(x * power) / power } else { f(x / power) * power }
}

/// The float nearest to 10^n; repeated multiplication would be less accurate.
fn power_of_ten(n: u32) -> f64 {
    if n <= 22 { 10f64.powi(n as i32) } else { format!("1e{n}").parse().unwrap_or(f64::INFINITY) }
}

fn round_wide(row: &Row<'_>) -> Result<Option<i128>> {
    cut_wide(row, true)
}

fn trunc_wide(row: &Row<'_>) -> Result<Option<i128>> {
    cut_wide(row, false)
}

fn scale_of(ty: DataType) -> i64 {
    match ty {
        DataType::Decimal { scale, .. } => scale.into(),
        _ => 0,
    }
}

fn cut_wide(row: &Row<'_>, round: bool) -> Result<Option<i128>> {
    let (x, scale, target) = (row.wide(0), scale_of(row.ty(0)), scale_of(row.result));
    // First the number in units of the last kept digit, then at the result's scale, which does not exceed the
    // argument's.
    let kept = wanted_digits(row).min(scale);
    let dropped = scale.saturating_sub(kept);
    let cut = if dropped == 0 {
        x
    } else if dropped > 38 {
        return Ok(Some(0));
    } else {
        let unit = pow10(dropped as u8);
        let (whole, rest) = (x / unit, x % unit);
        let carry = round && rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs();
        whole + if carry { x.signum() } else { 0 }
    };
    let up = target - kept;
    match up {
        0 => Ok(Some(cut)),
        1..=38 => cut.checked_mul(pow10(up as u8)).map(Some).ok_or_else(|| out_of_range("round")),
        -38..=-1 => Ok(Some(cut / pow10((-up) as u8))),
        _ if cut == 0 => Ok(Some(0)),
        _ => Err(out_of_range("round")),
    }
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
