//! Facts: what is certain of columns before anything has run. Unlike estimates, kernels and rules may rely on
//! them.
//!
//! Ranges and the absence of NULLs come from the snapshots of tables, which are the same when the plan runs,
//! and from files that vouch for their bounds. They hold for all rows that filters and joins leave; the side
//! of an outer join that may find no match gains NULLs. What a plan computes has the range that its program
//! derives.

use crate::plan::{Columns, JoinKind, Node};
use crate::relation::Relation;
use entasis_vector::expr::{ColumnMeta, Program};
use entasis_vector::{ColumnId, Value};

/// The facts about the columns of `node`, in any order.
pub(crate) fn facts(node: &Node, columns: &Columns) -> Vec<ColumnMeta> {
    let unknown = |id: ColumnId| ColumnMeta::new(id, columns.ty(id));
    match node {
        Node::Scan(scan) => relation_columns(&*scan.relation, &scan.columns, columns),
        Node::Values(values) => {
            let column = |(place, &id): (usize, &ColumnId)| {
                values_column(id, columns, values.rows.iter().map(move |row| &row[place]))
            };
            values.columns.iter().enumerate().map(column).collect()
        }
        Node::Filter(filter) => facts(&filter.input, columns),
        Node::Sort(sort) => facts(&sort.input, columns),
        Node::Limit(limit) => facts(&limit.input, columns),
        Node::Project(project) => {
            let mut known = facts(&project.input, columns);
            let exprs: Vec<_> = project.exprs.iter().map(|(_, expr)| expr.clone()).collect();
            let computed = match Program::compile(&exprs, &known) {
                Ok(program) => program.outputs().to_vec(),
                Err(_) => project.exprs.iter().map(|(id, _)| unknown(*id)).collect(),
            };
            let named =
                project.exprs.iter().zip(computed).map(|((id, _), meta)| ColumnMeta { id: *id, ..meta });
            known.extend(named);
            known
        }
        Node::Join(join) => {
            let side = |input: &Node, may_miss: bool| {
                let mut known = facts(input, columns);
                known.iter_mut().for_each(|meta| meta.nullable |= may_miss);
                known
            };
            let (left, right) = match join.kind {
                JoinKind::Inner => (false, Some(false)),
                JoinKind::Left | JoinKind::Single => (false, Some(true)),
                JoinKind::AsOf { outer } => (false, Some(outer)),
                JoinKind::Right => (true, Some(false)),
                JoinKind::Full => (true, Some(true)),
                JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti | JoinKind::Mark { .. } => {
                    (false, None)
                }
            };
            let mut known = side(&join.left, left);
            known.extend(right.into_iter().flat_map(|may_miss| side(&join.right, may_miss)));
            if let JoinKind::Mark { mark, .. } = join.kind {
                known.push(unknown(mark));
            }
            known
        }
        Node::Unnest(unnest) => {
            let mut known = facts(&unnest.input, columns);
            known.extend(unnest.lists.iter().map(|(id, _)| unknown(*id)));
            known
        }
        Node::Window(window) => {
            let mut known = facts(&window.input, columns);
            known.extend(window.calls.iter().map(|(id, _)| unknown(*id)));
            known
        }
        Node::Distinct(distinct) if distinct.is_partial => facts(&distinct.input, columns),
        Node::Aggregate(_)
        | Node::Distinct(_)
        | Node::SetOperation(_)
        | Node::Dependent(_)
        | Node::Recursion(_) => node.columns().into_iter().map(unknown).collect(),
    }
}

/// What is known of columns of a relation.
pub(crate) fn relation_columns(
    relation: &dyn Relation,
    wanted: &[(ColumnId, usize)],
    columns: &Columns,
) -> Vec<ColumnMeta> {
    if let Some(table) = relation.table() {
        let column = |&(id, index): &(ColumnId, usize)| {
            let summary = table.column_statistics(index);
            let mut meta = ColumnMeta::new(id, columns.ty(id));
            meta.nullable = summary.nulls > 0;
            narrow(&mut meta, summary.min.as_ref(), summary.max.as_ref());
            meta
        };
        return wanted.iter().map(column).collect();
    }
    let statistics = relation.statistics();
    let column = |&(id, index): &(ColumnId, usize)| {
        let mut meta = ColumnMeta::new(id, columns.ty(id));
        if let Some(known) = statistics.columns.get(index).filter(|known| known.bounds_are_exact) {
            meta.nullable = known.nulls != Some(0);
            narrow(&mut meta, known.min.as_ref(), known.max.as_ref());
        }
        meta
    };
    wanted.iter().map(column).collect()
}

/// What is known of a column whose values are all there.
pub(crate) fn values_column<'v>(
    id: ColumnId,
    columns: &Columns,
    values: impl Iterator<Item = &'v Value>,
) -> ColumnMeta {
    let mut meta = ColumnMeta::new(id, columns.ty(id));
    let (mut min, mut max): (Option<&Value>, Option<&Value>) = (None, None);
    meta.nullable = false;
    for value in values {
        if value.is_null() {
            meta.nullable = true;
            continue;
        }
        min = Some(min.map_or(value, |m| if value.total_cmp(m).is_lt() { value } else { m }));
        max = Some(max.map_or(value, |m| if value.total_cmp(m).is_gt() { value } else { m }));
    }
    narrow(&mut meta, min, max);
    meta
}

/// Narrows the range of an integer column to known bounds.
fn narrow(meta: &mut ColumnMeta, min: Option<&Value>, max: Option<&Value>) {
    if meta.range.is_some()
        && let (Some(Value::Integer(min)), Some(Value::Integer(max))) = (min, max)
    {
        meta.range = Some((*min, *max));
    }
}
