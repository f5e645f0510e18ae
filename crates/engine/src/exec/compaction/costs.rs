//! The costs of chunks, and the threshold that follows: *dynamic compaction* (sections 3.2 to 3.4 of the
//! paper).
//!
//! An operator takes C3 + d C4 for a chunk of d rows; copying d rows takes C1 + d C2. If each of k operators
//! after the compaction cuts a chunk into r (the chunk-reducing factor) and multiplies its rows by v, all of
//! them take
//!
//! ```text
//! F(d) = C3 Σ_{j=0..k-1} v^j min(r^j, d) + C4 d k                                              (equation 1)
//! ```
//! Copying d rows to b others saves F(b) + F(d) − F(b + d) and costs C1 + d C2; the difference is its *gain*
//! (equation 2). The threshold is the largest d for which adding d rows to a half-full buffer is a gain.

use crate::cost::Costs;

/// Costs of chunks and their rows, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkCosts {
    /// C1: per copied chunk.
    pub copy_chunk: f64,
    /// C2: per copied row.
    pub copy_row: f64,
    /// C3: per chunk in an operator.
    pub chunk: f64,
    /// C4: per row in an operator.
    pub row: f64,
}

/// How the operators after a compaction change chunks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behind {
    /// k: the number of operators.
    pub operators: usize,
    /// r: the chunks that each makes from one.
    pub reduces: f64,
    /// v: the rows that each makes from one.
    pub multiplies: f64,
}

impl ChunkCosts {
    /// Those of a machine, which [`crate::calibrate`] measures, for rows of these columns and bytes. An
    /// operator looks at a column of a chunk about as long as it takes to begin copying it: without that, no
    /// chunk of wide rows would be worth copying.
    pub fn of_rows(costs: &Costs, columns: usize, bytes: usize) -> ChunkCosts {
        ChunkCosts {
            copy_chunk: costs.copied_column * columns as f64,
            copy_row: costs.copied_byte * bytes as f64,
            chunk: costs.chunk + costs.copied_column * columns as f64,
            row: costs.chunk_row,
        }
    }

    /// F: what the operators after the compaction take for a chunk of `rows` rows.
    pub fn of_chunk(&self, behind: &Behind, rows: f64) -> f64 {
        let chunks: f64 = (0..behind.operators as i32)
            .map(|j| behind.reduces.powi(j).min(rows) * behind.multiplies.powi(j))
            .sum();
        self.chunk * chunks + self.row * rows * behind.operators as f64
    }

    /// The gain of adding `rows` rows to a buffer of `buffered` rows.
    pub fn gains(&self, behind: &Behind, buffered: f64, rows: f64) -> f64 {
        let [apart, alone, both] = [buffered, rows, buffered + rows].map(|rows| self.of_chunk(behind, rows));
        apart + alone - both - self.copy_chunk - self.copy_row * rows
    }

    /// The largest chunk that is worth copying, at most half of `chunk_rows`; 0 if there is none.
    pub fn threshold(&self, behind: &Behind, chunk_rows: usize) -> usize {
        let half = chunk_rows / 2;
        (1..=half).take_while(|&rows| self.gains(behind, half as f64, rows as f64) >= 0.0).last().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The costs of Figure 4, with g(400) as in section 3.3.
    const OF_THE_PAPER: ChunkCosts =
        ChunkCosts { copy_chunk: 250.0, copy_row: 40.0, chunk: 2400.0, row: 80.0 };

    fn behind(operators: usize, reduces: f64) -> Behind {
        Behind { operators, reduces, multiplies: 1.0 }
    }

    #[test]
    fn the_example_of_the_paper_comes_out() {
        let gains = OF_THE_PAPER.gains(&behind(2, 110.0), 100.0, 400.0);
        // −13.85 µs for copying, and 240 µs in the operators after it.
        assert!((gains - (240_000.0 - 13_850.0)).abs() < 1.0, "{gains}");
    }

    #[test]
    fn thresholds_are_those_of_the_paper() {
        let of = |reduces| [2, 1, 0].map(|k| OF_THE_PAPER.threshold(&behind(k, reduces), 2048));
        assert_eq!(of(4.0), [293, 53, 0]);
        assert_eq!(of(256.0), [1024, 53, 0]);
    }

    #[test]
    fn small_chunks_of_wide_rows_are_worth_copying() {
        for columns in [4, 16, 64] {
            let costs = ChunkCosts::of_rows(&Costs::default(), columns, 8 * columns);
            assert!(costs.threshold(&behind(3, 8.0), 2048) >= 32, "{columns} columns");
        }
    }

    #[test]
    fn chunks_of_any_size_have_a_threshold() {
        for chunk_rows in 1..20 {
            let costs = ChunkCosts::of_rows(&Costs::default(), 5, 100);
            assert!(costs.threshold(&behind(3, 8.0), chunk_rows) <= chunk_rows / 2);
        }
    }
}
