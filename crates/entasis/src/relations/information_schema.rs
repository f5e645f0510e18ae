//! `information_schema`: the views by which the SQL standard (part 11) describes the catalog, for tools that
//! list its objects.
//!
//! Each of its relations is made from the names that a statement sees. Databases are its catalogs: a relation
//! describes all that the session sees, or only the one whose name precedes the schema's. Relations that the
//! host program registered appear as temporary tables in its connection's own database.

use super::listed::{listed, text};
use crate::search_path::TEMP;
use entasis_engine::relation::{KeyKind, Relation};
use entasis_storage::definition::{ColumnDefault, Definition};
use entasis_storage::{CatalogVersion, Entry, TableEntry, is_temporary};
use entasis_vector::name::{self, MAIN};
use entasis_vector::{DataType, Field, Value};
use std::sync::Arc;

/// What a statement sees of a database.
pub(crate) struct Seen {
    /// Its name.
    pub(crate) database: Arc<str>,
    /// Tables, views and sequences.
    pub(crate) names: CatalogVersion,
    /// Relations that the host program registered, by name.
    pub(crate) registered: Vec<(String, Arc<dyn Relation>)>,
}

/// One of the relations: its columns, and the function that makes its rows.
struct Made {
    name: &'static str,
    columns: &'static [(&'static str, DataType)],
    rows: fn(&Seen) -> Vec<Vec<Value>>,
}

const TEXT: DataType = DataType::Varchar;
const NUMBER: DataType = DataType::Int32;

const ALL: [Made; 9] = [
    Made {
        name: "schemata",
        columns: &[("catalog_name", TEXT), ("schema_name", TEXT), ("schema_owner", TEXT)],
        rows: schemata,
    },
    Made {
        name: "tables",
        columns: &[
            ("table_catalog", TEXT),
            ("table_schema", TEXT),
            ("table_name", TEXT),
            ("table_type", TEXT),
            ("is_insertable_into", TEXT),
        ],
        rows: tables,
    },
    Made {
        name: "columns",
        columns: &[
            ("table_catalog", TEXT),
            ("table_schema", TEXT),
            ("table_name", TEXT),
            ("column_name", TEXT),
            ("ordinal_position", NUMBER),
            ("column_default", TEXT),
            ("is_nullable", TEXT),
            ("data_type", TEXT),
            ("character_maximum_length", NUMBER),
            ("numeric_precision", NUMBER),
            ("numeric_precision_radix", NUMBER),
            ("numeric_scale", NUMBER),
            ("is_identity", TEXT),
        ],
        rows: columns,
    },
    Made {
        name: "views",
        columns: &[
            ("table_catalog", TEXT),
            ("table_schema", TEXT),
            ("table_name", TEXT),
            ("view_definition", TEXT),
        ],
        rows: views,
    },
    Made {
        name: "sequences",
        columns: &[("sequence_catalog", TEXT), ("sequence_schema", TEXT), ("sequence_name", TEXT)],
        rows: sequences,
    },
    Made {
        name: "table_constraints",
        columns: &[
            ("constraint_catalog", TEXT),
            ("constraint_schema", TEXT),
            ("constraint_name", TEXT),
            ("table_catalog", TEXT),
            ("table_schema", TEXT),
            ("table_name", TEXT),
            ("constraint_type", TEXT),
        ],
        rows: table_constraints,
    },
    Made {
        name: "key_column_usage",
        columns: &[
            ("constraint_catalog", TEXT),
            ("constraint_schema", TEXT),
            ("constraint_name", TEXT),
            ("table_catalog", TEXT),
            ("table_schema", TEXT),
            ("table_name", TEXT),
            ("column_name", TEXT),
            ("ordinal_position", NUMBER),
        ],
        rows: key_column_usage,
    },
    Made {
        name: "referential_constraints",
        columns: &[
            ("constraint_catalog", TEXT),
            ("constraint_schema", TEXT),
            ("constraint_name", TEXT),
            ("unique_constraint_catalog", TEXT),
            ("unique_constraint_schema", TEXT),
            ("unique_constraint_name", TEXT),
            ("update_rule", TEXT),
            ("delete_rule", TEXT),
        ],
        rows: referential_constraints,
    },
    Made {
        name: "check_constraints",
        columns: &[
            ("constraint_catalog", TEXT),
            ("constraint_schema", TEXT),
            ("constraint_name", TEXT),
            ("check_clause", TEXT),
        ],
        rows: check_constraints,
    },
];

/// The names of all of them, qualified by the schema's.
pub(crate) fn names() -> impl Iterator<Item = String> {
    ALL.iter().map(|made| format!("information_schema.{}", made.name))
}

