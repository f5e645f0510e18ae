//! Latches: who changes values of a slice in place, and whether that was done while others read them.
//!
//! A latch is a sequence lock (Boehm, MSPC 2012): its version is odd while a thread writes, and greater
//! afterwards. Writers exclude each other. Readers write nothing, so that they leave the cache line to each
//! other: they note the version, load values with relaxed atomics, and look whether the version is still the
//! same ([`Latch::is_at`]). If it is not, what they have read may be torn, and they read again.
//!
//! Whoever may free or move the values excludes all of them by other means: the lock of the table's head
//! ([`crate::table`]).

use crate::sync::{AtomicU32, Ordering, fence, pause};

/// How often a thread tries to get a latch that another one has.
const TRIES: usize = 20;

/// A latch of a slice.
#[derive(Default)]
pub(crate) struct Latch {
    version: AtomicU32,
}

/// A latch that is held until this is dropped.
pub(crate) struct Latched<'a> {
    latch: &'a Latch,
    version: u32,
}

impl Latch {
    /// Takes the latch, unless others have it for long.
    pub(crate) fn take(&self) -> Option<Latched<'_>> {
        (0..TRIES).find_map(|_| {
            let version = self.settled()?;
            let taken = self.version.compare_exchange(
                version,
                version.wrapping_add(1),
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            taken.is_ok().then(|| {
                // No value is stored before the version is odd.
                fence(Ordering::Release);
                Latched { latch: self, version }
            })
        })
    }

    /// The version, to be noted before values are read; `None` if a thread writes them for long.
    pub(crate) fn version(&self) -> Option<u32> {
        (0..TRIES).find_map(|_| self.settled())
    }

    /// The version, if no thread writes; otherwise waits for a moment.
    #[inline]
    fn settled(&self) -> Option<u32> {
        let version = self.version.load(Ordering::Acquire);
        let is_settled = version.is_multiple_of(2);
        if !is_settled {
            pause();
        }
        is_settled.then_some(version)
    }

    /// True if nothing has been written since the version was noted.
    #[inline]
    pub(crate) fn is_at(&self, version: u32) -> bool {
        // All values have been loaded before the version is.
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        self.latch.version.store(self.version.wrapping_add(2), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    #[test]
    fn a_version_is_noted_and_outdated_by_writing() {
        let latch = Latch::default();
        let noted = latch.version().unwrap();
        assert!(latch.is_at(noted));
        let latched = latch.take().unwrap();
        assert!(latch.take().is_none() && latch.version().is_none() && !latch.is_at(noted));
        drop(latched);
        assert!(!latch.is_at(noted) && latch.is_at(latch.version().unwrap()));
    }

    #[test]
    fn readers_see_no_half_of_a_change() {
        let (latch, values) = (Latch::default(), [AtomicU64::new(0), AtomicU64::new(0)]);
        let (seen, end) = (AtomicU64::new(0), 20_000);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..end {
                        let Some(_latched) = latch.take() else { continue };
                        values.iter().for_each(|value| {
                            value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        });
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..end {
                    let Some(version) = latch.version() else { continue };
                    let [first, second] = [&values[1], &values[0]].map(|value| value.load(Ordering::Relaxed));
                    if latch.is_at(version) {
                        assert_eq!(first, second);
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        });
        assert!(seen.into_inner() > 0);
        assert_eq!(values[0].load(Ordering::Relaxed), values[1].load(Ordering::Relaxed));
    }
}
