//! Every function of the catalog, called in ways that come from the catalog, so that a new function is tested
//! with the others:
//!
//! - with the extremes of each argument's type, and pairs of them: no call panics or has an internal error,
//!   and tests run with checks for overflow. A call of constants, which is computed when it is bound, gives
//!   what the same call of a column gives;
//! - with NULL in each place: the result is NULL, but for the functions in [`TAKES_NULL`];
//! - with instants in place of timestamps, in sessions of several time zones: the result is that of the local
//!   time, or of the text that has it, but for the functions in [`OF_INSTANTS`], which give the same in every
//!   zone.
//!
//! A *shape* is a way to call a function: its usual arguments, with their types. Shapes are the examples of
//! the page, and the signatures of the catalog.

use entasis::{Config, Connection, DataType, Database, ErrorKind, Value};
use entasis_functions::catalog::FunctionEntry;

/// Functions that give a result for a NULL among their arguments.
const TAKES_NULL: &[&str] = &[
    "coalesce",
    "ifnull",
    "nvl2",
    "nullif",
    "if",
    "greatest",
    "least",
    "typeof",
    "hash",
    "concat",
    "concat_ws",
    "map_concat",
    "format",
    "list_value",
    "array_value",
    "list_position",
    "list_concat",
    "list_append",
    "list_prepend",
    "list_resize",
    "array_remove",
    "string_split",
    "string_to_array",
    "named_struct",
    "current_setting",
];

/// Functions of instants that have the same result in every time zone.
const OF_INSTANTS: &[&str] = &[
    // Time since 1970.
    "epoch",
    "epoch_ms",
    "epoch_us",
    "epoch_ns",
    // Bins of equal width, which DuckDB and PostgreSQL count from an instant, too.
    "date_bin",
    "time_bucket",
    // Of the value and its type, not of what a clock shows.
    "hash",
    "typeof",
    "isfinite",
    "isinf",
    "count",
    "approx_count_distinct",
    "list_unique",
    // Between instants.
    "avg",
    "median",
    "quantile_cont",
];

/// Functions that no query calls, or whose results differ from call to call.
const LEFT_OUT: &[&str] =
    &["nextval", "currval", "random", "uuid", "error", "clock_timestamp", "statement_timestamp", "timezone"];

/// A usual argument and its type.
type Argument = (DataType, String);

pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<Argument>,
    /// The page's rows, for an aggregate.
    pub(super) from: String,
}

impl Shape {
    pub(super) fn call(&self, arguments: &[&str]) -> String {
        format!("{}({})", self.name, arguments.join(", "))
    }

    pub(super) fn usual(&self) -> Vec<&str> {
        self.arguments.iter().map(|(_, text)| text.as_str()).collect()
    }
}

fn connect() -> Connection {
    Database::in_memory(Config::default()).expect("there is memory").connect()
}

/// The only value of a query, as text.
fn one(connection: &Connection, sql: &str) -> entasis::Result<String> {
    let rows = connection.execute(sql)?;
    let ty = rows.schema()[0].ty;
    let mut values = rows.row_values();
    Ok(values.next().map_or("no row".into(), |row| row[0].display(ty).to_string()))
}

