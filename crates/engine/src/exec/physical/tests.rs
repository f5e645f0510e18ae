//! Physical plans as text, compared with `tests/plans.txt`. `ENTASIS_BLESS=1` rewrites the file: read the
//! difference.

use super::Planner;
use crate::context::QueryContext;
use crate::exec::tests::stored_as;
use crate::plan::*;
use crate::relation::{Relation, ScanRequest, Source, Statistics};
use crate::settings::{Settings, Swapping};
use entasis_vector::expr::{ArithmeticOp, CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Field, Result, Schema, Value};
use std::path::Path;
use std::sync::Arc;

/// Plans over tables of three columns: a BIGINT with the number of the row, one of a hundred numbers, and a
/// text.
#[derive(Default)]
struct Tables(Columns);

impl Tables {
    fn scan(&mut self, name: &str, rows: i128) -> (Node, Vec<ColumnId>) {
        let types = [DataType::Int64, DataType::Int64, DataType::Varchar];
        let text = |i: i128| Value::Text(format!("text {i}").into());
        let row = |i: i128| vec![Value::Integer(i), Value::Integer(i % 100), text(i)];
        stored_as(name, &mut self.0, &types, &(0..rows).map(row).collect::<Vec<_>>())
    }

    fn column(&mut self, name: &str, ty: DataType) -> ColumnId {
        self.0.add(name, ty, true)
    }

    /// `column < limit`
    fn less(&self, column: ColumnId, limit: i128) -> Expr {
        let limit = Expr::literal(Value::Integer(limit), DataType::Int64);
        Expr::compare(CompareOp::Lt, self.0.expr(column), limit)
    }

    fn filtered(&self, node: Node, predicate: Expr) -> Node {
        match node {
            Node::Scan(scan) => Node::Scan(Scan { filters: vec![predicate], ..scan }),
            other => Node::Filter(Filter { input: Box::new(other), predicates: vec![predicate] }),
        }
    }

    fn join(&self, kind: JoinKind, left: (Node, ColumnId), right: (Node, ColumnId)) -> Node {
        let keys = (self.0.expr(left.1), self.0.expr(right.1));
        let on = vec![JoinKey { left: keys.0, right: keys.1, null_equals_null: false }];
        Node::Join(Join { left: Box::new(left.0), right: Box::new(right.0), kind, on, residual: Vec::new() })
    }

    fn sort(&self, input: Node, column: ColumnId, limit: Option<usize>) -> Node {
        let keys = vec![SortKey { expr: self.0.expr(column), descending: true, nulls_first: false }];
        Node::Sort(Sort { input: Box::new(input), keys, limit })
    }

    fn sum(&self, column: ColumnId) -> AggregateCall {
        AggregateCall {
            function: AggregateFunction::Sum,
            args: vec![self.0.expr(column)],
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: DataType::Int64,
        }
    }

    /// The plan of `root`, as text, if these columns are the result.
    fn text(&self, root: Node, output: &[ColumnId]) -> String {
        self.text_under(root, output, Settings::default())
    }

    fn text_under(&self, root: Node, output: &[ColumnId], settings: Settings) -> String {
        let output = output.iter().map(|&column| Output { name: column.to_string(), column }).collect();
        let plan = Plan { root, columns: self.0.clone(), output };
        let settings = Settings { threads: 2, temp_directory: "tmp".into(), ..settings };
        let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
        Planner::plan(&plan, &context).unwrap().to_string()
    }
}

/// A file whose rows can be found by number.
#[derive(Debug)]
struct File(Schema);

impl Relation for File {
    fn name(&self) -> &str {
        "f"
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn statistics(&self) -> Statistics {
        Statistics { rows: Some(5000), columns: Vec::new() }
    }
    fn finds_rows(&self) -> bool {
        true
    }
    fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        Err(Error::internal("a relation is opened while its plan is made"))
    }
}

