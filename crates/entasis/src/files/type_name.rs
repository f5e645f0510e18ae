//! SQL type names in options, such as `types => 'id: BIGINT, price: DECIMAL(12,2)'`.

use entasis_vector::{DataType, Error, Result};

/// The type that `name` names.
///
/// # Errors
/// Input, if there is no such type.
pub(super) fn parse_type(name: &str) -> Result<DataType> {
    let upper = name.trim().to_ascii_uppercase();
    Ok(match upper.as_str() {
        "BOOLEAN" | "BOOL" => DataType::Boolean,
        "TINYINT" | "INT1" => DataType::Int8,
        "SMALLINT" | "INT2" => DataType::Int16,
        "INTEGER" | "INT" | "INT4" => DataType::Int32,
        "BIGINT" | "INT8" => DataType::Int64,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "REAL" | "FLOAT" | "FLOAT4" => DataType::Float32,
        "DOUBLE" | "DOUBLE PRECISION" | "FLOAT8" => DataType::Float64,
        "VARCHAR" | "TEXT" | "STRING" | "CHAR" => DataType::Varchar,
        "BLOB" | "BYTEA" => DataType::Blob,
        "DATE" => DataType::Date,
        "TIME" => DataType::Time,
        "TIMESTAMP" | "DATETIME" => DataType::Timestamp,
        "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => DataType::TimestampTz,
        "INTERVAL" => DataType::Interval,
        "UUID" => DataType::Uuid,
        "DECIMAL" | "NUMERIC" => DataType::Decimal { precision: 18, scale: 3 },
        _ => decimal(&upper).ok_or_else(|| Error::input(format!("there is no type '{}'", name.trim())))?,
    })
}

fn decimal(upper: &str) -> Option<DataType> {
    let digits = upper.strip_prefix("DECIMAL").or_else(|| upper.strip_prefix("NUMERIC"))?;
    let digits = digits.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
    let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    ((1..=38).contains(&precision) && scale <= precision).then_some(DataType::Decimal { precision, scale })
}

/// `name: TYPE, name: TYPE` as a list. Names may be quoted and may be parted from their types by a blank.
///
/// # Errors
/// Input, if the list is malformed or a type is unknown.
pub(super) fn parse_columns(text: &str) -> Result<Vec<(String, DataType)>> {
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
        columns.push((name.to_owned(), parse_type(ty.trim().trim_matches(['\'', '"']))?));
        rest = next.trim_start();
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_columns() {
        let columns = parse_columns("id: bigint, \"a b\" DECIMAL(12,2), {c} : text").unwrap();
        assert_eq!(columns[0], ("id".to_owned(), DataType::Int64));
        assert_eq!(columns[1], ("a b".to_owned(), DataType::Decimal { precision: 12, scale: 2 }));
        assert_eq!(parse_columns("{'x': 'DATE'}").unwrap(), [("x".to_owned(), DataType::Date)]);
        assert!(parse_columns("id").is_err());
        assert!(parse_columns("id: NOTHING").unwrap_err().message().contains("NOTHING"));
        assert!(parse_type("DECIMAL(39,2)").is_err());
    }
}
