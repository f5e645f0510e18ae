//! The gamma function, by Lanczos' approximation (g = 7, nine terms), to about 15 digits.

use std::f64::consts::PI;

const G: f64 = 7.0;
const TERMS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// The sum of the series at `x`, and the base of the power.
fn series(x: f64) -> (f64, f64) {
    let sum = TERMS[1..].iter().zip(1..).fold(TERMS[0], |sum, (term, i)| sum + term / (x + f64::from(i)));
    (sum, x + G + 0.5)
}

/// The gamma function, as C's `tgamma`: infinite at 0, not a number at negative integers.
pub(super) fn gamma(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0 / x;
    }
    if x == f64::INFINITY || x.is_nan() {
        return x;
    }
    if x < 0.0 && x.fract() == 0.0 || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    // Beyond these, it is greater or less than any float.
    if x > 171.7 {
        return f64::INFINITY;
    }
    if x < -190.0 {
        return 0.0;
    }
    if x.fract() == 0.0 && (1.0..=171.0).contains(&x) {
        // (x - 1)!, exact as long as a float can represent it.
        return (1..x as u32).map(f64::from).product();
    }
    if x < 0.5 {
        return PI / ((PI * x).sin() * gamma(1.0 - x));
    }
    let x = x - 1.0;
    let (sum, base) = series(x);
    // The power alone may be greater than any float.
    let root = base.powf((x + 0.5) / 2.0);
    (2.0 * PI).sqrt() * root * (-base).exp() * root * sum
}

/// The logarithm of the gamma function's absolute value; infinite at 0, at negative integers, and at
/// infinity.
pub(super) fn ln_gamma(x: f64) -> f64 {
    if x.is_infinite() || x <= 0.0 && x.fract() == 0.0 {
        return f64::INFINITY;
    }
    if x == 1.0 || x == 2.0 {
        return 0.0;
    }
    if x < 0.5 {
        return (PI / (PI * x).sin().abs()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let (sum, base) = series(x);
    0.5 * (2.0 * PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-13, "{a} and {b}");
        assert_eq!(gamma(5.0), 24.0);
        near(gamma(0.5), PI.sqrt());
        near(gamma(-1.5), 4.0 / 3.0 * PI.sqrt());
        near(ln_gamma(100.0), 359.134_205_369_575_36);
        near(ln_gamma(0.25), 1.288_022_524_698_077_5);
        assert!((gamma(171.5) / 9.483_367_566_824_795e307 - 1.0).abs() < 1e-12);
        assert_eq!((gamma(172.0), gamma(f64::INFINITY)), (f64::INFINITY, f64::INFINITY));
        assert!(gamma(-1.0).is_nan() && gamma(f64::NAN).is_nan() && gamma(f64::NEG_INFINITY).is_nan());
        assert!([0.0, -3.0, f64::NEG_INFINITY].iter().all(|x| ln_gamma(*x) == f64::INFINITY));
    }
}
