//! What is believed of the relations of a graph, and of joins of some of them.

use super::graph::{Class, Graph, Leaf, Set, members};
use crate::estimate::related::{Met, related};
use crate::estimate::selectivity::{Side, band, bands, selectivity};
use crate::estimate::{Estimate, estimate, estimate_join, key_selectivity};
use crate::plan::{Columns, Node, Reference};
use entasis_storage::{KEY_SAMPLES_MAX, KeySample};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType};

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

impl Graph {
    /// Estimates all relations, classes and predicates.
    pub(super) fn estimate(&mut self, columns: &Columns) {
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
    pub(super) fn refer(&mut self, over: Set, columns: Vec<ColumnId>, factor: f64) {
        self.known.push((over, factor));
        let first = &mut self.relations[over.trailing_zeros() as usize];
        let reference = Reference { columns: columns.into(), factor };
        if let Some(Node::Scan(scan)) = first.node.as_mut() {
            scan.references.push(reference.clone());
        }
        first.estimate.references.push(reference);
    }

    /// Joins samples of the columns of a class, `of_class`, that are no keys of their tables: those of
    /// each two, three and four of them. Of more, what is found of their subsets is multiplied.
    fn find_frequent(&mut self, class: usize, of_class: &[(usize, ColumnId)], columns: &Columns) {
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
        let mut sampled: Vec<_> = of_class.iter().filter_map(|member| of(self, member)).collect();
        let first_type = sampled.first().map(|(_, _, _, ty, _)| *ty);
        sampled.retain(|(_, _, _, ty, _)| Some(*ty) == first_type);
        sampled.truncate(KEY_SAMPLES_MAX);
        let samples: Vec<&KeySample> = sampled.iter().map(|(_, _, _, _, sample)| &**sample).collect();
        for &(set, share) in KeySample::shares(&samples).iter() {
            let among = || members(Set::from(set)).map(|at| &sampled[at]);
            let over = among().fold(0, |over, (relation, ..)| over | 1 << relation);
            let is_by_one = |pair: Set| self.classes.iter().filter(|class| class.joins(pair)).count() == 1;
            let are_by_one =
                members(over).all(|a| members(over).filter(|b| *b > a).all(|b| is_by_one(1 << a | 1 << b)));
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

    /// Rows of the join of all relations in `set`, whatever the order.
    pub(in crate::optimizer) fn rows(&self, set: Set) -> f64 {
        let applied = self.predicates.iter().filter(|p| p.reads & !set == 0);
        (self.known_rows(set) * applied.map(|p| p.share).product::<f64>()).max(1.0)
    }

    /// Rows of the join by equal keys alone, by what has been looked at.
    pub(super) fn known_rows(&self, set: Set) -> f64 {
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
}
