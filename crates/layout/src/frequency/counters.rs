//! The ten histograms in twenty bytes per block, for counting while operations run.
//!
//! Bins have 16 bits and share an *exponent* e: a bin represents its number times 2^e. An operation is
//! counted with a probability of 2^-e, in all of its bins or in none. When a bin is full, all are halved,
//! with a remainder of one half rounded up or down at random, and e is incremented. So expectations are
//! exact, and a bin of n has a relative error of about 1/√n; memory never grows. Decay also halves the bins.
//!
//! For counting in several threads, each has counters of its own, and their frequencies are merged.

use super::{Frequency, Kind, Operation};
use crate::random::Random;

/// See the module.
#[derive(Debug, Clone)]
pub struct Counters {
    bins: Vec<[u16; Kind::COUNT]>,
    exponent: u32,
    random: Random,
}

impl Counters {
    /// Counters over this many blocks. The seed determines which operations are counted once not all are.
    pub fn new(blocks: usize, seed: u64) -> Counters {
        Counters { bins: vec![[0; Kind::COUNT]; blocks], exponent: 0, random: Random::new(seed) }
    }

    /// Counts an operation on blocks, given by number.
    pub fn count(&mut self, operation: Operation<usize>) {
        if self.exponent > 0 && self.random.bits() >> (64 - self.exponent.min(63)) != 0 {
            return;
        }
        let mut is_full = false;
        operation.each_bin(|kind, block| {
            let bin = &mut self.bins[block][kind as usize];
            *bin += 1;
            is_full |= *bin == u16::MAX;
        });
        if is_full {
            self.halve();
            self.exponent += 1;
        }
    }

    /// Halves the weight of everything counted so far.
    pub fn decay(&mut self) {
        if self.exponent > 0 { self.exponent -= 1 } else { self.halve() }
    }

    fn halve(&mut self) {
        for bin in self.bins.iter_mut().flatten() {
            if *bin != 0 {
                *bin = *bin / 2 + (*bin & 1 & self.random.bits() as u16);
            }
        }
    }

    /// Bytes of the bins.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.bins[..])
    }

    /// The counted frequencies.
    pub fn frequency(&self) -> Frequency {
        let mut frequency = Frequency::new(self.bins.len());
        let one = f64::from(self.exponent).exp2();
        for kind in Kind::ALL {
            let bins = frequency.of_mut(kind).iter_mut().zip(&self.bins);
            bins.for_each(|(bin, own)| *bin = f64::from(own[kind as usize]) * one);
        }
        frequency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(random: &mut Random) -> Operation<usize> {
        // Low blocks are hot.
        let mut block = || random.below(8) * random.below(8) / 8;
        let (a, b) = (block(), block());
        match (a + b) & 3 {
            0 => Operation::Point(a),
            1 => Operation::Insert(a),
            2 => Operation::Range(a.min(b), a.max(b)),
            _ => Operation::Update { from: a, to: b },
        }
    }

    #[test]
    fn as_long_as_no_bin_is_full_all_is_exact() {
        let (mut counters, mut frequency, mut random) =
            (Counters::new(8, 0), Frequency::new(8), Random::new(5));
        for _ in 0..60_000 {
            let operation = operation(&mut random);
            counters.count(operation);
            frequency.count(operation, 1.0);
        }
        assert_eq!(counters.frequency(), frequency);
        assert_eq!(counters.bytes(), 160);
    }

    #[test]
    fn full_bins_stay_near() {
        let (mut counters, mut frequency, mut random) =
            (Counters::new(8, 0), Frequency::new(8), Random::new(6));
        for _ in 0..2_000_000 {
            let operation = operation(&mut random);
            counters.count(operation);
            frequency.count(operation, 1.0);
        }
        assert!(counters.exponent > 2);
        let estimate = counters.frequency();
        for kind in Kind::ALL {
            for (estimate, exact) in estimate.of(kind).iter().zip(frequency.of(kind)) {
                // The standard error is the square root of the count, times 2^e.
                let error = (f64::from(counters.exponent).exp2() * exact).sqrt();
                assert!((estimate - exact).abs() <= 5.0 * error, "{kind:?}: {estimate} for {exact}");
            }
        }
    }

    #[test]
    fn decay_halves() {
        let mut counters = Counters::new(2, 1);
        (0..1000).for_each(|_| counters.count(Operation::Point(1)));
        counters.decay();
        assert_eq!(counters.frequency().of(Kind::PointQuery), [0.0, 500.0]);
        (0..400_000).for_each(|_| counters.count(Operation::Point(0)));
        let exponent = counters.exponent;
        let before = counters.frequency().of(Kind::PointQuery)[0];
        counters.decay();
        assert_eq!(counters.exponent + 1, exponent);
        assert_eq!(counters.frequency().of(Kind::PointQuery)[0], before / 2.0);
    }
}
