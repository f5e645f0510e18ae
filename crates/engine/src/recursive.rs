//! Recursive common table expressions: rows that are computed of the rows of the round before, until there
//! are no new ones.
//!
//! ```text
//! WITH RECURSIVE reach AS (start UNION step over reach) …
//!
//! rows := start;  last := rows
//! while last is not empty:  last := step over last, without what is in rows already;  rows += last
//! ```
//! 1. The *step* reads the rows of the last round from a [`WorkTable`], which may stand in it several times.
//! 2. Under `UNION` a [hash table](crate::exec) of all rows so far is kept from round to round, so that a
//!    round costs what it reads, not what has been found before. Under `UNION ALL` all rows are new. Under
//!    `USING KEY` the rows so far are a [`dictionary`]: one that comes replaces the one of its key, the rows
//!    of the last round are those that it brought into the dictionary, and the step may read all that is in
//!    it from a second work table.
//! 3. All rows are a relation, which is computed when it is first read.
//!
//! Rounds look for interrupts, and all rows count as memory. Not done here: rows that do not fit into memory
//! are not spilled.

mod dictionary;

use self::dictionary::Dictionary;
use crate::context::QueryContext;
use crate::estimate::estimate_rows;
use crate::exec::group_table::GroupTable;
use crate::exec::sink::ResultSink;
use crate::exec::{Collector, ResultSet, execute};
use crate::memory::Reservation;
use crate::optimizer::optimize_part;
use crate::plan::Plan;
use crate::relation::{Relation, ScanRequest, Source, Statistics};
use crate::shared::{add_scanned, scan_rows};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, DataType, Error, Result, Schema};
use std::sync::{Arc, Mutex, PoisonError};

/// How many times as many rows as the start has are expected.
const GROWTH: u64 = 10;

/// The rows of the last round, as the step reads them.
#[derive(Debug)]
pub struct WorkTable {
    name: String,
    schema: Schema,
    rows: Mutex<Option<Arc<ResultSet>>>,
}

impl WorkTable {
    /// A table that has rows while a recursion runs that it is the work table of.
    pub fn new(name: String, schema: Schema) -> WorkTable {
        WorkTable { name, schema, rows: Mutex::default() }
    }

    fn set(&self, rows: Option<Arc<ResultSet>>) {
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = rows;
    }
}

impl Relation for WorkTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let rows =
            rows.ok_or_else(|| Error::internal(format!("{} is read outside of its recursion", self.name)))?;
        Ok(scan_rows(rows, request, context))
    }
}

/// Which rows a recursion keeps, and goes on with.
#[derive(Debug)]
pub enum Keeps {
    /// All: `UNION ALL`.
    All,
    /// Those that are new: `UNION`.
    New,
    /// One of each key, the last: `USING KEY`.
    Keyed {
        /// The columns of the key.
        keys: Vec<usize>,
        /// What the step reads all rows so far from, if it does.
        all: Option<Arc<WorkTable>>,
    },
}

/// The rows of a recursive common table expression as a relation.
#[derive(Debug)]
pub struct Recursive {
    start: Plan,
    step: Plan,
    work: Arc<WorkTable>,
    keeps: Keeps,
    /// Rows, an estimate.
    estimate: u64,
    /// The rows, once they are there.
    rows: Mutex<Option<Arc<ResultSet>>>,
}

impl Recursive {
    /// What `start` gives, and `step` of the rows in `work`, again and again. Both have the outputs that
    /// `work` has as columns.
    pub fn new(start: Plan, step: Plan, work: Arc<WorkTable>, keeps: Keeps) -> Recursive {
        let estimate = (estimate_rows(&start.root, &start.columns) as u64).saturating_mul(GROWTH);
        Recursive { start, step, work, keeps, estimate, rows: Mutex::default() }
    }

