//! The rounds of a recursion, run as far as somebody has asked for their rows.
//!
//! Rows come in *parts* of up to a chunk. A part has the rows of as many rounds as have been run for all
//! parts before it together, but of no more once it is full: so the first rows are there at once, and a
//! recursion of very many rounds of one row each is read in chunks. If a round fails, the rows before it are
//! given first: who has enough of them never sees the error.
//!
//! The rows of a recursion with a key are known only when it has ended.

use super::definition::Definition;
use super::dictionary::Dictionary;
use crate::common_subplans::{add_scanned, optimize_part, scan_rows};
use crate::context::QueryContext;
use crate::exec::group_table::GroupTable;
use crate::exec::sink::ResultSink;
use crate::exec::{Collector, ResultSet, execute};
use crate::memory::{MemoryBudget, Reservation};
use crate::plan::{Keeps, Plan};
use crate::relation::Relation;
use crate::work_table::WorkTable;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Error, Result};
use std::sync::Arc;

/// See the module.
#[derive(Default)]
pub(super) struct Rounds {
    /// The state of the recursion; absent before it begins and after it has ended.
    running: Option<Running>,
    /// All rows so far.
    parts: Vec<Chunk>,
    /// What they take.
    memory: Vec<Reservation>,
    /// Rounds that have been run.
    count: usize,
    has_begun: bool,
    /// What stopped the recursion.
    failure: Option<Error>,
}

impl std::fmt::Debug for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rounds({} rounds)", self.count)
    }
}

/// A recursion between two rounds.
struct Running {
    step: Plan,
    seen: Option<Seen>,
    /// The rows of the last round.
    last: Arc<ResultSet>,
}

impl Rounds {
    /// Part `number`, for which rounds are run if it is not there yet; `None` beyond the last one.
    ///
    /// # Errors
    /// Those of the two plans; resource; interrupted.
    pub(super) fn part(
        &mut self,
        number: usize,
        definition: &Definition,
        context: &QueryContext,
    ) -> Result<Option<Chunk>> {
        while self.parts.len() <= number && self.may_go_on() {
            self.go_on(definition, context);
        }
        match (self.parts.get(number), &self.failure) {
            (Some(part), _) => Ok(Some(part.clone())),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => Ok(None),
        }
    }

    /// Runs all rounds; returns how many parts there are. A failure is raised by who reads beyond the last.
    pub(super) fn complete(&mut self, definition: &Definition, context: &QueryContext) -> usize {
        while self.may_go_on() {
            self.go_on(definition, context);
        }
        self.parts.len()
    }

    fn may_go_on(&self) -> bool {
        self.failure.is_none() && (!self.has_begun || self.running.is_some())
    }

    /// Runs the rounds of the next part, and ends the recursion if the last was among them.
    fn go_on(&mut self, definition: &Definition, context: &QueryContext) {
        let outcome = match &definition.keeps {
            Keeps::Keyed { .. } => {
                self.has_begun = true;
                compute_keyed(definition, context).map(|rows| self.add(rows))
            }
            Keeps::All | Keeps::New => self.run_part(definition, context),
        };
        if let Err(error) = outcome {
            (self.failure, self.running) = (Some(error), None);
        }
        if self.running.is_none() {
            definition.work.set(None);
        }
    }

    fn add(&mut self, rows: ResultSet) {
        self.parts.extend(rows.chunks);
        self.memory.extend(rows.memory);
    }

    /// Runs rounds until there are rows for a part; what has been found by then is one, whatever happens.
    fn run_part(&mut self, definition: &Definition, context: &QueryContext) -> Result<()> {
        let all = Collector::new(context, definition.types());
        let mut worker = all.worker()?;
        worker.start_morsel(0);
        let (mut rows, most) = (0, 2 * self.count + 1);
        let mut outcome = Ok(());
        while outcome.is_ok() && rows < CHUNK_ROWS && self.count < most {
            outcome = self.run_round(definition, context);
            let Some(running) = self.running.as_ref().filter(|_| outcome.is_ok()) else { break };
            rows += running.last.rows;
            running.last.chunks.iter().try_for_each(|chunk| worker.push(chunk))?;
        }
        worker.finish()?;
        drop(worker);
        self.add(all.into_chunks());
        outcome
    }

