//! Texts of lists, structs and maps: `[1, 2, NULL]`, `{'a': 1, b: "x, y"}`, `{k=1, 'a, b'=2}`, as
//! [`Value::display`] prints them.
//!
//! The type says what is read where, so the text is read once, from left to right. Elements end at a comma
//! or at the bracket of their list. A value in single or double quotes is what the quotes hold, where a
//! backslash stands before a character that is meant as it is; it must be in quotes if it is empty, the
//! word NULL, or has separators that are not within brackets of its own. A quote within a word is a letter:
//! it's. Fields of a struct may be in any order; those that are left out are NULL. The key of a map ends at
//! `=`, and must be in quotes if it has a comma or `=` of its own.

use super::parse_leniently;
use crate::statement::{Growth, Looks};
use crate::types::StructField;
use crate::value::nested::{check, encode_part, end_list};
use crate::{DataType, Result, Value};
use std::sync::Arc;

/// The list or struct that a text stands for; `None` if it is none of that type. If `lenient`, what its
/// innermost values cannot be is NULL.
///
/// # Errors
/// Those of [`super::parse_value`] for its innermost values.
pub(super) fn parse_nested(text: &str, ty: DataType, lenient: bool) -> Result<Option<Value>> {
    let mut reader = Reader { rest: text.trim(), lenient, looks: Looks::default() };
    let value = reader.nested(ty)?;
    Ok(value.filter(|_| reader.rest.is_empty()))
}

