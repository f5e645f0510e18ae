//! A call of any function of the catalog on one long value can be interrupted.
//!
//! Nothing is timed: debug builds count how often a statement looks whether it is interrupted. Each function
//! is called in the ways that come from the catalog ([`super::calls`]), with a long text, binary string or
//! list in one place, and a longer one: for each of the megabytes that this has more, the statement must look
//! about once more. What is done at once, however long the value is, is in [`AT_ONCE`].
#![cfg(debug_assertions)]

use super::calls::shapes;
use entasis::{Config, Connection, DataType, Database, ErrorKind};

/// Megabytes of the long value, and of the longer one.
const MEGABYTES: [usize; 2] = [1, 5];

/// Functions that look at a few bytes of a value, at its length, or at its kind, or pass it on, and what
/// takes as long as to copy it. With a place: those that do so with this argument, from 0, such as a
/// separator that is longer than the text.
const AT_ONCE: &[(&str, Option<usize>)] = &[
    ("nvl2", None),
    ("if", None),
    ("least", None),
    ("greatest", None),
    ("typeof", None),
    ("hash", None),
    ("constant_or_null", None),
    ("bit_count", None),
    // Of a binary string; that of a text is below.
    ("length", None),
    ("octet_length", None),
    ("bit_length", None),
    ("substring", None),
    ("left", None),
    ("trim", Some(1)),
    ("ltrim", Some(1)),
    ("rtrim", Some(1)),
    ("concat_ws", Some(0)),
    ("replace", Some(1)),
    ("translate", Some(2)),
    ("strpos", Some(1)),
    ("contains", Some(1)),
    ("starts_with", None),
    ("ends_with", None),
    ("split_part", Some(1)),
    ("substring_index", Some(1)),
    ("find_in_set", Some(0)),
    ("ascii", None),
    ("unicode", None),
    ("parse_dirname", None),
    ("parse_dirpath", None),
    ("get_byte", None),
    ("get_bit", None),
    ("lpad", Some(2)),
    ("rpad", Some(2)),
    ("list_contains", None),
    ("list_position", None),
    ("list_resize", None),
    ("map_extract_value", Some(1)),
    ("map_extract", Some(1)),
    ("map_contains", Some(1)),
    ("list_where", Some(0)),
    ("list_first", None),
    ("list_any_value", None),
    ("string_split", Some(1)),
    ("string_to_array", Some(1)),
    ("like_escape", Some(0)),
    ("not_like_escape", Some(0)),
    ("try_strptime", None),
];

/// Functions of formats, which are short, and of patterns that occur nowhere in the long text: the library
/// searches it once, and does not stop before it has found something.
const NOT_WITHIN: &[(&str, Option<usize>)] = &[
    ("regexp_matches", Some(0)),
    ("regexp_full_match", Some(0)),
    ("regexp_extract", Some(0)),
    ("regexp_extract_all", Some(0)),
    ("regexp_split_to_array", Some(0)),
    ("regexp_substr", Some(0)),
    ("regexp_count", Some(0)),
    ("regexp_instr", Some(0)),
    ("to_char", Some(1)),
    ("to_date", Some(1)),
    ("strftime", None),
];

/// The columns for long values: their names, types, and what makes one of so many megabytes.
const COLUMNS: &[(&str, &str, &str)] = &[
    ("t", "VARCHAR", "repeat('One word, ', {m} * 104857)"),
    ("b", "BLOB", "repeat('One word, ', {m} * 104857)::BLOB"),
    ("i", "INTEGER[]", "(SELECT list(x::INTEGER) FROM range({m} * 200000) r(x))"),
    ("l", "BIGINT[]", "(SELECT list(x) FROM range({m} * 110000) r(x))"),
    ("s", "VARCHAR[]", "(SELECT list('word ' || x % 1000) FROM range({m} * 90000) r(x))"),
    ("f", "BOOLEAN[]", "(SELECT list(x % 3 = 0) FROM range({m} * 500000) r(x))"),
    ("n", "INTEGER[][]", "(SELECT list([x::INTEGER]) FROM range({m} * 150000) r(x))"),
    ("r", "STRUCT(a INTEGER[])", "{'a': (SELECT list(x::INTEGER) FROM range({m} * 200000) r(x))}"),
];

