//! Chooses the build side of a join: the one with the lower cost ([`Costs::join`](crate::cost::Costs)).
//!
//! More is known here than when joins are ordered: which columns are read above, how much memory is left, and
//! hence whether the rows will become tuples.

use crate::context::QueryContext;
use crate::cost::Costs;
use crate::estimate::join_cost::{By, JoinCost, WeighedJoin};
use crate::estimate::{Estimate, estimate, estimate_join, width};
use crate::exec::join::two_pass::counted_bytes;
use crate::exec::key_filter::Expected;
use crate::exec::temp_compression::expected_bytes;
use crate::plan::tree::{ColumnSet, reads_all};
use crate::plan::{self, Columns, JoinKind, Node};
use entasis_vector::expr::{ColumnMeta, Expr};
use std::sync::Arc;

/// A join with the estimated costs of building on either side.
#[derive(Debug)]
pub(crate) struct Weighed {
    costs: Arc<Costs>,
    join: WeighedJoin,
}

impl Weighed {
    /// The inputs of `join`, if the columns `above` are read above. `by_bounds`: matches are found by bounds.
    pub(crate) fn new(
        join: &plan::Join,
        by_bounds: bool,
        columns: &Columns,
        above: &ColumnSet,
        context: &QueryContext,
    ) -> Weighed {
        let costs = width::costs(&join.left);
        let by = match (by_bounds, join.on.is_empty()) {
            (true, _) => By::Order,
            (false, false) => By::Keys,
            (false, true) => By::Nothing,
        };
        let join = weigh(join, by, columns, above, &costs, context);
        Weighed { costs, join }
    }

    /// The side to build on.
    pub(crate) fn choose(&self) -> JoinCost {
        self.costs.join(&self.join)
    }

    /// The expected number of build rows.
    pub(crate) fn kept_rows(&self) -> f64 {
        if self.choose().keeps_left { self.join.left.rows } else { self.join.right.rows }
    }

    /// See [`Costs::left_to_do`].
    pub(crate) fn left_to_do(&self, rows: f64) -> Option<(f64, f64)> {
        self.costs.left_to_do(&self.join, self.choose().keeps_left, rows)
    }
}

fn weigh(
    join: &plan::Join,
    by: By,
    columns: &Columns,
    above: &ColumnSet,
    costs: &Costs,
    context: &QueryContext,
) -> WeighedJoin {
    let residual = reads_all(&join.residual);
    let side = |node: &Node, estimate: &Estimate, keys: Vec<&Expr>| {
        let mut own = reads_all(keys.iter().copied());
        own.add(&residual);
        let mut side = width::side(node, estimate.rows, (&own, above), columns, costs);
        // A computed key is kept beside the columns that it is computed from.
        let computed = keys
            .iter()
            .filter(|key| !matches!(key, Expr::Column { .. }) && reads_all([**key]).is_subset(above));
        side.keys.bytes += computed.map(|key| key.ty().physical().width() as f64).sum::<f64>();
        let kept = node.columns().into_iter().filter(|id| above.contains(*id));
        let metas: Vec<ColumnMeta> = kept.map(|id| estimate.meta(id, columns.ty(id))).collect();
        side.tuple = expected_bytes(&metas, (estimate.rows, side.payload.bytes), context);
        side.per_key = estimate.rows / estimate.groups(keys.iter().copied()).max(1.0);
        let keys: Vec<_> = keys.into_iter().map(|key| (key, estimate.expression(key))).collect();
        if side.tuple.is_none() {
            let bytes = (estimate.rows, side.keys.bytes);
            side.counted = counted_bytes(node, &keys, &metas, bytes, context);
        }
        side
    };
    let (left, right) = (estimate(&join.left, columns), estimate(&join.right, columns));
    WeighedJoin {
        kind: join.kind,
        by,
        left: side(&join.left, &left, join.on.iter().map(|key| &key.left).collect()),
        right: side(&join.right, &right, join.on.iter().map(|key| &key.right).collect()),
        rows: estimate_join(join.kind, &join.on, &join.residual, left, right).rows,
        memory: context.memory.free() as f64,
    }
}

/// What is expected of the probe side: the number of rows, the share with a match of the keys, and the number
/// of matches.
pub(crate) fn expected(join: &plan::Join, columns: &Columns, keeps_left: bool) -> Expected {
    let (mut probe, mut build, mut on) = (&join.left, &join.right, join.on.clone());
    if keeps_left {
        (probe, build) = (build, probe);
        on.iter_mut().for_each(|key| std::mem::swap(&mut key.left, &mut key.right));
    }
    let (probe, build) = (estimate(probe, columns), estimate(build, columns));
    let (rows, build_rows) = (probe.rows, build.rows);
    let pairs = estimate_join(JoinKind::Inner, &on, &[], probe.clone(), build.clone()).rows;
    let matches = estimate_join(JoinKind::Semi, &on, &[], probe, build).rows;
    let (matching, per_key) = (matches / rows.max(1.0), pairs / matches.max(1.0));
    Expected { rows, matching, per_key, build_rows, is_filtered: false }
}

/// The chosen side and the reason, for the profile; `None` if there was no choice.
pub(crate) fn reason(chosen: &JoinCost) -> Option<String> {
    let (kept, other) = if chosen.keeps_left { ("left", "right") } else { ("right", "left") };
    let milliseconds = |cost: f64| cost / 1e6;
    chosen.other.map(|cost| {
        let [own, cost] = [chosen.cost, cost].map(milliseconds);
        let but = if cost < own { " and more memory" } else { "" };
        format!("the build side is the {kept} input: estimated {own:.3} ms; {cost:.3} ms{but} with the {other} one")
    })
}
