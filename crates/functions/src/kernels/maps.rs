//! Functions of maps, which are lists of their entries, structs of a key and a value
//! (`entasis_vector::value::nested`). A key is found by its bytes, from the first entry on.

use super::lists::{element_of, list_of, no_such_call, typed, written};
use crate::definition::{Body, Definition, Kernel, Row, Signature};
use crate::expressions::fold;
use crate::types::common_of;
use entasis_vector::parts::Part;
use entasis_vector::value::nested::{self, Reader};
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Entries of the functions of this file.
pub const FUNCTIONS: &[Definition] = &[
    typed(
        &["map"],
        "keys, values",
        "map",
        "a map of a list of keys, which are all different and not NULL, and one of as many values; also written as `MAP {key: value, …}`",
        |types| {
            let (args, result) = match types {
                [] => (Vec::new(), DataType::map(DataType::Null, DataType::Null)),
                [keys, values] => (
                    vec![list_of(&[*keys])?, list_of(&[*values])?],
                    DataType::map(element_of(&[*keys])?, element_of(&[*values])?),
                ),
                _ => return Err(no_such_call()),
            };
            Ok(Signature { args, result, kernel: Kernel::Text(made) })
        },
        &[
            ("map(['a', 'b'], [1, 2])", "{a=1, b=2}"),
            ("MAP {'a': 1, 'b': NULL}", "{a=1, b=NULL}"),
            ("map()", "{}"),
        ],
    ),
    typed(
        &["map_from_entries"],
        "list of structs",
        "map",
        "a map of a list of entries, structs of a key and a value, whatever the names of these fields",
        |types| {
            let list = list_of(types)?;
            match (element_of(types)?, types) {
                (DataType::Struct(fields), [_]) if fields.len() == 2 => Ok(Signature {
                    args: vec![list],
                    result: DataType::map(fields[0].ty, fields[1].ty),
                    kernel: Kernel::Text(of_entries),
                }),
                _ => Err(no_such_call()),
            }
        },
        &[("map_from_entries([{'k': 'a', 'v': 1}, {'k': 'b', 'v': 2}])", "{a=1, b=2}")],
    ),
    typed(
        &["map_concat"],
        "map, …",
        "map",
        "the entries of all maps; the last value of a key counts, where the key is first",
        |types| {
            let map = match common_of(types) {
                Some(map @ DataType::Map(_)) => map,
                Some(DataType::Null) => DataType::map(DataType::Null, DataType::Null),
                _ => return Err(no_such_call()),
            };
            Ok(Signature { args: vec![map; types.len()], result: map, kernel: Kernel::TextOfNulls(concat) })
        },
        &[("map_concat(MAP {'a': 1, 'b': 2}, MAP {'a': 3}, NULL)", "{a=3, b=2}")],
    ),
    typed(
        &["cardinality"],
        "map or list",
        "BIGINT",
        "the number of entries of a map, or of elements of a list",
        |types| {
            let all = match types {
                [map @ DataType::Map(_)] => *map,
                [_] => list_of(types)?,
                _ => return Err(no_such_call()),
            };
            let count =
                |row: &Row<'_>| row.parts(0).try_fold(0, |count, part| part.map(|_| count + 1)).map(Some);
            Ok(Signature { args: vec![all], result: DataType::Int64, kernel: Kernel::Whole(count) })
        },
        &[("cardinality(MAP {'a': 1, 'b': 2})", "2"), ("cardinality([1, NULL])", "2")],
    ),
    Definition {
        names: &["map_extract_value"],
        arguments: "map, key",
        gives: "type of the values",
        does: "the value of a key; NULL, if the map does not have it; also written as `map[key]`",
        examples: &[("(MAP {'a': 1, 'b': 2})['b']", "2"), ("map_extract_value(MAP {'a': 1}, 'c')", "NULL")],
        body: Body::TypedByConstants(|types, constants| {
            of_key(types, constants, std::convert::identity, Kernel::Part(value_of))
        }),
    },
    Definition {
        names: &["map_extract", "element_at"],
        arguments: "map, key",
        gives: "list",
        does: "a list of the value of a key; without an element, if the map does not have it",
        examples: &[
            ("map_extract(MAP {'a': 1, 'b': 2}, 'b')", "[2]"),
            ("element_at(MAP {'a': 1}, 'c')", "[]"),
        ],
        body: Body::TypedByConstants(|types, constants| {
            of_key(
                types,
                constants,
                DataType::list,
                Kernel::Text(|row, out| {
                    written(entry(row)?.map(|entry| second(row, entry)).into_iter(), out)
                }),
            )
        }),
    },
    Definition {
        names: &["map_contains"],
        arguments: "map, key",
        gives: "BOOLEAN",
        does: "whether the map has a key",
        examples: &[
            ("map_contains(MAP {'a': NULL}, 'a')", "true"),
            ("map_contains(MAP {'a': 1}, 'b')", "false"),
        ],
        body: Body::TypedByConstants(|types, constants| {
            of_key(
                types,
                constants,
                |_| DataType::Boolean,
                Kernel::Test(|row| Ok(Some(entry(row)?.is_some()))),
            )
        }),
    },
    typed(
        &["map_keys"],
        "map",
        "list",
        "the keys, in the order of the entries",
        |types| of_map(types, |key, _| DataType::list(key), |row, out| fields_of(row, out, first)),
        &[("map_keys(MAP {'b': 1, 'a': 2})", "[b, a]")],
    ),
    typed(
        &["map_values"],
        "map",
        "list",
        "the values, in the order of the entries",
        |types| of_map(types, |_, value| DataType::list(value), |row, out| fields_of(row, out, second)),
        &[("map_values(MAP {'b': 1, 'a': NULL})", "[1, NULL]")],
    ),
    typed(
        &["map_entries"],
        "map",
        "list of structs",
        "the entries, structs of `key` and `value`",
        |types| {
            let entry = |key, value| DataType::list(DataType::structure([("key", key), ("value", value)]));
            of_map(types, entry, |row, out| out.copy(row.bytes(0)).map(|()| true))
        },
        &[("map_entries(MAP {'a': 1})", "[{'key': a, 'value': 1}]")],
    ),
];