/// The arguments of `name(…)`, split at the commas outside brackets and quotes; `None` if the text is more
/// than a call.
fn arguments(call: &str, name: &str) -> Option<Vec<String>> {
    let inner = call.strip_prefix(name)?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    let (mut parts, mut depth, mut quoted) = (vec![String::new()], 0i32, false);
    for c in inner.chars() {
        match c {
            '\'' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if depth < 0 {
            return None;
        }
        parts.last_mut()?.push(c);
    }
    Some(parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect())
}

/// Rows for the aggregates of the page's examples.
const ROWS: &str = " FROM (VALUES (1, 'b', true), (2, 'a', true), (6, 'a', false)) t(x, s, b)";

pub(super) fn shapes(connection: &Connection) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for entry in entasis_functions::catalog::entries() {
        if entry.section == "Window functions" || LEFT_OUT.contains(&entry.names[0]) {
            continue;
        }
        let from = if entry.section == "Aggregates" { ROWS } else { "" };
        let of_examples: Vec<Vec<Argument>> = examples(connection, &entry, from);
        let of_signatures = entry.signatures.iter().map(|types| {
            let place = |(i, ty): (usize, &DataType)| {
                // Texts are often parts, formats or patterns: as in an example.
                let like = of_examples.iter().find_map(|example| example.get(i).filter(|own| own.0 == *ty));
                like.cloned().unwrap_or_else(|| (*ty, usual(*ty)))
            };
            types.iter().enumerate().map(place).collect::<Vec<Argument>>()
        });
        let all = of_signatures.chain(of_examples.iter().cloned());
        let mut kept: Vec<Vec<Argument>> = Vec::new();
        for arguments in all {
            if !kept.contains(&arguments) {
                kept.push(arguments);
            }
        }
        let name = entry.names[0];
        shapes.extend(kept.into_iter().map(|arguments| Shape { name, arguments, from: from.to_owned() }));
    }
    shapes
}

fn examples(connection: &Connection, entry: &FunctionEntry, from: &str) -> Vec<Vec<Argument>> {
    let typed = |text: String| -> Option<Argument> {
        let rows = connection.execute(&format!("SELECT {text}{from}")).ok()?;
        Some((rows.schema()[0].ty, text))
    };
    let split = |call: &&'static str| entry.names.iter().find_map(|name| arguments(call, name));
    let calls = entry.examples.iter().filter_map(split);
    calls.filter_map(|texts| texts.into_iter().map(typed).collect::<Option<Vec<_>>>()).collect()
}

/// An ordinary value of a type.
fn usual(ty: DataType) -> String {
    match ty {
        DataType::Null | DataType::Varchar => "'a'".into(),
        DataType::Boolean => "true".into(),
        DataType::Blob => "'a'::BLOB".into(),
        DataType::Date => "DATE '2024-03-10'".into(),
        DataType::Time => "TIME '10:20:30'".into(),
        DataType::TimeTz => "TIMETZ '10:20:30+02'".into(),
        DataType::Timestamp => "TIMESTAMP '2024-03-10 12:00:00'".into(),
        DataType::TimestampNs => "TIMESTAMP_NS '2024-03-10 12:00:00.123456789'".into(),
        DataType::TimestampTz => "TIMESTAMPTZ '2024-03-10 12:00:00+00'".into(),
        DataType::Interval => "INTERVAL '1 day'".into(),
        DataType::Uuid => "'00000000-0000-0000-0000-00000000000a'::UUID".into(),
        DataType::Enum(_) => format!("NULL::{ty}"),
        DataType::List(element) => format!("[{}]", usual(*element)),
        DataType::Struct(_) | DataType::Array(..) | DataType::Map(_) => format!("NULL::{ty}"),
        _ => format!("2::{ty}"),
    }
}

