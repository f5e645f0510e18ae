//! Rule: joins in the cheapest order that can be found.
//!
//! Up to [`EXACT_RELATIONS`] relations the order is found exactly, bushy trees included, by dynamic
//! programming over pairs of a connected subgraph and its connected complement: **DPccp**, G. Moerkotte and
//! T. Neumann, "Analysis of Two Existing and One New Dynamic Programming Algorithm for the Generation of
//! Optimal Bushy Join Trees without Cross Products", VLDB 2006. It enumerates each such pair once and no
//! others, and every pair after all pairs inside its two halves, so that both halves have their best plan
//! when they meet. For the chain `0 - 1 - 2 - 3`:
//!
//! ```text
//! {3}
//! {2}          {2}-{3}
//! {2,3}
//! {1}          {1}-{2}  {1}-{2,3}
//! {1,2}        {1,2}-{3}
//! {1,2,3}
//! {0}          {0}-{1}  {0}-{1,2}  {0}-{1,2,3}
//! {0,1}        {0,1}-{2}  {0,1}-{2,3}
//! {0,1,2}      {0,1,2}-{3}
//! ```
//!
//! Above that, or where a clique has more than [`PAIRS_MAX`] pairs, the order is greedy: join the two
//! subplans whose join adds least to the cost, again and again (greedy operator ordering, Fegaras 1998).
//!
//! The **cost** of an order is that of its joins ([`join_cost`]), by the rows and bytes of both sides: which
//! columns a set of relations carries follows from who reads them later. Unconnected parts are joined by
//! cross products, where they cost least.

use super::join_graph::{Graph, Link, RELATIONS_MAX, Set, members};
use super::prune::aggregate_reads;
use crate::cost::Costs;
use crate::estimate::join_cost::{self, By};
use crate::estimate::width;
use crate::plan::tree::{ColumnSet, reads_all, take};
use crate::plan::{Columns, JoinKind, Node, Plan};
use entasis_vector::Result;
use std::collections::HashMap;

/// Relations up to which the order is exact.
const EXACT_RELATIONS: usize = 12;
/// Pairs after which exact enumeration gives up: a few milliseconds.
const PAIRS_MAX: usize = 20_000;

/// Orders all joins of the plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let root = take(&mut plan.root);
    let read = plan.output.iter().map(|output| output.column).collect();
    plan.root = order(root, &plan.columns, &read);
    Ok(())
}

/// Orders what is below `node`, of which `above` is read above.
fn order(mut node: Node, columns: &Columns, above: &ColumnSet) -> Node {
    if is_region(&node) && leaves(&node) <= RELATIONS_MAX {
        return order_region(node, columns, above);
    }
    order_children(&mut node, columns, above);
    node
}

fn order_children(node: &mut Node, columns: &Columns, above: &ColumnSet) {
    let mut read = above.clone();
    add_reads(node, &mut read);
    for child in node.children_mut() {
        *child = order(take(child), columns, &read);
    }
}

/// Adds the columns that `node` itself reads.
fn add_reads(node: &Node, read: &mut ColumnSet) {
    match node {
        Node::Scan(_) | Node::Values(_) | Node::Limit(_) => {}
        Node::Filter(filter) => read.add(&reads_all(&filter.predicates)),
        Node::Project(project) => read.add(&reads_all(project.exprs.iter().map(|(_, expr)| expr))),
        Node::Join(join) => {
            read.add(&reads_all(
                join.on.iter().flat_map(|key| [&key.left, &key.right]).chain(&join.residual),
            ));
        }
        Node::Aggregate(aggregate) => read.add(&aggregate_reads(aggregate)),
        Node::Distinct(distinct) => distinct.keys.iter().for_each(|id| read.insert(*id)),
        Node::Window(window) => read.add(&reads_all(window.exprs())),
        Node::Sort(sort) => read.add(&reads_all(sort.keys.iter().map(|key| &key.expr))),
        Node::SetOperation(set) => set.inputs.iter().flat_map(|(_, ids)| ids).for_each(|id| read.insert(*id)),
    }
}

/// Adds the columns that the nodes of a region read.
fn add_region_reads(node: &Node, read: &mut ColumnSet) {
    if let Node::Filter(_) | Node::Project(_) | Node::Join(_) = node {
        add_reads(node, read);
        node.children().into_iter().for_each(|child| add_region_reads(child, read));
    }
}

