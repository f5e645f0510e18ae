//! Declarations of tables, as bytes and back: columns, options, keys, checks, foreign keys and defaults.
//!
//! An enumerated value is stored as its index in one of the tables below. These tables only grow at their
//! ends, so that the numbers keep their meaning.

use super::source::{Source, push_list, push_maybe, push_one_of, push_text};
use crate::backend::bytes::push_varint;
use crate::definition::{
    CURVE_COLUMNS, Check, ColumnDefault, Compression, CounterOptions, Curve, Definition, ForeignKey, Key,
    KeyKind, Layout, LayoutChoice, LayoutName, OnCommit, ReferentialAction, TableOptions,
};
use crate::{BLOCK_ROWS, ROW_GROUP_ROWS};
use entasis_vector::{DataType, Field, Result, Schema};

/// Data types that need no precision or scale, by their numbers.
const TYPES: [DataType; 23] = [
    DataType::Null,
    DataType::Boolean,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float32,
    DataType::Float64,
    DataType::Varchar,
    DataType::Blob,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::TimestampTz,
    DataType::Interval,
    DataType::Uuid,
    DataType::Json,
    DataType::TimestampNs,
    DataType::TimeTz,
];
/// The number of the type DECIMAL, which is followed by precision and scale.
const DECIMAL: u8 = 255;
/// The number of lists, which is followed by the type of the elements.
const LIST: u8 = 254;
/// The number of structs, which is followed by the names and types of the fields.
const STRUCT: u8 = 253;
/// The number of ENUMs, which is followed by the labels.
const ENUM: u8 = 252;
/// The number of maps, which is followed by the types of keys and values.
const MAP: u8 = 251;
/// The number of arrays of a fixed length, which is followed by it and the type of the elements.
const ARRAY: u8 = 250;
/// How deep nested types are at most: far deeper than those that SQL can name.
const DEEPEST: usize = 1000;
/// The greatest precision of a decimal.
const DIGITS: u8 = 38;

const LAYOUTS: [Layout; 6] =
    [Layout::Insertion, Layout::Sorted, Layout::Delta, Layout::Equi, Layout::EquiGhost, Layout::Casper];

const LAYOUT_NAMES: [LayoutName; 7] = [
    LayoutName::Auto,
    LayoutName::Insertion,
    LayoutName::Sorted,
    LayoutName::Delta,
    LayoutName::Equi,
    LayoutName::EquiGhost,
    LayoutName::Casper,
];

const CURVES: [Curve; 2] = [Curve::ZOrder, Curve::Hilbert];

const KEY_KINDS: [KeyKind; 3] = [KeyKind::Primary, KeyKind::Unique, KeyKind::Index];

const ACTIONS: [ReferentialAction; 5] = [
    ReferentialAction::NoAction,
    ReferentialAction::Restrict,
    ReferentialAction::Cascade,
    ReferentialAction::SetNull,
    ReferentialAction::SetDefault,
];

// ---- columns ----------------------------------------------------------------------------------------------

pub(super) fn push_schema(out: &mut Vec<u8>, schema: &Schema) {
    push_list(out, schema, |out, field| {
        push_text(out, &field.name);
        out.push(u8::from(field.nullable));
        push_type(out, field.ty);
    });
}

pub(super) fn push_type(out: &mut Vec<u8>, ty: DataType) {
    match ty {
        DataType::Decimal { precision, scale } => out.extend([DECIMAL, precision, scale]),
        DataType::List(element) => {
            out.push(LIST);
            push_type(out, *element);
        }
        DataType::Struct(fields) => {
            out.push(STRUCT);
            push_list(out, fields, |out, field| {
                push_text(out, field.name);
                push_type(out, field.ty);
            });
        }
        DataType::Array(element, length) => {
            out.push(ARRAY);
            push_varint(out, length.into());
            push_type(out, *element);
        }
        DataType::Map(entry) => {
            out.push(MAP);
            let (key, value) = ty.key_and_value().unwrap_or((*entry, *entry));
            push_type(out, key);
            push_type(out, value);
        }
        DataType::Enum(labels) => {
            out.push(ENUM);
            push_list(out, &labels.iter().collect::<Vec<_>>(), |out, label| push_text(out, label));
        }
        ty => push_one_of(out, &TYPES, &ty),
    }
}

pub(super) fn schema(source: &mut Source<'_>) -> Result<Schema> {
    source.list(|source| {
        let (name, nullable) = (source.text()?, source.bool()?);
        Ok(Field { nullable, ..Field::new(name, data_type(source, 0)?) })
    })
}

