//! A recursion that reads columns of rows around it.
//!
//! It stands in a plan until [decorrelation](crate::optimizer::decorrelate) has made a relation of it, which
//! computes it for all of these rows at once. One that reads nothing around is a relation from the beginning
//! ([`crate::recursive`]).

use super::tree::{each_expr_mut, substitute};
use super::{Columns, Node, Output, Plan};
use crate::relation::Relation;
use crate::work_table::WorkTable;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// See [`Node::Recursion`].
#[derive(Debug, Clone)]
pub struct Recursion {
    /// The first rows.
    pub start: RecursionSide,
    /// The rows of a round, of those of the round before.
    pub step: RecursionSide,
    /// Where the step reads the rows of the last round from.
    pub work: Arc<WorkTable>,
    /// Which rows are kept.
    pub keeps: Keeps,
    /// The columns of the result, new, of the types of the work table's.
    pub columns: Vec<ColumnId>,
    /// A column that the step reads beside the rows of its work tables, so that whatever reads these is seen
    /// to read what is around it, and is not computed apart. It is NULL.
    pub around: ColumnId,
    /// Makes a relation of it, once it reads nothing around.
    pub make: MakeRecursive,
}

/// A relation of the start, the step, its work table, and which rows are kept.
pub type MakeRecursive = fn(Plan, Plan, Arc<WorkTable>, Keeps) -> Arc<dyn Relation>;

/// A query of a recursion.
#[derive(Debug, Clone)]
pub struct RecursionSide {
    /// Its rows.
    pub node: Box<Node>,
    /// The columns of them that are those of the work table, in that order.
    pub columns: Vec<ColumnId>,
}

/// Which rows a recursion keeps, and goes on with.
#[derive(Debug, Clone)]
pub enum Keeps {
    /// All: `UNION ALL`.
    All,
    /// Those that are new: `UNION`.
    New,
    /// One of each key, the last: `USING KEY`.
    Keyed {
        /// The columns of the key.
        keys: Vec<usize>,
        /// A row that is equal to the one of its key is not gone on with: `UNION`.
        only_changes: bool,
        /// What the step reads all rows so far from, if it does.
        all: Option<Arc<WorkTable>>,
    },
}

impl Recursion {
    /// The relation of it, which must read nothing around; `columns` are those of the plan in which it
    /// stands.
    pub fn relation(self, columns: &Columns) -> Arc<dyn Relation> {
        let names = self.work.schema().iter().map(|field| field.name.to_string());
        let plan = |side: RecursionSide| {
            let output = names.clone().zip(side.columns).map(|(name, column)| Output { name, column });
            Plan { root: *side.node, columns: columns.clone(), output: output.collect() }
        };
        let (start, step) = (plan(self.start), plan(self.step));
        (self.make)(start, step, self.work, self.keeps)
    }

    /// Puts NULL in the place of [`Recursion::around`].
    pub(crate) fn settle_around(&mut self) {
        let null = Expr::literal(Value::Null, DataType::Boolean);
        let around = HashMap::from([(self.around, null.clone())]);
        each_expr_mut(&mut self.step.node, &mut |expr| {
            *expr = substitute(std::mem::replace(expr, null.clone()), &around);
        });
    }
}
