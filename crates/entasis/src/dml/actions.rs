//! Actions of foreign keys when keys that rows refer to are removed or changed: `ON DELETE`, `ON UPDATE`.
//!
//! 1. A statement changes the rows of its table. For each foreign key that refers to the table, it notes the
//!    keys that are gone afterwards ([`Actions::note`]): those of deleted rows, and the old keys of updated
//!    rows. `RESTRICT` is checked here.
//! 2. Each foreign key in turn performs its action, for all rows that refer to these keys at once
//!    ([`Actions::finish`]). The action is an ordinary statement over the referring table
//!    ([`entasis_sql::follow`]); if there are few keys, it only reads rows found by a key or an index of that
//!    table. Keys that are gone afterwards are noted as in step 1, so that actions cascade through other
//!    tables, and the same one, until none is left.
//! 3. Then foreign keys are checked: each new reference has its row, and no row refers to a key that is gone
//!    and has not come back (`NO ACTION`). The result is validated again by the commit
//!    ([`crate::constraints::validation`]): a concurrent transaction that adds rows that refer to such keys
//!    conflicts with this one.
//!
//! Any failure undoes the whole statement.
//!
//! **Termination.** Actions see rows as they are when the action runs. Deletions end because there are
//! finitely many rows. Updates might go around a cycle of foreign keys for ever, if keys are permuted; so it
//! is an error if a row would have to follow a key to which the statement itself may have changed rows
//! ([`Actions::refuse_again`]).
//!
//! `TRUNCATE` does none of this: it is refused if other rows refer to the table
//! ([`foreign::refuse_truncate`]).

use super::foreign;
use crate::binding::Names;
use crate::constraints::keys::KeyChange;
use crate::constraints::validation::{Predicate, Side, order, without_nulls};
use crate::constraints::values::{Values, shown};
use crate::session::Session;
use crate::transaction::TransactionContext;
use entasis_engine::access_path::rows_by_key;
use entasis_engine::relation::Relation;
use entasis_sql::{Consequence, Referring};
use entasis_storage::TableEntry;
use entasis_storage::definition::{ForeignKey, ReferentialAction};
use entasis_vector::error::sqlstate::TRIGGERED_CHANGE;
use entasis_vector::{DataType, Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// The actions and checks due in a statement.
#[derive(Default)]
pub(crate) struct Actions {
    due: VecDeque<Due>,
    /// Predicates to validate when no action is due any more.
    open: Vec<Predicate>,
    /// Predicates that were validated, or that actions made true.
    settled: Vec<Predicate>,
}

/// A due action.
struct Due {
    parent: Arc<TableEntry>,
    child: Arc<TableEntry>,
    key: ForeignKey,
    /// The removed keys, in order and without NULLs.
    went: Vec<Values>,
    event: Event,
}

/// Why keys were removed.
enum Event {
    /// Their rows were deleted.
    Deleted,
    /// Their rows were updated, and now have these keys.
    Updated(Vec<Values>),
}

impl Due {
    fn action(&self) -> ReferentialAction {
        match self.event {
            Event::Deleted => self.key.on_delete,
            Event::Updated(_) => self.key.on_update,
        }
    }

    fn consequence(&self) -> Option<Consequence<'_>> {
        Some(match (self.action(), &self.event) {
            (ReferentialAction::Cascade, Event::Deleted) => Consequence::Deleted,
            (ReferentialAction::Cascade, Event::Updated(keys)) => Consequence::Key(keys),
            (ReferentialAction::SetNull, _) => Consequence::Null,
            (ReferentialAction::SetDefault, _) => Consequence::Default,
            (ReferentialAction::NoAction | ReferentialAction::Restrict, _) => return None,
        })
    }

    /// The action's name in error messages.
    fn name(&self) -> String {
        let event = match self.event {
            Event::Deleted => "DELETE",
            Event::Updated(_) => "UPDATE",
        };
        format!("foreign key {}, ON {event} {}", self.key.name, self.action().name())
    }
}

impl Actions {
    /// Notes which keys the rows of a table newly refer to, and which of the table's own keys were removed.
    /// `changes` has one entry for each item of [`foreign::columns`].
    ///
    /// # Errors
    /// Constraint, if a row refers to a removed key, by a foreign key with `RESTRICT`.
    pub(super) fn note(
        &mut self,
        transaction: &mut TransactionContext,
        entry: &Arc<TableEntry>,
        changes: &[KeyChange],
    ) -> Result<()> {
        let (own, referred) = changes.split_at(entry.definition.foreign_keys.len());
        for (key, change) in entry.definition.foreign_keys.iter().zip(own) {
            let others = change.updated().filter(|(old, new)| order(old, new).is_ne()).map(|(_, new)| new);
            let came = others.chain(change.new_rows()).cloned().collect();
            self.open.extend(foreign::came_to_refer(transaction, entry, key, came)?);
        }
        for ((child, key), change) in foreign::referring(transaction, entry).into_iter().zip(referred) {
            let deleted = without_nulls(change.removed.clone());
            let (replaced, new) = replaced_keys(change);
            for (went, event) in [(deleted, Event::Deleted), (replaced, Event::Updated(new))] {
                let (parent, child, key) = (entry.clone(), child.clone(), key.clone());
                self.went(transaction, Due { parent, child, key, went, event })?;
            }
        }
        Ok(())
    }

