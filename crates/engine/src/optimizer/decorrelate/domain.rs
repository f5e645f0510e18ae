//! The general method: the distinct values of the outer columns, the *domain*, are joined in where they are
//! needed, carried to the top as additional columns, and compared there with the outer query's own (Neumann
//! and Kemper, *Unnesting Arbitrary Queries*, BTW 2015). The domain is computed from a second copy of the
//! outer query, whose rows are shared where a copy might have others.

use super::Decorrelation;
use super::joins::{join, rejoin, where_true};
use super::pull::{is_count, or_zero};
use crate::plan::correlation::{free_columns, is_repeatable, refresh, replace};
use crate::plan::tree::{ColumnSet, empty, substitute};
use crate::plan::{
    Aggregate, Distinct, Filter, Join, JoinKey, JoinKind, Limit, Node, Output, Plan, Project, Scan,
    SetOperation, Sort, SortKey, Unnest, Window, WindowCall, has_forms,
};
use crate::work_table::WorkTable;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Field, Result, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The distinct values of the outer columns that a subquery reads.
#[derive(Clone)]
pub(super) struct Domain {
    /// Its columns correspond to those of `free` and then to `forms`, in that order, with ids of its own.
    pub node: Node,
    pub free: Vec<ColumnId>,
    /// Texts of free columns whose equal values may be told apart, as expressions over the outer query.
    pub forms: Vec<Expr>,
    /// Whether the first of `free` numbers the outer rows, each of which gets rows of its own.
    pub per_row: bool,
    /// Work tables of recursions around that carry its columns, the innermost last.
    pub carried: Vec<Carried>,
}

impl Domain {
    /// Those of `columns`, which represent the free ones, that tell its elements apart.
    pub(super) fn keys<'a>(&self, columns: &'a [ColumnId]) -> &'a [ColumnId] {
        if self.per_row { &columns[..1] } else { columns }
    }

    /// True if the rows of a node differ from one element of the domain to the next.
    fn is_needed_by(&self, node: &Node) -> bool {
        free_columns(node).iter().any(|id| self.free.contains(&id))
            || self.per_row && !is_repeatable(node)
            || self.carried.iter().any(|carried| carried.is_read_by(node))
    }
}

/// A work table whose rows carry the columns of a domain.
#[derive(Clone)]
pub(super) struct Carried {
    /// The table that the step reads.
    pub narrow: Arc<WorkTable>,
    /// The same, with the domain's columns behind its own.
    pub wide: Arc<WorkTable>,
}

impl Carried {
    /// True if it is the table that is scanned.
    pub(super) fn is_scanned(&self, scan: &Scan) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&scan.relation), Arc::as_ptr(&self.narrow))
    }

    /// True if the tree scans the table.
    fn is_read_by(&self, node: &Node) -> bool {
        matches!(node, Node::Scan(scan) if self.is_scanned(scan))
            || node.children().into_iter().any(|child| self.is_read_by(child))
    }
}

/// True if a copy of a node may have other rows.
fn may_differ(node: &Node) -> bool {
    fn takes_some(node: &Node) -> bool {
        matches!(node, Node::Limit(_) | Node::Sort(Sort { limit: Some(_), .. }))
            || node.children().into_iter().any(takes_some)
    }
    !is_repeatable(node) || takes_some(node)
}

