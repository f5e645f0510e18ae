//! Sequences: numbers that no two takers share. Taken numbers stay taken, whatever becomes of the
//! transaction.

use super::object::ObjectId;
use entasis_vector::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// What a sequence counts.
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
    /// Begins anew behind the last value, instead of failing.
    pub cycle: bool,
}

/// A sequence, shared by all connections.
#[derive(Debug)]
pub struct Sequence {
    /// Its name, as it was written.
    pub name: String,
    id: ObjectId,
    counting: Counting,
    /// The value that comes next; `None` behind the last.
    next: Mutex<Option<i64>>,
}

impl Sequence {
    /// A sequence that begins with `counting.start`.
    pub fn new(name: &str, counting: Counting) -> Sequence {
        Sequence::restored(ObjectId::fresh(), name, counting, Some(counting.start))
    }

    /// A sequence as a file has it.
    pub(crate) fn restored(id: ObjectId, name: &str, counting: Counting, next: Option<i64>) -> Sequence {
        Sequence { name: name.to_owned(), id, counting, next: Mutex::new(next) }
    }

    /// What tells it apart from all other objects.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// What it counts.
    pub fn counting(&self) -> Counting {
        self.counting
    }

    /// The value that comes next; `None` behind the last.
    pub fn next(&self) -> Option<i64> {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next value.
    ///
    /// # Errors
    /// Input, behind the last one.
    pub fn take(&self) -> Result<i64> {
        let Counting { increment, min, max, cycle, .. } = self.counting;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(value) = *next else {
            let last = if increment > 0 { max } else { min };
            return Err(Error::input(format!("sequence {} has reached its last value, {last}", self.name)));
        };
        let first = if increment > 0 { min } else { max };
        let following = value.checked_add(increment).filter(|next| (min..=max).contains(next));
        *next = following.or(cycle.then_some(first));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_end_or_begin_anew() {
        let counting = Counting { start: 2, increment: 2, min: 1, max: 5, cycle: false };
        let ends = Sequence::new("s", counting);
        assert_eq!([ends.take().unwrap(), ends.take().unwrap()], [2, 4]);
        assert!(ends.take().unwrap_err().message().contains("reached its last value, 5"));
        let anew = Sequence::new("s", Counting { cycle: true, ..counting });
        assert_eq!([(); 4].map(|()| anew.take().unwrap()), [2, 4, 1, 3]);
        let down = Sequence::new(
            "s",
            Counting { start: i64::MIN + 1, increment: -1, min: i64::MIN, max: 0, cycle: false },
        );
        assert_eq!([down.take().unwrap(), down.take().unwrap()], [i64::MIN + 1, i64::MIN]);
        assert!(down.take().is_err());
    }
}
