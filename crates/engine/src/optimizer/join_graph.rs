//! The join graph: a tree of joins taken apart, so that it can be put together in any order.
//!
//! A *region* is a maximal tree of joins with the filters and cheap projections between them. Its leaves are
//! the graph's relations: scans or any other subplans. What holds the relations together:
//!
//! - **Classes** of expressions that are all equal, one a relation or more: `l_orderkey = o_orderkey`. A
//!   class joins any two sets of relations in which it has members, whichever pair the statement wrote down.
//! - Other **predicates** over two relations or more, applied as soon as all of them are together.
//! - **Attached** relations: the right side of a left, semi, anti or mark join. For one row of the left side
//!   such a join is a function of a few of its columns, so it commutes with inner joins that do not look at
//!   its result. An attached relation may join at any time, alone, once the relations whose columns its
//!   condition reads are together. That lets a semi join reduce its relation before all others, or wait until
//!   hardly any rows are left (TPC-H Q18, Q21).
//!
//! Computed columns are replaced by what they are computed from and computed above the region. Full and
//! single joins and volatile conditions end a region.
//!
//! A constant that is compared with one member of a class is compared with the others too: each relation is
//! filtered.

mod readers;
mod transfer;

use super::properties::is_at_most_one_row;
use super::pushdown::{mirrored, push};
use crate::cost::Costs;
use crate::estimate::overlap::overlap;
use crate::estimate::related::{Met, related};
use crate::estimate::selectivity::{Side, band, bands, selectivity};
use crate::estimate::{ColumnEstimate, Estimate, estimate, estimate_join, key_selectivity};
use crate::plan::freedom::{is_volatile_join, may_move, may_repeat};
use crate::plan::tree::{ColumnSet, filter, key_predicate, reads, reads_all, substitute};
use crate::plan::{Columns, Filter, Join, JoinKey, JoinKind, Node, Project, Reference};
use entasis_storage::{KEY_SAMPLES_MAX, KeySample};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType};
use readers::ReadColumn;
use std::collections::HashMap;

/// A set of relations, one bit each.
pub(super) type Set = u64;

/// Most relations of a graph.
pub(super) const RELATIONS_MAX: usize = 64;

/// A column with fewer distinct values than this share of the rows is no key.
const A_KEY: f64 = 0.99;
/// Values of a column are counted if they are fewer than this share of the rows.
const REPEATED: f64 = 0.5;
/// Values of a table are counted if a smaller share of its rows may have partners in a join.
const MET: f64 = 0.5;
/// The least rows of a table of whose keys a sample is taken to know which are frequent, and of the larger of
/// two of them.
const SAMPLED_ROWS: u64 = 2_000;
const SAMPLED_LARGE: u64 = 10_000;
/// See the module.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) relations: Vec<Leaf>,
    classes: Vec<Class>,
    predicates: Vec<Predicate>,
    /// By how much joins of some relations have more rows than statistics expect.
    known: Vec<(Set, f64)>,
    /// Which relation a column comes from.
    source: HashMap<ColumnId, usize>,
    /// Columns to compute above the region, free of one another.
    computed: Vec<(ColumnId, Expr)>,
    /// Predicates to apply above the region: those that may fail, and constant ones.
    above: Vec<Expr>,
}

/// A leaf of the region.
#[derive(Debug)]
pub(super) struct Leaf {
    node: Option<Node>,
    estimate: Estimate,
    attached: Option<Attached>,
    wanted: Vec<ReadColumn>,
}

/// How a relation hangs on others.
#[derive(Debug)]
struct Attached {
    kind: JoinKind,
    on: Vec<JoinKey>,
    residual: Vec<Expr>,
    /// The relations that must be together before.
    needs: Set,
    /// Rows after attaching for one before.
    factor: f64,
}

/// Expressions that are equal in every row of the result.
#[derive(Debug)]
struct Class {
    members: Vec<Member>,
}

impl Class {
    /// True if it has members in two relations of `set`.
    fn joins(&self, set: Set) -> bool {
        self.members.iter().fold(0, |found: Set, m| found | (set & 1 << m.relation)).count_ones() > 1
    }

    /// The range that its members in `set` share.
    fn shared(&self, set: Set) -> Option<(f64, f64)> {
        overlap(self.members.iter().filter(|m| set >> m.relation & 1 == 1).map(|m| m.estimate))
    }
}

