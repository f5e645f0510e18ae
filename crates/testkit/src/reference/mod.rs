//! The reference engine: the meaning of a plan, one row at a time.
//!
//! A slow and obvious interpreter of [`Plan`]. Every node turns whole inputs into whole outputs, every join
//! is a nested loop, every group is found by searching the groups so far, every expression walks its tree for
//! each row. It shares no code with the engine: not its kernels, hash functions, sorts or chunks; only
//! [`Value`] and the calendar. So a result on which both agree is right, or both are wrong in the same way
//! for different reasons.
//!
//! | file | what it defines |
//! |---|---|
//! | this one | the result of each node |
//! | [`recursion`] | the result of a recursion that reads columns of rows around |
//! | [`expression`] | the value of each expression |
//! | [`permitted`] | the permitted values of an expression with an error in a part of it |
//! | [`cast`] | the result of each conversion |
//! | [`aggregate`] | the result of each aggregate |
//! | [`window`] | the result of each window function |
//!
//! It is exact about results and about *whether* a statement fails, but not about the text of errors, and it
//! answers "not supported" for what it does not implement. Functions of other libraries are called with
//! vectors of one row.

pub mod aggregate;
pub mod cast;
pub mod expression;
pub mod permitted;
pub mod recursion;
pub mod window;

use entasis_engine::exec::QueryContext;
use entasis_engine::plan::{
    Dependent, Join, JoinKind, Node, Plan, Scan, SetKind, SetOperation, SortKey, Values, each_expr_mut,
    free_columns,
};
use entasis_engine::relation::{Relation, ScanRequest};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::value::nested::elements;
use entasis_vector::{Chunk, ColumnId, DataType, Error, Result, Value, Vector};
use expression::{Row, evaluate, holds, order, position};
use std::collections::HashMap;

/// Rows with the ids of their columns.
#[derive(Debug, Clone)]
pub struct Table {
    /// The column of each value in a row.
    pub columns: Vec<ColumnId>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    fn new(columns: Vec<ColumnId>) -> Table {
        Table { columns, rows: Vec::new() }
    }
    fn row(&self, i: usize) -> Row<'_> {
        Row { columns: &self.columns, values: &self.rows[i] }
    }
    fn all_null(&self) -> Vec<Value> {
        vec![Value::Null; self.columns.len()]
    }
}

/// The rows of a plan's result, its output columns in order.
///
/// # Errors
/// Those of the statement, and "not supported" for what the reference does not implement.
pub fn run(plan: &Plan) -> Result<Vec<Vec<Value>>> {
    let columns: Vec<ColumnId> = plan.output.iter().map(|output| output.column).collect();
    columns_of(&plan.root, &columns)
}

/// The rows that a node returns.
///
/// # Errors
/// Those of [`run`].
pub fn rows_of(node: &Node) -> Result<Table> {
    let mut out = Table::new(node.columns());
    match node {
        Node::Scan(scan) => out.rows = scan_rows(scan)?,
        Node::Values(values) => out.rows = values.rows.clone(),
        Node::Filter(filter) => {
            let input = rows_of(&filter.input)?;
            for (i, row) in input.rows.iter().enumerate() {
                if all_hold(&filter.predicates, input.row(i))? {
                    out.rows.push(row.clone());
                }
            }
        }
        Node::Project(project) => {
            let input = rows_of(&project.input)?;
            for (i, row) in input.rows.iter().enumerate() {
                let mut values = row.clone();
                for (_, expr) in &project.exprs {
                    values.push(evaluate(expr, input.row(i))?);
                }
                out.rows.push(values);
            }
        }
        Node::Unnest(unnest) => {
            let input = rows_of(&unnest.input)?;
            for (i, row) in input.rows.iter().enumerate() {
                let mut lists = Vec::new();
                for (_, list) in &unnest.lists {
                    lists.push(match (evaluate(list, input.row(i))?, list.ty()) {
                        (Value::Bytes(bytes), DataType::List(element)) => elements(&bytes, *element)?,
                        _ => Vec::new(),
                    });
                }
                for at in 0..lists.iter().map(Vec::len).max().unwrap_or(0) {
                    let own = lists.iter().map(|list| list.get(at).cloned().unwrap_or(Value::Null));
                    out.rows.push(row.iter().cloned().chain(own).collect());
                }
            }
        }
        Node::Join(join) => out.rows = join_rows(join)?,
        Node::Dependent(join) => out.rows = dependent_rows(join)?,
        Node::Aggregate(node) => {
            let input = rows_of(&node.input)?;
            out.rows = aggregate::groups(node, &input)?;
        }
        Node::Distinct(distinct) => {
            let input = rows_of(&distinct.input)?;
            for row in &input.rows {
                let mut key = Vec::with_capacity(distinct.keys.len());
                for id in &distinct.keys {
                    key.push(row[position(&input.columns, *id)?].clone());
                }
                if !out.rows.contains(&key) {
                    out.rows.push(key);
                }
            }
        }
        Node::Window(node) => {
            let input = rows_of(&node.input)?;
            out.rows = window::rows(node, &input)?;
        }
        Node::Sort(sort) => {
            let input = rows_of(&sort.input)?;
            out.rows = sorted(&input, &sort.keys)?;
            if let Some(limit) = sort.limit {
                out.rows.truncate(limit);
            }
        }
        Node::Limit(limit) => {
            let input = rows_of(&limit.input)?;
            out.rows =
                input.rows.into_iter().skip(limit.offset).take(limit.count.unwrap_or(usize::MAX)).collect();
        }
        Node::SetOperation(set) => out.rows = set_rows(set)?,
        Node::Recursion(node) => out.rows = recursion::rows(node)?,
    }
    Ok(out)
}

