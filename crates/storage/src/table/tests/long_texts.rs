//! Few rows with long texts, in slices of which most slots are ghosts: upkeep hashes, copies and keeps the
//! texts of rows, however many ghosts are beside them. Bytes are counted, time is not.

use super::model::datums;
use super::rows::insert;
use crate::value::HASHED;
use crate::{NEVER, Table, TableOptions};
use entasis_vector::{DataType, Field, Schema, Value};
use std::sync::Arc;
use std::time::Duration;

fn schema() -> Schema {
    vec![
        Field { nullable: false, ..Field::new("k", DataType::Int64) },
        Field::new("text", DataType::Varchar),
        Field::new("bytes", DataType::Blob),
    ]
}

/// A text of so many bytes that no other row has.
fn text(row: usize, bytes: usize) -> String {
    let mut text = format!("{row:08}");
    text.extend(std::iter::repeat_n('x', bytes.saturating_sub(8)));
    text
}

/// Rows with texts of so many bytes each; every third text is NULL.
fn rows(count: usize, bytes: usize, nulls: bool) -> Vec<Vec<Value>> {
    let row = |row: usize| {
        let is_null = nulls && row % 3 == 1;
        vec![
            Value::Integer(row as i128 * 5),
            if is_null { Value::Null } else { Value::Text(text(row, bytes).into()) },
            if is_null { Value::Null } else { Value::Bytes(text(row, bytes).into_bytes().into()) },
        ]
    };
    (0..count).map(row).collect()
}

/// Bytes that upkeep of such a table hashes, whose rows came one by one or at once, and those that the table
/// has afterwards.
fn upkeep(rows: &[Vec<Value>], one_by_one: bool, rest: u32) -> (usize, usize) {
    let options = TableOptions { unique: true, rest, ..TableOptions::keyed(vec![0]) };
    let table = Table::with_options("t", schema(), options);
    match one_by_one {
        true => rows.iter().for_each(|row| _ = table.write().insert(&datums(row, table.schema()))),
        false => insert(&table, rows, false),
    }
    let before = HASHED.get();
    for round in 0.. {
        assert!(round < 1000, "upkeep comes to an end");
        let done = table.upkeep(Duration::from_secs(60));
        if done.is_done && done.warm + done.spread + done.encoded + done.overtaken == 0 {
            break;
        }
    }
    check(&table, rows);
    (HASHED.get() - before, table.held_bytes().0)
}

fn check(table: &Arc<Table>, rows: &[Vec<Value>]) {
    let snapshot = table.snapshot();
    snapshot.check();
    let found: Vec<Vec<Value>> = snapshot
        .row_ids()
        .map(|row| {
            let columns = snapshot.schema().iter().enumerate();
            columns.map(|(column, field)| snapshot.datum(row, column).value(field.ty)).collect()
        })
        .collect();
    assert_eq!(found, rows);
}

#[test]
fn upkeep_works_in_proportion_to_the_texts() {
    // The last of these have more bytes than a dictionary takes.
    let sizes = [(1, 100_000), (3, 100_000), (900, 200), (1, 9 << 20), (2, 9 << 20)];
    for (count, bytes) in sizes {
        for (one_by_one, rest, nulls) in
            [(true, 1, false), (true, 1, true), (true, NEVER, false), (false, 1, true)]
        {
            let of = |bytes: usize| upkeep(&rows(count, bytes, nulls), one_by_one, rest);
            let ((hashed, held), (hashed_twice, held_twice)) = (of(bytes), of(2 * bytes));
            let what =
                format!("{count} rows of {bytes} bytes, one by one {one_by_one}, rest {rest}, NULLs {nulls}");
            // Two columns, each hashed once or twice: as it is written, and at rest.
            let all = 2 * count * bytes;
            assert!(hashed <= 3 * all, "{what}: {hashed} bytes are hashed of {all}");
            assert!(hashed_twice <= 6 * all, "{what}: {hashed_twice} bytes are hashed of {}", 2 * all);
            // The text, the bounds, and what a table has anyway.
            assert!(held <= 4 * all + (1 << 20), "{what}: {held} bytes are held of {all}");
            assert!(held_twice <= 8 * all + (1 << 20), "{what}: {held_twice} bytes are held of {}", 2 * all);
        }
    }
}
