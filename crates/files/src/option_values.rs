//! The values of options, as in `read_csv('f', delim => '|')` and `COPY t TO 'f' (HEADER false)`.
//!
//! An option is an [`Argument`], which may be a list or a struct; options of `COPY` are plain values. The
//! meaning of each option is documented with its field (`FileOptions`, `CsvOptions`, the settings of `COPY …
//! TO`).

use super::delimiter::Delimiter;
use entasis_functions::Argument;
use entasis_vector::{DataType, Error, Result, Value};

/// The type that a text names.
pub type ParseType = fn(&str) -> Result<DataType>;

/// An option of `COPY` as an argument.
pub(super) fn plain(value: &Value) -> Argument {
    Argument::Value(value.clone(), DataType::Null)
}

fn wrong(name: &str, takes: &str, value: &Argument) -> Error {
    let shown = match value {
        Argument::Value(Value::Text(text), _) => format!("'{text}'"),
        Argument::Value(Value::Null, _) => "NULL".to_owned(),
        Argument::Value(value, ty) => value.display(*ty).to_string(),
        Argument::List(_) => "a list".to_owned(),
        Argument::Struct(_) => "a struct".to_owned(),
    };
    Error::input(format!("option {name} takes {takes}, not {shown}"))
}

/// The value of an option that takes text.
pub(super) fn text_option<'a>(name: &str, value: &'a Argument) -> Result<&'a str> {
    match value {
        Argument::Value(Value::Text(text), _) => Ok(text),
        other => Err(wrong(name, "a text", other)),
    }
}

/// The value of an option that takes a text or a list of texts.
pub(super) fn texts_option(name: &str, value: &Argument) -> Result<Vec<String>> {
    match value {
        Argument::List(texts) => texts.iter().map(|text| Ok(text_option(name, text)?.to_owned())).collect(),
        text => Ok(vec![text_option(name, text)?.to_owned()]),
    }
}

/// The value of an option that takes a truth value.
pub(super) fn flag_option(name: &str, value: &Argument) -> Result<bool> {
    match value {
        Argument::Value(Value::Boolean(value), _) => Ok(*value),
        Argument::Value(Value::Integer(number @ (0 | 1)), _) => Ok(*number == 1),
        Argument::Value(Value::Text(text), _)
            if ["true", "on"].iter().any(|word| text.eq_ignore_ascii_case(word)) =>
        {
            Ok(true)
        }
        Argument::Value(Value::Text(text), _)
            if ["false", "off"].iter().any(|word| text.eq_ignore_ascii_case(word)) =>
        {
            Ok(false)
        }
        other => Err(wrong(name, "true or false", other)),
    }
}

/// The value of an option that takes a count.
pub(super) fn count_option(name: &str, value: &Argument) -> Result<usize> {
    match value {
        Argument::Value(Value::Integer(count), _) if usize::try_from(*count).is_ok() => Ok(*count as usize),
        other => Err(wrong(name, "a count", other)),
    }
}

/// The value of an option that takes one ASCII character; `\t` stands for a tab.
pub(super) fn byte_option(name: &str, value: &Argument) -> Result<u8> {
    match text_option(name, value)? {
        "\\t" => Ok(b'\t'),
        text => match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
            _ => Err(Error::input(format!("option {name} takes one ASCII character, not '{text}'"))),
        },
    }
}

/// The value of an option that takes what separates fields; `\t` stands for a tab.
pub(super) fn delimiter_option(name: &str, value: &Argument) -> Result<Delimiter> {
    let text = text_option(name, value)?;
    Delimiter::new(if text == "\\t" { "\t" } else { text }).ok_or_else(|| {
        Error::input(format!("option {name} takes one to four bytes without a line end, not '{text}'"))
    })
}

/// The value of an option that takes columns with their types: `{'id': 'BIGINT'}`, or as text `'id: BIGINT,
/// day: DATE'`.
pub(super) fn types_option(
    name: &str,
    value: &Argument,
    parse: ParseType,
) -> Result<Vec<(String, DataType)>> {
    match value {
        Argument::Struct(fields) => {
            let field =
                |(column, ty): &(String, Argument)| Ok((column.clone(), type_option(name, ty, parse)?));
            fields.iter().map(field).collect()
        }
        Argument::Value(Value::Text(text), _) => parse_columns(text, parse),
        other => Err(wrong(name, "columns and types as in {'id': 'BIGINT'}", other)),
    }
}

/// The value of an option that takes the name of a type.
pub(super) fn type_option(name: &str, value: &Argument, parse: ParseType) -> Result<DataType> {
    parse(text_option(name, value)?).map_err(|error| error.with_context(format!("option {name}")))
}

/// Parses `name: TYPE, name: TYPE`. Names may be quoted, and a blank may separate them from their types.
fn parse_columns(text: &str, parse: ParseType) -> Result<Vec<(String, DataType)>> {
    let mut columns = Vec::new();
    let mut rest = text.trim().trim_start_matches('{').trim_end_matches('}').trim();
    while !rest.is_empty() {
        let (name, after) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => rest[1..].split_once(quote),
            _ => rest.find([':', ' ']).map(|at| rest.split_at(at)),
        }
        .ok_or_else(|| Error::input(format!("'{rest}' is not of the form name: TYPE")))?;
        let after = after.trim_start().trim_start_matches(':').trim_start();
        // The comma inside DECIMAL(12,2) does not end the type.
        let mut depth = 0;
        let end = after.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        });
        let (ty, next) = end.map_or((after, ""), |at| (&after[..at], &after[at + 1..]));
        columns.push((name.to_owned(), parse(ty.trim().trim_matches(['\'', '"']))?));
        rest = next.trim_start();
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::parse_type;

    #[test]
    fn columns_and_types_as_text() {
        let columns = parse_columns("id: bigint, \"a b\" DECIMAL(12,2), {c} : text", parse_type).unwrap();
        assert_eq!(columns[0], ("id".to_owned(), DataType::Int64));
        assert_eq!(columns[1], ("a b".to_owned(), DataType::Decimal { precision: 12, scale: 2 }));
        assert_eq!(parse_columns("{'x': 'DATE'}", parse_type).unwrap(), [("x".to_owned(), DataType::Date)]);
        assert!(parse_columns("id", parse_type).is_err());
        assert!(parse_columns("id: NOTHING", parse_type).unwrap_err().message().contains("NOTHING"));
        assert!(parse_columns("id: DECIMAL(39,2)", parse_type).is_err());
    }

    #[test]
    fn values_that_an_option_does_not_take_are_named() {
        let error = flag_option("header", &plain(&Value::Text("maybe".into()))).unwrap_err();
        assert_eq!(error.message(), "option header takes true or false, not 'maybe'");
        let error = text_option("delim", &Argument::List(vec![])).unwrap_err();
        assert_eq!(error.message(), "option delim takes a text, not a list");
    }
}