/// True at the top of a tree of joins.
fn is_region(node: &Node) -> bool {
    match node {
        Node::Filter(filter) => is_region(&filter.input),
        Node::Join(join) => {
            !matches!(join.kind, JoinKind::Full | JoinKind::Single | JoinKind::AsOf { .. })
                && !crate::plan::tree::is_volatile_join(join)
        }
        _ => false,
    }
}

/// At least as many as the region's graph will have relations.
fn leaves(node: &Node) -> usize {
    match node {
        Node::Filter(filter) => leaves(&filter.input),
        Node::Project(project) => leaves(&project.input),
        Node::Join(join) => leaves(&join.left) + leaves(&join.right),
        _ => 1,
    }
}

fn order_region(node: Node, columns: &Columns, above: &ColumnSet) -> Node {
    let costs = width::costs(&node);
    let mut read = above.clone();
    add_region_reads(&node, &mut read);
    let mut graph =
        Graph::of(node, columns, above, &costs, &mut |subplan| order_inside(subplan, columns, &read));
    let all: Set = if graph.relations.len() == 64 { !0 } else { (1 << graph.relations.len()) - 1 };
    let mut search = Search::new(&graph, &costs);
    if graph.relations.len() > EXACT_RELATIONS || !search.exact(all) {
        search.greedy(all);
    }
    let best = search.best;
    let tree = build(&mut graph, &best, all);
    graph.finish(tree)
}

/// Orders a subplan that is a leaf of a region. A leaf that is itself the root of a join that ends the region
/// must not be taken for a region again.
fn order_inside(mut node: Node, columns: &Columns, above: &ColumnSet) -> Node {
    if is_region(&node) {
        return order(node, columns, above);
    }
    order_children(&mut node, columns, above);
    node
}

fn build(graph: &mut Graph, best: &HashMap<Set, Choice>, set: Set) -> Node {
    match best[&set].halves {
        None => graph.take(set.trailing_zeros() as usize),
        Some((left, right)) => {
            let (a, b) = (build(graph, best, left), build(graph, best, right));
            graph.join(a, b, (left, right))
        }
    }
}

/// The best known plan of a set of relations.
#[derive(Debug, Clone, Copy)]
struct Choice {
    cost: f64,
    rows: f64,
    /// The two sets that are joined, the one to be kept (or the attached relation) second.
    halves: Option<(Set, Set)>,
}