    fn rows(&self, context: &QueryContext) -> Result<Arc<ResultSet>> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = &*rows {
            return Ok(rows.clone());
        }
        // Progress is that of the whole statement.
        let context = QueryContext { progress: Arc::default(), ..context.clone() };
        let all = match &self.keeps {
            Keeps::Keyed { keys, all } => {
                let rows = self.compute_keyed(keys, all.as_deref(), &context);
                all.iter().for_each(|all| all.set(None));
                rows
            }
            Keeps::All | Keeps::New => self.compute(&context),
        };
        self.work.set(None);
        Ok(rows.insert(Arc::new(all?)).clone())
    }

    fn types(&self) -> Vec<DataType> {
        self.work.schema.iter().map(|field| field.ty).collect()
    }

    fn compute_keyed(
        &self,
        keys: &[usize],
        all: Option<&WorkTable>,
        context: &QueryContext,
    ) -> Result<ResultSet> {
        let mut entries = Dictionary::new(self.types(), keys.to_vec(), context);
        let run = |plan: &Plan| -> Result<ResultSet> {
            context.check()?;
            let collector = Collector::new(context, self.types());
            execute(plan, context, &collector)?;
            Ok(collector.into_chunks())
        };
        let step = optimize_part(self.step.clone(), &context.settings)?;
        let mut last = entries.put(run(&optimize_part(self.start.clone(), &context.settings)?)?, context)?;
        while last.rows > 0 {
            if let Some(all) = all {
                all.set(Some(Arc::new(entries.entries(context)?)));
            }
            self.work.set(Some(Arc::new(last)));
            last = entries.put(run(&step)?, context)?;
        }
        entries.entries(context)
    }

    fn compute(&self, context: &QueryContext) -> Result<ResultSet> {
        let types = self.types();
        let mut seen = matches!(self.keeps, Keeps::New).then(|| Seen::new(&types, context));
        let round = |plan: &Plan, seen: &mut Option<Seen>| -> Result<Arc<ResultSet>> {
            context.check()?;
            let collector = Collector::new(context, types.clone());
            execute(plan, context, &collector)?;
            let found = collector.into_chunks();
            Ok(Arc::new(match seen {
                Some(seen) => seen.new_rows(&found, context)?,
                None => found,
            }))
        };
        let step = optimize_part(self.step.clone(), &context.settings)?;
        let mut last = round(&optimize_part(self.start.clone(), &context.settings)?, &mut seen)?;
        // Rounds may have a row each, and chunks room for two thousand.
        let all = Collector::new(context, types.clone());
        let mut worker = all.worker()?;
        worker.start_morsel(0);
        while last.rows > 0 {
            last.chunks.iter().try_for_each(|chunk| worker.push(chunk))?;
            self.work.set(Some(last));
            last = round(&step, &mut seen)?;
        }
        worker.finish()?;
        drop(worker);
        Ok(all.into_chunks())
    }
}

impl Relation for Recursive {
    fn name(&self) -> &str {
        &self.work.name
    }

    fn schema(&self) -> &Schema {
        &self.work.schema
    }

    fn statistics(&self) -> Statistics {
        Statistics { rows: Some(self.estimate), columns: Vec::new() }
    }

    fn inputs(&self) -> Vec<Arc<dyn Relation>> {
        let mut all = Vec::new();
        [&self.start, &self.step].into_iter().for_each(|plan| add_scanned(&plan.root, &mut all));
        all
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        Ok(scan_rows(self.rows(context)?, request, context))
    }
}

/// All rows so far, each once.
struct Seen {
    table: GroupTable,
    columns: Vec<usize>,
    memory: Reservation,
}

impl Seen {
    fn new(types: &[DataType], context: &QueryContext) -> Seen {
        let meta = |(i, ty): (usize, &DataType)| ColumnMeta {
            id: ColumnId(i as u32),
            ty: *ty,
            physical: ty.physical(),
            nullable: true,
            range: None,
        };
        let keys: Vec<ColumnMeta> = types.iter().enumerate().map(meta).collect();
        let table = GroupTable::new(&keys, 0, context.settings.hash_collisions);
        Seen { table, columns: (0..types.len()).collect(), memory: Reservation::new(&context.memory) }
    }

    /// The rows of `found` that are not there yet, each once; from now on they are.
    fn new_rows(&mut self, found: &ResultSet, context: &QueryContext) -> Result<ResultSet> {
        let collector = Collector::new(context, found.types.clone());
        let mut worker = collector.worker()?;
        worker.start_morsel(0);
        let (mut groups, mut picks, mut spares) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in &found.chunks {
            context.check()?;
            let mut next = self.table.groups() as u32;
            self.table.find(chunk, &self.columns, &mut groups);
            self.memory.resize(self.table.bytes())?;
            picks.clear();
            for (row, &group) in groups.iter().enumerate() {
                // Groups have numbers in the order in which they are first seen.
                if group == next {
                    picks.push(row as u16);
                    next += 1;
                }
            }
            let mut chunk = chunk.clone();
            chunk.select(&picks, &mut spares);
            worker.push(&chunk)?;
        }
        worker.finish()?;
        drop(worker);
        Ok(collector.into_chunks())
    }
}
