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

use super::binder::Binder;
use super::bound::{Alteration, Columns, Statement};
use super::change::{TableView, Target};
use super::columns::find_column;
use super::definition::Declared;
use super::layout;
use crate::statements::rows;
use entasis_binder::environment::schema::{renamed, unknown_table};
use entasis_engine::plan::{Limit, Node, Plan};
use entasis_engine::relation::{ColumnDefault, Definition, ForeignKey, KeyKind};
use entasis_syntax::build::{
    and, cast_to, equal, exists, is_null, named, not, null, qualified, select_from, stored_expr, table_alias,
};
use entasis_syntax::clauses::refuse;
use entasis_syntax::object_name::table_name;
use entasis_syntax::parse::parse_query;
use entasis_syntax::place::locate_ident;
use entasis_syntax::stored::read_columns;
use entasis_syntax::types::sql_type;
use entasis_syntax::walk::WalkMut;
use entasis_vector::{DataType, Error, Field, Result, name};
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, DropBehavior, Expr, GroupByExpr, Ident,
    ObjectName, RenameTableNameKind, Select, SetExpr, VisitorMut,
};
use std::ops::ControlFlow;

/// The new table.
struct Altered {
    declared: Declared,
    /// The source of each column's values, over the old table.
    origins: Vec<Origin>,
    /// The old number of each column; `None` for a new one.
    places: Vec<Option<usize>>,
    changed: bool,
    /// Names of dropped constraints: another constraint of such a name is new.
    dropped: Vec<String>,
    /// Whether everything dropped is dropped with `CASCADE`; `None` if nothing is dropped.
    cascade: Option<bool>,
}

#[expect(clippy::large_enum_variant, reason = "there are few of them, for a moment")]
enum Origin {
    /// A column of the old table.
    Column(usize),
    /// Another expression.
    Expr(Expr),
}

impl Altered {
    fn find(&self, name: &Ident) -> Result<usize> {
        find_column(&self.declared.columns, name)
            .map_err(|error| error.with_context(format!("table {}", self.declared.table)))
    }

    /// True if the column is new or its values change.
    fn is_new(&self, column: usize) -> bool {
        matches!(self.origins[column], Origin::Expr(_))
    }

    /// A constraint, an index or the layout that uses a column, if there is one.
    fn user(&self, column: usize) -> Option<String> {
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
    fn drops(&mut self, behavior: Option<&DropBehavior>) -> bool {
        let cascade = matches!(behavior, Some(DropBehavior::Cascade));
        self.cascade = Some(self.cascade.unwrap_or(true) && cascade);
        cascade
    }

    /// True if a foreign key of the table includes a column of it, or refers to it.
    fn has_column(&self, key: &ForeignKey, column: usize) -> bool {
        key.columns.contains(&column) || key.table == self.declared.table && key.references.contains(&column)
    }

    /// Drops the constraints and indexes that include a column.
    fn drop_users(&mut self, column: usize) {
        let foreign_keys = std::mem::take(&mut self.declared.definition.foreign_keys);
        let kept = foreign_keys.into_iter().filter(|key| !self.has_column(key, column)).collect();
        let definition = &mut self.declared.definition;
        definition.foreign_keys = kept;
        let name = self.declared.columns[column].name.to_ascii_lowercase();
        definition.keys.retain(|key| !key.columns.contains(&column));
        let reads = |sql: &str| stored_expr(sql).and_then(|expr| read_columns(&expr, "a check"));
        definition.checks.retain(|check| !reads(&check.sql).is_ok_and(|read| read.contains(&name)));
    }

    fn drop_column(&mut self, column: usize) {
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

    fn rename_column(&mut self, column: usize, to: &Ident) -> Result<()> {
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
    fn free(&self, name: &Ident) -> Result<()> {
        if self.declared.columns.iter().any(|column| column.name.eq_ignore_ascii_case(&name.value)) {
            let error =
                Error::input(format!("table {} has a column {} already", self.declared.table, name.value));
            return Err(locate_ident(error, name));
        }
        Ok(())
    }

    /// Removes a constraint; false if there is none of that name.
    fn drop_constraint(&mut self, name: &str) -> Result<bool> {
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
    fn is_kept(&self, old: &str, new: &str) -> bool {
        old == new && !self.dropped.iter().any(|dropped| dropped == new)
    }

    /// True if columns are those that had the numbers `old`.
    fn are_columns(&self, old: &[usize], new: &[usize]) -> bool {
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

    fn no_constraint(&self, name: &Ident) -> Error {
        let text = format!("table {} has no constraint {}", self.declared.table, name.value);
        let error = locate_ident(Error::input(text), name);
        match entasis_vector::suggest::nearest(&name.value, self.constraint_names()) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error,
        }
    }
}

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
                    let column = match altered.find(name) {
                        Err(_) if *if_exists => continue,
                        found => found?,
                    };
                    if cascade {
                        altered.drop_users(column);
                    }
                    if let Some(user) = altered.user(column) {
                        let error = Error::input(format!("the column {} is used by {user}", name.value));
                        let hint = match cascade {
                            false => {
                                format!(
                                    "DROP COLUMN {} CASCADE drops constraints and indexes with it",
                                    name.value
                                )
                            }
                            true => {
                                "ALTER TABLE … SET (layout_key = (…)) lays the table out by other columns"
                                    .into()
                            }
                        };
                        return Err(locate_ident(error.with_hint(hint), name));
                    }
                    if altered.declared.columns.len() == 1 {
                        return Err(Error::input("a table needs at least one column"));
                    }
                    altered.drop_column(column);
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
                let ty = sql_type(data_type)?;
                if ty == field.ty && using.is_none() {
                    return Ok(());
                }
                if altered.is_new(column) {
                    return Err(Error::not_supported("two new values for a column in one ALTER TABLE"));
                }
                let foreign = &altered.declared.definition.foreign_keys;
                if let Some(key) = foreign.iter().find(|key| altered.has_column(key, column)) {
                    let error = Error::input(format!(
                        "the column {} is used by the constraint {}",
                        field.name, key.name
                    ));
                    return Err(error.with_hint("drop it first, and add it again"));
                }
                if identity {
                    return Err(Error::not_supported("another type for an identity column"));
                }
                let value =
                    using.clone().unwrap_or_else(|| Expr::Identifier(Ident::with_quote('"', &*field.name)));
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
            }
            AlterColumnOperation::AddGenerated { .. } => {
                return Err(Error::not_supported("ALTER COLUMN … ADD GENERATED"));
            }
        }
        altered.changed = true;
        Ok(())
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
        rows::cast_outputs(&mut rows, &types);
        Ok(rows)
    }

