//! Shared subqueries: rows that several parts of a statement read are computed once, when the first of them
//! starts its scan.
//!
//! A common table expression that is read twice must give the same rows both times, whatever it calls and
//! however it is run: `random()`, a `LIMIT` without an order, a sum of floats. Such a plan becomes a
//! relation, whose rows are collected and counted. They live as long as the plan that reads
//! them, which is run once.
//!
//! So do aggregations that stand in a plan twice ([`equal`]), and joins that are part of others ([`joins`]).
//!
//! When all readers are known, the optimizer leaves out the columns that none of them reads and the rows that
//! none of them wants ([`Relation::restricted`]); the rest goes on from there like the filters of any query.
//!
//! Rows for which memory is too short go to a temporary file ([`crate::exec::KeptRows`]).

mod equal;
mod joins;

use crate::context::QueryContext;
use crate::estimate::estimate;
use crate::exec::{Keeper, KeptRows, PartReader, Profile, ResultSet, execute};
use crate::explain::PlanTree;
use crate::optimizer;
use crate::optimizer::decorrelate::decorrelate;
use crate::plan::freedom::{may_move, may_repeat};
use crate::plan::tree::{each_expr, filter, substitute};
use crate::plan::{Node, Plan};
use crate::relation::{ColumnStatistics, Relation, ScanRequest, Source, SourceWorker, Statistics};
use crate::settings::Settings;
use crate::sync::{AtomicUsize, Ordering, lock};
use entasis_vector::expr::Expr;
use entasis_vector::{
    Buffer, CHUNK_ROWS, Chunk, ColumnId, DataType, Error, Result, Schema, Selection, Value,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The plan as it is run: optimized, with what several of its parts need computed once.
///
/// # Errors
/// Internal, if a rule breaks the plan; interrupted.
pub fn optimize(plan: Plan, settings: &Settings) -> Result<Plan> {
    let plan = decorrelated(plan)?;
    if !settings.optimize {
        return optimizer::optimize(plan, settings);
    }
    let plan = joins::share_joins(equal::share_equal(plan, Stage::Written));
    Ok(equal::share_equal(optimizer::optimize(plan, settings)?, Stage::Optimized))
}

/// The plan with joins in place of its dependent joins ([`crate::optimizer::decorrelate`]).
///
/// # Errors
/// Internal, if a column is read that nothing makes; interrupted.
pub fn decorrelated(mut plan: Plan) -> Result<Plan> {
    decorrelate(&mut plan, |name, schema, plan| Arc::new(Shared::new(name, schema, plan)))?;
    Ok(plan)
}

/// The optimized plan, with the text of the plan after each rule that changed it.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_traced(plan: Plan, settings: &Settings) -> Result<(Plan, Vec<(&'static str, String)>)> {
    optimizer::optimize_traced(decorrelated(plan)?, settings)
}

/// The plan as it is run, of rows that are a relation in another plan.
///
/// # Errors
/// As [`optimize`].
pub(crate) fn optimize_part(plan: Plan, settings: &Settings) -> Result<Plan> {
    optimizer::optimize_part(decorrelated(plan)?, settings)
}

/// What a plan has behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is as it was bound.
    Written,
    /// It is as it is run.
    Optimized,
}

/// The rows of a plan as a relation.
#[derive(Debug)]
pub struct Shared {
    name: String,
    schema: Schema,
    plan: Plan,
    stage: Stage,
    /// The plan as it is run, once it is made.
    optimized: Mutex<Option<Plan>>,
    /// By column of the schema, the number of the plan's output that it is; `None` for columns that no reader
    /// wants.
    outputs: Vec<Option<usize>>,
    /// What is expected of its rows: made once, since plans of shared rows ask for it again and again.
    statistics: Statistics,
    /// The rows, once they are there.
    rows: Mutex<Option<Arc<KeptRows>>>,
    /// What computing them took, if that was measured.
    profile: Mutex<Option<Profile>>,
}

impl Shared {
    /// What `plan` gives, under this name; `schema` has a field for each of its outputs.
    pub fn new(name: String, schema: Schema, plan: Plan) -> Shared {
        Shared::at(name, schema, plan, Stage::Written)
    }

    fn at(name: String, schema: Schema, plan: Plan, stage: Stage) -> Shared {
        let outputs = (0..schema.len()).map(Some).collect();
        Shared::with(name, schema, plan, stage, outputs)
    }

    fn with(name: String, schema: Schema, plan: Plan, stage: Stage, outputs: Vec<Option<usize>>) -> Shared {
        Shared {
            name,
            schema,
            stage,
            optimized: Mutex::default(),
            statistics: statistics_of(&plan, &outputs),
            plan,
            outputs,
            rows: Mutex::default(),
            profile: Mutex::default(),
        }
    }