    /// Notes what follows from removed keys.
    fn went(&mut self, transaction: &mut TransactionContext, due: Due) -> Result<()> {
        if due.went.is_empty() {
            return Ok(());
        }
        let Due { parent, child, key, went, .. } = &due;
        let (parent, child, key, keys) = (parent.clone(), child.clone(), key.clone(), went.clone());
        let predicate = Predicate::Held { parent, child, key, keys, side: Side::Went };
        match due.action() {
            ReferentialAction::NoAction => self.open.push(predicate),
            ReferentialAction::Restrict => {
                // The whole table is pinned as of one moment, as it may be written to later.
                transaction.pin(&due.child);
                foreign::restrict(transaction, &due.parent, &due.child, &due.key, &due.went)?;
                self.settled.push(predicate);
            }
            // The default may be just the key that was removed: then the rows are as before, and refer to it
            // still, as under NO ACTION.
            ReferentialAction::SetDefault => {
                self.open.push(predicate);
                self.due.push_back(due);
            }
            ReferentialAction::Cascade | ReferentialAction::SetNull => {
                self.settled.push(predicate);
                self.due.push_back(due);
            }
        }
        Ok(())
    }

    /// Runs the due actions, and those that become due by them; then validates the open predicates.
    ///
    /// # Errors
    /// Constraint, if one is violated; those of the actions; interrupted.
    pub(super) fn finish(mut self, session: &Session, transaction: &mut TransactionContext) -> Result<()> {
        while let Some(due) = self.due.pop_front() {
            self.follow(session, transaction, &due).map_err(|error| error.with_context(due.name()))?;
        }
        self.open.into_iter().try_for_each(|predicate| foreign::validate(transaction, predicate))?;
        self.settled.into_iter().for_each(|predicate| foreign::rely(transaction, predicate));
        Ok(())
    }

    /// Runs the action on the rows that refer to removed keys.
    fn follow(&mut self, session: &Session, transaction: &mut TransactionContext, due: &Due) -> Result<()> {
        transaction.interrupt().look()?;
        let Due { parent, child, key, went, .. } = due;
        let names = Names::new(session, transaction);
        let rows = names.with_row_ids(&child.name);
        let rows = rows.ok_or_else(|| Error::internal(format!("table {} is gone", child.name)))?;
        if rows.rows() == Some(0) {
            return Ok(());
        }
        self.refuse_again(due)?;
        let rows = match rows_by_key(&rows, &key.columns, went) {
            Some(found) if found.is_empty() => return Ok(()),
            Some(found) => rows.only(found),
            None => rows,
        };
        let Some(consequence) = due.consequence() else { return Ok(()) };
        let types: Vec<DataType> =
            key.references.iter().map(|&column| parent.table.schema()[column].ty).collect();
        let referring = Referring {
            table: &child.name,
            rows: Arc::new(rows),
            columns: &key.columns,
            types: &types,
            went,
        };
        let change = entasis_sql::follow(&names, &referring, consequence)?;
        drop(names);
        super::change_rows(session, transaction, change, self).map(drop)
    }

    /// Refuses to update rows that refer to keys to which the statement itself may have changed rows: which
    /// rows it changed is not known.
    fn refuse_again(&self, due: &Due) -> Result<()> {
        let Event::Updated(_) = due.event else { return Ok(()) };
        for predicate in &self.open {
            let Predicate::Held { child, key, keys, side: Side::Came, .. } = predicate else { continue };
            if !Arc::ptr_eq(child, &due.child) || key.name != due.key.name {
                continue;
            }
            if let Some(again) =
                keys.iter().find(|key| due.went.binary_search_by(|went| order(went, key)).is_ok())
            {
                let shown = shown(&due.child, &key.columns, again);
                let text = format!(
                    "the statement has set {shown} in rows of table {}, and is to change just that once more",
                    due.child.name
                );
                let hint = "first set the keys to unused values, and to the final ones in a second statement";
                return Err(Error::new(ErrorKind::Constraint, text)
                    .with_hint(hint)
                    .with_sqlstate(TRIGGERED_CHANGE));
            }
        }
        Ok(())
    }
}

/// The old keys of updated rows whose key has changed, in order and without NULLs, and their new keys.
fn replaced_keys(change: &KeyChange) -> (Vec<Values>, Vec<Values>) {
    let is_gone = |(old, new): &(&Values, &Values)| {
        !old.iter().any(entasis_vector::Value::is_null) && order(old, new).is_ne()
    };
    let mut pairs: Vec<(Values, Values)> =
        change.updated().filter(is_gone).map(|(old, new)| (old.clone(), new.clone())).collect();
    pairs.sort_by(|a, b| order(&a.0, &b.0));
    pairs.dedup_by(|b, a| order(&a.0, &b.0).is_eq());
    pairs.into_iter().unzip()
}
