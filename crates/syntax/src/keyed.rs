//! Statements that only name rows by values of their columns: the most frequent statements of applications,
//! which are worth running without binding, plan and pipelines.
//!
//! ```text
//! SELECT columns | * FROM t WHERE a = x [AND b = y …]
//! SELECT columns | * FROM t [WHERE several] [ORDER BY a [DESC]] [LIMIT x]
//! INSERT INTO t [(columns)] VALUES (x | DEFAULT, …), … [conflict] [returning]
//! UPDATE t SET a = z [, …] WHERE b = y [AND …] [returning]
//! DELETE FROM t WHERE a = x [AND …] [returning]
//! several: a = x | a IN (x, …) | a > x [AND a <= y] | a BETWEEN x AND y
//! conflict: ON CONFLICT (a, …) DO NOTHING | DO UPDATE SET b = z, …
//! returning: RETURNING columns | *
//! ```
//! where x and y are parameters or constants, and z may also be `column + x` or `column - x`. In a `DO
//! UPDATE`, such a column is written as `t.column`, and z may be `excluded.column`. Only the text is
//! considered here. Whether the columns are a key, and whether the table needs more than that (checks,
//! defaults), is decided where the table is known. All other statements are `None` and run with a plan, and
//! so do erroneous ones, which get better messages there.

use super::insert_words::overriding;
use super::object_name::WrittenName;
use super::parse::parse;
use super::parsed::{Ast, Parsed};
use assigned::{assigned, assignments_of};
pub use parts::{Assigned, Insertable, Keyed, KeyedAction, Keys, OnConflict, Scalar, Several};
pub use scalar::constant;
use scalar::{insertable, scalar};
use sqlparser::ast::{
    self, BinaryOperator, ConflictTarget, DoUpdate, Expr, FromTable, Ident, ObjectName, OnConflictAction,
    OnInsert, Query, Select, SelectItem, SetExpr, TableFactor, TableObject, TableWithJoins,
};
use std::sync::LazyLock;

mod assigned;
mod parts;
mod scalar;
mod several;
#[cfg(test)]
mod tests;

/// The greatest number of rows of an insert; more are added in bulk.
const MOST_ROWS: usize = 256;

/// The plainest statement of each kind, for comparison.
static PLAIN: LazyLock<[ast::Statement; 4]> = LazyLock::new(|| {
    ["SELECT 1 FROM t", "INSERT INTO t VALUES (1)", "UPDATE t SET a = 1", "DELETE FROM t"].map(|sql| {
        match parse(sql).expect("a constant").pop().expect("one").ast {
            Ast::Sql(statement) => *statement,
            _ => unreachable!("a constant"),
        }
    })
});

impl Parsed {
    /// The statement in keyed form, if it only names rows by values of their columns.
    pub fn keyed(&self) -> Option<Keyed> {
        let Ast::Sql(statement) = &self.ast else { return None };
        match &**statement {
            ast::Statement::Query(query) => read(query),
            ast::Statement::Insert(insert) => self::insert(insert),
            ast::Statement::Update(update) => self::update(update),
            ast::Statement::Delete(delete) => self::delete(delete),
            _ => None,
        }
    }
}

// What is cheap to see comes first: statements with thousands of values are copied only if nothing else keeps
// them from being keyed.
fn read(query: &Query) -> Option<Keyed> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let [from] = &select.from[..] else { return None };
    let (table, columns) = (table(from)?, columns(&select.projection)?);
    let is_bare = query.order_by.is_none() && query.limit_clause.is_none();
    let (key, action) = match select.selection.as_ref().and_then(conditions) {
        Some(key) if is_bare => (key, KeyedAction::Read(columns)),
        _ => (Vec::new(), KeyedAction::ReadSeveral(columns, several::several(query, select)?)),
    };
    is_plain_read(query, select).then_some(Keyed { table, key, action, returning: None })
}

/// True if a query has no other parts than a plain one.
fn is_plain_read(query: &Query, select: &Select) -> bool {
    let ast::Statement::Query(plain) = &PLAIN[0] else { unreachable!("as written") };
    let SetExpr::Select(plain_select) = &*plain.body else { unreachable!("as written") };
    let same = Query {
        body: query.body.clone(),
        order_by: query.order_by.clone(),
        limit_clause: query.limit_clause.clone(),
        ..(**plain).clone()
    };
    let same_select = Select {
        projection: select.projection.clone(),
        from: select.from.clone(),
        selection: select.selection.clone(),
        ..(**plain_select).clone()
    };
    same == *query && same_select == *select
}

fn insert(insert: &ast::Insert) -> Option<Keyed> {
    let ast::Statement::Insert(plain) = &PLAIN[1] else { unreachable!("as written") };
    let source = insert.source.as_ref()?;
    let SetExpr::Values(values) = &*source.body else { return None };
    if values.rows.len() > MOST_ROWS {
        return None;
    }
    let same = ast::Insert {
        table: insert.table.clone(),
        columns: insert.columns.clone(),
        source: insert.source.clone(),
        on: insert.on.clone(),
        returning: insert.returning.clone(),
        ..plain.clone()
    };
    let TableObject::TableName(name) = &insert.table else { return None };
    if same != *insert || overriding(&insert.columns).1.is_some() {
        return None;
    }
    let mut plain_source = plain.source.as_ref().expect("as written").clone();
    plain_source.body = source.body.clone();
    if plain_source != *source {
        return None;
    }
    let columns = insert.columns.iter().map(|column| match &column.0[..] {
        [part] => part.as_ident().map(|name| name.value.clone()),
        _ => None,
    });
    let on_conflict = match &insert.on {
        None => None,
        Some(OnInsert::OnConflict(on)) => Some(on_conflict(on, name)?),
        Some(_) => return None,
    };
    let rows = values.rows.iter().map(|row| row.iter().map(insertable).collect::<Option<Vec<_>>>());
    let rows = rows.collect::<Option<Vec<_>>>()?;
    let action = KeyedAction::Insert(columns.collect::<Option<_>>()?, rows, on_conflict);
    let returning = returning(&insert.returning)?;
    Some(Keyed { table: WrittenName::of(name)?, key: Vec::new(), action, returning })
}

