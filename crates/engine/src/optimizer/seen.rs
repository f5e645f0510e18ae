//! Which parts of a conjunction or disjunction are kept already.

use entasis_vector::expr::Expr;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Number of parts up to which a new one is compared with each of them.
const FEW: usize = 16;

/// The hashes of a list of expressions that grows, so that each of very many is not compared with all others.
#[derive(Default)]
pub(super) struct SeenParts {
    hashes: HashSet<u64>,
    /// Number of expressions at the start of the list whose hashes are there.
    hashed: usize,
}

impl SeenParts {
    /// True if `part` is in the list, which has grown at its end alone since it was last asked.
    pub(super) fn has(&mut self, list: &[Expr], part: &Expr) -> bool {
        if list.len() <= FEW {
            return list.contains(part);
        }
        self.hashes.extend(list[self.hashed..].iter().map(hash));
        self.hashed = list.len();
        self.hashes.contains(&hash(part)) && list.contains(part)
    }
}

fn hash(part: &Expr) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(part)
}
