//! The thread on which a session runs its statements, one after the other.
//!
//! It starts with the first statement. To start one for each statement took longer than a small statement
//! does, and each came without the memory that the last one had used. It ends when there was nothing to do
//! for a while, so that sessions at rest keep neither a thread nor its memory.
//!
//! A process that has been forked has the session and not its thread: nothing may be asked of it there.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Stack of the thread. Deeply nested SQL recurses; only what is used takes memory.
const STACK: usize = 64 << 20;
/// Time without statements after which the thread ends.
const REST: Duration = Duration::from_secs(1);

/// What the thread is to do.
type Job = Box<dyn FnOnce() + Send>;

/// The thread, if there is one.
#[derive(Default)]
pub struct Runner(Arc<Mutex<Option<Sender<Job>>>>);

impl Runner {
    /// Does `job` on the thread, after all that was given before.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut thread = lock(&self.0);
        let mut job: Job = Box::new(job);
        if let Some(jobs) = &*thread {
            match jobs.send(job) {
                Ok(()) => return Ok(()),
                // It ended with a panic.
                Err(SendError(back)) => job = back,
            }
        }
        let (jobs, next) = channel();
        let own = self.0.clone();
        let builder = thread::Builder::new().name("entasis-session".to_owned()).stack_size(STACK);
        builder.spawn(move || {
            job();
            work(&next, &own);
        })?;
        *thread = Some(jobs);
        Ok(())
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

fn lock(thread: &Mutex<Option<Sender<Job>>>) -> MutexGuard<'_, Option<Sender<Job>>> {
    thread.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does jobs until there are none for a while, or the session is gone.
fn work(jobs: &Receiver<Job>, own: &Mutex<Option<Sender<Job>>>) {
    loop {
        match jobs.recv_timeout(REST) {
            Ok(job) => job(),
            Err(RecvTimeoutError::Timeout) => {
                // A job is given under the lock: none can come behind this look.
                let mut thread = lock(own);
                match jobs.try_recv() {
                    Ok(job) => {
                        drop(thread);
                        job();
                    }
                    Err(_) => return *thread = None,
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
