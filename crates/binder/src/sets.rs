//! Grouping sets: one grouping for each set of keys; coarser ones are computed from the results of finer
//! ones.
//!
//! ```text
//! union of all rows
//!   ├─ (a, b)   shared rows: grouping of the input by a, b
//!   ├─ (a)      shared rows: grouping of (a, b) by a
//!   └─ ()       grouping of (a)
//! ```
//! 1. First the input is grouped by all keys that occur in any set, once. For each aggregate it keeps what
//!    the other sets need: for an average, a sum and a count ([`Parts`]).
//! 2. Each set is computed from the smallest earlier set that contains its keys, by adding up sums and counts
//!    and taking minima of minima. Sets from which others are computed are shared rows
//!    ([`entasis_engine::common_subplans`]).
//! 3. In the union, keys that a set lacks are NULL, and an additional column tells which these are.
//!
//! If an aggregate cannot be combined from parts (of distinct values, a median), each set is a grouping of
//! the input, whose rows are then shared. In a correlated subquery, nothing is shared.

use crate::binder::Binder;
use crate::zone::apply_to_plan;
use entasis_engine::common_subplans::Shared;
use entasis_engine::plan::{
    self, AggregateCall, AggregateFunction, Node, Output, Plan, Project, Scan, SetKind, SetOperation,
    free_columns, refresh, substitute,
};
use entasis_engine::relation::Relation;
use entasis_functions::expressions::fold;
use entasis_vector::expr::{ArithmeticOp, Expr};
use entasis_vector::{ColumnId, DataType, Field, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The sets of keys, as numbers of keys.
pub(crate) type Sets = Vec<Vec<usize>>;

/// A grouping with several sets.
pub(crate) struct Grouping {
    pub(crate) input: Node,
    /// All keys: the columns of the result, and their expressions.
    pub(crate) keys: Vec<(ColumnId, Expr)>,
    /// For each key as it is written, its place in `keys`: one that is written twice is there once.
    pub(crate) places: Vec<usize>,
    /// The column that tells by which keys a row is not grouped.
    pub(crate) id: ColumnId,
    /// The aggregates, with their columns in the result.
    pub(crate) calls: Vec<(ColumnId, AggregateCall)>,
    pub(crate) sets: Sets,
}

/// The keys of all sets.
struct Keys {
    /// Their columns in the result, and their expressions.
    keys: Vec<(ColumnId, Expr)>,
    /// See [`Grouping::places`].
    places: Vec<usize>,
}

/// Rows of a set of keys: one column for each key, then one for each part.
#[derive(Clone)]
struct Level {
    set: Vec<usize>,
    relation: Arc<dyn Relation>,
}

impl Binder<'_, '_> {
    /// The plan of a grouping with several sets. Its columns are the keys, the one that distinguishes sets,
    /// and the aggregates.
    pub(crate) fn grouping_sets(&mut self, grouping: Grouping) -> Node {
        let Grouping { input, keys, places, id, calls, sets } = grouping;
        let keys = &Keys { keys, places };
        let columns: Vec<ColumnId> = keys
            .keys
            .iter()
            .map(|(key, _)| *key)
            .chain([id])
            .chain(calls.iter().map(|(call, _)| *call))
            .collect();
        let is_correlated = !free_columns(&input).is_empty()
            || keys.keys.iter().any(|(_, key)| self.reads_outer(key, &input))
            || calls
                .iter()
                .any(|(_, call)| call.args.iter().chain(&call.filter).any(|e| self.reads_outer(e, &input)));
        let parts: Option<Vec<Parts>> = calls.iter().map(|(_, call)| Parts::of(call)).collect();
        let arms = match parts {
            _ if is_correlated => self.copied(&input, keys, &calls, &sets),
            Some(parts) => self.rolled_up(input, keys, &calls, parts, &sets),
            None => self.of_shared_input(input, keys, &calls, &sets),
        };
        Node::SetOperation(SetOperation { kind: SetKind::Union, all: true, inputs: arms, columns })
    }

    fn reads_outer(&self, expr: &Expr, input: &Node) -> bool {
        let own = input.columns();
        let mut read = Vec::new();
        expr.collect_columns(&mut read);
        read.iter().any(|id| !own.contains(id))
    }

    /// Computes each set from the smallest earlier one that contains its keys.
    fn rolled_up(
        &mut self,
        input: Node,
        keys: &Keys,
        calls: &[(ColumnId, AggregateCall)],
        parts: Vec<Parts>,
        sets: &Sets,
    ) -> Vec<(Node, Vec<ColumnId>)> {
        let merges: Vec<AggregateFunction> = parts.iter().flat_map(|parts| parts.merges.clone()).collect();
        let mut levels = vec![self.finest_level(input, keys, &parts, sets)];
        let mut wanted: Vec<Vec<usize>> = Vec::new();
        for set in sets {
            let mut sorted = set.clone();
            sorted.sort_unstable();
            if !wanted.contains(&sorted) {
                wanted.push(sorted);
            }
        }
        wanted.sort_by_key(|set| std::cmp::Reverse(set.len()));
        for set in wanted {
            if levels[0].set == set {
                continue;
            }
            let finer = levels.iter().filter(|level| set.iter().all(|key| level.set.contains(key)));
            let finer = finer.min_by_key(|level| level.set.len()).expect("the finest one has all").clone();
            let level = self.coarser_level(&finer, set, &merges);
            levels.push(level);
        }
        sets.iter()
            .map(|set| {
                let same = |level: &&Level| {
                    level.set.len() == set.len() && set.iter().all(|key| level.set.contains(key))
                };
                let level = levels.iter().find(same).expect("every set has a level").clone();
                let (scan, columns) = self.scan_level(&level);
                let rest = &columns[level.set.len()..];
                let mut next =
                    rest.iter().map(|&column| self.columns.expr(column)).collect::<Vec<_>>().into_iter();
                let finals = parts.iter().map(|parts| parts.whole(&mut next)).collect();
                let place =
                    |key: usize| level.set.iter().position(|own| *own == key).map(|place| columns[place]);
                self.arm(scan, keys, calls, set, place, finals)
            })
            .collect()
    }

    /// The level of all keys that occur in any set, computed from the input.
    fn finest_level(&mut self, input: Node, keys: &Keys, parts: &[Parts], sets: &Sets) -> Level {
        let count = keys.keys.len();
        let used: Vec<usize> = (0..count).filter(|key| sets.iter().any(|set| set.contains(key))).collect();
        let groups: Vec<(ColumnId, Expr)> = used.iter().map(|&key| self.new_key(&keys.keys[key].1)).collect();
        let aggregates: Vec<(ColumnId, AggregateCall)> = parts
            .iter()
            .flat_map(|parts| &parts.calls)
            .map(|call| (self.columns.add("part", call.ty, true), call.clone()))
            .collect();
        self.level(used, Node::Aggregate(plan::Aggregate { input: Box::new(input), groups, aggregates }))
    }

    /// The level of a set, computed from one whose set contains its keys.
    fn coarser_level(&mut self, finer: &Level, set: Vec<usize>, merges: &[AggregateFunction]) -> Level {
        let (scan, columns) = self.scan_level(finer);
        let groups = set
            .iter()
            .map(|key| {
                let place = finer.set.iter().position(|own| own == key).expect("it is in the finer set");
                let expr = self.columns.expr(columns[place]);
                self.new_key(&expr)
            })
            .collect();
        let rest = &columns[finer.set.len()..];
        let aggregates = merges
            .iter()
            .zip(rest)
            .map(|(function, &column)| {
                let arg = self.columns.expr(column);
                let ty = arg.ty();
                let call = AggregateCall {
                    function: function.clone(),
                    args: vec![arg],
                    distinct: false,
                    filter: None,
                    order_by: Vec::new(),
                    ty,
                };
                (self.columns.add("part", ty, true), call)
            })
            .collect();
        self.level(set, Node::Aggregate(plan::Aggregate { input: Box::new(scan), groups, aggregates }))
    }

    /// Computes each set from the input, whose rows are shared.
    fn of_shared_input(
        &mut self,
        input: Node,
        keys: &Keys,
        calls: &[(ColumnId, AggregateCall)],
        sets: &Sets,
    ) -> Vec<(Node, Vec<ColumnId>)> {
        let all = input.columns();
        let rows = self.level(Vec::new(), input);
        let mut arms = Vec::with_capacity(sets.len());
        for set in sets {
            let (scan, columns) = self.scan_level(&rows);
            let map = all.iter().zip(&columns).map(|(old, new)| (*old, self.columns.expr(*new))).collect();
            arms.push(self.grouped_by(scan, &map, keys, calls, set));
        }
        arms
    }

    /// Computes each set from a copy of the input.
    fn copied(
        &mut self,
        input: &Node,
        keys: &Keys,
        calls: &[(ColumnId, AggregateCall)],
        sets: &Sets,
    ) -> Vec<(Node, Vec<ColumnId>)> {
        let mut arms = Vec::with_capacity(sets.len());
        for set in sets {
            let mut map = HashMap::new();
            let copy = refresh(input.clone(), &mut self.columns, &mut map);
            let map = map.into_iter().map(|(old, new)| (old, self.columns.expr(new))).collect();
            arms.push(self.grouped_by(copy, &map, keys, calls, set));
        }
        arms
    }

    /// The grouping of `input` by one set; `map` gives the columns that keys and calls read.
    fn grouped_by(
        &mut self,
        input: Node,
        map: &HashMap<ColumnId, Expr>,
        keys: &Keys,
        calls: &[(ColumnId, AggregateCall)],
        set: &[usize],
    ) -> (Node, Vec<ColumnId>) {
        let groups: Vec<(ColumnId, Expr)> =
            set.iter().map(|&key| self.new_key(&substitute(keys.keys[key].1.clone(), map))).collect();
        let made: Vec<ColumnId> = groups.iter().map(|(id, _)| *id).collect();
        let aggregates: Vec<(ColumnId, AggregateCall)> = calls
            .iter()
            .map(|(id, call)| {
                let mut call = call.clone();
                call.args = call.args.into_iter().map(|arg| substitute(arg, map)).collect();
                call.filter = call.filter.map(|filter| substitute(filter, map));
                for key in &mut call.order_by {
                    key.expr = substitute(key.expr.clone(), map);
                }
                let name = self.columns.get(*id).name.clone();
                (self.columns.add(name, call.ty, true), call)
            })
            .collect();
        let finals = aggregates.iter().map(|(id, _)| self.columns.expr(*id)).collect();
        let node = Node::Aggregate(plan::Aggregate { input: Box::new(input), groups, aggregates });
        let place = |key: usize| set.iter().position(|own| *own == key).map(|place| made[place]);
        self.arm(node, keys, calls, set, place, finals)
    }

    /// One input of the union: the keys of a set, NULL for the others, the number that tells which keys these
    /// are, and the aggregates.
    fn arm(
        &mut self,
        node: Node,
        keys: &Keys,
        calls: &[(ColumnId, AggregateCall)],
        set: &[usize],
        place: impl Fn(usize) -> Option<ColumnId>,
        finals: Vec<Expr>,
    ) -> (Node, Vec<ColumnId>) {
        let is_missing = |written: &usize| !set.contains(&keys.places[*written]);
        let missing = (0..keys.places.len()).filter(is_missing).fold(0i128, |bits, key| bits | 1 << key);
        let mut exprs = Vec::new();
        let mut columns = Vec::with_capacity(keys.keys.len() + 1 + calls.len());
        for (number, (id, expr)) in keys.keys.iter().enumerate() {
            columns.push(place(number).unwrap_or_else(|| {
                let name = self.columns.get(*id).name.clone();
                let column = self.columns.add(name, expr.ty(), true);
                exprs.push((column, Expr::literal(Value::Null, expr.ty())));
                column
            }));
        }
        let id = self.columns.add("sets", DataType::Int64, false);
        exprs.push((id, Expr::literal(Value::Integer(missing), DataType::Int64)));
        columns.push(id);
        for ((id, call), value) in calls.iter().zip(finals) {
            let name = self.columns.get(*id).name.clone();
            let column = self.columns.add(name, call.ty, true);
            exprs.push((column, fold::cast_expr(value, call.ty, false)));
            columns.push(column);
        }
        (Node::Project(Project { input: Box::new(node), exprs }), columns)
    }

    /// A new column for an expression.
    fn new_key(&mut self, expr: &Expr) -> (ColumnId, Expr) {
        (self.columns.add("key", expr.ty(), true), expr.clone())
    }

    /// The rows of a node as a relation, with its columns in their order.
    pub(crate) fn share(&self, name: &str, node: Node) -> Arc<dyn Relation> {
        let columns = node.columns();
        let field = |&id: &ColumnId| Field::new(self.columns.get(id).name.as_str(), self.columns.ty(id));
        let schema = columns.iter().map(field).collect();
        let output = |&column: &ColumnId| Output { name: self.columns.get(column).name.clone(), column };
        let output = columns.iter().map(output).collect();
        let mut plan = Plan { root: node, columns: self.columns.clone(), output };
        apply_to_plan(&mut plan, self.session.zone);
        Arc::new(Shared::new(name.to_owned(), schema, plan))
    }

    /// The rows of `node`, whose first columns are the keys of a set.
    fn level(&self, set: Vec<usize>, node: Node) -> Level {
        Level { set, relation: self.share("grouping set", node) }
    }

    fn scan_level(&mut self, level: &Level) -> (Node, Vec<ColumnId>) {
        let fields = level.relation.schema().iter().enumerate();
        let columns: Vec<(ColumnId, usize)> =
            fields.map(|(i, field)| (self.columns.add(&*field.name, field.ty, true), i)).collect();
        let ids = columns.iter().map(|(id, _)| *id).collect();
        (Node::Scan(Scan::all(level.relation.clone(), columns)), ids)
    }
}

/// The parts of an aggregate that are kept so that groups can be combined.
struct Parts {
    /// The aggregates computed over the input.
    calls: Vec<AggregateCall>,
    /// How each of them is combined.
    merges: Vec<AggregateFunction>,
    function: AggregateFunction,
}

impl Parts {
    /// `None` if the aggregate of a group cannot be computed from those of its parts.
    fn of(call: &AggregateCall) -> Option<Parts> {
        use AggregateFunction as F;
        let is_extreme = matches!(call.function, F::Min | F::Max | F::BoolAnd | F::BoolOr);
        if (call.distinct && !is_extreme) || !call.order_by.is_empty() {
            return None;
        }
        let (calls, merges) = match &call.function {
            F::CountStar | F::Count => (vec![call.clone()], vec![F::Sum]),
            F::Sum | F::Min | F::Max | F::BoolAnd | F::BoolOr | F::AnyValue => {
                (vec![call.clone()], vec![call.function.clone()])
            }
            F::Avg => {
                let arg = call.args.first()?.ty();
                let ty = match arg {
                    DataType::Float32 | DataType::Float64 => DataType::Float64,
                    DataType::Decimal { scale, .. } => DataType::Decimal { precision: 38, scale },
                    ty if ty.is_integer() => DataType::Decimal { precision: 38, scale: 0 },
                    _ => return None,
                };
                let sum = AggregateCall { function: F::Sum, ty, ..call.clone() };
                let count = AggregateCall { function: F::Count, ty: DataType::Int64, ..call.clone() };
                (vec![sum, count], vec![F::Sum, F::Sum])
            }
            F::External(_) => return None,
        };
        Some(Parts { calls, merges, function: call.function.clone() })
    }

    /// The aggregate, computed from its parts, which are the next ones of `parts`.
    fn whole(&self, parts: &mut impl Iterator<Item = Expr>) -> Expr {
        let mut next = || parts.next().expect("every part has a column");
        match self.function {
            // Without any rows there is nothing to add up.
            AggregateFunction::CountStar | AggregateFunction::Count => {
                let count = next();
                let zero = Expr::literal(Value::Integer(0), DataType::Int64);
                let branches = vec![(Expr::IsNull(Box::new(count.clone())), zero)];
                Expr::Case { branches, otherwise: Some(Box::new(count)), ty: DataType::Int64 }
            }
            AggregateFunction::Avg => {
                let (sum, count) = (next(), next());
                let double = |expr| fold::cast_expr(expr, DataType::Float64, false);
                let mean = fold::arithmetic(
                    ArithmeticOp::Divide,
                    double(sum.clone()),
                    double(count),
                    DataType::Float64,
                );
                // Without values the sum is NULL, and the count is zero.
                let branches = vec![(fold::not(Expr::IsNull(Box::new(sum))), mean)];
                Expr::Case { branches, otherwise: None, ty: DataType::Float64 }
            }
            _ => next(),
        }
    }
}
