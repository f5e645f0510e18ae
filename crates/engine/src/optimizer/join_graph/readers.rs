//! Who reads a column of a region, and hence what a set of relations carries into a join: the columns that a
//! later join or somebody above reads.

use super::{Attached, Graph, Set, members};
use crate::cost::Costs;
use crate::estimate::join_cost::{WeighedSide, Width};
use crate::estimate::width::widths;
use crate::plan::Columns;
use crate::plan::tree::{ColumnSet, reads_all};
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use std::collections::HashMap;

/// A column of a relation that joins or somebody above the region read.
#[derive(Debug)]
pub(super) struct ReadColumn {
    width: Width,
    /// The relations that must be together before no join reads it any more; all, if somebody above does.
    readers: Set,
}

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
        side
    }
}