impl Decorrelation<'_> {
    /// `outer` so that a copy of it has the same rows: what might give others the second time is shared.
    pub(super) fn settled(&mut self, outer: Node) -> Node {
        match may_differ(&outer) && free_columns(&outer).is_empty() {
            true => self.shared_rows(outer),
            false => outer,
        }
    }

    /// The rows of `outer`, computed once for all copies.
    fn shared_rows(&mut self, outer: Node) -> Node {
        let columns = outer.columns();
        let field = |&id: &ColumnId| Field::new(self.columns.get(id).name.as_str(), self.columns.ty(id));
        let schema = columns.iter().map(field).collect();
        let output = |&column: &ColumnId| Output { name: self.columns.get(column).name.clone(), column };
        let output = columns.iter().map(output).collect();
        let plan = Plan { root: outer, columns: self.columns.clone(), output };
        let shared = (self.share)("outer rows".to_owned(), schema, plan);
        Node::Scan(Scan::all(shared, columns.into_iter().zip(0..).collect()))
    }

    /// `outer` with a new column that numbers its rows, the same in each copy of it.
    pub(super) fn numbered(&mut self, outer: Node) -> (Node, ColumnId) {
        let row = self.columns.add("row", DataType::Int64, false);
        let numbered = Node::Window(Window {
            input: Box::new(outer),
            partition: Vec::new(),
            order: Vec::new(),
            calls: vec![(row, WindowCall::row_number())],
            top: None,
        });
        (self.shared_rows(numbered), row)
    }

    /// The distinct values of `free` in `outer`, or those of each row if there is a column that numbers them.
    /// Equal values that a subquery may tell apart are kept apart, by their texts.
    pub(super) fn domain(&mut self, outer: &Node, free: &ColumnSet, row: Option<ColumnId>) -> Domain {
        let mut free: Vec<ColumnId> = free.iter().collect();
        free.sort();
        free.splice(0..0, row);
        let mut map = HashMap::new();
        let mut copy = refresh(outer.clone(), self.columns, &mut map);
        let mut keys: Vec<ColumnId> = free.iter().map(|id| map[id]).collect();
        if row.is_some() {
            let node = Node::Distinct(Distinct::new(copy, keys));
            return Domain { node, free, forms: Vec::new(), per_row: true, carried: Vec::new() };
        }
        let text = |input| Expr::Cast { input: Box::new(input), ty: DataType::Varchar, lenient: false };
        let (mut forms, mut exprs) = (Vec::new(), Vec::new());
        for id in free.iter().filter(|id| has_forms(self.columns.ty(**id))) {
            forms.push(text(self.columns.expr(*id)));
            exprs.push(text(self.columns.expr(map[id])));
        }
        if !exprs.is_empty() {
            let exprs: Vec<(ColumnId, Expr)> = exprs
                .into_iter()
                .map(|expr| (self.columns.add("form", DataType::Varchar, true), expr))
                .collect();
            keys.extend(exprs.iter().map(|(id, _)| *id));
            copy = Node::Project(Project { input: Box::new(copy), exprs });
        }
        let node = Node::Distinct(Distinct::new(copy, keys));
        Domain { node, free, forms, per_row: false, carried: Vec::new() }
    }

    /// A fresh copy of the domain, and the columns that represent the free ones.
    pub(super) fn copy_domain(&mut self, domain: &Domain) -> (Node, Vec<ColumnId>) {
        let copy = refresh(domain.node.clone(), self.columns, &mut HashMap::new());
        let columns = copy.columns();
        (copy, columns)
    }

    /// `node` evaluated for every row of the domain: the result also has the domain's columns, which are
    /// returned in the order of the free columns.
    pub(super) fn depend(&mut self, node: Node, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        if !domain.is_needed_by(&node) {
            let (copy, columns) = self.copy_domain(domain);
            return Ok((join(copy, node, JoinKind::Inner, None, vec![]), columns));
        }
        match node {
            Node::Filter(Filter { input, predicates }) => {
                let (input, columns) = self.depend(*input, domain)?;
                let map = self.domain_map(domain, &columns);
                let predicates = predicates.into_iter().map(|p| substitute(p, &map)).collect();
                Ok((Node::Filter(Filter { input: Box::new(input), predicates }), columns))
            }
            Node::Project(Project { input, exprs }) => {
                let (input, columns) = self.depend(*input, domain)?;
                let map = self.domain_map(domain, &columns);
                let exprs = exprs.into_iter().map(|(id, e)| (id, substitute(e, &map))).collect();
                Ok((Node::Project(Project { input: Box::new(input), exprs }), columns))
            }
            Node::Unnest(Unnest { input, lists }) => {
                let (input, columns) = self.depend(*input, domain)?;
                let map = self.domain_map(domain, &columns);
                let lists = lists.into_iter().map(|(id, e)| (id, substitute(e, &map))).collect();
                Ok((Node::Unnest(Unnest { input: Box::new(input), lists }), columns))
            }
            // Order matters only for a limit above, which numbers the rows.
            Node::Sort(Sort { input, .. }) => self.depend(*input, domain),
            Node::Limit(limit) => self.depend_limit(limit, domain),
            Node::Distinct(Distinct { input, mut keys, .. }) => {
                let (input, columns) = self.depend(*input, domain)?;
                keys.extend(&columns);
                Ok((Node::Distinct(Distinct::new(input, keys)), columns))
            }
            Node::Aggregate(aggregate) => self.depend_aggregate(aggregate, domain),
            Node::Join(join) => self.depend_join(join, domain),
            Node::SetOperation(SetOperation { kind, all, inputs, mut columns }) => {
                let mut dependent = Vec::with_capacity(inputs.len());
                let mut own: Vec<ColumnId> = Vec::new();
                for (input, mut outputs) in inputs {
                    let (input, domain_columns) = self.depend(input, domain)?;
                    if own.is_empty() {
                        own = self.copies(&domain_columns);
                    }
                    outputs.extend(domain_columns);
                    dependent.push((input, outputs));
                }
                columns.extend(&own);
                Ok((Node::SetOperation(SetOperation { kind, all, inputs: dependent, columns }), own))
            }
            Node::Window(mut window) => {
                // The rows for each outer row are partitions of their own.
                let input = std::mem::replace(&mut *window.input, empty(Vec::new()));
                let (input, columns) = self.depend(input, domain)?;
                let map = self.domain_map(domain, &columns);
                window.exprs_mut().for_each(|expr| replace(expr, &map));
                window.partition.extend(domain.keys(&columns).iter().map(|id| self.columns.expr(*id)));
                Ok((Node::Window(Window { input: Box::new(input), ..window }), columns))
            }
            Node::Recursion(recursion) => self.depend_recursion(recursion, domain),
            Node::Scan(scan) => self.depend_scan(scan, domain),
            Node::Values(_) => Err(Error::internal("correlated values")),
            Node::Dependent(_) => Err(Error::internal("a dependent join within another")),
        }
    }

    /// The first rows for each value of the domain: those with the least numbers in the order.
    fn depend_limit(&mut self, limit: Limit, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        let Limit { input, offset, count } = limit;
        let mut input = *input;
        // Projections do not change which rows come first.
        let mut computed = Vec::new();
        while let Node::Project(Project { input: below, exprs }) = input {
            computed.push(exprs);
            input = *below;
        }
        let (input, keys) = match input {
            Node::Sort(Sort { input, keys, .. }) => (*input, keys),
            other => (other, Vec::new()),
        };
        let (mut node, columns) = self.depend(input, domain)?;
        let map = self.domain_map(domain, &columns);
        let order = keys.into_iter().map(|key| SortKey { expr: substitute(key.expr, &map), ..key }).collect();
        let number = self.columns.add("number", DataType::Int64, false);
        let partition = domain.keys(&columns).iter().map(|column| self.columns.expr(*column)).collect();
        node = Node::Window(Window {
            input: Box::new(node),
            partition,
            order,
            calls: vec![(number, WindowCall::row_number())],
            top: None,
        });
        let bound = |op, rows: usize| {
            let rows = Expr::literal(Value::Integer(rows as i128), DataType::Int64);
            Expr::compare(op, Expr::column(number, DataType::Int64), rows)
        };
        let mut predicates = Vec::new();
        predicates.extend(
            count.map(|count| bound(CompareOp::LtEq, offset.saturating_add(count).min(i64::MAX as usize))),
        );
        if offset > 0 {
            predicates.push(bound(CompareOp::Gt, offset.min(i64::MAX as usize)));
        }
        node = where_true(node, Expr::and(predicates));
        for exprs in computed.into_iter().rev() {
            let exprs = exprs.into_iter().map(|(id, expr)| (id, substitute(expr, &map))).collect();
            node = Node::Project(Project { input: Box::new(node), exprs });
        }
        Ok((node, columns))
    }

    fn depend_aggregate(&mut self, aggregate: Aggregate, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        let Aggregate { input, mut groups, mut aggregates } = aggregate;
        let (input, columns) = self.depend(*input, domain)?;
        let map = self.domain_map(domain, &columns);
        for (_, expr) in &mut groups {
            replace(expr, &map);
        }
        for (_, call) in &mut aggregates {
            call.args.iter_mut().chain(&mut call.filter).for_each(|expr| replace(expr, &map));
            call.order_by.iter_mut().for_each(|key| replace(&mut key.expr, &map));
        }
        let single_row = groups.is_empty();
        // Above a single row, the columns come from the domain.
        let columns = if single_row { domain.keys(&columns) } else { &columns };
        let own = self.copies(columns);
        groups.extend(own.iter().zip(columns).map(|(own, column)| (*own, self.columns.expr(*column))));
        if !single_row {
            return Ok((Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates }), own));
        }
        // Every value of the domain has its row, even for an empty input.
        let mut counts = Vec::new();
        for (id, call) in &mut aggregates {
            if is_count(&call.function) {
                let info = self.columns.get(*id).clone();
                let inner = self.columns.add(info.name, info.ty, true);
                counts.push((*id, or_zero(self.columns.expr(inner))));
                *id = inner;
            }
        }
        let grouped = Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates });
        let (copy, domain_columns) = self.copy_domain(domain);
        let same = self.same(&domain_columns, &own);
        let mut node = join(copy, grouped, JoinKind::Left, None, same);
        if !counts.is_empty() {
            node = Node::Project(Project { input: Box::new(node), exprs: counts });
        }
        Ok((node, domain_columns))
    }

    fn depend_join(&mut self, join_node: Join, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        let Join { left, right, kind, on, residual } = join_node;
        let needs = |node: &Node| domain.is_needed_by(node);
        let (left, right, kind, on) = match kind {
            JoinKind::Right => {
                let on = on.into_iter().map(|JoinKey { left, right, null_equals_null }| JoinKey {
                    left: right,
                    right: left,
                    null_equals_null,
                });
                (right, left, JoinKind::Left, on.collect())
            }
            JoinKind::Full => return self.depend_full(Join { left, right, kind, on, residual }, domain),
            _ => (left, right, kind, on),
        };
        if kind == JoinKind::Inner && !needs(&left) {
            // Only the right side or the condition depends on the domain, so the domain comes from the right.
            let (right, columns) = self.depend(*right, domain)?;
            let map = self.domain_map(domain, &columns);
            let (on, residual) = substitute_join(on, residual, &map);
            return Ok((rejoin(*left, right, kind, on, residual), columns));
        }
        let right_needs = needs(&right);
        let (left, columns) = self.depend(*left, domain)?;
        let map = self.domain_map(domain, &columns);
        let (on, mut residual) = substitute_join(on, residual, &map);
        let mut right = *right;
        if right_needs {
            let (dependent, right_columns) = self.depend(right, domain)?;
            right = dependent;
            residual.extend(self.same(domain.keys(&columns), &right_columns));
        }
        Ok((rejoin(left, right, kind, on, residual), columns))
    }

    /// A full join of rows for the same value of the domain. The value of a row is that of the left one, or
    /// that of the right one where there is no left one.
    fn depend_full(&mut self, full: Join, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        let Join { left, right, kind, on, residual } = full;
        let (left, left_columns) = self.depend(*left, domain)?;
        let (right, right_columns) = self.depend(*right, domain)?;
        let map = self.domain_map(domain, &left_columns);
        let (on, mut residual) = substitute_join(on, residual, &map);
        residual.extend(self.same(domain.keys(&left_columns), &right_columns));
        let own = self.copies(&left_columns);
        let sides = left_columns.iter().zip(&right_columns);
        let either = |(l, r): (&ColumnId, &ColumnId)| {
            let (l, r) = (self.columns.expr(*l), self.columns.expr(*r));
            let ty = l.ty();
            let branches = vec![(Expr::IsNull(Box::new(l.clone())), r)];
            Expr::Case { branches, otherwise: Some(Box::new(l)), ty }
        };
        let exprs = own.iter().copied().zip(sides.map(either)).collect();
        let input = Box::new(rejoin(left, right, kind, on, residual));
        Ok((Node::Project(Project { input, exprs }), own))
    }

    /// That columns of two inputs, which represent the free ones, have the same values.
    pub(super) fn same(&self, a: &[ColumnId], b: &[ColumnId]) -> Vec<Expr> {
        let equal = |(a, b): (&ColumnId, &ColumnId)| {
            Expr::compare(CompareOp::NotDistinctFrom, self.columns.expr(*a), self.columns.expr(*b))
        };
        a.iter().zip(b).map(equal).collect()
    }

    /// Maps the free columns to the domain's.
    fn domain_map(&self, domain: &Domain, columns: &[ColumnId]) -> HashMap<ColumnId, Expr> {
        domain.free.iter().zip(columns).map(|(free, column)| (*free, self.columns.expr(*column))).collect()
    }

    /// New columns, one for each of `columns`.
    pub(super) fn copies(&mut self, columns: &[ColumnId]) -> Vec<ColumnId> {
        columns
            .iter()
            .map(|id| {
                let info = self.columns.get(*id).clone();
                self.columns.add(info.name, info.ty, info.nullable)
            })
            .collect()
    }
}

fn substitute_join(
    on: Vec<JoinKey>,
    residual: Vec<Expr>,
    map: &HashMap<ColumnId, Expr>,
) -> (Vec<JoinKey>, Vec<Expr>) {
    let on = on.into_iter().map(|key| JoinKey {
        left: substitute(key.left, map),
        right: substitute(key.right, map),
        null_equals_null: key.null_equals_null,
    });
    (on.collect(), residual.into_iter().map(|e| substitute(e, map)).collect())
}