/// The extreme values of a type.
fn extremes(ty: DataType) -> Vec<String> {
    let cast = |texts: &[&str]| texts.iter().map(|text| format!("'{text}'::{ty}")).collect::<Vec<_>>();
    match ty {
        DataType::Null => {
            vec!["NULL".into(), "170141183460469231731687303715884105727".into(), "'\u{1F600}'".into()]
        }
        DataType::Boolean => cast(&["true", "false"]),
        DataType::Float32 => cast(&["nan", "inf", "-inf", "3.4e38", "-0.0", "1e-45"]),
        DataType::Float64 => cast(&["nan", "inf", "-inf", "1.7e308", "-1.7e308", "-0.0", "5e-324", "9.3e18"]),
        DataType::Varchar => {
            let texts = [
                "",
                "%",
                "\\",
                "ß\u{1F600}",
                "9999999999999999999999",
                "-",
                "infinity",
                "[",
                "(?m)",
                "microsecond",
            ];
            let mut all: Vec<String> = texts.iter().map(|text| format!("'{text}'")).collect();
            all.push("repeat('é ', 999)".into());
            all
        }
        DataType::Blob => {
            vec!["''::BLOB".into(), "'\\x00\\xFF'::BLOB".into(), "repeat('\\xFF'::BLOB, 999)".into()]
        }
        DataType::Date => cast(&[
            "infinity",
            "-infinity",
            "5881580-07-09",
            "5877642-06-25 (BC)",
            "0001-12-31 (BC)",
            "1970-01-01",
        ]),
        DataType::Time => cast(&["00:00:00", "24:00:00", "23:59:59.999999"]),
        DataType::TimeTz => cast(&["00:00:00+15:59:59", "24:00:00-15:59:59", "23:59:59.999999+00"]),
        DataType::Timestamp | DataType::TimestampTz => cast(&[
            "infinity",
            "-infinity",
            "294247-01-10 04:00:54.775806",
            "290309-12-22 (BC) 00:00:00",
            "0001-12-31 (BC) 23:59:59",
            "1969-12-31 23:59:59.999999",
        ]),
        DataType::TimestampNs => cast(&[
            "infinity",
            "-infinity",
            "2262-04-11 23:47:16.854775806",
            "1677-09-21 00:12:43.145224194",
            "1969-12-31 23:59:59.999999999",
        ]),
        DataType::Json => cast(&["null", "[]", "\"\"", "{\"a\": 1e400}"]),
        DataType::Interval => cast(&[
            "2147483647 months",
            "-2147483648 months",
            "2147483647 days",
            "-2147483648 days",
            "9223372036854775807 microseconds",
            "-9223372036854775808 microseconds",
            "0 days",
        ]),
        DataType::Uuid => {
            cast(&["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"])
        }
        DataType::List(element) => {
            let mut all = vec![format!("[]::{ty}"), format!("[NULL]::{ty}")];
            all.extend(
                extremes(*element).into_iter().take(3).map(|value| format!("[{value}, NULL, {value}]")),
            );
            all
        }
        DataType::Map(_) => cast(&["{}"]),
        DataType::Enum(_) | DataType::Struct(_) | DataType::Array(..) => Vec::new(),
        DataType::Decimal { .. }
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => {
            let (least, most) = ty.integer_range().expect("it is held as an integer");
            let shown = |v: i128| format!("'{}'::{ty}", Value::Integer(v).display(ty));
            [least, most, 0, 1, least + 1, -1]
                .iter()
                .filter(|v| (least..=most).contains(v))
                .map(|v| shown(*v))
                .collect()
        }
    }
}

/// What is wrong with the outcome of a call that may fail, but not by our fault.
fn flaw(outcome: &entasis::Result<String>) -> Option<String> {
    match outcome {
        Err(error)
            if matches!(error.kind(), ErrorKind::Input | ErrorKind::NotSupported | ErrorKind::Resource) =>
        {
            None
        }
        Err(error) => Some(format!("{error:?}")),
        Ok(_) => None,
    }
}