/// The relation of that name, in lower case and perhaps preceded by a database's name, if it is one of them.
/// `seen` is what is seen of that database, or of all.
pub(crate) fn information_schema(
    name: &str,
    seen: impl FnOnce(Option<&str>) -> Vec<Seen>,
) -> Option<Arc<dyn Relation>> {
    let (place, own) = name.rsplit_once('.')?;
    let database = match place.rsplit_once('.') {
        None if place == "information_schema" => None,
        Some((database, "information_schema")) => Some(database),
        _ => return None,
    };
    let made = ALL.iter().find(|made| own == made.name)?;
    let seen = seen(database);
    // The database does not exist.
    if seen.is_empty() {
        return None;
    }
    Some(listed(name, made.columns, seen.iter().flat_map(made.rows).collect()))
}

fn number(number: usize) -> Value {
    Value::Integer(number as i128)
}

fn yes(is: bool) -> Value {
    text(if is { "YES" } else { "NO" })
}

impl Seen {
    /// Catalog and schema of an object, and its name in the schema.
    fn place(&self, name: &str) -> [Value; 3] {
        let (schema, own) = name::split(name);
        [text(&self.database), text(schema), text(own)]
    }

    /// Catalog and schema of a table, and the name of an object that belongs to the table.
    fn place_beside(&self, table: &str, name: &str) -> [Value; 3] {
        let [catalog, schema, _] = self.place(table);
        [catalog, schema, text(name)]
    }
}

fn schemata(seen: &Seen) -> Vec<Vec<Value>> {
    let own = seen.names.entries().filter(|entry| matches!(entry, Entry::Schema(_))).map(Entry::shown_name);
    let row = |schema: String| vec![text(&seen.database), text(&schema), Value::Null];
    // As in PostgreSQL, the temporary schema exists from its first object on.
    let temporary = seen.names.temporary().next().map(|_| TEMP);
    let standing = [MAIN, "information_schema"].into_iter().chain(temporary).map(str::to_owned);
    standing.chain(own).map(row).collect()
}

fn stored(seen: &Seen) -> impl Iterator<Item = &Arc<TableEntry>> {
    seen.names.entries().filter_map(|entry| match entry {
        Entry::Table(table) => Some(table),
        _ => None,
    })
}

fn tables(seen: &Seen) -> Vec<Vec<Value>> {
    let row = |name: &str, kind: &str, is_insertable: bool| {
        seen.place(name).into_iter().chain([text(kind), yes(is_insertable)]).collect::<Vec<Value>>()
    };
    let named = seen.names.entries().filter_map(|entry| match entry {
        Entry::Table(table) => {
            let kind = if is_temporary(&table.name) { "LOCAL TEMPORARY" } else { "BASE TABLE" };
            Some(row(&table.name, kind, true))
        }
        Entry::View(view) => Some(row(&view.name, "VIEW", false)),
        Entry::Sequence(_) | Entry::Type(_) | Entry::Schema(_) => None,
    });
    named
        .chain(
            seen.registered.iter().map(|(name, _)| row(&name::joined(MAIN, name), "LOCAL TEMPORARY", false)),
        )
        .collect()
}

fn columns(seen: &Seen) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut add = |name: &str, fields: &[Field], definition: Option<&Definition>| {
        for (i, field) in fields.iter().enumerate() {
            let default = definition.and_then(|definition| definition.defaults.get(i));
            let [precision, radix, scale] = digits(field.ty);
            rows.push(
                seen.place(name)
                    .into_iter()
                    .chain([
                        text(&field.name),
                        number(i + 1),
                        match default {
                            Some(ColumnDefault::Expression(sql)) => text(sql),
                            Some(ColumnDefault::Identity { sequence, .. }) => {
                                text(&format!("nextval('{}')", name::shown(sequence).replace('\'', "''")))
                            }
                            Some(ColumnDefault::Null) | None => Value::Null,
                        },
                        yes(field.nullable),
                        text(&field.ty.to_string()),
                        // A VARCHAR has no limit.
                        Value::Null,
                        precision,
                        radix,
                        scale,
                        yes(matches!(default, Some(ColumnDefault::Identity { .. }))),
                    ])
                    .collect(),
            );
        }
    };
    for entry in seen.names.entries() {
        match entry {
            Entry::Table(table) => add(&table.name, table.table.schema(), Some(&table.definition)),
            Entry::View(view) => add(&view.name, &view.schema, None),
            Entry::Sequence(_) | Entry::Type(_) | Entry::Schema(_) => {}
        }
    }
    for (name, relation) in &seen.registered {
        add(&name::joined(MAIN, name), relation.schema(), None);
    }
    rows
}

