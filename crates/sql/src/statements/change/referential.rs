//! The actions of foreign keys, `ON DELETE` and `ON UPDATE`, on rows that refer to removed or changed keys.
//!
//! An action is an ordinary statement, over all of these rows at once:
//!
//! | action | statement |
//! |---|---|
//! | `CASCADE` on delete | `DELETE FROM child USING keys WHERE child.a = keys.went0` |
//! | `CASCADE` on update | `UPDATE child SET a = keys.came0 FROM keys WHERE child.a = keys.went0` |
//! | `SET NULL`, `SET DEFAULT` | `UPDATE child SET a = NULL FROM keys WHERE child.a = keys.went0` |
//!
//! So CHECKs are evaluated and defaults computed as usual. The keys are rows in the plan. A row refers to at
//! most one key, because keys are unique.
//!
//! Keys and foreign keys are not handled here: the caller checks them, and also runs the actions of foreign
//! keys that refer to the rows changed by this one.

use super::finish::Returning;
use super::{ROW_ID, ROW_ID_TYPE, Target};
use crate::statements::binder::Binder;
use crate::statements::bound::{Action, Change, Repeated};
use crate::statements::rows;
use entasis_binder::environment::{Catalog, Parameters};
use entasis_binder::zone::apply_to_plan;
use entasis_binder::{Given, ROWS, TARGET};
use entasis_engine::plan::{Columns, Node, Output, Plan, Values};
use entasis_engine::relation::Relation;
use entasis_syntax::build::{and, equal, named, null, qualified, select_from, table_alias, table_factor};
use entasis_vector::{DataType, Error, Result, Value};
use sqlparser::ast::{Expr, Ident, ObjectName, TableWithJoins};
use std::sync::Arc;

/// Rows of a table that refer to removed keys.
#[derive(Debug)]
pub struct Referring<'a> {
    /// The name of their table.
    pub table: &'a str,
    /// The table with row ids ([`crate::ROW_ID`]), or some of its rows, including all that refer to the keys.
    pub rows: Arc<dyn Relation>,
    /// The referring columns.
    pub columns: &'a [usize],
    /// The types of the referenced columns.
    pub types: &'a [DataType],
    /// The removed keys, none of which has a NULL.
    pub went: &'a [Vec<Value>],
}

/// The effect of an action on the rows.
#[derive(Debug, Clone, Copy)]
pub enum Consequence<'a> {
    /// They are deleted.
    Deleted,
    /// Their columns become NULL.
    Null,
    /// Their columns get their defaults.
    Default,
    /// Each gets the new key at the index of its old one.
    Key(&'a [Vec<Value>]),
}

/// The statement that performs the action.
///
/// # Errors
/// Those of binding defaults and CHECKs.
pub fn follow(
    catalog: &dyn Catalog,
    referring: &Referring<'_>,
    consequence: Consequence<'_>,
) -> Result<Change> {
    let binder = Binder { catalog, params: Parameters::Values(&[]), given: Given::default(), with: None };
    let mut change = binder.follow(referring, consequence)?;
    apply_to_plan(&mut change.plan, catalog.session().zone);
    Ok(change)
}

impl Binder<'_> {
    fn follow(&self, referring: &Referring<'_>, consequence: Consequence<'_>) -> Result<Change> {
        let name = ObjectName::from(vec![Ident::with_quote('"', referring.table)]);
        let width = referring.rows.schema().len() - 1;
        let target =
            self.target_of(&name, referring.table.to_ascii_lowercase(), None, referring.rows.clone(), width)?;
        let value = |at: usize, column: usize| match consequence {
            Consequence::Deleted => Err(Error::internal("rows that are deleted get no values")),
            Consequence::Null => Ok(null()),
            Consequence::Default => self.default_expr(&target, column),
            Consequence::Key(_) => Ok(qualified(&keys_alias(), &came(at))),
        };
        let (action, columns) = match consequence {
            Consequence::Deleted => (Action::Delete, Vec::new()),
            _ => (Action::Update, referring.columns.to_vec()),
        };
        let name_of = |column: usize| target.columns()[column].name.to_string();
        let mut values: Vec<(String, Expr)> = Vec::new();
        for (at, &column) in columns.iter().enumerate() {
            values.push((name_of(column), value(at, column)?));
        }
        let checks = match action {
            Action::Update => self.checks(&target, Some(&columns))?,
            _ => Vec::new(),
        };
        if !checks.is_empty() {
            let rest = (0..width).filter(|column| !columns.contains(column));
            values.extend(rest.map(|column| (name_of(column), target.column(&name_of(column)))));
        }
        let mut rows = self.beside_keys(&target, referring, keys_of(referring, consequence), values)?;
        let types = columns.iter().map(|&column| target.columns()[column].ty);
        rows::cast_outputs(&mut rows, &std::iter::once(ROW_ID_TYPE).chain(types).collect::<Vec<DataType>>())?;
        let finished = self.finish(rows, 1 + columns.len(), &target, checks, Returning::default())?;
        Ok(Change {
            table: target.name,
            columns,
            action,
            plan: finished.plan,
            checks: finished.checks,
            returning: None,
            repeated: Repeated::First,
            conflicts: Vec::new(),
            proposed: Vec::new(),
        })
    }

    /// The ids of the rows that refer to the keys, then `values` under their names.
    fn beside_keys(
        &self,
        target: &Target,
        referring: &Referring<'_>,
        keys: Plan,
        values: Vec<(String, Expr)>,
    ) -> Result<Plan> {
        let other = table_factor(ROWS, table_alias(keys_alias()))?;
        let pair = |(at, &column): (usize, &usize)| {
            equal(target.column(&target.columns()[column].name), qualified(&keys_alias(), &went(at)))
        };
        let query = select_from(TARGET, target.alias.clone(), |select| {
            let id = (ROW_ID.to_string(), target.column(ROW_ID));
            select.projection =
                std::iter::once(id).chain(values).map(|(name, expr)| named(expr, &name)).collect();
            select.from.push(TableWithJoins { relation: other, joins: Vec::new() });
            select.selection = and(referring.columns.iter().enumerate().map(pair));
        })?;
        let rows = Some(Arc::new(keys));
        let given = Given { target: Some(target.relation.clone()), rows, ..Given::default() };
        Binder { catalog: self.catalog, params: self.params, given, with: None }.query(&query)
    }
}

/// The name of the table of keys in the statement.
fn keys_alias() -> Ident {
    Ident::with_quote('"', ROWS)
}

/// The name of a column of a removed key.
fn went(at: usize) -> String {
    format!("went{at}")
}

/// The name of a column of a new key.
fn came(at: usize) -> String {
    format!("came{at}")
}

/// The removed keys, with the new ones that replace them.
fn keys_of(referring: &Referring<'_>, consequence: Consequence<'_>) -> Plan {
    let mut rows = referring.went.to_vec();
    let mut names: Vec<(String, DataType)> =
        referring.types.iter().copied().enumerate().map(|(at, ty)| (went(at), ty)).collect();
    if let Consequence::Key(new) = consequence {
        names.extend(referring.types.iter().copied().enumerate().map(|(at, ty)| (came(at), ty)));
        rows.iter_mut().zip(new).for_each(|(row, new)| row.extend(new.iter().cloned()));
    }
    let mut columns = Columns::default();
    let column =
        |(name, ty): (String, DataType)| Output { column: columns.add(name.clone(), ty, true), name };
    let output: Vec<Output> = names.into_iter().map(column).collect();
    let root = Node::Values(Values { columns: output.iter().map(|output| output.column).collect(), rows });
    Plan { root, columns, output }
}
