//! What a statement is going to write to, as far as its text says: so that whoever runs it waits for its turn before it looks at
//! anything.

use crate::bind::table_name;
use crate::change::target_of;
use crate::parse::{Ast, Parsed};
use datafusion_sql::sqlparser::ast::{ObjectName, ObjectType, Statement};

/// Something that a statement changes, by its name in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteTarget {
    /// A table: its rows, or what is declared of it.
    Table(String),
    /// The table that has an index of this name.
    Index(String),
}

impl Parsed {
    /// The tables that it changes: rows of them, or what is declared of them. Names may be those of other things, or of nothing.
    pub fn targets(&self) -> Vec<WriteTarget> {
        let tables = |names: &mut dyn Iterator<Item = &ObjectName>| -> Vec<WriteTarget> {
            names.filter_map(|name| table_name(name).ok()).map(WriteTarget::Table).collect()
        };
        let statement = match &self.ast {
            Ast::Sql(statement) => &**statement,
            Ast::CopyFrom { table, .. } => return tables(&mut std::iter::once(table)),
            _ => return Vec::new(),
        };
        match statement {
            Statement::Truncate(truncate) => tables(&mut truncate.table_names.iter().map(|table| &table.name)),
            Statement::AlterTable(alter) => tables(&mut std::iter::once(&alter.name)),
            Statement::CreateIndex(index) => tables(&mut std::iter::once(&index.table_name)),
            Statement::CreateTable(create) if create.or_replace => tables(&mut std::iter::once(&create.name)),
            Statement::Drop { object_type: ObjectType::Table, names, .. } => tables(&mut names.iter()),
            Statement::Drop { object_type: ObjectType::Index, names, .. } => {
                names.iter().filter_map(|name| table_name(name).ok()).map(WriteTarget::Index).collect()
            }
            statement => target_of(statement).map(WriteTarget::Table).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_is_written_to() {
        let targets = |sql: &str| crate::parse(sql).unwrap().pop().unwrap().targets();
        let table = |name: &str| WriteTarget::Table(name.into());
        for (sql, expected) in [
            ("INSERT INTO T VALUES (1)", vec![table("t")]),
            ("UPDATE t SET a = 1 FROM u", vec![table("t")]),
            ("DELETE FROM main.t", vec![table("t")]),
            ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", vec![table("t")]),
            ("COPY t FROM 'x.csv'", vec![table("t")]),
            ("TRUNCATE t, u", vec![table("t"), table("u")]),
            ("ALTER TABLE t ADD COLUMN b INTEGER", vec![table("t")]),
            ("CREATE INDEX i ON t (a)", vec![table("t")]),
            ("CREATE OR REPLACE TABLE t AS SELECT 1", vec![table("t")]),
            ("DROP TABLE t, u", vec![table("t"), table("u")]),
            ("DROP INDEX I", vec![WriteTarget::Index("i".into())]),
            ("CREATE TABLE t (a INTEGER)", vec![]),
            ("DROP VIEW v", vec![]),
            ("SELECT * FROM t", vec![]),
        ] {
            assert_eq!(targets(sql), expected, "{sql}");
        }
    }
}
