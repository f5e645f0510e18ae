//! `INSERT … ON CONFLICT`, `INSERT OR IGNORE` and `INSERT OR REPLACE`.
//!
//! The new rows, complete with defaults, are a table `excluded`, which is queried as follows:
//!
//! * `DO NOTHING`: those of its rows for which the target has none with the same key. They are all added.
//! * `DO UPDATE`: `excluded LEFT JOIN target` on the key. If no row is found, the new one is added; if one is
//!   found, it is updated, unless the `WHERE` of the clause excludes it. Unqualified names refer to the
//!   target.
//!
//! NOT NULL and CHECKs hold for every given row, as in PostgreSQL, and not only for those that are added
//! ([`Proposed`]): they are computed beside the row before its key is looked up, and rows that are not added
//! come with action 0 then.
//!
//! Keys with NULLs equal no other key, so they never conflict. Not handled here: rows of one statement that
//! conflict with each other ([`crate::statements::bound::Repeated`]).

use super::finish::{Returning, boolean};
use super::outer::for_each_outer;
use super::{ACTION, ACTION_TYPE, ROW_ID, ROW_ID_TYPE, Target};
use crate::statements::binder::Binder;
use crate::statements::bound::{Proposed, Repeated, Statement};
use crate::statements::columns::find_column;
use crate::statements::rows;
use entasis_binder::TARGET;
use entasis_engine::plan::Plan;
use entasis_engine::relation::KeyKind;
use entasis_syntax::build::{
    and, case, cast_to, equal, exists, is_null, join, named, not, null, number, or, qualified, select_from,
    table_alias, table_factor,
};
use entasis_vector::{DataType, Error, Result, name};
use sqlparser::ast::{
    self, ConflictTarget, DoUpdate, Expr, Ident, JoinConstraint, JoinOperator, OnConflict, OnConflictAction,
    OnInsert, SelectItem, SqliteOnConflict,
};
use std::collections::BTreeSet;

/// What to do about a conflict.
#[expect(clippy::large_enum_variant, reason = "there are few of them, for a moment")]
enum Resolution {
    Nothing,
    /// Set columns if the condition holds.
    Update(Vec<(usize, Expr)>, Option<Expr>),
}

