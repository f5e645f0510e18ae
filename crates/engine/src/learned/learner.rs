//! The learner: finds the best threshold by trial (section 4 of the paper).
//!
//! A multi-armed bandit: the *arms* are nine thresholds, and the reward of an arm is the speed of the
//! pipeline after the compaction while the arm is in use. [`Learner::select`] takes each arm eight times, and
//! then the one with the largest *upper confidence bound*: the mean of its last sixteen rewards, plus more
//! the less often it was taken and the more the rewards vary (UCB1-tuned). Every 1024 selections, the means
//! are compared with the previous ones; if one has doubled or halved, everything is forgotten.
//!
//! Departures from the paper. A *trial* is not one chunk but the chunks until the buffer is empty, so that an
//! arm is charged for the rows that it held back. A reward is the inverse of the time a *row* takes, since
//! trials differ in rows; when bounds are compared, the largest mean is scaled to a half, as the bounds
//! suppose rewards from 0 to 1. Workers share a model; what one has selected counts at once, so that others
//! try other arms (section 4.3). What was learnt is the prior of the next execution ([`super::Learned`]).

/// The thresholds, in rows, for chunks of 2048.
pub(crate) const ARMS: [usize; 9] = [0, 32, 64, 128, 256, 384, 512, 768, 1024];
/// The number of trials of each arm before any arm is preferred.
const TRIALS: u64 = 8;
/// The number of last rewards in the mean.
const REMEMBERED: usize = 16;
/// The number of selections between comparisons of the means.
const PERIOD: u64 = 1024;
/// The factor by which a mean must change to be an anomaly.
const ANOMALY: f64 = 2.0;

/// What is known of an arm.
#[derive(Debug, Clone, Default)]
struct Arm {
    /// The last rewards, rows by nanosecond, the oldest of which is overwritten next.
    rewards: [f64; REMEMBERED],
    /// The number of rewards so far.
    rewarded: u64,
    /// The number of times that it was selected.
    selected: u64,
}

impl Arm {
    fn last(&self) -> &[f64] {
        &self.rewards[..(self.rewarded as usize).min(REMEMBERED)]
    }

    /// The mean of the last rewards, and that of their squares.
    fn means(&self) -> (f64, f64) {
        let last = self.last();
        let count = last.len().max(1) as f64;
        (last.iter().sum::<f64>() / count, last.iter().map(|reward| reward * reward).sum::<f64>() / count)
    }
}

/// A model of one compaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Learner {
    arms: [Arm; ARMS.len()],
    selected: u64,
    /// The means at the last comparison.
    snapshot: Option<[f64; ARMS.len()]>,
    /// How often each arm was selected in this execution, over all resets.
    pub(crate) taken: [u64; ARMS.len()],
    /// How often all was forgotten in this execution.
    pub(crate) resets: u64,
}

impl Learner {
    /// The arm to try next.
    pub(crate) fn select(&mut self) -> usize {
        let least = (0..ARMS.len()).min_by_key(|&arm| self.arms[arm].selected).expect("there are arms");
        let arm = match self.arms[least].selected < TRIALS {
            true => least,
            false => self.best_bound(),
        };
        self.arms[arm].selected += 1;
        self.taken[arm] += 1;
        self.selected += 1;
        if self.selected.is_multiple_of(PERIOD) {
            self.compare();
        }
        arm
    }

    /// Says how many nanoseconds a row took in a trial of an arm.
    pub(crate) fn reward(&mut self, arm: usize, nanoseconds: f64) {
        let arm = &mut self.arms[arm];
        arm.rewards[arm.rewarded as usize % REMEMBERED] = 1.0 / nanoseconds;
        arm.rewarded += 1;
    }

    /// The same model, of whose next execution nothing is reported yet.
    pub(super) fn for_another_execution(&self) -> Learner {
        Learner { taken: Default::default(), resets: 0, ..self.clone() }
    }

    /// The arm with the largest upper confidence bound.
    fn best_bound(&self) -> usize {
        let log = (self.selected.max(2) as f64).ln();
        let largest = self.arms.iter().map(|arm| arm.means().0).fold(0.0, f64::max);
        let scale = if largest > 0.0 { 0.5 / largest } else { 1.0 };
        let bound = |arm: &Arm| {
            let (mean, square) = arm.means();
            let (mean, square) = (mean * scale, square * scale * scale);
            let tries = arm.selected as f64;
            let variance = square - mean * mean + (2.0 * log / tries).sqrt();
            mean + (log / tries * variance.min(0.25)).sqrt()
        };
        let bounds: Vec<f64> = self.arms.iter().map(bound).collect();
        (0..ARMS.len()).max_by(|&a, &b| bounds[a].total_cmp(&bounds[b])).expect("there are arms")
    }

    /// Forgets everything if a mean has changed too much.
    fn compare(&mut self) {
        let means = std::array::from_fn(|arm| self.arms[arm].means().0);
        let has_changed = |(now, before): (&f64, &f64)| {
            let (low, high) = (now.min(*before), now.max(*before));
            low > 0.0 && high / low >= ANOMALY
        };
        if self.snapshot.is_some_and(|before| means.iter().zip(&before).any(has_changed)) {
            self.arms = Default::default();
            self.selected = 0;
            self.snapshot = None;
            self.resets += 1;
        } else {
            self.snapshot = Some(means);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A random number from 0 to 1.
    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 40) as f64 / (1u64 << 24) as f64
    }

    /// The share of the trials after the first `skip` that took each arm.
    fn shares(learner: &mut Learner, trials: usize, skip: usize, mean: impl Fn(usize) -> f64) -> [f64; 9] {
        let (mut state, mut taken) = (7, [0.0; 9]);
        for trial in 0..trials {
            let arm = learner.select();
            learner.reward(arm, 1.0 / (mean(arm) * (0.8 + 0.4 * random(&mut state))));
            if trial >= skip {
                taken[arm] += 1.0 / (trials - skip) as f64;
            }
        }
        taken
    }

    #[test]
    fn the_best_arm_is_found() {
        for best in 0..ARMS.len() {
            let mean = |arm: usize| 0.6 - 0.05 * arm.abs_diff(best) as f64;
            let taken = shares(&mut Learner::default(), 4000, 2000, mean);
            let most = (0..9).max_by(|&a, &b| taken[a].total_cmp(&taken[b])).expect("nine");
            assert_eq!(most, best, "{taken:?}");
            // The loss is that of the second best arm, and rare.
            let mean: f64 = (0..9).map(|arm| taken[arm] * mean(arm)).sum();
            assert!(mean > 0.55, "{mean}");
        }
    }

    #[test]
    fn after_a_shift_another_arm_is_found() {
        let mut learner = Learner::default();
        shares(&mut learner, 3000, 0, |arm| if arm == 1 { 0.6 } else { 0.3 });
        let taken = shares(&mut learner, 6000, 3000, |arm| if arm == 7 { 0.7 } else { 0.25 });
        assert!(learner.resets > 0);
        assert!(taken[7] > 0.5, "{taken:?}");
    }

    #[test]
    fn workers_spread_over_arms_before_any_has_ended_a_trial() {
        let mut learner = Learner::default();
        let first: Vec<usize> = (0..32).map(|_| learner.select()).collect();
        for arm in 0..ARMS.len() {
            assert!(first.iter().filter(|&&taken| taken == arm).count() >= 3, "{first:?}");
        }
        // Rewards that come late, and none at all, do no harm.
        first.iter().for_each(|&arm| learner.reward(arm, 2.0));
        (0..5000).for_each(|_| assert!(learner.select() < ARMS.len()));
    }
}
