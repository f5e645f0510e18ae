//! Functions of structs, whose fields have names.

use super::lists::{no_such_call, put};
use crate::definition::{Body, Definition, Kernel, Row, Signature};
use entasis_vector::parts::Part;
use entasis_vector::types::StructField;
use entasis_vector::value::nested::Reader;
use entasis_vector::{DataType, Error, Result, Value};
use std::collections::HashSet;

pub const FUNCTIONS: &[Definition] = &[
    Definition {
        names: &["named_struct"],
        arguments: "name, value, …",
        gives: "struct",
        does: "a struct with fields of these names; also written as `{'name': value, …}` or `struct_pack(name := value, …)`",
        examples: &[
            ("{'a': 1, 'b': 'x'}", "{'a': 1, 'b': x}"),
            ("named_struct('a', 1, 'b', NULL)", "{'a': 1, 'b': NULL}"),
        ],
        body: Body::TypedByConstants(structure),
    },
    Definition {
        names: &["struct_extract"],
        arguments: "struct, name",
        gives: "type of the field",
        does: "a field of a struct; also written as `struct.name` and `struct['name']`",
        examples: &[("struct_extract({'a': 1, 'b': 'x'}, 'b')", "x"), ("({'a': 1}).a", "1")],
        body: Body::TypedByConstants(field),
    },
];

/// The signature of a struct of names and values in turns.
fn structure(types: &[DataType], constants: &[Option<Value>]) -> Result<Signature> {
    if types.is_empty() || types.len() % 2 == 1 {
        return Err(no_such_call());
    }
    let mut fields: Vec<(&str, DataType)> = Vec::with_capacity(types.len() / 2);
    let mut names = HashSet::new();
    for (name, ty) in constants.chunks(2).zip(types.chunks(2)) {
        let Some(Value::Text(name)) = &name[0] else { return Err(no_such_call()) };
        if !names.insert(name.to_ascii_lowercase()) {
            let error = Error::input(format!("a struct has two fields called {name}"));
            return Err(error.with_hint("give them different names; upper and lower case are the same"));
        }
        fields.push((name, ty[1]));
    }
    let result = DataType::structure(fields);
    let kernel = Kernel::TextOfNulls(|row, out| {
        (1..row.count()).step_by(2).try_for_each(|i| put(row, i, out))?;
        Ok(true)
    });
    Ok(Signature { args: types.to_vec(), result, kernel })
}

/// The signature of a field of a struct, or of its position from 1.
fn field(types: &[DataType], constants: &[Option<Value>]) -> Result<Signature> {
    let (&[of @ DataType::Struct(fields), key], [_, Some(name)]) = (types, constants) else {
        return Err(no_such_call());
    };
    let at = named(fields, name).ok_or_else(|| {
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        Error::input(format!("a {of} has no field {}", name.display(key)))
            .with_hint(format!("it has {}", names.join(", ")))
    })?;
    let ty = fields[at].ty;
    Ok(Signature { args: vec![of, key], result: ty, kernel: Kernel::Part(of_field) })
}

/// The index of the field of this name, or at this position.
fn named(fields: &[StructField], name: &Value) -> Option<usize> {
    match name {
        Value::Text(name) => called(fields, name),
        Value::Integer(at) => at_position(fields, *at),
        _ => None,
    }
}

fn called(fields: &[StructField], name: &str) -> Option<usize> {
    fields.iter().position(|field| field.name.eq_ignore_ascii_case(name))
}

fn at_position(fields: &[StructField], at: i128) -> Option<usize> {
    usize::try_from(at - 1).ok().filter(|at| *at < fields.len())
}

fn of_field<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    let DataType::Struct(fields) = row.ty(0) else { return Err(no_such_call()) };
    let wanted = match row.ty(1) {
        DataType::Varchar => called(fields, row.text(1)),
        _ => at_position(fields, row.wide(1)),
    };
    let (before, after) = fields.split_at(wanted.ok_or_else(no_such_call)?);
    let mut reader = Reader::new(row.bytes(0));
    for field in before {
        reader.field(field.ty)?;
    }
    after.first().map_or(Ok(None), |field| reader.field(field.ty))
}