fn all_hold(predicates: &[Expr], row: Row<'_>) -> Result<bool> {
    for predicate in predicates {
        if !holds(predicate, row)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The rows of `input` sorted by `keys`; the sort is stable.
fn sorted(input: &Table, keys: &[SortKey]) -> Result<Vec<Vec<Value>>> {
    let mut keyed: Vec<(Vec<Value>, &Vec<Value>)> = Vec::new();
    for (i, row) in input.rows.iter().enumerate() {
        let key = keys.iter().map(|key| evaluate(&key.expr, input.row(i))).collect::<Result<_>>()?;
        keyed.push((key, row));
    }
    keyed.sort_by(|(a, _), (b, _)| order_by_keys(keys, a, b));
    Ok(keyed.into_iter().map(|(_, row)| row.clone()).collect())
}

/// Compares two rows by the values of their sort keys.
pub fn order_by_keys(keys: &[SortKey], a: &[Value], b: &[Value]) -> std::cmp::Ordering {
    use std::cmp::Ordering::{Equal, Greater, Less};
    for ((key, a), b) in keys.iter().zip(a).zip(b) {
        let found = match (a.is_null(), b.is_null()) {
            (true, true) => Equal,
            (true, false) => {
                if key.nulls_first {
                    Less
                } else {
                    Greater
                }
            }
            (false, true) => {
                if key.nulls_first {
                    Greater
                } else {
                    Less
                }
            }
            (false, false) => {
                let ascending = order(a, b, key.expr.ty());
                if key.descending { ascending.reverse() } else { ascending }
            }
        };
        if found != Equal {
            return found;
        }
    }
    Equal
}

// ---- scans ------------------------------------------------------------------------------------------------

fn scan_rows(scan: &Scan) -> Result<Vec<Vec<Value>>> {
    let all = relation_rows(&*scan.relation)?;
    let columns: Vec<ColumnId> = scan.columns.iter().map(|(id, _)| *id).collect();
    let mut rows = Vec::new();
    for row in all {
        let values: Vec<Value> = scan.columns.iter().map(|(_, index)| row[*index].clone()).collect();
        if all_hold(&scan.filters, Row { columns: &columns, values: &values })? {
            rows.push(values);
        }
    }
    Ok(rows)
}

/// All rows of a relation, in its order: those of tables value by value, others through an unfiltered scan.
///
/// # Errors
/// I/O and input errors of files.
pub fn relation_rows(relation: &dyn Relation) -> Result<Vec<Vec<Value>>> {
    let types: Vec<DataType> = relation.schema().iter().map(|field| field.ty).collect();
    let mut rows = Vec::new();
    if let Some(table) = relation.table() {
        for group in table.row_groups() {
            for slot in (0..group.slots()).filter(|&slot| group.is_live(slot)) {
                let mut row = Vec::with_capacity(types.len());
                for (column, ty) in types.iter().enumerate() {
                    let mut vector = Vector::new(ty.physical());
                    group.decode(column, slot, 1, &mut vector);
                    row.push(vector.value(0, *ty));
                }
                rows.push(row);
            }
        }
        return Ok(rows);
    }
    let ids = (0..types.len()).map(|i| (ColumnId(i as u32), i)).collect();
    let request = ScanRequest::all(ids);
    let source = relation.scan(&request, &QueryContext::default())?;
    let mut worker = source.worker()?;
    let mut chunk = Chunk::new();
    let mut morsels: Vec<(u64, Vec<Vec<Value>>)> = Vec::new();
    while worker.next(&mut chunk)? {
        let part = (0..chunk.len())
            .map(|r| types.iter().enumerate().map(|(c, ty)| chunk.value(r, c, *ty)).collect());
        morsels.push((worker.morsel(), part.collect()));
    }
    morsels.sort_by_key(|(morsel, _)| *morsel);
    Ok(morsels.into_iter().flat_map(|(_, part)| part).collect())
}

// ---- joins ------------------------------------------------------------------------------------------------

/// The meaning of a pair of rows to a join.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pair {
    /// All keys and residuals are true.
    Match,
    /// The residuals are true and the first key is NULL, because one of its sides is.
    Unknown,
    /// Anything else.
    Miss,
}

/// The right input of a dependent join is computed for each left row, with its values in place of its
/// columns.
fn dependent_rows(join: &Dependent) -> Result<Vec<Vec<Value>>> {
    let left = rows_of(&join.left)?;
    let outputs = match join.kind {
        JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti | JoinKind::Mark { .. } => {
            join.right.columns()
        }
        _ => join.outputs.clone(),
    };
    let read: Vec<ColumnId> = free_columns(&join.right).iter().collect();
    let mut rows = Vec::new();
    for (at, row) in left.rows.iter().enumerate() {
        let mut given = HashMap::new();
        for id in read.iter().filter(|id| left.columns.contains(id)) {
            given.insert(*id, row[position(&left.columns, *id)?].clone());
        }
        let mut right = (*join.right).clone();
        put_values(&mut right, &given);
        let kept = Table { columns: outputs.clone(), rows: columns_of(&right, &outputs)? };
        let values = |table: Table| Node::Values(Values { columns: table.columns, rows: table.rows });
        let one = Table { columns: left.columns.clone(), rows: vec![left.rows[at].clone()] };
        rows.extend(join_rows(&Join {
            left: Box::new(values(one)),
            right: Box::new(values(kept)),
            kind: join.kind,
            on: join.on.iter().cloned().collect(),
            residual: join.residual.clone(),
        })?);
    }
    Ok(rows)
}

/// Puts values in the place of columns.
fn put_values(node: &mut Node, given: &HashMap<ColumnId, Value>) {
    each_expr_mut(node, &mut |expr| {
        let taken = std::mem::replace(expr, Expr::boolean(false));
        *expr = taken.transform(&mut |part| match part {
            Expr::Column { id, ty } => match given.get(&id) {
                Some(value) => Expr::literal(value.clone(), ty),
                None => part,
            },
            other => other,
        });
    });
}

/// The rows that a node returns, of these of its columns.
fn columns_of(node: &Node, columns: &[ColumnId]) -> Result<Vec<Vec<Value>>> {
    let table = rows_of(node)?;
    let positions: Vec<usize> =
        columns.iter().map(|id| position(&table.columns, *id)).collect::<Result<_>>()?;
    Ok(table.rows.iter().map(|row| positions.iter().map(|&p| row[p].clone()).collect()).collect())
}

fn join_rows(join: &Join) -> Result<Vec<Vec<Value>>> {
    let left = rows_of(&join.left)?;
    let right = rows_of(&join.right)?;
    let columns: Vec<ColumnId> = left.columns.iter().chain(&right.columns).copied().collect();
    let mut right_matched = vec![false; right.rows.len()];
    let mut rows = Vec::new();
    for (l, left_row) in left.rows.iter().enumerate() {
        let mut matches = Vec::new();
        let mut unknown = false;
        for (r, right_row) in right.rows.iter().enumerate() {
            let both: Vec<Value> = left_row.iter().chain(right_row).cloned().collect();
            match pair(join, left.row(l), right.row(r), Row { columns: &columns, values: &both })? {
                Pair::Match => {
                    right_matched[r] = true;
                    matches.push(both);
                }
                Pair::Unknown => unknown = true,
                Pair::Miss => {}
            }
        }
        let alone = || left_row.iter().cloned().chain(right.all_null()).collect();
        let matched = !matches.is_empty();
        match join.kind {
            JoinKind::Inner | JoinKind::Right => rows.extend(matches),
            JoinKind::Left | JoinKind::Full if matched => rows.extend(matches),
            JoinKind::Left | JoinKind::Full => rows.push(alone()),
            JoinKind::Semi if matched => rows.push(left_row.clone()),
            JoinKind::Anti if !matched => rows.push(left_row.clone()),
            JoinKind::NullAwareAnti if !matched && !unknown => rows.push(left_row.clone()),
            JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti => {}
            JoinKind::Mark { null_aware, .. } => {
                let mark =
                    if matched || !(null_aware && unknown) { Value::Boolean(matched) } else { Value::Null };
                rows.push(left_row.iter().cloned().chain([mark]).collect());
            }
            JoinKind::Single if matches.len() > 1 => {
                return Err(Error::input("a scalar subquery gave more than one row"));
            }
            JoinKind::Single => rows.push(matches.pop().unwrap_or_else(alone)),
            JoinKind::AsOf { outer } => {
                let nearest = nearest(join, &columns, left.columns.len(), matches)?;
                rows.extend(nearest.or_else(|| outer.then(alone)));
            }
        }
    }
    if matches!(join.kind, JoinKind::Right | JoinKind::Full) {
        for (right_row, _) in right.rows.iter().zip(&right_matched).filter(|(_, matched)| !**matched) {
            rows.push(left.all_null().into_iter().chain(right_row.iter().cloned()).collect());
        }
    }
    Ok(rows)
}

/// Of these pairs, all with the same left row, the one whose right row is nearest; of several the last one.
fn nearest(
    join: &Join,
    columns: &[ColumnId],
    left: usize,
    pairs: Vec<Vec<Value>>,
) -> Result<Option<Vec<Value>>> {
    let [Expr::Compare { op, left: a, right: b }] = &join.residual[..] else {
        return Err(Error::internal("an as-of join has no inequality"));
    };
    let mut read = Vec::new();
    b.collect_columns(&mut read);
    let is_right = read.iter().all(|id| columns[left..].contains(id));
    let (operand, op) = if is_right { (b, *op) } else { (a, op.mirrored()) };
    let is_upper = matches!(op, CompareOp::Gt | CompareOp::GtEq);
    let mut best: Option<(Value, Vec<Value>)> = None;
    for pair in pairs {
        let value = evaluate(operand, Row { columns, values: &pair })?;
        let is_nearer = best.as_ref().is_none_or(|(nearest, _)| {
            let order = value.total_cmp(nearest);
            if is_upper { order.is_ge() } else { order.is_le() }
        });
        if is_nearer {
            best = Some((value, pair));
        }
    }
    Ok(best.map(|(_, pair)| pair))
}

fn pair(join: &Join, left: Row<'_>, right: Row<'_>, both: Row<'_>) -> Result<Pair> {
    let mut result = Pair::Match;
    for (i, key) in join.on.iter().enumerate() {
        let (l, r) = (evaluate(&key.left, left)?, evaluate(&key.right, right)?);
        let unknown = (l.is_null() || r.is_null()) && !key.null_equals_null;
        if unknown && i == 0 {
            result = Pair::Unknown;
        } else if unknown || l != r {
            return Ok(Pair::Miss);
        }
    }
    Ok(if all_hold(&join.residual, both)? { result } else { Pair::Miss })
}

// ---- set operations ---------------------------------------------------------------------------------------

fn set_rows(set: &SetOperation) -> Result<Vec<Vec<Value>>> {
    let mut inputs = Vec::new();
    for (node, columns) in &set.inputs {
        inputs.push(columns_of(node, columns)?);
    }
    let mut inputs = inputs.into_iter();
    let mut rows = inputs.next().unwrap_or_default();
    for mut other in inputs {
        // Each row of `other` cancels at most one row of the left side, so `ALL` counts.
        match set.kind {
            SetKind::Union => rows.append(&mut other),
            SetKind::Intersect => {
                if !set.all {
                    rows = distinct(rows);
                }
                rows.retain(|row| take(&mut other, row));
            }
            SetKind::Except => {
                if !set.all {
                    rows = distinct(rows);
                }
                rows.retain(|row| !take(&mut other, row));
            }
        }
    }
    Ok(if set.all { rows } else { distinct(rows) })
}

fn take(rows: &mut Vec<Vec<Value>>, row: &[Value]) -> bool {
    let found = rows.iter().position(|other| other == row);
    if let Some(i) = found {
        rows.swap_remove(i);
    }
    found.is_some()
}

fn distinct(rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let mut unique: Vec<Vec<Value>> = Vec::new();
    for row in rows {
        if !unique.contains(&row) {
            unique.push(row);
        }
    }
    unique
}
