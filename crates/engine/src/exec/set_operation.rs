//! `INTERSECT` and `EXCEPT`, with and without `ALL`: count each row on either side, then give as many copies as the
//! operation wants.
//!
//! | | copies of a row that is `l` times left and `r` times right |
//! |---|---|
//! | `INTERSECT` | 1 if `l > 0` and `r > 0` |
//! | `INTERSECT ALL` | `min(l, r)` |
//! | `EXCEPT` | 1 if `l > 0` and `r = 0` |
//! | `EXCEPT ALL` | `l - r`, if positive |
//!
//! Both inputs feed one aggregation over all columns with two counts; see [`crate::exec::aggregate`]. `UNION` is not
//! here: it is several pipelines into one sink, and a `DISTINCT`.

use crate::exec::QueryContext;
use crate::exec::aggregate::MOST_GROUPS;
use crate::exec::aggregate::finish::{Merged, Morsel, Part};
use crate::exec::aggregate::layout::Layout;
use crate::exec::aggregate::partial::Partial;
use crate::exec::aggregate::state::{State, lock};
use crate::exec::aggregate::table::GroupTable;
use crate::exec::operator::{Blocking, Flow, Sink, SinkWorker, Tasks};
use crate::plan::SetKind;
use crate::relation::{Source, SourceWorker};
use crate::sync::{Mutex, OnceLock};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, ColumnId, Error, Result, Selection, Vector};
use std::sync::Arc;

/// The operator: the sink of the left input, and the right input's sink with the source. `left`, `right` and `columns`
/// go together one by one, and chunks have exactly these columns. All left pipelines run before the right one ends.
///
/// # Errors
/// Internal, for a union.
pub fn set_operation(
    kind: SetKind,
    all: bool,
    left: &[ColumnMeta],
    right: &[ColumnMeta],
    columns: &[ColumnId],
    context: &QueryContext,
) -> Result<(Arc<dyn Sink>, Blocking)> {
    if kind == SetKind::Union {
        return Err(Error::internal("a union needs no set operation"));
    }
    let keys: Vec<ColumnMeta> =
        columns.iter().zip(left.iter().zip(right)).map(|(&id, (left, right))| common(id, left, right)).collect();
    let shared = Arc::new(Shared {
        kind,
        all,
        layout: Layout::counting(&keys, 2),
        context: context.clone(),
        partials: Mutex::default(),
        merged: OnceLock::new(),
    });
    let blocking = Blocking {
        sink: Arc::new(Side { shared: shared.clone(), side: 1 }),
        source: Arc::new(SetSource { shared: shared.clone() }),
        output: keys,
    };
    Ok((Arc::new(Side { shared, side: 0 }), blocking))
}

/// What is known of a column that has the values of both.
fn common(id: ColumnId, left: &ColumnMeta, right: &ColumnMeta) -> ColumnMeta {
    let range = left.range.zip(right.range).map(|(l, r)| (l.0.min(r.0), l.1.max(r.1)));
    let physical = if left.physical == right.physical { left.physical } else { left.ty.physical() };
    ColumnMeta { id, ty: left.ty, physical, nullable: left.nullable || right.nullable, range }
}

struct Shared {
    kind: SetKind,
    all: bool,
    layout: Layout,
    context: QueryContext,
    partials: Mutex<Vec<Partial>>,
    merged: OnceLock<Merged>,
}

impl Shared {
    fn new_partial(&self) -> Result<Partial> {
        let table = GroupTable::new(&self.layout.keys, 0, self.context.settings.hash_collisions);
        Partial::new(&self.layout, table, &self.context)
    }

    fn copies(&self, left: i64, right: i64) -> i64 {
        match (self.kind, self.all) {
            (SetKind::Intersect, true) => left.min(right),
            (SetKind::Intersect, false) => i64::from(left > 0 && right > 0),
            (_, true) => (left - right).max(0),
            (_, false) => i64::from(left > 0 && right == 0),
        }
    }
}

/// One input: the left (0) or the right (1).
struct Side {
    shared: Arc<Shared>,
    side: usize,
}

impl Sink for Side {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let partial = self.shared.new_partial()?;
        Ok(Box::new(SideWorker { shared: self.shared.clone(), side: self.side, partial }))
    }

    fn finish(&self, tasks: &dyn Tasks) -> Result<()> {
        if self.side == 0 {
            return Ok(());
        }
        let mut partials = std::mem::take(&mut *lock(&self.shared.partials));
        if partials.is_empty() {
            partials.push(self.shared.new_partial()?);
        }
        let merged = Merged::new(&self.shared.layout, &self.shared.context, partials, None, tasks)?;
        self.shared.merged.set(merged).map_err(|_| Error::internal("a set operation was finished twice"))
    }
}

struct SideWorker {
    shared: Arc<Shared>,
    side: usize,
    partial: Partial,
}

impl SinkWorker for SideWorker {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        self.partial.count(chunk, self.side)?;
        if self.partial.table.groups() >= MOST_GROUPS {
            let full = std::mem::replace(&mut self.partial, self.shared.new_partial()?);
            lock(&self.shared.partials).push(full);
        }
        Ok(Flow::Continue)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        if self.partial.rows > 0 {
            lock(&self.shared.partials).push(self.partial);
        }
        Ok(())
    }
}

