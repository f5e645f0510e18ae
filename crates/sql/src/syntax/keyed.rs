//! Statements that only name rows by values of their columns: the most frequent statements of applications,
//! which are worth running without binding, plan and pipelines.
//!
//! ```text
//! SELECT columns | * FROM t WHERE a = x [AND b = y …]
//! INSERT INTO t [(columns)] VALUES (x, …) [conflict] [returning]
//! UPDATE t SET a = z [, …] WHERE b = y [AND …] [returning]
//! DELETE FROM t WHERE a = x [AND …] [returning]
//! conflict: ON CONFLICT (a, …) DO NOTHING | DO UPDATE SET b = z, …
//! returning: RETURNING columns | *
//! ```
//! where x and y are parameters or constants, and z may also be `column + x` or `column - x`. In a `DO
//! UPDATE`, such a column is written as `t.column`, and z may be `excluded.column`. Only the text is
//! considered here. Whether the columns are a key, and whether the table needs more than that (checks,
//! defaults), is decided where the table is known. All other statements are `None` and run with a plan, and
//! so do erroneous ones, which get better messages there.

use super::object_name::WrittenName;
use super::parse::parse;
use super::parsed::{Ast, Parsed};
use datafusion_sql::sqlparser::ast::{
    self, AssignmentTarget, BinaryOperator, ConflictTarget, DoUpdate, Expr, FromTable, Ident, ObjectName,
    OnConflictAction, OnInsert, Query, Select, SelectItem, SetExpr, TableFactor, TableObject, TableWithJoins,
    UnaryOperator,
};
use entasis_vector::Value;
use std::sync::LazyLock;

/// A statement that names rows by values.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyed {
    /// The table.
    pub table: WrittenName,
    /// Columns, all different, and the values that the rows have in them. Empty for an insert.
    pub key: Vec<(String, Scalar)>,
    /// The action on the rows.
    pub action: KeyedAction,
    /// The columns that a change returns, all of them if there are no names; `None` without `RETURNING`.
    pub returning: Option<Vec<String>>,
}

/// The action of a [`Keyed`] on its rows. Names of columns are as written.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyedAction {
    /// Reads columns; all of them if there are no names.
    Read(Vec<String>),
    /// Adds a row: its columns, all of them if there are no names, and their values.
    Insert(Vec<String>, Vec<Scalar>, Option<OnConflict>),
    /// Sets columns.
    Update(Vec<(String, Assigned)>),
    /// Removes the rows.
    Delete,
}

/// What an insert does if a row has the same key.
#[derive(Debug, Clone, PartialEq)]
pub struct OnConflict {
    /// The columns of the key.
    pub key: Vec<String>,
    /// The columns that are set in that row; none for `DO NOTHING`.
    pub set: Vec<(String, Assigned)>,
}

/// The new value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Assigned {
    /// A parameter or a constant.
    Scalar(Scalar),
    /// The row's value of a column plus or minus a scalar.
    Sum {
        /// The column.
        column: String,
        /// The scalar.
        by: Scalar,
        /// True if it is subtracted.
        is_negative: bool,
    },
    /// The value of a column in the row that was to be inserted.
    Excluded(String),
}

/// A value in the statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// The parameter with this index, counted from 0.
    Parameter(usize),
    /// A constant: NULL, a boolean, an integer or a text.
    Constant(Value),
}

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

fn read(query: &Query) -> Option<Keyed> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let ast::Statement::Query(plain) = &PLAIN[0] else { unreachable!("as written") };
    let SetExpr::Select(plain_select) = &*plain.body else { unreachable!("as written") };
    if (Query { body: query.body.clone(), ..(**plain).clone() }) != *query {
        return None;
    }
    let same = Select {
        projection: select.projection.clone(),
        from: select.from.clone(),
        selection: select.selection.clone(),
        ..(**plain_select).clone()
    };
    let [from] = &select.from[..] else { return None };
    if same != **select {
        return None;
    }
    let columns = columns(&select.projection)?;
    let key = conditions(select.selection.as_ref()?)?;
    Some(Keyed { table: table(from)?, key, action: KeyedAction::Read(columns), returning: None })
}

