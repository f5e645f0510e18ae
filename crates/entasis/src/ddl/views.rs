//! Views, from the point of view of the objects that they need.
//!
//! A view is stored as text, so its meaning depends on what its names mean. An object that a view needs may
//! change if the meaning of the view stays the same: it can still be bound, and has the same columns. Some
//! changes would alter its meaning, because a name would refer to another column; these are recognized by the
//! columns that the text mentions ([`entasis_sql::mentioned_columns`]).

use super::remove;
use crate::binding::Names;
use crate::session::Session;
use crate::transaction::TransactionContext;
use entasis_sql::{Columns, Mentioned, mentioned_columns};
use entasis_storage::{Entry, TableEntry, View, dependencies};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result, Schema};
use std::sync::Arc;

/// The views that need an object, by its name, before it changes.
pub(super) struct Views {
    /// The name of the object.
    of: String,
    /// The views with their columns; `None` if a view cannot be bound on this connection.
    views: Vec<(Arc<View>, Option<Schema>)>,
    /// The views that lose a column by the change.
    broken: Vec<Arc<View>>,
}

/// The views that name an object.
fn views_of(transaction: &TransactionContext, name: &str) -> Vec<Arc<View>> {
    let users = dependencies::users(&transaction.names, name).into_iter();
    let views = users.filter_map(|user| if let Entry::View(view) = user { Some(view.clone()) } else { None });
    views.collect()
}

/// The present columns of a view.
fn columns_of(session: &Session, transaction: &mut TransactionContext, view: &View) -> Result<Schema> {
    Ok(entasis_sql::bind_stored(&view.sql, &Names::new(session, transaction))?.schema())
}

/// The error of a change that a view prevents.
fn refused(view: &View, what: &str) -> Error {
    Error::input(format!("view {} uses {what}", view.name))
        .with_hint(format!("drop view {} first, and create it again", view.name))
}

/// Refuses to rename a table that views need.
pub(super) fn refuse_needed(transaction: &TransactionContext, entry: &TableEntry) -> Result<()> {
    match views_of(transaction, &entry.name).first() {
        Some(view) => Err(refused(view, &format!("table {}, which therefore cannot be renamed", entry.name))),
        None => Ok(()),
    }
}

/// Refuses to replace a view by one that names it.
pub(super) fn refuse_circle(
    session: &Session,
    transaction: &mut TransactionContext,
    view: &View,
) -> Result<()> {
    columns_of(session, transaction, view)
        .map(drop)
        .map_err(|error| error.with_context(format!("view {}", view.name)))
}

impl Views {
    /// The views that need the object of this name, if there are any.
    ///
    /// # Errors
    /// That of a statement that is to be run again on a larger stack.
    pub(super) fn of(session: &Session, transaction: &mut TransactionContext, name: &str) -> Result<Views> {
        let mut views = Vec::new();
        for view in views_of(transaction, name) {
            let columns = match columns_of(session, transaction, &view) {
                Err(error) if error.sqlstate() == sqlstate::NEEDS_STACK => return Err(error),
                columns => columns.ok(),
            };
            views.push((view, columns));
        }
        Ok(Views { of: name.to_owned(), views, broken: Vec::new() })
    }

    /// Checks a change of the columns of a table.
    ///
    /// # Errors
    /// Input, if a view mentions a column that is dropped without the view, renamed, or changes its type; or
    /// if it mentions the name of a new column without a table, and might come to mean that column.
    pub(super) fn judge_columns(&mut self, entry: &TableEntry, to: &Columns) -> Result<()> {
        let (before, after) = (entry.table.schema(), &to.columns);
        for (view, _) in &self.views {
            let Mentioned { columns, bare } = mentioned_columns(&view.sql)?;
            for (column, field) in before.iter().enumerate() {
                let name = field.name.to_ascii_lowercase();
                let what = |ending: &str| format!("column {} of table {}{ending}", field.name, entry.name);
                match to.places[column] {
                    _ if !columns.contains(&name) => {}
                    None if to.cascade => self.broken.push(view.clone()),
                    None => {
                        let hint = format!(
                            "drop view {} first, or use DROP COLUMN {} CASCADE",
                            view.name, field.name
                        );
                        return Err(refused(view, &what("")).with_hint(hint));
                    }
                    Some(place) if !after[place].name.eq_ignore_ascii_case(&field.name) => {
                        return Err(refused(view, &what(", which therefore cannot be renamed")));
                    }
                    Some(_) if to.revalued.contains(&column) => {
                        return Err(refused(view, &what(", whose type therefore cannot be changed")));
                    }
                    Some(_) => {}
                }
            }
            let is_old = |name: &str| before.iter().any(|field| field.name.eq_ignore_ascii_case(name));
            let new = after.iter().filter(|field| !is_old(&field.name));
            if let Some(field) = new.into_iter().find(|field| bare.contains(&field.name.to_ascii_lowercase()))
            {
                let what =
                    format!("the name {} without a table, and might come to mean the column", field.name);
                return Err(refused(view, &what));
            }
        }
        Ok(())
    }

    /// Refuses the change that was made if the meaning of one of the views has changed.
    pub(super) fn judge(&self, session: &Session, transaction: &mut TransactionContext) -> Result<()> {
        self.views
            .iter()
            .try_for_each(|(view, before)| self.judge_one(session, transaction, view, before.as_ref()))
    }

    /// Drops the views whose meaning has changed, and what needs them.
    pub(super) fn drop_broken(&self, session: &Session, transaction: &mut TransactionContext) -> Result<()> {
        for (view, before) in &self.views {
            let is_broken = self.broken.iter().any(|broken| Arc::ptr_eq(broken, view));
            if is_broken || self.judge_one(session, transaction, view, before.as_ref()).is_err() {
                remove::object(session, transaction, &Entry::View(view.clone()), &[], true)?;
            }
        }
        Ok(())
    }

    fn judge_one(
        &self,
        session: &Session,
        transaction: &mut TransactionContext,
        view: &View,
        before: Option<&Schema>,
    ) -> Result<()> {
        let Some(before) = before else { return Ok(()) };
        let needs = |reason: &str| refused(view, &format!("{} in its present form: {reason}", self.of));
        let after = columns_of(session, transaction, view).map_err(|error| match error.sqlstate() {
            sqlstate::NEEDS_STACK => error,
            _ => needs(error.message()),
        })?;
        // New columns may be between them.
        let mut rest = after.iter();
        for field in before {
            if !rest.any(|other| other.name == field.name && other.ty == field.ty) {
                return Err(needs(&format!("its column {} would change or disappear", field.name)));
            }
        }
        Ok(())
    }
}
