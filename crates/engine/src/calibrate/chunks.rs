//! Measuring what chunks cost, whatever the number of their rows: the constants of the model by which small
//! chunks are copied together (*Data Chunk Compaction in Vectorized Execution*, Figure 4).
//!
//! | figure | from |
//! |---|---|
//! | `copied_column`, `copied_byte` | chunks of a few rows and of many, copied together |
//! | `chunk`, `chunk_row` | the same rows in small chunks and in large ones, probed with a small table and only scanned: what differs between the two is the probe's |

use super::fastest;
use super::joins::{FEW, Probing, relation};
use crate::cost::Costs;
use crate::exec::row_copier::RowCopier;
use crate::settings::{Compaction, Settings};
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Result, Selection, Vector, statement};
use std::hint::black_box;

/// Columns of a chunk that is copied, of 8 bytes each.
const COLUMNS: usize = 4;
/// Rows that are copied, in chunks of [`SMALL`] and of [`LARGE`].
const COPIED: usize = 1 << 16;
/// Rows of a small chunk.
const SMALL: usize = 16;
/// Rows of a large one, of which some fit where rows are copied to.
const LARGE: usize = CHUNK_ROWS / 4;
/// Rows that are probed.
const PROBED: usize = 1 << 18;

/// Sets what chunks cost.
///
/// # Errors
/// Interrupted, between two steps of at most some hundredths of a second.
pub(super) fn measure(costs: &mut Costs) -> Result<()> {
    let [small, large] = [SMALL, LARGE].map(copied);
    statement::check()?;
    let chunks = |rows: usize| (COPIED / rows) as f64;
    let each = ((small - large) / (chunks(SMALL) - chunks(LARGE))).max(1.0);
    costs.copied_column = each / COLUMNS as f64;
    costs.copied_byte = ((large - chunks(LARGE) * each) / (COPIED * COLUMNS * 8) as f64).max(0.001);

    let [few, probes] = [(FEW, FEW), (PROBED, FEW)].map(|(rows, keys)| relation(rows, 1, keys));
    let chunked = |chunk_rows: usize| -> Result<f64> {
        // Nothing is folded while it is encoded: both scans decode.
        let settings = || Settings {
            threads: 1,
            chunk_rows,
            compaction: Compaction::None,
            optimize: false,
            ..Settings::default()
        };
        let joined = Probing { probe: &probes, build: Some(&few), payload: 0 }.run(settings())?;
        Ok(joined - Probing { probe: &probes, build: None, payload: 0 }.run(settings())?)
    };
    let (small, large) = (chunked(SMALL)?, chunked(CHUNK_ROWS)?);
    let chunks = |rows: usize| (PROBED / rows) as f64;
    costs.chunk = ((small - large) / (chunks(SMALL) - chunks(CHUNK_ROWS))).max(1.0);
    costs.chunk_row = ((large - chunks(CHUNK_ROWS) * costs.chunk) / PROBED as f64).max(0.01);
    Ok(())
}

/// Nanoseconds in which rows are copied together, in chunks of so many.
fn copied(rows: usize) -> f64 {
    let values: Vec<i64> = (0..rows as i64).collect();
    let mut chunk = Chunk::new();
    chunk.reset(rows);
    let group = chunk.push_group(Selection::ALL);
    (0..COLUMNS).for_each(|_| chunk.push_column(Vector::from_slice(&values), group));
    let mut copier = RowCopier::sharing(&[DataType::Int64.physical(); COLUMNS]);
    let mut output = Chunk::new();
    fastest(5, || {
        for _ in 0..COPIED / rows {
            if copier.rows() + rows > CHUNK_ROWS {
                copier.lend(&mut output);
                black_box(&output);
                output.reset(0);
            }
            copier.append(black_box(&chunk), 0);
        }
    })
}
