//! Physical planning of set operations.

use super::builder::Builder;
use super::needed::Needed;
use super::stream::{Stream, find};
use crate::estimate::estimate_rows;
use crate::exec::aggregate::distinct;
use crate::exec::align::Align;
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::profile::Recorder;
use crate::exec::set_operation::{Copies, count_sides, of_side};
use crate::plan::{self, Node, SetKind};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, Error, PhysicalType, Result};
use std::sync::Arc;

impl Builder<'_> {
    pub(super) fn set_operation(
        &mut self,
        node: &Node,
        set: &plan::SetOperation,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let recorder = self.recorder(node);
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
            recorder.add_child(&stream.recorder);
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
            let operator = Align::new(&stream.columns, &positions, &columns)?;
            streams.push(Stream { columns: columns.clone(), ..stream.extend(Arc::new(operator), &recorder) });
        }
        if set.kind == SetKind::Union {
            return self.union(node, set, (streams, columns), recorder);
        }
        self.counted(node, set, (streams, columns), recorder)
    }

    /// The rows of all inputs, which have these columns.
    fn union(
        &mut self,
        node: &Node,
        set: &plan::SetOperation,
        (inputs, columns): (Vec<Stream>, Vec<ColumnMeta>),
        recorder: Arc<Recorder>,
    ) -> Result<Stream> {
        let parts = inputs.into_iter().flat_map(|stream| stream.parts).collect();
        let union = Stream { parts, columns, recorder: recorder.clone() };
        if set.all {
            return Ok(union);
        }
        let groups = estimate_rows(node, self.columns);
        let context = recorder.context(self.context);
        let blocking = distinct(&union.columns, &set.columns, groups, &context, &recorder)?;
        Ok(self.block_same(node, union, blocking, recorder))
    }

    /// The rows of `INTERSECT` or `EXCEPT`, as often as the counts of equal rows on both sides tell.
    fn counted(
        &mut self,
        node: &Node,
        set: &plan::SetOperation,
        (inputs, columns): (Vec<Stream>, Vec<ColumnMeta>),
        recorder: Arc<Recorder>,
    ) -> Result<Stream> {
        let [left, right] = <[Stream; 2]>::try_from(inputs)
            .map_err(|_| Error::internal("INTERSECT and EXCEPT have two inputs"))?;
        let mut parts = Vec::new();
        for (stream, is_left) in [(left, true), (right, false)] {
            parts.extend(stream.extend(Arc::new(of_side(&columns, is_left)?), &recorder).parts);
        }
        let rows = set.inputs.iter().map(|(input, _)| estimate_rows(input, self.columns)).sum();
        let context = recorder.context(self.context);
        let blocking = count_sides(&columns, rows, &context, &recorder)?;
        let count = columns.len();
        let both = Stream { parts, columns, recorder: recorder.clone() };
        let mut counted = self.block_same(node, both, blocking, recorder.clone());
        counted.columns.truncate(count);
        Ok(counted.extend(Arc::new(Copies::new(set, &context)), &recorder).sparse())
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
