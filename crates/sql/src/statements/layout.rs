//! The options of a table's layout and encodings, in `WITH (…)` of `CREATE TABLE` and `SET (…)` of `ALTER
//! TABLE`.
//!
//! | option | value |
//! |---|---|
//! | `layout` | the name of a layout, with or without quotes |
//! | `layout_key` | one or more columns: `a`, `(a, b)` or `'a, b'` |
//! | `layout_curve` | `hilbert` or `zorder`, for the order by two to four columns of the key together; `none` |
//! | `partitions` | a number from 1 |
//! | `ghost` | a share of the slots, from 0 to less than 1, or in percent: `0.01`, `'1%'` |
//! | `compression` | `auto`, `none`, or an encoding to use wherever possible |
//! | `read_sla`, `update_sla` | how long a point query, or an insert, may take: `'20us'`; `none` for no promise |
//!
//! In parentheses, `compression` can also be set for single columns: `(packed, a = none)`.

use super::columns::find_column;
use entasis_engine::relation::{Compression, Curve, LayoutChoice, LayoutName};
use entasis_syntax::place::span_position;
use entasis_vector::{Error, Field, Result};
use sqlparser::ast::{BinaryOperator, CreateTableOptions, Expr, Ident, SqlOption, Value};

const OPTIONS: [&str; 8] =
    ["layout", "layout_key", "layout_curve", "partitions", "ghost", "compression", "read_sla", "update_sla"];
const LAYOUTS: [&str; 7] = ["auto", "insertion", "sorted", "delta", "equi", "equi_ghost", "casper"];

/// The choices made by the options of a `CREATE TABLE` with these columns.
pub(crate) fn of_table(options: &CreateTableOptions, columns: &[Field]) -> Result<LayoutChoice> {
    match options {
        CreateTableOptions::None => Ok(LayoutChoice::default()),
        CreateTableOptions::With(options)
        | CreateTableOptions::Options(options)
        | CreateTableOptions::Plain(options)
        | CreateTableOptions::TableProperties(options) => choice(options, columns),
    }
}

/// The choices made by these options.
pub(crate) fn choice(options: &[SqlOption], columns: &[Field]) -> Result<LayoutChoice> {
    let mut choice = LayoutChoice::default();
    let mut seen = Vec::new();
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(Error::input(format!("the table option {option} must have the form name = value")));
        };
        let name = key.value.to_ascii_lowercase();
        if seen.contains(&name) {
            return Err(at(Error::input(format!("the option {name} is given twice")), key));
        }
        match name.as_str() {
            "layout" => choice.layout = Some(layout(value)?),
            "layout_key" => choice.key = Some(layout_key(value, columns)?),
            "layout_curve" => choice.curve = Some(curve(value)?),
            "partitions" => choice.partitions = Some(partitions(value)?),
            "ghost" => choice.ghost = Some(ghost(value)?),
            "compression" => compressions(value, columns, &mut choice)?,
            "read_sla" => choice.read_sla = Some(latency(&name, value)?),
            "update_sla" => choice.update_sla = Some(latency(&name, value)?),
            _ => {
                let error = at(Error::input(format!("a table has no option {name}")), key);
                return Err(match entasis_vector::suggest::nearest(&name, OPTIONS) {
                    Some(near) => error.with_hint(format!("did you mean {near}?")),
                    None => error.with_hint(format!("the options are {}", OPTIONS.join(", "))),
                });
            }
        }
        seen.push(name);
    }
    Ok(choice)
}

fn layout(value: &Expr) -> Result<LayoutName> {
    let name = text(value).map(|name| name.to_ascii_lowercase()).unwrap_or_else(|| value.to_string());
    LayoutName::parse(&name).ok_or_else(|| {
        Error::input(format!("there is no layout {name}"))
            .with_hint(format!("the layouts are {}", LAYOUTS.join(", ")))
    })
}

/// A curve; none for the order by one column after the other.
fn curve(value: &Expr) -> Result<Option<Curve>> {
    let name = text(value).map(|name| name.to_ascii_lowercase()).unwrap_or_else(|| value.to_string());
    match Curve::parse(&name) {
        None if name == "none" => Ok(None),
        None => {
            let error = Error::input(format!("there is no curve {name}"));
            Err(error.with_hint("the curves are hilbert and zorder; none takes one back"))
        }
        found => Ok(found),
    }
}

