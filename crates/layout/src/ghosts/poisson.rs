//! The probability that there are more inserts than ghosts: the number of inserts until the next refill is
//! assumed to be Poisson distributed.

/// ln k!, by Stirling's series, whose error is below 10^-14 for k ≥ 16; by multiplication for smaller k.
fn ln_factorial(k: u64) -> f64 {
    if k < 16 {
        return (1..=k).map(|i| i as f64).product::<f64>().ln();
    }
    let x = (k + 1) as f64;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5))
        - 1.0 / (1680.0 * x.powi(7));
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

/// P(X = k).
fn exactly(mean: f64, k: u64) -> f64 {
    (k as f64 * mean.ln() - mean - ln_factorial(k)).exp()
}

/// P(X ≥ k) for a mean of X. Sums on the side away from the mean, where terms decrease.
pub(super) fn at_least(mean: f64, k: u64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if mean <= 0.0 {
        return 0.0;
    }
    let (mut sum, mut term, mut factor) = (1.0, 1.0, k as f64);
    if factor > mean {
        while term > sum * f64::EPSILON {
            factor += 1.0;
            term *= mean / factor;
            sum += term;
        }
        return (exactly(mean, k) * sum).min(1.0);
    }
    factor -= 1.0;
    while term > sum * f64::EPSILON && factor > 0.0 {
        term *= factor / mean;
        factor -= 1.0;
        sum += term;
    }
    (1.0 - exactly(mean, k - 1) * sum).max(0.0)
}

/// E[(X − ghosts)⁺]: the expected number of inserts that find no ghost.
pub(super) fn shortage(mean: f64, ghosts: u64) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    // Σ_{x>g} x P(x) = mean · P(X ≥ g).
    (mean * at_least(mean, ghosts) - ghosts as f64 * at_least(mean, ghosts + 1)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The twin: single probabilities from 0 on.
    fn twin(mean: f64) -> Vec<f64> {
        let next = |(k, p): &(u64, f64)| Some((k + 1, p * mean / (k + 1) as f64));
        std::iter::successors(Some((0, (-mean).exp())), next).take(400).map(|(_, p)| p).collect()
    }

    #[test]
    fn tails_equal_sums() {
        for mean in [0.01, 0.5, 1.0, 3.7, 20.0, 90.0] {
            let exact = twin(mean);
            for ghosts in 0..200usize {
                let tail: f64 = exact[ghosts..].iter().rev().sum();
                let short: f64 =
                    exact.iter().enumerate().skip(ghosts).rev().map(|(k, p)| (k - ghosts) as f64 * p).sum();
                assert!((at_least(mean, ghosts as u64) - tail).abs() < 1e-12, "{mean} {ghosts}");
                assert!((shortage(mean, ghosts as u64) - short).abs() < 1e-10 * mean.max(1.0));
            }
        }
        assert_eq!((shortage(0.0, 0), at_least(0.0, 1)), (0.0, 0.0));
    }

    #[test]
    fn large_means_are_no_trouble() {
        let mean = 1e6;
        assert!((shortage(mean, 0) - mean).abs() < 1e-3);
        // Nearly normal: at the mean, the probability is a half, and the shortage 0.399 standard deviations.
        assert!((at_least(mean, 1_000_000) - 0.5).abs() < 1e-3);
        assert!((shortage(mean, 1_000_000) / 1000.0 - 0.3989).abs() < 1e-3);
        assert!(at_least(mean, 1_010_000) < 1e-20);
    }
}
