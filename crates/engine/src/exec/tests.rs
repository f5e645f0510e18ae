//! Plans built by hand over rows in the plan, run under several settings and compared with slow and obvious
//! twins.

mod bounds;
mod crossed;
mod dictionaries;
mod first_rows;
mod joins;
mod set_operations;

use super::*;
use crate::plan::*;
use entasis_vector::expr::{ArithmeticOp, CompareOp, Expr};
use entasis_vector::{Chunk, ColumnId, DataType, Error, Result, Value};
use std::sync::Arc;
use std::time::Instant;

type Row = Vec<Value>;

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % n
    }
}

fn int(v: i128) -> Value {
    Value::Integer(v)
}

/// Settings that must not change any result.
fn contexts() -> Vec<QueryContext> {
    let mut all = Vec::new();
    for threads in [1, 2] {
        for chunk_rows in [3, entasis_vector::CHUNK_ROWS] {
            for hash_collisions in [false, true] {
                for temp_compression in [TempCompression::Off, TempCompression::On] {
                    let settings = Settings {
                        threads,
                        chunk_rows,
                        hash_collisions,
                        profile: true,
                        optimize: false,
                        temp_compression,
                        adaptive: true,
                        join_table: TableKind::Auto,
                        join_filter: FilterKind::Auto,
                        ..Settings::default()
                    };
                    all.push(QueryContext { settings: Arc::new(settings), ..QueryContext::default() });
                }
            }
        }
    }
    all
}

/// Settings under which nothing goes to files.
fn in_memory() -> Settings {
    Settings { temp_directory: "".into(), ..Settings::default() }
}

fn values(columns: &mut Columns, name: &str, types: &[DataType], rows: Vec<Row>) -> (Node, Vec<ColumnId>) {
    let ids: Vec<ColumnId> =
        types.iter().enumerate().map(|(i, &ty)| columns.add(format!("{name}{i}"), ty, true)).collect();
    (Node::Values(Values { columns: ids.clone(), rows }), ids)
}

fn plan(root: Node, columns: &Columns) -> Plan {
    let output =
        root.columns().into_iter().map(|column| Output { name: column.to_string(), column }).collect();
    Plan { root, columns: columns.clone(), output }
}

