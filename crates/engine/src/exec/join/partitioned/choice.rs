//! The choice to partition a join in memory, once all build rows have arrived
//! ([`crate::exec::join::strategy`]).

use super::shared::Partitioning;
use crate::exec::join::strategy::partitions;
use crate::exec::join::table::BuildStats;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::memory::Reservation;
use crate::settings::TableKind;
use entasis_vector::Result;
use entasis_vector::expr::ColumnMeta;

impl Partitioning {
    /// Decides whether the join of `rows`, all build rows, which could have one table, is partitioned in
    /// memory.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn choose(
        &self,
        facts: &mut BuildStats,
        rows: &Materialized,
        memory: &mut Reservation,
        tasks: &dyn Tasks,
    ) -> Result<bool> {
        let Some(sides) = self.sides((rows.rows(), rows.bytes()), memory.free()) else { return Ok(false) };
        if !partitions::may_pay(&sides) {
            return Ok(false);
        }
        facts.repetition = self.spec.repetition_by_hash(facts, rows, memory, tasks)?;
        let workers = self.context.settings.threads;
        let Some(repetition) = facts.repetition else { return Ok(false) };
        let Some(why) = partitions::reason(&sides, repetition, workers) else { return Ok(false) };
        let mut reason = why.to_string();
        if let Some(keys) = &self.probe().stored {
            let spec = &self.spec;
            let nulls_count =
                !spec.shape.drops_unmatched_probe_rows() || spec.null_equals_null.contains(&true);
            let distinct = rows.rows() as f64 / repetition.per_key.max(1.0);
            let skew = keys.skew(distinct as usize, nulls_count);
            if partitions::is_skewed(skew.exponent, skew.most, workers) {
                self.recorder.note(format!("no radix join: {skew}"));
                return Ok(false);
            }
            reason += &format!(", {skew}");
        }
        [&self.build, &self.probe().store].iter().for_each(|store| store.stay_in_memory());
        Ok(self.radix.set(reason).is_ok())
    }

    /// True if partitions in memory, with `free` bytes free, are expected to be faster for this many rows
    /// with distinct keys that could be read twice.
    pub(crate) fn may_pay(&self, rows: usize, free: usize) -> bool {
        let width: usize = self.build.columns().iter().map(|meta| meta.physical.width()).sum();
        let sides = self.sides((rows, rows * width), free);
        sides.is_some_and(|sides| partitions::pays_beside_two_readings(&sides))
    }

    /// The numbers of both sides, with this many build rows and bytes; `None` if the join must not be
    /// partitioned in memory.
    fn sides(&self, (rows, bytes): (usize, usize), free: usize) -> Option<partitions::Sides> {
        let width =
            |columns: &[ColumnMeta]| columns.iter().map(|meta| partitions::width(meta.physical)).sum();
        (self.spec.table == TableKind::Auto && self.marks.len() > 1).then(|| partitions::Sides {
            build: (rows, width(self.build.columns()), bytes + self.table_bytes(rows)),
            probe: (self.expected.rows, width(self.probe().store.columns())),
            matching: self.expected.given(rows).matching,
            partition: self.context.settings.join_partition_size,
            free,
        })
    }
}