impl Binder<'_> {
    pub(super) fn insert_or(&self, insert: &ast::Insert, target: Target) -> Result<Statement> {
        let excluded = Ident::new("excluded");
        let (keys, resolution) = self.resolution(insert, &target, &excluded)?;
        let returning = Returning::new(insert.returning.as_deref(), &target, false)?;
        let rows = self.inserted(&target, insert)?;
        let (rows, proposed) = self.proposed(rows, &target, &keys)?;
        let repeated = match resolution {
            Resolution::Nothing => Repeated::First,
            Resolution::Update(..) => Repeated::Error,
        };
        let mut rows = match resolution {
            Resolution::Nothing => self.new_ones(rows, &target, &keys, &excluded, &proposed)?,
            Resolution::Update(assigned, condition) => {
                self.new_or_found(rows, &target, &keys, &excluded, &assigned, condition, &proposed)?
            }
        };
        let types = target.columns().iter().map(|field| field.ty);
        rows::cast_outputs(
            &mut rows,
            &[ROW_ID_TYPE, ACTION_TYPE]
                .into_iter()
                .chain(types)
                .chain(proposed.iter().map(|_| DataType::Boolean))
                .collect::<Vec<DataType>>(),
        )?;
        self.change_by_row(rows, target, returning, repeated, keys, proposed)
    }

    /// The given rows with what must hold for each of them, and these conditions. Those that hold for
    /// certain, or are checked because a row for which they do not hold is added, are left out.
    fn proposed(&self, rows: Plan, target: &Target, keys: &[usize]) -> Result<(Plan, Vec<Proposed>)> {
        // A row with a NULL in a key conflicts with none.
        let is_in_all = |column: &usize| {
            !keys.is_empty() && keys.iter().all(|&key| target.definition.keys[key].columns.contains(column))
        };
        let given = rows.schema();
        let may_be_null = |column: &usize| !target.columns()[*column].nullable && given[*column].nullable;
        let required = (0..target.columns().len()).filter(may_be_null).filter(|column| !is_in_all(column));
        let mut proposed = Vec::new();
        let mut conditions = Vec::new();
        for column in required {
            proposed.push(Proposed::NotNull(column));
            conditions.push(not(is_null(target.column(&target.columns()[column].name))));
        }
        for (check, expr) in self.checks(target, None)? {
            proposed.push(Proposed::Check(check.name.clone()));
            conditions.push(boolean(expr));
        }
        if proposed.is_empty() {
            return Ok((rows, proposed));
        }
        let columns = target.columns().iter().map(|field| named(target.column(&field.name), &field.name));
        let conditions = conditions.into_iter().enumerate();
        let items = columns.chain(conditions.map(|(at, condition)| named(condition, &holds(at)))).collect();
        let rows = self.over_rows(rows, target.alias.clone(), None, |select| select.projection = items)?;
        Ok((rows, proposed))
    }

    /// The keys whose conflicts are handled, and what to do about them.
    fn resolution(
        &self,
        insert: &ast::Insert,
        target: &Target,
        excluded: &Ident,
    ) -> Result<(Vec<usize>, Resolution)> {
        let unique = || {
            let keys = target.definition.keys.iter().enumerate();
            keys.filter(|(_, key)| key.kind != KeyKind::Index).map(|(i, _)| i).collect::<Vec<usize>>()
        };
        // An update needs a single key by which to find the row.
        let the_key = |clause: &str| match unique().as_slice() {
            [key] => Ok(vec![*key]),
            [] => Err(Error::input(format!("{clause}: the table {} has no unique key", target.name))),
            _ => Err(Error::input(format!("{clause}: the table {} has several unique keys", target.name))
                .with_hint("say which is meant: ON CONFLICT (columns) DO UPDATE SET …")),
        };
        match (&insert.or, &insert.on) {
            (Some(SqliteOnConflict::Ignore), None) => Ok((unique(), Resolution::Nothing)),
            (Some(SqliteOnConflict::Replace), None) => {
                let keys = the_key("INSERT OR REPLACE")?;
                let key = &target.definition.keys[keys[0]].columns;
                let others = (0..target.columns().len()).filter(|column| !key.contains(column));
                let all = others.map(|column| (column, qualified(excluded, &target.columns()[column].name)));
                Ok((keys, Resolution::Update(all.collect(), None)))
            }
            (Some(other), None) => Err(Error::not_supported(format!("INSERT {other}"))),
            (None, Some(OnInsert::OnConflict(OnConflict { conflict_target, action }))) => {
                let named_keys = conflict_target.as_ref().map(|t| conflict_key(t, target)).transpose()?;
                match action {
                    OnConflictAction::DoNothing => {
                        Ok((named_keys.map_or_else(unique, |key| vec![key]), Resolution::Nothing))
                    }
                    OnConflictAction::DoUpdate(DoUpdate { assignments, selection }) => {
                        let keys = match named_keys {
                            Some(key) => vec![key],
                            None => the_key("ON CONFLICT DO UPDATE")?,
                        };
                        let mut assigned = self.assignments(target, assignments)?;
                        for (_, value) in &mut assigned {
                            qualify(target, value);
                        }
                        let mut condition = selection.clone();
                        condition.iter_mut().for_each(|condition| qualify(target, condition));
                        Ok((keys, Resolution::Update(assigned, condition)))
                    }
                }
            }
            (None, Some(OnInsert::DuplicateKeyUpdate(_))) => {
                Err(Error::not_supported("ON DUPLICATE KEY UPDATE")
                    .with_hint("write ON CONFLICT (columns) DO UPDATE SET …"))
            }
            (Some(_), Some(_)) => Err(Error::input("INSERT OR … and ON CONFLICT exclude each other")),
            (None, None) | (_, Some(_)) => Err(Error::internal("an INSERT without a clause for conflicts")),
        }
    }

    /// The new rows whose keys the target does not have. If conditions are `proposed`, the others come too,
    /// with action 0.
    fn new_ones(
        &self,
        rows: Plan,
        target: &Target,
        keys: &[usize],
        excluded: &Ident,
        proposed: &[Proposed],
    ) -> Result<Plan> {
        if !proposed.is_empty() {
            return self.new_and_others(rows, target, keys, excluded, proposed);
        }
        let other = Ident::with_quote('"', "entasis:other");
        let mut conditions = Vec::new();
        for &key in keys {
            let equal = and(key_columns(target, key)
                .map(|name| equal(qualified(&other, name), qualified(excluded, name))));
            let query = select_from(TARGET, table_alias(other.clone()), |select| select.selection = equal)?;
            conditions.push(not(exists(query)));
        }
        let columns = target.columns().iter().map(|field| (&*field.name, qualified(excluded, &field.name)));
        let items = items(cast_to(null(), ROW_ID_TYPE)?, number(1), columns);
        self.over_rows(rows, table_alias(excluded.clone()), Some(target), |select| {
            select.projection = items;
            select.selection = and(conditions);
        })
    }

    /// All given rows, each with action 1 if the target does not have its keys, and with the conditions.
    fn new_and_others(
        &self,
        rows: Plan,
        target: &Target,
        keys: &[usize],
        excluded: &Ident,
        proposed: &[Proposed],
    ) -> Result<Plan> {
        let mut joins = Vec::with_capacity(keys.len());
        let mut is_found = Vec::with_capacity(keys.len());
        for (at, &key) in keys.iter().enumerate() {
            let other = Ident::with_quote('"', format!("entasis:other{at}"));
            let on = and(key_columns(target, key)
                .map(|name| equal(qualified(&other, name), qualified(excluded, name))));
            let on = on.ok_or_else(|| Error::internal("a key without columns"))?;
            is_found.push((not(is_null(qualified(&other, ROW_ID))), number(0)));
            let found = table_factor(TARGET, table_alias(other))?;
            joins.push(join(found, JoinOperator::LeftOuter(JoinConstraint::On(on))));
        }
        let columns = target.columns().iter().map(|field| (&*field.name, qualified(excluded, &field.name)));
        let mut items = items(cast_to(null(), ROW_ID_TYPE)?, case(is_found, number(1)), columns);
        items.extend(conditions(excluded, proposed));
        self.over_rows(rows, table_alias(excluded.clone()), Some(target), |select| {
            select.projection = items;
            select.from[0].joins.extend(joins);
        })
    }

    /// The new rows, each with the action for it or for the row that has its key.
    fn new_or_found(
        &self,
        rows: Plan,
        target: &Target,
        keys: &[usize],
        excluded: &Ident,
        assigned: &[(usize, Expr)],
        condition: Option<Expr>,
        proposed: &[Proposed],
    ) -> Result<Plan> {
        let is_new = || is_null(target.column(ROW_ID));
        // Rows for which the condition does not hold come too, with action 0, if others are proposed.
        let is_kept = condition.clone().filter(|_| !proposed.is_empty());
        let if_kept = |found: Expr, otherwise: Expr| match &is_kept {
            Some(condition) => case(vec![(Expr::Nested(Box::new(condition.clone())), found)], otherwise),
            None => found,
        };
        let mut columns = Vec::with_capacity(target.columns().len());
        for (i, field) in target.columns().iter().enumerate() {
            let found = match assigned.iter().find(|(column, _)| *column == i) {
                Some((_, value)) => if_kept(cast_to(value.clone(), field.ty)?, target.column(&field.name)),
                None => target.column(&field.name),
            };
            columns.push((&*field.name, case(vec![(is_new(), qualified(excluded, &field.name))], found)));
        }
        let action = case(vec![(is_new(), number(1))], if_kept(number(2), number(0)));
        let mut items = items(target.column(ROW_ID), action, columns.into_iter());
        items.extend(conditions(excluded, proposed));
        let on = keys.iter().flat_map(|&key| key_columns(target, key));
        let on = and(on.map(|name| equal(target.column(name), qualified(excluded, name))));
        let on = on.ok_or_else(|| Error::internal("a key without columns"))?;
        let found = table_factor(TARGET, target.alias.clone())?;
        self.over_rows(rows, table_alias(excluded.clone()), Some(target), |select| {
            select.projection = items;
            select.from[0].joins.push(join(found, JoinOperator::LeftOuter(JoinConstraint::On(on))));
            let filter = condition.filter(|_| proposed.is_empty());
            select.selection = filter.map(|condition| or(is_new(), condition));
        })
    }
}

