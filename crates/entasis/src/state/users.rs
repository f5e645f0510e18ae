//! Who uses a database: it is closed with the last of its users, before that one goes.
//!
//! Connections, [`Database`](crate::Database) values and attachments are users. Upkeep is none, though it
//! holds the database while it looks at it: the last user tells it to stop and waits until it has let go, so
//! that the file is free when closing it returns.
//!
//! In a forked process nothing of a database that its parent has opened is freed or closed: threads that do
//! not exist there may have held any lock, and what was to be written at the end is the parent's to write.

use super::Shared;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// How long others may hold a database without being users: statements that are ending.
const ENDING: Duration = Duration::from_millis(50);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// See the module.
pub(crate) struct User(Arc<Shared>);

impl User {
    /// A user of a database that has some already, or was just opened.
    pub(crate) fn new(shared: &Arc<Shared>) -> User {
        shared.users.fetch_add(1, Ordering::SeqCst);
        User(shared.clone())
    }

    /// Another user of a database; `None` if it has none, and so is being closed.
    pub(super) fn join(shared: &Arc<Shared>) -> Option<User> {
        let join = |users: usize| (users > 0).then_some(users + 1);
        let joined = shared.users.fetch_update(Ordering::SeqCst, Ordering::SeqCst, join).is_ok();
        joined.then(|| User(shared.clone()))
    }
}

impl Clone for User {
    fn clone(&self) -> User {
        User::new(&self.0)
    }
}

impl Deref for User {
    type Target = Arc<Shared>;

    fn deref(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if !self.0.process.is_current() {
            std::mem::forget(self.0.clone());
            return;
        }
        if self.0.users.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        self.0.upkeep.end();
        if self.0.path.is_none() {
            return;
        }
        let began = Instant::now();
        while Arc::strong_count(&self.0) > 1 && (self.0.upkeep.is_looking() || began.elapsed() < ENDING) {
            thread::sleep(PAUSE);
        }
    }
}
