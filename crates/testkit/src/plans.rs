//! Random plans over stored tables, for optimizer and engine without a front end.
//!
//! **Strategy.** Nodes of every kind are combined at random, among them what the front end rarely or never
//! produces: mark and single joins, null-aware anti joins with residuals, keys for which NULL equals NULL,
//! `VALUES` without rows or columns, `DISTINCT` over nothing. Expressions come from [`Expressions`], tame.
//!
//! **Invariants.** A limit only occurs over a sort by all columns. There are no aggregates that depend on
//! which row comes first. Expressions may fail; comparisons must allow for filters that were moved (see
//! `tests/suite/plans`).

use crate::expressions::{Expressions, TYPES};
use crate::random::Random;
use entasis_engine::exec::QueryContext;
use entasis_engine::plan::{
    Aggregate, AggregateCall, AggregateFunction, Bound, Columns, Distinct, Exclude, Filter, Frame,
    FrameUnits, Join, JoinKey, JoinKind, Limit, Node, Output, Plan, Project, Scan, SetKind, SetOperation,
    Sort, SortKey, Top, Values, Window, WindowCall, WindowFunction,
};
use entasis_engine::relation::{ColumnStatistics, Relation, ScanRequest, Source, Statistics};
use entasis_storage::{Table, TableSnapshot};
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::vector::uuid_to_ordered;
use entasis_vector::{Chunk, ColumnId, DataType, Error, Field, Result, Schema, Selection, Value, Vector};
use std::sync::Arc;

/// The plan of `seed`, over tables that are created for it.
pub fn plan(seed: u64) -> Plan {
    let mut random = Random::new(seed);
    let tables = (0..3).map(|t| table(&mut random, t)).collect();
    let expressions = Expressions { random, tame: true, columns: Vec::new() };
    let mut plans = Plans { expressions, columns: Columns::default(), tables };
    let depth = *plans.random().pick(&[1, 2, 2, 3]);
    let root = plans.node(depth);
    let output =
        root.columns().into_iter().map(|column| Output { name: format!("c{}", column.0), column }).collect();
    Plan { root, columns: plans.columns, output }
}

// ---- tables -----------------------------------------------------------------------------------------------

/// A snapshot of a table as a relation.
#[derive(Debug)]
struct StoredTable(TableSnapshot);

impl Relation for StoredTable {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn schema(&self) -> &Schema {
        self.0.schema()
    }
    fn statistics(&self) -> Statistics {
        let of = |column| {
            let summary = self.0.column_statistics(column);
            ColumnStatistics {
                min: summary.min.clone(),
                max: summary.max.clone(),
                nulls: Some(summary.nulls),
                distinct: Some(summary.distinct),
                bounds_are_exact: true,
            }
        };
        Statistics { rows: Some(self.0.rows()), columns: (0..self.0.schema().len()).map(of).collect() }
    }
    fn table(&self) -> Option<&TableSnapshot> {
        Some(&self.0)
    }
    fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        Err(Error::internal("the engine scans stored tables by itself"))
    }
}

fn table(random: &mut Random, number: usize) -> Arc<dyn Relation> {
    // Every table has one integer and one text column, so that joins find keys.
    let mut types = vec![DataType::Int32, DataType::Varchar];
    types.extend((0..random.between(1, 4)).map(|_| *random.pick(&TYPES)));
    let schema: Schema = types.iter().enumerate().map(|(i, ty)| Field::new(format!("c{i}"), *ty)).collect();
    let rows = *random.pick(&[0, 1, 4, 9, 14]);
    let mut values = Expressions { random: random.clone(), tame: true, columns: Vec::new() };
    let nulls = *values.random.pick(&[0, 20, 50]);
    let mut chunk = Chunk::new();
    chunk.reset(rows);
    let group = chunk.push_group(Selection::ALL);
    for ty in &types {
        let domain: Vec<Value> = (0..4).map(|_| values.value(*ty)).collect();
        let cells: Vec<Value> = (0..rows)
            .map(|_| {
                let value = if values.random.chance(nulls) {
                    Value::Null
                } else {
                    values.random.pick(&domain).clone()
                };
                match value {
                    Value::Integer(bits) if *ty == DataType::Uuid => Value::Integer(uuid_to_ordered(bits)),
                    other => other,
                }
            })
            .collect();
        let vector = Vector::from_values(ty.physical(), &cells).expect("values are of the column's type");
        chunk.push_column(vector, group);
    }
    *random = values.random;
    let table = Table::new(format!("t{number}"), schema);
    let mut appender = table.appender();
    appender.append(&chunk, 0).expect("no constraint");
    table.commit(vec![appender.finish()]).expect("no constraint");
    Arc::new(StoredTable(table.snapshot()))
}

