//! What is shared, and how much of it: plans as text. That rows stay the same is shown by text tests
//! (`tests/slt/subqueries/shared_ctes.slt`).

use super::*;
use crate::plan::{
    Aggregate, AggregateCall, AggregateFunction, Columns, Filter, Join, JoinKind, Output, Scan,
};
use crate::relation::Place;
use entasis_vector::Field;
use entasis_vector::Value;
use entasis_vector::expr::CompareOp;

fn fields(names: &[&str]) -> Schema {
    names.iter().map(|name| Field { nullable: false, ..Field::new(*name, DataType::Int64) }).collect()
}

fn scan(columns: &mut Columns, relation: &Arc<dyn Relation>) -> (Node, Vec<ColumnId>) {
    let names = relation.schema().iter().map(|field| field.name.to_string());
    let ids: Vec<ColumnId> = names.map(|name| columns.add(name, DataType::Int64, false)).collect();
    let read = ids.iter().copied().enumerate().map(|(index, id)| (id, index)).collect();
    (Node::Scan(Scan::all(relation.clone(), read)), ids)
}

/// The sum of `price` by `year` of a relation, and the two columns.
fn sums(columns: &mut Columns, relation: &Arc<dyn Relation>) -> (Node, [ColumnId; 2]) {
    let (input, ids) = scan(columns, relation);
    let by = columns.add("by", DataType::Int64, false);
    let sum = columns.add("sum", DataType::Int64, true);
    let call = AggregateCall {
        function: AggregateFunction::Max,
        args: vec![columns.expr(ids[1])],
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        ty: DataType::Int64,
    };
    let groups = vec![(by, columns.expr(ids[0]))];
    let node = Aggregate { input: Box::new(input), groups, aggregates: vec![(sum, call)] };
    (Node::Aggregate(node), [by, sum])
}

fn sales() -> Arc<dyn Relation> {
    Arc::new(Place { name: "sales".to_owned(), schema: fields(&["year", "price"]) })
}

fn is(columns: &Columns, id: ColumnId, value: i128) -> Expr {
    Expr::compare(CompareOp::Eq, columns.expr(id), Expr::literal(Value::Integer(value), DataType::Int64))
}

fn cross(left: Node, right: Node) -> Node {
    let kind = JoinKind::Inner;
    Node::Join(Join { left: Box::new(left), right: Box::new(right), kind, on: vec![], residual: vec![] })
}

fn text(root: Node, columns: Columns, output: &[ColumnId]) -> String {
    let output = output.iter().map(|&column| Output { name: "o".to_owned(), column }).collect();
    optimize(Plan { root, columns, output }, &Settings::default()).expect("the plan is sound").to_string()
}

#[test]
fn what_no_reader_wants_is_left_out() {
    let mut inner = Columns::default();
    let (root, [by, sum]) = sums(&mut inner, &sales());
    let output = [("by", by), ("sum", sum)].map(|(name, column)| Output { name: name.to_owned(), column });
    let plan = Plan { root, columns: inner, output: output.to_vec() };
    let shared: Arc<dyn Relation> = Arc::new(Shared::new("totals".to_owned(), fields(&["by", "sum"]), plan));
    let plan_of = |years: &[i128]| {
        let mut columns = Columns::default();
        let (left, l) = scan(&mut columns, &shared);
        let (right, r) = scan(&mut columns, &shared);
        let predicates = years.iter().zip([l[0], r[0]]).map(|(year, id)| is(&columns, id, *year)).collect();
        let root = Node::Filter(Filter { input: Box::new(cross(left, right)), predicates });
        text(root, columns, &[l[0], r[0]])
    };
    let both = plan_of(&[2001, 2002]);
    assert!(both.contains("totals, computed once"), "{both}");
    assert!(both.contains("where (year IN (2001, 2002))"), "{both}");
    assert!(!both.contains("price"), "nobody reads the sum: {both}");
    // One of two readers wants all rows.
    let one = plan_of(&[2001]);
    let computed = one.split("computed once").nth(1).expect("it is shown");
    assert!(!computed.contains("2001"), "{one}");
}

#[test]
fn equal_aggregations_are_one() {
    let relation = sales();
    let mut columns = Columns::default();
    let (left, l) = sums(&mut columns, &relation);
    let (right, r) = sums(&mut columns, &relation);
    let shared = text(cross(left, right), columns, &[l[1], r[1]]);
    assert_eq!(shared.matches("Aggregate").count(), 1, "{shared}");
    assert_eq!(shared.matches("Scan subquery").count(), 2, "{shared}");

    // Of another relation with the same columns, and with another filter.
    let mut columns = Columns::default();
    let (left, l) = sums(&mut columns, &relation);
    let (right, r) = sums(&mut columns, &sales());
    let apart = text(cross(left, right), columns, &[l[1], r[1]]);
    assert_eq!(apart.matches("Aggregate").count(), 2, "{apart}");

    let mut columns = Columns::default();
    let (left, l) = sums(&mut columns, &relation);
    let (mut right, r) = sums(&mut columns, &relation);
    if let Node::Aggregate(aggregate) = &mut right
        && let Node::Scan(scan) = &mut *aggregate.input
    {
        scan.filters.push(is(&columns, scan.columns[0].0, 7));
    }
    let apart = text(cross(left, right), columns, &[l[1], r[1]]);
    assert_eq!(apart.matches("Aggregate").count(), 2, "{apart}");
}

/// `left` of one year and `right` as one region, where the second columns are equal.
fn joined(
    columns: &mut Columns,
    left: &Arc<dyn Relation>,
    right: &Arc<dyn Relation>,
) -> (Node, Vec<ColumnId>) {
    let (l, mut ids) = scan(columns, left);
    let (r, of_right) = scan(columns, right);
    let on = Expr::compare(CompareOp::Eq, columns.expr(of_right[1]), columns.expr(ids[1]));
    ids.extend(of_right);
    let predicates = vec![on, is(columns, ids[0], 1999)];
    (Node::Filter(Filter { input: Box::new(cross(l, r)), predicates }), ids)
}

/// The sum of nothing by a column.
fn grouped(columns: &mut Columns, input: Node, by: ColumnId) -> (Node, ColumnId) {
    let id = columns.add("group", DataType::Int64, false);
    let groups = vec![(id, columns.expr(by))];
    (Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates: Vec::new() }), id)
}

#[test]
fn a_join_that_is_part_of_another_is_computed_once() {
    let (sales, years, notes) = (sales(), sales(), sales());
    let plan_of = |extra: i128| {
        let mut columns = Columns::default();
        let (core, ids) = joined(&mut columns, &sales, &years);
        let (left, l) = grouped(&mut columns, core, ids[0]);
        let (wider, ids) = joined(&mut columns, &sales, &years);
        let (note, of_note) = scan(&mut columns, &notes);
        let on = Expr::compare(CompareOp::Eq, columns.expr(ids[3]), columns.expr(of_note[1]));
        let predicates = match extra {
            0 => vec![on],
            year => vec![on, is(&columns, ids[2], year)],
        };
        let wider = Node::Filter(Filter { input: Box::new(cross(note, wider)), predicates });
        let (right, r) = grouped(&mut columns, wider, of_note[1]);
        text(cross(left, right), columns, &[l, r])
    };
    let both = plan_of(0);
    assert_eq!(both.matches("Scan join [").count(), 2, "{both}");
    assert_eq!(both.matches("Scan sales [").count(), 3, "the three relations once each: {both}");
    // One that wants few of the rows finds them by its own condition.
    let apart = plan_of(2001);
    assert_eq!(apart.matches("Scan join [").count(), 0, "{apart}");
}
