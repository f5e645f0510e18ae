//! How many blocks of a table a question has to look into, by their zone maps.

use entasis_engine::question::{Comparison, Question};
use entasis_storage::{TableSnapshot, Zone};
use entasis_vector::expr::CompareOp;

/// Row groups that are looked at; of a table with more, as many evenly spread ones stand for all.
const ROW_GROUPS: usize = 64;

/// The number of blocks of which no comparison rules out all rows; estimated for large tables.
pub(super) fn blocks_met(snapshot: &TableSnapshot, question: &Question) -> f64 {
    let groups = snapshot.row_groups();
    let step = groups.len().div_ceil(ROW_GROUPS).max(1);
    let (mut met, mut looked, mut blocks) = (0, 0, 0);
    for (number, group) in groups.enumerate() {
        let own = group.slots().div_ceil(group.block_slots());
        blocks += own;
        if number % step == 0 {
            looked += own;
            let is_met = |block: &usize| {
                question
                    .comparisons
                    .iter()
                    .all(|comparison| may_hold(comparison, group.zone(comparison.column, *block)))
            };
            met += (0..own).filter(is_met).count();
        }
    }
    met as f64 * blocks as f64 / looked.max(1) as f64
}

/// True unless the bounds of a block say that the comparison holds for no row of it.
fn may_hold(comparison: &Comparison, zone: &Zone) -> bool {
    let (min, max) = (zone.min.total_cmp(&comparison.value), zone.max.total_cmp(&comparison.value));
    !zone.min.is_null()
        && match comparison.op {
            CompareOp::Eq => min.is_le() && max.is_ge(),
            CompareOp::Lt => min.is_lt(),
            CompareOp::LtEq => min.is_le(),
            CompareOp::Gt => max.is_gt(),
            CompareOp::GtEq => max.is_ge(),
            _ => true,
        }
}
