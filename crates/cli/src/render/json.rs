//! JSON: numbers and booleans as such, everything else as strings, NULL as `null`. Numbers keep all their
//! digits, which readers that only have doubles may round. JSON has no notation for NaN and the infinities;
//! they are strings.

use super::Answer;
use entasis_vector::Value;
use std::io::{self, Write};

pub fn write_array(answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let keys = keys(answer);
    write!(out, "[")?;
    for row in 0..answer.rows() {
        writeln!(out, "{}", if row == 0 { "" } else { "," })?;
        write!(out, "  {}", object(answer, &keys, row))?;
    }
    writeln!(out, "{}]", if answer.rows() == 0 { "" } else { "\n" })
}

pub fn write_lines(answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let keys = keys(answer);
    for row in 0..answer.rows() {
        writeln!(out, "{}", object(answer, &keys, row))?;
    }
    Ok(())
}

fn keys(answer: &Answer<'_>) -> Vec<String> {
    answer.schema().iter().map(|field| string(&field.name)).collect()
}

fn object(answer: &Answer<'_>, keys: &[String], row: usize) -> String {
    let mut text = String::from("{");
    for (column, key) in keys.iter().enumerate() {
        if column > 0 {
            text.push(',');
        }
        text.push_str(key);
        text.push(':');
        text.push_str(&value(answer, row, column));
    }
    text.push('}');
    text
}

fn value(answer: &Answer<'_>, row: usize, column: usize) -> String {
    let value = answer.value(row, column);
    let ty = answer.ty(column);
    match &value {
        Value::Null => "null".to_owned(),
        Value::Boolean(v) => v.to_string(),
        Value::Float(v) if v.is_finite() => value.display(ty).to_string(),
        Value::Integer(_) if ty.is_integer() || ty.is_decimal() => value.display(ty).to_string(),
        _ => string(&answer.show(&value, column)),
    }
}

fn string(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

#[cfg(test)]
mod tests {
    use crate::render::{Mode, testing};
    use entasis_vector::{DataType, Value};

    #[test]
    fn rows_are_objects() {
        let lines = testing::written(Mode::Jsonl, &testing::sample());
        assert_eq!(
            lines,
            "{\"name\":\"a,\\\"b\\\"|\",\"n\":12,\"share\":1.50}\n\
             {\"name\":null,\"n\":3,\"share\":null}\n\
             {\"name\":\"x\\ny\",\"n\":-4,\"share\":0.05}\n"
        );
        let array = testing::written(Mode::Json, &testing::sample());
        let parsed: serde_json::Value = serde_json::from_str(&array).unwrap();
        assert_eq!(parsed.as_array().unwrap().len(), 3);
    }

    #[test]
    fn what_json_cannot_say_is_a_string() {
        let rows = [vec![Value::Float(f64::NAN), Value::Integer(0)]];
        let result = testing::result(&[("x", DataType::Float64), ("day", DataType::Date)], &rows);
        assert_eq!(testing::written(Mode::Jsonl, &result), "{\"x\":\"nan\",\"day\":\"1970-01-01\"}\n");
        let none = testing::result(&[("x", DataType::Float64)], &[]);
        assert_eq!(testing::written(Mode::Json, &none), "[]\n");
    }
}
