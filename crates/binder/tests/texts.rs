//! Binds the queries of all text tests against tables without rows: a query that the text tests run must
//! bind, but for those that read what only a database has.

use entasis_binder::environment::{Catalog, Parameters};
use entasis_binder::{Given, bind_query};
use entasis_engine::plan::{Columns, Node, Output, Plan, Values};
use entasis_engine::relation::{Place, Relation};
use entasis_functions::Argument;
use entasis_syntax::parsed::Ast;
use entasis_syntax::types::sql_type;
use entasis_syntax::{asof, using_key};
use entasis_vector::{DataType, Error, Field, Result, Value};
use sqlparser::ast::{CreateTable, Query, Statement};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Text tests whose tables change, or are in other places than their statements say.
const OF_DATABASES: &[&str] = &[
    "attach_write.slt",
    "clauses.slt",
    "columns_in_place.slt",
    "create_type.slt",
    "determined.slt",
    "export_import.slt",
    "or_replace.slt",
    "temporary.slt",
    "views.slt",
    "volatile.slt",
    "with_before_a_change.slt",
];

/// Tables by name, and the texts of views.
#[derive(Default)]
struct Tables {
    tables: HashMap<String, Arc<dyn Relation>>,
    views: HashMap<String, String>,
}

fn place(name: &str, schema: Vec<Field>) -> Arc<dyn Relation> {
    Arc::new(Place { name: name.to_owned(), schema: schema.into_iter().collect() })
}

impl Catalog for Tables {
    fn table(&self, name: &str) -> Option<Arc<dyn Relation>> {
        self.tables.get(name).cloned()
    }
    fn view(&self, name: &str) -> Option<String> {
        self.views.get(name).cloned()
    }
    fn file(&self, path: &str) -> Result<Arc<dyn Relation>> {
        Err(Error::input(format!("no file {path}")))
    }
    fn copied_file(&self, path: &str, _: &[Field], _: &[(String, Value)]) -> Result<Arc<dyn Relation>> {
        self.file(path)
    }
    fn table_function(&self, name: &str, _: &[(Option<String>, Argument)]) -> Result<Arc<dyn Relation>> {
        match name {
            "range" | "generate_series" => Ok(place(name, vec![Field::new(name, DataType::Int64)])),
            name => Err(Error::input(format!("no file function {name}"))),
        }
    }
    fn names(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }
    fn table_functions(&self) -> Vec<String> {
        Vec::new()
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
}

fn created(create: &CreateTable, tables: &Tables) -> Result<Vec<Field>> {
    if let Some(query) = &create.query {
        return Ok(bound(query, tables)?.schema().to_vec());
    }
    create
        .columns
        .iter()
        .map(|column| Ok(Field::new(column.name.value.as_str(), sql_type(&column.data_type)?)))
        .collect()
}

fn bound(query: &Query, tables: &Tables) -> Result<Plan> {
    let given = Given { describe: Some(described), ..Given::default() };
    bind_query(query, tables, Parameters::Values(&[]), &given)
}

/// Rows like those of a DESCRIBE.
fn described(_: &str, _: &dyn Catalog, _: Parameters<'_>) -> Result<Plan> {
    let mut columns = Columns::default();
    let names = ["column_name", "column_type", "null", "key", "default"];
    let ids: Vec<_> = names.iter().map(|name| columns.add(*name, DataType::Varchar, true)).collect();
    let output =
        names.iter().zip(&ids).map(|(name, column)| Output { name: (*name).into(), column: *column });
    let output = output.collect();
    Ok(Plan { root: Node::Values(Values { columns: ids, rows: Vec::new() }), columns, output })
}

fn files(of: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(of).expect("the text tests").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => files(&path, into),
            false if path.extension().is_some_and(|ext| ext == "slt") => into.push(path),
            false => {}
        }
    }
}

#[test]
fn queries_of_text_tests_bind() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt"), &mut paths);
    let (mut count, mut failed) = (0, Vec::new());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if OF_DATABASES.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text test");
        let mut tables = Tables::default();
        for record in text.split("\n\n") {
            let record: String =
                record.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
            let Some((head, sql)) = record.trim().split_once('\n') else { continue };
            let sql = sql.split("\n----").next().unwrap_or(sql);
            let is_query = head.starts_with("query") && !head.starts_with("query error");
            if !is_query && head.trim() != "statement ok" {
                continue;
            }
            let Ok(parsed) = entasis_syntax::parse(sql) else { continue };
            for statement in &parsed {
                let Ast::Sql(statement) = &statement.ast else { continue };
                let result = match &**statement {
                    Statement::Query(query) => {
                        count += 1;
                        bound(query, &tables).map(drop)
                    }
                    Statement::CreateTable(create) => created(create, &tables).map(|schema| {
                        let name = create.name.to_string().trim_matches('"').to_ascii_lowercase();
                        tables.tables.insert(name.clone(), place(&name, schema));
                    }),
                    Statement::CreateView(view) => {
                        let name = view.name.to_string().to_ascii_lowercase();
                        tables
                            .views
                            .insert(name, using_key::restored(asof::restored(view.query.to_string())));
                        Ok(())
                    }
                    _ => Ok(()),
                };
                if let Err(error) = result {
                    let text = error.to_string();
                    let of_database =
                        ["no table", "no file", "no sequence", "not a constant", "larger stack"];
                    if !of_database.iter().any(|part| text.contains(part)) {
                        failed.push(format!("{name}: {text}\n    {}", sql.replace('\n', " ")));
                    }
                }
            }
        }
    }
    assert!(count > 3000, "only {count} queries");
    assert!(failed.is_empty(), "{} of {count} queries\n{}", failed.len(), failed.join("\n"));
}