#[derive(Debug)]
struct Member {
    relation: usize,
    expr: Expr,
    estimate: ColumnEstimate,
}

impl Member {
    /// The column that it is, if it is nothing else.
    fn column(&self) -> Option<ColumnId> {
        match self.expr {
            Expr::Column { id, .. } => Some(id),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Predicate {
    expr: Expr,
    reads: Set,
    share: f64,
    is_equality: bool,
    /// What the two sides of an inequality read.
    bound: Option<(Set, Set)>,
}

/// How two sets of relations may be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// By equal keys.
    Equal,
    /// By an inequality, in an order.
    Bound,
    /// By some other condition.
    Condition,
    /// By none: a cross product.
    Cross,
}

/// True of `<`, `<=`, `>` and `>=`.
fn is_inequality(condition: &Expr) -> bool {
    use CompareOp::{Gt, GtEq, Lt, LtEq};
    matches!(condition, Expr::Compare { op: Lt | LtEq | Gt | GtEq, .. })
}

impl Graph {
    /// Takes the region with the root `node` apart, of which the columns `above` are read above. Subplans of
    /// the region are first passed through `order`.
    pub(super) fn of(
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

    fn sources(&self, set: &ColumnSet) -> Set {
        set.iter().fold(0, |found, id| found | 1 << self.source[&id])
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

    fn node(&self, relation: usize) -> &Node {
        self.relations[relation].node.as_ref().expect("relations are there until the plan is built")
    }

    fn estimate(&mut self, columns: &Columns) {
        for relation in &mut self.relations {
            relation.estimate = estimate(
                relation.node.as_ref().expect("relations are there until the plan is built"),
                columns,
            );
        }
        self.estimate_members();
        self.look(columns);
        let beside = |relations: &[Leaf], set: Set| {
            members(set).map(|i| &relations[i].estimate).fold(Estimate::nothing(), |all, one| all.beside(one))
        };
        for predicate in &mut self.predicates {
            let input = beside(&self.relations, predicate.reads);
            predicate.share = selectivity(std::slice::from_ref(&predicate.expr), &input);
        }
        let side: Side<'_> = &|id| self.source.get(&id).copied().unwrap_or(usize::MAX);
        let exprs: Vec<&Expr> = self.predicates.iter().map(|predicate| &predicate.expr).collect();
        let bands = bands(&exprs, |at, other| {
            let [reads, others] = [at, other].map(|at| self.predicates[at].reads);
            // Wherever one of them is tested, the other is.
            (reads == others).then(|| band(exprs[at], exprs[other], &beside(&self.relations, reads), side))?
        });
        for (at, other, share) in bands {
            self.predicates[at].share = share.sqrt();
            self.predicates[other].share = share.sqrt();
        }
        for index in 0..self.relations.len() {
            let Some(attached) = &self.relations[index].attached else { continue };
            let left = beside(&self.relations, attached.needs);
            let before = left.rows;
            let right = self.relations[index].estimate.clone();
            let after = estimate_join(attached.kind, &attached.on, &attached.residual, left, right).rows;
            if let Some(attached) = &mut self.relations[index].attached {
                attached.factor = if before > 0.0 { after / before } else { 1.0 };
            }
        }
    }

    fn estimate_members(&mut self) {
        for class in &mut self.classes {
            for member in &mut class.members {
                member.estimate = self.relations[member.relation].estimate.expression(&member.expr);
            }
        }
    }

    /// Counts values of small tables whose rows are filtered, or meet few of those of others.
    fn relate(&mut self, columns: &Columns) {
        for relation in 0..self.relations.len() {
            let leaf = &self.relations[relation];
            let Some(Node::Scan(scan)) = leaf.node.as_ref().filter(|_| leaf.attached.is_none()) else {
                continue;
            };
            let member = |class: &Class| {
                let member = class.members.iter().find(|member| member.relation == relation)?;
                let range = class.shared(!0)?;
                let share = member.estimate.within(Some(range)).rows;
                (share < MET).then_some(Met { key: member.column()?, range, share })
            };
            let met = self.classes.iter().filter_map(member).min_by(|a, b| a.share.total_cmp(&b.share));
            let stored = scan.relation.schema().len();
            let numbers = scan.columns.iter().filter(|(id, at)| {
                *at < stored && (columns.ty(*id).is_numeric() || columns.ty(*id) == DataType::Date)
            });
            // Where all values are different, as many are left as rows. So it is with the key, whose range
            // says how many rows have partners.
            let repeats = |id: &ColumnId| leaf.estimate.column(*id).domain < REPEATED * leaf.estimate.base;
            let wanted: Vec<ColumnId> = numbers.map(|(id, _)| *id).filter(repeats).collect();
            if wanted.is_empty() {
                continue;
            }
            let found = related(scan, met, &wanted, leaf.estimate.rows, columns);
            if let Some(Node::Scan(scan)) = self.relations[relation].node.as_mut() {
                scan.related = found;
            }
            self.relations[relation].estimate = estimate(self.node(relation), columns);
        }
        self.estimate_members();
    }

    /// Looks at the rows that filters leave, and at how frequent values are.
    fn look(&mut self, columns: &Columns) {
        self.relate(columns);
        self.transfer(columns);
        for class in 0..self.classes.len() {
            let members = self.classes[class].members.iter();
            let members: Vec<_> = members.filter_map(|m| Some((m.relation, m.column()?))).collect();
            self.find_frequent(class, &members, columns);
        }
    }

    /// Notes that the join of the relations `over` by the `columns`, one of each, has `factor` times as many
    /// rows as expected.
    fn refer(&mut self, over: Set, columns: Vec<ColumnId>, factor: f64) {
        self.known.push((over, factor));
        let first = &mut self.relations[over.trailing_zeros() as usize];
        let reference = Reference { columns: columns.into(), factor };
        if let Some(Node::Scan(scan)) = first.node.as_mut() {
            scan.references.push(reference.clone());
        }
        first.estimate.references.push(reference);
    }

    /// Joins samples of the columns of a class, `members`, that are no keys of their tables: those of each
    /// two, three and four of them. Of more, what is found of their subsets is multiplied.
    fn find_frequent(&mut self, class: usize, members: &[(usize, ColumnId)], columns: &Columns) {
        let of = |graph: &Graph, &(relation, id): &(usize, ColumnId)| {
            let member = graph.classes[class].members.iter().find(|m| m.relation == relation)?;
            let estimate = &graph.relations[relation].estimate;
            let Some(Node::Scan(scan)) = &graph.relations[relation].node else { return None };
            let table = scan.relation.table()?;
            let (_, column) = *scan.columns.iter().find(|(own, _)| *own == id)?;
            let is_no_key = member.estimate.domain < A_KEY * estimate.base && column < table.schema().len();
            let (rows, ty) = (table.rows(), columns.ty(id));
            (is_no_key && rows >= SAMPLED_ROWS).then(|| (relation, id, rows, ty, table.key_sample(column)))
        };
        let mut sampled: Vec<_> = members.iter().filter_map(|member| of(self, member)).collect();
        let first_type = sampled.first().map(|(_, _, _, ty, _)| *ty);
        sampled.retain(|(_, _, _, ty, _)| Some(*ty) == first_type);
        sampled.truncate(KEY_SAMPLES_MAX);
        let samples: Vec<&KeySample> = sampled.iter().map(|(_, _, _, _, sample)| &**sample).collect();
        for &(set, share) in KeySample::shares(&samples).iter() {
            let among = || self::members(Set::from(set)).map(|at| &sampled[at]);
            let over = among().fold(0, |over, (relation, ..)| over | 1 << relation);
            let is_by_one = |pair: Set| self.classes.iter().filter(|class| class.joins(pair)).count() == 1;
            let are_by_one = self::members(over)
                .all(|a| self::members(over).filter(|b| *b > a).all(|b| is_by_one(1 << a | 1 << b)));
            let is_large = among().any(|(_, _, rows, ..)| *rows >= SAMPLED_LARGE);
            let is_new = self.known.iter().all(|(known, _)| *known != over);
            let expected = self.known_rows(over);
            if are_by_one && is_large && is_new && expected > 0.0 {
                let all: f64 =
                    among().map(|(relation, ..)| self.relations[*relation].estimate.rows).product();
                let columns = among().map(|(_, id, ..)| *id).collect();
                self.refer(over, columns, share * all / expected);
            }
        }
    }

    /// How the relations in `set` join what is on their left.
    pub(super) fn kind(&self, set: Set) -> JoinKind {
        let first = &self.relations[set.trailing_zeros() as usize];
        first
            .attached
            .as_ref()
            .filter(|_| self.is_attached(set))
            .map_or(JoinKind::Inner, |attached| attached.kind)
    }

    /// True for one attached relation alone, which cannot stand for itself.
    pub(super) fn is_attached(&self, set: Set) -> bool {
        set.count_ones() == 1 && self.relations[set.trailing_zeros() as usize].attached.is_some()
    }

    /// The relations that must be together before an attached one joins them; none for others.
    pub(super) fn needs(&self, relation: usize) -> Set {
        self.relations[relation].attached.as_ref().map_or(0, |attached| attached.needs)
    }

    /// How `left` and `right` may be joined; `None` if they may not: an attached relation joins alone, on the
    /// right, when what it needs is on the left.
    pub(super) fn link(&self, left: Set, right: Set) -> Option<Link> {
        if self.is_attached(left) {
            return None;
        }
        if self.is_attached(right) {
            let attached = self.relations[right.trailing_zeros() as usize].attached.as_ref()?;
            return (attached.needs & !left == 0).then_some(
                match (attached.on.is_empty(), attached.residual.is_empty()) {
                    (false, _) => Link::Equal,
                    (true, false) if attached.residual.iter().any(is_inequality) => Link::Bound,
                    (true, false) => Link::Condition,
                    (true, true) => Link::Cross,
                },
            );
        }
        let within = |set: Set| move |member: &Member| set >> member.relation & 1 == 1;
        if self
            .classes
            .iter()
            .any(|c| c.members.iter().any(within(left)) && c.members.iter().any(within(right)))
        {
            return Some(Link::Equal);
        }
        let mut best = Link::Cross;
        for predicate in self.between(left, right) {
            if predicate.is_equality {
                return Some(Link::Equal);
            }
            let is_between = |(a, b): (Set, Set)| {
                (a & !left == 0 && b & !right == 0) || (a & !right == 0 && b & !left == 0)
            };
            match predicate.bound.is_some_and(is_between) {
                true => best = Link::Bound,
                false if best == Link::Cross => best = Link::Condition,
                false => {}
            }
        }
        Some(best)
    }

    /// The predicates that can be applied when `left` meets `right`, and not before.
    fn between(&self, left: Set, right: Set) -> impl Iterator<Item = &Predicate> {
        let alone = self.is_attached(right);
        self.predicates.iter().filter(move |p| {
            p.reads & !(left | right) == 0 && p.reads & !left != 0 && (alone || p.reads & !right != 0)
        })
    }

    /// The relations next to each one: those that share a class or a predicate, or that it needs.
    pub(super) fn neighbours(&self) -> Vec<Set> {
        let mut next = vec![0; self.relations.len()];
        let mut tie = |set: Set| members(set).for_each(|i| next[i] |= set & !(1 << i));
        for class in &self.classes {
            tie(class.members.iter().fold(0, |set, member| set | 1 << member.relation));
        }
        self.predicates.iter().for_each(|predicate| tie(predicate.reads));
        for (index, relation) in self.relations.iter().enumerate() {
            if let Some(attached) = &relation.attached {
                tie(attached.needs | 1 << index);
            }
        }
        next
    }

    /// Rows of the join of all relations in `set`, whatever the order.
    pub(super) fn rows(&self, set: Set) -> f64 {
        let applied = self.predicates.iter().filter(|p| p.reads & !set == 0);
        (self.known_rows(set) * applied.map(|p| p.share).product::<f64>()).max(1.0)
    }

    /// Rows of the join by equal keys alone, by what has been looked at.
    fn known_rows(&self, set: Set) -> f64 {
        let known = self.known.iter().filter(|(over, _)| over & !set == 0);
        self.matched(set) * known.map(|(_, factor)| factor).product::<f64>()
    }

    /// Rows of the join by equal keys alone, by statistics.
    fn matched(&self, set: Set) -> f64 {
        let mut rows = 1.0;
        let mut joined: Set = 0;
        let shared: Vec<_> = self.classes.iter().map(|class| class.shared(set)).collect();
        for index in members(set) {
            let relation = &self.relations[index];
            match &relation.attached {
                Some(attached) if set.count_ones() > 1 => rows *= attached.factor,
                _ => {
                    rows *= relation.estimate.rows * self.class_share(joined, index, &shared);
                    joined |= 1 << index;
                }
            }
        }
        rows
    }

    /// The share of pairs that the classes leave when `relation` joins `joined`. `shared` has for each class
    /// the range that all relations of the set share.
    fn class_share(&self, joined: Set, relation: usize, shared: &[Option<(f64, f64)>]) -> f64 {
        let mut domains = Vec::new();
        let mut partners = !0;
        let mut within = 1.0;
        for (class, shared) in self.classes.iter().zip(shared) {
            let Some(own) = class.members.iter().find(|m| m.relation == relation) else { continue };
            let own = own.estimate.within(*shared);
            within *= own.rows;
            let others = || class.members.iter().filter(|m| joined >> m.relation & 1 == 1);
            if let Some(domain) = others().map(|m| m.estimate.within(*shared).domain).reduce(f64::min) {
                domains.push((domain, own.domain));
                partners &= others().fold(0, |set, m| set | 1 << m.relation);
            }
        }
        // A key of several columns belongs to one relation, or it is no key.
        let base = |i: usize| self.relations[i].estimate.base;
        let partner = members(partners & joined).map(base).reduce(f64::min).unwrap_or(f64::MAX);
        within * key_selectivity(&domains, (partner, base(relation)))
    }

    /// True if the set is one relation of at most one row.
    pub(super) fn is_single_row(&self, set: Set) -> bool {
        set.count_ones() == 1 && is_at_most_one_row(self.node(set.trailing_zeros() as usize))
    }

    /// Takes a relation's subplan out, to build with it.
    pub(super) fn take(&mut self, relation: usize) -> Node {
        self.relations[relation].node.take().expect("each relation is used once")
    }

    /// The join of two subplans that hold the relations `sets`.
    pub(super) fn join(&mut self, left: Node, right: Node, sets: (Set, Set)) -> Node {
        let mut later: Vec<Expr> = self.between(sets.0, sets.1).map(|p| p.expr.clone()).collect();
        if self.is_attached(sets.1) {
            let attached =
                self.relations[sets.1.trailing_zeros() as usize].attached.take().expect("it is attached");
            let Attached { kind, on, residual, .. } = attached;
            let (left, right) = (Box::new(left), Box::new(right));
            return filter(Node::Join(Join { left, right, kind, on, residual }), later);
        }
        let mut on = Vec::new();
        for class in &self.classes {
            // The member with the fewest values is the likeliest key.
            let side = |set: Set| {
                let inside = class.members.iter().filter(move |m| set >> m.relation & 1 == 1);
                inside.reduce(|a, b| if b.estimate.domain < a.estimate.domain { b } else { a })
            };
            if let (Some(l), Some(r)) = (side(sets.0), side(sets.1)) {
                on.push(JoinKey { left: l.expr.clone(), right: r.expr.clone(), null_equals_null: false });
            }
        }
        let (own_left, own_right) =
            (crate::plan::tree::columns_of(&left), crate::plan::tree::columns_of(&right));
        let mut residual = Vec::new();
        for predicate in later.drain(..) {
            match crate::plan::tree::as_join_key(predicate, &own_left, &own_right) {
                Ok(key) => on.push(key),
                Err(predicate) => residual.push(predicate),
            }
        }
        Node::Join(Join { left: Box::new(left), right: Box::new(right), kind: JoinKind::Inner, on, residual })
    }

    /// What stands above the region: `input` with the computed columns and the predicates that had to wait.
    pub(super) fn finish(self, input: Node) -> Node {
        let known: HashMap<ColumnId, Expr> = self.computed.iter().cloned().collect();
        let above = self.above.into_iter().map(|e| substitute(e, &known)).collect();
        let filtered = filter(input, above);
        if self.computed.is_empty() {
            return filtered;
        }
        Node::Project(Project { input: Box::new(filtered), exprs: self.computed })
    }
}

/// The relations in a set, ascending.
pub(super) fn members(set: Set) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let next = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        next
    })
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
