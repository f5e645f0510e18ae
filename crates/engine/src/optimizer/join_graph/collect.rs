//! Taking a region apart: its leaves become relations, its conditions classes and predicates.

use super::graph::{Attached, Class, Graph, Leaf, Member, Predicate, Set, is_inequality};
use crate::cost::Costs;
use crate::estimate::{ColumnEstimate, Estimate};
use crate::optimizer::filter_pushdown::{mirrored, push};
use crate::plan::freedom::{is_volatile_join, may_move, may_repeat};
use crate::plan::tree::{ColumnSet, key_predicate, reads, reads_all, substitute};
use crate::plan::{Columns, Filter, Join, JoinKey, JoinKind, Node};
use entasis_vector::ColumnId;
use entasis_vector::expr::{CompareOp, Expr};
use std::collections::HashMap;

impl Graph {
    /// Takes the region with the root `node` apart, of which the columns `above` are read above. Subplans of
    /// the region are first passed through `order`.
    pub(in crate::optimizer) fn of(
        node: Node,
        columns: &Columns,
        above: &ColumnSet,
        costs: &Costs,
        order: &mut dyn FnMut(Node) -> Node,
    ) -> Graph {
        let mut graph = Graph::default();
        let mut conditions = Vec::new();
        graph.collect_root(node, &mut conditions, order);
        // The only condition of two relations is tested for all pairs, wherever it stands.
        if let ([_, _], [only]) = (&graph.relations[..], &graph.above[..])
            && conditions.is_empty()
            && may_repeat(only)
            && reads(only).iter().all(|id| graph.source.contains_key(&id))
            && graph.sources(&reads(only)).count_ones() == 2
        {
            conditions.append(&mut graph.above);
        }
        graph.classify(conditions);
        graph.spread_constants();
        graph.estimate(columns);
        graph.find_readers(columns, above, costs);
        graph
    }

    /// As `collect`. Filters above all joins stay there.
    fn collect_root(&mut self, node: Node, conditions: &mut Vec<Expr>, order: &mut dyn FnMut(Node) -> Node) {
        match node {
            Node::Filter(below) => {
                self.collect_root(*below.input, conditions, order);
                self.add_conditions(below.predicates, conditions);
            }
            node => self.collect(node, conditions, order),
        }
    }

    fn collect(&mut self, node: Node, conditions: &mut Vec<Expr>, order: &mut dyn FnMut(Node) -> Node) {
        match node {
            Node::Join(join) if is_volatile_join(&join) => self.add_leaf(order(Node::Join(join))),
            Node::Join(join) => match join.kind {
                JoinKind::Inner => {
                    self.collect(*join.left, conditions, order);
                    self.collect(*join.right, conditions, order);
                    let all = join.on.into_iter().map(key_predicate).chain(join.residual);
                    self.add_conditions(all, conditions);
                }
                JoinKind::Right => self.collect(Node::Join(mirrored(join)), conditions, order),
                JoinKind::Full | JoinKind::Single | JoinKind::AsOf { .. } => {
                    self.add_leaf(order(Node::Join(join)))
                }
                _ => self.attach(join, conditions, order),
            },
            // What is volatile is tested once for each row of its input, and not for each pair of a join
            // above.
            Node::Filter(below) if !below.predicates.iter().all(may_repeat) => {
                let input = Box::new(order(*below.input));
                self.add_leaf(Node::Filter(Filter { input, predicates: below.predicates }));
            }
            Node::Filter(below) => {
                self.collect(*below.input, conditions, order);
                self.add_conditions(below.predicates, conditions);
            }
            Node::Project(project) if project.exprs.iter().all(|(_, e)| is_cheap(e)) => {
                self.collect(*project.input, conditions, order);
                let known: HashMap<ColumnId, Expr> = self.computed.iter().cloned().collect();
                self.computed.extend(project.exprs.into_iter().map(|(id, e)| (id, substitute(e, &known))));
            }
            leaf => self.add_leaf(order(leaf)),
        }
    }

    /// Adds predicates in terms of the relations' own columns.
    fn add_conditions(&mut self, predicates: impl IntoIterator<Item = Expr>, conditions: &mut Vec<Expr>) {
        let known: HashMap<ColumnId, Expr> = self.computed.iter().cloned().collect();
        for predicate in predicates {
            let is_key = matches!(&predicate, Expr::Compare { op: CompareOp::Eq, .. });
            let predicate = substitute(predicate, &known);
            if !may_repeat(&predicate) || (!may_move(&predicate) && !is_key) {
                self.above.push(predicate);
            } else {
                conditions.push(predicate);
            }
        }
    }

