//! Physical planning of set operations.

use super::needed::Needed;
use super::physical_plan::{OperatorKind, SinkKind};
use super::planned_work::PlannedWork;
use super::planner::Planner;
use super::stream::{Stream, find};
use crate::estimate::estimate_rows;
use crate::exec::aggregate::distinct;
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::set_operation::{count_sides, of_side};
use crate::plan::{self, Node, SetKind};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, Error, PhysicalType, Result};

impl<'p> Planner<'_, 'p> {
    pub(super) fn set_operation(
        &mut self,
        node: &'p Node,
        set: &'p plan::SetOperation,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let own = self.add_node(PlannedWork::Node(node));
        let all_rows = set.kind == SetKind::Union && set.all;
        // Whether rows are equal depends on all columns.
        let places: Vec<usize> = (0..set.columns.len())
            .filter(|&place| !all_rows || needed.contains(&set.columns[place]))
            .collect();
        let mut inputs = Vec::new();
        for (input, columns) in &set.inputs {
            let below = Needed::kept(places.iter().map(|&place| columns[place]));
            let filters: Vec<Pushed> = filters.iter().filter_map(|f| f.in_branch(set, columns)).collect();
            let stream = self.input(input, 0, &below, &filters)?;
            self.add_child(own, stream.node);
            let find = |&place: &usize| find(&stream.columns, columns[place]);
            let positions = places.iter().map(find).collect::<Result<Vec<_>>>()?;
            inputs.push((stream, positions));
        }
        let merged = |(i, &place): (usize, &usize)| {
            let metas: Vec<&ColumnMeta> =
                inputs.iter().map(|(s, positions)| &s.columns[positions[i]]).collect();
            merge_columns(set.columns[place], &metas)
        };
        let columns: Vec<ColumnMeta> = places.iter().enumerate().map(merged).collect();
        let mut streams = Vec::new();
        for (stream, positions) in inputs {
            streams.push(self.aligned(stream, &positions, columns.clone(), own)?);
        }
        match set.kind {
            SetKind::Union => self.union(node, set, (streams, columns), own),
            SetKind::Intersect | SetKind::Except => self.counted(node, set, (streams, columns), own),
        }
    }

    /// The rows of all inputs, which have these columns.
    fn union(
        &mut self,
        node: &'p Node,
        set: &'p plan::SetOperation,
        (inputs, columns): (Vec<Stream>, Vec<ColumnMeta>),
        own: usize,
    ) -> Result<Stream> {
        let parts = inputs.into_iter().flat_map(|stream| stream.parts).collect();
        let union = Stream { parts, columns, node: own };
        if set.all {
            return Ok(union);
        }
        let layout = Box::new(distinct(&union.columns, &set.columns)?);
        Ok(self.grouped(node, union, layout, own))
    }

    /// The rows of `INTERSECT` or `EXCEPT`, as often as the counts of equal rows on both sides tell.
    fn counted(
        &mut self,
        node: &'p Node,
        set: &'p plan::SetOperation,
        (inputs, columns): (Vec<Stream>, Vec<ColumnMeta>),
        own: usize,
    ) -> Result<Stream> {
        let [left, right] = <[Stream; 2]>::try_from(inputs)
            .map_err(|_| Error::internal("INTERSECT and EXCEPT have two inputs"))?;
        let mut parts = Vec::new();
        for (stream, is_left) in [(left, true), (right, false)] {
            let side = OperatorKind::Project(of_side(&columns, is_left)?);
            parts.extend(self.extend(stream, side, own).parts);
        }
        let groups = set.inputs.iter().map(|(input, _)| estimate_rows(input, self.columns)).sum();
        let layout = Box::new(count_sides(&columns)?);
        let both = Stream { parts, columns: columns.clone(), node: own };
        let counted = self.block(node, both, SinkKind::Aggregate { layout, groups }, columns, own);
        Ok(self.extend(counted, OperatorKind::Copies(set), own).sparse())
    }
}

/// What is known of a column that several columns flow into.
fn merge_columns(id: ColumnId, metas: &[&ColumnMeta]) -> ColumnMeta {
    let first = metas[0];
    let range = metas.iter().map(|meta| meta.range).reduce(|a, b| match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        _ => None,
    });
    let same = metas.iter().all(|meta| meta.physical == first.physical);
    ColumnMeta {
        id,
        ty: first.ty,
        physical: if same { first.physical } else { PhysicalType::I128 },
        nullable: metas.iter().any(|meta| meta.nullable),
        range: range.flatten(),
    }
}