/// The name of the column of a condition on the given rows.
fn holds(at: usize) -> String {
    format!("entasis:proposed{at}")
}

/// The conditions on the given rows.
fn conditions(excluded: &Ident, proposed: &[Proposed]) -> impl Iterator<Item = SelectItem> {
    (0..proposed.len()).map(|at| named(qualified(excluded, &holds(at)), &holds(at)))
}

fn items<'t>(id: Expr, action: Expr, columns: impl Iterator<Item = (&'t str, Expr)>) -> Vec<SelectItem> {
    let first = [named(id, ROW_ID), named(action, ACTION)];
    first.into_iter().chain(columns.map(|(name, expr)| named(expr, name))).collect()
}

fn key_columns(target: &Target, key: usize) -> impl Iterator<Item = &str> {
    target.definition.keys[key].columns.iter().map(|&column| &*target.columns()[column].name)
}

/// The key that `ON CONFLICT` names.
fn conflict_key(named: &ConflictTarget, target: &Target) -> Result<usize> {
    let keys = target.definition.keys.iter().enumerate().filter(|(_, key)| key.kind != KeyKind::Index);
    let known = || {
        let lists = target.definition.unique_keys().map(|key| {
            let names: Vec<&str> = key.columns.iter().map(|&i| &*target.columns()[i].name).collect();
            format!("({})", names.join(", "))
        });
        lists.collect::<Vec<_>>().join(" and ")
    };
    let (found, what) = match named {
        ConflictTarget::Columns(names) => {
            let columns = names.iter().map(|name| find_column(target.columns(), name));
            let columns: BTreeSet<usize> = columns
                .collect::<Result<_>>()
                .map_err(|error| error.with_context(format!("table {}", target.name)))?;
            let mut keys = keys;
            let found = keys.find(|(_, key)| key.columns.iter().copied().collect::<BTreeSet<_>>() == columns);
            let names: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
            (found, format!("({}) is not a unique key of table {}", names.join(", "), target.name))
        }
        ConflictTarget::OnConstraint(name) => {
            let own = name.0.last().and_then(|part| part.as_ident()).map_or("", |own| own.value.as_str());
            let wanted = name::fold(own);
            let mut keys = keys;
            (
                keys.find(|(_, key)| key.name == wanted),
                format!("the table {} has no unique key named {wanted}", target.name),
            )
        }
    };
    found.map(|(i, _)| i).ok_or_else(|| {
        let error = Error::input(format!("ON CONFLICT: {what}"));
        match known() {
            none if none.is_empty() => error,
            known => error.with_hint(format!("its unique keys are {known}")),
        }
    })
}

/// Qualifies names of the target's columns.
fn qualify(target: &Target, expr: &mut Expr) {
    for_each_outer(expr, |expr| {
        if let Expr::Identifier(name) = expr
            && target.columns().iter().any(|field| field.name.eq_ignore_ascii_case(&name.value))
        {
            *expr = Expr::CompoundIdentifier(vec![target.alias.name.clone(), name.clone()]);
        }
    });
}