    fn add_relation(&mut self, node: Node, visible: Vec<ColumnId>, attached: Option<Attached>) {
        let index = self.relations.len();
        self.source.extend(visible.into_iter().map(|id| (id, index)));
        let (estimate, wanted) = (Estimate::nothing(), Vec::new());
        self.relations.push(Leaf { node: Some(node), estimate, attached, wanted });
    }

    fn add_leaf(&mut self, node: Node) {
        let visible = node.columns();
        self.add_relation(node, visible, None);
    }

    fn attach(&mut self, join: Join, conditions: &mut Vec<Expr>, order: &mut dyn FnMut(Node) -> Node) {
        let first = self.relations.len();
        self.collect(*join.left, conditions, order);
        let known: HashMap<ColumnId, Expr> = self.computed.iter().cloned().collect();
        let right = order(*join.right);
        let own = right.columns();
        let on = join.on.into_iter().map(|key| JoinKey { left: substitute(key.left, &known), ..key });
        // A key that is a constant on the left says which rows there are on the right.
        let is_constant = |key: &JoinKey| reads(&key.left).is_empty() && !reads(&key.right).is_empty();
        let may_go = |key: &JoinKey| may_move(&key.left) && may_move(&key.right);
        let is_null_aware =
            matches!(join.kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. });
        let (constant, on): (Vec<JoinKey>, Vec<JoinKey>) =
            on.partition(|key| !is_null_aware && is_constant(key) && may_go(key));
        let constant = constant.into_iter().map(key_predicate).collect();
        let right = push(right, constant, &ColumnSet::default());
        let residual: Vec<Expr> = join.residual.into_iter().map(|e| substitute(e, &known)).collect();
        let own_set: ColumnSet = own.iter().copied().collect();
        let read = reads_all(on.iter().map(|key| &key.left).chain(&residual));
        let mut needs =
            read.iter().filter(|id| !own_set.contains(*id)).fold(0, |set, id| set | 1 << self.source[&id]);
        if needs == 0 {
            // A condition on no column of the left side: any of its relations will do.
            needs = 1 << first;
        }
        let visible = match join.kind {
            JoinKind::Left => own,
            JoinKind::Mark { mark, .. } => vec![mark],
            _ => Vec::new(),
        };
        self.add_relation(
            right,
            visible,
            Some(Attached { kind: join.kind, on, residual, needs, factor: 1.0 }),
        );
    }

    /// Sorts conditions into filters of one relation, members of classes, and the rest.
    fn classify(&mut self, conditions: Vec<Expr>) {
        for condition in conditions {
            let read = self.sources(&reads(&condition));
            let free = |set: Set, graph: &Graph| {
                set.count_ones() == 1 && graph.relations[set.trailing_zeros() as usize].attached.is_none()
            };
            if read == 0 {
                self.above.push(condition);
                continue;
            }
            if free(read, self) {
                // One that may fail waits above: the relation alone has rows that the region would not show
                // it.
                if !may_move(&condition) {
                    self.above.push(condition);
                } else {
                    self.filter_relation(read.trailing_zeros() as usize, condition);
                }
                continue;
            }
            let bound = match &condition {
                Expr::Compare { left, right, .. } if is_inequality(&condition) => {
                    Some((self.sources(&reads(left)), self.sources(&reads(right))))
                }
                _ => None,
            };
            let is_equality =
                matches!(&condition, Expr::Compare { op: CompareOp::Eq | CompareOp::NotDistinctFrom, .. });
            match condition {
                Expr::Compare { op: CompareOp::Eq, left, right } => {
                    let (l, r) = (self.sources(&reads(&left)), self.sources(&reads(&right)));
                    if l != r && free(l, self) && free(r, self) {
                        self.equate(
                            (l.trailing_zeros() as usize, *left),
                            (r.trailing_zeros() as usize, *right),
                        );
                    } else {
                        let expr = Expr::Compare { op: CompareOp::Eq, left, right };
                        self.predicates.push(Predicate { expr, reads: read, share: 1.0, is_equality, bound });
                    }
                }
                expr => self.predicates.push(Predicate { expr, reads: read, share: 1.0, is_equality, bound }),
            }
        }
        // Two members of one relation are equal within it.
        for index in 0..self.classes.len() {
            let members = &self.classes[index].members;
            let mut inside = Vec::new();
            for (i, member) in members.iter().enumerate() {
                if let Some(first) = members[..i].iter().find(|other| other.relation == member.relation) {
                    let equal = Expr::compare(CompareOp::Eq, first.expr.clone(), member.expr.clone());
                    inside.push((member.relation, equal));
                }
            }
            inside.into_iter().for_each(|(relation, equal)| self.filter_relation(relation, equal));
        }
    }

    /// Puts two expressions into one class.
    fn equate(&mut self, a: (usize, Expr), b: (usize, Expr)) {
        let find = |graph: &Graph, of: &(usize, Expr)| {
            graph
                .classes
                .iter()
                .position(|class| class.members.iter().any(|m| m.relation == of.0 && m.expr == of.1))
        };
        let member = |of: (usize, Expr)| Member {
            relation: of.0,
            expr: of.1,
            estimate: ColumnEstimate::of_distinct(1.0),
        };
        match (find(self, &a), find(self, &b)) {
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => {
                let (keep, gone) = (x.min(y), x.max(y));
                let mut moved = self.classes.swap_remove(gone).members;
                self.classes[keep].members.append(&mut moved);
            }
            (Some(x), None) => self.classes[x].members.push(member(b)),
            (None, Some(y)) => self.classes[y].members.push(member(a)),
            (None, None) => self.classes.push(Class { members: vec![member(a), member(b)] }),
        }
    }

    fn filter_relation(&mut self, relation: usize, predicate: Expr) {
        let slot = &mut self.relations[relation].node;
        let node = slot.take().expect("relations are there until the plan is built");
        *slot = Some(push(node, vec![predicate], &ColumnSet::default()));
    }

    /// Filters every member of a class like the members that are compared with constants.
    fn spread_constants(&mut self) {
        let mut spread = Vec::new();
        for class in &self.classes {
            for from in &class.members {
                let Expr::Column { id, .. } = &from.expr else { continue };
                let constants = constant_filters(self.node(from.relation), *id);
                for to in class.members.iter().filter(|to| to.relation != from.relation) {
                    let with = HashMap::from([(*id, to.expr.clone())]);
                    let simple = matches!(to.expr, Expr::Column { .. });
                    let moved = constants.iter().filter(|_| simple).map(|e| substitute(e.clone(), &with));
                    spread.extend(moved.map(|e| (to.relation, e)));
                }
            }
        }
        spread.into_iter().for_each(|(relation, predicate)| self.filter_relation(relation, predicate));
    }
}