    /// The plan as it is run.
    fn optimized(&self, settings: &Settings) -> Result<Plan> {
        if self.stage == Stage::Optimized {
            return Ok(self.plan.clone());
        }
        let mut optimized = lock(&self.optimized);
        if let Some(plan) = &*optimized {
            return Ok(plan.clone());
        }
        let plan = optimize_part(self.plan.clone(), settings)?;
        let plan = if settings.optimize { equal::share_equal(plan, Stage::Optimized) } else { plan };
        Ok(optimized.insert(plan).clone())
    }

    /// The condition that a row satisfies the filters of at least one reader, in columns of the plan; `None`
    /// if a reader wants all rows.
    fn wanted(&self, readers: &[ScanRequest]) -> Option<Expr> {
        let of_reader = |reader: &ScanRequest| {
            let of_column = |&(id, index): &(ColumnId, usize)| {
                let output = self.plan.output[self.outputs[index]?].column;
                Some((id, self.plan.columns.expr(output)))
            };
            let names: HashMap<ColumnId, Expr> = reader.columns.iter().filter_map(of_column).collect();
            let safe = reader.filters.iter().filter(|filter| may_move(filter));
            let conditions: Vec<Expr> = safe.map(|filter| substitute(filter.clone(), &names)).collect();
            (!conditions.is_empty()).then(|| Expr::and(conditions))
        };
        let mut all: Vec<Expr> = readers.iter().map(of_reader).collect::<Option<_>>()?;
        Some(if all.len() == 1 { all.remove(0) } else { Expr::Or(all) })
    }

    fn rows(&self, context: &QueryContext) -> Result<Arc<KeptRows>> {
        let mut rows = lock(&self.rows);
        if let Some(rows) = &*rows {
            return Ok(rows.clone());
        }
        // Progress is that of the whole statement.
        let context = QueryContext { progress: Arc::default(), ..context.clone() };
        let plan = self.optimized(&context.settings)?;
        let types: Vec<DataType> = plan.output.iter().map(|output| plan.columns.ty(output.column)).collect();
        let keeper = Keeper::new(&context, types);
        let profile = execute(&plan, &context, &keeper)?;
        *lock(&self.profile) = Some(profile);
        Ok(rows.insert(Arc::new(keeper.into_rows())).clone())
    }
}

impl Relation for Shared {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }

    fn restricted(&self, readers: &[ScanRequest]) -> Option<Arc<dyn Relation>> {
        let mut plan = self.plan.clone();
        // Who counts calls of nextval() or draws numbers sees how many rows there are.
        if is_volatile(&mut plan.root) {
            return None;
        }
        let wanted = self.wanted(readers);
        let mut outputs = vec![None; self.outputs.len()];
        let mut kept = Vec::new();
        for (column, output) in self.outputs.iter().enumerate() {
            let is_read =
                readers.iter().any(|reader| reader.columns.iter().any(|(_, index)| *index == column));
            // Rows without columns are counted by the first.
            if is_read || (column == 0 && readers.iter().all(|reader| reader.columns.is_empty())) {
                outputs[column] = output.map(|_| kept.len());
                kept.extend(output.map(|output| plan.output[output].clone()));
            }
        }
        plan.output = kept;
        plan.root = filter(plan.root, wanted.into_iter().collect());
        let mut shared = Shared::with(self.name.clone(), self.schema.clone(), plan, self.stage, outputs);
        // What is known of its tables has come to the filters, and rows have been looked at.
        if let Ok(optimized) = shared.optimized(&Settings::default()) {
            shared.statistics = statistics_of(&optimized, &shared.outputs);
        }
        Some(Arc::new(shared))
    }

    fn plan_text(&self, detailed: bool) -> Option<String> {
        if let Some(profile) = &*lock(&self.profile)
            && profile.root.is_some()
        {
            return Some(if detailed { profile.to_string() } else { profile.table() });
        }
        self.optimized(&Settings::default()).ok().map(|plan| PlanTree(&plan).to_string())
    }

    fn inputs(&self) -> Vec<Arc<dyn Relation>> {
        let optimized = lock(&self.optimized);
        let mut all = Vec::new();
        add_scanned(&optimized.as_ref().unwrap_or(&self.plan).root, &mut all);
        all
    }

    fn forget(&self) {
        *lock(&self.rows) = None;
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let output = |&(_, index): &(ColumnId, usize)| {
            self.outputs[index]
                .ok_or_else(|| Error::internal(format!("column {index} of {} was left out", self.name)))
        };
        let wanted = request.columns.iter().map(output).collect::<Result<_>>()?;
        Ok(scan_of(self.rows(context)?, wanted, context))
    }
}

/// What is expected of the rows of a plan. `outputs` has, for each column of a relation, the number of the
/// output that it is.
fn statistics_of(plan: &Plan, outputs: &[Option<usize>]) -> Statistics {
    let expected = estimate(&plan.root, &plan.columns);
    let column = |output: &Option<usize>| {
        let known = output.map(|output| expected.column(plan.output[output].column));
        let is_integer =
            |output: usize| plan.columns.ty(plan.output[output].column).integer_range().is_some();
        let range = known.and_then(|known| known.range).filter(|_| output.is_some_and(is_integer));
        ColumnStatistics {
            min: range.map(|(low, _)| Value::Integer(low as i128)),
            max: range.map(|(_, high)| Value::Integer(high as i128)),
            nulls: known.map(|known| (known.nulls * expected.rows) as u64),
            distinct: known.map(|known| known.distinct as u64),
            bounds_are_exact: false,
        }
    };
    Statistics { rows: Some(expected.rows as u64), columns: outputs.iter().map(column).collect() }
}

