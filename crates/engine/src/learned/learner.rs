//! The learner: finds the best threshold by trial (section 4 of the paper).
//!
//! A multi-armed bandit: the *arms* are nine thresholds, and the reward of an arm is the speed of the
//! pipeline after the compaction while the arm is in use.
//!
//! 1. Until each arm has been tried eight times, at most one arriving chunk in eight is spent on arms that
//!    have not ([`Learner::select`]); the others go to the best arm so far, at first that of binary
//!    compaction. So what is not known yet costs little, however few chunks there are.
//! 2. Then the arm with the largest *upper confidence bound* is taken: the mean of its last sixteen rewards,
//!    plus more the less often it was taken and the more the rewards vary (UCB1-tuned).
//! 3. Every 1024 selections, the means are compared with the previous ones; if one has doubled or halved,
//!    everything is forgotten.
//!
//! Departures from the paper. It tries each arm eight times before anything else, which only a long pipeline
//! can afford; what was learnt here is the prior of the next execution ([`super::Learned`]), so short ones
//! learn together. A *trial* is not one chunk but the chunks until the buffer is empty, so that an
//! arm is charged for the rows that it held back. A reward is the inverse of the time a *row* takes, since
//! trials differ in rows; when bounds are compared, the largest mean is scaled to a half, as the bounds
//! suppose rewards from 0 to 1. Workers share a model; what one has selected counts at once, so that others
//! try other arms (section 4.3).

/// The thresholds, in rows, for chunks of 2048.
pub(crate) const ARMS: [usize; 9] = [0, 32, 64, 128, 256, 384, 512, 768, 1024];
/// The arm of binary compaction, which is taken as long as nothing is known.
const BINARY: usize = 3;
/// The number of trials of each arm before any arm is preferred.
const TRIALS: u64 = 8;
/// The share of the chunks that may be spent on arms with fewer trials, as a divisor.
const SPENT_PART: u64 = 8;
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

/// An arm that a trial is to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selected {
    pub(crate) arm: usize,
    /// Whether it is taken to learn about it.
    is_spent: bool,
}

/// A model of one compaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Learner {
    arms: [Arm; ARMS.len()],
    selected: u64,
    /// Chunks that have arrived, and those of them that were spent on arms with few trials.
    arrived: u64,
    spent: u64,
    /// The means at the last comparison.
    snapshot: Option<[f64; ARMS.len()]>,
    /// How often each arm was selected in this execution, over all resets.
    pub(crate) taken: [u64; ARMS.len()],
    /// How often all was forgotten in this execution.
    pub(crate) resets: u64,
}

impl Learner {
    /// The arm to take next.
    pub(crate) fn select(&mut self) -> Selected {
        let least = (0..ARMS.len()).min_by_key(|&arm| (self.arms[arm].selected, arm.abs_diff(BINARY)));
        let least = least.expect("there are arms");
        let all_tried = self.arms[least].selected >= TRIALS;
        let is_spent = !all_tried && self.spent * SPENT_PART < self.arrived;
        let arm = match (all_tried, is_spent) {
            (true, _) => self.best_bound(),
            (false, true) => least,
            (false, false) => self.best_mean(),
        };
        self.arms[arm].selected += 1;
        self.taken[arm] += 1;
        self.selected += 1;
        if self.selected.is_multiple_of(PERIOD) {
            self.compare();
        }
        Selected { arm, is_spent }
    }

    /// Says how many nanoseconds a row took in a trial of an arm, which has lasted so many chunks.
    pub(crate) fn reward(&mut self, selected: Selected, nanoseconds: f64, chunks: u64) {
        let arm = &mut self.arms[selected.arm];
        arm.rewards[arm.rewarded as usize % REMEMBERED] = 1.0 / nanoseconds;
        arm.rewarded += 1;
        self.arrived += chunks;
        if selected.is_spent {
            self.spent += chunks;
        }
    }

    /// Chunks have arrived that nothing is learned from. Returns how many there have been in all.
    pub(crate) fn pass(&mut self, chunks: u64) -> u64 {
        self.arrived += chunks;
        self.arrived
    }

    /// The same model, of whose next execution nothing is reported yet.
    pub(super) fn for_another_execution(&self) -> Learner {
        Learner { taken: Default::default(), resets: 0, ..self.clone() }
    }

    /// The arm with the largest mean, among those that were rewarded more than once.
    fn best_mean(&self) -> usize {
        let tried = (0..ARMS.len()).filter(|&arm| self.arms[arm].rewarded > 1);
        let means = tried.map(|arm| (arm, self.arms[arm].means().0));
        means.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(BINARY, |(arm, _)| arm)
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
            (self.selected, self.arrived, self.spent) = (0, 0, 0);
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
            let selected = learner.select();
            let arm = selected.arm;
            learner.reward(selected, 1.0 / (mean(arm) * (0.8 + 0.4 * random(&mut state))), 1);
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
    fn little_is_spent_before_anything_is_known() {
        for chunks in [1, 4, 64] {
            // The arm of binary compaction is the best; the others take twice as long.
            let mut learner = Learner::default();
            let (mut spent, mut arrived) = (0, 0);
            while learner.arms.iter().any(|arm| arm.selected < TRIALS) {
                let selected = learner.select();
                assert!(selected.is_spent || selected.arm == BINARY);
                spent += if selected.is_spent { chunks } else { 0 };
                arrived += chunks;
                learner.reward(selected, if selected.arm == BINARY { 1.0 } else { 2.0 }, chunks);
                assert!(spent <= chunks + arrived / SPENT_PART, "{spent} of {arrived}");
            }
            assert!(arrived < 10 * TRIALS * SPENT_PART * chunks, "{arrived}");
        }
    }

    #[test]
    fn workers_spread_over_arms_before_any_has_ended_a_trial() {
        let mut learner = Learner { arrived: 1000, ..Learner::default() };
        let first: Vec<Selected> = (0..32).map(|_| learner.select()).collect();
        for arm in 0..ARMS.len() {
            assert!(first.iter().filter(|taken| taken.arm == arm).count() >= 3, "{first:?}");
        }
        // Rewards that come late, and none at all, do no harm.
        first.iter().for_each(|&selected| learner.reward(selected, 2.0, 1));
        (0..5000).for_each(|_| assert!(learner.select().arm < ARMS.len()));
    }
}
