//! What a statement is going to write to, as far as its text says: so that whoever runs it waits for its turn
//! before it looks at anything.

use super::object_name::WrittenName;
use super::parsed::{Ast, Parsed};
use datafusion_sql::sqlparser::ast::{
    FromTable, ObjectName, ObjectType, Query, SetExpr, Statement, TableFactor, TableObject,
};

impl Parsed {
    /// The tables that it changes: rows of them, or what is declared of them. Names may be those of other
    /// things, or of nothing. Not the table of an index that is made or dropped, which others go on writing
    /// to meanwhile.
    pub fn targets(&self) -> Vec<WrittenName> {
        let tables = |names: &mut dyn Iterator<Item = &ObjectName>| -> Vec<WrittenName> {
            names.filter_map(WrittenName::of).collect()
        };
        let statement = match &self.ast {
            Ast::Sql(statement) => &**statement,
            Ast::CopyFrom { table, .. } => return tables(&mut std::iter::once(table)),
            _ => return Vec::new(),
        };
        match statement {
            Statement::Truncate(truncate) => {
                tables(&mut truncate.table_names.iter().map(|table| &table.name))
            }
            Statement::AlterTable(alter) => tables(&mut std::iter::once(&alter.name)),
            Statement::CreateTable(create) if create.or_replace => tables(&mut std::iter::once(&create.name)),
            Statement::Drop { object_type: ObjectType::Table, names, .. } => tables(&mut names.iter()),
            statement => target_of(statement).into_iter().collect(),
        }
    }
}

impl Parsed {
    /// The first parts of the names of what it writes to or makes, as far as they have several: schemas or
    /// databases, in lower case.
    pub fn places(&self) -> Vec<String> {
        let first = |name: &ObjectName| match name.0.as_slice() {
            [first, _, ..] => first.as_ident().map(|ident| ident.value.to_lowercase()),
            _ => None,
        };
        match &self.ast {
            Ast::CopyFrom { table, .. } => first(table).into_iter().collect(),
            Ast::Sql(statement) | Ast::CreateOrReplace(statement) => match &**statement {
                Statement::CreateTable(create) => first(&create.name).into_iter().collect(),
                Statement::CreateIndex(index) => first(&index.table_name).into_iter().collect(),
                Statement::AlterTable(alter) => first(&alter.name).into_iter().collect(),
                Statement::Truncate(truncate) => {
                    truncate.table_names.iter().filter_map(|table| first(&table.name)).collect()
                }
                Statement::Drop { object_type: ObjectType::Table | ObjectType::View, names, .. } => {
                    names.iter().filter_map(first).collect()
                }
                statement => written_name(statement).and_then(first).into_iter().collect(),
            },
            _ => Vec::new(),
        }
    }
}

/// The table whose rows a statement changes.
fn target_of(statement: &Statement) -> Option<WrittenName> {
    WrittenName::of(written_name(statement)?)
}

/// Its name, as it was written.
fn written_name(statement: &Statement) -> Option<&ObjectName> {
    fn factor_name(factor: &TableFactor) -> Option<&ObjectName> {
        match factor {
            TableFactor::Table { name, .. } => Some(name),
            _ => None,
        }
    }
    match statement {
        Statement::Update(update) => factor_name(&update.table.relation),
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            factor_name(&from.first()?.relation)
        }
        Statement::Merge(merge) => factor_name(&merge.table),
        Statement::Query(query) => written_name(changed_by(query)?),
        Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The statement that changes rows behind a `WITH`, if that is what a query is.
pub(crate) fn changed_by(query: &Query) -> Option<&Statement> {
    match &*query.body {
        SetExpr::Insert(change)
        | SetExpr::Update(change)
        | SetExpr::Delete(change)
        | SetExpr::Merge(change) => Some(change),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_text_says_what_is_written_to() {
        let targets = |sql: &str| {
            let targets = crate::parse(sql).unwrap().pop().unwrap().targets();
            targets.into_iter().map(|target| target.name).collect::<Vec<_>>()
        };
        let table = |name: &str| name.to_string();
        for (sql, expected) in [
            ("INSERT INTO T VALUES (1)", vec![table("t")]),
            ("UPDATE t SET a = 1 FROM u", vec![table("t")]),
            ("DELETE FROM main.t", vec![table("t")]),
            ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", vec![table("t")]),
            ("COPY t FROM 'x.csv'", vec![table("t")]),
            ("TRUNCATE t, u", vec![table("t"), table("u")]),
            ("ALTER TABLE t ADD COLUMN b INTEGER", vec![table("t")]),
            ("CREATE INDEX i ON t (a)", vec![]),
            ("CREATE OR REPLACE TABLE t AS SELECT 1", vec![table("t")]),
            ("DROP TABLE t, u", vec![table("t"), table("u")]),
            ("DROP INDEX i", vec![]),
            ("CREATE TABLE t (a INTEGER)", vec![]),
            ("DROP VIEW v", vec![]),
            ("WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c", vec![table("t")]),
            ("SELECT * FROM t", vec![]),
        ] {
            assert_eq!(targets(sql), expected, "{sql}");
        }
    }
}