    /// The queries for rows that violate new constraints: messages and plans.
    fn violations(&self, before: &Target, altered: &Altered, rows: &Plan) -> Result<Vec<(String, Plan)>> {
        let Declared { table, columns, definition, .. } = &altered.declared;
        let alias = Ident::with_quote('"', table.as_str());
        let mut violations = Vec::new();
        let mut ask = |message: String, shown: &[usize], edit: &mut dyn FnMut(&mut Select)| -> Result<()> {
            let items =
                shown.iter().map(|&i| named(qualified(&alias, &columns[i].name), &columns[i].name)).collect();
            let mut plan = self.over_rows(rows.clone(), table_alias(alias.clone()), None, |select| {
                select.projection = items;
                edit(select);
            })?;
            let input = Box::new(std::mem::replace(&mut plan.root, rows::empty_rows(0).root));
            plan.root = Node::Limit(Limit { input, offset: 0, count: Some(1) });
            violations.push((message, plan));
            Ok(())
        };
        let column = |i: usize| qualified(&alias, &columns[i].name);
        for (i, field) in columns.iter().enumerate() {
            let was_nullable = match altered.origins[i] {
                Origin::Column(j) => before.columns()[j].nullable,
                Origin::Expr(_) => true,
            };
            if was_nullable && !field.nullable {
                let message = format!("NULL in column {table}.{}, which is declared NOT NULL", field.name);
                ask(message, &[i], &mut |select| {
                    select.selection = Some(is_null(column(i)));
                })?;
            }
        }
        let is_new = |is_old: bool, parts: &[usize]| !is_old || parts.iter().any(|&i| altered.is_new(i));
        let old: &Definition = &before.definition;
        for check in &definition.checks {
            let expr = stored_expr(&check.sql)?;
            let read = read_columns(&expr, "a CHECK constraint")?;
            let parts: Vec<usize> = (0..columns.len())
                .filter(|&i| read.contains(&columns[i].name.to_ascii_lowercase()))
                .collect();
            if is_new(
                old.checks
                    .iter()
                    .any(|other| altered.is_kept(&other.name, &check.name) || other.sql == check.sql),
                &parts,
            ) {
                let message =
                    format!("CHECK constraint {} of table {table} is violated by a row", check.name);
                let shown = if parts.is_empty() { vec![0] } else { parts };
                ask(message, &shown, &mut |select| select.selection = Some(not(expr.clone())))?;
            }
        }
        for key in definition.unique_keys() {
            let is_old = old.unique_keys().any(|other| {
                altered.is_kept(&other.name, &key.name) || altered.are_columns(&other.columns, &key.columns)
            });
            if is_new(is_old, &key.columns) {
                let names: Vec<&str> = key.columns.iter().map(|&i| &*columns[i].name).collect();
                let message = format!(
                    "duplicate key: rows of table {table} have the same ({}) (constraint {})",
                    names.join(", "),
                    key.name
                );
                ask(message, &key.columns, &mut |select| {
                    select.selection = and(key.columns.iter().map(|&i| not(is_null(column(i)))));
                    select.group_by = GroupByExpr::Expressions(
                        key.columns.iter().map(|&i| column(i)).collect(),
                        Vec::new(),
                    );
                    select.having = several();
                })?;
            }
        }
        for key in &definition.foreign_keys {
            let is_old = old.foreign_keys.iter().any(|other| {
                let are_same_keys = || match key.table == *table {
                    true => altered.are_columns(&other.references, &key.references),
                    false => other.references == key.references,
                };
                altered.is_kept(&other.name, &key.name)
                    || other.table == key.table
                        && altered.are_columns(&other.columns, &key.columns)
                        && are_same_keys()
            });
            if !is_new(is_old, &key.columns) {
                continue;
            }
            let parent =
                self.catalog.table(&key.table).ok_or_else(|| unknown_table(&key.table, self.catalog))?;
            let other = Ident::with_quote('"', "entasis:other");
            let pairs = key.columns.iter().zip(&key.references);
            let matches =
                and(pairs.map(|(&own, &i)| equal(qualified(&other, &parent.schema()[i].name), column(own))));
            let found =
                select_from(&key.table, table_alias(other.clone()), |select| select.selection = matches)?;
            let message = format!(
                "foreign key {}: no row of table {} has the values of a row of {table}",
                key.name, key.table
            );
            ask(message, &key.columns, &mut |select| {
                let given = key.columns.iter().map(|&i| not(is_null(column(i))));
                select.selection = and(given.chain([not(exists(found.clone()))]));
            })?;
        }
        Ok(violations)
    }
}

/// `count(*) > 1`
fn several() -> Option<Expr> {
    let query = parse_query("SELECT 1 FROM t HAVING count(*) > 1").ok()?;
    match *query.body {
        SetExpr::Select(select) => select.having,
        _ => None,
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