fn compression(value: &Expr) -> Result<Compression> {
    let name = text(value).map(|name| name.to_ascii_lowercase()).unwrap_or_else(|| value.to_string());
    Compression::parse(&name).ok_or_else(|| Compression::unknown(&name))
}

/// Reads the compression of the table, and those of single columns.
fn compressions(value: &Expr, columns: &[Field], choice: &mut LayoutChoice) -> Result<()> {
    let parts = match value {
        Expr::Tuple(parts) => &parts[..],
        Expr::Nested(part) => std::slice::from_ref(&**part),
        single => std::slice::from_ref(single),
    };
    for part in parts {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = part else {
            if choice.compression.replace(compression(part)?).is_some() {
                return Err(Error::input(format!("compression is given twice: {value}")));
            }
            continue;
        };
        let name = column(left, "compression")?;
        let column = find_column(columns, &name).map_err(|e| e.with_context("compression"))?;
        let of_columns = &mut choice.column_compressions;
        if of_columns.iter().any(|(other, _)| *other == column) {
            return Err(at(
                Error::input(format!("the column {} occurs twice in compression", name.value)),
                &name,
            ));
        }
        of_columns.push((column, compression(right)?));
    }
    Ok(())
}

fn layout_key(value: &Expr, columns: &[Field]) -> Result<Vec<usize>> {
    let names: Vec<Ident> = match value {
        Expr::Tuple(parts) => parts.iter().map(|part| column(part, "layout_key")).collect::<Result<_>>()?,
        Expr::Nested(inner) => vec![column(inner, "layout_key")?],
        other => match text(other) {
            Some(names) => names.split(',').map(|name| Ident::new(name.trim().trim_matches('"'))).collect(),
            None => vec![column(other, "layout_key")?],
        },
    };
    let mut key = Vec::with_capacity(names.len());
    for name in &names {
        let column = find_column(columns, name).map_err(|e| e.with_context("layout_key"))?;
        if key.contains(&column) {
            return Err(at(
                Error::input(format!("the column {} occurs twice in layout_key", name.value)),
                name,
            ));
        }
        key.push(column);
    }
    Ok(key)
}

fn column(expr: &Expr, option: &str) -> Result<Ident> {
    match expr {
        Expr::Identifier(name) => Ok(name.clone()),
        other => match text(other) {
            Some(name) => Ok(Ident::new(name)),
            None => Err(Error::input(format!("{option} needs the name of a column, not {other}"))),
        },
    }
}

fn partitions(value: &Expr) -> Result<usize> {
    let number = number(value).and_then(|text| text.parse::<usize>().ok()).filter(|&count| count > 0);
    number.ok_or_else(|| Error::input(format!("partitions is a number from 1, not {value}")))
}

fn ghost(value: &Expr) -> Result<f64> {
    let share = number(value).and_then(|written| match written.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => written.trim().parse::<f64>().ok(),
    });
    share.filter(|share| (0.0..1.0).contains(share)).ok_or_else(|| {
        Error::input(format!("ghost is a share of the slots, from 0 to less than 1, not {value}"))
            .with_hint("write 0.01 or '1%'")
    })
}

/// A latency in nanoseconds; 0 for none.
fn latency(option: &str, value: &Expr) -> Result<u64> {
    let written = text(value).unwrap_or_else(|| value.to_string()).to_ascii_lowercase();
    if written == "none" {
        return Ok(0);
    }
    let digits = written.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = written.split_at(digits.unwrap_or(written.len()));
    let unit = match unit.trim() {
        "ns" => Some(1.0),
        "us" | "µs" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    };
    let nanoseconds = number.parse::<f64>().ok().zip(unit).map(|(number, unit)| (number * unit).round());
    nanoseconds.filter(|ns| *ns >= 1.0 && *ns <= 1e15).map(|ns| ns as u64).ok_or_else(|| {
        Error::input(format!("{option} is a time greater than 0, not {value}"))
            .with_hint("write '20us' or '1ms'; none takes a promise back")
    })
}

/// An unquoted word or a text.
fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// A number as it is written, with or without quotes.
fn number(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => Some(text.clone()),
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn at(error: Error, name: &Ident) -> Error {
    match span_position(name.span) {
        Some(position) => error.with_position(position),
        None => error,
    }
}