// ---- nodes ------------------------------------------------------------------------------------------------

struct Plans {
    expressions: Expressions,
    columns: Columns,
    tables: Vec<Arc<dyn Relation>>,
}

impl Plans {
    fn random(&mut self) -> &mut Random {
        &mut self.expressions.random
    }

    fn node(&mut self, depth: usize) -> Node {
        if depth == 0 {
            return self.leaf();
        }
        let below = depth - 1;
        match self.random().below(14) {
            0 => self.leaf(),
            1 | 2 => {
                let input = Box::new(self.node(below));
                self.read(&[&input]);
                let predicates =
                    (0..self.random().between(1, 2)).map(|_| self.expressions.boolean(1)).collect();
                Node::Filter(Filter { input, predicates })
            }
            3 => self.project(below),
            4..=7 => self.join(below),
            8 => self.aggregate(below),
            9 => {
                let input = self.node(below);
                let all = input.columns();
                let count = self.random().below(all.len() + 1).min(3);
                let keys = (0..count).map(|i| all[(i * 7 + count) % all.len()]).collect::<Vec<_>>();
                let mut keys = keys;
                keys.sort_unstable();
                keys.dedup();
                Node::Distinct(Distinct::new(input, keys))
            }
            10 => self.sort_and_limit(below),
            11 | 12 => self.window(below),
            _ => self.set_operation(below),
        }
    }

    fn leaf(&mut self) -> Node {
        if self.random().chance(12) {
            return self.values();
        }
        let tables = self.tables.clone();
        let relation = self.random().pick(&tables).clone();
        let mut columns = Vec::new();
        for (index, field) in relation.schema().clone().iter().enumerate() {
            if index < 2 || self.random().chance(75) {
                columns.push((self.columns.add(&*field.name, field.ty, true), index));
            }
        }
        Node::Scan(Scan::all(relation, columns))
    }

    fn values(&mut self) -> Node {
        let types: Vec<DataType> = (0..self.random().below(3)).map(|_| *self.random().pick(&TYPES)).collect();
        let columns = types.iter().map(|ty| self.columns.add("v", *ty, true)).collect();
        let rows = (0..self.random().below(4))
            .map(|_| {
                let cell = |ty: &DataType| {
                    if self.random().chance(20) { Value::Null } else { self.expressions.value(*ty) }
                };
                types.iter().map(cell).collect()
            })
            .collect();
        Node::Values(Values { columns, rows })
    }

    /// Makes the columns of `nodes` those that expressions read.
    fn read(&mut self, nodes: &[&Node]) {
        let ids: Vec<ColumnId> = nodes.iter().flat_map(|node| node.columns()).collect();
        self.expressions.columns = ids.iter().map(|id| ColumnMeta::new(*id, self.columns.ty(*id))).collect();
    }

    fn project(&mut self, depth: usize) -> Node {
        let input = Box::new(self.node(depth));
        self.read(&[&input]);
        let mut exprs = Vec::new();
        for _ in 0..self.random().between(1, 3) {
            let ty = *self.random().pick(&TYPES);
            let expr = self.expressions.expression(ty, 2);
            exprs.push((self.columns.add("p", ty, true), expr));
        }
        Node::Project(Project { input, exprs })
    }

