//! Rule: joins in the cheapest order that can be found.
//!
//! Where the graph has no more than [`PAIRS_MAX`] pairs of a connected set and a connected complement, the
//! order is found exactly, bushy trees included, by dynamic programming over these ([`pairs`]). Above that
//! the order is the better of two:
//!
//! - a greedy one: join the two subplans whose join adds least to the cost, again and again (greedy operator
//!   ordering, Fegaras 1998);
//! - the best tree over a linear order of the relations ([`linearize`]), by dynamic programming over its
//!   intervals. The best left-deep order of a tree of joins is among them.
//!
//! The **cost** of an order is that of its joins ([`join_cost`]), by the rows and bytes of both sides: which
//! columns a set of relations carries follows from who reads them later. Unconnected parts are joined by
//! cross products, where they cost least.

mod linearize;
mod pairs;

use super::column_pruning::aggregate_reads;
use super::join_graph::{Graph, Link, RELATIONS_MAX, Set, members};
use crate::cost::Costs;
use crate::estimate::join_cost::{self, By};
use crate::estimate::width;
use crate::plan::tree::{ColumnSet, reads, reads_all, take, visit_exprs};
use crate::plan::{Columns, JoinKind, Node, Plan, Recursion};
use entasis_vector::Result;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Pairs up to which the order is exact: a few milliseconds, and a star of twelve relations.
const PAIRS_MAX: usize = 12_000;

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
        Node::Unnest(unnest) => read.add(&reads_all(unnest.lists.iter().map(|(_, list)| list))),
        Node::Join(join) => {
            read.add(&reads_all(
                join.on.iter().flat_map(|key| [&key.left, &key.right]).chain(&join.residual),
            ));
        }
        Node::Dependent(_) => visit_exprs(node, &mut |expr| read.add(&reads(expr))),
        Node::Aggregate(aggregate) => read.add(&aggregate_reads(aggregate)),
        Node::Distinct(distinct) => distinct.keys.iter().for_each(|id| read.insert(*id)),
        Node::Window(window) => read.add(&reads_all(window.exprs())),
        Node::Sort(sort) => read.add(&reads_all(sort.keys.iter().map(|key| &key.expr))),
        Node::SetOperation(set) => set.inputs.iter().flat_map(|(_, ids)| ids).for_each(|id| read.insert(*id)),
        Node::Recursion(Recursion { start, step, .. }) => {
            start.columns.iter().chain(&step.columns).for_each(|id| read.insert(*id));
        }
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
                && !crate::plan::freedom::is_volatile_join(join)
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
    search.run(all);
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
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, costs: &'a Costs) -> Search<'a> {
        let mut neighbours = graph.neighbours();
        connect(&mut neighbours);
        let single = |i: usize| (1u64 << i, Choice { cost: 0.0, rows: graph.rows(1 << i), halves: None });
        let best = (0..graph.relations.len()).map(single).collect();
        Search { graph, costs, neighbours, best }
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
        if let Some(choice) = self.combine(a, b) {
            let known = self.best.entry(a | b).or_insert(choice);
            if choice.cost < known.cost {
                *known = choice;
            }
        }
    }

    /// Finds a plan for all relations.
    fn run(&mut self, all: Set) {
        if pairs::are_at_most(PAIRS_MAX, &self.neighbours) {
            self.exact();
        }
        if !self.best.contains_key(&all) {
            self.greedy(all);
            self.linearized();
        }
    }

    /// Dynamic programming over all pairs.
    fn exact(&mut self) {
        let neighbours = std::mem::take(&mut self.neighbours);
        let _ = pairs::each(&neighbours, &mut |a, b| {
            self.consider(a, b);
            ControlFlow::Continue(())
        });
        self.neighbours = neighbours;
    }

    /// Dynamic programming over the intervals of a linear order.
    fn linearized(&mut self) {
        let Some(order) = linearize::linearize(self.graph, &self.neighbours) else { return };
        let set = |interval: &[usize]| interval.iter().fold(0, |set: Set, i| set | 1 << i);
        for length in 2..=order.len() {
            for interval in order.windows(length) {
                for middle in 1..length {
                    let (a, b) = (set(&interval[..middle]), set(&interval[middle..]));
                    if pairs::around(&self.neighbours, a) & b != 0 {
                        self.consider(a, b);
                    }
                }
            }
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
    use super::pairs::subsets;
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
            exact.exact();
            assert!(exact.best.contains_key(&all), "seed {seed}");
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
    fn linear_orders_are_not_better_than_the_exact_one_and_seldom_much_worse() {
        let costs = Costs::default();
        let mut worse = [0; 2];
        for seed in 0..80 {
            let relations = 4 + seed as usize % 6;
            let (node, columns) = random_region(seed, relations);
            let graph = graph(node, &columns);
            let all: Set = (1 << graph.relations.len()) - 1;
            let mut exact = Search::new(&graph, &costs);
            exact.exact();
            let best = exact.best[&all].cost;
            let ways: [fn(&mut Search<'_>, Set); 2] =
                [|search, all| search.greedy(all), |search, _| search.linearized()];
            for (way, worse) in ways.iter().zip(&mut worse) {
                let mut search = Search::new(&graph, &costs);
                way(&mut search, all);
                let cost = search.best[&all].cost;
                assert!(cost >= best * 0.999_999, "seed {seed}: {cost} is cheaper than {best}");
                *worse += usize::from(cost > best * 1.1);
            }
        }
        assert!(worse[1] <= worse[0] && worse[1] <= 16, "greedy and linear orders: {worse:?}");
    }

    #[test]
    fn large_graphs_have_a_plan() {
        let costs = Costs::default();
        for relations in [13, 20, 40, RELATIONS_MAX] {
            let (node, columns) = random_region(relations as u64, relations);
            let graph = graph(node, &columns);
            let all: Set = !0 >> (64 - graph.relations.len());
            let mut greedy = Search::new(&graph, &costs);
            greedy.greedy(all);
            let mut search = Search::new(&graph, &costs);
            search.greedy(all);
            search.linearized();
            assert!(search.best[&all].cost <= greedy.best[&all].cost);
            let mut rest = vec![all];
            while let Some(set) = rest.pop() {
                if let Some((a, b)) = search.best[&set].halves {
                    assert!(a & b == 0 && a | b == set);
                    rest.extend([a, b]);
                } else {
                    assert_eq!(set.count_ones(), 1);
                }
            }
        }
    }

    #[test]
    fn unconnected_parts_become_neighbours() {
        let mut neighbours = vec![0b0010, 0b0001, 0b1000, 0b0100];
        connect(&mut neighbours);
        assert_eq!(neighbours, [0b1110, 0b1101, 0b1011, 0b0111]);
    }
}
