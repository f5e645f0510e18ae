//! How many blocks a box of values touches, if rows are in the order of a space-filling curve.
//!
//! Of B blocks along a curve through k columns, each is about a cube of the space of ranks, with sides of
//! B^(-1/k). A side of a box that holds the share s of a column meets s · B^(1/k) + 1 of them, since it
//! begins anywhere within one, and never more than there are:
//!
//! ```text
//! blocks  =  B · Π min(1, s + B^(-1/k))
//! ```
//! As if columns were independent: if they are not, blocks lie where the rows are, and a box that is placed
//! where the rows are meets about as many. Blocks along Hilbert's curve, and along Z-order when B is no power
//! of 2^k, are several cubes of different sizes; tables in storage's tests touch within a third of this.

/// Blocks touched, of `blocks` along a curve, by a box that holds `shares` of the rows by each of its
/// columns; 1 for a column without bounds.
pub fn blocks_of_box(blocks: f64, shares: &[f64]) -> f64 {
    let side = blocks.max(1.0).powf(-1.0 / shares.len().max(1) as f64);
    let met = shares.iter().map(|share| (share.clamp(0.0, 1.0) + side).min(1.0));
    (blocks * met.product::<f64>()).clamp(0.0, blocks.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The twin places boxes in a space of cubes and counts those that they meet.
    #[test]
    fn boxes_meet_as_many_cubes() {
        let mut random = Random::new(3);
        for columns in 1..=4u32 {
            let sides = [64usize, 64, 16, 8][columns as usize - 1];
            for _ in 0..40 {
                let shares: Vec<f64> =
                    (0..columns).map(|_| [0.001, 0.01, 0.1, 0.4, 1.0][random.below(5)]).collect();
                let mut met = 0.0;
                for _ in 0..4000 {
                    let of = |share: &f64| {
                        let from = random.unit() * (1.0 - share);
                        let (first, last) = (from * sides as f64, (from + share) * sides as f64);
                        (last.ceil() - first.floor()).max(1.0)
                    };
                    met += shares.iter().map(of).product::<f64>() / 4000.0;
                }
                let expected = blocks_of_box(sides.pow(columns) as f64, &shares);
                assert!((met / expected - 1.0).abs() < 0.15, "{shares:?}: {met} and {expected}");
            }
        }
        assert_eq!(blocks_of_box(1000.0, &[1.0, 1.0]), 1000.0);
        assert_eq!(blocks_of_box(0.0, &[0.1, 0.1]), 0.0);
    }
}
