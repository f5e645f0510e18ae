//! Workers: a few long-lived threads that run one piece of work together with the thread that asked for it.
//!
//! [`WorkerPool::run`] hands one closure to the calling thread and to some helpers, and returns when all of
//! them have left it. Helper threads are started when they are first wanted and live as long as the pool, so
//! a pipeline costs a wake-up and not the start of a thread. A helper that is busy with another statement is
//! not waited for: what it has not begun when the caller is done is taken back. So work must be of the kind
//! that any number of workers, even one, completes: morsels that are pulled until there are no more.
//!
//! A panic in the work is caught where it happens, reaches the caller as an internal error, and the helper
//! lives on.
//!
//! This is a leaf module with `unsafe`: the closure borrows from the caller's stack, which the type of a
//! long-lived thread's work cannot express. The twin in the tests of [tasks](crate::exec::scheduler) runs the
//! same work by `std::thread::scope`.
#![allow(unsafe_code)]

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, PoisonError, lock, thread};
use entasis_vector::{Error, Result};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Helper threads, shared by the statements of a database. Cheap to clone; the threads end with the last
/// clone.
#[derive(Clone, Default)]
pub struct WorkerPool(Arc<Owner>);

/// Ends the helpers when the last clone of the pool goes.
#[derive(Default)]
struct Owner(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// Helpers that have been started.
    threads: usize,
    ended: bool,
}

/// One helper's share of a batch.
struct Job {
    batch: Arc<Batch>,
    worker: usize,
}

/// One call of [`WorkerPool::run`].
struct Batch {
    work: *const (dyn Fn(usize) + Sync),
    /// Helpers that have begun and not yet left.
    running: Mutex<usize>,
    left: Condvar,
}

// SAFETY: `work` is only read while `WorkerPool::run`, which borrows it, has not returned; it is Sync.
unsafe impl Send for Batch {}
// SAFETY: as above.
unsafe impl Sync for Batch {}

impl WorkerPool {
    /// Runs `work` on the calling thread and on up to `workers - 1` helpers; returns when all have left it.
    /// The argument is the worker's number; the caller's is 0.
    pub fn run(&self, workers: usize, work: &(dyn Fn(usize) + Sync)) {
        if workers <= 1 {
            return work(0);
        }
        let shared = &self.0.0;
        // SAFETY: only the lifetime changes. The pointer is read by helpers that took a job of this batch
        // from the queue; `Retire` below takes the others back and waits for those that began, on unwinding
        // too, before the borrow ends.
        let erased =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync)>(work) };
        let batch = Arc::new(Batch { work: erased, running: Mutex::new(0), left: Condvar::new() });
        {
            let mut state = lock(&shared.state);
            for worker in 1..workers {
                state.queue.push_back(Job { batch: batch.clone(), worker });
            }
            while state.threads + 1 < workers {
                let helper = shared.clone();
                let name = format!("entasis-{}", state.threads + 1);
                if thread::Builder::new().name(name).spawn(move || helper.help()).is_err() {
                    break; // The caller does the work alone.
                }
                state.threads += 1;
            }
        }
        shared.wake.notify_all();
        let _retire = Retire { shared, batch: &batch };
        work(0);
    }
}

/// Takes back what no helper has begun and waits for the rest.
struct Retire<'a> {
    shared: &'a Shared,
    batch: &'a Arc<Batch>,
}

impl Drop for Retire<'_> {
    fn drop(&mut self) {
        lock(&self.shared.state).queue.retain(|job| !Arc::ptr_eq(&job.batch, self.batch));
        let mut running = lock(&self.batch.running);
        while *running > 0 {
            running = self.batch.left.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    /// The life of a helper.
    fn help(&self) {
        let mut state = lock(&self.state);
        loop {
            if state.ended {
                return;
            }
            let Some(job) = state.queue.pop_front() else {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            // Counted before the queue is unlocked, so that the caller cannot miss it.
            *lock(&job.batch.running) += 1;
            drop(state);
            // SAFETY: the job was in the queue, so `run` has not returned, and it waits for `running` to
            // fall.
            let work = unsafe { &*job.batch.work };
            // Work reports its own panics; whatever gets here must not end the helper.
            let _ = catch_unwind(AssertUnwindSafe(|| work(job.worker)));
            *lock(&job.batch.running) -= 1;
            job.batch.left.notify_one();
            drop(job);
            state = lock(&self.state);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        lock(&self.0.state).ended = true;
        self.0.wake.notify_all();
    }
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WorkerPool({} helpers)", lock(&self.0.0.state).threads)
    }
}

/// The first error of several workers, which also tells the others to stop.
#[derive(Default)]
pub(crate) struct FirstError {
    stop: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl FirstError {
    /// Runs `work`; keeps its error, a panic included, and asks the others to stop.
    pub(crate) fn guard(&self, work: impl FnOnce() -> Result<()>) {
        let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(&*panic)));
        if let Err(error) = outcome {
            lock(&self.error).get_or_insert(error);
            self.stop();
        }
    }
    /// Asks all workers to stop.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
    /// True once somebody asked.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    /// The first error, if there was one.
    pub(crate) fn into_result(self) -> Result<()> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

fn panic_error(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::internal(format!("a worker panicked: {}", text.unwrap_or("no message")))
        .with_hint("this is a defect; the statement failed, the database goes on")
}