    fn join(&mut self, depth: usize) -> Node {
        let (left, right) = (Box::new(self.node(depth)), Box::new(self.node(depth.min(1))));
        let kind = match self.random().below(14) {
            0..=3 => JoinKind::Inner,
            4 | 5 => JoinKind::Left,
            6 => JoinKind::Right,
            7 => JoinKind::Full,
            8 => JoinKind::Semi,
            9 => JoinKind::Anti,
            10 => JoinKind::NullAwareAnti,
            11 | 12 => {
                let null_aware = self.random().chance(50);
                JoinKind::Mark { mark: self.columns.add("mark", DataType::Boolean, null_aware), null_aware }
            }
            _ => JoinKind::Single,
        };
        let null_aware = matches!(kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. });
        let mut pairs: Vec<(Expr, Expr)> = Vec::new();
        for l in left.columns() {
            for r in right.columns() {
                if self.columns.ty(l) == self.columns.ty(r) {
                    pairs.push((self.columns.expr(l), self.columns.expr(r)));
                }
            }
        }
        let wanted = if null_aware { 1 } else { *self.random().pick(&[0, 1, 1, 1, 2]) };
        let mut on = Vec::new();
        for _ in 0..wanted {
            let (left, right) = if pairs.is_empty() {
                let one = || Expr::literal(Value::Integer(1), DataType::Int32);
                (one(), one())
            } else {
                self.random().pick(&pairs).clone()
            };
            let null_equals_null = !null_aware && self.random().chance(15);
            on.push(JoinKey { left, right, null_equals_null });
        }
        let mut residual = Vec::new();
        if self.random().chance(30) {
            self.read(&[&left, &right]);
            residual.push(self.expressions.boolean(1));
        }
        Node::Join(Join { left, right, kind, on, residual })
    }

    fn aggregate(&mut self, depth: usize) -> Node {
        let input = Box::new(self.node(depth));
        self.read(&[&input]);
        let (mut groups, mut aggregates) = (Vec::new(), Vec::new());
        for _ in 0..self.random().below(3) {
            let key = match input.columns()[..] {
                [] => Expr::boolean(true),
                ref columns => {
                    let id = *self.random().pick(columns);
                    self.columns.expr(id)
                }
            };
            groups.push((self.columns.add("g", key.ty(), true), key));
        }
        for _ in 0..self.random().below(4) {
            let call = self.call();
            aggregates.push((self.columns.add("a", call.ty, true), call));
        }
        if groups.is_empty() && aggregates.is_empty() {
            aggregates.push((self.columns.add("n", DataType::Int64, false), self.count_star()));
        }
        Node::Aggregate(Aggregate { input, groups, aggregates })
    }

    fn count_star(&self) -> AggregateCall {
        AggregateCall {
            function: AggregateFunction::CountStar,
            args: Vec::new(),
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: DataType::Int64,
        }
    }

    fn call(&mut self) -> AggregateCall {
        let integers = [DataType::Int8, DataType::Int32, DataType::Int64, DataType::UInt8, DataType::UInt32];
        let money = DataType::Decimal { precision: 6, scale: 2 };
        let sum_of_money = DataType::Decimal { precision: 38, scale: 2 };
        let mut call = self.count_star();
        let any = *self.random().pick(&TYPES);
        let integer = *self.random().pick(&integers);
        let (function, argument, ty) = match self.random().below(9) {
            0 => (AggregateFunction::CountStar, None, DataType::Int64),
            1 => (AggregateFunction::Count, Some(any), DataType::Int64),
            2 => {
                let ty = if matches!(integer, DataType::UInt8 | DataType::UInt32) {
                    DataType::UInt64
                } else {
                    DataType::Int64
                };
                (AggregateFunction::Sum, Some(integer), ty)
            }
            3 => (AggregateFunction::Sum, Some(money), sum_of_money),
            4 => (AggregateFunction::Avg, Some(*self.random().pick(&[money, integer])), DataType::Float64),
            5 | 6 => (AggregateFunction::Min, Some(any), any),
            7 => (AggregateFunction::Max, Some(any), any),
            _ => (AggregateFunction::BoolOr, Some(DataType::Boolean), DataType::Boolean),
        };
        call.args = argument.map(|ty| self.expressions.expression(ty, 1)).into_iter().collect();
        (call.function, call.ty) = (function, ty);
        call.distinct = !call.args.is_empty() && self.random().chance(25);
        call.filter = if self.random().chance(20) { Some(self.expressions.boolean(1)) } else { None };
        call
    }

    /// Window functions over the partitions of one or two columns, ordered by all columns: peers are equal
    /// rows.
    fn window(&mut self, depth: usize) -> Node {
        let input = Box::new(self.node(depth));
        let columns = input.columns();
        if columns.is_empty() {
            return *input;
        }
        let mut partition = Vec::new();
        for _ in 0..self.random().below(3) {
            let id = *self.random().pick(&columns);
            partition.push(self.columns.expr(id));
        }
        let mut order: Vec<SortKey> = Vec::new();
        for id in &columns {
            let (descending, nulls_first) = (self.random().chance(50), self.random().chance(50));
            order.push(SortKey { expr: self.columns.expr(*id), descending, nulls_first });
        }
        let first = self.random().below(order.len());
        order.rotate_left(first);
        let mut calls = Vec::new();
        for _ in 0..self.random().between(1, 4) {
            self.read(&[&input]);
            let call = self.window_call();
            calls.push((self.columns.add("w", call.ty, true), call));
        }
        let top = self
            .random()
            .chance(20)
            .then(|| Top { rows: self.random().below(4), with_peers: self.random().chance(50) });
        Node::Window(Window { input, partition, order, calls, top })
    }

    fn window_call(&mut self) -> WindowCall {
        use WindowFunction as F;
        let any = *self.random().pick(&TYPES);
        let number = |value: usize| Expr::literal(Value::Integer(value as i128), DataType::Int64);
        let small = self.random().below(4);
        let values = |plans: &mut Plans| plans.expressions.expression(any, 1);
        let (function, args, ty) = match self.random().below(16) {
            0 => (F::RowNumber, Vec::new(), DataType::Int64),
            1 => (F::Rank, Vec::new(), DataType::Int64),
            2 => (F::DenseRank, Vec::new(), DataType::Int64),
            3 => (F::PercentRank, Vec::new(), DataType::Float64),
            4 => (F::CumeDist, Vec::new(), DataType::Float64),
            5 => (F::Ntile, vec![number(small + 1)], DataType::Int64),
            6 => (F::Lag, vec![values(self), number(small)], any),
            7 => (F::Lead, vec![values(self), number(small), values(self)], any),
            8 => (F::FirstValue, vec![values(self)], any),
            9 => (F::LastValue, vec![values(self)], any),
            10 => (F::NthValue, vec![values(self), number(small + 1)], any),
            _ => {
                let call = self.call();
                let AggregateCall { function, args, distinct, filter, order_by, ty } = call;
                let (function, frame) = (F::Aggregate(function), self.frame());
                return WindowCall {
                    function,
                    args,
                    distinct,
                    filter,
                    order_by,
                    ignore_nulls: false,
                    frame,
                    ty,
                };
            }
        };
        let takes_nulls = !matches!(function, F::Lag | F::Lead | F::FirstValue | F::LastValue | F::NthValue);
        let ignore_nulls = !takes_nulls && self.random().chance(40);
        let (filter, frame) = (None, self.frame());
        WindowCall { function, args, distinct: false, filter, order_by: Vec::new(), ignore_nulls, frame, ty }
    }

    /// A frame of rows or groups: there are too many order keys for offsets by value.
    fn frame(&mut self) -> Frame {
        let units = *self.random().pick(&[FrameUnits::Rows, FrameUnits::Groups, FrameUnits::Range]);
        let mut bound = |is_end: bool| match self.random().below(4) {
            0 if is_end => Bound::UnboundedFollowing,
            0 => Bound::UnboundedPreceding,
            1 => Bound::CurrentRow,
            _ if units == FrameUnits::Range => Bound::CurrentRow,
            way => {
                let offset = Expr::literal(Value::Integer(self.random().below(4) as i128), DataType::Int64);
                if way == 2 { Bound::Preceding(offset) } else { Bound::Following(offset) }
            }
        };
        let (start, end) = (bound(false), bound(true));
        let excludes =
            [Exclude::NoOthers, Exclude::NoOthers, Exclude::CurrentRow, Exclude::Group, Exclude::Ties];
        Frame { units, start, end, exclude: *self.random().pick(&excludes) }
    }

    /// A sort by all columns, often with a limit over it or in it.
    fn sort_and_limit(&mut self, depth: usize) -> Node {
        let input = Box::new(self.node(depth));
        let mut keys = Vec::new();
        for id in input.columns() {
            let (descending, nulls_first) = (self.random().chance(50), self.random().chance(50));
            keys.push(SortKey { expr: self.columns.expr(id), descending, nulls_first });
        }
        let first = self.random().below(keys.len());
        keys.rotate_left(first);
        let limit = if self.random().chance(40) { Some(self.random().below(6)) } else { None };
        let sort = Node::Sort(Sort { input, keys, limit });
        if self.random().chance(40) {
            let (offset, count) = (self.random().below(4), self.random().below(6));
            return Node::Limit(Limit { input: Box::new(sort), offset, count: Some(count) });
        }
        sort
    }

    fn set_operation(&mut self, depth: usize) -> Node {
        let kind = *self.random().pick(&[SetKind::Union, SetKind::Intersect, SetKind::Except]);
        let all = self.random().chance(50);
        let types = if self.random().chance(50) {
            vec![DataType::Int32]
        } else {
            vec![DataType::Int32, DataType::Varchar]
        };
        let count = if kind == SetKind::Union { self.random().between(2, 3) } else { 2 };
        let mut inputs = Vec::new();
        for _ in 0..count {
            let input = Box::new(self.node(depth.min(1)));
            self.read(&[&input]);
            let mut exprs = Vec::new();
            for ty in &types {
                let there: Vec<ColumnId> =
                    self.expressions.columns.iter().filter(|c| c.ty == *ty).map(|c| c.id).collect();
                let expr = match there.first() {
                    Some(id) => self.columns.expr(*id),
                    None => self.expressions.expression(*ty, 1),
                };
                exprs.push((self.columns.add("s", *ty, true), expr));
            }
            let columns = exprs.iter().map(|(id, _)| *id).collect();
            inputs.push((Node::Project(Project { input, exprs }), columns));
        }
        let columns = types.iter().map(|ty| self.columns.add("u", *ty, true)).collect();
        Node::SetOperation(SetOperation { kind, all, inputs, columns })
    }
}
