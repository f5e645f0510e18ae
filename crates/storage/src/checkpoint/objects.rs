//! The objects of the catalog, as bytes and back: all but temporary ones, which end with their connections.
//!
//! Tables and indexes are stored here without their rows, which are found by the tables' ids
//! ([`super::manifest`]). An index is part of the entry of its table, since it is nothing without it.

use super::schema_codec::{
    curves, data_type, definition, options, push_curves, push_definition, push_options, push_schema,
    push_sla_bounds, push_type, schema, sla_bounds,
};
use super::source::{Source, push_list, push_maybe, push_text};
use crate::backend::bytes::push_varint;
use crate::catalog::{CatalogVersion, Entry, NamedType, TableEntry, View, is_temporary};
use crate::definition::{ColumnDefault, Counting, Definition, KeyKind, ObjectId, Sequence, TableOptions};
use crate::file::State;
use crate::table::Table;
use entasis_vector::{Result, Schema, name};
use std::sync::Arc;

const SCHEMA: u8 = 1;
const TABLE: u8 = 2;
const VIEW: u8 = 3;
const SEQUENCE: u8 = 4;
/// A table with bounds of latencies. Others are written as [`TABLE`], as before there were bounds.
const PROMISING: u8 = 5;
/// A table that declares a curve. Others are written as [`TABLE`] or [`PROMISING`], as before there were
/// curves.
const CURVED: u8 = 6;
const TYPE: u8 = 7;

/// A table or an index without its rows.
pub(super) struct Relation {
    pub(super) id: ObjectId,
    pub(super) name: String,
    pub(super) schema: Schema,
    pub(super) options: TableOptions,
}

/// A table without its rows, and its declarations.
pub(super) struct TableObject {
    /// Its name in the catalog.
    pub(super) name: String,
    pub(super) relation: Relation,
    pub(super) definition: Definition,
    /// For each key its index; `None` if the table itself is ordered by it.
    pub(super) indexes: Vec<Option<Relation>>,
}

/// An object without its rows.
pub(super) enum Object {
    /// A schema: its name, with the dot.
    Schema(String),
    /// A table.
    Table(Box<TableObject>),
    /// A view.
    View(View),
    /// A sequence.
    Sequence(Sequence),
    /// A type.
    Type(NamedType),
}

impl Object {
    /// The object with the names that it and others have now ([`name::renewed`]); `names` has the schemas
    /// that there are.
    pub(super) fn renewed(mut self, names: &CatalogVersion) -> Object {
        let renew = |name: &mut String| *name = renewed(name, names);
        match &mut self {
            Object::Schema(_) => {}
            Object::Sequence(sequence) => renew(&mut sequence.name),
            Object::Type(named) => renew(&mut named.name),
            Object::View(view) => {
                renew(&mut view.name);
                view.needs.iter_mut().for_each(renew);
            }
            Object::Table(table) => {
                renew(&mut table.name);
                let Definition { defaults, keys, foreign_keys, sequences, .. } = &mut table.definition;
                keys.iter_mut().filter(|key| key.kind == KeyKind::Index).for_each(|key| renew(&mut key.name));
                foreign_keys.iter_mut().for_each(|key| renew(&mut key.table));
                sequences.iter_mut().for_each(renew);
                for default in defaults {
                    if let ColumnDefault::Identity { sequence, .. } = default {
                        renew(sequence);
                    }
                }
            }
        }
        self
    }

    /// The catalog entry of the object. `table` returns each of its tables with its rows.
    pub(super) fn entry(self, table: &mut dyn FnMut(Relation) -> Result<Arc<Table>>) -> Result<Entry> {
        Ok(match self {
            Object::Schema(name) => Entry::Schema(name.into()),
            Object::View(view) => Entry::View(Arc::new(view)),
            Object::Sequence(sequence) => Entry::Sequence(Arc::new(sequence)),
            Object::Type(named) => Entry::Type(Arc::new(named)),
            Object::Table(object) => {
                let TableObject { name, relation, definition, indexes } = *object;
                let rows = table(relation)?;
                let indexes = indexes.into_iter().map(|index| index.map(&mut *table).transpose());
                let indexes = indexes.collect::<Result<Vec<_>>>()?;
                Entry::Table(Arc::new(TableEntry {
                    name,
                    table: rows,
                    definition: Arc::new(definition),
                    indexes,
                }))
            }
        })
    }
}

/// The name that a stored one is now.
pub(super) fn renewed(name: &str, names: &CatalogVersion) -> String {
    name::renewed(name, |schema| matches!(names.get(&format!("{schema}.")), Some(Entry::Schema(_))))
}

/// The permanent objects.
pub(super) fn lasting(names: &CatalogVersion) -> impl Iterator<Item = &Entry> {
    names.entries().filter(|entry| !is_temporary(entry.name()))
}

/// The tables of an entry: its own, and those of its indexes.
pub(super) fn tables_of(entry: &TableEntry) -> impl Iterator<Item = &Arc<Table>> {
    std::iter::once(&entry.table).chain(entry.indexes.iter().flatten())
}

/// The objects of a version. Sequences are written with their present numbers, not those of the time when the
/// version was taken, since numbers that were taken meanwhile stay taken. `state` says whether they go on as
/// after a crash, which leaves numbers out, or as after closing.
pub(super) fn encode(names: &CatalogVersion, state: State) -> Vec<u8> {
    let mut out = Vec::new();
    push_varint(&mut out, ObjectId::next_number());
    push_list(&mut out, &lasting(names).collect::<Vec<_>>(), |out, entry| push_entry(out, entry, state));
    out
}