fn same(a: &entasis::Result<String>, b: &entasis::Result<String>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a == b,
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

fn report(flaws: Vec<String>, calls: usize) {
    assert!(calls > 500, "only {calls} calls: the catalog was not read");
    assert!(flaws.is_empty(), "{} of {calls} calls\n{}", flaws.len(), flaws.join("\n"));
}

#[test]
fn extremes_are_computed_or_refused() {
    let connection = connect();
    let (mut flaws, mut calls) = (Vec::new(), 0);
    for shape in shapes(&connection) {
        let usual = shape.usual();
        let mut run = |arguments: &[&str], column: Option<usize>| {
            calls += 1;
            let constant = format!("SELECT ({})::VARCHAR{}", shape.call(arguments), shape.from);
            let outcome = one(&connection, &constant);
            flaws.extend(flaw(&outcome).map(|flaw| format!("{constant}: {flaw}")));
            // The same call of a column, whose value is not known when the call is bound.
            if let Some(at) = column.filter(|_| shape.from.is_empty()) {
                let mut of_column = arguments.to_vec();
                of_column[at] = "own.c";
                let sql = format!(
                    "SELECT ({})::VARCHAR FROM (SELECT {} AS c FROM generate_series(1, 1)) own",
                    shape.call(&of_column),
                    arguments[at]
                );
                let found = one(&connection, &sql);
                flaws.extend(flaw(&found).map(|flaw| format!("{sql}: {flaw}")));
                // An argument that must be constant is refused.
                let refused = matches!(&found, Err(error) if error.message().contains("constant")
                    || error.kind() == ErrorKind::NotSupported || error.message().contains("does not take"));
                // The digits of its result depend on a pattern that is known.
                let is_typed_by_constant = shape.name == "to_number" && at == 1;
                if !same(&outcome, &found) && !refused && !is_typed_by_constant {
                    flaws.push(format!("{constant}: {outcome:?}, of a column {found:?}"));
                }
            }
        };
        let of_each: Vec<Vec<String>> = shape.arguments.iter().map(|(ty, _)| extremes(*ty)).collect();
        for (at, values) in of_each.iter().enumerate() {
            for value in values {
                let mut arguments = usual.clone();
                arguments[at] = value;
                run(&arguments, Some(at));
            }
            for (other, others) in of_each.iter().enumerate().skip(at + 1) {
                for (a, b) in values.iter().take(6).flat_map(|a| others.iter().take(6).map(move |b| (a, b))) {
                    let mut arguments = usual.clone();
                    (arguments[at], arguments[other]) = (a, b);
                    run(&arguments, None);
                }
            }
        }
    }
    report(flaws, calls);
}

#[test]
fn null_gives_null() {
    let connection = connect();
    let (mut flaws, mut calls) = (Vec::new(), 0);
    for shape in shapes(&connection) {
        let usual = shape.usual();
        if !shape.from.is_empty() || one(&connection, &format!("SELECT {}", shape.call(&usual))).is_err() {
            continue;
        }
        for (at, (ty, _)) in shape.arguments.iter().enumerate() {
            let typed = if *ty == DataType::Null { "NULL".to_owned() } else { format!("NULL::{ty}") };
            for null in ["NULL".to_owned(), typed] {
                let mut arguments = usual.clone();
                arguments[at] = &null;
                let sql = format!("SELECT {}", shape.call(&arguments));
                calls += 1;
                match one(&connection, &sql) {
                    Ok(text) if text == "NULL" || TAKES_NULL.contains(&shape.name) => {}
                    Ok(text) => flaws.push(format!("{sql} gives {text}")),
                    outcome @ Err(_) => flaws.extend(flaw(&outcome).map(|flaw| format!("{sql}: {flaw}"))),
                }
            }
        }
    }
    report(flaws, calls);
}

/// Instants near midnights and changes of the clocks in these zones.
const INSTANTS: &[&str] = &[
    "2024-03-10 04:30:00+00",
    "2024-03-10 06:59:59.5+00",
    "2024-03-10 07:30:00+00",
    "2024-11-03 05:30:00+00",
    "2024-11-03 06:30:00+00",
    "2024-12-31 23:30:00+00",
    "2024-01-01 03:00:00+00",
    "2024-02-29 20:00:00+00",
    "2024-07-01 00:00:00+00",
    "2024-10-05 16:30:00+00",
    "1850-06-30 23:59:59+00",
    "infinity",
    "-infinity",
];

const ZONES: &[&str] = &["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns"];

#[test]
fn instants_are_local_times_of_the_session() {
    let connection = connect();
    let values: Vec<String> =
        INSTANTS.iter().enumerate().map(|(i, at)| format!("({i}, TIMESTAMPTZ '{at}')")).collect();
    for sql in [
        "CREATE TABLE instants(id INTEGER, at TIMESTAMPTZ)",
        &format!("INSERT INTO instants VALUES {}", values.join(", ")),
    ] {
        connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let (mut flaws, mut calls) = (Vec::new(), 0);
    let shapes = shapes(&connection);
    for zone in ZONES {
        connection.execute(&format!("SET TimeZone = '{zone}'")).expect("there is such a zone");
        for shape in &shapes {
            let is_aggregate = !shape.from.is_empty();
            let usual = shape.usual();
            let dated: Vec<usize> = (0..usual.len())
                .filter(|i| {
                    let ty = shape.arguments[*i].0;
                    matches!(
                        ty,
                        DataType::Timestamp | DataType::TimestampTz | DataType::Date | DataType::Null
                    )
                })
                .collect();
            // Each argument alone, and all that are times.
            let mut places: Vec<Vec<usize>> = (0..usual.len()).map(|i| vec![i]).collect();
            if dated.len() > 1 {
                places.push(dated);
            }
            for places in places {
                let with = |text: &str| {
                    let arguments: Vec<&str> = usual
                        .iter()
                        .enumerate()
                        .map(|(i, own)| if places.contains(&i) { text } else { own })
                        .collect();
                    shape.call(&arguments)
                };
                let from = if is_aggregate {
                    "FROM (SELECT * FROM instants, (VALUES (1, 'b', true)) t(x, s, b))"
                } else {
                    "FROM instants"
                };
                let typed =
                    connection.execute(&format!("SELECT typeof({}) FROM instants LIMIT 1", with("at")));
                let typed = match (is_aggregate, typed) {
                    (true, _) => one(&connection, &format!("SELECT typeof({}) {from}", with("at"))),
                    (false, Ok(_)) => {
                        one(&connection, &format!("SELECT typeof({}) FROM instants", with("at")))
                    }
                    (false, Err(error)) => Err(error),
                };
                let Ok(ty) = typed else { continue };
                let local = format!("(at AT TIME ZONE '{zone}')");
                // Results as local times, also within lists and structs.
                let cast =
                    ty.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMP").replace("TIMESTAMPTZ", "TIMESTAMP");
                let cast = if cast.contains("NULL") { "VARCHAR".to_owned() } else { cast };
                calls += 1;
                let result = |text: &str| -> entasis::Result<Vec<String>> {
                    let order = if is_aggregate { "" } else { "ORDER BY id" };
                    let rows = connection
                        .execute(&format!("SELECT ({})::{cast}::VARCHAR {from} {order}", with(text)))?;
                    Ok(rows.row_values().map(|row| row[0].display(DataType::Varchar).to_string()).collect())
                };
                let (found, of_local, of_text) =
                    (result("at"), result(&local), result("(at::VARCHAR)::TIMESTAMPTZ"));
                let fits = |expected: &entasis::Result<Vec<String>>| match (&found, expected) {
                    (Ok(a), Ok(b)) => a == b,
                    (Err(_), Err(_)) => true,
                    _ => false,
                };
                if OF_INSTANTS.contains(&shape.name) {
                    connection.execute("SET TimeZone = 'UTC'").expect("there is UTC");
                    let in_utc = connection
                        .execute(&format!("SELECT ({})::VARCHAR {from}", with("at")))
                        .and_then(|_| result("at"));
                    connection.execute(&format!("SET TimeZone = '{zone}'")).expect("there is such a zone");
                    // A result that is an instant itself is compared as one.
                    if cast == ty && !fits(&in_utc) {
                        flaws.push(format!("{zone}: {} is {found:?}, in UTC {in_utc:?}", with("at")));
                    }
                } else if !fits(&of_local) && !fits(&of_text) {
                    flaws.push(format!("{zone}: {} is {found:?}, of local times {of_local:?}", with("at")));
                }
            }
        }
    }
    report(flaws, calls);
}
