//! JSON: an object for each row, or an array of these. How values are written: [`write_json`]. A column whose
//! name an earlier one has gets a number, since readers keep only the last of several equal keys.

use super::{Renderer, ResultPart, unique_names};
use entasis::{write_json, write_json_text};
use entasis_vector::Schema;
use std::io::{self, Write};

/// Writes rows as objects.
pub struct Json {
    /// The names as strings.
    keys: Vec<String>,
    /// Whether the objects are elements of an array, or lines.
    is_array: bool,
    rows: u64,
}

impl Json {
    /// An array.
    pub fn array(schema: &Schema) -> Json {
        Json { keys: keys(schema), is_array: true, rows: 0 }
    }

    /// An object a line.
    pub fn lines(schema: &Schema) -> Json {
        Json { keys: keys(schema), is_array: false, rows: 0 }
    }
}

impl Renderer for Json {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.is_array { write!(out, "[") } else { Ok(()) }
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..part.rows() {
            let object = object(part, &self.keys, row);
            match (self.is_array, self.rows) {
                (true, 0) => write!(out, "\n  {object}")?,
                (true, _) => write!(out, ",\n  {object}")?,
                (false, _) => writeln!(out, "{object}")?,
            }
            self.rows += 1;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<Option<u64>> {
        match (self.is_array, self.rows) {
            (true, 0) => writeln!(out, "]")?,
            (true, _) => writeln!(out, "\n]")?,
            (false, _) => {}
        }
        Ok(None)
    }
}

fn keys(schema: &Schema) -> Vec<String> {
    let key = |name: &String| {
        let mut key = String::new();
        write_json_text(&mut key, name);
        key
    };
    unique_names(schema).iter().map(key).collect()
}

fn object(part: &ResultPart<'_>, keys: &[String], row: usize) -> String {
    let mut text = String::from("{");
    for (column, key) in keys.iter().enumerate() {
        if column > 0 {
            text.push(',');
        }
        text.push_str(key);
        text.push(':');
        write_json(&mut text, &part.value(row, column), part.ty(column), part.zone());
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
        assert_eq!(testing::written(Mode::Jsonl, &none), "");
    }

    #[test]
    fn no_value_is_lost_to_another_of_the_same_name() {
        let rows = [vec![Value::Integer(1), Value::Integer(2)]];
        let result = testing::result(&[("a", DataType::Int32), ("a", DataType::Int32)], &rows);
        assert_eq!(testing::written(Mode::Jsonl, &result), "{\"a\":1,\"a_1\":2}\n");
    }
}