fn insert(insert: &ast::Insert) -> Option<Keyed> {
    let ast::Statement::Insert(plain) = &PLAIN[1] else { unreachable!("as written") };
    let same = ast::Insert {
        table: insert.table.clone(),
        columns: insert.columns.clone(),
        source: insert.source.clone(),
        on: insert.on.clone(),
        returning: insert.returning.clone(),
        ..plain.clone()
    };
    let TableObject::TableName(name) = &insert.table else { return None };
    let source = insert.source.as_ref()?;
    if same != *insert {
        return None;
    }
    let mut plain_source = plain.source.as_ref().expect("as written").clone();
    plain_source.body = source.body.clone();
    let SetExpr::Values(values) = &*source.body else { return None };
    let [row] = &values.rows[..] else { return None };
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
    let action = KeyedAction::Insert(
        columns.collect::<Option<_>>()?,
        row.iter().map(scalar).collect::<Option<_>>()?,
        on_conflict,
    );
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

/// `a = …, b = …`
fn assignments_of(
    assignments: &[ast::Assignment],
    value: impl Fn(&Expr) -> Option<Assigned>,
) -> Option<Vec<(String, Assigned)>> {
    let of = |assignment: &ast::Assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => match &name.0[..] {
            [part] => Some((part.as_ident()?.value.clone(), value(&assignment.value)?)),
            _ => None,
        },
        AssignmentTarget::Tuple(_) => None,
    };
    assignments.iter().map(of).collect()
}

