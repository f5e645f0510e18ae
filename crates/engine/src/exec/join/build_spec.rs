//! The specification of a build side: what is known of a join's table before there are rows, and how the
//! table is built from them.

use super::table::ordered::{self, Ingredients};
use super::table::{
    BuildStats, ChosenTable, LookupKind, Repetition, TableRequest, bytes_at_most, choose, fits,
    repetition_by_hash,
};
use super::{Built, Shape};
use crate::bounds::Lookup;
use crate::exec::key_filter::{Expected, key_bounds};
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::memory::{MemoryBudget, Reservation};
use crate::settings::{Settings, TableKind};
use crate::sync::AtomicU64;
use entasis_vector::Result;
use entasis_vector::expr::ColumnMeta;
use std::sync::Arc;

/// How build rows become a table to probe.
#[derive(Debug, Clone)]
pub(crate) struct BuildSpec {
    /// What the join outputs.
    pub shape: Shape,
    /// For each key, whether NULL equals NULL.
    pub null_equals_null: Vec<bool>,
    /// Rows with NULL keys will be needed.
    pub null_aware: bool,
    /// Marks of matched rows will be needed.
    pub marks: bool,
    /// The table that the setting names.
    pub table: TableKind,
    /// What lookups in the table must answer.
    pub asked: LookupKind,
    /// Which of the columns are read, apart from comparing keys.
    pub read: Vec<bool>,
    /// What is expected of the probe side.
    pub expected: Expected,
    /// How rows are found if they are ordered: the columns after the keys are what they are ordered by.
    pub lookup: Option<Lookup>,
    /// The settings, with those of this join.
    pub settings: Arc<Settings>,
}

impl BuildSpec {
    pub(crate) fn request(&self) -> TableRequest<'_> {
        TableRequest { kind: self.table, asked: self.asked, read: &self.read, expected: self.expected }
    }

    /// True if lookups yield rows, which is also so for a forced CAT.
    pub(crate) fn asks_for_rows(&self) -> bool {
        self.asked == LookupKind::Rows || self.table == TableKind::Cat
    }

    /// See [`repetition_by_hash`].
    pub(crate) fn repetition_by_hash(
        &self,
        facts: &BuildStats,
        rows: &Materialized,
        memory: &mut Reservation,
        tasks: &dyn Tasks,
    ) -> Result<Option<Repetition>> {
        repetition_by_hash(&self.request(), facts, rows, &self.null_equals_null, memory, tasks)
    }

    /// What is known of the keys of `rows`.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn facts(&self, rows: &Materialized, tasks: &dyn Tasks) -> Result<BuildStats> {
        let nulls = &self.null_equals_null;
        Ok(BuildStats {
            keys: nulls.len(),
            bounds: key_bounds(rows, nulls, tasks)?,
            bits: None,
            repetition: None,
        })
    }

    /// True if there is memory for a table over `rows`, whose reservation is `memory`.
    pub(crate) fn fits(
        &self,
        facts: &BuildStats,
        rows: &Materialized,
        memory: &mut Reservation,
        tasks: &dyn Tasks,
    ) -> Result<bool> {
        let Some(lookup) = &self.lookup else {
            return fits(&self.request(), facts, rows, &self.null_equals_null, memory, tasks);
        };
        let keys = self.null_equals_null.len();
        Ok(memory.free() >= ordered::bytes_to_build(rows.rows(), rows.columns(), keys, lookup))
    }

    /// The most bytes of a table of this many rows with these columns, beside the rows.
    pub(crate) fn table_bytes(&self, rows: usize, columns: &[ColumnMeta]) -> usize {
        match &self.lookup {
            None => bytes_at_most(self.table, rows),
            Some(lookup) => ordered::bytes_to_build(rows, columns, self.null_equals_null.len(), lookup),
        }
    }

    /// Builds the table over `rows`, whose reservation is `memory`, with more of `budget` where it needs that
    /// for a time. Also returns which table it is, and why.
    ///
    /// # Errors
    /// Those of the tasks; resource.
    pub(crate) fn make(
        &self,
        rows: Materialized,
        facts: &BuildStats,
        mut memory: Reservation,
        budget: &Arc<MemoryBudget>,
        tasks: &dyn Tasks,
    ) -> Result<(Built, String)> {
        let nulls = &self.null_equals_null;
        let any = !rows.is_empty();
        let mut null_keys = if self.null_aware { null_keys_of(&rows, nulls) } else { Vec::new() };
        let collisions = self.settings.hash_collisions;
        let ChosenTable { rows, table, reason } = match self.lookup {
            None => choose(&self.request(), facts, rows, nulls, collisions, &mut memory, tasks)?,
            Some(lookup) => {
                let probe = self.shape.probe;
                let ingredients = Ingredients {
                    lookup,
                    null_equals_null: nulls,
                    probe,
                    hash_collisions: collisions,
                    memory: budget,
                    tasks,
                };
                ordered::build(rows, &ingredients, &mut memory)?
            }
        };
        let has_null_keys = !null_keys.is_empty();
        if has_null_keys && !rows.is_empty() {
            // The rows may have moved.
            null_keys = null_keys_of(&rows, nulls);
        }
        let words = if self.marks { rows.id_space().div_ceil(64) } else { 0 };
        let matched: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        memory.resize(rows.bytes() + table.bytes() + null_keys.len() * 4 + words * 8)?;
        Ok((Built { rows, any, table, null_keys, has_null_keys, matched, _memory: memory }, reason))
    }
}

/// Rows with a NULL in a key that NULL does not equal.
pub(super) fn null_keys_of(rows: &Materialized, null_equals_null: &[bool]) -> Vec<u32> {
    let keys: Vec<usize> =
        (0..null_equals_null.len()).filter(|&k| !null_equals_null[k] && rows.has_nulls(k)).collect();
    if keys.is_empty() {
        return Vec::new();
    }
    rows.ids().filter(|&id| keys.iter().any(|&key| rows.value(id, key).is_null())).collect()
}
