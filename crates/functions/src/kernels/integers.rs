//! Functions of integers, and those that extend them to other numbers: factorials, divisors, bits.

use super::numbers::float;
use super::rounding::out_of_range;
use super::special::{gamma, ln_gamma};
use crate::definition::{Definition, Kernel, define, takes};
use entasis_vector::{DataType, Error};

const DOUBLE: DataType = DataType::Float64;
const BIGINT: DataType = DataType::Int64;
const INTEGER: DataType = DataType::Int32;
const WIDE: DataType = DataType::Decimal { precision: 38, scale: 0 };

pub const FUNCTIONS: &[Definition] = &[
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
];

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}
