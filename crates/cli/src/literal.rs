//! Values and names as SQL.
//!
//! A value is written so that `INSERT … VALUES` reads it back as the same one, whatever the session's
//! settings: the column gives a text its type.

use entasis::{DataType, Value};
use entasis_vector::name;
use std::collections::HashSet;
use std::sync::OnceLock;

/// A value of a type, as it is written in the `VALUES` of a column of this type.
pub fn literal(value: &Value, ty: DataType) -> String {
    match (value, ty) {
        (Value::Null, _) => "NULL".to_owned(),
        (Value::Boolean(_), _) => value.display(ty).to_string(),
        (Value::Integer(_), ty) if ty.is_integer() || ty.is_decimal() => value.display(ty).to_string(),
        // A number with an exponent is a DOUBLE from the beginning. A REAL is read from its text, because a
        // double between would be rounded twice.
        (Value::Float(v), DataType::Float64) if v.is_finite() => format!("{v:e}"),
        (Value::Bytes(bytes), DataType::Blob) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("X'{digits}'")
        }
        _ => text_literal(&value.display(ty).to_string()),
    }
}

/// A text in quotes.
pub fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Keywords that are names of columns everywhere.
const NAMES: [&str; 18] = [
    "comment", "count", "date", "day", "hour", "id", "key", "month", "name", "number", "share", "status",
    "text", "time", "type", "value", "version", "year",
];

/// A name, in quotes unless it is plain and no keyword.
pub fn quoted_name(name: &str) -> String {
    static KEYWORDS: OnceLock<HashSet<String>> = OnceLock::new();
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let keywords = || KEYWORDS.get_or_init(|| entasis::keywords().into_iter().collect());
    match is_plain && (NAMES.contains(&name) || !keywords().contains(&name.to_ascii_uppercase())) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A name that may have a schema and a database, with its parts in quotes.
pub fn quoted_path(name: &str) -> String {
    let quote = |part: &String| format!("\"{}\"", part.replace('"', "\"\""));
    name::parts(name).iter().map(quote).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis::{Config, Database};

    #[test]
    fn values_are_written_with_all_that_they_are() {
        for (value, ty, text) in [
            (Value::Integer(-150), DataType::Decimal { precision: 4, scale: 2 }, "-1.50"),
            (Value::Float(0.1), DataType::Float64, "1e-1"),
            (Value::Float(-0.0), DataType::Float64, "-0e0"),
            (Value::Float(f64::NEG_INFINITY), DataType::Float64, "'-inf'"),
            (Value::Float(f64::from(0.1f32)), DataType::Float32, "'0.1'"),
            (Value::Text("it's".into()), DataType::Varchar, "'it''s'"),
            (Value::Bytes((*b"\0'").into()), DataType::Blob, "X'0027'"),
            (Value::Integer(0), DataType::TimestampTz, "'1970-01-01 00:00:00+00'"),
            (Value::Null, DataType::Date, "NULL"),
            (Value::Boolean(true), DataType::Boolean, "true"),
        ] {
            assert_eq!(literal(&value, ty), text);
        }
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, text) in [
            ("a_1", "a_1"),
            ("A", "\"A\""),
            ("select", "\"select\""),
            ("a\"b", "\"a\"\"b\""),
            ("1a", "\"1a\""),
        ] {
            assert_eq!(quoted_name(name), text);
        }
        assert_eq!(quoted_path("s.select"), "\"s\".\"select\"");
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        let columns = NAMES.map(|name| format!("{name} INTEGER")).join(", ");
        connection.execute(&format!("CREATE TABLE t ({columns})")).unwrap();
        let (names, values) = (NAMES.join(", "), NAMES.map(|_| "1").join(", "));
        connection.execute(&format!("INSERT INTO t ({names}) VALUES ({values})")).unwrap();
        connection.execute(&format!("SELECT {names} FROM t")).unwrap();
    }
}
