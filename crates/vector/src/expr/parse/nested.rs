//! Texts of lists and structs: `[1, 2, NULL]`, `{'a': 1, b: "x, y"}`, as [`Value::display`] prints them.
//!
//! Elements are separated by commas outside brackets, braces and quotes. A text may stand in single or double
//! quotes, where it must if it has separators or is the word NULL. Fields of a struct may be in any order;
//! those that are left out are NULL.

use super::parse_value;
use crate::types::StructField;
use crate::value::nested::{encode_part, end_list};
use crate::{DataType, Result, Value};
use std::sync::Arc;

/// The list of `element` that a text stands for; `None` if it is no list.
///
/// # Errors
/// Those of [`parse_value`] for its elements.
pub(super) fn parse_list(text: &str, element: DataType) -> Result<Option<Value>> {
    let Some(parts) = within(text, '[', ']').and_then(|inner| split(inner, ',')) else { return Ok(None) };
    let mut bytes = Vec::new();
    for part in parts {
        encode_part(&parse_part(part, element)?, element, &mut bytes)?;
    }
    end_list(&mut bytes);
    Ok(Some(Value::Bytes(Arc::from(bytes))))
}

/// The struct that a text stands for; `None` if it is none with such fields.
///
/// # Errors
/// Those of [`parse_value`] for its values.
pub(super) fn parse_struct(text: &str, fields: &[StructField]) -> Result<Option<Value>> {
    let Some(parts) = within(text, '{', '}').and_then(|inner| split(inner, ',')) else { return Ok(None) };
    let mut values = vec![Value::Null; fields.len()];
    for part in parts {
        let Some([name, value]) = split(part, ':').and_then(|both| <[&str; 2]>::try_from(both).ok()) else {
            return Ok(None);
        };
        let name = unquoted(name.trim());
        let Some(at) = fields.iter().position(|field| field.name.eq_ignore_ascii_case(&name)) else {
            return Ok(None);
        };
        values[at] = parse_part(value, fields[at].ty)?;
    }
    let mut bytes = Vec::new();
    for (value, field) in values.iter().zip(fields) {
        encode_part(value, field.ty, &mut bytes)?;
    }
    Ok(Some(Value::Bytes(Arc::from(bytes))))
}

fn within(text: &str, open: char, close: char) -> Option<&str> {
    text.trim().strip_prefix(open)?.strip_suffix(close)
}

fn parse_part(text: &str, ty: DataType) -> Result<Value> {
    let text = text.trim();
    match text.eq_ignore_ascii_case("null") {
        true => Ok(Value::Null),
        false if ty.is_nested() => parse_value(text, ty),
        false => parse_value(&unquoted(text), ty),
    }
}

/// A text without its quotes, and without the backslashes before quotes within.
fn unquoted(text: &str) -> String {
    let inner = ['\'', '"'].iter().find_map(|&quote| within(text, quote, quote).filter(|_| text.len() > 1));
    let Some(inner) = inner else { return text.to_owned() };
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next()),
            other => out.push(other),
        }
    }
    out
}

/// The parts between separators that are outside brackets, braces and quotes; `None` if these do not match.
/// A blank text has no parts.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let (mut parts, mut start, mut open, mut quote) = (Vec::new(), 0, Vec::new(), None);
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(by), _) => quote = Some(by).filter(|by| *by != character),
            // A quote within a word is a letter: it's.
            (None, '\'' | '"') if text[start..at].trim_end().is_empty() || !open.is_empty() => {
                quote = Some(character);
            }
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ']' | '}') if open.pop() != Some(character) => return None,
            (None, _) if character == separator && open.is_empty() => {
                parts.push(&text[start..at]);
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (open.is_empty() && quote.is_none()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str, ty: DataType) -> String {
        match parse_value(text, ty) {
            Ok(value) => value.display(ty).to_string(),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn texts_become_lists_and_structs() {
        let numbers = DataType::list(DataType::Int32);
        assert_eq!(round(" [1, 2 ,NULL, -3] ", numbers), "[1, 2, NULL, -3]");
        assert_eq!(round("[]", numbers), "[]");
        assert_eq!(round("[[1], [], null]", DataType::list(numbers)), "[[1], [], NULL]");
        let texts = DataType::list(DataType::Varchar);
        assert_eq!(
            round(r#"[a, 'b, c', "NULL", it's, 'd\'e']"#, texts),
            r#"[a, 'b, c', 'NULL', 'it\'s', 'd\'e']"#
        );
        let ty = DataType::structure([("a", DataType::Int32), ("b", texts), ("c", DataType::Date)]);
        assert_eq!(round("{'b': [x, ':'], A: 5}", ty), "{'a': 5, 'b': [x, ':'], 'c': NULL}");
    }

    #[test]
    fn other_texts_are_refused() {
        let numbers = DataType::list(DataType::Int32);
        for text in ["1, 2", "[1", "[1, [2]", "[1}]", "['1]", ""] {
            assert_eq!(round(text, numbers), format!("cannot cast '{text}' to INTEGER[]"));
        }
        assert_eq!(round("[1, x]", numbers), "cannot cast 'x' to INTEGER");
        assert_eq!(round("[1,]", numbers), "cannot cast '' to INTEGER");
        let ty = DataType::structure([("a", DataType::Int32)]);
        assert_eq!(round("{b: 1}", ty), "cannot cast '{b: 1}' to STRUCT(a INTEGER)");
    }
}
