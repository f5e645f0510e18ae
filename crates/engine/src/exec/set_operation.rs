//! `INTERSECT` and `EXCEPT`, with and without `ALL`: count each row on either side, then output as many
//! copies as the operation requires.
//!
//! ```text
//! left input  → its columns, and true  ─┐
//!                                       ├→ aggregation by all columns: how many there are, how many are left → [`Copies`]
//! right input → its columns, and false ─┘
//! ```
//!
//! | | copies of a row that is `l` times left and `r` times right |
//! |---|---|
//! | `INTERSECT` | 1 if `l > 0` and `r > 0` |
//! | `INTERSECT ALL` | `min(l, r)` |
//! | `EXCEPT` | 1 if `l > 0` and `r = 0` |
//! | `EXCEPT ALL` | `l - r`, if positive |
//!
//! The aggregation is that of `GROUP BY` ([`crate::exec::aggregate`]): rows for which there is no memory wait
//! in temporary files, and the result is in memory one partition at a time. Copies take no memory: they are
//! one position that a chunk's selection repeats.
//!
//! `UNION` is not here: it is several pipelines into one sink, and a `DISTINCT`.

use crate::context::QueryContext;
use crate::exec::aggregate::layout::AggregateLayout;
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::exec::project::Project;
use crate::plan::{AggregateCall, AggregateFunction, SetKind, SetOperation};
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{Buffer, Chunk, ColumnId, DataType, PhysicalType, Result, Vector};
use std::sync::Arc;

/// The id of the column that tells whether a row is from the left input. These ids are the greatest ones,
/// which no plan uses.
const IS_LEFT: ColumnId = ColumnId(u32::MAX);
/// The id of the number of equal rows.
const ALL: ColumnId = ColumnId(u32::MAX - 1);
/// The id of the number of those of the left input.
const LEFT: ColumnId = ColumnId(u32::MAX - 2);

/// Adds to the columns of one input the one that identifies the input.
///
/// # Errors
/// Internal.
pub(crate) fn of_side(columns: &[ColumnMeta], is_left: bool) -> Result<Project> {
    let mut exprs = all_of(columns);
    exprs.push((IS_LEFT, Expr::boolean(is_left)));
    Project::new(&exprs, columns, &|_| false)
}

/// What counts equal rows of both inputs, each with the column of [`of_side`]. The output has `columns`, then
/// the counts that [`Copies`] reads.
///
/// # Errors
/// Internal.
pub(crate) fn count_sides(columns: &[ColumnMeta]) -> Result<AggregateLayout> {
    let mut input = columns.to_vec();
    input.push(ColumnMeta { nullable: false, ..ColumnMeta::new(IS_LEFT, DataType::Boolean) });
    let count = |filter| AggregateCall {
        function: AggregateFunction::CountStar,
        args: Vec::new(),
        distinct: false,
        filter,
        order_by: Vec::new(),
        ty: DataType::Int64,
    };
    let counts = [(ALL, count(None)), (LEFT, count(Some(Expr::column(IS_LEFT, DataType::Boolean))))];
    AggregateLayout::new(&input, &all_of(columns), &counts)
}

fn all_of(columns: &[ColumnMeta]) -> Vec<(ColumnId, Expr)> {
    columns.iter().map(|meta| (meta.id, Expr::column(meta.id, meta.ty))).collect()
}

/// Repeats each counted row as often as the operation requires, and drops the counts.
#[derive(Clone)]
pub(crate) struct Copies {
    kind: SetKind,
    all: bool,
    context: QueryContext,
}

impl Copies {
    /// The copies that `set`, which is not a union, requires.
    pub(crate) fn new(set: &SetOperation, context: &QueryContext) -> Copies {
        Copies { kind: set.kind, all: set.all, context: context.clone() }
    }

    /// The number of copies of a row that occurs `left` times in the left and `right` times in the right
    /// input.
    fn of(&self, left: i64, right: i64) -> i64 {
        match (self.kind, self.all) {
            (SetKind::Intersect, true) => left.min(right),
            (SetKind::Intersect, false) => i64::from(left > 0 && right > 0),
            (_, true) => (left - right).max(0),
            (_, false) => i64::from(left > 0 && right == 0),
        }
    }
}

impl OperatorFactory for Copies {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Worker {
            copies: self.clone(),
            all: Vector::new(PhysicalType::I64),
            left: Vector::new(PhysicalType::I64),
            picks: Vec::new(),
            spares: Vec::new(),
            output: Chunk::new(),
        }))
    }
}

struct Worker {
    copies: Copies,
    /// The counts of a chunk.
    all: Vector,
    left: Vector,
    /// The rows of the next chunk that is output.
    picks: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
    output: Chunk,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let columns = chunk.columns().len() - 2;
        chunk.flatten_column(columns, &mut self.all);
        chunk.flatten_column(columns + 1, &mut self.left);
        let (all, left) = (self.all.values::<i64>(), self.left.values::<i64>());
        let most = self.copies.context.settings.chunk_rows;
        // The current row, and how many copies of it have been pushed.
        let (mut row, mut given) = (0, 0);
        loop {
            let mut count = 0;
            self.picks.resize(most, 0);
            while row < chunk.len() && count < most {
                let wanted = self.copies.of(left[row], all[row] - left[row]) - given;
                // PERF: without a branch on whether a row is kept.
                if wanted <= 1 {
                    self.picks[count] = row as u16;
                    count += wanted as usize;
                    (row, given) = (row + 1, 0);
                    continue;
                }
                let now = wanted.min((most - count) as i64);
                self.picks[count..count + now as usize].fill(row as u16);
                count += now as usize;
                (row, given) = if now == wanted { (row + 1, 0) } else { (row, given + now) };
            }
            self.picks.truncate(count);
            if count == 0 {
                return Ok(Flow::Continue);
            }
            // There may be any number of copies.
            self.copies.context.check()?;
            if next.is_over() {
                return Ok(Flow::Stop);
            }
            self.output.reset(chunk.len());
            for group in chunk.groups() {
                self.output.push_group(group.clone());
            }
            for column in &chunk.columns()[..columns] {
                self.output.push_column(column.vector.clone(), column.group);
            }
            self.output.select(&self.picks, &mut self.spares);
            let flow = next.push(&mut self.output);
            self.output.reset(0);
            if flow? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    }
}
