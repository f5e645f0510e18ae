//! `ALTER TABLE`.
//!
//! The new table is declared from the old one ([`Altered`]), action by action, as `CREATE TABLE` declares
//! one: several actions in one statement add up. The difference determines
//!
//! 1. the rows, if values change: a query over the old table;
//! 2. the constraints that existing rows may violate: `NOT NULL`, checks, unique keys and foreign keys that
//!    are new or concern new values, with a query over those rows for each.
//!
//! The caller that runs the statement updates the objects that need the table: foreign keys that refer to it,
//! whose columns [`Columns::places`] renumbers, and views.

use super::altered::{Altered, Origin};
use super::binder::Binder;
use super::bound::{Alteration, Columns, Statement};
use super::change::{TableView, Target};
use super::definition::Declared;
use super::layout;
use crate::statements::rows;
use entasis_binder::environment::schema::renamed;
use entasis_engine::plan::Plan;
use entasis_engine::relation::ColumnDefault;
use entasis_syntax::build::{cast_to, named, null, stored_expr};
use entasis_syntax::clauses::refuse;
use entasis_syntax::object_name::table_name;
use entasis_syntax::place::locate_ident;
use entasis_syntax::stored::read_columns;
use entasis_syntax::types::sql_type;
use entasis_vector::{DataType, Error, Field, Result, name};
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, Expr, Ident, ObjectName,
    RenameTableNameKind,
};

