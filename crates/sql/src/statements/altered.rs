//! The table that an `ALTER TABLE` makes, while its actions are applied one by one.

use super::columns::find_column;
use super::definition::Declared;
use entasis_engine::relation::{ForeignKey, KeyKind};
use entasis_syntax::build::stored_expr;
use entasis_syntax::place::locate_ident;
use entasis_syntax::stored::read_columns;
use entasis_syntax::walk::WalkMut;
use entasis_vector::{Error, Result};
use sqlparser::ast::{DropBehavior, Expr, Ident, VisitorMut};
use std::ops::ControlFlow;

/// The new table.
pub(super) struct Altered {
    pub(super) declared: Declared,
    /// The source of each column's values, over the old table.
    pub(super) origins: Vec<Origin>,
    /// The old number of each column; `None` for a new one.
    pub(super) places: Vec<Option<usize>>,
    pub(super) changed: bool,
    /// Names of dropped constraints: another constraint of such a name is new.
    pub(super) dropped: Vec<String>,
    /// Whether everything dropped is dropped with `CASCADE`; `None` if nothing is dropped.
    pub(super) cascade: Option<bool>,
}

#[expect(clippy::large_enum_variant, reason = "there are few of them, for a moment")]
pub(super) enum Origin {
    /// A column of the old table.
    Column(usize),
    /// Another expression.
    Expr(Expr),
}

impl Altered {
    pub(super) fn find(&self, name: &Ident) -> Result<usize> {
        find_column(&self.declared.columns, name)
            .map_err(|error| error.with_context(format!("table {}", self.declared.table)))
    }

    /// True if the column is new or its values change.
    pub(super) fn is_new(&self, column: usize) -> bool {
        matches!(self.origins[column], Origin::Expr(_))
    }

    /// A constraint, an index or the layout that uses a column, if there is one.
    pub(super) fn user(&self, column: usize) -> Option<String> {
        let definition = &self.declared.definition;
        let name = self.declared.columns[column].name.to_ascii_lowercase();
        let key =
            definition.keys.iter().find(|key| key.columns.contains(&column)).map(|key| match key.kind {
                KeyKind::Index => format!("the index {}", key.name),
                _ => format!("the constraint {}", key.name),
            });
        let foreign =
            || definition.foreign_keys.iter().find(|key| self.has_column(key, column)).map(|key| &key.name);
        let check = || {
            let reads = |sql: &str| stored_expr(sql).and_then(|expr| read_columns(&expr, "a check"));
            let mut checks = definition.checks.iter();
            checks
                .find(|check| reads(&check.sql).is_ok_and(|read| read.contains(&name)))
                .map(|check| &check.name)
        };
        let constraint = |name: &String| format!("the constraint {name}");
        key.or_else(|| foreign().map(constraint)).or_else(|| check().map(constraint)).or_else(|| {
            let layout = definition.layout.key.as_ref().is_some_and(|key| key.contains(&column));
            layout.then(|| "the layout".to_string())
        })
    }

    /// Records whether something is dropped with `CASCADE`.
    pub(super) fn drops(&mut self, behavior: Option<&DropBehavior>) -> bool {
        let cascade = matches!(behavior, Some(DropBehavior::Cascade));
        self.cascade = Some(self.cascade.unwrap_or(true) && cascade);
        cascade
    }

    /// True if a foreign key of the table includes a column of it, or refers to it.
    pub(super) fn has_column(&self, key: &ForeignKey, column: usize) -> bool {
        key.columns.contains(&column) || key.table == self.declared.table && key.references.contains(&column)
    }

    /// Drops the constraints and indexes that include a column.
    pub(super) fn drop_users(&mut self, column: usize) {
        let foreign_keys = std::mem::take(&mut self.declared.definition.foreign_keys);
        let kept = foreign_keys.into_iter().filter(|key| !self.has_column(key, column)).collect();
        let definition = &mut self.declared.definition;
        definition.foreign_keys = kept;
        let name = self.declared.columns[column].name.to_ascii_lowercase();
        definition.keys.retain(|key| !key.columns.contains(&column));
        let reads = |sql: &str| stored_expr(sql).and_then(|expr| read_columns(&expr, "a check"));
        definition.checks.retain(|check| !reads(&check.sql).is_ok_and(|read| read.contains(&name)));
    }

