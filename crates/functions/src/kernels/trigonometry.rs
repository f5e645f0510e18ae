//! Trigonometric functions, of radians and of degrees, and hyperbolic ones.

use super::numbers::{float, partial, undefined};
use crate::definition::{Definition, Kernel, define, takes};
use entasis_vector::DataType;

const DOUBLE: DataType = DataType::Float64;

pub const FUNCTIONS: &[Definition] = &[
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
];

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