fn run(plan: &Plan, context: &QueryContext) -> Result<Vec<Row>> {
    let types: Vec<DataType> = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
    let collector = Collector::new(context, types.clone());
    execute(plan, context, &collector)?;
    let set = collector.into_chunks();
    let mut rows = Vec::new();
    for chunk in &set.chunks {
        for row in 0..chunk.len() {
            rows.push(types.iter().enumerate().map(|(c, &ty)| chunk.value(row, c, ty)).collect());
        }
    }
    assert_eq!(rows.len(), set.rows);
    Ok(rows)
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| {
        a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    rows
}

/// Runs under all settings and compares the rows, in any order.
fn check(plan: &Plan, expected: &[Row], what: &str) {
    check_under(contexts(), plan, expected, what);
}

fn check_under(contexts: Vec<QueryContext>, plan: &Plan, expected: &[Row], what: &str) {
    let expected = sorted(expected.to_vec());
    for context in contexts {
        let rows = sorted(
            run(plan, &context).unwrap_or_else(|e| panic!("{what} under {:?}: {e}", context.settings)),
        );
        assert_eq!(rows, expected, "{what} under {:?}", context.settings);
        assert_eq!((context.memory.used(), context.temp.used()), (0, 0));
    }
}

#[test]
fn limits_take_the_first_rows_in_order() {
    let mut columns = Columns::default();
    let rows: Vec<Row> = (0..5000).map(|i| vec![int(i)]).collect();
    let (input, _) = values(&mut columns, "a", &[DataType::Int64], rows.clone());
    for (offset, count) in
        [(0, Some(0)), (0, Some(7)), (2, Some(3)), (4999, Some(9)), (2500, None), (9000, Some(1))]
    {
        let limit = Node::Limit(Limit { input: Box::new(input.clone()), offset, count });
        let plan = plan(limit, &columns);
        let end = count.map_or(5000, |c| (offset + c).min(5000));
        let expected = rows.get(offset..end).unwrap_or_default();
        for context in contexts() {
            let got = run(&plan, &context).unwrap();
            if count.is_some() {
                assert_eq!(got, expected);
            } else {
                assert_eq!(got.len(), expected.len());
            }
        }
    }
}

#[test]
fn results_keep_the_order_of_the_source() {
    let mut columns = Columns::default();
    let rows: Vec<Row> =
        (0..9000).map(|i| vec![int(i), Value::Text(format!("a longer text, number {i}").into())]).collect();
    let (input, _) = values(&mut columns, "a", &[DataType::Int64, DataType::Varchar], rows.clone());
    let plan = plan(input, &columns);
    for context in contexts() {
        assert_eq!(run(&plan, &context).unwrap(), rows);
    }
}

#[test]
fn filter_and_project_compute() {
    let mut columns = Columns::default();
    let rows: Vec<Row> =
        (0..1000).map(|i| vec![if i % 7 == 0 { Value::Null } else { int(i) }, int(i % 10)]).collect();
    let (input, ids) = values(&mut columns, "a", &[DataType::Int64, DataType::Int64], rows.clone());
    let (a, b) = (columns.expr(ids[0]), columns.expr(ids[1]));
    let filter = Node::Filter(Filter {
        input: Box::new(input),
        predicates: vec![Expr::compare(CompareOp::Lt, b.clone(), Expr::literal(int(5), DataType::Int64))],
    });
    let sum = Expr::Arithmetic {
        op: ArithmeticOp::Add,
        left: Box::new(a),
        right: Box::new(b),
        ty: DataType::Int64,
    };
    let new = columns.add("sum", DataType::Int64, true);
    let unused = columns.add("unused", DataType::Int64, true);
    let exprs = vec![(new, sum.clone()), (unused, sum)];
    let project = Node::Project(Project { input: Box::new(filter), exprs });
    let mut plan = plan(project, &columns);
    plan.output.retain(|output| output.column == new || output.column == ids[1]);
    plan.output.reverse();
    let expected: Vec<Row> = rows
        .iter()
        .filter(|row| row[1].total_cmp(&int(5)).is_lt())
        .map(|row| match (&row[0], &row[1]) {
            (Value::Integer(a), Value::Integer(b)) => vec![int(a + b), int(*b)],
            _ => vec![Value::Null, row[1].clone()],
        })
        .collect();
    check(&plan, &expected, "project");
}

#[test]
fn an_error_in_a_worker_ends_the_statement() {
    let mut columns = Columns::default();
    let rows: Vec<Row> = (0..3000).map(|i| vec![int(i)]).collect();
    let (input, ids) = values(&mut columns, "a", &[DataType::Int64], rows);
    let zero = Expr::literal(int(0), DataType::Int64);
    let divide = Expr::Arithmetic {
        op: ArithmeticOp::Divide,
        left: Box::new(columns.expr(ids[0])),
        right: Box::new(zero),
        ty: DataType::Int64,
    };
    let new = columns.add("x", DataType::Int64, true);
    let plan = plan(Node::Project(Project { input: Box::new(input), exprs: vec![(new, divide)] }), &columns);
    for context in contexts() {
        assert_eq!(run(&plan, &context).unwrap_err().kind(), entasis_vector::ErrorKind::Input);
    }
}

#[test]
fn a_cancelled_statement_is_interrupted() {
    let mut columns = Columns::default();
    let (input, _) = values(&mut columns, "a", &[DataType::Int64], vec![vec![int(1)]]);
    let context = QueryContext::default();
    context.cancel.raise();
    let error = run(&plan(input, &columns), &context).unwrap_err();
    assert_eq!(error.kind(), entasis_vector::ErrorKind::Interrupted);
}

#[test]
fn union_all_gives_the_rows_of_all_inputs() {
    let mut columns = Columns::default();
    let a: Vec<Row> = (0..500).map(|i| vec![int(i), int(-i)]).collect();
    let b: Vec<Row> = (0..400).map(|i| vec![int(i * 3), Value::Null]).collect();
    let (left, l) = values(&mut columns, "a", &[DataType::Int64, DataType::Int64], a.clone());
    let (right, r) = values(&mut columns, "b", &[DataType::Int64, DataType::Int64], b.clone());
    let out = vec![columns.add("x", DataType::Int64, true), columns.add("y", DataType::Int64, true)];
    let set = SetOperation {
        kind: SetKind::Union,
        all: true,
        inputs: vec![(left, vec![l[1], l[0]]), (right, r)],
        columns: out,
    };
    let swapped = a.iter().map(|row| vec![row[1].clone(), row[0].clone()]);
    let expected: Vec<Row> = swapped.chain(b).collect();
    check(&plan(Node::SetOperation(set), &columns), &expected, "union all");
}

/// 140,000 rows of nine numbers need 10 MB as columns.
#[test]
fn compressed_rows_fit_where_columns_do_not() {
    let count = 140_000;
    let mut columns = Columns::default();
    let row =
        |i: i128| (0..9).map(|c| if c == 0 { int(i) } else { int((i * c) % 200 - 100) }).collect::<Row>();
    let types = [DataType::Int64; 9];
    let (many, m) = values(&mut columns, "m", &types, (0..count).rev().map(row).collect());
    let (few, f) = values(&mut columns, "f", &types[..1], (0..10).map(|i| vec![int(i * 13_999)]).collect());
    let on = vec![JoinKey { left: columns.expr(f[0]), right: columns.expr(m[0]), null_equals_null: false }];
    let (left, right) = (Box::new(few), Box::new(many.clone()));
    let join = Node::Join(Join { left, right, kind: JoinKind::Single, on, residual: vec![] });
    let keys = vec![SortKey { expr: columns.expr(m[0]), descending: false, nulls_first: false }];
    let sort = Node::Sort(Sort { input: Box::new(many), keys, limit: None });
    let last = Node::Limit(Limit { input: Box::new(sort), offset: count as usize - 10, count: Some(10) });
    let joined: Vec<Row> = (0..10).map(|i| [vec![int(i * 13_999)], row(i * 13_999)].concat()).collect();
    for (root, expected) in [(join, joined), (last, (count - 10..count).map(row).collect())] {
        let plan = plan(root, &columns);
        let run = |temp_compression| {
            let settings =
                Settings { threads: 1, profile: true, optimize: false, temp_compression, ..in_memory() };
            let memory = Arc::new(MemoryBudget::new(8_500_000));
            let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
            let types: Vec<DataType> = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
            let collector = Collector::new(&context, types);
            let profile = execute(&plan, &context, &collector)?;
            Ok((run(&plan, &context)?, profile.to_string()))
        };
        let error: Error = run(TempCompression::Off).unwrap_err();
        assert_eq!(error.kind(), entasis_vector::ErrorKind::Resource);
        let (rows, profile) = run(TempCompression::Auto).unwrap();
        assert_eq!(rows, expected);
        assert!(profile.contains("tuples: 140000 of 140000 rows"), "{profile}");
    }
}

#[derive(Debug)]
struct Stored(entasis_storage::TableSnapshot);

impl crate::relation::Relation for Stored {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn schema(&self) -> &entasis_vector::Schema {
        self.0.schema()
    }
    fn statistics(&self) -> crate::relation::Statistics {
        crate::relation::Statistics { rows: Some(self.0.rows()), columns: Vec::new() }
    }
    fn table(&self) -> Option<&entasis_storage::TableSnapshot> {
        Some(&self.0)
    }
    fn scan(
        &self,
        _: &crate::relation::ScanRequest,
        _: &QueryContext,
    ) -> Result<Arc<dyn crate::relation::Source>> {
        unreachable!("tables are scanned by the engine")
    }
}

/// A table of these rows and a scan of all its columns.
pub(super) fn stored(columns: &mut Columns, types: &[DataType], rows: &[Row]) -> (Node, Vec<ColumnId>) {
    stored_as("t", columns, types, rows)
}

/// The same, with a name for the table that columns share.
pub(super) fn stored_as(
    name: &str,
    columns: &mut Columns,
    types: &[DataType],
    rows: &[Row],
) -> (Node, Vec<ColumnId>) {
    let field = |(i, &ty)| entasis_vector::Field::new(format!("c{i}"), ty);
    let table = entasis_storage::Table::new(name, types.iter().enumerate().map(field).collect());
    let mut appender = table.appender();
    for rows in rows.chunks(entasis_vector::CHUNK_ROWS) {
        let mut chunk = Chunk::new();
        chunk.reset(rows.len());
        let group = chunk.push_group(entasis_vector::Selection::ALL);
        for (i, ty) in types.iter().enumerate() {
            let values: Vec<Value> = rows.iter().map(|row| row[i].clone()).collect();
            chunk.push_column(entasis_vector::Vector::from_values(ty.physical(), &values).unwrap(), group);
        }
        appender.append(&chunk, 0).unwrap();
    }
    table.commit(vec![appender.finish()]).unwrap();
    let ids: Vec<ColumnId> =
        types.iter().enumerate().map(|(i, &ty)| columns.add(format!("{name}{i}"), ty, true)).collect();
    let scan = Scan {
        relation: Arc::new(Stored(table.snapshot())),
        columns: ids.iter().copied().zip(0..).collect(),
        filters: Vec::new(),
        sampled: None,
        references: Vec::new(),
        related: Vec::new(),
    };
    (Node::Scan(scan), ids)
}

#[test]
fn scans_skip_blocks_and_filter_rows() {
    let mut random = Random(42);
    let types = [DataType::Int64, DataType::Int32, DataType::Varchar];
    let rows: Vec<Row> = (0..7000)
        .map(|i| {
            let b = if random.below(5) == 0 { Value::Null } else { int(random.below(50) as i128) };
            vec![int(i / 2), b, Value::Text(format!("text {}", random.below(30)).into())]
        })
        .collect();
    let mut columns = Columns::default();
    let (scan, ids) = stored(&mut columns, &types, &rows);
    let number =
        |id: usize, op, v| Expr::compare(op, columns.expr(ids[id]), Expr::literal(int(v), types[id]));
    type Keep = Box<dyn Fn(&Row) -> bool>;
    let below = |i: usize, v: i128| -> Keep { Box::new(move |row| row[i].total_cmp(&int(v)).is_lt()) };
    let cases: Vec<(Vec<Expr>, Keep)> = vec![
        (vec![], Box::new(|_| true)),
        (vec![number(0, CompareOp::Lt, 1500)], below(0, 1500)),
        (vec![number(0, CompareOp::Lt, -1)], Box::new(|_| false)),
        (vec![number(1, CompareOp::Lt, 2)], below(1, 2)),
        (
            vec![
                number(0, CompareOp::GtEq, 700),
                number(0, CompareOp::Lt, 2200),
                number(1, CompareOp::Eq, 7),
            ],
            Box::new(|row| {
                row[0].total_cmp(&int(700)).is_ge()
                    && row[0].total_cmp(&int(2200)).is_lt()
                    && row[1] == int(7)
            }),
        ),
        (vec![Expr::IsNull(Box::new(columns.expr(ids[1])))], Box::new(|row| row[1].is_null())),
        (
            vec![Expr::Or(vec![number(0, CompareOp::Eq, 3), number(0, CompareOp::Gt, 3400)])],
            Box::new(|row| row[0] == int(3) || row[0].total_cmp(&int(3400)).is_gt()),
        ),
    ];
    for (filters, keep) in cases {
        let Node::Scan(scan) = scan.clone() else { unreachable!("it is a scan") };
        let what = format!("{filters:?}");
        let plan = plan(Node::Scan(Scan { filters, ..scan }), &columns);
        let expected: Vec<Row> = rows.iter().filter(|row| keep(row)).cloned().collect();
        for context in contexts() {
            assert_eq!(run(&plan, &context).unwrap(), expected, "{what}");
        }
    }
}

#[test]
fn conditions_on_codes_and_their_order_change_no_result() {
    let mut random = Random(11);
    let types = [DataType::Int64, DataType::Int32, DataType::Varchar, DataType::Varchar];
    let text = |text: String| Value::Text(text.into());
    let rows: Vec<Row> = (0..9000)
        .map(|i| {
            let b = if random.below(5) == 0 { Value::Null } else { int(random.below(50) as i128) };
            let c = match random.below(30) {
                // A block of one string, and a string that is not a number in rows that every filter drops.
                _ if (2048..3072).contains(&i) => text("7".into()),
                _ if i < 10 => text("no number".into()),
                0 => Value::Null,
                c => text(c.to_string()),
            };
            vec![int(i), b, c, text(format!("text {:03}", random.below(900)))]
        })
        .collect();
    let mut columns = Columns::default();
    let (scan, ids) = stored(&mut columns, &types, &rows);
    let column = |id: usize| columns.expr(ids[id]);
    let number = |id: usize, op, v| Expr::compare(op, column(id), Expr::literal(int(v), types[id]));
    let literal = |value: &str| Expr::literal(text(value.into()), DataType::Varchar);
    let like = |id: usize, pattern: &str| Expr::Like {
        input: Box::new(column(id)),
        pattern: Box::new(literal(pattern)),
        escape: None,
        case_insensitive: false,
    };
    let is_null = |id: usize| Expr::IsNull(Box::new(column(id)));
    let is_in = |id: usize, list: &[&str]| Expr::InList {
        input: Box::new(column(id)),
        list: list.iter().map(|&value| text(value.into())).collect(),
    };
    let as_number = Expr::Cast { input: Box::new(column(2)), ty: DataType::Int32, lenient: false };
    type Keep = Box<dyn Fn(&Row) -> bool>;
    let string = |row: &Row, id: usize| match &row[id] {
        Value::Text(text) => Some(text.to_string()),
        _ => None,
    };
    let at_least = |row: &Row, id: usize, v: i128| matches!(row[id], Value::Integer(w) if w >= v);
    let cases: Vec<(Vec<Expr>, Keep)> = vec![
        (
            vec![is_in(2, &["7", "19", "missing"])],
            Box::new(move |row| string(row, 2).is_some_and(|s| s == "7" || s == "19")),
        ),
        (
            vec![Expr::Not(Box::new(is_in(2, &["7", "19"])))],
            Box::new(move |row| string(row, 2).is_some_and(|s| s != "7" && s != "19")),
        ),
        (vec![is_null(2)], Box::new(|row| row[2].is_null())),
        (
            vec![Expr::Or(vec![is_null(2), Expr::compare(CompareOp::Gt, column(2), literal("3"))])],
            Box::new(move |row| string(row, 2).is_none_or(|s| s.as_str() > "3")),
        ),
        (
            vec![like(3, "%7%1%"), number(1, CompareOp::GtEq, 25), like(2, "1%")],
            Box::new(move |row| {
                let of = |id| string(row, id).unwrap_or_default();
                of(3).split_once('7').is_some_and(|(_, rest)| rest.contains('1'))
                    && at_least(row, 1, 25)
                    && of(2).starts_with('1')
            }),
        ),
        (
            vec![
                Expr::compare(CompareOp::LtEq, column(3), literal("text 003")),
                number(1, CompareOp::NotEq, 4),
            ],
            Box::new(move |row| {
                string(row, 3).is_some_and(|s| s.as_str() <= "text 003")
                    && at_least(row, 1, 0)
                    && row[1] != int(4)
            }),
        ),
        (
            vec![
                Expr::compare(CompareOp::GtEq, as_number, Expr::literal(int(20), DataType::Int32)),
                number(0, CompareOp::GtEq, 10),
                number(1, CompareOp::NotEq, 4),
            ],
            Box::new(move |row| {
                let number = string(row, 2).and_then(|s| s.parse::<i32>().ok());
                number.is_some_and(|n| n >= 20)
                    && at_least(row, 0, 10)
                    && at_least(row, 1, 0)
                    && row[1] != int(4)
            }),
        ),
    ];
    for (filters, keep) in cases {
        let Node::Scan(scan) = scan.clone() else { unreachable!("it is a scan") };
        let what = format!("{filters:?}");
        let plan = plan(Node::Scan(Scan { filters, ..scan }), &columns);
        let expected: Vec<Row> = rows.iter().filter(|row| keep(row)).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < rows.len());
        for (optimize, adaptive) in [(false, false), (false, true), (true, false), (true, true)] {
            for chunk_rows in [3, 100, entasis_vector::CHUNK_ROWS] {
                let settings = Settings { threads: 2, chunk_rows, optimize, adaptive, ..Settings::default() };
                let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
                assert_eq!(run(&plan, &context).unwrap(), expected, "{what} under {:?}", context.settings);
            }
        }
    }
}

