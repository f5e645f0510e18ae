//! Records of a run as JSON, and numbers in tables.

use std::fmt;

/// A value of JSON.
#[derive(Debug, Clone)]
pub enum Json {
    /// A number; `null` if it is not finite.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Names and values, in this order.
    Map(Vec<(&'static str, Json)>),
}

impl From<f64> for Json {
    fn from(number: f64) -> Json {
        Json::Number(number)
    }
}
impl From<Option<f64>> for Json {
    fn from(number: Option<f64>) -> Json {
        Json::Number(number.unwrap_or(f64::NAN))
    }
}
impl From<usize> for Json {
    fn from(number: usize) -> Json {
        Json::Number(number as f64)
    }
}
impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_owned())
    }
}
impl From<Vec<Json>> for Json {
    fn from(list: Vec<Json>) -> Json {
        Json::List(list)
    }
}

/// A map with these names.
pub fn map<const N: usize>(entries: [(&'static str, Json); N]) -> Json {
    Json::Map(entries.into())
}

fn text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Number(number) if !number.is_finite() => f.write_str("null"),
            // Six digits are more than any figure here is worth.
            Json::Number(number) if number.abs() < 1e6 => write!(f, "{}", (number * 1e6).round() / 1e6),
            Json::Number(number) => write!(f, "{number}"),
            Json::Text(own) => text(f, own),
            Json::List(list) => {
                f.write_str("[")?;
                for (at, value) in list.iter().enumerate() {
                    write!(f, "{}{value}", if at == 0 { "" } else { ",\n " })?;
                }
                f.write_str("]")
            }
            Json::Map(entries) => {
                f.write_str("{")?;
                for (at, (name, value)) in entries.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    text(f, name)?;
                    write!(f, ": {value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A number in a table, with three digits or so; `–` if there is none.
pub fn figure(number: Option<f64>) -> String {
    match number {
        None => "–".to_owned(),
        Some(number) if number >= 100.0 => format!("{number:.0}"),
        Some(number) if number >= 10.0 => format!("{number:.1}"),
        Some(number) => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_json() {
        let json =
            map([("a\"", 1.5.into()), ("b", vec![f64::NAN.into(), "x\n".into(), 7usize.into()].into())]);
        assert_eq!(json.to_string(), "{\"a\\\"\": 1.5, \"b\": [null,\n \"x\\u000a\",\n 7]}");
        assert_eq!(figure(Some(1.234)) + &figure(Some(123.4)) + &figure(None), "1.23123–");
    }
}
