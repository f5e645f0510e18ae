//! The best partitioning for arbitrary costs of partitions: every candidate within the window is tried, O(N ·
//! width). For costs that are not Monge, such as those of ghosts that are pooled in a partition
//! ([`crate::ghosts`]).

use super::{Costs, Limits, Solution, Unsolvable, trace};

/// The partitioning of the least cost within limits on width and on where partitions end. Other limits are
/// ignored.
///
/// # Errors
/// The limit that no partitioning satisfies.
pub fn general<C: Costs>(costs: &C, limits: &Limits) -> Result<Solution, Unsolvable> {
    let blocks = costs.blocks();
    let window = limits.window(blocks)?;
    let mut best: Vec<Option<(i128, usize)>> = vec![None; blocks];
    for first in 0..blocks {
        let before = match first.checked_sub(1) {
            None => Some(0),
            Some(end) => best[end].map(|(cost, _)| cost),
        };
        let Some(before) = before else { continue };
        for (last, best) in best.iter_mut().enumerate().take(window.reach[first]).skip(first) {
            if window.may_end(last) {
                let cost = before + i128::from(costs.cost(first, last));
                if best.is_none_or(|(least, _)| cost < least) {
                    *best = Some((cost, first));
                }
            }
        }
    }
    let (cost, _) = best[blocks - 1].ok_or(Unsolvable::Together)?;
    let partitioning = trace(blocks, |last| best[last].map_or(0, |(_, first)| first));
    Ok(Solution { partitioning, cost, price_of_partition: 0 })
}
