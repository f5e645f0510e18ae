//! Cycles of an order: Tarjan's strongly connected components, and a shortest cycle in one of them.

use super::order::{Edge, Order, Why};
use std::collections::VecDeque;

/// The number of moments of a component from which a shortest cycle is searched.
const BEGINNINGS: usize = 500;

/// A short cycle, if there is one; steps of the clock between two moments are one edge.
pub(crate) fn shortest(order: &Order) -> Option<Vec<Edge>> {
    let component = components(order);
    let mut sizes = vec![0_usize; order.moments()];
    component.iter().for_each(|component| sizes[*component] += 1);
    let in_cycle =
        (0..order.moments()).filter(|moment| !order.is_clock(*moment) && sizes[component[*moment]] > 1);
    let cycles = in_cycle.take(BEGINNINGS).filter_map(|moment| cycle_from(order, moment, &component));
    cycles.min_by_key(Vec::len)
}

/// The shortest path from a moment back to itself.
fn cycle_from(order: &Order, beginning: usize, component: &[usize]) -> Option<Vec<Edge>> {
    let mut reached: std::collections::HashMap<usize, Edge> = std::collections::HashMap::new();
    let mut queue = VecDeque::from([beginning]);
    while let Some(moment) = queue.pop_front() {
        for edge in order.from(moment) {
            if component[edge.to] != component[beginning] || reached.contains_key(&edge.to) {
                continue;
            }
            reached.insert(edge.to, *edge);
            if edge.to == beginning {
                return Some(without_clock(order, &way_back(&reached, beginning)));
            }
            queue.push_back(edge.to);
        }
    }
    None
}

fn way_back(reached: &std::collections::HashMap<usize, Edge>, beginning: usize) -> Vec<Edge> {
    let mut way = vec![reached[&beginning]];
    while way[way.len() - 1].from != beginning {
        way.push(reached[&way[way.len() - 1].from]);
    }
    way.reverse();
    way
}

fn without_clock(order: &Order, way: &[Edge]) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    let mut since = None;
    for edge in way {
        match (order.is_clock(edge.from), order.is_clock(edge.to)) {
            (false, false) => edges.push(*edge),
            (false, true) => since = Some(edge.from),
            (true, true) => {}
            (true, false) => {
                let from = since.take().expect("the way begins with a moment of a transaction");
                edges.push(Edge { from, to: edge.to, why: Why::Time });
            }
        }
    }
    edges
}

/// For each moment, the number of its strongly connected component (Tarjan 1972, without recursion).
fn components(order: &Order) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let moments = order.moments();
    let (mut number, mut low, mut component) = (vec![NONE; moments], vec![0; moments], vec![NONE; moments]);
    let (mut open, mut next, mut components) = (Vec::new(), 0, 0);
    for root in 0..moments {
        if number[root] != NONE {
            continue;
        }
        let mut calls = vec![(root, 0)];
        while let Some((moment, edge)) = calls.last_mut() {
            let moment = *moment;
            if *edge == 0 {
                (number[moment], low[moment]) = (next, next);
                next += 1;
                open.push(moment);
            }
            if let Some(to) = order.from(moment).get(*edge).map(|edge| edge.to) {
                *edge += 1;
                if number[to] == NONE {
                    calls.push((to, 0));
                } else if component[to] == NONE {
                    low[moment] = low[moment].min(number[to]);
                }
                continue;
            }
            calls.pop();
            if let Some((caller, _)) = calls.last() {
                low[*caller] = low[*caller].min(low[moment]);
            }
            if low[moment] == number[moment] {
                while let Some(member) = open.pop() {
                    component[member] = components;
                    if member == moment {
                        break;
                    }
                }
                components += 1;
            }
        }
    }
    component
}