    /// Runs one round; there is none to follow if it has found nothing.
    fn run_round(&mut self, definition: &Definition, context: &QueryContext) -> Result<()> {
        context.check()?;
        let (last, seen, step) = match self.running.take() {
            None => {
                self.has_begun = true;
                let start = optimize_part(definition.start.clone(), &context.settings)?;
                let step = optimize_part(definition.step.clone(), &context.settings)?;
                let found = run(&start, definition, context)?;
                (found, matches!(definition.keeps, Keeps::New).then(|| Seen::new(definition, context)), step)
            }
            Some(Running { step, seen, last }) => {
                fill(&definition.work, last);
                forget_readers(&step, &[&*definition.work]);
                (run(&step, definition, context)?, seen, step)
            }
        };
        self.count += 1;
        let (mut seen, mut last) = (seen, last);
        if let Some(seen) = &mut seen {
            last = seen.new_rows(&last, context)?;
        }
        if last.rows > 0 {
            self.running = Some(Running { step, seen, last: Arc::new(last) });
        }
        Ok(())
    }
}

/// Gives a work table these rows.
fn fill(table: &WorkTable, rows: Arc<ResultSet>) {
    table.set(Some(Arc::new(move |request, context| scan_rows(rows.clone(), request, context))));
}

/// The rows of a plan of the recursion.
fn run(plan: &Plan, definition: &Definition, context: &QueryContext) -> Result<ResultSet> {
    context.check()?;
    let collector = Collector::new(context, definition.types());
    execute(plan, context, &collector)?;
    Ok(collector.into_chunks())
}

/// Makes all relations in `plan` that are computed of one of `tables` forget their rows: these tables have
/// others now.
fn forget_readers(plan: &Plan, tables: &[&dyn Relation]) {
    fn visit(relation: &Arc<dyn Relation>, tables: &[&dyn Relation]) -> bool {
        if tables.iter().any(|table| std::ptr::addr_eq(*table, Arc::as_ptr(relation))) {
            return true;
        }
        // All of them, not the first alone.
        let reads = relation.inputs().iter().filter(|input| visit(input, tables)).count() > 0;
        if reads {
            relation.forget();
        }
        reads
    }
    let mut relations = Vec::new();
    add_scanned(&plan.root, &mut relations);
    relations.iter().for_each(|relation| {
        visit(relation, tables);
    });
}

/// All rows of a recursion with a key.
fn compute_keyed(definition: &Definition, context: &QueryContext) -> Result<ResultSet> {
    let Keeps::Keyed { keys, only_changes, all } = &definition.keeps else {
        return Err(Error::internal("a recursion has lost its key"));
    };
    let mut entries = Dictionary::new(definition.types(), keys.clone(), *only_changes, context);
    let mut rounds = || {
        let step = optimize_part(definition.step.clone(), &context.settings)?;
        let start = optimize_part(definition.start.clone(), &context.settings)?;
        let mut last = entries.put(run(&start, definition, context)?, context)?;
        let mut tables: Vec<&dyn Relation> = vec![&*definition.work];
        tables.extend(all.iter().map(|all| &**all as &dyn Relation));
        while last.rows > 0 {
            if let Some(all) = all {
                fill(all, Arc::new(entries.entries(context)?));
            }
            fill(&definition.work, Arc::new(last));
            forget_readers(&step, &tables);
            last = entries.put(run(&step, definition, context)?, context)?;
        }
        entries.entries(context)
    };
    let rows = rounds();
    all.iter().for_each(|all| all.set(None));
    rows
}

/// All rows so far, each once.
struct Seen {
    table: GroupTable,
    columns: Vec<usize>,
    memory: Reservation,
}

impl Seen {
    fn new(definition: &Definition, context: &QueryContext) -> Seen {
        let types = definition.types();
        let meta = |(i, ty): (usize, &DataType)| ColumnMeta {
            id: ColumnId(i as u32),
            ty: *ty,
            physical: ty.physical(),
            nullable: true,
            range: None,
        };
        let keys: Vec<ColumnMeta> = types.iter().enumerate().map(meta).collect();
        let table = GroupTable::new(&keys, 0, context.settings.hash_collisions);
        let memory = Reservation::new(&MemoryBudget::part_of(&context.memory, "a recursion"));
        Seen { table, columns: (0..types.len()).collect(), memory }
    }

    /// The rows of `found` that are not there yet, each once; from now on they are.
    fn new_rows(&mut self, found: &ResultSet, context: &QueryContext) -> Result<ResultSet> {
        let collector = Collector::new(context, found.types.clone());
        let mut worker = collector.worker()?;
        worker.start_morsel(0);
        let (mut groups, mut firsts, mut spares) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in &found.chunks {
            context.check()?;
            self.table.find_new(chunk, &self.columns, &mut groups, &mut firsts);
            self.memory.resize(self.table.bytes())?;
            let mut chunk = chunk.clone();
            chunk.select(&firsts, &mut spares);
            worker.push(&chunk)?;
        }
        worker.finish()?;
        drop(worker);
        Ok(collector.into_chunks())
    }
}
