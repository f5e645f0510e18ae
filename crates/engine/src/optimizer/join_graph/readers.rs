//! Who reads a column of a region, and hence what a set of relations carries into a join: the columns that a
//! later join or somebody above reads; and how often it has the join's keys.

use super::graph::{Attached, Class, Graph, ReadColumn, Set, members};
use crate::cost::Costs;
use crate::estimate::combinations;
use crate::estimate::join_cost::{WeighedSide, Width};
use crate::estimate::width::widths;
use crate::plan::Columns;
use crate::plan::tree::{ColumnSet, reads_all};
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use std::collections::HashMap;

impl Graph {
    /// Finds out which columns are read by whom, and what each weighs.
    pub(super) fn find_readers(&mut self, columns: &Columns, above: &ColumnSet, costs: &Costs) {
        let mut readers: HashMap<ColumnId, Set> = above.iter().map(|id| (id, !0)).collect();
        let mut read = |exprs: &mut dyn Iterator<Item = &Expr>, by: Set| {
            reads_all(exprs).iter().for_each(|id| *readers.entry(id).or_insert(0) |= by);
        };
        read(&mut self.above.iter().chain(self.computed.iter().map(|(_, expr)| expr)), !0);
        for class in &self.classes {
            let all = class.members.iter().fold(0, |set, member| set | 1 << member.relation);
            read(&mut class.members.iter().map(|member| &member.expr), all);
        }
        self.predicates
            .iter()
            .for_each(|predicate| read(&mut std::iter::once(&predicate.expr), predicate.reads));
        for (index, relation) in self.relations.iter().enumerate() {
            if let Some(Attached { on, residual, needs, .. }) = &relation.attached {
                read(
                    &mut on.iter().flat_map(|key| [&key.left, &key.right]).chain(residual),
                    needs | 1 << index,
                );
            }
        }
        for relation in &mut self.relations {
            let node = relation.node.as_ref().expect("relations are there until the plan is built");
            let widths = widths(node, columns, costs, |id| readers.contains_key(&id));
            relation.wanted =
                widths.into_iter().map(|(id, width)| ReadColumn { width, readers: readers[&id] }).collect();
        }
    }

    /// The side that `set`, of so many rows, is of a join with `other`.
    pub(in crate::optimizer) fn side(&self, set: Set, other: Set, rows: f64) -> WeighedSide {
        let mut side = WeighedSide { rows, ..WeighedSide::default() };
        for wanted in members(set).flat_map(|i| &self.relations[i].wanted) {
            // What has been joined before has been read before.
            let read = if set.count_ones() == 1 { wanted.width.read } else { 0.0 };
            let width = Width { read, ..wanted.width };
            if wanted.readers & !(set | other) != 0 {
                side.payload.add(width);
            } else if wanted.readers & !set != 0 {
                side.keys.add(width);
            }
        }
        side.per_key = self.per_key(set, other, rows);
        side
    }

    /// Rows of `set`, which has so many in all, of a key by which it is joined with `other`: of a class, the
    /// member with the fewest values counts. 0 if nothing is known of the keys.
    fn per_key(&self, set: Set, other: Set, rows: f64) -> f64 {
        if set.count_ones() == 1
            && let Some(Attached { on, .. }) = &self.relations[set.trailing_zeros() as usize].attached
        {
            let own = &self.relations[set.trailing_zeros() as usize].estimate;
            return rows / own.groups(on.iter().map(|key| &key.right)).max(1.0);
        }
        let values = |class: &Class| {
            let members = |set: Set| class.members.iter().filter(move |m| set >> m.relation & 1 == 1);
            members(other).next()?;
            members(set).map(|member| member.estimate.distinct).reduce(f64::min)
        };
        let counts: Vec<f64> = self.classes.iter().filter_map(values).collect();
        if counts.is_empty() { 0.0 } else { rows / combinations(counts).clamp(1.0, rows.max(1.0)) }
    }
}
