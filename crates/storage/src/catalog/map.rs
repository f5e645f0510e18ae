//! An ordered map from texts whose clones share what they have in common: a version of the catalog is a clone
//! with few changes.
//!
//! It is a treap whose nodes never change: a change copies the nodes on the way to it, some times the
//! logarithm of the number of entries, and shares all others. Priorities are hashes of the keys, so the same
//! keys always have the same tree, and two versions are compared by walking over both, past everything that
//! they share ([`differences`]).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// See the module.
pub(super) struct Map<V> {
    root: Link<V>,
}

type Link<V> = Option<Arc<Node<V>>>;

struct Node<V> {
    key: Arc<str>,
    value: V,
    priority: u64,
    left: Link<V>,
    right: Link<V>,
}

impl<V> Default for Map<V> {
    fn default() -> Map<V> {
        Map { root: None }
    }
}

impl<V> Clone for Map<V> {
    fn clone(&self) -> Map<V> {
        Map { root: self.root.clone() }
    }
}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V: Clone> Node<V> {
    fn with(&self, left: Link<V>, right: Link<V>) -> Arc<Node<V>> {
        counted();
        let Node { key, value, priority, .. } = self;
        Arc::new(Node { key: key.clone(), value: value.clone(), priority: *priority, left, right })
    }
}

impl<V> Map<V> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&V> {
        let mut at = &self.root;
        while let Some(node) = at {
            at = match key.cmp(&node.key) {
                Ordering::Less => &node.left,
                Ordering::Greater => &node.right,
                Ordering::Equal => return Some(&node.value),
            };
        }
        None
    }

    /// All entries, in the order of the keys.
    pub(super) fn iter(&self) -> Entries<'_, V> {
        self.from("")
    }

    /// The entries whose keys are not less than this one.
    pub(super) fn from(&self, key: &str) -> Entries<'_, V> {
        let mut ahead = Vec::new();
        let mut at = &self.root;
        while let Some(node) = at {
            at = match *key <= *node.key {
                true => {
                    ahead.push(&**node);
                    &node.left
                }
                false => &node.right,
            };
        }
        Entries { ahead }
    }

    /// The entries whose keys begin with a text.
    pub(super) fn beginning<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a Arc<str>, &'a V)> {
        self.from(start).take_while(move |(key, _)| key.starts_with(start))
    }

    /// True if one is a clone of the other, and neither has changed since.
    pub(super) fn is(&self, other: &Map<V>) -> bool {
        is_same(&self.root, &other.root)
    }
}

impl<V: Clone> Map<V> {
    /// Sets the value of a key; returns the one before.
    pub(super) fn insert(&mut self, key: Arc<str>, value: V) -> Option<V> {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let priority = hasher.hash_one(&*key);
        let (root, old) = put(&self.root, Node { key, value, priority, left: None, right: None });
        self.root = Some(root);
        old
    }

    /// Removes a key; returns its value.
    pub(super) fn remove(&mut self, key: &str) -> Option<V> {
        let (root, old) = take(&self.root, key)?;
        self.root = root;
        Some(old)
    }
}

