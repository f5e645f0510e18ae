//! Functions of a row's place in its partition: numbers, ranks, shares, buckets. They depend on no value and
//! on no frame.

use super::operand::Operand;
use super::view::View;
use entasis_vector::{CHUNK_ROWS, Error, Result, Vector};

/// Which number a row gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// The place in the partition.
    RowNumber,
    /// The place of the first peer.
    Rank,
    /// The number of the group of peers.
    DenseRank,
    /// The share of the other rows that come before the first peer.
    PercentRank,
    /// The share of rows up to the last peer.
    CumeDist,
}

impl Ranking {
    /// True if peers count.
    pub fn needs_peers(self) -> bool {
        self != Ranking::RowNumber
    }

    /// True if a number depends on later rows.
    pub fn needs_all(self) -> bool {
        matches!(self, Ranking::PercentRank | Ranking::CumeDist)
    }

    /// Writes the numbers of the rows.
    pub fn write(self, view: &View<'_>, out: &mut Vector) {
        let (places, section) = (view.places, view.section);
        let room = places.rows.len().max(CHUNK_ROWS);
        let starts = &places.partition_start;
        match self {
            Ranking::RowNumber => {
                let numbers = out.begin_flat::<i64>(room).iter_mut().zip(places.rows.clone()).zip(starts);
                numbers.for_each(|((number, position), &start)| {
                    *number = section.rows_between(start, position as u32) + 1
                });
            }
            Ranking::Rank => {
                let ranks = out.begin_flat::<i64>(room).iter_mut().zip(&places.peers_start).zip(starts);
                ranks.for_each(|((rank, &peers), &start)| *rank = section.rows_between(start, peers) + 1);
            }
            Ranking::DenseRank => {
                let ranks =
                    out.begin_flat::<i64>(room).iter_mut().zip(&places.group).zip(&places.first_group);
                ranks.for_each(|((rank, &group), &first)| {
                    *rank = section.number_of_group(group) - section.number_of_group(first) + 1;
                });
            }
            Ranking::PercentRank => {
                let shares = out.begin_flat::<f64>(room).iter_mut().zip(&places.peers_start);
                for ((share, &peers), (&start, &end)) in shares.zip(starts.iter().zip(&places.partition_end))
                {
                    let others = section.rows_between(start, end) - 1;
                    let before = section.rows_between(start, peers);
                    *share = if others == 0 { 0.0 } else { before as f64 / others as f64 };
                }
            }
            Ranking::CumeDist => {
                let shares = out.begin_flat::<f64>(room).iter_mut().zip(&places.peers_end);
                for ((share, &peers), (&start, &end)) in shares.zip(starts.iter().zip(&places.partition_end))
                {
                    *share =
                        section.rows_between(start, peers) as f64 / section.rows_between(start, end) as f64;
                }
            }
        }
    }
}

/// Writes the buckets of the rows, where each partition has `buckets`: the first ones have one row more, if
/// rows are left over.
///
/// # Errors
/// Input, if the number of buckets is not positive.
pub fn write_ntile(buckets: &Operand, view: &View<'_>, out: &mut Vector) -> Result<()> {
    let places = view.places;
    let mut counts = Vec::new();
    buckets.integers(view.section, places.rows.clone(), &mut counts)?;
    let mut missing = Vec::new();
    let numbers = out.begin_flat::<i64>(places.rows.len().max(CHUNK_ROWS));
    for (row, (position, count)) in places.rows.clone().zip(&counts).enumerate() {
        let Some(count) = *count else {
            missing.push(row);
            continue;
        };
        if count <= 0 {
            return Err(Error::input(format!("ntile needs a positive number of buckets, not {count}")));
        }
        let start = places.partition_start[row];
        let rows = i128::from(view.section.rows_between(start, places.partition_end[row]));
        let at = i128::from(view.section.rows_between(start, position as u32));
        let (size, larger) = (rows / count, rows % count);
        let in_larger = larger * (size + 1);
        let bucket = if at < in_larger { at / (size + 1) } else { larger + (at - in_larger) / size };
        numbers[row] = bucket as i64 + 1;
    }
    missing.into_iter().for_each(|row| out.set_null(row));
    Ok(())
}
