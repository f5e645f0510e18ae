//! The names that an expression may use.
//!
//! A join has each column under two names: qualified by its table (`r1.c0`), and unqualified (`c0`). An
//! unqualified name is valid if it is unique; `USING` and `NATURAL` merge two columns into one.

use super::values::Family;

/// A column, by the name that an expression uses.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) family: Family,
    /// True if it contains extremes of its type, and must not be used in computations.
    pub(super) wild: bool,
}

impl Column {
    pub(super) fn named(self, name: String) -> Column {
        Column { name, ..self }
    }
}

/// A table, or a relation in `FROM`.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// The most rows that it has.
    pub(super) rows: usize,
}

/// A query block and the names of its result columns.
pub(super) struct Block {
    pub(super) sql: String,
    pub(super) columns: Vec<Column>,
    /// The most rows that it returns.
    pub(super) rows: usize,
    /// The additional columns that its `ORDER BY` may name.
    pub(super) inputs: Vec<Column>,
}

impl Block {
    /// A block whose `ORDER BY` sees only its result columns.
    pub(super) fn closed(sql: String, columns: Vec<Column>, rows: usize) -> Block {
        Block { sql, columns, rows, inputs: Vec::new() }
    }
}

/// The columns that the expressions of one block may read.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// The relations of `FROM`, by their names.
    relations: Vec<Table>,
    /// Columns qualified by the names of their tables.
    qualified: Vec<Column>,
    /// Columns as `*` returns them.
    shown: Vec<Column>,
    /// The most rows that `FROM` returns.
    rows: usize,
}

impl Scope {
    /// The columns of a table with the alias `alias`.
    pub(super) fn of(alias: &str, columns: Vec<Column>, rows: usize) -> Scope {
        let qualified = columns.iter().map(|column| column.clone().named(format!("{alias}.{}", column.name)));
        let relations = vec![Table { name: alias.to_string(), columns: columns.clone(), rows }];
        Scope { relations, qualified: qualified.collect(), shown: columns, rows }
    }

    /// The columns of a table without a name.
    pub(super) fn unnamed(columns: Vec<Column>, rows: usize) -> Scope {
        Scope { relations: Vec::new(), qualified: Vec::new(), shown: columns, rows }
    }

    /// The relations of `FROM`, by their names.
    pub(super) fn relations(&self) -> &[Table] {
        &self.relations
    }

    /// All names that refer to a single column.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.qualified.iter().chain(self.shown.iter().filter(|column| self.once(&column.name).is_some()))
    }

    /// The most rows that `FROM` returns.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The most rows of a join with `right`.
    pub(super) fn rows_beside(&self, right: &Scope) -> usize {
        (self.rows + 1).saturating_mul(right.rows + 1)
    }

    /// The columns of `*`, in its order.
    pub(super) fn shown(&self) -> &[Column] {
        &self.shown
    }

    /// The column with an unqualified name, if there is exactly one.
    pub(super) fn once(&self, name: &str) -> Option<&Column> {
        let mut found = self.shown.iter().filter(|column| column.name == name);
        found.next().filter(|_| found.next().is_none())
    }

    /// An ambiguous name, if there is one.
    pub(super) fn ambiguous(&self) -> Option<&str> {
        let found = self.shown.iter().find(|column| self.once(&column.name).is_none());
        found.map(|column| column.name.as_str())
    }

    /// True if no two columns of `*` have the same name.
    pub(super) fn has_distinct_names(&self) -> bool {
        self.shown.iter().all(|column| self.once(&column.name).is_some())
    }

    /// What a subquery over `inner` sees of this block: its own columns may hide unqualified names.
    pub(super) fn around(&self, inner: &Scope) -> Scope {
        let hidden = |column: &Column| inner.shown.iter().any(|own| own.name == column.name);
        let qualified = self.columns().filter(|column| !hidden(column)).cloned().collect();
        Scope { relations: Vec::new(), qualified, shown: Vec::new(), rows: self.rows }
    }

    /// Both sides of a join with `ON`, or a product.
    pub(super) fn beside(self, right: Scope) -> Scope {
        self.merged(right, &[])
    }

    /// Both sides of a join that merges the columns `names`: those come first, then the remaining columns of
    /// both sides.
    pub(super) fn merged(mut self, right: Scope, names: &[String]) -> Scope {
        let merges = |column: &Column| names.contains(&column.name);
        let wild = |name: &str| {
            self.shown.iter().chain(&right.shown).any(|column| column.name == *name && column.wild)
        };
        let mut shown: Vec<Column> = Vec::new();
        for name in names {
            let of_left = self.shown.iter().find(|column| column.name == *name);
            shown.extend(of_left.map(|column| Column { wild: wild(name), ..column.clone() }));
        }
        shown.extend(self.shown.iter().chain(&right.shown).filter(|column| !merges(column)).cloned());
        self.rows = self.rows_beside(&right);
        self.relations.extend(right.relations);
        self.qualified.extend(right.qualified);
        Scope { shown, ..self }
    }

    /// Names that are unique on both sides, in columns of the same family, in the order of this side.
    pub(super) fn common_names(&self, right: &Scope) -> Vec<String> {
        let fits = |column: &&Column| {
            self.once(&column.name).is_some()
                && right.once(&column.name).is_some_and(|other| other.family == column.family)
        };
        self.shown.iter().filter(fits).map(|column| column.name.clone()).collect()
    }

    /// True if the sides can be joined by `NATURAL JOIN`: every name that both have is one of
    /// [`Scope::common_names`].
    pub(super) fn joins_naturally(&self, right: &Scope) -> bool {
        let common = self.common_names(right);
        let in_both = |column: &&Column| right.shown.iter().any(|other| other.name == column.name);
        !common.is_empty() && self.shown.iter().filter(in_both).all(|column| common.contains(&column.name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::Family::{Integer, Text};
    use super::*;

    fn side(alias: &str, columns: &[(&str, Family)]) -> Scope {
        let column =
            |(name, family): &(&str, Family)| Column { name: name.to_string(), family: *family, wild: false };
        Scope::of(alias, columns.iter().map(column).collect(), 3)
    }

    fn names(scope: &Scope) -> Vec<&str> {
        scope.shown().iter().map(|column| column.name.as_str()).collect()
    }

    #[test]
    fn merged_columns_come_first_and_are_good_names() {
        let (l, r) = (
            side("l", &[("a", Integer), ("k", Text)]),
            side("r", &[("k", Text), ("b", Integer), ("a", Text)]),
        );
        assert_eq!(l.common_names(&r), ["k"]);
        assert!(!l.joins_naturally(&r), "a is of two families");
        let both = l.merged(r, &["k".to_string()]);
        assert_eq!(names(&both), ["k", "a", "b", "a"]);
        assert_eq!(both.ambiguous(), Some("a"));
        assert!(both.once("k").is_some() && both.once("b").is_some() && both.once("a").is_none());
        assert_eq!(both.columns().filter(|column| !column.name.contains('.')).count(), 2);
    }

    #[test]
    fn a_subquery_hides_bare_names_of_the_query_around_it() {
        let (outer, inner) = (side("o", &[("a", Integer), ("b", Integer)]), side("i", &[("a", Text)]));
        let seen: Vec<String> = outer.around(&inner).columns().map(|column| column.name.clone()).collect();
        assert_eq!(seen, ["o.a", "o.b", "b"]);
    }
}
