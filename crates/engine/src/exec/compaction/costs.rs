//! What chunks cost, and the threshold that follows: *dynamic compaction* (sections 3.2 to 3.4 of the paper).
//!
//! An operator takes C3 + d C4 for a chunk of d rows; to copy d rows takes C1 + d C2. If the operators behind
//! cut each chunk into r (the chunk-reducing factor) and multiply its rows by v, then k of them take for it
//!
//! ```text
//! F(d) = C3 Σ_{j=0..k-1} v^j min(r^j, d) + C4 d k                                              (equation 1)
//! ```
//! Copying d rows to b others saves F(b) + F(d) − F(b + d) and costs C1 + d C2; the difference are its
//! *gains* (equation 2). The threshold is the largest d up to which it gains to add d rows to a buffer that
//! is half full.

use crate::cost::Costs;

/// Costs of chunks and their rows, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkCosts {
    /// C1, of a chunk that is copied.
    pub copy_chunk: f64,
    /// C2, of a row that is copied.
    pub copy_row: f64,
    /// C3, of a chunk in an operator.
    pub chunk: f64,
    /// C4, of a row in an operator.
    pub row: f64,
}

/// How the operators behind a compaction change chunks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behind {
    /// k: how many operators.
    pub operators: usize,
    /// r: chunks that each makes of one.
    pub reduces: f64,
    /// v: rows that each makes of one.
    pub multiplies: f64,
}

impl ChunkCosts {
    /// Those of a machine, which [`crate::calibrate`] measures, for rows of these columns and bytes.
    pub fn of_rows(costs: &Costs, columns: usize, bytes: usize) -> ChunkCosts {
        ChunkCosts {
            copy_chunk: costs.copied_column * columns as f64,
            copy_row: costs.copied_byte * bytes as f64,
            chunk: costs.chunk,
            row: costs.chunk_row,
        }
    }

    /// F: what the operators behind take for a chunk of `rows` rows.
    pub fn of_chunk(&self, behind: &Behind, rows: f64) -> f64 {
        let chunks: f64 = (0..behind.operators as i32)
            .map(|j| behind.reduces.powi(j).min(rows) * behind.multiplies.powi(j))
            .sum();
        self.chunk * chunks + self.row * rows * behind.operators as f64
    }

    /// What it saves to add `rows` rows to a buffer of `buffered` ones.
    pub fn gains(&self, behind: &Behind, buffered: f64, rows: f64) -> f64 {
        let [apart, alone, both] = [buffered, rows, buffered + rows].map(|rows| self.of_chunk(behind, rows));
        apart + alone - both - self.copy_chunk - self.copy_row * rows
    }

    /// The largest chunk that is worth being copied, of at most half of `chunk_rows`; 0 if there is none.
    pub fn threshold(&self, behind: &Behind, chunk_rows: usize) -> usize {
        let half = chunk_rows / 2;
        (1..=half).take_while(|&rows| self.gains(behind, half as f64, rows as f64) >= 0.0).last().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of Figure 4, with g(400) as section 3.3 has it.
    const OF_THE_PAPER: ChunkCosts =
        ChunkCosts { copy_chunk: 250.0, copy_row: 40.0, chunk: 2400.0, row: 80.0 };

    fn behind(operators: usize, reduces: f64) -> Behind {
        Behind { operators, reduces, multiplies: 1.0 }
    }

    #[test]
    fn the_example_of_the_paper_comes_out() {
        let gains = OF_THE_PAPER.gains(&behind(2, 110.0), 100.0, 400.0);
        // −13.85 µs at once, and 240 µs behind.
        assert!((gains - (240_000.0 - 13_850.0)).abs() < 1.0, "{gains}");
    }

    #[test]
    fn thresholds_are_those_of_the_paper() {
        let of = |reduces| [2, 1, 0].map(|k| OF_THE_PAPER.threshold(&behind(k, reduces), 2048));
        assert_eq!(of(4.0), [293, 53, 0]);
        assert_eq!(of(256.0), [1024, 53, 0]);
    }

    #[test]
    fn chunks_of_any_size_have_a_threshold() {
        for chunk_rows in 1..20 {
            let costs = ChunkCosts::of_rows(&Costs::default(), 5, 100);
            assert!(costs.threshold(&behind(3, 8.0), chunk_rows) <= chunk_rows / 2);
        }
    }
}