struct SetSource {
    shared: Arc<Shared>,
}

impl Source for SetSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(SetReader {
            vectors: self.shared.layout.keys.iter().map(|meta| Vector::new(meta.physical)).collect(),
            shared: self.shared.clone(),
            morsel: None,
            number: 0,
            copies: 0,
            ids: Vec::new(),
        }))
    }

    fn progress(&self) -> Option<f64> {
        self.shared.merged.get().map(Merged::progress)
    }

    fn pieces(&self) -> Option<usize> {
        self.shared.merged.get().and_then(Merged::pieces)
    }

    fn has_order(&self) -> bool {
        self.shared.merged.get().is_some_and(Merged::has_order)
    }
}

struct SetReader {
    shared: Arc<Shared>,
    vectors: Vec<Vector>,
    /// What is left of the morsel; its first group is being given.
    morsel: Option<Morsel>,
    number: u64,
    /// Copies of the first group that have been given.
    copies: i64,
    ids: Vec<u32>,
}

impl SourceWorker for SetReader {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let merged = self.shared.merged.get().ok_or_else(|| Error::internal("a set operation is not finished"))?;
        if self.morsel.as_ref().is_none_or(|morsel| morsel.groups.is_empty()) {
            // Its memory first, then the next one's.
            self.morsel = None;
            self.vectors.iter_mut().for_each(|vector| *vector = Vector::new(vector.physical()));
            (self.morsel, self.copies) = (merged.next(&self.shared.layout)?, 0);
        }
        let Some(Morsel { number, part, groups }) = &mut self.morsel else { return Ok(false) };
        self.number = *number;
        let (left, right) = (counts(part, 0)?, counts(part, 1)?);
        let most = self.shared.context.settings.chunk_rows;
        self.ids.clear();
        while groups.start < groups.end && self.ids.len() < most {
            let group = groups.start;
            let wanted = self.shared.copies(left[group], right[group]) - self.copies;
            let given = wanted.min((most - self.ids.len()) as i64);
            self.ids.extend(std::iter::repeat_n(group as u32, given as usize));
            if given == wanted {
                groups.start += 1;
                self.copies = 0;
            } else {
                self.copies += given;
            }
        }
        chunk.reset(self.ids.len());
        let dense = chunk.push_group(Selection::ALL);
        for (column, vector) in self.vectors.iter_mut().enumerate() {
            part.keys.gather(column, &self.ids, vector);
            chunk.push_column(vector.clone(), dense);
        }
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.number
    }
}

fn counts(part: &Part, side: usize) -> Result<&[i64]> {
    match &part.states[side] {
        State::Count(counts) => Ok(counts),
        _ => Err(Error::internal("a set operation counts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::{Chance, column, context, drain, push_all};
    use entasis_vector::{DataType, Value};
    use std::collections::HashMap;

    #[test]
    fn set_operations_count_copies() {
        let mut chance = Chance(31);
        let metas = [column(0, DataType::Int32), column(1, DataType::Varchar)];
        let mut make = |count: usize| -> Vec<Vec<Value>> {
            let row = |_| {
                let text = Value::Text(format!("some text that is long {}", chance.below(4)).into());
                let number = Value::Integer(chance.below(6).into());
                vec![number, text].into_iter().map(|v| if chance.below(9) == 0 { Value::Null } else { v }).collect()
            };
            (0..count).map(row).collect()
        };
        let (left, right) = (make(60), make(50));
        for (chunk_rows, collide, workers) in [(3, false, 2), (64, true, 1), (2048, false, 2)] {
            for (kind, all) in [SetKind::Intersect, SetKind::Except].into_iter().flat_map(|k| [(k, false), (k, true)]) {
                for right in [&right[..], &[]] {
                    let context = context(chunk_rows, collide);
                    let columns = [ColumnId(5), ColumnId(6)];
                    let (sink, blocking) = set_operation(kind, all, &metas, &metas, &columns, &context).unwrap();
                    let mut chance = Chance(32);
                    push_all(&*sink, &metas, &left, chunk_rows, workers, &mut chance).unwrap();
                    push_all(&*blocking.sink, &metas, right, chunk_rows, workers, &mut chance).unwrap();
                    let result = drain(&*blocking.source, &blocking.output, chunk_rows).unwrap();
                    let count = |rows: &[Vec<Value>]| {
                        let mut counts: HashMap<Vec<Value>, i64> = HashMap::new();
                        rows.iter().for_each(|row| *counts.entry(row.clone()).or_default() += 1);
                        counts
                    };
                    let (l, r, got) = (count(&left), count(right), count(&result));
                    for (row, &l) in &l {
                        let r = r.get(row).copied().unwrap_or(0);
                        let expected = match (kind, all) {
                            (SetKind::Intersect, true) => l.min(r),
                            (SetKind::Intersect, false) => l.min(r).min(1),
                            (_, true) => (l - r).max(0),
                            (_, false) => i64::from(r == 0),
                        };
                        assert_eq!(got.get(row).copied().unwrap_or(0), expected, "{kind:?} all {all}: {row:?}");
                    }
                    assert!(got.keys().all(|row| l.contains_key(row)));
                }
            }
        }
    }
}
