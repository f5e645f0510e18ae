//! `UPDATE` and `DELETE`: the rows to change, and their new values.
//!
//! `SELECT row_id, values FROM target, others WHERE condition`. If the whole new row is needed, for checks
//! and `RETURNING`, the columns that are not assigned are included.

use super::finish::Returning;
use super::{ROW_ID, ROW_ID_TYPE, Target, no_joins};
use crate::statements::binder::Binder;
use crate::statements::bound::{Action, Change, Repeated, Statement};
use crate::statements::rows;
use entasis_engine::plan::Plan;
use entasis_syntax::build::named;
use entasis_syntax::clauses::refuse;
use entasis_vector::{DataType, Error, Result};
use sqlparser::ast::{Delete, Expr, FromTable, TableWithJoins, Update, UpdateTableFromKind};

impl Binder<'_> {
    pub(crate) fn delete(&self, delete: &Delete) -> Result<Statement> {
        let Delete {
            delete_token: _,
            from,
            using: _,
            selection: _,
            returning: _,
            optimizer_hints,
            tables,
            output,
            order_by,
            limit,
        } = delete;
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
        let [table] = &from[..] else { return Err(Error::not_supported("DELETE from several tables")) };
        refuse([
            (!tables.is_empty(), "DELETE from several tables"),
            (output.is_some(), "OUTPUT"),
            (!order_by.is_empty(), "ORDER BY in DELETE"),
            (limit.is_some(), "LIMIT in DELETE"),
            (!optimizer_hints.is_empty(), "hints for the optimizer"),
        ])?;
        let target = self.target(no_joins(table)?)?;
        let using = delete.using.clone().unwrap_or_default();
        let returning = Returning::new(delete.returning.as_deref(), &target, !using.is_empty())?;
        let mut values = Vec::new();
        if returning.is_some() {
            values.extend(
                target.columns().iter().map(|field| (field.name.to_string(), target.column(&field.name))),
            );
        }
        values.extend(returning.carried.iter().cloned());
        let rows = self.rows_of(&target, values, using, delete.selection.clone())?;
        let finished = self.finish(rows, 1, &target, Vec::new(), returning)?;
        Ok(Statement::Change(Change {
            table: target.name,
            columns: Vec::new(),
            action: Action::Delete,
            plan: finished.plan,
            checks: finished.checks,
            returning: finished.returning,
            repeated: Repeated::First,
            conflicts: Vec::new(),
            proposed: Vec::new(),
        }))
    }

    pub(crate) fn update(&self, update: &Update) -> Result<Statement> {
        let Update {
            update_token: _,
            table: _,
            assignments: _,
            from: _,
            selection: _,
            returning: _,
            optimizer_hints,
            output,
            or,
            order_by,
            limit,
        } = update;
        refuse([
            (output.is_some(), "OUTPUT"),
            (or.is_some(), "UPDATE OR …"),
            (!order_by.is_empty(), "ORDER BY in UPDATE"),
            (limit.is_some(), "LIMIT in UPDATE"),
            (!optimizer_hints.is_empty(), "hints for the optimizer"),
        ])?;
        let target = self.target(no_joins(&update.table)?)?;
        let from = match &update.from {
            None => Vec::new(),
            Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => from.clone(),
        };
        let assigned = self.assignments(&target, &update.assignments)?;
        let columns: Vec<usize> = assigned.iter().map(|(column, _)| *column).collect();
        let checks = self.checks(&target, Some(&columns))?;
        let returning = Returning::new(update.returning.as_deref(), &target, !from.is_empty())?;
        let name = |column: usize| target.columns()[column].name.to_string();
        let mut values: Vec<(String, Expr)> =
            assigned.into_iter().map(|(column, value)| (name(column), value)).collect();
        if !checks.is_empty() || returning.is_some() {
            let rest = (0..target.columns().len()).filter(|column| !columns.contains(column));
            values.extend(rest.map(|column| (name(column), target.column(&name(column)))));
        }
        values.extend(returning.carried.iter().cloned());
        let mut rows = self.rows_of(&target, values, from, update.selection.clone())?;
        let types = columns.iter().map(|&column| target.columns()[column].ty);
        rows::cast_outputs(&mut rows, &std::iter::once(ROW_ID_TYPE).chain(types).collect::<Vec<DataType>>())?;
        let finished = self.finish(rows, 1 + columns.len(), &target, checks, returning)?;
        Ok(Statement::Change(Change {
            table: target.name,
            columns,
            action: Action::Update,
            plan: finished.plan,
            checks: finished.checks,
            returning: finished.returning,
            repeated: Repeated::First,
            conflicts: Vec::new(),
            proposed: Vec::new(),
        }))
    }

    /// The query for the rows to change: their ids, then `values` under their names.
    fn rows_of(
        &self,
        target: &Target,
        values: Vec<(String, Expr)>,
        mut others: Vec<TableWithJoins>,
        selection: Option<Expr>,
    ) -> Result<Plan> {
        self.over_target(target, |select| {
            let id = (ROW_ID.to_string(), target.column(ROW_ID));
            select.projection =
                std::iter::once(id).chain(values).map(|(name, expr)| named(expr, &name)).collect();
            select.from.append(&mut others);
            select.selection = selection;
        })
    }
}
