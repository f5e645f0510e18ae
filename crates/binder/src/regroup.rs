//! Expressions over the rows of FROM as expressions over groups: each key of the groups becomes its column,
//! and a column that is left is an error.
//!
//! Keys are looked for from the outside in, so that in `GROUP BY a, a + 1` the sum is a key. To find one, the
//! hashes of all parts of an expression are computed in one walk, and compared with those of the keys.
//!
//! A column of a table whose declared key is among the keys has one value in each group ([`determined`]).

use entasis_engine::plan::{ColumnSet, Node, Scan};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Error, Result};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;

/// The keys of a grouping.
pub(crate) struct Regroup<'k> {
    /// Keys that are columns.
    columns: HashMap<ColumnId, ColumnId>,
    /// Keys that are not, by hash.
    others: HashMap<u64, Vec<(&'k Expr, ColumnId)>>,
    /// The columns of the rows that are grouped.
    input: ColumnSet,
}

impl<'k> Regroup<'k> {
    /// The keys, each with the column of the groups that it is, of rows with these columns.
    pub(crate) fn new(
        keys: impl IntoIterator<Item = (&'k Expr, ColumnId)>,
        input: &[ColumnId],
    ) -> Regroup<'k> {
        let mut regroup =
            Regroup { columns: HashMap::new(), others: HashMap::new(), input: ColumnSet::default() };
        input.iter().for_each(|id| regroup.input.insert(*id));
        for (key, column) in keys {
            match key {
                Expr::Column { id, .. } => drop(regroup.columns.insert(*id, column)),
                key => {
                    let mut parts = Vec::new();
                    let hash = hash_parts(key, &mut parts);
                    regroup.others.entry(hash).or_default().push((key, column));
                }
            }
        }
        regroup
    }

    /// Rewrites an expression.
    ///
    /// # Errors
    /// Input, for a column that is neither in a key nor in an aggregate.
    pub(crate) fn apply(&self, expr: &mut Expr, name: &dyn Fn(ColumnId) -> String) -> Result<()> {
        let mut parts = Vec::new();
        if !self.others.is_empty() {
            hash_parts(expr, &mut parts);
        }
        let mut at = 0;
        self.part(expr, &parts, &mut at, name)
    }

    fn part(
        &self,
        expr: &mut Expr,
        parts: &[Part],
        at: &mut usize,
        name: &dyn Fn(ColumnId) -> String,
    ) -> Result<()> {
        if let Some(part) = parts.get(*at) {
            let found = self.others.get(&part.hash);
            let found = found.and_then(|keys| keys.iter().find(|(key, _)| **key == *expr));
            if let Some((_, column)) = found {
                *expr = Expr::column(*column, expr.ty());
                *at += part.size;
                return Ok(());
            }
            *at += 1;
        }
        if let Expr::Column { id, .. } = expr {
            match self.columns.get(id) {
                Some(column) => *id = *column,
                None if self.input.contains(*id) => return Err(not_grouped(&name(*id))),
                None => {}
            }
            return Ok(());
        }
        expr.children_mut().into_iter().try_for_each(|child| self.part(child, parts, at, name))
    }
}

/// The columns that depend on the columns `keys` in the rows of `node`: those of tables whose declared keys
/// are among them. Where an outer join fills a row with NULLs, it fills all of them.
pub(crate) fn determined(node: &Node, keys: &ColumnSet) -> ColumnSet {
    let mut found = ColumnSet::default();
    let mut rest = vec![node];
    while let Some(node) = rest.pop() {
        rest.extend(node.children());
        let Node::Scan(Scan { relation, columns, .. }) = node else { continue };
        let is_key = |at: &usize| columns.iter().any(|(id, own)| own == at && keys.contains(*id));
        if relation.keys().iter().any(|key| key.iter().all(is_key)) {
            columns.iter().for_each(|(id, _)| found.insert(*id));
        }
    }
    found
}

fn not_grouped(name: &str) -> Error {
    let error = match name.contains("entasis:") {
        // The columns by which a change finds its rows are next to its values.
        true => {
            let text = "an aggregate cannot appear in the values of a change, only in a subquery with a FROM of its own";
            Error::input(text)
        }
        false => {
            Error::input(format!("the column {name} must appear in GROUP BY or in an aggregate function"))
        }
    };
    error.with_sqlstate(sqlstate::SYNTAX)
}

/// A part of an expression, in the order in which a walk from the outside in meets them.
struct Part {
    hash: u64,
    /// How many parts it has, itself one of them.
    size: usize,
}

/// The hash of an expression; those of its parts are added.
fn hash_parts(expr: &Expr, parts: &mut Vec<Part>) -> u64 {
    let place = parts.len();
    parts.push(Part { hash: 0, size: 0 });
    let mut hasher = DefaultHasher::new();
    discriminant(expr).hash(&mut hasher);
    match expr {
        Expr::Column { .. } | Expr::Literal { .. } | Expr::Parameter { .. } => expr.hash(&mut hasher),
        Expr::Compare { op, .. } => op.hash(&mut hasher),
        Expr::Arithmetic { op, ty, .. } => (op, ty).hash(&mut hasher),
        Expr::Cast { ty, lenient, .. } => (ty, lenient).hash(&mut hasher),
        Expr::Function { function, ty, .. } => (function, ty).hash(&mut hasher),
        Expr::External { function, ty, .. } => (function.name(), ty).hash(&mut hasher),
        _ => {}
    }
    for child in expr.children() {
        hash_parts(child, parts).hash(&mut hasher);
    }
    let hash = hasher.finish();
    parts[place] = Part { hash, size: parts.len() - place };
    hash
}