/// Adds the relations that a plan scans, but for stored tables.
pub(crate) fn add_scanned(node: &Node, all: &mut Vec<Arc<dyn Relation>>) {
    if let Node::Scan(scan) = node
        && scan.relation.table().is_none()
    {
        all.push(scan.relation.clone());
    }
    node.children().into_iter().for_each(|child| add_scanned(child, all));
}

fn is_volatile(root: &mut Node) -> bool {
    let mut found = false;
    each_expr(root, &mut |expr| found |= !may_repeat(expr));
    found
}

/// A scan of rows that are there.
pub(crate) fn scan_rows(
    rows: Arc<ResultSet>,
    request: &ScanRequest,
    context: &QueryContext,
) -> Arc<dyn Source> {
    let wanted = request.columns.iter().map(|(_, index)| *index).collect();
    scan_of(Arc::new(KeptRows::from(rows)), wanted, context)
}

/// A scan of these columns.
fn scan_of(rows: Arc<KeptRows>, wanted: Arc<[usize]>, context: &QueryContext) -> Arc<dyn Source> {
    let chunk_rows = context.settings.chunk_rows;
    Arc::new(SharedScan { rows, wanted, chunk_rows, next: Arc::default() })
}

/// A scan: workers take one part after the other, and give its rows in chunks of at most `chunk_rows`.
#[derive(Clone)]
struct SharedScan {
    rows: Arc<KeptRows>,
    wanted: Arc<[usize]>,
    chunk_rows: usize,
    next: Arc<AtomicUsize>,
}

impl Source for SharedScan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let (rows, next) = (self.rows.clone(), self.next.clone());
        let (mut parts, mut part) = (PartReader::default(), 0);
        let take = move |chunk: &mut Chunk| {
            while !parts.next(&rows, chunk)? {
                part = next.fetch_add(1, Ordering::Relaxed);
                if part >= rows.parts() {
                    return Ok(None);
                }
                parts.begin(&rows, part)?;
            }
            Ok(Some(part as u64))
        };
        Ok(Box::new(PartWorker::new(take, self.wanted.clone(), self.chunk_rows)))
    }

    fn rows(&self) -> Option<usize> {
        Some(self.rows.rows())
    }

    fn progress(&self) -> Option<f64> {
        let parts = self.rows.parts();
        Some((self.next.load(Ordering::Relaxed) as f64 / parts.max(1) as f64).min(1.0))
    }
}

/// A worker of a scan of rows that are ready in dense chunks: gives some columns of them, in chunks of the
/// size that is wanted.
pub(crate) struct PartWorker<F> {
    /// Puts the next rows in a chunk; returns their part, or `None` at the end.
    take: F,
    wanted: Arc<[usize]>,
    chunk_rows: usize,
    /// The number of the part that is being read.
    part: u64,
    /// Rows of the part, and how many of them have been given.
    ready: Chunk,
    given: usize,
    /// Buffers for positions that are used again.
    spares: Vec<Arc<Buffer>>,
}

impl<F: FnMut(&mut Chunk) -> Result<Option<u64>> + Send> PartWorker<F> {
    /// One that gives the columns `wanted` of what `take` takes, in chunks of at most `chunk_rows`.
    pub(crate) fn new(take: F, wanted: Arc<[usize]>, chunk_rows: usize) -> PartWorker<F> {
        let chunk_rows = chunk_rows.clamp(1, CHUNK_ROWS);
        PartWorker { take, wanted, chunk_rows, part: 0, ready: Chunk::new(), given: 0, spares: Vec::new() }
    }
}

impl<F: FnMut(&mut Chunk) -> Result<Option<u64>> + Send> SourceWorker for PartWorker<F> {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        // Releases the vectors, so that they can be overwritten.
        chunk.reset(0);
        while self.given == self.ready.len() {
            self.given = 0;
            self.ready.reset(0);
            match (self.take)(&mut self.ready)? {
                Some(part) => self.part = part,
                None => return Ok(false),
            }
        }
        let (start, rows) = (self.given, self.ready.len());
        let end = rows.min(start + self.chunk_rows);
        self.given = end;
        chunk.reset(rows);
        let group = chunk.push_group(Selection::ALL);
        for &column in self.wanted.iter() {
            chunk.push_column(self.ready.vector(column).clone(), group);
        }
        if end - start < rows {
            let picks: Vec<u16> = (start..end).map(|row| row as u16).collect();
            chunk.select(&picks, &mut self.spares);
        }
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.part
    }
}

#[cfg(test)]
mod tests;
