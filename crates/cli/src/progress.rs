//! A progress bar with the time left, for statements that run longer than two seconds, and for opening a
//! file.
//!
//! The work runs on the calling thread; another thread checks its progress ten times a second and draws.

use entasis::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Statements shorter than this get no bar.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two checks of the progress.
const LOOK: Duration = Duration::from_millis(100);
/// Number of steps of a bar.
const STEPS: u64 = 1000;

/// Calls `run`; if `show`, with a bar titled `title` that follows `progress`.
pub fn with_bar<T>(title: &str, progress: &Progress, show: bool, run: impl FnOnce() -> T) -> T {
    if !show {
        return run();
    }
    let (running, end) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || watch(title, progress, &end));
        let result = run();
        drop(running);
        result
    })
}

fn watch(title: &str, progress: &Progress, end: &Receiver<()>) {
    let start = Instant::now();
    let ended = |wait| end.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
    if ended(PATIENCE) {
        return;
    }
    let bar = bar(title);
    loop {
        let share = progress.get();
        bar.set_position((share * STEPS as f64) as u64);
        bar.set_message(left(start.elapsed(), share));
        if ended(LOOK) {
            return bar.finish_and_clear();
        }
    }
}

/// A bar of [`STEPS`] steps with `title` before it and a message after it.
fn bar(title: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:40.cyan/dim} {percent:>3} %  {msg}")
        .expect("the template is well formed")
        .progress_chars("━━─");
    ProgressBar::new(STEPS).with_style(style).with_prefix(title.to_owned())
}

/// A bar that its owner advances.
pub struct Steps {
    bar: ProgressBar,
    start: Instant,
}

impl Steps {
    /// A bar at 0 with `title` before it; drawn only on a terminal.
    pub fn new(title: &str) -> Steps {
        Steps { bar: bar(title), start: Instant::now() }
    }
    /// Sets the bar to `share`, 0 to 1; `what` is in progress.
    pub fn set(&self, share: f64, what: &str) {
        self.bar.set_position((share * STEPS as f64) as u64);
        self.bar.set_message(format!("{what}  {}", left(self.start.elapsed(), share)));
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The time left in words, assuming a constant speed. Empty while that is too uncertain.
fn left(elapsed: Duration, share: f64) -> String {
    if share < 0.01 {
        return String::new();
    }
    let seconds = (elapsed.as_secs_f64() * (1.0 - share) / share).ceil() as u64;
    match seconds {
        0 => "almost done".to_owned(),
        1..120 => format!("{seconds} s left"),
        120..7200 => format!("{} min left", seconds.div_ceil(60)),
        _ => format!("{} h left", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_from_the_share_done() {
        assert_eq!(left(Duration::from_secs(3), 0.001), "");
        assert_eq!(left(Duration::from_secs(10), 0.25), "30 s left");
        assert_eq!(left(Duration::from_secs(600), 0.5), "10 min left");
        assert_eq!(left(Duration::from_secs(5), 1.0), "almost done");
    }

    #[test]
    fn the_result_comes_back_with_or_without_a_bar() {
        let progress = Progress::default();
        assert_eq!(with_bar("", &progress, false, || 1) + with_bar("", &progress, true, || 2), 3);
    }
}
