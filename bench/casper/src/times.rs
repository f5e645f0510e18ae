//! Times of many operations in little memory: how many fell between two neighbouring marks.
//!
//! Below 2^[`EXACT`] nanoseconds each number is a mark of its own; from there on each power of two is cut
//! into 2^([`EXACT`] − 1) equal parts. So shares are known within 0.8 %, and means are exact.

/// Numbers below two to this are kept as they are.
const EXACT: u32 = 7;
/// Marks for all numbers of 32 bits.
const MARKS: usize = (1 << EXACT) + (32 - EXACT as usize) * (1 << (EXACT - 1));

/// The times of one kind of operation.
#[derive(Debug, Clone)]
pub struct Times {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times { counts: vec![0; MARKS], count: 0, sum: 0 }
    }
}

/// The mark of a time.
fn mark(time: u32) -> usize {
    let bits = 32 - time.leading_zeros();
    let shift = bits.saturating_sub(EXACT);
    // Beyond the exact ones each power of two has half as many marks.
    (shift << (EXACT - 1)) as usize + (time >> shift) as usize
}

/// The time in the middle between a mark and the next one.
fn time(mark: usize) -> f64 {
    let half = 1 << (EXACT - 1);
    let shift = (mark / half).saturating_sub(1);
    let low = ((mark - shift * half) as u64) << shift;
    low as f64 + ((1u64 << shift) - 1) as f64 / 2.0
}

impl Times {
    /// Adds the time of an operation, in nanoseconds.
    #[inline]
    pub fn add(&mut self, time: u32) {
        self.counts[mark(time)] += 1;
        self.count += 1;
        self.sum += u64::from(time);
    }

    /// Adds those of others.
    pub fn join(&mut self, other: &Times) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean nanoseconds. `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Nanoseconds at a share of the times: 0.5 is the median. `None` if there are none.
    pub fn at(&self, share: f64) -> Option<f64> {
        let place = ((self.count as f64 * share) as u64).min(self.count.checked_sub(1)?);
        let mut before = 0;
        let reaches = |count: &u64| {
            before += count;
            before > place
        };
        self.counts.iter().position(reaches).map(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_layout::random::Random;

    #[test]
    fn marks_ascend_and_are_near() {
        assert_eq!(mark(u32::MAX), MARKS - 1);
        let mut last = 0;
        for number in (0..100_000).chain((0..1000).map(|step| 100_000 + step * 4_000_000)) {
            let found = mark(number);
            assert!(found >= last);
            last = found;
            let error = (time(found) - f64::from(number)).abs();
            assert!(error <= f64::from(number) * 0.008, "{number}: {}", time(found));
        }
    }

    #[test]
    fn figures_are_those_of_a_sorted_list() {
        let mut random = Random::new(3);
        let (mut times, mut other, mut list) = (Times::default(), Times::default(), Vec::new());
        for number in 0..5000 {
            let bits = 5 + random.below(20);
            let time = 20 + random.below(1 << bits) as u32;
            (if number % 3 == 0 { &mut other } else { &mut times }).add(time);
            list.push(time);
        }
        times.join(&other);
        list.sort_unstable();
        assert_eq!(times.count(), 5000);
        let mean = list.iter().map(|&time| f64::from(time)).sum::<f64>() / 5000.0;
        assert!((times.mean().expect("times") - mean).abs() < 1e-6 * mean);
        for share in [0.0, 0.5, 0.99, 0.999, 1.0] {
            let own = f64::from(list[((5000.0 * share) as usize).min(4999)]);
            let found = times.at(share).expect("times");
            assert!((found / own - 1.0).abs() < 0.01, "{share}: {found} {own}");
        }
        assert_eq!((Times::default().at(0.5), Times::default().mean()), (None, None));
    }
}
