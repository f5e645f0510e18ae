//! Aggregates of pairs of floats, (y, x) in the order of their arguments: covariance, correlation, linear
//! regression. Rows in which either is NULL are skipped.

use super::accumulator::{Accumulator, Call};
use super::kind::{Kind, Line};
use crate::definition::row::Row;
use entasis_vector::{Result, Value};

/// Count, means, and the sums of squared deviations from them and of their products.
#[derive(Default, Clone)]
pub(super) struct Pairs {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Pairs {
    fn combine(&mut self, other: &Pairs) {
        if other.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            *self = other.clone();
            return;
        }
        let count = self.count + other.count;
        let (dx, dy) = (other.x - self.x, other.y - self.y);
        let share = self.count * other.count / count;
        self.xx += other.xx + dx * dx * share;
        self.yy += other.yy + dy * dy * share;
        self.xy += other.xy + dx * dy * share;
        self.x += dx * other.count / count;
        self.y += dy * other.count / count;
        self.count = count;
    }

    /// With sums that are not numbers where a value was infinite or not a number.
    fn settled(&self) -> Pairs {
        let or_nan = |sum: f64, is_known: bool| if is_known { sum } else { f64::NAN };
        let (x, y) = (self.x.is_finite(), self.y.is_finite());
        Pairs { xx: or_nan(self.xx, x), yy: or_nan(self.yy, y), xy: or_nan(self.xy, x && y), ..self.clone() }
    }

    fn line(&self, line: Line) -> Option<f64> {
        let Pairs { count, x, y, xx, yy, xy } = *self;
        let known = count > 0.0;
        // Not a number, if a value is infinite or none.
        let sloped = known && xx != 0.0;
        match line {
            Line::AverageX => known.then_some(x),
            Line::AverageY => known.then_some(y),
            Line::Count => Some(count),
            Line::Intercept => sloped.then(|| y - xy / xx * x),
            Line::Fit if sloped && yy == 0.0 => Some(1.0),
            Line::Fit => sloped.then(|| xy * xy / (xx * yy)),
            Line::Slope => sloped.then(|| xy / xx),
            Line::SquaresX => known.then_some(xx),
            Line::SquaresY => known.then_some(yy),
            Line::Products => known.then_some(xy),
        }
    }
}

/// The square root of a product, which may itself be out of range.
fn root(a: f64, b: f64) -> f64 {
    let product = a * b;
    if product.is_normal() { product.sqrt() } else { a.sqrt() * b.sqrt() }
}

impl Accumulator for Pairs {
    fn add(&mut self, _: &Call, row: &Row<'_>) -> Result<()> {
        self.combine(&Pairs { count: 1.0, x: row.float(1), y: row.float(0), ..Pairs::default() });
        Ok(())
    }

    fn merge(&mut self, _: &Call, other: Pairs) -> Result<()> {
        self.combine(&other);
        Ok(())
    }

    fn result(&mut self, call: &Call) -> Result<Value> {
        let settled = self.settled();
        let Pairs { count, xx, yy, xy, .. } = settled;
        let result = match call.kind {
            Kind::Line(Line::Count) => return Ok(Value::Integer(count as i128)),
            Kind::Line(line) => settled.line(line),
            Kind::Covariance { sample } => {
                let divisor = if sample { count - 1.0 } else { count };
                (divisor > 0.0).then(|| xy / divisor)
            }
            _ => (xx != 0.0 && yy != 0.0).then(|| (xy / root(xx, yy)).clamp(-1.0, 1.0)),
        };
        Ok(result.map_or(Value::Null, Value::Float))
    }
}