struct Search<'a> {
    graph: &'a Graph,
    costs: &'a Costs,
    neighbours: Vec<Set>,
    best: HashMap<Set, Choice>,
    pairs: usize,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, costs: &'a Costs) -> Search<'a> {
        let mut neighbours = graph.neighbours();
        connect(&mut neighbours);
        let single = |i: usize| (1u64 << i, Choice { cost: 0.0, rows: graph.rows(1 << i), halves: None });
        let best = (0..graph.relations.len()).map(single).collect();
        Search { graph, costs, neighbours, best, pairs: 0 }
    }

    /// The plan for joining two sets that have plans; `None` if they cannot be joined.
    fn combine(&self, a: Set, b: Set) -> Option<Choice> {
        let (a, b) = if self.graph.is_attached(a) { (b, a) } else { (a, b) };
        let (one, two) = (self.best.get(&a)?, self.best.get(&b)?);
        let link = self.graph.link(a, b)?;
        let rows = self.best.get(&(a | b)).map_or_else(|| self.graph.rows(a | b), |known| known.rows);
        let chosen = self.costs.join(&join_cost::WeighedJoin {
            kind: self.graph.kind(b),
            by: match link {
                Link::Equal => By::Keys,
                Link::Bound => By::Order,
                Link::Condition | Link::Cross => By::Nothing,
            },
            left: self.graph.side(a, b, one.rows),
            right: self.graph.side(b, a, two.rows),
            rows,
            memory: f64::INFINITY,
        });
        let turned = chosen.keeps_left && !self.graph.is_attached(b);
        let cost = one.cost + two.cost + chosen.cost;
        Some(Choice { cost, rows, halves: Some(if turned { (b, a) } else { (a, b) }) })
    }

    fn consider(&mut self, a: Set, b: Set) {
        self.pairs += 1;
        if let Some(choice) = self.combine(a, b) {
            let known = self.best.entry(a | b).or_insert(choice);
            if choice.cost < known.cost {
                *known = choice;
            }
        }
    }

    /// DPccp. False if it gave up, or found no plan.
    fn exact(&mut self, all: Set) -> bool {
        for i in (0..self.neighbours.len()).rev() {
            let start: Set = 1 << i;
            self.complements(start);
            self.grow(start, start | (start - 1));
            if self.pairs > PAIRS_MAX {
                return false;
            }
        }
        self.best.contains_key(&all)
    }

    fn around(&self, set: Set) -> Set {
        members(set).fold(0, |found, i| found | self.neighbours[i]) & !set
    }

    /// Every connected set that contains `set` and nothing of `without`, each with its complements.
    fn grow(&mut self, set: Set, without: Set) {
        let around = self.around(set) & !without;
        for part in subsets(around) {
            if self.pairs > PAIRS_MAX {
                return;
            }
            self.complements(set | part);
        }
        for part in subsets(around) {
            if self.pairs > PAIRS_MAX {
                return;
            }
            self.grow(set | part, without | around);
        }
    }

    /// Every connected set next to `set` whose smallest relation is above `set`'s smallest.
    fn complements(&mut self, set: Set) {
        let lowest = set & set.wrapping_neg();
        let without = set | (lowest - 1) | lowest;
        let around = self.around(set) & !without;
        let mut rest = around;
        while rest != 0 {
            let i = 63 - rest.leading_zeros();
            let start: Set = 1 << i;
            rest &= !start;
            self.consider(set, start);
            // Relations of `around` below this one start complements of their own.
            self.grow_complement(set, start, without | (around & (start | (start - 1))));
        }
    }

    fn grow_complement(&mut self, set: Set, complement: Set, without: Set) {
        let around = self.around(complement) & !without & !set;
        for part in subsets(around) {
            if self.pairs > PAIRS_MAX {
                return;
            }
            self.consider(set, complement | part);
        }
        for part in subsets(around) {
            if self.pairs > PAIRS_MAX {
                return;
            }
            self.grow_complement(set, complement | part, without | around);
        }
    }

    /// Greedy operator ordering.
    fn greedy(&mut self, all: Set) {
        let mut parts: Vec<Set> = members(all).map(|i| 1 << i).collect();
        self.best.retain(|set, _| set.count_ones() == 1);
        while parts.len() > 1 {
            let mut found: Option<(f64, bool, usize, usize, Choice)> = None;
            for i in 0..parts.len() {
                for j in i + 1..parts.len() {
                    let Some(choice) = self.combine(parts[i], parts[j]) else { continue };
                    let (a, b) = choice.halves.expect("a join has halves");
                    let cross = self.graph.link(a, b) == Some(Link::Cross);
                    let added = choice.cost - self.best[&parts[i]].cost - self.best[&parts[j]].cost;
                    // A cross product only if nothing else is left, or if it costs nothing.
                    let cross = cross && !self.graph.is_single_row(a) && !self.graph.is_single_row(b);
                    if found.as_ref().is_none_or(|best| (cross, added) < (best.1, best.0)) {
                        found = Some((added, cross, i, j, choice));
                    }
                }
            }
            let (_, _, i, j, choice) =
                found.expect("two free parts can always be joined, and attached ones follow");
            let joined = parts[i] | parts[j];
            parts.swap_remove(j);
            parts[i] = joined;
            self.best.insert(joined, choice);
        }
    }
}

/// All subsets of `set` but the empty one, smaller ones before those that contain them.
fn subsets(set: Set) -> impl Iterator<Item = Set> {
    let mut part: Set = 0;
    std::iter::from_fn(move || {
        part = part.wrapping_sub(set) & set;
        (part != 0).then_some(part)
    })
}