    pub(super) fn drop_column(&mut self, column: usize) {
        self.declared.columns.remove(column);
        self.origins.remove(column);
        self.places.remove(column);
        let table = self.declared.table.clone();
        let definition = &mut self.declared.definition;
        if column < definition.defaults.len() {
            definition.defaults.remove(column);
        }
        let down =
            |columns: &mut Vec<usize>| columns.iter_mut().filter(|i| **i > column).for_each(|i| *i -= 1);
        definition.keys.iter_mut().for_each(|key| down(&mut key.columns));
        definition.layout.key.iter_mut().for_each(down);
        let compressions = &mut definition.layout.column_compressions;
        compressions.retain(|(own, _)| *own != column);
        compressions.iter_mut().filter(|(own, _)| *own > column).for_each(|(own, _)| *own -= 1);
        for key in &mut definition.foreign_keys {
            down(&mut key.columns);
            if key.table == table {
                down(&mut key.references);
            }
        }
        self.changed = true;
    }

    pub(super) fn rename_column(&mut self, column: usize, to: &Ident) -> Result<()> {
        let from = self.declared.columns[column].name.to_ascii_lowercase();
        if from != to.value.to_ascii_lowercase() {
            self.free(to)?;
        }
        for check in &mut self.declared.definition.checks {
            let mut expr = stored_expr(&check.sql)?;
            let _ = expr.walk_mut(&mut Renamer { from: &from, to });
            check.sql = expr.to_string();
        }
        self.declared.columns[column].name = to.value.as_str().into();
        self.changed = true;
        Ok(())
    }

    /// Refuses a name that a column has already.
    pub(super) fn free(&self, name: &Ident) -> Result<()> {
        if self.declared.columns.iter().any(|column| column.name.eq_ignore_ascii_case(&name.value)) {
            let error =
                Error::input(format!("table {} has a column {} already", self.declared.table, name.value));
            return Err(locate_ident(error, name));
        }
        Ok(())
    }

    /// Removes a constraint; false if there is none of that name.
    pub(super) fn drop_constraint(&mut self, name: &str) -> Result<bool> {
        let definition = &mut self.declared.definition;
        if let Some(at) = definition.keys.iter().position(|key| key.name == name) {
            let key = &definition.keys[at];
            if key.kind == KeyKind::Index {
                return Err(Error::input(format!("{name} is an index, not a constraint"))
                    .with_hint(format!("write DROP INDEX {name}")));
            }
            definition.keys.remove(at);
        } else if let Some(at) = definition.checks.iter().position(|check| check.name == name) {
            definition.checks.remove(at);
        } else if let Some(at) = definition.foreign_keys.iter().position(|key| key.name == name) {
            definition.foreign_keys.remove(at);
        } else {
            return Ok(false);
        }
        self.dropped.push(name.to_owned());
        self.changed = true;
        Ok(true)
    }

    /// True if a constraint of that name existed before.
    pub(super) fn is_kept(&self, old: &str, new: &str) -> bool {
        old == new && !self.dropped.iter().any(|dropped| dropped == new)
    }

    /// True if columns are those that had the numbers `old`.
    pub(super) fn are_columns(&self, old: &[usize], new: &[usize]) -> bool {
        let is_it =
            |(&old, &new): (&usize, &usize)| matches!(self.origins[new], Origin::Column(i) if i == old);
        old.len() == new.len() && old.iter().zip(new).all(is_it)
    }

    fn constraint_names(&self) -> Vec<&str> {
        let definition = &self.declared.definition;
        let keys = definition.keys.iter().map(|key| key.name.as_str());
        let checks = definition.checks.iter().map(|check| check.name.as_str());
        keys.chain(checks).chain(definition.foreign_keys.iter().map(|key| key.name.as_str())).collect()
    }

    pub(super) fn no_constraint(&self, name: &Ident) -> Error {
        let text = format!("table {} has no constraint {}", self.declared.table, name.value);
        let error = locate_ident(Error::input(text), name);
        match entasis_vector::suggest::nearest(&name.value, self.constraint_names()) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error,
        }
    }
}

/// Renames a column.
struct Renamer<'a> {
    from: &'a str,
    to: &'a Ident,
}

impl VisitorMut for Renamer<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Identifier(name) = expr
            && name.value.eq_ignore_ascii_case(self.from)
        {
            *name = Ident { span: name.span, ..self.to.clone() };
        }
        ControlFlow::Continue(())
    }
}