/// The pairs of all rows of two inputs that satisfy a condition which is never true.
fn endless_join(rows: i128) -> Plan {
    let mut columns = Columns::default();
    let all = || (0..rows).map(|i| vec![int(i)]).collect();
    let (left, l) = values(&mut columns, "l", &[DataType::Int64], all());
    let (right, r) = values(&mut columns, "r", &[DataType::Int64], all());
    let never =
        |i: ColumnId| Expr::compare(CompareOp::Lt, columns.expr(i), Expr::literal(int(0), DataType::Int64));
    let residual = vec![Expr::Or(vec![never(l[0]), never(r[0])])];
    let join =
        Join { left: Box::new(left), right: Box::new(right), kind: JoinKind::Inner, on: vec![], residual };
    plan(Node::Join(join), &columns)
}

#[test]
fn a_statement_stops_in_the_middle_of_a_chunk() {
    let plan = endless_join(20_000);
    for context in contexts() {
        let cancel = context.cancel.clone();
        let raiser = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            cancel.raise();
            Instant::now()
        });
        let error = run(&plan, &context).unwrap_err();
        let waited = raiser.join().unwrap().elapsed();
        assert_eq!(error.kind(), entasis_vector::ErrorKind::Interrupted);
        assert!(waited.as_millis() < 1000, "stopped after {waited:?}");
    }
}
