//! DataFusion's errors in our words: with the right kind and SQL's names of types, and without internals of
//! the binder.

use crate::hidden::{EXACT, NEAREST, visible};
use arrow_schema::DataType as ArrowType;
use datafusion_common::{DataFusionError, SchemaError};
use entasis_vector::error::{Position, sqlstate};
use entasis_vector::{Error, ErrorKind};

/// Wraps one of our errors to pass through the binder.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Converts an error of the binder or the library to one of ours.
pub(crate) fn from_datafusion(error: DataFusionError) -> Error {
    let position = position_of(&error);
    let error = translate(error);
    match (error.position(), position) {
        (None, Some(position)) => error.with_position(position),
        _ => error,
    }
}

fn translate(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::input(clean(&other.to_string())),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => translate(*inner),
        DataFusionError::Collection(errors) => match errors.into_iter().next() {
            Some(first) => translate(first),
            None => Error::internal("an empty list of errors"),
        },
        DataFusionError::Shared(inner) => match inner.as_ref() {
            DataFusionError::External(own) if own.is::<Error>() => {
                own.downcast_ref::<Error>().expect("tested").clone()
            }
            other => Error::input(clean(&other.to_string())),
        },
        DataFusionError::ArrowError(inner, _) => entasis_arrow::arrow_error(*inner),
        DataFusionError::NotImplemented(message) => Error::not_supported(clean(&message)),
        // The binder asserts it.
        DataFusionError::Internal(message) if message.contains("struct_allowed") => {
            let error = Error::input("unnest of a STRUCT is only allowed as an item of the select list");
            error.with_hint("value.field takes a field; unnest takes lists apart")
        }
        DataFusionError::Internal(message) => match no_signature(&message) {
            Some(error) => error,
            None => Error::internal(clean(&message)),
        },
        DataFusionError::ResourcesExhausted(message) => Error::resource(clean(&message)),
        DataFusionError::IoError(inner) => Error::new(ErrorKind::Io, inner.to_string()),
        DataFusionError::SchemaError(inner, _) => schema_error(*inner),
        DataFusionError::Plan(message) => {
            no_signature(&message).unwrap_or_else(|| Error::input(clean(&message)))
        }
        DataFusionError::Execution(message) | DataFusionError::Configuration(message) => {
            Error::input(clean(&message))
        }
        other => Error::input(clean(&other.to_string())),
    }
}

/// "there is no function sum(VARCHAR)", from the library's list of signatures that the arguments do not
/// match.
fn no_signature(message: &str) -> Option<Error> {
    if !message.contains("failed to match any signature") {
        return None;
    }
    let function = message.split("Function '").nth(1)?.split('\'').next()?;
    let ty = message.split("(DataType: ").nth(1)?.split(").").next()?.split(')').next()?;
    let text = format!("there is no function {function}({})", sql_types(ty));
    Some(Error::input(text).with_sqlstate(sqlstate::NO_FUNCTION))
}

fn schema_error(error: SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let shown = match &field.relation {
                Some(relation) => format!("{relation}.{}", field.name),
                None => field.name.clone(),
            };
            let error =
                Error::input(format!("there is no column {shown}")).with_sqlstate(sqlstate::NO_COLUMN);
            let names = valid_fields.iter().map(|column| column.name.as_str());
            match entasis_vector::suggest::nearest(&field.name, names) {
                Some(near) if near != field.name => error.with_hint(format!("did you mean {near}?")),
                Some(near) => {
                    match valid_fields.iter().find(|c| c.name == near).and_then(|c| c.relation.as_ref()) {
                        Some(relation) => error.with_hint(format!("did you mean {relation}.{near}?")),
                        None => error,
                    }
                }
                None => error,
            }
        }
        SchemaError::AmbiguousReference { field } => ambiguous_name(&field.name),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => {
            Error::input(format!("there are two columns named {name}"))
                .with_hint("rename one of them with AS")
        }
    }
}

/// The error for an unqualified name that matches columns of several tables.
pub(crate) fn ambiguous_name(name: &str) -> Error {
    Error::input(format!("the column {name} is in more than one table"))
        .with_hint("write the table in front: table.column")
}

/// The position of the error that the binder reports.
fn position_of(error: &DataFusionError) -> Option<Position> {
    match error {
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let span = diagnostic.span.map(|span| span.start);
            span.map(|at| Position { line: at.line as usize, column: at.column as usize })
                .or_else(|| position_of(inner))
        }
        DataFusionError::Context(_, inner) => position_of(inner),
        DataFusionError::Collection(errors) => errors.first().and_then(position_of),
        DataFusionError::SchemaError(inner, _) => match inner.as_ref() {
            SchemaError::FieldNotFound { field, .. } | SchemaError::AmbiguousReference { field } => {
                let span = field.spans.first().map(|span| span.start);
                span.map(|at| Position { line: at.line as usize, column: at.column as usize })
            }
            _ => None,
        },
        _ => None,
    }
}

