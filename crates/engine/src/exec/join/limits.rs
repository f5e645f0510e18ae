//! Limits: what a small build side says of inequalities with its columns, before the probe side is read.
//!
//! If pairs must satisfy `x > y`, rows of the probe side have partners only if their `x` is above the
//! least `y` of the build side. So the least `y` is published as a [`Threshold`], by which the scan of the
//! probe side skips blocks and drops rows. A scalar subquery is a build side of one row: in `WHERE x >
//! (SELECT …)` its value is a constant by the time that the scan begins.
//!
//! What is compared must be a column of the probe side, or an integer column cast to a wider type.

use super::Computed;
use crate::exec::key_filter::PlannedTest;
use crate::exec::key_filter::pushed::numbers_of;
use crate::exec::materialized::Materialized;
use crate::plan::tree::reads;
use crate::threshold::Threshold;
use entasis_vector::expr::{ColumnMeta, CompareOp, Expr};
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Result, Selection, Value, Vector};

/// What an inequality says of a column of the probe side.
#[derive(Debug)]
pub(crate) struct JoinLimit {
    /// The column.
    column: ColumnId,
    /// The column is to be at least a value, rather than at most.
    is_least: bool,
    /// What the column is compared with, in terms of the build side's columns.
    value: Expr,
    /// The type of the column.
    ty: DataType,
}

impl JoinLimit {
    /// The limit that a condition of a join sets to a column of the probe side. `is_probe` and `is_build`
    /// tell the columns of the two sides.
    pub(crate) fn of(
        condition: &Expr,
        is_probe: impl Fn(ColumnId) -> bool,
        is_build: impl Fn(ColumnId) -> bool,
    ) -> Option<JoinLimit> {
        let Expr::Compare { op, left, right } = condition else { return None };
        let is_value = |expr: &Expr| {
            let columns = reads(expr);
            columns.iter().next().is_some() && columns.iter().all(&is_build)
        };
        let is_column = |expr: &Expr| numbers_of(expr).filter(|(id, _)| is_probe(*id));
        let (op, (column, ty), value) = match (is_column(left), is_column(right)) {
            (Some(column), _) if is_value(right) => (*op, column, right),
            (_, Some(column)) if is_value(left) => (op.mirrored(), column, left),
            _ => return None,
        };
        let is_least = match op {
            CompareOp::Gt | CompareOp::GtEq => true,
            CompareOp::Lt | CompareOp::LtEq => false,
            _ => return None,
        };
        Threshold::is_possible(ty).then(|| JoinLimit { column, is_least, value: (**value).clone(), ty })
    }

    /// The column of the probe side.
    pub(crate) fn column(&self) -> ColumnId {
        self.column
    }

    /// What is tested where the column is read.
    pub(crate) fn test(&self) -> PlannedTest {
        PlannedTest::Limit { is_least: self.is_least }
    }

    /// Publishes the limit as `threshold`, if the build side has few rows. Returns what `EXPLAIN` says of it.
    pub(crate) fn publish(&self, rows: &Materialized, threshold: &Threshold) -> Option<String> {
        if rows.rows() > CHUNK_ROWS {
            return None;
        }
        // What fails here fails again for the first pair, if there is one.
        let values = self.values(rows).ok()?;
        let values = values.into_iter().filter(|value| !value.is_null());
        let value = match self.is_least {
            true => values.min_by(|a, b| a.total_cmp(b))?,
            false => values.max_by(|a, b| a.total_cmp(b))?,
        };
        let value = match (value, self.ty.integer_range()) {
            (Value::Integer(value), Some((least, greatest))) => Value::Integer(value.clamp(least, greatest)),
            (value, _) => value,
        };
        threshold.tighten(value);
        let bound = if self.is_least { "a lower" } else { "an upper" };
        Some(format!("its rows set {bound} limit to the probe side"))
    }

    fn values(&self, rows: &Materialized) -> Result<Vec<Value>> {
        let ids: Vec<u32> = rows.ids().collect();
        let metas: &[ColumnMeta] = rows.columns();
        let mut vectors: Vec<Vector> = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        rows.gather_all(&(0..metas.len()).collect::<Vec<_>>(), &ids, &mut vectors);
        let mut chunk = Chunk::new();
        chunk.reset(ids.len());
        let group = chunk.push_group(Selection::ALL);
        vectors.into_iter().for_each(|vector| chunk.push_column(vector, group));
        let mut computed = Computed::new(std::slice::from_ref(&self.value), metas)?.worker();
        let (values, positions) = computed.compute(&chunk)?;
        Ok((0..ids.len()).map(|row| values.value(row, positions[0], self.value.ty())).collect())
    }
}