/// True if computing the expression after a join, possibly for more rows, costs hardly anything.
fn is_cheap(expr: &Expr) -> bool {
    let mut cheap = true;
    expr.visit(&mut |e| {
        cheap &= match e {
            Expr::Column { .. } | Expr::Literal { .. } => true,
            Expr::Arithmetic { .. } | Expr::Negate(_) | Expr::Compare { .. } | Expr::IsNull(_) => true,
            Expr::Cast { input, ty, .. } => !input.ty().is_string() && !ty.is_string(),
            _ => false,
        }
    });
    cheap
}

/// The predicates at the top of `node` that compare column `id`, and nothing else, with constants.
fn constant_filters(node: &Node, id: ColumnId) -> Vec<Expr> {
    let predicates: &[Expr] = match node {
        Node::Scan(scan) => &scan.filters,
        Node::Filter(filter) => &filter.predicates,
        _ => &[],
    };
    let compares = |e: &&Expr| match e {
        Expr::Compare { op, left, right } => {
            let ordinary =
                !matches!(op, CompareOp::NotEq | CompareOp::DistinctFrom | CompareOp::NotDistinctFrom);
            let column = |e: &Expr| matches!(e, Expr::Column { id: found, .. } if *found == id);
            ordinary && column(left) && matches!(**right, Expr::Literal { .. })
        }
        Expr::InList { input, .. } => matches!(&**input, Expr::Column { id: found, .. } if *found == id),
        _ => false,
    };
    predicates.iter().filter(compares).cloned().collect()
}
