//! Operations one after the other, each timed; and figures of the times.

use crate::operations::{Step, fill};
use crate::store::{Store, perform};
use crate::times::Times;
use std::time::{Duration, Instant};

/// After so many operations the answers of all layouts are compared.
const CHECKED: usize = 500;

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Operations that were done.
    pub done: usize,
    /// The time that they took together.
    pub seconds: f64,
    /// The time that the thread had a processor for; the same as `seconds` where the system does not say.
    pub on_processor: f64,
    /// What each took, by query.
    pub times: [Times; 6],
    /// A digest of the first answers; `None` if there were fewer.
    pub digest: Option<u64>,
    /// A digest of all answers.
    pub answers: u64,
}

impl Outcome {
    /// Operations a second.
    pub fn throughput(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    /// Microseconds of a query at a share of its times: 0.5 is the median. `None` if there were none.
    pub fn at(&self, query: usize, share: f64) -> Option<f64> {
        self.times[query].at(share).map(|time| time / 1000.0)
    }

    /// Mean microseconds of a query. `None` if there were none.
    pub fn mean(&self, query: usize) -> Option<f64> {
        self.times[query].mean().map(|time| time / 1000.0)
    }

    /// The queries that there were.
    pub fn queries(&self) -> impl Iterator<Item = usize> {
        (0..self.times.len()).filter(|&query| self.times[query].count() > 0)
    }

    /// Adds what another thread did in the same time.
    pub fn join(&mut self, other: &Outcome) {
        self.seconds = self.seconds.max(other.seconds);
        self.on_processor = self.on_processor.max(other.on_processor);
        // What was first is a matter of chance.
        (self.digest, self.answers) = (None, 0);
        self.add_operations(other);
    }

    /// Adds what was done afterwards.
    pub fn extend(&mut self, later: &Outcome) {
        self.seconds += later.seconds;
        self.on_processor += later.on_processor;
        self.add_operations(later);
    }

    fn add_operations(&mut self, other: &Outcome) {
        self.done += other.done;
        self.times.iter_mut().zip(&other.times).for_each(|(own, other)| own.join(other));
    }
}

/// The median of some numbers; 0 if there are none.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    let half = numbers.len() / 2;
    match numbers.len() % 2 {
        1 => numbers[half],
        _ => half.checked_sub(1).map_or(0.0, |before| f64::midpoint(numbers[before], numbers[half])),
    }
}

/// The mean of some numbers without the greatest twentieth: of times, those in which another process had the
/// processor. 0 if there are none.
pub fn undisturbed(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.truncate(numbers.len() - numbers.len() / 20);
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

/// Seconds that this thread has had a processor for, as Linux tells; what other processes take is not in it.
fn on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// Performs operations until they end or the time is up.
pub fn run(store: &mut dyn Store, steps: &[Step], payloads: usize, limit: Duration) -> Outcome {
    let mut outcome = Outcome::default();
    let mut row = vec![0; payloads];
    let (mut digest, processor, begin) = (0u64, on_processor(), Instant::now());
    for &step in steps {
        if let Step::Insert(key) = step {
            fill(key, &mut row);
        }
        let start = Instant::now();
        let answer = perform(store, step, &row);
        let end = Instant::now();
        let nanoseconds = (end - start).as_nanos().min(u128::from(u32::MAX)) as u32;
        outcome.times[step.query()].add(nanoseconds);
        digest = digest.rotate_left(5) ^ answer.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        outcome.done += 1;
        if outcome.done == CHECKED {
            outcome.digest = Some(digest);
        }
        if end - begin > limit {
            break;
        }
    }
    outcome.seconds = begin.elapsed().as_secs_f64();
    let used = processor.zip(on_processor()).map(|(start, end)| end - start);
    outcome.on_processor = used.unwrap_or(outcome.seconds);
    outcome.answers = digest;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_does_not_count() {
        let times = (0..100).map(|number| if number % 20 == 7 { 1e6 } else { f64::from(number % 2) });
        assert_eq!(undisturbed(times.collect()), 45.0 / 95.0);
        assert_eq!((undisturbed(vec![3.0]), undisturbed(Vec::new())), (3.0, 0.0));
    }

    #[test]
    fn figures_of_times() {
        let mut outcome = Outcome { done: 4, seconds: 2.0, ..Outcome::default() };
        [4000, 1000, 3000, 2000].iter().for_each(|&time| outcome.times[0].add(time));
        let near = |found: Option<f64>, time: f64| found.is_some_and(|own| (own / time - 1.0).abs() < 0.01);
        assert!(near(outcome.at(0, 0.5), 3.0) && near(outcome.at(0, 0.999), 4.0));
        assert_eq!((outcome.at(1, 0.5), outcome.queries().collect::<Vec<usize>>()), (None, vec![0]));
        assert_eq!((outcome.mean(0), outcome.mean(1), outcome.throughput()), (Some(2.5), None, 2.0));
        let other = Outcome { done: 6, seconds: 1.0, ..Outcome::default() };
        outcome.join(&other);
        assert_eq!(outcome.throughput(), 5.0);
        outcome.extend(&other);
        assert_eq!((outcome.done, outcome.seconds), (16, 3.0));
    }
}