/// A type within so many others.
pub(super) fn data_type(source: &mut Source<'_>, depth: usize) -> Result<DataType> {
    source.check(depth <= DEEPEST, "the depth of a nested type")?;
    match source.u8()? {
        DECIMAL => {
            let (precision, scale) = (source.u8()?, source.u8()?);
            let is_decimal = (1..=DIGITS).contains(&precision) && scale <= precision;
            source.check(is_decimal, "the digits of a decimal")?;
            Ok(DataType::Decimal { precision, scale })
        }
        LIST => data_type(source, depth + 1).map(DataType::list),
        STRUCT => {
            let fields = source.list(|source| Ok((source.text()?, data_type(source, depth + 1)?)))?;
            Ok(DataType::structure(fields.iter().map(|(name, ty)| (&**name, *ty))))
        }
        ARRAY => {
            let (length, element) = (source.varint()?, data_type(source, depth + 1)?);
            DataType::array(element, length).map_err(|_| source.flaw("the length of an array"))
        }
        MAP => Ok(DataType::map(data_type(source, depth + 1)?, data_type(source, depth + 1)?)),
        ENUM => {
            let labels = source.list(|source| Ok(source.text()?.to_owned()))?;
            let ty = DataType::enumeration(labels.iter().map(String::as_str));
            ty.map_err(|_| source.flaw("the labels of an ENUM"))
        }
        number => TYPES.get(usize::from(number)).copied().ok_or_else(|| source.flaw("a type")),
    }
}

fn push_columns(out: &mut Vec<u8>, columns: &[usize]) {
    push_list(out, columns, |out, column| push_varint(out, *column as u64));
}

/// Indexes of columns, each below `count`.
fn columns(source: &mut Source<'_>, count: usize) -> Result<Vec<usize>> {
    source.list(|source| source.below(count, "a column that there is not"))
}

fn push_compressions(out: &mut Vec<u8>, compressions: &[(usize, Compression)]) {
    push_list(out, compressions, |out, (column, compression)| {
        push_varint(out, *column as u64);
        push_one_of(out, &Compression::BY_NUMBER, compression);
    });
}

fn compressions(source: &mut Source<'_>, count: usize) -> Result<Vec<(usize, Compression)>> {
    source.list(|source| {
        let column = source.below(count, "a column that there is not")?;
        Ok((column, source.one_of(&Compression::BY_NUMBER, "a compression")?))
    })
}

// ---- options ----------------------------------------------------------------------------------------------

pub(super) fn push_options(out: &mut Vec<u8>, options: &TableOptions) {
    push_one_of(out, &LAYOUTS, &options.layout);
    push_columns(out, &options.layout_key);
    out.extend([u8::from(options.unique), u8::from(options.distinct)]);
    push_varint(out, options.partitions as u64);
    out.extend(options.ghost.to_le_bytes());
    push_varint(out, options.reach as u64);
    push_one_of(out, &Compression::BY_NUMBER, &options.compression);
    push_compressions(out, &options.column_compressions);
    push_varint(out, options.block_slots as u64);
    push_varint(out, options.group_slots as u64);
}

/// The options of a table with `count` columns.
pub(super) fn options(source: &mut Source<'_>, count: usize) -> Result<TableOptions> {
    let options = TableOptions {
        layout: source.one_of(&LAYOUTS, "a layout")?,
        layout_key: columns(source, count)?,
        curve: None,
        unique: source.bool()?,
        distinct: source.bool()?,
        partitions: source.size()?,
        ghost: source.f64()?,
        reach: source.size()?,
        compression: source.one_of(&Compression::BY_NUMBER, "a compression")?,
        column_compressions: compressions(source, count)?,
        block_slots: source.size()?,
        group_slots: source.size()?,
        rest: TableOptions::default().rest,
        counters: CounterOptions::default(),
    };
    let are_slots = (1..=BLOCK_ROWS).contains(&options.block_slots)
        && (options.block_slots..=ROW_GROUP_ROWS).contains(&options.group_slots)
        && options.group_slots.is_multiple_of(options.block_slots);
    source.check(are_slots, "the slots of a block or a row group")?;
    let are_partitions = (1..=ROW_GROUP_ROWS).contains(&options.partitions);
    source.check(are_partitions && (0.0..1.0).contains(&options.ghost), "the partitions of a layout")?;
    Ok(options)
}

// ---- definitions ------------------------------------------------------------------------------------------

pub(super) fn push_definition(out: &mut Vec<u8>, definition: &Definition) {
    push_list(out, &definition.defaults, |out, default| match default {
        ColumnDefault::Null => out.push(0),
        ColumnDefault::Expression(sql) => {
            out.push(1);
            push_text(out, sql);
        }
        ColumnDefault::Identity { sequence, always } => {
            out.extend([2, u8::from(*always)]);
            push_text(out, sequence);
        }
    });
    push_list(out, &definition.keys, |out, key| {
        push_text(out, &key.name);
        push_columns(out, &key.columns);
        push_one_of(out, &KEY_KINDS, &key.kind);
    });
    push_list(out, &definition.checks, |out, check| {
        push_text(out, &check.name);
        push_text(out, &check.sql);
    });
    push_list(out, &definition.foreign_keys, |out, foreign| {
        push_text(out, &foreign.name);
        push_columns(out, &foreign.columns);
        push_text(out, &foreign.table);
        push_columns(out, &foreign.references);
        push_one_of(out, &ACTIONS, &foreign.on_delete);
        push_one_of(out, &ACTIONS, &foreign.on_update);
    });
    push_choice(out, &definition.layout);
    push_list(out, &definition.sequences, |out, name| push_text(out, name));
}

