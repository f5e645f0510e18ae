//! Values for the parameters `$name` of statements, as `-v name=value` gives them.
//!
//! A value is a text, which is converted to the type that its place in the statement asks for, as a cast
//! would. It is passed beside the statement and never becomes part of its text.

use entasis::{Connection, DataType, Error, Result, Value};

/// Names, in lower case, and texts.
#[derive(Debug, Clone, Default)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    /// Those of the command line; of two of the same name the last counts.
    pub fn new(given: &[(String, String)]) -> Variables {
        Variables(given.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rfind(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The values of a statement's parameters, in order.
    ///
    /// # Errors
    /// Input, if there is no value for a parameter, or the value is not of the type that is asked for; those
    /// of parsing the statement.
    pub fn of(&self, connection: &Connection, sql: &str) -> Result<Vec<(Value, DataType)>> {
        // PERF: most statements have none.
        if !sql.contains('$') {
            return Ok(Vec::new());
        }
        let names = connection.parameter_names(sql)?;
        let texts: Vec<(&String, &str)> = names
            .iter()
            .map(|name| match self.get(name) {
                Some(text) => Ok((name, text)),
                None => Err(Error::input(format!("the parameter ${name} has no value"))
                    .with_hint(format!("the option -v {name}=VALUE gives it one"))),
            })
            .collect::<Result<_>>()?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        // What cannot be described gets texts, and says what is wrong when it runs.
        let types = connection.describe(sql, &[]).map(|described| described.parameters).unwrap_or_default();
        let types = types.into_iter().chain(std::iter::repeat(DataType::Varchar));
        texts.into_iter().zip(types).map(|((name, text), ty)| value(connection, name, text, ty)).collect()
    }
}

/// A text as a value of a type.
fn value(connection: &Connection, name: &str, text: &str, ty: DataType) -> Result<(Value, DataType)> {
    let text = (Value::Text(text.into()), DataType::Varchar);
    if matches!(ty, DataType::Varchar | DataType::Null) {
        return Ok(text);
    }
    let cast = connection.query(&format!("SELECT CAST($1 AS {ty})"), &[text]);
    let cast = cast.map_err(|error| Error::input(error.message()).with_context(format!("-v {name}")))?;
    let value = cast.row_values().next().and_then(|row| row.into_iter().next());
    Ok((value.unwrap_or(Value::Null), ty))
}

/// `name=value` as a pair.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> std::result::Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE")?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    match is_name {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(format!("'{name}' is not a name of letters, digits and _")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis::{Config, Database};

    #[test]
    fn texts_become_values_of_the_types_that_are_asked_for() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute("CREATE TABLE t (id INTEGER, name VARCHAR, day DATE)").unwrap();
        let given = ["n=7", "name=O'Hara; DROP TABLE t", "DAY=2024-02-29", "n=8"].map(|v| parse(v).unwrap());
        let variables = Variables::new(&given);
        let sql = "INSERT INTO t VALUES ($n, $name, $day)";
        connection.query(sql, &variables.of(&connection, sql).unwrap()).unwrap();
        let sql = "SELECT name FROM t WHERE id = $N AND day >= $day AND name = $name LIMIT $n";
        let rows = connection.query(sql, &variables.of(&connection, sql).unwrap()).unwrap();
        let row = rows.row_values().next().unwrap();
        assert_eq!(row, [Value::Text("O'Hara; DROP TABLE t".into())]);
        assert_eq!(variables.of(&connection, "SELECT '$x', 1").unwrap(), []);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        let variables = Variables::new(&[("n".into(), "x".into())]);
        let error = |sql| variables.of(&connection, sql).unwrap_err();
        assert!(error("SELECT $other").hint().unwrap().contains("-v other="));
        assert!(error("SELECT 1 LIMIT $n").message().starts_with("-v n: "));
        assert!(parse("n").is_err() && parse("1=2").is_err() && parse("a b=2").is_err());
        assert_eq!(parse("a=b=c"), Ok(("a".into(), "b=c".into())));
    }
}
