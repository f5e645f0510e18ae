//! How long something takes, on a machine that others use as well.

use std::time::Instant;

/// What `run` gives, and the milliseconds that passed; if it is on this thread alone (`is_alone`), those that
/// it was on a processor, where the system tells.
pub fn timed<T>(is_alone: bool, run: impl FnOnce() -> T) -> (f64, T) {
    let (start, before) = (Instant::now(), on_processor());
    let outcome = run();
    let (passed, after) = (start.elapsed().as_nanos() as f64 / 1e6, on_processor());
    let milliseconds = match (before, after) {
        (Some(before), Some(after)) if is_alone => after - before,
        _ => passed,
    };
    (milliseconds, outcome)
}

/// Milliseconds that this thread has been on a processor, where the system tells (Linux).
fn on_processor() -> Option<f64> {
    // The count is brought up to date when a thread makes way for others.
    std::thread::yield_now();
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    counts.split(' ').next()?.parse().ok().map(|nanoseconds: f64| nanoseconds / 1e6)
}
