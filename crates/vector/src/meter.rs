//! Asks for the memory of the long strings that a kernel makes ([`crate::statement`]).

use crate::Result;
use crate::statement::{LONGEST, Looks, too_long};
use crate::string::StringHeap;

/// Asks for the memory of long strings that one call of a kernel makes, and whether it may go on.
#[derive(Debug, Default)]
pub struct Meter {
    looks: Looks,
}

impl Meter {
    /// Makes room for `bytes` more in `heap`.
    ///
    /// # Errors
    /// Interrupted; resource, if there is not enough memory or the string would be too long.
    #[inline]
    pub fn ask(&mut self, bytes: usize, heap: &mut StringHeap) -> Result<()> {
        self.step(bytes)?;
        heap.ask(bytes)
    }

    /// Looks, if `bytes` more make a [`STEP`](crate::statement::STEP), whether the statement may go on.
    ///
    /// # Errors
    /// Interrupted; resource, if the string would be too long.
    #[inline]
    pub fn step(&mut self, bytes: usize) -> Result<()> {
        if bytes > LONGEST {
            return Err(too_long(bytes));
        }
        self.looks.after(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Charge, Growth, STEP, Statement, ahead, within};
    use crate::{Error, Result};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counting(Arc<AtomicUsize>);
    struct Held(Arc<AtomicUsize>, usize);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_sub(self.1, Ordering::Relaxed);
        }
    }

    impl Statement for Counting {
        fn check(&self) -> Result<()> {
            Ok(())
        }
        fn reserve(&self, bytes: usize) -> Result<Charge> {
            if self.0.fetch_add(bytes, Ordering::Relaxed) + bytes > 4 * STEP {
                self.0.fetch_sub(bytes, Ordering::Relaxed);
                return Err(Error::resource("no more"));
            }
            Ok(Box::new(Held(self.0.clone(), bytes)))
        }
        fn charge(&self, bytes: usize) -> Charge {
            self.0.fetch_add(bytes, Ordering::Relaxed);
            Box::new(Held(self.0.clone(), bytes))
        }
    }

    #[test]
    fn what_is_asked_for_is_held_as_long_as_the_strings() {
        let used = Arc::new(AtomicUsize::new(0));
        let used_now = || used.load(Ordering::Relaxed);
        let statement = Arc::new(Counting(used.clone()));
        within(statement, || {
            let (mut meter, mut heap) = (Meter::default(), StringHeap::charged());
            meter.ask(1 << 10, &mut heap).unwrap();
            heap.push(&[b'x'; 1 << 10]);
            assert_eq!(used_now(), 0, "what any vector may have is free");
            meter.ask(STEP, &mut heap).unwrap();
            assert_eq!(used_now(), STEP, "it is reserved before it is there");
            heap.push(&vec![b'x'; STEP]);
            assert_eq!(used_now(), STEP);
            heap.push(&vec![b'x'; STEP]);
            assert_eq!(used_now(), 2 * STEP, "whether it was asked for or not");
            meter.ask(2 * STEP, &mut heap).unwrap();
            assert!(meter.ask(STEP, &mut heap).is_ok(), "there is room");
            heap.push(&vec![b'x'; 2 * STEP]);
            assert!(meter.ask(STEP, &mut heap).is_err());
            assert!(ahead(|| Meter::default().ask(64 << 20, &mut StringHeap::charged())).is_err());
            heap.clear();
            assert_eq!(used_now(), 2 * STEP, "the largest block is kept");
            drop(heap);
            assert_eq!(used_now(), 0);
            let mut own = StringHeap::new();
            own.push(&vec![b'x'; STEP]);
            assert_eq!(used_now(), 0, "its owner counts it");
            let mut growth = Growth::default();
            (0..4 * STEP).step_by(1 << 10).for_each(|_| growth.add(1 << 10).unwrap());
            assert_eq!(used_now(), 4 * STEP);
            assert!(growth.add(STEP).is_err());
            drop(growth);
            assert_eq!(used_now(), 0);
        });
        let mut heap = StringHeap::charged();
        assert!(Meter::default().ask(LONGEST + 1, &mut heap).is_err(), "longer than any string");
        Meter::default().ask(LONGEST, &mut heap).unwrap();
    }
}
