//! `information_schema`: the views by which the SQL standard (part 11) describes the catalog, for tools that
//! list its objects.
//!
//! Each of its relations is made from the names that a statement sees. Databases are its catalogs: a relation
//! describes all that the session sees, or only the one whose name precedes the schema's. Relations that the
//! host program registered appear as temporary tables in its connection's own database.
//!
//! The standard knows nothing of indexes: `statistics`, which is MySQL's, lists those of keys and all others.
//! In the standard the name of a constraint is that of one table; here, as in PostgreSQL, two tables may have
//! checks or foreign keys of one name, so `check_constraints` and `referential_constraints` name the table,
//! too.

use super::listed::{listed, text};
use crate::catalog::search_path::TEMP;
use entasis_engine::relation::{KeyKind, Relation};
use entasis_storage::definition::{ColumnDefault, Counting, Definition, ForeignKey};
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
const LONG: DataType = DataType::Int64;

const ALL: [Made; 10] = [
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
            ("identity_generation", TEXT),
            ("identity_start", LONG),
            ("identity_increment", LONG),
            ("identity_maximum", LONG),
            ("identity_minimum", LONG),
            ("identity_cycle", TEXT),
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
        columns: &[
            ("sequence_catalog", TEXT),
            ("sequence_schema", TEXT),
            ("sequence_name", TEXT),
            ("start_value", LONG),
            ("increment", LONG),
            ("maximum_value", LONG),
            ("minimum_value", LONG),
            ("cycle_option", TEXT),
        ],
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
            ("position_in_unique_constraint", NUMBER),
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
            ("table_name", TEXT),
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
            ("table_name", TEXT),
        ],
        rows: check_constraints,
    },
    Made {
        name: "statistics",
        columns: &[
            ("table_catalog", TEXT),
            ("table_schema", TEXT),
            ("table_name", TEXT),
            ("non_unique", NUMBER),
            ("index_schema", TEXT),
            ("index_name", TEXT),
            ("seq_in_index", NUMBER),
            ("column_name", TEXT),
            ("nullable", TEXT),
        ],
        rows: statistics,
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

    /// How an identity column is filled: when, and by which numbers. NULL for other columns.
    fn identity(&self, default: Option<&ColumnDefault>) -> [Value; 6] {
        let Some(ColumnDefault::Identity { sequence, always }) = default else {
            return [const { Value::Null }; 6];
        };
        let [start, increment, maximum, minimum, cycle] = match self.names.get(sequence) {
            Some(Entry::Sequence(sequence)) => counting(sequence.counting()),
            _ => [const { Value::Null }; 5],
        };
        [text(if *always { "ALWAYS" } else { "BY DEFAULT" }), start, increment, maximum, minimum, cycle]
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
                    .chain(seen.identity(default))
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
    let row = |entry: &Entry| match entry {
        Entry::Sequence(sequence) => {
            Some(seen.place(&sequence.name).into_iter().chain(counting(sequence.counting())).collect())
        }
        _ => None,
    };
    seen.names.entries().filter_map(row).collect()
}

/// First value, difference, greatest and least value of a sequence, and whether it starts again.
fn counting(counting: Counting) -> [Value; 5] {
    let long = |number: i64| Value::Integer(number.into());
    let Counting { start, increment, min, max, cycle } = counting;
    [long(start), long(increment), long(max), long(min), yes(cycle)]
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
        let mut add = |name: &str, columns: &[usize], position: &dyn Fn(usize) -> Value| {
            for (i, &column) in columns.iter().enumerate() {
                let own = [text(&table.table.schema()[column].name), number(i + 1), position(i)];
                rows.push(
                    seen.place_beside(&table.name, name)
                        .into_iter()
                        .chain(seen.place(&table.name))
                        .chain(own)
                        .collect(),
                );
            }
        };
        keys(table).for_each(|(name, _, columns)| add(name, columns, &|_| Value::Null));
        for key in &table.definition.foreign_keys {
            let referred = referred_key(seen, key).map(|(_, columns)| columns);
            let position = |i: usize| {
                let place = referred.and_then(|own| own.iter().position(|&own| own == key.references[i]));
                place.map_or(Value::Null, |place| number(place + 1))
            };
            add(&key.name, &key.columns, &position);
        }
    }
    rows
}

/// Name and columns of the key to which a foreign key refers.
fn referred_key<'a>(seen: &'a Seen, key: &ForeignKey) -> Option<(&'a str, &'a [usize])> {
    let referred = seen.names.table(&key.table)?;
    keys(referred)
        .find(|(_, _, columns)| same(columns, &key.references))
        .map(|(name, _, columns)| (name, columns))
}

fn referential_constraints(seen: &Seen) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in stored(seen) {
        for key in &table.definition.foreign_keys {
            let unique = referred_key(seen, key)
                .map_or([Value::Null, Value::Null, Value::Null], |(name, _)| {
                    seen.place_beside(&key.table, name)
                });
            let rules = [key.on_update, key.on_delete].map(|action| text(action.name()));
            let [.., own] = seen.place(&table.name);
            let named = seen.place_beside(&table.name, &key.name).into_iter().chain(unique);
            rows.push(named.chain(rules).chain([own]).collect());
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
                let [.., own] = seen.place(&table.name);
                let named = seen.place_beside(&table.name, &check.name).into_iter();
                named.chain([text(&check.sql), own]).collect()
            })
            .collect::<Vec<_>>()
    };
    stored(seen).flat_map(of).collect()
}

/// The indexes, those of keys and those of `CREATE INDEX`: a row for each of their columns.
fn statistics(seen: &Seen) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in stored(seen) {
        for key in &table.definition.keys {
            let [catalog, schema, name] = seen.place(&table.name);
            for (i, &column) in key.columns.iter().enumerate() {
                let field = &table.table.schema()[column];
                rows.push(vec![
                    catalog.clone(),
                    schema.clone(),
                    name.clone(),
                    number(usize::from(key.kind == KeyKind::Index)),
                    schema.clone(),
                    text(&key.name),
                    number(i + 1),
                    text(&field.name),
                    yes(field.nullable),
                ]);
            }
        }
    }
    rows
}
