//! Plans by hand for tests: tables that have statistics and no rows.

use crate::context::QueryContext;
use crate::plan::{
    Aggregate, AggregateCall, AggregateFunction, Columns, Filter, Join, JoinKind, Node, Output, Plan, Scan,
};
use crate::relation::{ColumnStatistics, Relation, ScanRequest, Source, Statistics};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Field, Result, Schema, Value};
use std::sync::Arc;

#[derive(Debug)]
struct Table {
    name: String,
    schema: Schema,
    statistics: Statistics,
    unique: Option<usize>,
    is_file: bool,
}

impl Relation for Table {
    fn name(&self) -> &str {
        &self.name
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }
    fn is_unique(&self, column: usize) -> bool {
        self.unique == Some(column)
    }
    fn leaves_out_by_bounds(&self) -> bool {
        self.is_file
    }
    fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        Err(Error::internal("a table without rows was scanned"))
    }
}

/// Builds plans; columns go by name.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) columns: Columns,
}

impl Builder {
    /// A scan of a new table of `rows` rows whose BIGINT columns have so many distinct values, from 0
    /// upwards.
    pub(super) fn scan(&mut self, name: &str, rows: u64, columns: &[(&str, u64)]) -> Node {
        self.scan_with_key(name, rows, columns, None)
    }

    /// The same of a file, whose parts have bounds.
    pub(super) fn scan_of_file(&mut self, name: &str, rows: u64, columns: &[(&str, u64)]) -> Node {
        self.scan_of(name, rows, columns, None, true)
    }

    /// The same, with a column that the table knows to be unique.
    pub(super) fn scan_with_key(
        &mut self,
        name: &str,
        rows: u64,
        columns: &[(&str, u64)],
        unique: Option<usize>,
    ) -> Node {
        self.scan_of(name, rows, columns, unique, false)
    }

    fn scan_of(
        &mut self,
        name: &str,
        rows: u64,
        columns: &[(&str, u64)],
        unique: Option<usize>,
        is_file: bool,
    ) -> Node {
        let mut schema = Schema::new();
        let mut statistics = Statistics { rows: Some(rows), columns: Vec::new() };
        let mut ids = Vec::new();
        for (index, (column, distinct)) in columns.iter().enumerate() {
            schema.push(Field::new(*column, DataType::Int64));
            statistics.columns.push(ColumnStatistics {
                min: Some(Value::Integer(0)),
                max: Some(Value::Integer(*distinct as i128 - 1)),
                nulls: Some(0),
                distinct: Some(*distinct),
                bounds_are_exact: true,
            });
            ids.push((self.columns.add(*column, DataType::Int64, true), index));
        }
        let relation = Arc::new(Table { name: name.to_owned(), schema, statistics, unique, is_file });
        Node::Scan(Scan::all(relation, ids))
    }

    /// The newest column called `name`.
    pub(super) fn id(&self, name: &str) -> ColumnId {
        let ids = (0..self.columns.len() as u32).rev().map(ColumnId);
        ids.into_iter().find(|id| self.columns.get(*id).name == name).expect("the column was made")
    }

    pub(super) fn column(&self, name: &str) -> Expr {
        self.columns.expr(self.id(name))
    }

    /// `a op b`, where names are columns and numbers constants.
    pub(super) fn compare(&self, a: &str, op: CompareOp, b: &str) -> Expr {
        let operand = |text: &str| match text.parse::<i128>() {
            Ok(number) => Expr::literal(Value::Integer(number), DataType::Int64),
            Err(_) => self.column(text),
        };
        Expr::compare(op, operand(a), operand(b))
    }

    pub(super) fn equal(&self, a: &str, b: &str) -> Expr {
        self.compare(a, CompareOp::Eq, b)
    }

    /// The number of rows of `input` by the column `by`.
    pub(super) fn count_by(&mut self, input: Node, by: &str, key: &str, count: &str) -> Node {
        let groups = vec![(self.columns.add(key, DataType::Int64, true), self.column(by))];
        let call = AggregateCall {
            function: AggregateFunction::CountStar,
            args: Vec::new(),
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: DataType::Int64,
        };
        let aggregates = vec![(self.columns.add(count, DataType::Int64, false), call)];
        Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates })
    }

    /// The plan that gives the columns called `output`.
    pub(super) fn plan(self, root: Node, output: &[&str]) -> Plan {
        let output =
            output.iter().map(|name| Output { name: (*name).to_owned(), column: self.id(name) }).collect();
        Plan { root, columns: self.columns, output }
    }
}

/// A join whose conditions are all residuals, as they come from `ON`.
pub(super) fn join(kind: JoinKind, left: Node, right: Node, residual: Vec<Expr>) -> Node {
    Node::Join(Join { left: Box::new(left), right: Box::new(right), kind, on: Vec::new(), residual })
}

pub(super) fn cross(left: Node, right: Node) -> Node {
    join(JoinKind::Inner, left, right, Vec::new())
}

pub(super) fn filtered(input: Node, predicates: Vec<Expr>) -> Node {
    Node::Filter(Filter { input: Box::new(input), predicates })
}
