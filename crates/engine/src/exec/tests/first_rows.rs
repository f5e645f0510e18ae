//! Sorts with a limit over stored tables, whose thresholds reach the scans: all orders and types, compared
//! with a stable sort of all rows.

use super::*;
use entasis_storage::{Datum, Table, TableOptions};
use entasis_vector::{Field, Schema};

const TYPES: [DataType; 6] = [
    DataType::Int32,
    DataType::Float64,
    DataType::Varchar,
    DataType::Decimal { precision: 30, scale: 2 },
    DataType::Date,
    DataType::Uuid,
];

/// The value that a number stands for; NULL for one in nine if `nulls`.
fn value(number: i128, ty: DataType, nulls: bool) -> Value {
    match ty {
        _ if nulls && number % 9 == 0 => Value::Null,
        DataType::Float64 if number % 50 == 1 => Value::Float(f64::NAN),
        DataType::Float64 => Value::Float(number as f64 / 4.0),
        DataType::Varchar => Value::Text(format!("a prefix of twelve {number:05}").into()),
        DataType::Decimal { .. } => int(number * 10_i128.pow(20)),
        _ => int(number),
    }
}

/// A table of the key, a payload and the number of the row, in small blocks and row groups.
fn stored(ty: DataType, keys: impl Iterator<Item = Value>) -> (Stored, Vec<Row>) {
    let fields = [Field::new("key", ty), Field::new("text", DataType::Varchar)];
    let schema: Schema = fields.into_iter().chain([Field::new("row", DataType::Int64)]).collect();
    let options = TableOptions { block_slots: 16, group_slots: 64, ..TableOptions::default() };
    let table = Table::with_options("t", schema, options);
    let text = |row: i128| Value::Text(format!("row {row}").into());
    let rows: Vec<Row> = keys.zip(0..).map(|(key, row)| vec![key, text(row), int(row)]).collect();
    let mut writer = table.write();
    for row in &rows {
        let types = [ty, DataType::Varchar, DataType::Int64];
        let datums: Vec<Datum<'_>> = row.iter().zip(types).map(|(v, ty)| Datum::of_value(v, ty)).collect();
        writer.insert(&datums);
    }
    drop(writer);
    (Stored(table.snapshot()), rows)
}

/// The first rows by a stable sort.
fn twin(mut rows: Vec<Row>, descending: bool, nulls_first: bool, limit: usize) -> Vec<Row> {
    rows.sort_by(|a, b| match (a[0].is_null(), b[0].is_null()) {
        (false, false) if descending => b[0].total_cmp(&a[0]),
        (false, false) => a[0].total_cmp(&b[0]),
        (a, b) if nulls_first => b.cmp(&a),
        (a, b) => a.cmp(&b),
    });
    rows.truncate(limit);
    rows
}

fn first_rows(table: Stored, ty: DataType, (descending, nulls_first, limit): (bool, bool, usize)) -> Plan {
    let mut columns = Columns::default();
    let types = [ty, DataType::Varchar, DataType::Int64];
    let ids: Vec<ColumnId> = types.iter().map(|&ty| columns.add("c", ty, true)).collect();
    let scan = Scan::all(Arc::new(table), ids.iter().copied().zip(0..).collect());
    let key = SortKey { expr: columns.expr(ids[0]), descending, nulls_first };
    let sort = Sort { input: Box::new(Node::Scan(scan)), keys: vec![key], limit: Some(limit) };
    plan(Node::Sort(sort), &columns)
}

#[test]
fn the_first_rows_are_those_of_a_full_sort_in_its_order() {
    let mut random = Random(88_172_645_463_325_252);
    for ty in TYPES {
        for shape in 0..4 {
            let keys: Vec<Value> = (0..700)
                .map(|i| match shape {
                    0 => i,
                    1 => 700 - i,
                    2 => i128::from(random.below(1000)),
                    _ => i128::from(random.below(12)),
                })
                .map(|number| value(number, ty, shape != 1))
                .collect();
            for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
                for limit in [1, 7, 40, 900] {
                    let (table, rows) = stored(ty, keys.iter().cloned());
                    let plan = first_rows(table, ty, (descending, nulls_first, limit));
                    let expected = twin(rows, descending, nulls_first, limit);
                    for context in contexts() {
                        let settings = Settings { optimize: true, ..(*context.settings).clone() };
                        let context = QueryContext { settings: Arc::new(settings), ..context };
                        let found = run(&plan, &context).unwrap();
                        let what = format!("{ty:?} {shape} {descending} {nulls_first} {limit}");
                        assert_eq!(found, expected, "{what} under {:?}", context.settings);
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_beyond_the_threshold_is_not_read() {
    for descending in [false, true] {
        let keys = (0..5000).map(|i| value(i, DataType::Int32, false));
        let (table, rows) = stored(DataType::Int32, keys);
        let plan = first_rows(table, DataType::Int32, (descending, false, 3));
        let settings =
            Settings { optimize: true, profile: true, chunk_rows: 16, threads: 1, ..Settings::default() };
        let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
        let collector = Collector::new(&context, vec![DataType::Int32, DataType::Varchar, DataType::Int64]);
        let profile = execute(&plan, &context, &collector).unwrap();
        assert_eq!(collector.into_chunks().rows, 3);
        // Eight chunks come before the first threshold, which leaves two of the other blocks' rows at most.
        let read = profile.root.unwrap().children[0].rows;
        assert!((128..=144).contains(&read), "{read} of {} rows", rows.len());
    }
}