/// Removes the binder's jargon from a message.
fn clean(message: &str) -> String {
    let mut text = message.split("\n\nbacktrace:").next().unwrap_or(message);
    // The function's own message about its arguments is within the binder's message.
    text = text.split("user-defined coercion failed with: ").last().unwrap_or(text);
    for prefix in [
        "External error: ",
        "Internal error: ",
        "Error: ",
        "Error during planning: ",
        "Execution error: ",
        "Schema error: ",
        "SQL error: ",
        "type_coercion",
        "\ncaused by\n",
    ] {
        text = text.trim_start().strip_prefix(prefix).unwrap_or(text);
    }
    let text = text.split(" No function matches the given name").next().unwrap_or(text);
    let text = text.split("You might need to add explicit type casts").next().unwrap_or(text);
    let text = text.split('\n').next().unwrap_or(text).trim().trim_end_matches('.');
    readable(&reworded(text).unwrap_or_else(|| sql_types(text)))
}

/// Replaces messages that contain more than the cause.
fn reworded(message: &str) -> Option<String> {
    if message.starts_with("Unnest should be rewritten") {
        return Some("unnest is only allowed in the select list and in FROM".into());
    }
    if let Some((before, _)) = message.split_once("\" must appear in the GROUP BY clause") {
        let (_, column) = before.rsplit_once('"')?;
        // The columns by which a change finds its rows are next to its values.
        if column.contains("entasis:") {
            return Some(
                "an aggregate cannot appear in the values of a change, only in a subquery with a FROM of its own".into(),
            );
        }
        return Some(format!("the column {column} must appear in GROUP BY or in an aggregate function"));
    }
    if let Some(rest) = message.strip_prefix("Incompatible inputs for Union: Previous inputs were of type ") {
        let (before, rest) = rest.split_once(", but got incompatible type ")?;
        let (this, column) = rest.split_once(" on column ")?;
        let (before, this, column) = (sql_types(before), sql_types(this), column.trim_matches('\''));
        return Some(format!(
            "the column {column} of a set operation is {before} on one side and {this} on the other"
        ));
    }
    if let Some((_, rest)) = message.split_once("Inconsistent data type across values list at row ") {
        let (_, rest) = rest.split_once(" column ")?;
        let (column, types) = rest.split_once(". Was ")?;
        let (before, this) = types.split_once(" but found ")?;
        let (column, before, this) = (column.parse::<usize>().ok()? + 1, sql_types(before), sql_types(this));
        return Some(format!("column {column} of VALUES is {before} in one row and {this} in another"));
    }
    let (columns, names) =
        message.strip_prefix("Source table contains ")?.split_once(" columns but only ")?;
    let (names, _) = names.split_once(" names given")?;
    Some(format!("{columns} columns are given {names} names"))
}

/// A text of the binder without hidden parts.
pub(crate) fn readable(text: &str) -> String {
    visible(&text.replace(EXACT, "").replace(NEAREST, ""))
}

/// Replaces Arrow's names of types by SQL's.
fn sql_types(text: &str) -> String {
    const NAMES: [(&str, &str); 25] = [
        ("Timestamp(ns)", "TIMESTAMP"),
        ("Timestamp(µs)", "TIMESTAMP"),
        ("Timestamp(µs, \"UTC\")", "TIMESTAMP WITH TIME ZONE"),
        ("Interval(MonthDayNano)", "INTERVAL"),
        ("FixedSizeBinary(16)", "UUID"),
        ("Time64(µs)", "TIME"),
        ("Time64(ns)", "TIME"),
        ("Decimal128(", "DECIMAL("),
        ("LargeUtf8", "VARCHAR"),
        ("Utf8View", "VARCHAR"),
        ("Utf8", "VARCHAR"),
        ("BinaryView", "BLOB"),
        ("Binary", "BLOB"),
        ("Float64", "DOUBLE"),
        ("Float32", "REAL"),
        ("UInt64", "UBIGINT"),
        ("UInt32", "UINTEGER"),
        ("UInt16", "USMALLINT"),
        ("UInt8", "UTINYINT"),
        ("Int64", "BIGINT"),
        ("Int32", "INTEGER"),
        ("Int16", "SMALLINT"),
        ("Int8", "TINYINT"),
        ("Date32", "DATE"),
        ("Boolean", "BOOLEAN"),
    ];
    let mut out = text.to_string();
    for (arrow, sql) in NAMES {
        out = out.replace(arrow, sql);
    }
    out
}

/// The SQL name of an Arrow type.
pub(crate) fn type_name(ty: &ArrowType) -> String {
    match entasis_arrow::from_arrow_type(ty) {
        Ok(ty) => ty.to_string(),
        Err(_) => ty.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_jargon() {
        let error =
            DataFusionError::Plan("Cannot coerce arithmetic expression Utf8 + Int64 to valid types".into());
        let text = from_datafusion(error).to_string();
        assert_eq!(text, "Error: Cannot coerce arithmetic expression VARCHAR + BIGINT to valid types");
        let error = DataFusionError::Plan(
            "Column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column \"t.a\" must \
             appear in the GROUP BY clause or must be part of an aggregate function, currently only \"t.b\" appears"
                .into(),
        );
        let text = from_datafusion(error).to_string();
        assert_eq!(text, "Error: the column t.a must appear in GROUP BY or in an aggregate function");
        let own = DataFusionError::External(Box::new(Error::not_supported("window functions")));
        assert_eq!(from_datafusion(own.context("x")).kind(), ErrorKind::NotSupported);
    }
}