fn scan_filter_project() -> String {
    let mut tables = Tables::default();
    let (scan, t) = tables.scan("t", 3000);
    let sum = tables.column("sum", DataType::Int64);
    let add = Expr::Arithmetic {
        op: ArithmeticOp::Add,
        left: Box::new(tables.0.expr(t[0])),
        right: Box::new(tables.0.expr(t[1])),
        ty: DataType::Int64,
    };
    let input = Box::new(tables.filtered(scan, tables.less(t[1], 5)));
    let project = Node::Project(Project { input, exprs: vec![(sum, add)] });
    tables.text(tables.filtered(project, tables.less(sum, 1000)), &[sum, t[2]])
}

fn join() -> String {
    let mut tables = Tables::default();
    let ((t, a), (u, b)) = (tables.scan("t", 3000), tables.scan("u", 100));
    let u = tables.filtered(u, tables.less(b[1], 10));
    tables.text(tables.join(JoinKind::Inner, (t, a[0]), (u, b[0])), &[a[1], b[2]])
}

fn join_of_aggregate() -> String {
    let mut tables = Tables::default();
    let ((t, a), (u, b), (v, c)) = (tables.scan("t", 3000), tables.scan("u", 10), tables.scan("v", 900));
    let (group, sum) = (tables.column("g", DataType::Int64), tables.column("s", DataType::Int64));
    let below = tables.join(JoinKind::Inner, (t, a[0]), (v, c[0]));
    let groups = vec![(group, tables.0.expr(c[1]))];
    let aggregates = vec![(sum, tables.sum(a[1]))];
    let aggregate = Node::Aggregate(Aggregate { input: Box::new(below), groups, aggregates });
    tables.text(tables.join(JoinKind::Semi, (aggregate, group), (u, b[0])), &[sum])
}

fn join_tail() -> String {
    let mut tables = Tables::default();
    let ((t, a), (u, b)) = (tables.scan("t", 10), tables.scan("u", 3000));
    tables.text(tables.join(JoinKind::Left, (t, a[0]), (u, b[0])), &[a[0], b[2]])
}

fn swappable_join() -> String {
    let mut tables = Tables::default();
    let ((t, a), (u, b)) = (tables.scan("t", 3000), tables.scan("u", 100));
    let root = tables.join(JoinKind::Inner, (t, a[0]), (u, b[0]));
    let settings = Settings { join_swap: Swapping::Always, ..Settings::default() };
    tables.text_under(root, &[a[1], b[2]], settings)
}

fn join_read_twice() -> String {
    let mut tables = Tables::default();
    let ((t, a), (u, b)) = (tables.scan("t", 3000), tables.scan("u", 100));
    let root = tables.join(JoinKind::Inner, (t, a[0]), (u, b[0]));
    let settings = Settings { join_build: crate::settings::Readings::Twice, ..Settings::default() };
    tables.text_under(root, &[a[1], b[1]], settings)
}

fn aggregate() -> String {
    let mut tables = Tables::default();
    let (scan, t) = tables.scan("t", 3000);
    let (group, sum) = (tables.column("g", DataType::Int64), tables.column("s", DataType::Int64));
    let groups = vec![(group, tables.0.expr(t[1]))];
    let input = Box::new(tables.filtered(scan, tables.less(t[0], 1000)));
    let aggregates = vec![(sum, tables.sum(t[0]))];
    tables.text(Node::Aggregate(Aggregate { input, groups, aggregates }), &[group, sum])
}

fn aggregate_of_stored_rows() -> String {
    let mut tables = Tables::default();
    let (scan, t) = tables.scan("t", 3000);
    let sum = tables.column("s", DataType::Int64);
    let aggregates = vec![(sum, tables.sum(t[0]))];
    tables.text(Node::Aggregate(Aggregate { input: Box::new(scan), groups: Vec::new(), aggregates }), &[sum])
}

fn distinct() -> String {
    let mut tables = Tables::default();
    let (scan, t) = tables.scan("t", 3000);
    let distinct = Distinct { input: Box::new(scan), keys: vec![t[1]], is_partial: false };
    tables.text(Node::Distinct(distinct), &[t[1]])
}

