//! The last stage of a statement that changes rows: constraints that the new rows must satisfy, and
//! `RETURNING`.
//!
//! Both are expressions over a row with the column names of the target: the new row of an `INSERT` or
//! `UPDATE`, the old one of a `DELETE`. An `UPDATE` only evaluates the checks that mention an assigned
//! column: the others hold already.
//!
//! `RETURNING` of an `UPDATE … FROM` or `DELETE … USING` may also name columns of the other tables. These are
//! passed on from the previous stage ([`Returning::carried`]).

use super::Target;
use super::outer::for_each_outer;
use crate::statements::binder::Binder;
use crate::statements::bound::{Action, Change, Proposed, Repeated, Statement};
use entasis_engine::plan::Plan;
use entasis_engine::relation::Check;
use entasis_syntax::build::{named, qualified, stored_expr};
use entasis_syntax::place::span_position;
use entasis_syntax::stored::read_columns;
use entasis_vector::{Error, Field, Result, Schema};
use sqlparser::ast::{
    CastKind, DataType as SqlType, Expr, Ident, ObjectName, OutputClause, SelectItem,
    SelectItemQualifiedWildcardKind, Spanned, WildcardAdditionalOptions,
};

/// A finished plan, with what follows the statement's own columns.
pub(super) struct Finished {
    pub(super) plan: Plan,
    pub(super) checks: Vec<String>,
    pub(super) returning: Option<Schema>,
}

/// `RETURNING`, with its wildcards replaced.
#[derive(Default)]
pub(super) struct Returning {
    items: Option<Vec<SelectItem>>,
    /// What the previous stage must pass on: names that no user can write, and expressions.
    pub(super) carried: Vec<(String, Expr)>,
}

impl Returning {
    /// The `items` over a target; if there are other tables, expressions that do not belong to the target
    /// belong to these.
    pub(super) fn new(items: Option<&[SelectItem]>, target: &Target, others: bool) -> Result<Returning> {
        let Some(items) = items else { return Ok(Returning::default()) };
        let mut expanded = Vec::new();
        for item in items {
            match item {
                SelectItem::Wildcard(options) => {
                    plain_wildcard(options)?;
                    expanded.extend(target.columns().iter().map(|field| column_item(target, field)));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    plain_wildcard(options)?;
                    if !is_target(name, target) {
                        return Err(Error::input(format!("there is no table {name} in RETURNING *")));
                    }
                    expanded.extend(target.columns().iter().map(|field| column_item(target, field)));
                }
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => {
                    let mut item = item.clone();
                    target.own_names(&mut item);
                    expanded.push(item);
                }
                other => return Err(Error::not_supported(format!("{other} in RETURNING"))),
            }
        }
        let mut carried = Vec::new();
        if others {
            for item in &mut expanded {
                let name = match item {
                    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                        parts.last().map(|p| p.value.clone())
                    }
                    SelectItem::UnnamedExpr(expr) => Some(expr.to_string()),
                    _ => None,
                };
                carry(target, item, &mut carried);
                if let (Some(name), SelectItem::UnnamedExpr(expr)) = (name, &*item) {
                    *item = named(expr.clone(), &name);
                }
            }
        }
        Ok(Returning { items: Some(expanded), carried })
    }

    /// Whether there is a `RETURNING`.
    pub(super) fn is_some(&self) -> bool {
        self.items.is_some()
    }
}

/// The items of a `RETURNING` of `MERGE`.
pub(super) fn returned(output: Option<&OutputClause>) -> Result<Option<&[SelectItem]>> {
    match output {
        None => Ok(None),
        Some(OutputClause::Returning { select_items, .. }) => Ok(Some(select_items)),
        Some(OutputClause::Output { .. }) => Err(Error::not_supported("OUTPUT").with_hint("write RETURNING")),
    }
}

fn column_item(target: &Target, field: &Field) -> SelectItem {
    named(target.column(&field.name), &field.name)
}

fn is_target(name: &ObjectName, target: &Target) -> bool {
    let table = name.0.last().and_then(|part| part.as_ident());
    table.is_some_and(|table| table.value.eq_ignore_ascii_case(&target.alias.name.value))
}

fn plain_wildcard(options: &WildcardAdditionalOptions) -> Result<()> {
    let plain = options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_ilike.is_none()
        && options.opt_rename.is_none()
        && options.opt_replace.is_none();
    if plain { Ok(()) } else { Err(Error::not_supported("* with EXCLUDE or REPLACE in RETURNING")) }
}