/// Makes unconnected parts of the graph neighbours, so that cross products are found. With few relations
/// everything in different parts is, else one relation of each.
fn connect(neighbours: &mut [Set]) {
    let count = neighbours.len();
    let mut parts: Vec<Set> = Vec::new();
    for i in 0..count {
        if parts.iter().any(|part| part >> i & 1 == 1) {
            continue;
        }
        let mut part: Set = 1 << i;
        loop {
            let wider = members(part).fold(part, |all, i| all | neighbours[i]);
            if wider == part {
                break;
            }
            part = wider;
        }
        parts.push(part);
    }
    for (i, one) in parts.iter().enumerate() {
        for two in &parts[i + 1..] {
            let few = |part: Set| if count <= 8 { part } else { part & part.wrapping_neg() };
            members(few(*one)).for_each(|r| neighbours[r] |= few(*two));
            members(few(*two)).for_each(|r| neighbours[r] |= few(*one));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;
    use crate::plan::{Join, JoinKey};

    /// The graph of a region of which every second column is read above.
    fn graph(region: Node, columns: &Columns) -> Graph {
        let above = region.columns().into_iter().step_by(2).collect();
        Graph::of(region, columns, &above, &Costs::default(), &mut |leaf| leaf)
    }

    /// The obvious way: every split of every set, whether connected or not, by rising size.
    fn all_splits(search: &mut Search<'_>, all: Set) {
        for set in subsets(all).filter(|set| set.count_ones() > 1) {
            for part in subsets(set).filter(|part| *part != set) {
                search.consider(part, set & !part);
            }
        }
    }

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// A connected graph of random tables and edges, some of them semi joins.
    fn random_region(seed: u64, relations: usize) -> (Node, Columns) {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut b = Builder::default();
        let mut tree: Option<Node> = None;
        for i in 0..relations {
            let rows = 1 << (random(&mut state) % 20);
            let names = [format!("a{i}"), format!("b{i}")];
            let distinct = [1 + random(&mut state) % rows, 1 + random(&mut state) % rows];
            let table = b.scan(
                &format!("t{i}"),
                rows,
                &[(names[0].as_str(), distinct[0]), (names[1].as_str(), distinct[1])],
            );
            let Some(left) = tree else {
                tree = Some(table);
                continue;
            };
            let visible: Vec<_> = left.columns();
            let mut on = Vec::new();
            for _ in 0..1 + random(&mut state) % 2 {
                let other = visible[random(&mut state) as usize % visible.len()];
                let own = b.column(&names[random(&mut state) as usize % 2]);
                on.push(JoinKey { left: b.columns.expr(other), right: own, null_equals_null: false });
            }
            let kind = if random(&mut state).is_multiple_of(4) { JoinKind::Semi } else { JoinKind::Inner };
            tree = Some(Node::Join(Join {
                left: Box::new(left),
                right: Box::new(table),
                kind,
                on,
                residual: Vec::new(),
            }));
        }
        (tree.expect("at least one table"), b.columns)
    }

    #[test]
    fn the_exact_order_is_the_best_of_all_without_needless_cross_products() {
        let costs = Costs::default();
        for seed in 0..60 {
            let relations = 3 + seed as usize % 5;
            let (node, columns) = random_region(seed, relations);
            let graph = graph(node, &columns);
            let all: Set = (1 << graph.relations.len()) - 1;
            let mut exact = Search::new(&graph, &costs);
            assert!(exact.exact(all), "seed {seed}");
            let mut twin = Search::new(&graph, &costs);
            all_splits(&mut twin, all);
            let (found, best) = (exact.best[&all].cost, twin.best[&all].cost);
            // The twin may use cross products; where it does not, the costs agree.
            let crosses = |search: &Search<'_>| {
                search
                    .best
                    .values()
                    .filter_map(|c| c.halves)
                    .any(|(a, b)| graph.link(a, b) == Some(Link::Cross))
            };
            assert!(found >= best * 0.999_999, "seed {seed}: {found} is cheaper than the best {best}");
            if !crosses(&twin) {
                assert!(found <= best * 1.000_001, "seed {seed}: {found} instead of {best}");
            }
            let mut greedy = Search::new(&graph, &costs);
            greedy.greedy(all);
            assert!(greedy.best[&all].cost >= best * 0.999_999, "seed {seed}");
        }
    }

    #[test]
    fn a_chain_has_its_pairs_and_no_more() {
        let mut b = Builder::default();
        let mut tree = b.scan("t0", 10, &[("a0", 10), ("b0", 10)]);
        for i in 1..8 {
            let (a, before) = (format!("a{i}"), format!("b{}", i - 1));
            let table = b.scan(&format!("t{i}"), 10, &[(a.as_str(), 10), (format!("b{i}").as_str(), 10)]);
            let on = vec![JoinKey { left: b.column(&before), right: b.column(&a), null_equals_null: false }];
            let (left, right) = (Box::new(tree), Box::new(table));
            tree = Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() });
        }
        let graph = graph(tree, &b.columns);
        let costs = Costs::default();
        let mut search = Search::new(&graph, &costs);
        assert!(search.exact((1 << 8) - 1));
        // A chain of n has (n^3 - n) / 6 pairs.
        assert_eq!(search.pairs, (512 - 8) / 6);
    }

    #[test]
    fn subsets_come_in_order() {
        assert_eq!(subsets(0b1011).collect::<Vec<_>>(), [1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(subsets(0).count(), 0);
    }

    #[test]
    fn unconnected_parts_become_neighbours() {
        let mut neighbours = vec![0b0010, 0b0001, 0b1000, 0b0100];
        connect(&mut neighbours);
        assert_eq!(neighbours, [0b1110, 0b1101, 0b1011, 0b0111]);
    }
}