struct Reader<'a> {
    rest: &'a str,
    lenient: bool,
    looks: Looks,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn nested(&mut self, ty: DataType) -> Result<Option<Value>> {
        match ty {
            DataType::List(element) | DataType::Array(element, _) => self.list(*element, ty),
            DataType::Struct(fields) => self.structure(fields),
            DataType::Map(_) => self.map(ty),
            _ => Ok(None),
        }
    }

    fn list(&mut self, element: DataType, ty: DataType) -> Result<Option<Value>> {
        let (mut bytes, mut growth) = (Vec::new(), Growth::default());
        if !self.take('[') {
            return Ok(None);
        }
        self.skip_blanks();
        if !self.take(']') {
            loop {
                let Some(value) = self.part(element, ']')? else { return Ok(None) };
                encode_part(&value, element, &mut bytes)?;
                growth.reach(bytes.len())?;
                if self.take(']') {
                    break;
                }
                if !self.take(',') {
                    return Ok(None);
                }
            }
        }
        end_list(&mut bytes);
        check(&bytes, ty)?;
        Ok(Some(Value::Bytes(Arc::from(bytes))))
    }

    fn structure(&mut self, fields: &[StructField]) -> Result<Option<Value>> {
        let mut values = vec![Value::Null; fields.len()];
        if !self.take('{') {
            return Ok(None);
        }
        self.skip_blanks();
        if !self.take('}') {
            loop {
                let at = self
                    .name()
                    .and_then(|name| fields.iter().position(|field| field.name.eq_ignore_ascii_case(&name)));
                let Some(at) = at else { return Ok(None) };
                let Some(value) = self.part(fields[at].ty, '}')? else { return Ok(None) };
                values[at] = value;
                if self.take('}') {
                    break;
                }
                if !self.take(',') {
                    return Ok(None);
                }
            }
        }
        let mut bytes = Vec::new();
        for (value, field) in values.iter().zip(fields) {
            encode_part(value, field.ty, &mut bytes)?;
        }
        Ok(Some(Value::Bytes(Arc::from(bytes))))
    }

    fn map(&mut self, ty: DataType) -> Result<Option<Value>> {
        let (mut bytes, mut growth) = (Vec::new(), Growth::default());
        let (Some(entry), Some((key, value))) = (ty.element(), ty.key_and_value()) else { return Ok(None) };
        if !self.take('{') {
            return Ok(None);
        }
        self.skip_blanks();
        if !self.take('}') {
            loop {
                let mut fields = Vec::new();
                let Some(own) = self.part(key, '=')? else { return Ok(None) };
                if !self.take('=') {
                    return Ok(None);
                }
                encode_part(&own, key, &mut fields)?;
                let Some(own) = self.part(value, '}')? else { return Ok(None) };
                encode_part(&own, value, &mut fields)?;
                encode_part(&Value::Bytes(fields.into()), entry, &mut bytes)?;
                growth.reach(bytes.len())?;
                if self.take('}') {
                    break;
                }
                if !self.take(',') {
                    return Ok(None);
                }
            }
        }
        end_list(&mut bytes);
        check(&bytes, ty)?;
        Ok(Some(Value::Bytes(Arc::from(bytes))))
    }

    /// The name of a field and the colon behind it.
    fn name(&mut self) -> Option<String> {
        self.skip_blanks();
        if self.rest.starts_with(['\'', '"']) {
            let name = self.quoted()?;
            self.skip_blanks();
            return self.take(':').then_some(name);
        }
        let (name, rest) = self.rest.split_once(':')?;
        self.rest = rest;
        Some(name.trim().to_owned())
    }

    /// An element, the value of a field, or a key, up to the comma or the sign `end`.
    fn part(&mut self, ty: DataType, end: char) -> Result<Option<Value>> {
        self.skip_blanks();
        let start = self.rest;
        if ty.is_nested() && start.starts_with(['[', '{']) {
            let value = self.nested(ty)?;
            self.skip_blanks();
            return Ok(value);
        }
        let value = self.innermost(ty, end)?;
        self.looks.after(start.len() - self.rest.len())?;
        Ok(value)
    }

    /// One that is written as a text.
    fn innermost(&mut self, ty: DataType, end: char) -> Result<Option<Value>> {
        let start = self.rest;
        if start.starts_with(['\'', '"']) {
            let Some(text) = self.quoted() else { return Ok(None) };
            self.skip_blanks();
            if self.rest.starts_with([',', end]) {
                return self.value(&text, ty).map(Some);
            }
            self.rest = start;
        }
        let Some(text) = self.plain(end) else { return Ok(None) };
        match text.trim_end() {
            null if null.eq_ignore_ascii_case("null") => Ok(Some(Value::Null)),
            text => self.value(text, ty).map(Some),
        }
    }

    fn value(&self, text: &str, ty: DataType) -> Result<Value> {
        parse_leniently(text, ty, self.lenient)
    }

    /// What quotes hold; `None` if there is no second one.
    fn quoted(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let (mut out, mut characters) = (String::new(), self.rest.char_indices().skip(1));
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => out.push(characters.next()?.1),
                end if end == quote => {
                    self.rest = &self.rest[at + end.len_utf8()..];
                    return Some(out);
                }
                other => out.push(other),
            }
        }
        None
    }

    /// A text without quotes around it, up to a comma or `end` outside brackets; `None` if brackets do not
    /// match.
    fn plain(&mut self, end: char) -> Option<&'a str> {
        let text = self.rest;
        let (mut open, mut quote, mut before) = (Vec::new(), None, ' ');
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            match (quote, character) {
                (Some(_), '\\') => drop(characters.next()),
                (Some(by), _) => quote = Some(by).filter(|by| *by != character),
                // Within brackets, a value begins with its quote.
                (None, '\'' | '"') if !open.is_empty() && matches!(before, '[' | '{' | '(' | ',' | ':') => {
                    quote = Some(character);
                }
                (None, '[') => open.push(']'),
                (None, '{') => open.push('}'),
                (None, '(') => open.push(')'),
                (None, _) if open.is_empty() && (character == ',' || character == end) => {
                    self.rest = &text[at..];
                    return Some(&text[..at]);
                }
                (None, ']' | '}') if open.pop() != Some(character) => return None,
                (None, ')') if open.last() == Some(&')') => drop(open.pop()),
                _ => {}
            }
            if !character.is_whitespace() {
                before = character;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_value;
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
        assert_eq!(round("[ ]", numbers), "[]");
        assert_eq!(round("[[1], [], null]", DataType::list(numbers)), "[[1], [], NULL]");
        assert_eq!(round("['[1]', \"[2, 3]\"]", DataType::list(numbers)), "[[1], [2, 3]]");
        let texts = DataType::list(DataType::Varchar);
        assert_eq!(
            round(r#"[a, 'b, c', "NULL", it's, 'd\'e']"#, texts),
            r#"[a, 'b, c', 'NULL', 'it\'s', 'd\'e']"#
        );
        assert_eq!(round("[,]", texts), "['', '']");
        assert_eq!(round("[[a], {b: ',]'}, a(b,c)d]", texts), r#"['[a]', '{b: \',]\'}', 'a(b,c)d']"#);
        let ty = DataType::structure([("a", DataType::Int32), ("b", texts), ("c", DataType::Date)]);
        assert_eq!(round("{'b': [x, ':'], A: 5}", ty), "{'a': 5, 'b': [x, ':'], 'c': NULL}");
        assert_eq!(round("{}", ty), "{'a': NULL, 'b': NULL, 'c': NULL}");
        let times = DataType::structure([("a b", DataType::Timestamp), ("it's", DataType::Varchar)]);
        let expected = r#"{'a b': '2024-01-01 10:00:00', 'it\'s': 'p,q}'}"#;
        assert_eq!(round("{a b: 2024-01-01 10:00, it's: 'p,q}'}", times), expected);
        assert_eq!(round(expected, times), expected);
    }

    #[test]
    fn other_texts_are_refused() {
        let numbers = DataType::list(DataType::Int32);
        for text in ["1, 2", "[1", "[1, [2]", "[1}]", "['1]", "", "[1] x", "[[1]"] {
            assert_eq!(round(text, numbers), format!("cannot cast '{text}' to INTEGER[]"));
        }
        assert_eq!(round("[1, x]", numbers), "cannot cast 'x' to INTEGER");
        assert_eq!(round("[1,]", numbers), "cannot cast '' to INTEGER");
        let ty = DataType::structure([("a", DataType::Int32)]);
        for text in ["{b: 1}", "{a}", "{a: 1", "{a: 1]", "{'a' 1}"] {
            assert_eq!(round(text, ty), format!("cannot cast '{text}' to STRUCT(a INTEGER)"));
        }
    }

    #[test]
    fn texts_become_arrays_of_their_length() {
        let ty = DataType::array(DataType::array(DataType::Int32, 1).unwrap(), 2).unwrap();
        assert_eq!(ty.to_string(), "INTEGER[1][2]");
        assert_eq!(round("[[1], null]", ty), "[[1], NULL]");
        assert_eq!(round("[[1], [2, 3]]", ty), "a list of length 2 is no INTEGER[1]");
        assert_eq!(round("[[1]]", ty), "a list of length 1 is no INTEGER[1][2]");
        assert_eq!(round("{1}", ty), "cannot cast '{1}' to INTEGER[1][2]");
    }

    #[test]
    fn texts_become_maps() {
        let ty = DataType::map(DataType::Varchar, DataType::Int32);
        assert_eq!(round(" { b = 1, 'a, =' = NULL ,c=3} ", ty), "{b=1, 'a, ='=NULL, c=3}");
        assert_eq!(round("{}", ty), "{}");
        assert_eq!(round("{a=1, b=2, a=3}", ty), "a MAP has the key a twice");
        assert_eq!(round("{null=1}", ty), "the keys of a MAP are not NULL");
        assert_eq!(round("{a=x}", ty), "cannot cast 'x' to INTEGER");
        for text in ["{a}", "{a: 1}", "{a=1", "[a=1]", "{a, b=1}", "{a=1}}", "x"] {
            assert_eq!(round(text, ty), format!("cannot cast '{text}' to MAP(VARCHAR, INTEGER)"));
        }
        let times = DataType::map(DataType::Timestamp, DataType::map(DataType::Int32, DataType::Varchar));
        let text = "{'2024-01-01 10:00:00'={1=x, 2='{}'}, '2024-01-02 00:00:00'={}}";
        assert_eq!(round(text, times), text);
        let lists = DataType::map(DataType::list(DataType::Int32), DataType::list(DataType::Varchar));
        assert_eq!(round("{[1, 2]=[a, 'b=c'], []=[]}", lists), "{[1, 2]=[a, 'b=c'], []=[]}");
    }

    #[test]
    fn a_lenient_reader_takes_null_for_what_it_cannot_read() {
        let numbers = DataType::list(DataType::Int32);
        let read = |text: &str, ty: DataType| {
            parse_leniently(text, ty, true).map(|value| value.display(ty).to_string())
        };
        assert_eq!(read("[1, x]", numbers).unwrap(), "[1, NULL]");
        assert!(read("[1, x", numbers).is_err(), "it is no list");
        let ty = DataType::structure([("a", numbers), ("b", DataType::Date)]);
        let map = DataType::map(DataType::Int32, DataType::Int32);
        assert_eq!(read("{1=x}", map).unwrap(), "{1=NULL}");
        assert!(read("{x=1}", map).is_err(), "the key is NULL");
        assert_eq!(read("{a: [y, 2], b: z}", ty).unwrap(), "{'a': [NULL, 2], 'b': NULL}");
    }

    /// Every text comes back out of lists, structs and lists of structs, whatever is in it.
    #[test]
    fn texts_of_all_signs_come_back() {
        let signs =
            ["", "a", " ", ",", "'", "\"", "\\", "[", "]", "{", "}", "(", ")", ":", "=", "\n", "null", "ß"];
        let mut texts: Vec<String> = Vec::new();
        for a in signs {
            for b in signs {
                texts.extend(signs.map(|c| format!("{a}{b}{c}")));
            }
        }
        let inner =
            DataType::structure([("a,b", DataType::Varchar), ("c'}", DataType::list(DataType::Varchar))]);
        let outer = DataType::list(inner);
        for texts in texts.chunks(7) {
            let mut list = Vec::new();
            texts.iter().for_each(|text| {
                encode_part(&Value::Text(text.as_str().into()), DataType::Varchar, &mut list).unwrap()
            });
            encode_part(&Value::Null, DataType::Varchar, &mut list).unwrap();
            end_list(&mut list);
            let mut bytes = Vec::new();
            for text in texts {
                let mut fields = Vec::new();
                encode_part(&Value::Text(text.as_str().into()), DataType::Varchar, &mut fields).unwrap();
                encode_part(
                    &Value::Bytes(list.clone().into()),
                    DataType::list(DataType::Varchar),
                    &mut fields,
                )
                .unwrap();
                encode_part(&Value::Bytes(fields.into()), inner, &mut bytes).unwrap();
            }
            end_list(&mut bytes);
            let value = Value::Bytes(bytes.into());
            let text = value.display(outer).to_string();
            assert_eq!(parse_value(&text, outer).ok().as_ref(), Some(&value), "{text}");
        }
    }
}