fn on_conflict(on: &ast::OnConflict, table: &ObjectName) -> Option<OnConflict> {
    let Some(ConflictTarget::Columns(key)) = &on.conflict_target else { return None };
    let key = key.iter().map(|name| name.value.clone()).collect();
    let set = match &on.action {
        OnConflictAction::DoNothing => Vec::new(),
        OnConflictAction::DoUpdate(DoUpdate { assignments, selection: None }) => {
            let table = table.0.last()?.as_ident()?;
            let value = |expr: &Expr| match qualified(expr) {
                Some((table, column)) if table.value.eq_ignore_ascii_case("excluded") => {
                    Some(Assigned::Excluded(column.value.clone()))
                }
                _ => assigned(expr, &|expr| {
                    let (qualifier, column) = qualified(expr)?;
                    let is_own = qualifier.value.eq_ignore_ascii_case(&table.value)
                        && !table.value.eq_ignore_ascii_case("excluded");
                    is_own.then(|| column.value.clone())
                }),
            };
            assignments_of(assignments, value)?
        }
        OnConflictAction::DoUpdate(_) => return None,
    };
    Some(OnConflict { key, set })
}

/// `table.column`
fn qualified(expr: &Expr) -> Option<(&Ident, &Ident)> {
    match expr {
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [table, column] => Some((table, column)),
            _ => None,
        },
        _ => None,
    }
}

/// The columns of `RETURNING`, `Some(None)` without one; `None` if it contains anything else.
fn returning(items: &Option<Vec<SelectItem>>) -> Option<Option<Vec<String>>> {
    match items {
        None => Some(None),
        Some(items) => columns(items).map(Some),
    }
}

/// Columns by name; none for `*`.
fn columns(items: &[SelectItem]) -> Option<Vec<String>> {
    match items {
        [SelectItem::Wildcard(options)] if *options == Default::default() => Some(Vec::new()),
        items => items
            .iter()
            .map(|item| match item {
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
                _ => None,
            })
            .collect(),
    }
}

fn update(update: &ast::Update) -> Option<Keyed> {
    let ast::Statement::Update(plain) = &PLAIN[2] else { unreachable!("as written") };
    let same = ast::Update {
        table: update.table.clone(),
        assignments: update.assignments.clone(),
        selection: update.selection.clone(),
        returning: update.returning.clone(),
        ..plain.clone()
    };
    if same != *update {
        return None;
    }
    let column = |expr: &Expr| match expr {
        Expr::Identifier(name) => Some(name.value.clone()),
        _ => None,
    };
    let set = assignments_of(&update.assignments, |expr| assigned(expr, &column))?;
    Some(Keyed {
        table: table(&update.table)?,
        key: conditions(update.selection.as_ref()?)?,
        action: KeyedAction::Update(set),
        returning: returning(&update.returning)?,
    })
}

fn delete(delete: &ast::Delete) -> Option<Keyed> {
    let ast::Statement::Delete(plain) = &PLAIN[3] else { unreachable!("as written") };
    let same = ast::Delete {
        from: delete.from.clone(),
        selection: delete.selection.clone(),
        returning: delete.returning.clone(),
        ..plain.clone()
    };
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [from] = &from[..] else { return None };
    if same != *delete {
        return None;
    }
    Some(Keyed {
        table: table(from)?,
        key: conditions(delete.selection.as_ref()?)?,
        action: KeyedAction::Delete,
        returning: returning(&delete.returning)?,
    })
}

/// A table without alias, joins and options.
fn table(table: &TableWithJoins) -> Option<WrittenName> {
    let TableFactor::Table { name, .. } = &table.relation else { return None };
    let ast::Statement::Update(plain) = &PLAIN[2] else { unreachable!("as written") };
    let mut same = plain.table.clone();
    if let TableFactor::Table { name: own, .. } = &mut same.relation {
        *own = name.clone();
    }
    (same == *table).then(|| WrittenName::of(name))?
}

/// `a = x AND b = y …`
fn conditions(expr: &Expr) -> Option<Vec<(String, Scalar)>> {
    let mut found = Vec::new();
    collect(expr, &mut found)?;
    let differ = (1..found.len())
        .all(|i| found[..i].iter().all(|(name, _): &(String, _)| !name.eq_ignore_ascii_case(&found[i].0)));
    differ.then_some(found)
}

fn collect(expr: &Expr, found: &mut Vec<(String, Scalar)>) -> Option<()> {
    match expr {
        Expr::Nested(inner) => collect(inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            collect(left, found)?;
            collect(right, found)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let ((Expr::Identifier(Ident { value, .. }), other)
            | (other, Expr::Identifier(Ident { value, .. }))) = (&**left, &**right)
            else {
                return None;
            };
            found.push((value.clone(), scalar(other)?));
            Some(())
        }
        _ => None,
    }
}
