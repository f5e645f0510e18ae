//! What executions of plans have learnt, as a prior for the next execution of the same plan: the models of
//! compactions ([`Learner`]), by a hash of the plan below each.
//!
//! All statements of a database share one [`Learned`]. A statement takes a copy of a model, learns on, and
//! puts it back when it ends; of two that run at once the later one stays. A limited number of models is
//! kept, and the one that was put back longest ago makes room.

mod learner;

use crate::sync::{Mutex, lock};
pub(crate) use learner::{ARMS, Learner, Selected};
use std::collections::VecDeque;

/// Models that are kept, of about 2 KB each.
const MODELS: usize = 256;

/// The models of a database.
#[derive(Debug, Default)]
pub struct Learned(Mutex<VecDeque<(u64, Learner)>>);

impl Learned {
    /// The model of the plan with this hash, or one that knows nothing.
    pub(crate) fn of(&self, plan: u64) -> Learner {
        let models = lock(&self.0);
        let known = models.iter().find(|(own, _)| *own == plan);
        known.map(|(_, learner)| learner.for_another_execution()).unwrap_or_default()
    }

    /// Keeps the model of the plan with this hash.
    pub(crate) fn keep(&self, plan: u64, learner: Learner) {
        let mut models = lock(&self.0);
        models.retain(|(own, _)| *own != plan);
        if models.len() == MODELS {
            models.pop_front();
        }
        models.push_back((plan, learner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_execution_goes_on_with_what_was_learnt() {
        let learned = Learned::default();
        let mut learner = learned.of(7);
        for _ in 0..2000 {
            let selected = learner.select();
            learner.reward(selected, if selected.arm == 5 { 1.0 } else { 2.0 }, 1);
        }
        learned.keep(7, learner);
        let mut learner = learned.of(7);
        assert_eq!(learner.taken, [0; 9], "what is reported is of one execution");
        let first: Vec<usize> = (0..50).map(|_| learner.select().arm).collect();
        assert!(first.iter().filter(|&&arm| arm == 5).count() > 25, "{first:?}");
        assert_eq!(ARMS[learned.of(8).select().arm], 128, "of another plan nothing is known");
    }

    #[test]
    fn the_oldest_model_makes_room() {
        let learned = Learned::default();
        let trained = || {
            let mut learner = Learner::default();
            for _ in 0..2000 {
                let selected = learner.select();
                learner.reward(selected, if selected.arm == 7 { 1.0 } else { 2.0 }, 1);
            }
            learner
        };
        (0..=MODELS as u64).for_each(|plan| learned.keep(plan, trained()));
        let knows = |plan| {
            let mut learner = learned.of(plan);
            (0..50).filter(|_| learner.select().arm == 7).count() > 25
        };
        assert!(!knows(0) && knows(1));
    }
}