/// A scalar, or a column (as `column` recognizes it) plus or minus a scalar.
fn assigned(expr: &Expr, column: &dyn Fn(&Expr) -> Option<String>) -> Option<Assigned> {
    if let Some(scalar) = scalar(expr) {
        return Some(Assigned::Scalar(scalar));
    }
    match expr {
        Expr::Nested(inner) => assigned(inner, column),
        Expr::BinaryOp { left, op: BinaryOperator::Plus, right } => {
            let (column, by) = match column(left) {
                Some(column) => (column, scalar(right)?),
                None => (column(right)?, scalar(left)?),
            };
            Some(Assigned::Sum { column, by, is_negative: false })
        }
        Expr::BinaryOp { left, op: BinaryOperator::Minus, right } => {
            Some(Assigned::Sum { column: column(left)?, by: scalar(right)?, is_negative: true })
        }
        _ => None,
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

fn scalar(expr: &Expr) -> Option<Scalar> {
    let integer = |text: &str, sign: i128| {
        text.parse::<i128>().ok().map(|v| Scalar::Constant(Value::Integer(sign * v)))
    };
    match expr {
        Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(name) => {
                Some(Scalar::Parameter(name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?))
            }
            ast::Value::Number(text, _) => integer(text, 1),
            ast::Value::SingleQuotedString(text) => Some(Scalar::Constant(Value::Text(text.as_str().into()))),
            ast::Value::Boolean(value) => Some(Scalar::Constant(Value::Boolean(*value))),
            ast::Value::Null => Some(Scalar::Constant(Value::Null)),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => match &value.value {
                ast::Value::Number(text, _) => integer(text, -1),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Option<Keyed> {
        parse(sql).unwrap()[0].keyed()
    }

    #[test]
    fn plain_statements_are_recognized() {
        let parameter = |name: &str, index| (name.to_string(), Scalar::Parameter(index));
        let read = of("SELECT a, b FROM t WHERE k = ? AND (2 = j)").unwrap();
        let two = ("j".to_string(), Scalar::Constant(Value::Integer(2)));
        assert_eq!(read.key, [parameter("k", 0), two]);
        assert_eq!(read.action, KeyedAction::Read(vec!["a".into(), "b".into()]));
        assert_eq!(of("SELECT * FROM main.t WHERE k = $1").unwrap().action, KeyedAction::Read(vec![]));
        let insert = of("INSERT INTO t (k, a) VALUES (?, -1)").unwrap();
        let values = vec![Scalar::Parameter(0), Scalar::Constant(Value::Integer(-1))];
        assert_eq!(insert.action, KeyedAction::Insert(vec!["k".into(), "a".into()], values, None));
        let update = of("UPDATE t SET a = 'x', b = NULL WHERE k = 1").unwrap();
        let set = [("a", Value::Text("x".into())), ("b", Value::Null)];
        let constant = |value| Assigned::Scalar(Scalar::Constant(value));
        let set = set.map(|(name, value)| (name.to_string(), constant(value))).to_vec();
        assert_eq!(update.action, KeyedAction::Update(set));
        let sum = |column: &str, by, is_negative| Assigned::Sum { column: column.into(), by, is_negative };
        let one = || Scalar::Constant(Value::Integer(1));
        let update = of("UPDATE t SET a = a - 1, b = (? + b) WHERE k = 1 RETURNING *").unwrap();
        let set = vec![
            ("a".to_string(), sum("a", one(), true)),
            ("b".to_string(), sum("b", Scalar::Parameter(0), false)),
        ];
        assert_eq!((update.action, update.returning), (KeyedAction::Update(set), Some(vec![])));
        let upsert =
            "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = excluded.b, b = t.b + 1, c = 1";
        let KeyedAction::Insert(_, _, Some(on)) = of(upsert).unwrap().action else { panic!("it is") };
        let set = [
            ("a", Assigned::Excluded("b".into())),
            ("b", sum("b", one(), false)),
            ("c", constant(Value::Integer(1))),
        ];
        assert_eq!(on.set, set.map(|(name, value)| (name.to_string(), value)));
        let on = of("INSERT INTO t VALUES (1) ON CONFLICT (k) DO NOTHING RETURNING a").unwrap();
        assert_eq!(on.returning, Some(vec!["a".to_string()]));
        assert_eq!(of("DELETE FROM t WHERE k = ?").unwrap().key, [parameter("k", 0)]);
    }

    #[test]
    fn everything_else_goes_the_long_way() {
        for sql in [
            "SELECT a + 1 FROM t WHERE k = 1",
            "SELECT a FROM t WHERE k > 1",
            "SELECT a FROM t WHERE k = 1 OR k = 2",
            "SELECT a FROM t WHERE k = 1 AND k = 2",
            "SELECT a FROM t WHERE k = 1 LIMIT 1",
            "SELECT a FROM t WHERE k = 1 ORDER BY a",
            "SELECT DISTINCT a FROM t WHERE k = 1",
            "SELECT a AS b FROM t WHERE k = 1",
            "SELECT a FROM t AS u WHERE k = 1",
            "SELECT a FROM t, u WHERE k = 1",
            "SELECT a FROM t JOIN u ON true WHERE k = 1",
            "SELECT a FROM t WHERE k = 1.5",
            "SELECT a FROM t WHERE k = b",
            "SELECT a FROM t",
            "SELECT a FROM (SELECT 1) t WHERE k = 1",
            "WITH c AS (SELECT 1) SELECT a FROM t WHERE k = 1",
            "SELECT a FROM t WHERE k = 1 UNION ALL SELECT 2",
            "SELECT * EXCLUDE (a) FROM t WHERE k = 1",
            "INSERT INTO t VALUES (1), (2)",
            "INSERT INTO t VALUES (1 + 1)",
            "INSERT INTO t VALUES (DEFAULT)",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t VALUES (1) RETURNING a + 1",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
            "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = a + 1",
            "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = u.a + 1",
            "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = excluded.a + 1",
            "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = 1 WHERE t.b = 2",
            "UPDATE t SET a = a * 2 WHERE k = 1",
            "UPDATE t SET a = a + b WHERE k = 1",
            "UPDATE t SET a = t.a + 1 WHERE k = 1",
            "UPDATE t SET a = 1",
            "UPDATE t SET a = 1 FROM u WHERE k = 1",
            "UPDATE t SET a = 1 WHERE k = 1 RETURNING a AS b",
            "DELETE FROM t",
            "DELETE FROM t USING u WHERE k = 1",
            "CREATE TABLE t (a INTEGER)",
            "EXPLAIN SELECT a FROM t WHERE k = 1",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }
}