fn is_same<V>(a: &Link<V>, b: &Link<V>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

fn put<V: Clone>(link: &Link<V>, new: Node<V>) -> (Arc<Node<V>>, Option<V>) {
    let Some(node) = link else {
        counted();
        return (Arc::new(new), None);
    };
    match new.key.cmp(&node.key) {
        Ordering::Equal => {
            counted();
            let (left, right) = (node.left.clone(), node.right.clone());
            (Arc::new(Node { left, right, ..new }), Some(node.value.clone()))
        }
        Ordering::Less => {
            let (left, old) = put(&node.left, new);
            let above = match left.priority > node.priority {
                true => {
                    let node = node.with(left.right.clone(), node.right.clone());
                    left.with(left.left.clone(), Some(node))
                }
                false => node.with(Some(left), node.right.clone()),
            };
            (above, old)
        }
        Ordering::Greater => {
            let (right, old) = put(&node.right, new);
            let above = match right.priority > node.priority {
                true => {
                    let node = node.with(node.left.clone(), right.left.clone());
                    right.with(Some(node), right.right.clone())
                }
                false => node.with(node.left.clone(), Some(right)),
            };
            (above, old)
        }
    }
}

fn take<V: Clone>(link: &Link<V>, key: &str) -> Option<(Link<V>, V)> {
    let node = link.as_ref()?;
    Some(match key.cmp(&node.key) {
        Ordering::Equal => (joined(&node.left, &node.right), node.value.clone()),
        Ordering::Less => {
            let (left, old) = take(&node.left, key)?;
            (Some(node.with(left, node.right.clone())), old)
        }
        Ordering::Greater => {
            let (right, old) = take(&node.right, key)?;
            (Some(node.with(node.left.clone(), right)), old)
        }
    })
}

/// The entries of two trees; all of the first come before all of the second.
fn joined<V: Clone>(left: &Link<V>, right: &Link<V>) -> Link<V> {
    match (left, right) {
        (None, other) | (other, None) => other.clone(),
        (Some(l), Some(r)) if l.priority > r.priority => {
            Some(l.with(l.left.clone(), joined(&l.right, right)))
        }
        (Some(_), Some(r)) => Some(r.with(joined(left, &r.left), r.right.clone())),
    }
}

/// Entries in the order of their keys.
pub(super) struct Entries<'a, V> {
    /// The nodes that come next with their right subtrees, the first at the end.
    ahead: Vec<&'a Node<V>>,
}

impl<'a, V> Iterator for Entries<'a, V> {
    type Item = (&'a Arc<str>, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.ahead.pop()?;
        let mut at = &node.right;
        while let Some(next) = at {
            self.ahead.push(next);
            at = &next.left;
        }
        Some((&node.key, &node.value))
    }
}

// ---- differences ------------------------------------------------------------------------------------------

/// A key, and its values in two maps.
pub(super) type Changed<'a, V> = (&'a Arc<str>, Option<&'a V>, Option<&'a V>);

/// The keys whose values in `old` and `new` may differ, in order: those of nodes that the two do not share.
pub(super) fn differences<'a, V>(
    old: &'a Map<V>,
    new: &'a Map<V>,
) -> impl Iterator<Item = Changed<'a, V>> + use<'a, V> {
    let (mut olds, mut news) = (vec![Ahead::Tree(&old.root)], vec![Ahead::Tree(&new.root)]);
    std::iter::from_fn(move || {
        loop {
            counted();
            match (olds.last().copied(), news.last().copied()) {
                // What both come to next is the same.
                (Some(Ahead::Tree(a)), Some(Ahead::Tree(b))) if is_same(a, b) => {
                    olds.pop();
                    news.pop();
                }
                (Some(Ahead::Tree(a)), Some(Ahead::Tree(b))) => {
                    // The root with the greater priority: the other tree may have that node below.
                    let priority = |link: &Link<V>| link.as_ref().map(|node| node.priority);
                    let order = priority(a).cmp(&priority(b));
                    if order.is_ge() {
                        open(&mut olds);
                    }
                    if order.is_le() {
                        open(&mut news);
                    }
                }
                (Some(Ahead::Tree(_)), _) => open(&mut olds),
                (_, Some(Ahead::Tree(_))) => open(&mut news),
                (Some(Ahead::Node(a)), Some(Ahead::Node(b))) => {
                    let order = a.key.cmp(&b.key);
                    if order.is_le() {
                        olds.pop();
                    }
                    if order.is_ge() {
                        news.pop();
                    }
                    let key = if order.is_le() { &a.key } else { &b.key };
                    return Some((key, order.is_le().then_some(&a.value), order.is_ge().then_some(&b.value)));
                }
                (Some(Ahead::Node(a)), None) => {
                    olds.pop();
                    return Some((&a.key, Some(&a.value), None));
                }
                (None, Some(Ahead::Node(b))) => {
                    news.pop();
                    return Some((&b.key, None, Some(&b.value)));
                }
                (None, None) => return None,
            }
        }
    })
}