/// The declarations of a table with `count` columns. `ON COMMIT` is missing: it is for temporary tables,
/// which are not in a file.
pub(super) fn definition(source: &mut Source<'_>, count: usize) -> Result<Definition> {
    Ok(Definition {
        defaults: source.list(default)?,
        keys: source.list(|source| {
            let (name, columns) = (source.text()?.to_owned(), columns(source, count)?);
            Ok(Key { name, columns, kind: source.one_of(&KEY_KINDS, "a kind of key")? })
        })?,
        checks: source
            .list(|source| Ok(Check { name: source.text()?.to_owned(), sql: source.text()?.to_owned() }))?,
        foreign_keys: source.list(|source| foreign_key(source, count))?,
        layout: choice(source, count)?,
        sequences: source.list(|source| Ok(source.text()?.to_owned()))?,
        on_commit: OnCommit::default(),
    })
}

fn default(source: &mut Source<'_>) -> Result<ColumnDefault> {
    match source.u8()? {
        0 => Ok(ColumnDefault::Null),
        1 => Ok(ColumnDefault::Expression(source.text()?.to_owned())),
        2 => Ok(ColumnDefault::Identity { always: source.bool()?, sequence: source.text()?.to_owned() }),
        _ => Err(source.flaw("a kind of default")),
    }
}

fn foreign_key(source: &mut Source<'_>, count: usize) -> Result<ForeignKey> {
    Ok(ForeignKey {
        name: source.text()?.to_owned(),
        columns: columns(source, count)?,
        table: source.text()?.to_owned(),
        // Columns of another table, which may not have been read yet, so that their number is unknown.
        references: columns(source, usize::MAX)?,
        on_delete: source.one_of(&ACTIONS, "an action")?,
        on_update: source.one_of(&ACTIONS, "an action")?,
    })
}

fn push_choice(out: &mut Vec<u8>, choice: &LayoutChoice) {
    push_maybe(out, choice.layout, |out, name| push_one_of(out, &LAYOUT_NAMES, &name));
    push_maybe(out, choice.key.as_deref(), push_columns);
    push_maybe(out, choice.partitions, |out, partitions| push_varint(out, partitions as u64));
    push_maybe(out, choice.ghost, |out, ghost| out.extend(ghost.to_le_bytes()));
    push_maybe(out, choice.compression, |out, compression| {
        push_one_of(out, &Compression::BY_NUMBER, &compression)
    });
    push_compressions(out, &choice.column_compressions);
}

fn choice(source: &mut Source<'_>, count: usize) -> Result<LayoutChoice> {
    Ok(LayoutChoice {
        layout: source.maybe(|source| source.one_of(&LAYOUT_NAMES, "a layout"))?,
        key: source.maybe(|source| columns(source, count))?,
        curve: None,
        partitions: source.maybe(Source::size)?,
        ghost: source.maybe(Source::f64)?,
        compression: source.maybe(|source| source.one_of(&Compression::BY_NUMBER, "a compression"))?,
        column_compressions: compressions(source, count)?,
        read_sla: None,
        update_sla: None,
    })
}

/// The SLA bounds of a table ([`LayoutChoice::sla_bounds`]): behind the rest of a table, and only if it has
/// something ([`super::objects`]).
pub(super) fn push_sla_bounds(out: &mut Vec<u8>, choice: &LayoutChoice) {
    for latency in [choice.read_sla, choice.update_sla] {
        push_maybe(out, latency, push_varint);
    }
}

/// Reads what [`push_sla_bounds`] wrote.
pub(super) fn sla_bounds(source: &mut Source<'_>, choice: &mut LayoutChoice) -> Result<()> {
    choice.read_sla = source.maybe(Source::varint)?;
    choice.update_sla = source.maybe(Source::varint)?;
    Ok(())
}

/// The curves that a table has and declares: behind its SLA bounds, and only if it declares one or none
/// expressly ([`super::objects`]).
pub(super) fn push_curves(out: &mut Vec<u8>, options: &TableOptions, choice: &LayoutChoice) {
    let push = |out: &mut Vec<u8>, curve: Option<Curve>| {
        push_maybe(out, curve, |out, curve| push_one_of(out, &CURVES, &curve));
    };
    push(out, options.curve);
    push_maybe(out, choice.curve, push);
}

/// Reads what [`push_curves`] wrote.
pub(super) fn curves(
    source: &mut Source<'_>,
    options: &mut TableOptions,
    choice: &mut LayoutChoice,
) -> Result<()> {
    let curve = |source: &mut Source<'_>| source.maybe(|source| source.one_of(&CURVES, "a curve"));
    options.curve = curve(source)?;
    choice.curve = source.maybe(curve)?;
    let has_space = options.layout.is_keyed() && CURVE_COLUMNS.contains(&options.layout_key.len());
    source.check(has_space || options.curve.is_none(), "a curve through too few columns, or too many")
}
