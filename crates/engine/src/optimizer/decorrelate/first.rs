//! `LIMIT 1` in a correlated subquery: the first row for each outer row is computed by an aggregate.
//!
//! ```text
//! Limit 1                      Aggregate by 1: first_value(v ORDER BY k) AS v
//!   Sort by k            ⇒       rows
//!     rows
//! ```
//!
//! The group of a constant key exists if and only if there are rows, like the first row; unnesting adds the
//! keys of the correlation to it. Under `EXISTS`, any `LIMIT` other than 0 has no effect and is removed.
//!
//! This works for at most one column: the aggregates of two columns might take their values from two rows
//! that are equal in order. With more columns, rows are numbered, as with any other `LIMIT`
//! ([`super::domain`]).

use super::pull::is_single_row;
use super::{Decorrelation, Purpose};
use crate::plan::correlation::{free_columns, refresh};
use crate::plan::tree::{ColumnSet, reads_all, substitute, take, visit_exprs};
use crate::plan::{
    Aggregate, AggregateCall, AggregateFunction, FirstValue, Limit, Node, Project, Recursion, Sort, SortKey,
};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Result, Value};
use std::collections::HashMap;
use std::sync::Arc;

impl Decorrelation<'_> {
    /// The subquery `node` without the limits that would prevent unnesting. `read` are the expressions that
    /// read it, and `free` the columns that make it correlated.
    pub(super) fn first_rows<'e>(
        &mut self,
        node: Node,
        free: &ColumnSet,
        purpose: Purpose,
        read: impl Iterator<Item = &'e Expr>,
    ) -> Result<Node> {
        let node = if purpose == Purpose::Exists { without_limit(node) } else { node };
        let wanted = match purpose {
            Purpose::Lateral => node.columns().into_iter().collect(),
            _ => reads_all(read),
        };
        self.firsts(node, free, &wanted)
    }

    fn firsts(&mut self, mut node: Node, free: &ColumnSet, wanted: &ColumnSet) -> Result<Node> {
        if let Node::Limit(Limit { input, offset: 0, count: Some(1) }) = node {
            if is_single_row(&input) {
                return Ok(*input);
            }
            if !free_columns(&input).intersects(free) {
                return Ok(Node::Limit(Limit { input, offset: 0, count: Some(1) }));
            }
            return self.first(*input, wanted);
        }
        let mut wanted = wanted.clone();
        let mut read = Vec::new();
        visit_exprs(&node, &mut |expr| expr.collect_columns(&mut read));
        match &node {
            Node::Distinct(distinct) => read.extend(&distinct.keys),
            Node::SetOperation(set) => read.extend(set.inputs.iter().flat_map(|(_, columns)| columns)),
            Node::Recursion(Recursion { start, step, .. }) => {
                read.extend(start.columns.iter().chain(&step.columns));
            }
            _ => {}
        }
        read.into_iter().for_each(|id| wanted.insert(id));
        for child in node.children_mut() {
            let taken = take(child);
            *child = self.firsts(taken, free, &wanted)?;
        }
        Ok(node)
    }

    /// The first row of `input`, with only the `wanted` columns.
    fn first(&mut self, input: Node, wanted: &ColumnSet) -> Result<Node> {
        let columns: Vec<ColumnId> = input.columns().into_iter().filter(|id| wanted.contains(*id)).collect();
        if columns.len() > 1 {
            return Ok(Node::Limit(Limit { input: Box::new(input), offset: 0, count: Some(1) }));
        }
        let (input, keys) = unsorted(input);
        // The result has the columns' ids, so the input gets new ones.
        let mut fresh = HashMap::new();
        let input = refresh(input, self.columns, &mut fresh);
        let renamed: HashMap<ColumnId, Expr> =
            fresh.iter().map(|(old, new)| (*old, self.columns.expr(*new))).collect();
        let key = |key: SortKey| SortKey { expr: substitute(key.expr, &renamed), ..key };
        let keys: Vec<SortKey> = keys.into_iter().map(key).collect();
        let first = |id: ColumnId| {
            let arg = renamed[&id].clone();
            let ty = arg.ty();
            let function = AggregateFunction::External(Arc::new(FirstValue { ty }));
            let (args, order_by) = (vec![arg], keys.clone());
            (id, AggregateCall { function, args, distinct: false, filter: None, order_by, ty })
        };
        let aggregates = columns.into_iter().map(first).collect();
        let there = Expr::literal(Value::Integer(1), DataType::Int32);
        let groups = vec![(self.columns.add("there", DataType::Int32, false), there)];
        Ok(Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates }))
    }
}

/// The input of a sort, and the sort's keys, which may read what is projected above it.
fn unsorted(node: Node) -> (Node, Vec<SortKey>) {
    match node {
        Node::Sort(Sort { input, keys, .. }) => (*input, keys),
        Node::Project(Project { input, exprs }) => {
            let (input, keys) = unsorted(*input);
            (Node::Project(Project { input: Box::new(input), exprs }), keys)
        }
        other => (other, Vec::new()),
    }
}

/// A node for which only the existence of rows matters, without limits and sorts at its top.
fn without_limit(node: Node) -> Node {
    match node {
        Node::Limit(Limit { input, offset: 0, count: None | Some(1..) }) => without_limit(*input),
        Node::Sort(Sort { input, limit: None | Some(1..), .. }) => without_limit(*input),
        Node::Project(Project { input, exprs }) => {
            Node::Project(Project { input: Box::new(without_limit(*input)), exprs })
        }
        other => other,
    }
}