/// One object, for a database that is open or closed.
pub(super) fn push_entry(out: &mut Vec<u8>, entry: &Entry, state: State) {
    match entry {
        Entry::Schema(name) => {
            out.push(SCHEMA);
            push_text(out, name);
        }
        Entry::Table(entry) => {
            let choice = &entry.definition.layout;
            let has_sla_bounds = choice.read_sla.is_some() || choice.update_sla.is_some();
            let has_curve = choice.curve.is_some() || entry.table.options().curve.is_some();
            out.push(match has_sla_bounds {
                _ if has_curve => CURVED,
                true => PROMISING,
                false => TABLE,
            });
            push_text(out, &entry.name);
            push_relation(out, &entry.table);
            push_definition(out, &entry.definition);
            push_list(out, &entry.indexes, |out, index| push_maybe(out, index.as_deref(), push_relation));
            if has_sla_bounds || has_curve {
                push_sla_bounds(out, choice);
            }
            if has_curve {
                push_curves(out, entry.table.options(), choice);
            }
        }
        Entry::View(view) => {
            out.push(VIEW);
            push_text(out, &view.name);
            push_text(out, &view.sql);
            push_schema(out, &view.schema);
            push_list(out, &view.needs, |out, name| push_text(out, name));
        }
        Entry::Sequence(sequence) => {
            out.push(SEQUENCE);
            push_varint(out, sequence.id().number());
            push_text(out, &sequence.name);
            let Counting { start, increment, min, max, cycle } = sequence.counting();
            [start, increment, min, max].iter().for_each(|number| out.extend(number.to_le_bytes()));
            out.push(u8::from(cycle));
            let next = if state == State::Open { sequence.lasting_next() } else { sequence.next() };
            push_maybe(out, next, |out, next| out.extend(next.to_le_bytes()));
        }
        Entry::Type(named) => {
            out.push(TYPE);
            push_text(out, &named.name);
            push_type(out, named.ty);
        }
    }
}

fn push_relation(out: &mut Vec<u8>, table: &Table) {
    push_varint(out, table.object().number());
    push_text(out, table.name());
    push_schema(out, table.schema());
    push_options(out, table.options());
}

/// Reads what [`encode`] wrote: the id that the next object gets, and the objects.
pub(super) fn decode(source: &mut Source<'_>) -> Result<(u64, Vec<Object>)> {
    let next = source.varint()?;
    let objects = source.list(|source| object(source, next))?;
    source.end()?;
    Ok((next, objects))
}

/// Reads one object, whose ids must be below `next`.
pub(super) fn object(source: &mut Source<'_>, next: u64) -> Result<Object> {
    match source.u8()? {
        SCHEMA => Ok(Object::Schema(source.text()?.to_owned())),
        kind @ (TABLE | PROMISING | CURVED) => {
            let (name, mut relation) = (source.text()?.to_owned(), relation(source, next)?);
            let mut definition = definition(source, relation.schema.len())?;
            let indexes = source.list(|source| source.maybe(|source| self::relation(source, next)))?;
            source.check(indexes.len() == definition.keys.len(), "the indexes of a table")?;
            if kind != TABLE {
                sla_bounds(source, &mut definition.layout)?;
            }
            if kind == CURVED {
                curves(source, &mut relation.options, &mut definition.layout)?;
            }
            Ok(Object::Table(Box::new(TableObject { name, relation, definition, indexes })))
        }
        VIEW => Ok(Object::View(View {
            name: source.text()?.to_owned(),
            sql: source.text()?.to_owned(),
            schema: schema(source)?,
            needs: source.list(|source| Ok(source.text()?.to_owned()))?,
        })),
        SEQUENCE => sequence(source, next).map(Object::Sequence),
        TYPE => Ok(Object::Type(NamedType { name: source.text()?.to_owned(), ty: data_type(source, 0)? })),
        _ => Err(source.flaw("a kind of object")),
    }
}

fn id(source: &mut Source<'_>, next: u64) -> Result<ObjectId> {
    let number = source.varint()?;
    source.check(number < next, "an id that was not given out")?;
    Ok(ObjectId::of(number))
}

fn relation(source: &mut Source<'_>, next: u64) -> Result<Relation> {
    let (id, name, schema) = (id(source, next)?, source.text()?.to_owned(), schema(source)?);
    let options = options(source, schema.len())?;
    Ok(Relation { id, name, schema, options })
}

fn sequence(source: &mut Source<'_>, next: u64) -> Result<Sequence> {
    let (id, name) = (id(source, next)?, source.text()?);
    let counting = Counting {
        start: source.i64()?,
        increment: source.i64()?,
        min: source.i64()?,
        max: source.i64()?,
        cycle: source.bool()?,
    };
    source.check(counting.increment != 0 && counting.min <= counting.max, "what a sequence counts")?;
    let next = source.maybe(Source::i64)?;
    let is_inside = next.is_none_or(|next| (counting.min..=counting.max).contains(&next));
    source.check(is_inside, "what a sequence counts")?;
    Ok(Sequence::restored(id, name, counting, next))
}