/// A function of a map alone, whose result type depends on those of keys and values.
fn of_map(
    types: &[DataType],
    result: impl Fn(DataType, DataType) -> DataType,
    kernel: fn(&Row<'_>, &mut Writer<'_>) -> Result<bool>,
) -> Result<Signature> {
    let [map] = types else { return Err(no_such_call()) };
    let (key, value) = map.key_and_value().ok_or_else(no_such_call)?;
    Ok(Signature { args: vec![*map], result: result(key, value), kernel: Kernel::Text(kernel) })
}

/// A function of a map and a key, whose result type depends on that of the values.
fn of_key(
    types: &[DataType],
    constants: &[Option<Value>],
    result: fn(DataType) -> DataType,
    kernel: Kernel,
) -> Result<Signature> {
    let (map, key, value) = with_key(types, constants)?;
    Ok(Signature { args: vec![map, key], result: result(value), kernel })
}

/// The types of a map and a key that is looked up in it, and that of the values. A constant that the keys'
/// type holds has this type; for others, the keys become what both have in common.
fn with_key(types: &[DataType], constants: &[Option<Value>]) -> Result<(DataType, DataType, DataType)> {
    let ([map, wanted], [_, constant]) = (types, constants) else { return Err(no_such_call()) };
    let (own, value) = map.key_and_value().ok_or_else(no_such_call)?;
    if own == DataType::Varchar && !wanted.is_text() && !matches!(wanted, DataType::Null | DataType::Enum(_))
    {
        return Err(no_such_call());
    }
    let is_held = |constant: &Value| fold::cast(constant, *wanted, own).is_some();
    let key = match constant {
        Some(constant) if is_held(constant) => own,
        _ => common_of(&[own, *wanted]).ok_or_else(no_such_call)?,
    };
    Ok((DataType::map(key, value), key, value))
}

fn made(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let [mut keys, mut values] =
        [0, 1].map(|i| (i < row.count()).then(|| row.parts(i)).into_iter().flatten());
    loop {
        match (keys.next().transpose()?, values.next().transpose()?) {
            (Some(key), Some(value)) => {
                let bytes = |part: Part<'_>| 1 + part.map_or(0, <[u8]>::len);
                out.more(1 + bytes(key) + bytes(value))?;
                nested::begin_part(out.buffer);
                nested::copy_part(key, out.buffer);
                nested::copy_part(value, out.buffer);
            }
            (None, None) => break,
            (key, _) => {
                let which = if key.is_some() { "keys than values" } else { "values than keys" };
                return Err(Error::input(format!(
                    "map takes as many keys as values, and there are more {which}"
                )));
            }
        }
    }
    nested::end_list(out.buffer);
    nested::check(out.buffer, row.result)?;
    Ok(true)
}

fn concat(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let there: Vec<usize> = (0..row.count()).filter(|i| !row.is_null(*i)).collect();
    if there.is_empty() {
        return Ok(false);
    }
    let mut entries: Vec<&[u8]> = Vec::new();
    let mut places = HashMap::new();
    for entry in there.into_iter().flat_map(|i| row.parts(i)) {
        let Some(entry) = entry? else { continue };
        match places.entry(first(row, entry)?) {
            Entry::Occupied(place) => entries[*place.get()] = entry,
            Entry::Vacant(place) => {
                place.insert(entries.len());
                entries.push(entry);
            }
        }
    }
    written(entries.into_iter().map(|entry| Ok(Some(entry))), out)
}

fn of_entries(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    nested::check(row.bytes(0), row.result)?;
    out.copy(row.bytes(0))?;
    Ok(true)
}

/// The key of an entry of the first argument.
fn first<'a>(row: &Row<'a>, entry: &'a [u8]) -> Result<Part<'a>> {
    let (key, _) = row.ty(0).key_and_value().ok_or_else(no_such_call)?;
    Reader::new(entry).field(key)
}

/// The value of an entry of the first argument.
fn second<'a>(row: &Row<'a>, entry: &'a [u8]) -> Result<Part<'a>> {
    let (key, value) = row.ty(0).key_and_value().ok_or_else(no_such_call)?;
    let mut reader = Reader::new(entry);
    reader.field(key)?;
    reader.field(value)
}

/// Writes a list of one field of all entries.
fn fields_of(
    row: &Row<'_>,
    out: &mut Writer<'_>,
    field: for<'a> fn(&Row<'a>, &'a [u8]) -> Result<Part<'a>>,
) -> Result<bool> {
    written(row.parts(0).map(|entry| entry?.map_or(Ok(None), |entry| field(row, entry))), out)
}

/// The entry whose key is the second argument.
fn entry<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    let mut wanted = Vec::new();
    nested::encode(&row.value(1), row.ty(1), &mut wanted)?;
    for entry in row.parts(0) {
        if let Some(entry) = entry?
            && first(row, entry)? == Some(&wanted)
        {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

fn value_of<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    entry(row)?.map_or(Ok(None), |entry| second(row, entry))
}