fn sort() -> String {
    let mut tables = Tables::default();
    let (scan, t) = tables.scan("t", 3000);
    tables.text(tables.sort(scan, t[2], None), &[t[0]])
}

fn first_rows() -> String {
    let mut tables = Tables::default();
    let (scan, t) = tables.scan("t", 3000);
    tables.text(tables.sort(scan, t[0], Some(10)), &[t[0], t[2]])
}

fn first_rows_of_a_file() -> String {
    let mut tables = Tables::default();
    let f = [tables.column("k", DataType::Int64), tables.column("x", DataType::Varchar)];
    let schema = [("k", DataType::Int64), ("x", DataType::Varchar)].map(|(name, ty)| Field::new(name, ty));
    let scan = Scan {
        relation: Arc::new(File(schema.into_iter().collect())),
        columns: f.into_iter().zip(0..).collect(),
        filters: Vec::new(),
        sampled: None,
        references: Vec::new(),
        related: Vec::new(),
    };
    tables.text(tables.sort(Node::Scan(scan), f[0], Some(10)), &f)
}

fn window() -> String {
    let mut tables = Tables::default();
    let (scan, t) = tables.scan("t", 3000);
    let number = tables.column("n", DataType::Int64);
    let window = Window {
        input: Box::new(scan),
        partition: vec![tables.0.expr(t[1])],
        order: vec![SortKey { expr: tables.0.expr(t[0]), descending: false, nulls_first: false }],
        calls: vec![(number, WindowCall::row_number())],
        top: None,
    };
    tables.text(Node::Window(window), &[t[2], number])
}

fn set_operation(kind: SetKind, all: bool, limit: Option<usize>) -> String {
    let mut tables = Tables::default();
    let ((t, a), (u, b)) = (tables.scan("t", 3000), tables.scan("u", 100));
    let column = tables.column("c", DataType::Int64);
    let inputs = vec![(t, vec![a[0]]), (u, vec![b[1]])];
    let set = Node::SetOperation(SetOperation { kind, all, inputs, columns: vec![column] });
    let root = match limit {
        Some(count) => Node::Limit(Limit { input: Box::new(set), offset: 2, count: Some(count) }),
        None => set,
    };
    tables.text(root, &[column])
}

fn unnest() -> String {
    let mut tables = Tables::default();
    let list = DataType::list(DataType::Int64);
    let (k, l) = (tables.column("k", DataType::Int64), tables.column("l", list));
    let element = tables.column("e", DataType::Int64);
    let values = Node::Values(Values { columns: vec![k, l], rows: Vec::new() });
    let lists = vec![(element, tables.0.expr(l))];
    tables.text(Node::Unnest(Unnest { input: Box::new(values), lists }), &[k, element])
}

#[test]
fn plans_are_those_of_the_file() {
    let plans = [
        ("scan, filter, project", scan_filter_project()),
        ("join", join()),
        ("join of an aggregate: filters before the first join", join_of_aggregate()),
        ("left join with the left build side", join_tail()),
        ("join whose sides may be swapped", swappable_join()),
        ("join whose build side is read twice", join_read_twice()),
        ("aggregate", aggregate()),
        ("aggregate of stored rows", aggregate_of_stored_rows()),
        ("distinct", distinct()),
        ("sort", sort()),
        ("first rows", first_rows()),
        ("first rows of a file", first_rows_of_a_file()),
        ("window", window()),
        ("union", set_operation(SetKind::Union, false, None)),
        ("union all with a limit", set_operation(SetKind::Union, true, Some(5))),
        ("except", set_operation(SetKind::Except, false, None)),
        ("unnest", unnest()),
    ];
    let text: String = plans.iter().map(|(title, plan)| format!("-- {title}\n{plan}\n")).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/exec/physical/tests/plans.txt");
    if std::env::var_os("ENTASIS_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(text == expected, "ENTASIS_BLESS=1 rewrites {}; now it is\n{text}", path.display());
}
