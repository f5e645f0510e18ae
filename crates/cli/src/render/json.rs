//! JSON: an object for each row, or an array of these. How values are written: [`write_json`].

use super::Answer;
use entasis::{write_json, write_json_text};
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
    let key = |name: &str| {
        let mut key = String::new();
        write_json_text(&mut key, name);
        key
    };
    answer.schema().iter().map(|field| key(&field.name)).collect()
}

fn object(answer: &Answer<'_>, keys: &[String], row: usize) -> String {
    let mut text = String::from("{");
    for (column, key) in keys.iter().enumerate() {
        if column > 0 {
            text.push(',');
        }
        text.push_str(key);
        text.push(':');
        write_json(&mut text, &answer.value(row, column), answer.ty(column), answer.zone());
    }
    text.push('}');
    text
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
