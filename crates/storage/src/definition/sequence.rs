//! Sequences: numbers that are given out once each. Numbers that were taken stay taken, whether or not their
//! transaction commits.
//!
//! In a database with a log, numbers are *reserved*: before the first of [`RESERVED`] numbers is given out,
//! the log is told to go on after them if there is a crash. So it is told once for that many, and a crash
//! leaves a gap instead of giving out numbers twice. A number may be shown to somebody once its reservation
//! is as durable as a commit: who takes one that is not yet ([`TakenNumber::is_kept`]) calls
//! [`Sequence::keep`] before that. Taking numbers waits for nothing, since it happens under locks.

use super::object::ObjectId;
use entasis_vector::{Error, Result};
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// How many numbers are reserved at once.
const RESERVED: u32 = 32;

/// How a sequence counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counting {
    /// The first value.
    pub start: i64,
    /// The difference between values; not 0.
    pub increment: i64,
    /// The least value.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
    /// It starts again after the last value, instead of failing.
    pub cycle: bool,
}

/// The log, as a sequence sees it.
pub(crate) trait Reservations: Send + Sync {
    /// Says which value comes next after a crash; `None` after the last value. Returns the position of the
    /// log to wait for.
    ///
    /// # Errors
    /// I/O, if the log refuses everything.
    fn reserve(&self, next: Option<i64>) -> Result<u64>;

    /// Returns when the log is as durable up to a position as commits are: true if it is on the disk.
    ///
    /// # Errors
    /// I/O.
    fn wait(&self, position: u64) -> Result<bool>;
}

/// A number that was taken from a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenNumber {
    /// The number.
    pub value: i64,
    /// False if it may be given out again after a crash, until [`Sequence::keep`] has returned.
    pub is_kept: bool,
}

/// A sequence, shared by all connections.
pub struct Sequence {
    /// Its name, as it was written.
    pub name: String,
    id: ObjectId,
    counting: Counting,
    state: Mutex<State>,
    /// `None` if the sequence does not outlive the process.
    reservations: OnceLock<Box<dyn Reservations>>,
}

/// The present state of a sequence.
#[derive(Debug, Clone, Copy)]
struct State {
    /// The next value; `None` after the last.
    next: Option<i64>,
    /// Numbers that may be given out before the log must be told again.
    reserved: u32,
    /// The value after the reserved ones.
    after: Option<i64>,
    /// The position of the log for which their reservation waits; `None` once it is on the disk.
    waits_for: Option<u64>,
}

impl State {
    /// With nothing reserved.
    fn at(next: Option<i64>) -> State {
        State { next, reserved: 0, after: next, waits_for: None }
    }
}

impl Sequence {
    /// A sequence that begins with `counting.start`.
    pub fn new(name: &str, counting: Counting) -> Sequence {
        Sequence::restored(ObjectId::fresh(), name, counting, Some(counting.start))
    }

    /// A sequence that was read from a file.
    pub(crate) fn restored(id: ObjectId, name: &str, counting: Counting, next: Option<i64>) -> Sequence {
        let state = Mutex::new(State::at(next));
        Sequence { name: name.to_owned(), id, counting, state, reservations: OnceLock::new() }
    }

    /// Its id.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// How it counts.
    pub fn counting(&self) -> Counting {
        self.counting
    }

    /// From now on tells the log which value comes next after a crash, before numbers are given out.
    pub(crate) fn reserve_by(&self, reservations: impl Reservations + 'static) {
        let _ = self.reservations.set(Box::new(reservations));
    }

    /// The value that comes next after a crash; `None` after the last.
    pub(crate) fn lasting_next(&self) -> Option<i64> {
        self.state().after
    }

    /// The next value; `None` after the last.
    pub fn next(&self) -> Option<i64> {
        self.state().next
    }

    /// Sets the next value, as the log says.
    pub(crate) fn go_on_with(&self, next: Option<i64>) {
        *self.state() = State::at(next);
    }