/// The number of digits of values of a numeric type, the base in which they are counted, and the number of
/// digits after the point.
fn digits(ty: DataType) -> [Value; 3] {
    let bits = |n| [number(n), number(2), number(0)];
    match ty {
        DataType::Decimal { precision, scale } => {
            [number(precision.into()), number(10), number(scale.into())]
        }
        DataType::Int8 | DataType::UInt8 => bits(8),
        DataType::Int16 | DataType::UInt16 => bits(16),
        DataType::Int32 | DataType::UInt32 => bits(32),
        DataType::Int64 | DataType::UInt64 => bits(64),
        DataType::Float32 => [number(24), number(2), Value::Null],
        DataType::Float64 => [number(53), number(2), Value::Null],
        _ => [Value::Null, Value::Null, Value::Null],
    }
}

fn views(seen: &Seen) -> Vec<Vec<Value>> {
    let views = seen.names.entries().filter_map(|entry| match entry {
        Entry::View(view) => Some(view),
        _ => None,
    });
    views.map(|view| seen.place(&view.name).into_iter().chain([text(&view.sql)]).collect()).collect()
}

fn sequences(seen: &Seen) -> Vec<Vec<Value>> {
    let sequences = seen.names.entries().filter(|entry| matches!(entry, Entry::Sequence(_)));
    sequences.map(|entry| seen.place(entry.name()).into()).collect()
}

/// The names of constraints that are keys, with the keys' columns.
fn keys(table: &TableEntry) -> impl Iterator<Item = (&str, &str, &[usize])> {
    table.definition.keys.iter().filter_map(|key| {
        let kind = match key.kind {
            KeyKind::Primary => "PRIMARY KEY",
            KeyKind::Unique => "UNIQUE",
            KeyKind::Index => return None,
        };
        Some((key.name.as_str(), kind, key.columns.as_slice()))
    })
}

fn foreign_keys(table: &TableEntry) -> impl Iterator<Item = (&str, &str, &[usize])> {
    table.definition.foreign_keys.iter().map(|key| (key.name.as_str(), "FOREIGN KEY", key.columns.as_slice()))
}

fn table_constraints(seen: &Seen) -> Vec<Vec<Value>> {
    let of = |table: &Arc<TableEntry>| {
        let checks = table.definition.checks.iter().map(|check| (check.name.as_str(), "CHECK"));
        let all = keys(table).chain(foreign_keys(table)).map(|(name, kind, _)| (name, kind)).chain(checks);
        let row = |(name, kind): (&str, &str)| {
            seen.place_beside(&table.name, name)
                .into_iter()
                .chain(seen.place(&table.name))
                .chain([text(kind)])
                .collect::<Vec<Value>>()
        };
        all.map(row).collect::<Vec<_>>()
    };
    stored(seen).flat_map(of).collect()
}

fn key_column_usage(seen: &Seen) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in stored(seen) {
        for (name, _, columns) in keys(table).chain(foreign_keys(table)) {
            for (i, &column) in columns.iter().enumerate() {
                let own = [text(&table.table.schema()[column].name), number(i + 1)];
                rows.push(
                    seen.place_beside(&table.name, name)
                        .into_iter()
                        .chain(seen.place(&table.name))
                        .chain(own)
                        .collect(),
                );
            }
        }
    }
    rows
}

fn referential_constraints(seen: &Seen) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in stored(seen) {
        for key in &table.definition.foreign_keys {
            let referred = seen.names.table(&key.table);
            let unique =
                referred.and_then(|to| keys(to).find(|(_, _, columns)| same(columns, &key.references)));
            let unique = unique.map_or([Value::Null, Value::Null, Value::Null], |(name, ..)| {
                seen.place_beside(&key.table, name)
            });
            let rules = [key.on_update, key.on_delete].map(|action| text(action.name()));
            rows.push(
                seen.place_beside(&table.name, &key.name).into_iter().chain(unique).chain(rules).collect(),
            );
        }
    }
    rows
}

/// True if both have the same columns, in any order.
fn same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().all(|column| b.contains(column))
}

fn check_constraints(seen: &Seen) -> Vec<Vec<Value>> {
    let of = |table: &Arc<TableEntry>| {
        let checks = table.definition.checks.iter();
        checks
            .map(|check| {
                seen.place_beside(&table.name, &check.name).into_iter().chain([text(&check.sql)]).collect()
            })
            .collect::<Vec<_>>()
    };
    stored(seen).flat_map(of).collect()
}
