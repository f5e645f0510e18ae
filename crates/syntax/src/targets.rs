//! The objects to which a statement is going to write, as far as its text shows: so that it can run in the
//! right database, and wait for the turns of its tables before it pins anything.

use super::object_name::{TEMP, WrittenName};
use super::parsed::{Ast, Command, Parsed};
use sqlparser::ast::{
    FromTable, ObjectName, ObjectType, Query, SchemaName, SetExpr, Statement, TableFactor, TableObject,
};

/// An object that a statement is about, besides those that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The parts of its name, in lower case.
    pub parts: Vec<String>,
    /// The possible kinds of object.
    pub what: What,
    /// True if its rows or declarations may be changed, so that the statement waits for its turn. False for
    /// the table of an index that is created or dropped, to which others go on writing meanwhile.
    pub has_rows: bool,
}

/// The kinds of object to which a written name may refer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An existing object, or none.
    Object,
    /// A new object.
    New,
    /// A schema.
    Schema,
    /// A database; the current one, if there are no parts.
    Database,
    /// A table, or otherwise a database.
    TableOrDatabase,
}

impl Parsed {
    /// The tables whose rows or declarations it changes. Names may be those of other objects, or of none.
    pub fn targets(&self) -> Vec<WrittenName> {
        let written = self.subjects().into_iter().filter(|subject| subject.has_rows);
        written.filter_map(|subject| WrittenName::of_parts(&subject.parts)).collect()
    }

    /// What the statement is about: the objects that it writes to or creates, or the database as a whole.
    /// Empty if it only reads rows, or concerns the connection.
    pub fn subjects(&self) -> Vec<Subject> {
        self.ast.subjects()
    }

    /// True if it changes its subjects.
    pub fn writes(&self) -> bool {
        !matches!(
            &self.ast,
            Ast::Explain { .. } | Ast::Command(Command::Export { .. } | Command::CheckIntegrity { .. })
        )
    }
}

impl Ast {
    fn subjects(&self) -> Vec<Subject> {
        let of = |what: What, has_rows: bool, names: &mut dyn Iterator<Item = &ObjectName>| -> Vec<Subject> {
            let subject = |name| Some(Subject { parts: parts_of(name)?, what, has_rows });
            names.filter_map(subject).collect()
        };
        let one = |what: What, name: &ObjectName| of(what, false, &mut std::iter::once(name));
        // A new temporary object without a schema is in the temporary schema.
        let new = |name: &ObjectName, temporary: bool, has_rows: bool| {
            let mut subjects = of(What::New, has_rows, &mut std::iter::once(name));
            for subject in subjects.iter_mut().filter(|subject| temporary && subject.parts.len() == 1) {
                subject.parts.insert(0, TEMP.to_owned());
            }
            subjects
        };
        let whole = || vec![Subject { parts: Vec::new(), what: What::Database, has_rows: false }];
        let statement = match self {
            Ast::Sql(statement) | Ast::CreateOrReplace(statement) => &**statement,
            Ast::CopyFrom { table, .. } => return of(What::Object, true, &mut std::iter::once(table)),
            Ast::Explain { statement, .. } => return statement.subjects(),
            Ast::Command(command) => {
                return match command {
                    Command::Vacuum { table: Some(name) } | Command::CheckIntegrity { table: Some(name) } => {
                        one(What::TableOrDatabase, name)
                    }
                    Command::Vacuum { table: None }
                    | Command::CheckIntegrity { table: None }
                    | Command::Export { .. }
                    | Command::Import { .. } => whole(),
                    Command::Backup { .. }
                    | Command::Attach { .. }
                    | Command::Detach { .. }
                    | Command::ShowDatabases => Vec::new(),
                };
            }
            _ => return Vec::new(),
        };
        match statement {
            Statement::Truncate(truncate) => {
                of(What::Object, true, &mut truncate.table_names.iter().map(|table| &table.name))
            }
            Statement::AlterTable(alter) => of(What::Object, true, &mut std::iter::once(&alter.name)),
            Statement::CreateTable(create) => new(&create.name, create.temporary, create.or_replace),
            Statement::CreateView(create) => new(&create.name, create.temporary, false),
            Statement::CreateSequence { name, temporary, .. } => new(name, *temporary, false),
            Statement::CreateType { name, .. } => new(name, false, false),
            Statement::CreateIndex(index) => one(What::Object, &index.table_name),
            Statement::CreateSchema { schema_name: SchemaName::Simple(name), .. } => one(What::Schema, name),
            Statement::Drop { object_type: ObjectType::Schema, names, .. } => {
                of(What::Schema, false, &mut names.iter())
            }
            // The names of indexes are not names of objects.
            Statement::Drop { object_type: ObjectType::Index, names, .. } => {
                of(What::New, false, &mut names.iter())
            }
            Statement::Drop { object_type, names, .. } => {
                of(What::Object, *object_type == ObjectType::Table, &mut names.iter())
            }
            statement => of(What::Object, true, &mut written_name(statement).into_iter()),
        }
    }
}

/// The parts of a name in lower case, if it consists only of identifiers.
fn parts_of(name: &ObjectName) -> Option<Vec<String>> {
    name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.to_ascii_lowercase())).collect()
}

/// The name of the table, as it was written.
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

/// The statement that changes rows after a `WITH`, if the query is one.
pub fn changed_by(query: &Query) -> Option<&Statement> {
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
    fn the_text_says_what_a_statement_is_about() {
        let subjects = |sql: &str| {
            let subjects = crate::parse(sql).unwrap().pop().unwrap().subjects();
            let texts =
                subjects.iter().map(|subject| format!("{:?} {}", subject.what, subject.parts.join(".")));
            texts.collect::<Vec<_>>().join(", ")
        };
        for (sql, expected) in [
            ("INSERT INTO B.t SELECT * FROM c.u", "Object b.t"),
            ("WITH x AS (SELECT 1) UPDATE b.s.t SET a = 1", "Object b.s.t"),
            ("COPY b.t FROM 'f'", "Object b.t"),
            ("COPY b.t TO 'f'", ""),
            ("CREATE TABLE b.t (a INTEGER)", "New b.t"),
            ("CREATE TEMP TABLE t (a INTEGER)", "New temp.t"),
            ("CREATE OR REPLACE VIEW b.v AS SELECT 1", "New b.v"),
            ("CREATE SEQUENCE s", "New s"),
            ("CREATE TYPE s AS ENUM ('a')", "New s"),
            ("DROP TYPE s", "Object s"),
            ("CREATE OR REPLACE INDEX i ON b.t (a)", "Object b.t"),
            ("CREATE SCHEMA b.s", "Schema b.s"),
            ("DROP SCHEMA b.s, b.u CASCADE", "Schema b.s, Schema b.u"),
            ("DROP VIEW b.v", "Object b.v"),
            ("DROP INDEX b.i", "New b.i"),
            ("ALTER TABLE b.t RENAME TO u", "Object b.t"),
            ("TRUNCATE b.t, u", "Object b.t, Object u"),
            ("EXPLAIN DELETE FROM b.t", "Object b.t"),
            ("VACUUM b", "TableOrDatabase b"),
            ("VACUUM", "Database "),
            ("PRAGMA integrity_check", "Database "),
            ("SELECT * FROM b.t", ""),
            ("DESCRIBE b.t", ""),
            ("BEGIN", ""),
        ] {
            assert_eq!(subjects(sql), expected, "{sql}");
        }
    }

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