fn database() -> Connection {
    let connection = Database::in_memory(Config::new().with_threads(1)).expect("a database").connect();
    for megabytes in MEGABYTES {
        let columns: Vec<String> = COLUMNS
            .iter()
            .map(|(name, ty, value)| {
                format!("({})::{ty} AS {name}", value.replace("{m}", &megabytes.to_string()))
            })
            .collect();
        let sql = format!("CREATE TABLE long{megabytes} AS SELECT {}", columns.join(", "));
        connection.execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    connection
}

/// The looks of a statement over the longer value that there are not over the long one; `None` if the value
/// is refused. `of` makes it of the name of a table.
fn more_looks(connection: &Connection, of: impl Fn(&str) -> String) -> Option<i64> {
    let flag = connection.cancel_flag();
    let mut looks = [0; 2];
    for (looks, megabytes) in looks.iter_mut().zip(MEGABYTES) {
        let sql = of(&format!("long{megabytes}"));
        flag.raise_at(0);
        match connection.execute(&sql) {
            Ok(_) => *looks = flag.raise_at(0) as i64,
            Err(error) if matches!(error.kind(), ErrorKind::Input | ErrorKind::NotSupported) => return None,
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }
    Some(looks[1] - looks[0])
}

#[test]
fn calls_look_more_often_at_longer_values() {
    let connection = database();
    let beyond = (MEGABYTES[1] - MEGABYTES[0]) as i64;
    let (mut faults, mut calls) = (Vec::new(), 0);
    let mut check = |call: &str, column: &str, is_at_once: bool| {
        let read = more_looks(&connection, |table| format!("SELECT count({column}) FROM {table}"));
        let more = more_looks(&connection, |table| format!("SELECT count({call}) FROM {table}"));
        let Some(more) = more.map(|more| more - read.expect("a column is read")) else { return };
        calls += 1;
        if more * 2 < beyond && !is_at_once {
            faults.push(format!("{more} more looks: {call}"));
        }
    };
    for shape in shapes(&connection) {
        if !shape.from.is_empty() {
            continue;
        }
        for (place, (ty, _)) in shape.arguments.iter().enumerate() {
            let wanted = match ty {
                DataType::Null => "VARCHAR".to_owned(),
                ty => ty.to_string(),
            };
            for (column, ..) in COLUMNS.iter().filter(|(_, ty, _)| *ty == wanted) {
                let mut arguments = shape.usual();
                arguments[place] = column;
                let is_at_once = AT_ONCE
                    .iter()
                    .chain(NOT_WITHIN)
                    .any(|(name, at)| *name == shape.name && at.is_none_or(|at| at == place));
                check(&shape.call(&arguments), column, is_at_once);
            }
        }
    }
    // Casts, and operators.
    for (column, ty, _) in COLUMNS {
        let (is_text, is_list) = (*ty == "VARCHAR", ty.ends_with(']'));
        check(&format!("{column}::VARCHAR"), column, is_text);
        if is_list {
            check(&format!("{column}::VARCHAR[]"), column, *ty == "VARCHAR[]");
            check(&format!("{column}::VARCHAR::{ty}"), column, false);
        }
    }
    for call in [
        "t LIKE '%x%'",
        "t LIKE '%x_y%'",
        "t ILIKE '%x%'",
        "t || 'x'",
        "length(t)",
        "substring(t, octet_length(t) - 5)",
        "left(t, -2)",
        "regexp_replace(t, 'w', 'v', 'g')",
        "regexp_replace(t, '(w)', '\\1\\1', 'g')",
        "regexp_extract_all(t, 'w')",
        "regexp_split_to_array(t, ',')",
        "regexp_count(t, 'w')",
        "substring_index(t, ',', 1000000)",
        "split_part(t, ',', 1000000)",
    ] {
        check(call, "t", false);
    }
    for call in ["list_contains(l, -1)", "list_position(l, -1)", "l[-1]", "l[2:]", "l || l"] {
        check(call, "l", false);
    }
    assert!(calls > 100, "only {calls} calls: the catalog was not read");
    assert!(faults.is_empty(), "{} of {calls} calls\n{}", faults.len(), faults.join("\n"));
}
