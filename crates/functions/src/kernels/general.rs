//! Functions of values of any type.

use super::numbers::unified;
use crate::definition::{Body, Definition, Kernel, Overload, Row, Signature, define, elsewhere, takes};
use entasis_vector::hash::{hash_bytes, hash_u64};
use entasis_vector::{DataType, Error, Result};
use std::cmp::Ordering;
use std::fmt::Write;

const TEXT: DataType = DataType::Varchar;

pub const FUNCTIONS: &[Definition] = &[
    elsewhere(
        &["coalesce"],
        "value, …",
        "common type",
        "the first that is not NULL",
        &[("coalesce(NULL, 2, 3)", "2")],
    ),
    elsewhere(
        &["ifnull", "nvl"],
        "value, other",
        "common type",
        "other where value is NULL",
        &[("ifnull(NULL, 2)", "2")],
    ),
    elsewhere(
        &["nvl2"],
        "value, a, b",
        "common type",
        "a where value is not NULL, else b",
        &[("nvl2(NULL, 1, 2)", "2")],
    ),
    elsewhere(
        &["nullif"],
        "a, b",
        "type of a",
        "NULL where both are equal, else a",
        &[("nullif(1, 1)", "NULL"), ("nullif(1, 2)", "1")],
    ),
    elsewhere(
        &["if"],
        "condition, a, b",
        "common type",
        "a where the condition is true, else b",
        &[("if(2 > 1, 'yes', 'no')", "yes")],
    ),
    Definition {
        names: &["greatest"],
        arguments: "value, …",
        gives: "common type",
        does: "the greatest that is not NULL",
        examples: &[("greatest(2, NULL, 3.5)", "3.5")],
        body: Body::Typed(|types| extreme(types, Kernel::Choice(|row| Ok(chosen(row, Ordering::Greater))))),
    },
    Definition {
        names: &["least"],
        arguments: "value, …",
        gives: "common type",
        does: "the least that is not NULL",
        examples: &[("least('b', 'a')", "a")],
        body: Body::Typed(|types| extreme(types, Kernel::Choice(|row| Ok(chosen(row, Ordering::Less))))),
    },
    define(
        &["typeof"],
        "value",
        "VARCHAR",
        "name of its type",
        &[takes(
            &[DataType::Null],
            TEXT,
            Kernel::TextOfNulls(|row, out| {
                let _ = match row.ty(0) {
                    DataType::Null => write!(out, "\"NULL\""),
                    ty => write!(out, "{ty}"),
                };
                Ok(true)
            }),
        )],
        &[("typeof(1.5)", "DECIMAL(2,1)"), ("typeof(DATE '2024-01-01')", "DATE")],
    ),
    define(
        &["hash"],
        "value, …",
        "UBIGINT",
        "a number that is the same for equal values of one type; it may be another in another version",
        &[Overload {
            args: &[DataType::Null],
            rest: Some(DataType::Null),
            result: DataType::UInt64,
            kernel: Kernel::WideOfNulls(hash),
        }],
        &[("hash('a') = hash('a')", "true")],
    ),
    define(
        &["constant_or_null"],
        "value, other",
        "VARCHAR",
        "value as text, or NULL where other is",
        &[takes(
            &[TEXT, DataType::Null],
            TEXT,
            Kernel::Text(|row, out| out.copy(row.bytes(0)).map(|()| true)),
        )],
        &[("constant_or_null('a', NULL)", "NULL")],
    ),
    define(
        &["error"],
        "text",
        "VARCHAR",
        "an error with this text",
        &[takes(&[TEXT], TEXT, Kernel::Text(|row, _| Err(Error::input(row.text(0)))))],
        &[("CASE WHEN true THEN 'fine' ELSE error('never') END", "fine")],
    ),
    define(
        &["version"],
        "",
        "VARCHAR",
        "the version of Entasis",
        &[takes(
            &[],
            TEXT,
            Kernel::TextOfNulls(|_, out| {
                let _ = write!(out, "Entasis {}", env!("CARGO_PKG_VERSION"));
                Ok(true)
            }),
        )],
        &[("starts_with(version(), 'Entasis')", "true")],
    ),
    define(
        &["current_schema"],
        "",
        "VARCHAR",
        "the schema that names are looked for in",
        &[takes(
            &[],
            TEXT,
            Kernel::TextOfNulls(|_, out| {
                Ok({
                    out.text("main");
                    true
                })
            }),
        )],
        &[("current_schema()", "main")],
    ),
    define(
        &["current_database"],
        "",
        "VARCHAR",
        "the database that names are looked for in",
        &[takes(
            &[],
            TEXT,
            Kernel::TextOfNulls(|_, out| {
                out.text("memory");
                Ok(true)
            }),
        )],
        &[("length(current_database()) > 0", "true")],
    ),
    elsewhere(&["nextval"], "sequence", "BIGINT", "the next number of a sequence", &[]),
    elsewhere(&["currval"], "sequence", "BIGINT", "the number that the session got last", &[]),
];

fn extreme(types: &[DataType], kernel: Kernel) -> Result<Signature> {
    let ty = if types.is_empty() { None } else { unified(types) };
    let ty = ty.ok_or_else(|| Error::input("the values have no common type"))?;
    Ok(Signature { args: vec![ty; types.len()], result: ty, kernel })
}

/// The number of the argument that comes first in this order.
fn chosen(row: &Row<'_>, wanted: Ordering) -> Option<usize> {
    let mut best: Option<usize> = None;
    for i in (0..row.count()).filter(|i| !row.is_null(*i)) {
        if best.is_none_or(|best| row.value(i).cmp_in(&row.value(best), row.ty(i)) == wanted) {
            best = Some(i);
        }
    }
    best
}

fn hash(row: &Row<'_>) -> Result<Option<i128>> {
    let one = |i: usize| match row.is_null(i) {
        true => 0x9e37_79b9_7f4a_7c15,
        false if row.ty(i).is_string() || row.ty(i).is_nested() => hash_bytes(row.bytes(i)),
        false => hash_bytes(row.value(i).display(row.ty(i)).to_string().as_bytes()),
    };
    let all = (0..row.count()).fold(0u64, |hash, i| hash_u64(hash.rotate_left(23) ^ one(i)));
    Ok(Some(all.into()))
}