    /// Takes the next value. Unless it is kept, the caller calls [`Sequence::keep`] before anybody sees it.
    ///
    /// # Errors
    /// Input, after the last value; I/O, if the log refuses everything.
    pub fn take(&self) -> Result<TakenNumber> {
        let mut state = self.state();
        let Some(value) = state.next else {
            let last = if self.counting.increment > 0 { self.counting.max } else { self.counting.min };
            return Err(Error::input(format!("sequence {} has reached its last value, {last}", self.name)));
        };
        if state.reserved == 0 {
            let (mut count, mut after) = (0, state.next);
            while let Some(value) = after.filter(|_| count < RESERVED) {
                (count, after) = (count + 1, self.following(value));
            }
            match self.reservations.get() {
                Some(log) => state.waits_for = Some(log.reserve(after)?),
                None => (count, after) = (1, self.following(value)),
            }
            (state.reserved, state.after) = (count, after);
        }
        state.reserved -= 1;
        state.next = self.following(value);
        Ok(TakenNumber { value, is_kept: state.waits_for.is_none() })
    }

    /// Returns when no number that was taken can be given out again, whatever commits are safe from.
    ///
    /// # Errors
    /// I/O.
    pub fn keep(&self) -> Result<()> {
        let waits_for = self.state().waits_for;
        let (Some(position), Some(log)) = (waits_for, self.reservations.get()) else { return Ok(()) };
        if log.wait(position)? {
            // Unless others have been reserved meanwhile.
            let mut state = self.state();
            state.waits_for = state.waits_for.filter(|other| *other != position);
        }
        Ok(())
    }

    /// The value that follows another.
    fn following(&self, value: i64) -> Option<i64> {
        let Counting { increment, min, max, cycle, .. } = self.counting;
        let first = if increment > 0 { min } else { max };
        let following = value.checked_add(increment).filter(|next| (min..=max).contains(next));
        following.or(cycle.then_some(first))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequence({}, {:?})", self.name, self.counting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A log in memory: what it was told, and up to which of that it was waited for.
    #[derive(Default)]
    struct Told {
        next: Mutex<Vec<Option<i64>>>,
        waits: Mutex<Vec<u64>>,
    }

    impl Reservations for Arc<Told> {
        fn reserve(&self, next: Option<i64>) -> Result<u64> {
            let mut told = self.next.lock().unwrap();
            told.push(next);
            Ok(told.len() as u64)
        }

        fn wait(&self, position: u64) -> Result<bool> {
            self.waits.lock().unwrap().push(position);
            Ok(true)
        }
    }

    #[test]
    fn sequences_end_or_begin_anew() {
        let counting = Counting { start: 2, increment: 2, min: 1, max: 5, cycle: false };
        let ends = Sequence::new("s", counting);
        let take = |sequence: &Sequence| {
            let number = sequence.take().unwrap();
            assert!(number.is_kept, "no log knows of it");
            number.value
        };
        assert_eq!([take(&ends), take(&ends)], [2, 4]);
        assert!(ends.take().unwrap_err().message().contains("reached its last value, 5"));
        let anew = Sequence::new("s", Counting { cycle: true, ..counting });
        assert_eq!([(); 4].map(|()| take(&anew)), [2, 4, 1, 3]);
        let down = Sequence::new(
            "s",
            Counting { start: i64::MIN + 1, increment: -1, min: i64::MIN, max: 0, cycle: false },
        );
        assert_eq!([take(&down), take(&down)], [i64::MIN + 1, i64::MIN]);
        assert!(down.take().is_err());
    }

    #[test]
    fn what_the_log_knows_is_ahead_of_all_that_was_taken() {
        let counting = Counting { start: 1, increment: 1, min: 1, max: 50, cycle: false };
        let sequence = Sequence::new("s", counting);
        let log = Arc::new(Told::default());
        sequence.reserve_by(log.clone());
        for expected in 1..=40 {
            let number = sequence.take().unwrap();
            assert_eq!(number.value, expected);
            assert!(sequence.lasting_next().is_none_or(|next| next > expected));
            // Waiting for one number is waiting for all that were reserved with it.
            assert_eq!(number.is_kept, !(1..4).contains(&expected) && !(33..36).contains(&expected));
            if [3, 35].contains(&expected) {
                sequence.keep().unwrap();
            }
        }
        assert_eq!(*log.next.lock().unwrap(), [Some(33), None]);
        sequence.keep().unwrap();
        assert_eq!(*log.waits.lock().unwrap(), [1, 2]);
        assert_eq!(sequence.next(), Some(41));
        sequence.go_on_with(Some(50));
        assert_eq!(sequence.take().unwrap().value, 50);
        assert!(sequence.take().is_err() && sequence.lasting_next().is_none());
    }
}
