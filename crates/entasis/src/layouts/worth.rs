//! Whether a table that follows its workload is to be laid anew: rent or buy.
//!
//! The advice ([`super::advice`]) says which layout key would have served best what was asked since the
//! record began, with the rows that were added since. Once that key would have saved as much as it costs to
//! lay the table anew, it is. So never more is spent on moving rows than the better key would have saved by
//! then.

use super::Looked;
use super::advice::{Advice, advise};
use super::column::{Column, LaidBy};
use super::words::time;
use entasis_storage::TableSnapshot;
use entasis_vector::Result;

/// What it takes to lay a row anew, in nanoseconds, beside its columns.
const ROW: f64 = 220.0;
/// What it takes for each of its columns.
const COLUMN: f64 = 40.0;

/// What a table is to be laid anew by; `None` if it is to be left as it is.
///
/// # Errors
/// Interrupted.
pub(crate) fn better_key(looked: &Looked<'_>) -> Result<Option<LaidBy>> {
    let Some(sample) = looked.recorded() else { return Ok(None) };
    let present = Column::present(looked.snapshot, &looked.interrupt)?;
    let mut advice = advise(looked, &present, Some(&sample))?;
    let is_worth = advice.recommended != 0 && advice.saved() >= moving(looked.snapshot);
    Ok(is_worth.then(|| advice.candidates.swap_remove(advice.recommended).by))
}

/// What it costs to lay a table anew, in nanoseconds.
fn moving(snapshot: &TableSnapshot) -> f64 {
    snapshot.rows() as f64 * (ROW + COLUMN * snapshot.schema().len() as f64)
}

/// What the advice comes to for a table that follows its workload, in words.
pub(super) fn line(looked: &Looked<'_>, advice: &Advice) -> String {
    match advice.recommended {
        0 => "'auto' leaves the table as it is".to_owned(),
        _ => format!(
            "'auto' lays the table anew, which takes about {}, once that would have saved as much: {} by now",
            time(moving(looked.snapshot)),
            time(advice.saved())
        ),
    }
}
