//! Statistical aggregates of floats: exact sums, other kinds of means, higher moments.

use super::accumulator::{Accumulator, Call};
use super::kind::Kind;
use crate::definition::row::Row;
use entasis_vector::{Error, Result, Value};

/// A sum with its accumulated rounding error (Neumaier).
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.lost += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    fn value(self) -> f64 {
        // Infinities have no rounding error.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

/// `fsum`, `favg`, `weighted_avg`.
#[derive(Default, Clone)]
pub(super) struct Sums {
    count: u64,
    sum: Sum,
    weights: Sum,
}

impl Accumulator for Sums {
    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()> {
        let weight = if call.kind == Kind::WeightedMean { row.float(1) } else { 1.0 };
        self.count += 1;
        self.sum.add(row.float(0) * weight);
        self.weights.add(weight);
        Ok(())
    }

    fn merge(&mut self, _: &Call, other: Sums) -> Result<()> {
        self.count += other.count;
        for (own, theirs) in [(&mut self.sum, other.sum), (&mut self.weights, other.weights)] {
            own.add(theirs.sum);
            own.add(theirs.lost);
        }
        Ok(())
    }

    fn result(&mut self, call: &Call) -> Result<Value> {
        let (sum, weights) = (self.sum.value(), self.weights.value());
        Ok(match call.kind {
            _ if self.count == 0 => Value::Null,
            Kind::ExactSum => Value::Float(sum),
            _ => Value::Float(sum / weights),
        })
    }
}

/// `geometric_mean`.
#[derive(Default, Clone)]
pub(super) struct Logarithms {
    count: u64,
    sum: Sum,
}

impl Accumulator for Logarithms {
    fn add(&mut self, _: &Call, row: &Row<'_>) -> Result<()> {
        let x = row.float(0);
        if x < 0.0 {
            return Err(Error::input(format!("geometric_mean takes no negative number, like {x:?}")));
        }
        self.count += 1;
        self.sum.add(x.ln());
        Ok(())
    }

    fn merge(&mut self, _: &Call, other: Logarithms) -> Result<()> {
        self.count += other.count;
        self.sum.add(other.sum.sum);
        self.sum.add(other.sum.lost);
        Ok(())
    }

    fn result(&mut self, _: &Call) -> Result<Value> {
        Ok(if self.count == 0 {
            Value::Null
        } else {
            Value::Float((self.sum.value() / self.count as f64).exp())
        })
    }
}

/// Count, mean and the sums of the second to fourth powers of the deviations from it (Pébay, SAND2008-6212).
#[derive(Default, Clone)]
pub(super) struct Moments {
    count: f64,
    mean: f64,
    second: f64,
    third: f64,
    fourth: f64,
}

impl Moments {
    fn combine(&mut self, other: &Moments) {
        if other.count == 0.0 {
            return;
        }
        let (n, m) = (self.count, other.count);
        let count = n + m;
        if n == 0.0 {
            *self = other.clone();
            return;
        }
        let delta = other.mean - self.mean;
        let (d1, d2) = (delta / count, delta * delta / (count * count));
        let fourth = self.fourth
            + other.fourth
            + delta * d1 * d2 * n * m * (n * n - n * m + m * m)
            + 6.0 * d2 * (n * n * other.second + m * m * self.second)
            + 4.0 * d1 * (n * other.third - m * self.third);
        let third = self.third
            + other.third
            + delta * d2 * n * m * (n - m)
            + 3.0 * d1 * (n * other.second - m * self.second);
        self.second += other.second + delta * d1 * n * m;
        (self.third, self.fourth) = (third, fourth);
        self.mean += d1 * m;
        self.count = count;
    }
}

impl Accumulator for Moments {
    fn add(&mut self, _: &Call, row: &Row<'_>) -> Result<()> {
        self.combine(&Moments { count: 1.0, mean: row.float(0), ..Moments::default() });
        Ok(())
    }

    fn merge(&mut self, _: &Call, other: Moments) -> Result<()> {
        self.combine(&other);
        Ok(())
    }

    fn result(&mut self, call: &Call) -> Result<Value> {
        let Moments { count: n, mean, mut second, third, fourth } = *self;
        // The deviation from infinity is not a number.
        if n > 1.0 && !mean.is_finite() {
            second = f64::NAN;
        }
        let variance = second / n;
        Ok(match call.kind {
            Kind::Variance { sample, root } => {
                let divisor = if sample { n - 1.0 } else { n };
                let variance = second / divisor;
                match (divisor > 0.0, root) {
                    // A single value deviates by nothing from itself, also infinity.
                    (true, _) if n == 1.0 => Value::Float(0.0),
                    (false, _) => Value::Null,
                    (true, false) => Value::Float(variance),
                    (true, true) => Value::Float(variance.sqrt()),
                }
            }
            Kind::StandardError if n > 0.0 => Value::Float((variance / n).sqrt()),
            Kind::Skewness if n > 2.0 && second != 0.0 => {
                let skew = third / n / variance.powf(1.5);
                Value::Float(skew * (n * (n - 1.0)).sqrt() / (n - 2.0))
            }
            Kind::Kurtosis if n > 3.0 && second != 0.0 => {
                let of_all = fourth / n / (variance * variance);
                Value::Float((n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * of_all - 3.0 * (n - 1.0)))
            }
            Kind::KurtosisOfAll if n > 1.0 && second != 0.0 => {
                Value::Float(fourth / n / (variance * variance) - 3.0)
            }
            _ => Value::Null,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_parts_are_those_of_the_whole() {
        let one = |x: f64| Moments { count: 1.0, mean: x, ..Moments::default() };
        let values = [1.0, 4.0, -2.0, 8.5, 3.0, 3.0, 100.0];
        let mut whole = Moments::default();
        values.iter().for_each(|x| whole.combine(&one(*x)));
        let (mut a, mut b) = (Moments::default(), Moments::default());
        values[..3].iter().for_each(|x| a.combine(&one(*x)));
        values[3..].iter().for_each(|x| b.combine(&one(*x)));
        a.combine(&b);
        for (part, all) in [(a.second, whole.second), (a.third, whole.third), (a.fourth, whole.fourth)] {
            assert!((part / all - 1.0).abs() < 1e-12, "{part} and {all}");
        }
        let mean = values.iter().sum::<f64>() / 7.0;
        let fourth: f64 = values.iter().map(|x| (x - mean).powi(4)).sum();
        assert!((whole.fourth / fourth - 1.0).abs() < 1e-12);
    }
}
