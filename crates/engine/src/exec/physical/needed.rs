//! Which columns are needed above a node, and how.

use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use std::collections::BTreeMap;

/// What is done with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Programs and sums read it, in any physical type.
    Computed,
    /// It is passed on unchanged, in its default physical type, or that of wide decimals.
    Kept,
}

/// Columns that are read above, and how they are used.
#[derive(Debug, Clone, Default)]
pub(super) struct Needed(BTreeMap<ColumnId, Use>);

impl Needed {
    /// These columns, unchanged.
    pub(super) fn kept(columns: impl IntoIterator<Item = ColumnId>) -> Needed {
        Needed(columns.into_iter().map(|id| (id, Use::Kept)).collect())
    }

    pub(super) fn contains(&self, id: &ColumnId) -> bool {
        self.0.contains_key(id)
    }

    /// How a column is used that is read.
    pub(super) fn of(&self, id: &ColumnId) -> Use {
        self.0[id]
    }

    /// True if it is read, but nowhere needed unchanged.
    pub(super) fn is_only_computed(&self, id: ColumnId) -> bool {
        self.0.get(&id) == Some(&Use::Computed)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ColumnId> {
        self.0.keys().copied()
    }

    pub(super) fn add(&mut self, id: ColumnId, own: Use) {
        let known = self.0.entry(id).or_insert(own);
        *known = own.max(*known);
    }

    /// Adds the columns that `expr` reads; `own` is the use of its value.
    pub(super) fn add_expr(&mut self, expr: &Expr, own: Use) {
        if let Expr::Column { id, .. } = expr {
            return self.add(*id, own);
        }
        let mut columns = Vec::new();
        expr.collect_columns(&mut columns);
        columns.into_iter().for_each(|id| self.add(id, Use::Computed));
    }
}

/// `needed` plus the columns that `exprs` read; their values are kept.
pub(super) fn with<'e>(needed: &Needed, exprs: impl IntoIterator<Item = &'e Expr>) -> Needed {
    let mut all = needed.clone();
    exprs.into_iter().for_each(|expr| all.add_expr(expr, Use::Kept));
    all
}
