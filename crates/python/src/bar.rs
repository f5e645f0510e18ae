//! The progress bar of a statement that takes long, which `_progress.py` draws in a terminal or a notebook.

use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Statements shorter than this get no bar, and those whose bar the program asks for.
const PATIENCE: Duration = Duration::from_secs(2);
const ASKED_FOR: Duration = Duration::from_millis(250);
/// Time between two drawings.
const EVERY: Duration = Duration::from_millis(100);

/// The bar of one statement.
pub struct Bar {
    wanted: Option<bool>,
    began: Instant,
    /// When to look again; `None` if there is nothing to draw on.
    next: Option<Instant>,
    drawn: Option<Py<PyAny>>,
}

impl Bar {
    /// The bar of a statement that begins; `wanted` or not, or as `_progress.py` judges.
    pub fn new(wanted: Option<bool>) -> Bar {
        let began = Instant::now();
        let next = match wanted {
            None => Some(began + PATIENCE),
            Some(true) => Some(began + ASKED_FOR),
            Some(false) => None,
        };
        Bar { wanted, began, next, drawn: None }
    }

    /// Draws the share that is done, if it is time to.
    ///
    /// # Errors
    /// Those of signal handlers, which Python may run meanwhile. A bar that cannot be drawn is no error.
    pub fn look(&mut self, py: Python<'_>, share: f64) -> PyResult<()> {
        if self.next.is_none_or(|next| Instant::now() < next) {
            return Ok(());
        }
        self.next = self.draw(py, share)?.then(|| Instant::now() + EVERY);
        Ok(())
    }

    fn draw(&mut self, py: Python<'_>, share: f64) -> PyResult<bool> {
        if self.drawn.is_none() {
            let bar = py.import("entasis._progress")?.call_method1("bar", (self.wanted,))?;
            if bar.is_none() {
                return Ok(false);
            }
            self.drawn = Some(bar.unbind());
        }
        let bar = self.drawn.as_ref().map(|bar| bar.bind(py));
        let arguments = (share, self.began.elapsed().as_secs_f64());
        bar.map(|bar| bar.call_method1("draw", arguments)).transpose().map(|_| true)
    }
}

/// Removes the bar from the screen.
impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.drawn.take() {
            // An error is of no concern to the statement.
            let _ = Python::try_attach(|py| bar.call_method0(py, "end").map(drop));
        }
    }
}
