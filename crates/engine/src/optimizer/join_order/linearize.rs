//! A linear order of relations in which neighbouring intervals make good joins.
//!
//! It is the best left-deep order of a spanning tree of the graph, by the sum of the rows of all intermediate
//! results: **IKKBZ** (T. Ibaraki and T. Kameda, "On the optimal nesting order for computing N-relational
//! joins", TODS 1984; R. Krishnamurthy, H. Boral and C. Zaniolo, "Optimization of Nonrecursive Queries", VLDB
//! 1986). Dynamic programming over the intervals of this order then finds bushy trees: **LinDP** (T. Neumann
//! and B. Radke, "Adaptive Optimization of Very Large Join Queries", SIGMOD 2018).
//!
//! 1. The spanning tree takes the most selective edges. Attached relations are leaves of it, or hang on
//!    attached ones that they need.
//! 2. For each relation as its root, the tree is ordered from the leaves up: below every relation the chains
//!    of its children are merged by rank, the growth of the result for the rows that it takes. A relation of
//!    a higher rank than what must follow it is one block with it.
//! 3. The cheapest of these orders is it, but for attached relations, which come behind all that they need.

use super::{Graph, Set, members};

/// The relations of `graph`, in which each has these neighbours, in a good linear order; `None` if they are
/// not connected.
pub(super) fn linearize(graph: &Graph, neighbours: &[Set]) -> Option<Vec<usize>> {
    let tree = Tree::of(graph, neighbours)?;
    let free = (0..neighbours.len()).filter(|i| !graph.is_attached(1 << i));
    let orders = free.map(|root| tree.order(root, graph.rows(1 << root)));
    let (_, order) = orders.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some(behind_needs(graph, order))
}

/// The order with each attached relation behind all that it needs: the tree knows one of them.
fn behind_needs(graph: &Graph, order: Vec<usize>) -> Vec<usize> {
    let (mut behind, mut waiting, mut placed): (Vec<usize>, Vec<usize>, Set) = Default::default();
    for relation in order {
        waiting.push(relation);
        while let Some(at) = waiting.iter().position(|&next| graph.needs(next) & !placed == 0) {
            let next = waiting.remove(at);
            behind.push(next);
            placed |= 1 << next;
        }
    }
    behind
}

/// A spanning tree: for each relation, those next to it, each with the rows that joining it makes of one.
struct Tree {
    next: Vec<Vec<(usize, f64)>>,
}

impl Tree {
    fn of(graph: &Graph, neighbours: &[Set]) -> Option<Tree> {
        let count = neighbours.len();
        let mut tree = Tree { next: vec![Vec::new(); count] };
        let rows = |i: usize| graph.rows(1 << i);
        let pair = |a: usize, b: usize| graph.rows(1 << a | 1 << b);
        let free: Set = (0..count).filter(|i| !graph.is_attached(1 << i)).fold(0, |set, i| set | 1 << i);
        let mut reached: Set = free & free.wrapping_neg();
        while reached != free {
            let edges = members(reached).flat_map(|a| {
                members(neighbours[a] & free & !reached)
                    .map(move |b| (pair(a, b) / (rows(a) * rows(b)), a, b))
            });
            let (_, a, b) = edges.min_by(|one, two| one.0.total_cmp(&two.0))?;
            let together = pair(a, b);
            tree.next[a].push((b, together / rows(a)));
            tree.next[b].push((a, together / rows(b)));
            reached |= 1 << b;
        }
        // What an attached relation needs has a lower number.
        for i in (0..count).filter(|i| free >> i & 1 == 0) {
            let on = 63 - graph.needs(i).leading_zeros() as usize;
            tree.next[on].push((i, pair(on, i) / rows(on)));
        }
        Some(tree)
    }

    /// The best order that begins with `root`, of so many rows, and its cost.
    fn order(&self, root: usize, rows: f64) -> (f64, Vec<usize>) {
        let rest = self.below(root, None).into_iter();
        let all = rest.fold(Block { relations: vec![root], growth: rows, cost: 0.0 }, Block::then);
        (all.cost, all.relations)
    }

    /// What is below `relation`, seen from `parent`, by rising rank.
    fn below(&self, relation: usize, parent: Option<usize>) -> Vec<Block> {
        let mut blocks = Vec::new();
        for &(child, growth) in self.next[relation].iter().filter(|(child, _)| Some(*child) != parent) {
            let mut first = Block { relations: vec![child], growth, cost: growth };
            let mut rest = self.below(child, Some(relation)).into_iter().peekable();
            while let Some(next) = rest.next_if(|next| next.rank() < first.rank()) {
                first = first.then(next);
            }
            blocks.push(first);
            blocks.extend(rest);
        }
        // Each chain ascends, and the sort is stable, so no relation comes before the one that it hangs on.
        blocks.sort_by(|a, b| a.rank().total_cmp(&b.rank()));
        blocks
    }
}

/// Relations that are joined one after the other.
struct Block {
    relations: Vec<usize>,
    /// The rows after the block for one before it.
    growth: f64,
    /// The rows of all results within it for one row before it.
    cost: f64,
}

impl Block {
    fn rank(&self) -> f64 {
        (self.growth - 1.0) / self.cost
    }

    fn then(mut self, next: Block) -> Block {
        self.cost += self.growth * next.cost;
        self.growth *= next.growth;
        self.relations.extend(next.relations);
        self
    }
}