/// What a walk over a map comes to next.
enum Ahead<'a, V> {
    Tree(&'a Link<V>),
    Node(&'a Node<V>),
}

impl<V> Clone for Ahead<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Ahead<'_, V> {}

/// Replaces the tree that comes next by its parts.
fn open<'a, V>(ahead: &mut Vec<Ahead<'a, V>>) {
    if let Some(Ahead::Tree(Some(node))) = ahead.pop() {
        ahead.extend([Ahead::Tree(&node.right), Ahead::Node(node), Ahead::Tree(&node.left)]);
    }
}

/// Counts a step, for tests: a node that is made, or a step of a comparison.
#[inline]
fn counted() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

#[cfg(test)]
thread_local! {
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;
    use std::collections::BTreeMap;

    fn steps(work: impl FnOnce()) -> u64 {
        let before = STEPS.with(std::cell::Cell::get);
        work();
        STEPS.with(std::cell::Cell::get) - before
    }

    #[test]
    fn it_is_an_ordered_map_and_knows_what_differs() {
        let mut random = Random(7);
        let mut versions: Vec<(Map<u64>, BTreeMap<String, u64>)> = vec![Default::default()];
        for step in 0..3000 {
            let at = random.below(versions.len().min(5) as u64) as usize;
            let (mut map, mut model) = {
                let (map, model) = &versions[versions.len() - 1 - at];
                (map.clone(), model.clone())
            };
            let key = format!("k{}", random.below(150));
            match random.below(3) {
                0 => assert_eq!(map.remove(&key), model.remove(&key)),
                _ => assert_eq!(map.insert(key.as_str().into(), step), model.insert(key.clone(), step)),
            }
            assert_eq!(map.get(&key), model.get(&key));
            let listed: Vec<(String, u64)> =
                map.iter().map(|(key, value)| (key.to_string(), *value)).collect();
            assert!(listed.iter().map(|(key, value)| (key, value)).eq(model.iter()));
            let start = format!("k{}", random.below(20));
            let found = map.beginning(&start).map(|(key, _)| key.to_string()).collect::<Vec<_>>();
            assert_eq!(
                found,
                model.keys().filter(|key| key.starts_with(&start)).cloned().collect::<Vec<_>>()
            );
            // What differs from an earlier version.
            let (other, others) = &versions[random.below(versions.len() as u64) as usize];
            let mut expected: Vec<(String, Option<u64>, Option<u64>)> = Vec::new();
            for key in others.keys().chain(model.keys()).collect::<std::collections::BTreeSet<_>>() {
                let (old, new) = (others.get(key).copied(), model.get(key).copied());
                if old != new {
                    expected.push((key.clone(), old, new));
                }
            }
            let found =
                differences(other, &map).map(|(key, old, new)| (key.to_string(), old.copied(), new.copied()));
            assert_eq!(found.filter(|(_, old, new)| old != new).collect::<Vec<_>>(), expected);
            versions.push((map, model));
        }
    }

    #[test]
    fn a_change_and_a_comparison_take_few_steps() {
        let mut map = Map::default();
        for number in 0..20_000u64 {
            map.insert(format!("table {number}").as_str().into(), number);
        }
        for number in (0..20_000).step_by(97) {
            let before = map.clone();
            let key = format!("table {number}");
            let taken = steps(|| {
                map.remove(&key);
                map.insert(key.as_str().into(), number + 1);
                assert_eq!(differences(&before, &map).filter(|(_, old, new)| old != new).count(), 1);
            });
            assert!(taken < 1000, "{taken} steps for one change");
        }
    }
}