/// Replaces columns of other tables by new names, and adds these with the replaced expressions to `carried`.
fn carry(target: &Target, item: &mut SelectItem, carried: &mut Vec<(String, Expr)>) {
    for_each_outer(item, |expr| {
        let is_own = match &*expr {
            Expr::Identifier(name) => {
                target.columns().iter().any(|field| field.name.eq_ignore_ascii_case(&name.value))
            }
            Expr::CompoundIdentifier(parts) => {
                parts.first().is_some_and(|table| table.value.eq_ignore_ascii_case(&target.alias.name.value))
            }
            _ => true,
        };
        if !is_own {
            let name = format!("entasis:carried{}", carried.len());
            let stand_in = Expr::Identifier(Ident::with_quote('"', name.as_str()));
            carried.push((name, std::mem::replace(expr, stand_in)));
        }
    });
}

impl Binder<'_> {
    /// The checks of the target to evaluate when `assigned` columns change; all checks, if rows are new.
    pub(super) fn checks<'t>(
        &self,
        target: &'t Target,
        assigned: Option<&[usize]>,
    ) -> Result<Vec<(&'t Check, Expr)>> {
        let mut checks = Vec::new();
        for check in &target.definition.checks {
            let expr = stored_expr(&check.sql)?;
            let read = read_columns(&expr, "a CHECK constraint")?;
            let changes = |&i: &usize| read.contains(&target.columns()[i].name.to_ascii_lowercase());
            if assigned.is_none_or(|assigned| assigned.iter().any(changes)) {
                checks.push((check, expr));
            }
        }
        Ok(checks)
    }

    /// The statement that applies the action in each of `rows`, which has a row id, an action, all columns,
    /// and a BOOLEAN for each of `proposed`.
    pub(super) fn change_by_row(
        &self,
        rows: Plan,
        target: Target,
        returning: Returning,
        repeated: Repeated,
        conflicts: Vec<usize>,
        proposed: Vec<Proposed>,
    ) -> Result<Statement> {
        let width = target.columns().len();
        let checks = self.checks(&target, None)?;
        let finished = self.finish(rows, 2 + width + proposed.len(), &target, checks, returning)?;
        Ok(Statement::Change(Change {
            table: target.name,
            columns: (0..width).collect(),
            action: Action::ByRow,
            plan: finished.plan,
            checks: finished.checks,
            returning: finished.returning,
            repeated,
            conflicts,
            proposed,
        }))
    }

    /// Adds the checks and what is returned after the first `kept` columns of `rows`, which also has columns
    /// named as those of the target.
    pub(super) fn finish(
        &self,
        mut rows: Plan,
        kept: usize,
        target: &Target,
        checks: Vec<(&Check, Expr)>,
        returning: Returning,
    ) -> Result<Finished> {
        let names: Vec<String> = checks.iter().map(|(check, _)| check.name.clone()).collect();
        if checks.is_empty() && !returning.is_some() {
            rows.output.truncate(kept);
            return Ok(Finished { plan: rows, checks: names, returning: None });
        }
        let mut items: Vec<SelectItem> = rows.output[..kept]
            .iter()
            .map(|output| named(qualified(&target.alias.name, &output.name), &output.name))
            .collect();
        for (i, (_, expr)) in checks.into_iter().enumerate() {
            items.push(named(boolean(expr), &format!("entasis:check{i}")));
        }
        let judged = items.len();
        let returns = returning.is_some();
        let returned = returning.items.unwrap_or_default();
        let place = returned.first().and_then(|item| span_position(item.span()));
        items.extend(returned);
        let plan = self.over_rows(rows, target.alias.clone(), None, |select| select.projection = items);
        let plan = plan.map_err(|error| match (error.position(), place) {
            (None, Some(place)) if !error.message().starts_with("there is no column") => {
                error.with_position(place)
            }
            _ => error,
        })?;
        let returning = returns.then(|| plan.schema()[judged..].to_vec());
        Ok(Finished { plan, checks: names, returning })
    }
}

/// `CAST((expr) AS BOOLEAN)`
pub(super) fn boolean(expr: Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Nested(Box::new(expr))),
        data_type: SqlType::Boolean,
        array: false,
        format: None,
    }
}