impl Binder<'_> {
    pub(crate) fn alter_table(&self, alter: &AlterTable) -> Result<Statement> {
        let AlterTable {
            name: _,
            if_exists: _,
            // Tables have no descendants.
            only: _,
            operations: _,
            location,
            on_cluster,
            table_type,
            end_token: _,
        } = alter;
        refuse([
            (location.is_some(), "the format and location of a table"),
            (on_cluster.is_some(), "ON CLUSTER"),
            (table_type.is_some(), "tables of this kind"),
        ])?;
        let table = table_name(&alter.name)?;
        let if_exists = alter.if_exists;
        if if_exists && self.catalog.definition(&table).is_none() && self.catalog.view(&table).is_none() {
            return Ok(Statement::AlterTable { table, if_exists, alteration: Alteration::Nothing });
        }
        let alteration = match alter.operations.as_slice() {
            [AlterTableOperation::RenameTable { table_name: to }] => {
                self.table(&table)?;
                let (RenameTableNameKind::To(to) | RenameTableNameKind::As(to)) = to;
                self.rename(&table, to)?
            }
            [AlterTableOperation::SetOptionsParens { options }] => {
                let relation = self.table(&table)?;
                Alteration::Layout(layout::choice(options, relation.schema())?)
            }
            operations => self.alter_columns(&alter.name, &table, operations)?,
        };
        Ok(Statement::AlterTable { table, if_exists, alteration })
    }

    fn rename(&self, table: &str, to: &ObjectName) -> Result<Alteration> {
        let name = renamed(table, to)?;
        if self.catalog.definition(&name).is_some() || self.catalog.view(&name).is_some() {
            return Err(Error::input(format!("there is a table or view {} already", name::shown(&name))));
        }
        Ok(Alteration::Rename { to: name })
    }

    fn alter_columns(
        &self,
        name: &ObjectName,
        table: &str,
        operations: &[AlterTableOperation],
    ) -> Result<Alteration> {
        let relation = self.table(table)?;
        let columns = relation.schema().clone();
        let width = columns.len();
        let before = self.target_of(name, table.to_string(), None, relation, width)?;
        let definition = (*before.definition).clone();
        let declared = Declared { table: table.to_string(), columns, definition, sequences: Vec::new() };
        let origins = (0..width).map(Origin::Column).collect();
        let places = (0..width).map(Some).collect();
        let mut altered =
            Altered { declared, origins, places, changed: false, dropped: Vec::new(), cascade: None };
        for operation in operations {
            self.alter(&mut altered, operation)?;
        }
        if !altered.changed {
            return Ok(Alteration::Nothing);
        }
        altered.declared.note_sequences(self.catalog)?;
        let same = altered.origins.len() == width
            && altered
                .origins
                .iter()
                .enumerate()
                .all(|(i, origin)| matches!(origin, Origin::Column(j) if *j == i));
        let rows = self.altered_rows(&before, &altered)?;
        let violations = self.violations(&before, &altered, &rows)?;
        let now = |column: usize| altered.places.iter().position(|&was| was == Some(column));
        let is_revalued = |column: &usize| now(*column).is_some_and(|now| altered.is_new(now));
        Ok(Alteration::Columns(Columns {
            places: (0..width).map(now).collect(),
            revalued: (0..width).filter(is_revalued).collect(),
            columns: altered.declared.columns,
            definition: altered.declared.definition,
            cascade: altered.cascade == Some(true),
            rows: (!same).then_some(rows),
            violations,
        }))
    }

    fn alter(&self, altered: &mut Altered, operation: &AlterTableOperation) -> Result<()> {
        use AlterTableOperation as Op;
        match operation {
            Op::AddColumn { column_keyword: _, if_not_exists, column_def, column_position } => {
                if column_position.is_some() {
                    return Err(Error::not_supported("the position of a new column"));
                }
                let is_there = altered.free(&column_def.name).is_err();
                if is_there && *if_not_exists { Ok(()) } else { self.add_column(altered, column_def) }
            }
            Op::DropColumn { has_column_keyword: _, column_names, if_exists, drop_behavior } => {
                let cascade = altered.drops(drop_behavior.as_ref());
                for name in column_names {
                    drop_column(altered, name, *if_exists, cascade)?;
                }
                Ok(())
            }
            Op::RenameColumn { old_column_name, new_column_name } => {
                let column = altered.find(old_column_name)?;
                altered.rename_column(column, new_column_name)
            }
            Op::AlterColumn { column_name, op } => {
                let column = altered.find(column_name)?;
                self.alter_column(altered, column, op)
            }
            Op::AddConstraint { constraint, not_valid } => {
                if *not_valid {
                    return Err(Error::not_supported("constraints that are NOT VALID"));
                }
                altered.changed = true;
                self.constraint(&mut altered.declared, constraint)
            }
            Op::DropConstraint { if_exists, name, drop_behavior } => {
                altered.drops(drop_behavior.as_ref());
                let dropped = altered.drop_constraint(&name.value.to_ascii_lowercase())?;
                if dropped || *if_exists { Ok(()) } else { Err(altered.no_constraint(name)) }
            }
            Op::RenameTable { .. } | Op::SetOptionsParens { .. } => {
                Err(Error::not_supported("RENAME TO or SET (…) with other actions in one ALTER TABLE"))
            }
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(Error::not_supported(format!("ALTER TABLE … {}", words.join(" ").to_uppercase())))
            }
        }
    }

    fn add_column(&self, altered: &mut Altered, column: &ColumnDef) -> Result<()> {
        altered.free(&column.name)?;
        let i = altered.declared.add_column(column)?;
        self.column_options(&mut altered.declared, i, column)?;
        if !altered.declared.sequences.is_empty() {
            return Err(Error::not_supported("adding identity columns to an existing table"));
        }
        let value = match altered.declared.definition.default_of(i) {
            ColumnDefault::Expression(sql) => stored_expr(sql)?,
            _ => null(),
        };
        altered.origins.push(Origin::Expr(cast_to(value, altered.declared.columns[i].ty)?));
        altered.places.push(None);
        altered.changed = true;
        Ok(())
    }

    fn alter_column(&self, altered: &mut Altered, column: usize, op: &AlterColumnOperation) -> Result<()> {
        let field = altered.declared.columns[column].clone();
        let identity =
            matches!(altered.declared.definition.default_of(column), ColumnDefault::Identity { .. });
        let set_default = |altered: &mut Altered, default: ColumnDefault| {
            if identity {
                return Err(Error::input(format!("the column {} is an identity column", field.name)));
            }
            let defaults = &mut altered.declared.definition.defaults;
            if defaults.len() <= column {
                defaults.resize(column + 1, ColumnDefault::Null);
            }
            defaults[column] = default;
            Ok(())
        };
        match op {
            AlterColumnOperation::SetDefault { value } => {
                let default = self.default(value, &field)?;
                set_default(altered, default)?;
            }
            AlterColumnOperation::DropDefault => set_default(altered, ColumnDefault::Null)?,
            AlterColumnOperation::SetNotNull => altered.declared.columns[column].nullable = false,
            AlterColumnOperation::DropNotNull => {
                let primary = altered.declared.definition.primary_key();
                if identity || primary.is_some_and(|key| key.columns.contains(&column)) {
                    let what = if identity { "an identity column" } else { "part of the primary key" };
                    return Err(Error::input(format!(
                        "the column {} is {what} and cannot be NULL",
                        field.name
                    )));
                }
                altered.declared.columns[column].nullable = true;
            }
            AlterColumnOperation::SetDataType { data_type, using, had_set: _ } => {
                if !self.set_type(altered, column, sql_type(data_type)?, using.as_ref())? {
                    return Ok(());
                }
            }
            AlterColumnOperation::AddGenerated { .. } => {
                return Err(Error::not_supported("ALTER COLUMN … ADD GENERATED"));
            }
        }
        altered.changed = true;
        Ok(())
    }

    /// Gives a column another type; false if it has that already.
    fn set_type(
        &self,
        altered: &mut Altered,
        column: usize,
        ty: DataType,
        using: Option<&Expr>,
    ) -> Result<bool> {
        let field = altered.declared.columns[column].clone();
        if ty == field.ty && using.is_none() {
            return Ok(false);
        }
        if altered.is_new(column) {
            return Err(Error::not_supported("two new values for a column in one ALTER TABLE"));
        }
        let foreign = &altered.declared.definition.foreign_keys;
        if let Some(key) = foreign.iter().find(|key| altered.has_column(key, column)) {
            let error =
                Error::input(format!("the column {} is used by the constraint {}", field.name, key.name));
            return Err(error.with_hint("drop it first, and add it again"));
        }
        if matches!(altered.declared.definition.default_of(column), ColumnDefault::Identity { .. }) {
            return Err(Error::not_supported("another type for an identity column"));
        }
        let own = || Expr::Identifier(Ident::with_quote('"', &*field.name));
        let value = using.cloned().unwrap_or_else(own);
        altered.origins[column] = Origin::Expr(cast_to(value, ty)?);
        altered.declared.columns[column].ty = ty;
        if let ColumnDefault::Expression(sql) = altered.declared.definition.default_of(column) {
            self.default(&stored_expr(sql)?, &altered.declared.columns[column])?;
        }
        self.judge_checks(altered, &field, ty)?;
        let view = TableView { name: &altered.declared.table, columns: &altered.declared.columns };
        for check in &altered.declared.definition.checks {
            let expr = stored_expr(&check.sql)?;
            self.over_view(&view, |select| select.selection = Some(expr))
                .map_err(|error| error.with_context(format!("constraint {}", check.name)))?;
        }
        Ok(true)
    }

    /// Refuses a type of another kind for a column that checks read: the meaning of their comparisons would
    /// change.
    fn judge_checks(&self, altered: &Altered, field: &Field, ty: DataType) -> Result<()> {
        let is_moment = |ty| matches!(ty, DataType::Date | DataType::Timestamp | DataType::TimestampTz);
        let both = |is: &dyn Fn(DataType) -> bool| is(field.ty) && is(ty);
        if field.ty == ty || both(&DataType::is_numeric) || both(&is_moment) {
            return Ok(());
        }
        let name = field.name.to_ascii_lowercase();
        for check in &altered.declared.definition.checks {
            if read_columns(&stored_expr(&check.sql)?, "a check")?.contains(&name) {
                let text = format!(
                    "the column {} is {} in the constraint {}, and {ty} is of another kind",
                    field.name, field.ty, check.name
                );
                return Err(Error::input(text).with_hint("drop the constraint first, and add it again"));
            }
        }
        Ok(())
    }

    /// The rows of the table with its new columns.
    fn altered_rows(&self, before: &Target, altered: &Altered) -> Result<Plan> {
        let mut items = Vec::with_capacity(altered.origins.len());
        for (origin, field) in altered.origins.iter().zip(&altered.declared.columns) {
            let value = match origin {
                Origin::Column(i) => before.column(&before.columns()[*i].name),
                Origin::Expr(expr) => expr.clone(),
            };
            items.push(named(value, &field.name));
        }
        let mut rows = self.over_target(before, |select| select.projection = items)?;
        let types: Vec<DataType> = altered.declared.columns.iter().map(|field| field.ty).collect();
        rows::cast_outputs(&mut rows, &types)?;
        Ok(rows)
    }
}

/// Drops a column, with its constraints and indexes if that cascades.
fn drop_column(altered: &mut Altered, name: &Ident, if_exists: bool, cascade: bool) -> Result<()> {
    let column = match altered.find(name) {
        Err(_) if if_exists => return Ok(()),
        found => found?,
    };
    if cascade {
        altered.drop_users(column);
    }
    if let Some(user) = altered.user(column) {
        let error = Error::input(format!("the column {} is used by {user}", name.value));
        let hint = match cascade {
            false => format!("DROP COLUMN {} CASCADE drops constraints and indexes with it", name.value),
            true => "ALTER TABLE … SET (layout_key = (…)) lays the table out by other columns".into(),
        };
        return Err(locate_ident(error.with_hint(hint), name));
    }
    if altered.declared.columns.len() == 1 {
        return Err(Error::input("a table needs at least one column"));
    }
    altered.drop_column(column);
    Ok(())
}
