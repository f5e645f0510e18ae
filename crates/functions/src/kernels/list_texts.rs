//! Lists as texts: their elements joined, and texts taken apart.

use super::lists::{element, no_such_call, of_list, typed};
use super::text::split_at;
use crate::definition::{Definition, Kernel, Row, Signature};
use entasis_vector::value::nested;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Result};

const TEXT: DataType = DataType::Varchar;

pub const FUNCTIONS: &[Definition] = &[
    typed(
        &["array_to_string", "list_to_string"],
        "list, separator",
        "VARCHAR",
        "the elements that are not NULL as text, with a separator between them",
        |types| of_list(types, &[TEXT], TEXT, Kernel::Text(joined)),
        &[("array_to_string([1, NULL, 2], '-')", "1-2")],
    ),
    typed(
        &["string_split", "str_split", "split"],
        "text, separator",
        "VARCHAR[]",
        "the parts of a text between separators; its characters, if the separator is empty; the text alone, if it is NULL",
        |types| of_texts(types, Kernel::TextOfNulls(|row, out| split(row, out, false))),
        &[
            ("string_split('a-b--c', '-')", "[a, b, '', c]"),
            ("string_split('héj', '')", "[h, é, j]"),
            ("string_split('a-b', NULL)", "[a-b]"),
        ],
    ),
    typed(
        &["string_to_array"],
        "text, separator",
        "VARCHAR[]",
        "the parts of a text between separators; its characters, if the separator is empty or NULL",
        |types| of_texts(types, Kernel::TextOfNulls(|row, out| split(row, out, true))),
        &[("string_to_array('a-b--c', '-')", "[a, b, '', c]"), ("string_to_array('héj', NULL)", "[h, é, j]")],
    ),
];

fn joined(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (ty, mut separator) = (element(row, 0), "");
    for part in row.parts(0) {
        let Some(part) = part? else { continue };
        out.copy(separator.as_bytes())?;
        separator = row.text(1);
        match ty {
            TEXT => out.copy(nested::decode_text(part)?.as_bytes())?,
            ty => out.copy(row.zone.shown(&nested::decode(part, ty)?, ty).as_bytes())?,
        }
    }
    Ok(true)
}

/// A function of two texts that gives a list of texts.
fn of_texts(types: &[DataType], kernel: Kernel) -> Result<Signature> {
    match types {
        [a, b] if [a, b].iter().all(|ty| matches!(ty, DataType::Varchar | DataType::Null)) => {
            Ok(Signature { args: vec![TEXT; 2], result: DataType::list(TEXT), kernel })
        }
        _ => Err(no_such_call()),
    }
}

/// The parts of a text. Without a separator, they are its characters or only the text itself.
fn split(row: &Row<'_>, out: &mut Writer<'_>, in_characters: bool) -> Result<bool> {
    if row.is_null(0) {
        return Ok(false);
    }
    let text = row.text(0);
    let separator = if row.is_null(1) { None } else { Some(row.text(1)) };
    let separator = separator.or(in_characters.then_some(""));
    let part = |part: &str, out: &mut Writer<'_>| nested::write_string(part.as_bytes(), out);
    match separator {
        None => part(text, out)?,
        // DuckDB's `string_split` of an empty text has it as its only part, PostgreSQL's function none.
        Some("") if text.is_empty() && !in_characters => part("", out)?,
        Some("") => text.char_indices().try_for_each(|(at, c)| part(&text[at..at + c.len_utf8()], out))?,
        Some(separator) => split_at(text, separator).try_for_each(|text| part(text?, out))?,
    }
    nested::end_list(out.buffer);
    Ok(true)
}
