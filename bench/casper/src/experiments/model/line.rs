//! Lines through points, and how far off a prediction is.

/// A measured point: the model's variable, and nanoseconds.
pub type Points = Vec<(f64, f64)>;

/// The cost of something in nanoseconds, by a variable: at 0, and for each unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub base: f64,
    pub slope: f64,
}

impl Line {
    pub fn at(self, x: f64) -> f64 {
        self.base + self.slope * x
    }

    /// The line with the least sum of squares of relative errors.
    pub fn through(points: &[(f64, f64)]) -> Line {
        let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &(x, y) in points {
            let weight = 1.0 / (y * y);
            w += weight;
            wx += weight * x;
            wy += weight * y;
            wxx += weight * x * x;
            wxy += weight * x * y;
        }
        let slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
        Line { base: (wy - slope * wx) / w, slope }
    }
}

/// By how many percent a prediction is off.
pub fn error(predicted: f64, measured: f64) -> f64 {
    (predicted / measured - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_points() {
        let line = Line::through(&[(1.0, 7.0), (2.0, 9.0), (5.0, 15.0)]);
        assert!((line.base - 5.0).abs() < 1e-9 && (line.slope - 2.0).abs() < 1e-9);
        assert!((line.at(10.0) - 25.0).abs() < 1e-9);
        assert_eq!(error(110.0, 100.0).round(), 10.0);
    }
}
