//! How many blocks of a table a question has to look into, by their zone maps.

use entasis_engine::pruning::KnownBounds;
use entasis_engine::scan_predicates::Question;
use entasis_storage::TableSnapshot;

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
                let mut comparisons = question.comparisons.iter();
                comparisons.all(|own| own.may_hold(KnownBounds::from(group.zone(own.column, *block))))
            };
            met += (0..own).filter(is_met).count();
        }
    }
    met as f64 * blocks as f64 / looked.max(1) as f64
}
