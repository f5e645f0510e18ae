//! The rows of an altered table that violate its constraints: `NOT NULL`, checks, unique keys and foreign
//! keys that are new or concern new values. Each is a query over the new rows that finds one.

use super::altered::{Altered, Origin};
use super::binder::Binder;
use super::change::Target;
use crate::statements::rows;
use entasis_binder::environment::schema::unknown_table;
use entasis_engine::plan::{Limit, Node, Plan};
use entasis_syntax::build::{
    and, equal, exists, is_null, named, not, qualified, select_from, stored_expr, table_alias,
};
use entasis_syntax::parse::parse_query;
use entasis_syntax::stored::read_columns;
use entasis_vector::{Field, Result};
use sqlparser::ast::{Expr, GroupByExpr, Ident, Select, SetExpr};

/// The queries for rows that violate constraints, as far as they are made.
struct Violations<'a> {
    binder: &'a Binder<'a>,
    before: &'a Target,
    altered: &'a Altered,
    /// The rows of the new table, and the name by which the queries know them.
    rows: &'a Plan,
    alias: Ident,
    /// Messages and plans.
    found: Vec<(String, Plan)>,
}

impl Binder<'_> {
    /// The queries for rows that violate new constraints: messages and plans.
    pub(super) fn violations(
        &self,
        before: &Target,
        altered: &Altered,
        rows: &Plan,
    ) -> Result<Vec<(String, Plan)>> {
        let alias = Ident::with_quote('"', altered.declared.table.as_str());
        let mut violations = Violations { binder: self, before, altered, rows, alias, found: Vec::new() };
        violations.not_null()?;
        violations.checks()?;
        violations.unique_keys()?;
        violations.foreign_keys()?;
        Ok(violations.found)
    }
}

impl<'a> Violations<'a> {
    /// Adds a query for one row, of which it shows these columns.
    fn ask(&mut self, message: String, shown: &[usize], edit: impl FnOnce(&mut Select)) -> Result<()> {
        let items = shown.iter().map(|&i| named(self.column(i), &self.columns()[i].name)).collect();
        let alias = table_alias(self.alias.clone());
        let mut plan = self.binder.over_rows(self.rows.clone(), alias, None, |select| {
            select.projection = items;
            edit(select);
        })?;
        let input = Box::new(std::mem::replace(&mut plan.root, rows::empty_rows(0).root));
        plan.root = Node::Limit(Limit { input, offset: 0, count: Some(1) });
        self.found.push((message, plan));
        Ok(())
    }

    fn columns(&self) -> &'a [Field] {
        &self.altered.declared.columns
    }

    fn column(&self, i: usize) -> Expr {
        qualified(&self.alias, &self.columns()[i].name)
    }

    /// True if a constraint of these columns is new, or concerns new values.
    fn is_new(&self, is_old: bool, parts: &[usize]) -> bool {
        !is_old || parts.iter().any(|&i| self.altered.is_new(i))
    }

    /// `NOT NULL`
    fn not_null(&mut self) -> Result<()> {
        let table = &self.altered.declared.table;
        for (i, field) in self.columns().iter().enumerate() {
            let was_nullable = match self.altered.origins[i] {
                Origin::Column(j) => self.before.columns()[j].nullable,
                Origin::Expr(_) => true,
            };
            if was_nullable && !field.nullable {
                let message = format!("NULL in column {table}.{}, which is declared NOT NULL", field.name);
                let violation = is_null(self.column(i));
                self.ask(message, &[i], |select| select.selection = Some(violation))?;
            }
        }
        Ok(())
    }

    /// `CHECK`
    fn checks(&mut self) -> Result<()> {
        let (altered, columns) = (self.altered, self.columns());
        for check in &altered.declared.definition.checks {
            let expr = stored_expr(&check.sql)?;
            let read = read_columns(&expr, "a CHECK constraint")?;
            let parts: Vec<usize> = (0..columns.len())
                .filter(|&i| read.contains(&columns[i].name.to_ascii_lowercase()))
                .collect();
            let mut old = self.before.definition.checks.iter();
            let is_old = old.any(|other| altered.is_kept(&other.name, &check.name) || other.sql == check.sql);
            if self.is_new(is_old, &parts) {
                let table = &altered.declared.table;
                let message =
                    format!("CHECK constraint {} of table {table} is violated by a row", check.name);
                let shown = if parts.is_empty() { vec![0] } else { parts };
                self.ask(message, &shown, |select| select.selection = Some(not(expr)))?;
            }
        }
        Ok(())
    }

    /// `UNIQUE` and `PRIMARY KEY`
    fn unique_keys(&mut self) -> Result<()> {
        let altered = self.altered;
        for key in altered.declared.definition.unique_keys() {
            let is_old = self.before.definition.unique_keys().any(|other| {
                altered.is_kept(&other.name, &key.name) || altered.are_columns(&other.columns, &key.columns)
            });
            if !self.is_new(is_old, &key.columns) {
                continue;
            }
            let names: Vec<&str> = key.columns.iter().map(|&i| &*self.columns()[i].name).collect();
            let message = format!(
                "duplicate key: rows of table {} have the same ({}) (constraint {})",
                altered.declared.table,
                names.join(", "),
                key.name
            );
            let columns: Vec<Expr> = key.columns.iter().map(|&i| self.column(i)).collect();
            self.ask(message, &key.columns, |select| {
                select.selection = and(columns.iter().map(|column| not(is_null(column.clone()))));
                select.group_by = GroupByExpr::Expressions(columns, Vec::new());
                select.having = several();
            })?;
        }
        Ok(())
    }

    /// `REFERENCES`
    fn foreign_keys(&mut self) -> Result<()> {
        let altered = self.altered;
        let table = &altered.declared.table;
        for key in &altered.declared.definition.foreign_keys {
            let is_old = self.before.definition.foreign_keys.iter().any(|other| {
                let are_same_keys = || match key.table == *table {
                    true => altered.are_columns(&other.references, &key.references),
                    false => other.references == key.references,
                };
                altered.is_kept(&other.name, &key.name)
                    || other.table == key.table
                        && altered.are_columns(&other.columns, &key.columns)
                        && are_same_keys()
            });
            if !self.is_new(is_old, &key.columns) {
                continue;
            }
            let catalog = self.binder.catalog;
            let parent = catalog.table(&key.table).ok_or_else(|| unknown_table(&key.table, catalog))?;
            let other = Ident::with_quote('"', "entasis:other");
            let pairs = key.columns.iter().zip(&key.references);
            let matches =
                and(pairs
                    .map(|(&own, &i)| equal(qualified(&other, &parent.schema()[i].name), self.column(own))));
            let found =
                select_from(&key.table, table_alias(other.clone()), |select| select.selection = matches)?;
            let message = format!(
                "foreign key {}: no row of table {} has the values of a row of {table}",
                key.name, key.table
            );
            let given: Vec<Expr> = key.columns.iter().map(|&i| not(is_null(self.column(i)))).collect();
            self.ask(message, &key.columns, |select| {
                select.selection = and(given.into_iter().chain([not(exists(found))]));
            })?;
        }
        Ok(())
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
