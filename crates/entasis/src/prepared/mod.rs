//! Statements that a connection remembers by their texts, and what it keeps of them.
//!
//! | statement | what is kept | valid for |
//! |---|---|---|
//! | names rows by their key | its program ([`crate::prepared::program`]) | one state of the catalog |
//! | a query or a change of rows that has run before | its template ([`crate::binding::template`]) | that, and its parameters' types |
//! | `BEGIN`, `COMMIT`, `ROLLBACK` | what it is | ever |
//! | any other | its syntax tree | ever |
//!
//! The same is kept for named statements (`PREPARE`).

pub(crate) mod program;

use crate::prepared::program::{Compiled, Program};
use entasis_engine::exec::{MemoryBudget, Reservation};
use entasis_engine::plan::{Columns, Node, Plan, Values};
use entasis_engine::template::Template;
use entasis_sql::{FreedAside, Keyed, Parsed, Statement};
use entasis_vector::{DataType, Result, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Number of statements that a connection remembers.
const REMEMBERED: usize = 256;
/// The longest text that is remembered, in bytes.
const LONGEST: usize = 16 << 10;
/// A statement that takes less than this need not be interruptible.
const SHORT: Duration = Duration::from_millis(10);

/// Bytes of parameters that are free.
const FREE: usize = 1 << 20;

/// True if parameters take memory that is worth counting.
pub(crate) fn are_large<'a>(parameters: impl Iterator<Item = &'a Value>) -> bool {
    bytes(parameters) > FREE
}

/// Reserves the memory of parameters in that of their statement, for its run.
///
/// # Errors
/// Resource, if there is not enough.
pub(crate) fn reserve<'a>(
    memory: impl FnOnce() -> Arc<MemoryBudget>,
    parameters: impl Iterator<Item = &'a Value>,
) -> Result<Option<Reservation>> {
    let bytes = bytes(parameters);
    if bytes <= FREE {
        return Ok(None);
    }
    let mut held = Reservation::new(&MemoryBudget::part_of(&memory(), "parameters"));
    held.resize(bytes)?;
    Ok(Some(held))
}

fn bytes<'a>(parameters: impl Iterator<Item = &'a Value>) -> usize {
    parameters.map(|value| size_of::<(Value, DataType)>() + value.bytes().unwrap_or(0)).sum()
}

/// A statement by its text, parsed once.
pub(crate) struct Prepared {
    /// Its number, which no other of this process has.
    number: u64,
    /// The syntax tree.
    pub(crate) parsed: Parsed,
    /// `BEGIN`, `COMMIT` or `ROLLBACK`, if it is one of these.
    pub(crate) control: Option<Statement>,
    /// The statement in keyed form, if it only names rows by values of their columns.
    keyed: Option<Keyed>,
    /// The program for a state of the catalog; the inner `None` if the statement has none in that state.
    program: Mutex<Option<(State, Option<Arc<Program>>)>>,
    /// What is kept for it as a statement on rows.
    pub(crate) template: Mutex<Known>,
    /// For each parameter, whether it may be a list; found out when one is given.
    lists: OnceLock<Vec<bool>>,
}

/// The state for which a program is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// The session's count of changes of what names mean.
    pub(crate) meanings: u64,
    /// The count of changes of the current database's catalog.
    pub(crate) changes: u64,
}

/// What is kept for a statement on rows.
#[derive(Default)]
pub(crate) struct Known {
    /// Number of runs, including failed ones.
    pub(crate) runs: u64,
    /// The state of the catalog and the types of parameters for which the template was made.
    pub(crate) made_for: Option<(u64, Vec<DataType>)>,
    /// `None` if the statement must be bound for each run.
    pub(crate) kept: Option<Arc<Kept>>,
    /// Duration of the last run of a query with a template.
    pub(crate) took: Option<Duration>,
}

/// A bound statement that is kept: what is the same for all runs, and the template of its plan.
#[derive(Debug)]
pub(crate) struct Kept {
    /// A query, an insert or a change, whose plan is empty.
    statement: Statement,
    /// The template of its plan.
    pub(crate) template: Template,
}

impl Kept {
    /// What can be kept of `bound`; `None` if it must be bound for each run.
    pub(crate) fn new(mut bound: Statement) -> Option<Kept> {
        let nothing = Plan {
            root: Node::Values(Values { columns: Vec::new(), rows: Vec::new() }),
            columns: Columns::default(),
            output: Vec::new(),
        };
        let plan = std::mem::replace(plan_of(&mut bound)?, nothing);
        Some(Kept { statement: bound, template: Template::new(plan)? })
    }

    /// The statement with this plan.
    pub(crate) fn with(&self, plan: Plan) -> Statement {
        let mut statement = self.statement.clone();
        if let Some(place) = plan_of(&mut statement) {
            *place = plan;
        }
        statement
    }
}

/// The plan of a statement on rows.
fn plan_of(statement: &mut Statement) -> Option<&mut Plan> {
    match statement {
        Statement::Query(plan) => Some(plan),
        Statement::Insert(insert) => Some(&mut insert.plan),
        Statement::Change(change) => Some(&mut change.plan),
        _ => None,
    }
}

/// Statements by their texts.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<HashMap<String, Arc<Prepared>>>);

impl Remembered {
    /// The statement of this text, if it is a single one; otherwise all statements of the text.
    ///
    /// # Errors
    /// Those of parsing.
    pub(crate) fn prepare(&self, sql: &str) -> Result<Result<Arc<Prepared>, Vec<Parsed>>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = known.get(sql) {
            return Ok(Ok(prepared.clone()));
        }
        let prepared = read(sql)?;
        if let Ok(prepared) = &prepared
            && sql.len() <= LONGEST
        {
            if known.len() == REMEMBERED {
                known.clear();
            }
            known.insert(sql.to_owned(), prepared.clone());
        }
        Ok(prepared)
    }

    /// Forgets all statements, because the meaning of names has changed.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The statement of this text, if it is a single one; otherwise all statements of the text. Neither is
/// remembered.
///
/// # Errors
/// Those of parsing.
pub(crate) fn read(sql: &str) -> Result<Result<Arc<Prepared>, Vec<Parsed>>> {
    let mut parsed = entasis_sql::parse(sql)?;
    if parsed.len() != 1 {
        return Ok(Err(parsed));
    }
    let parsed = parsed.pop().expect("just counted");
    Ok(Ok(Arc::new(Prepared::new(parsed))))
}

/// No statement waits until the tree of a long one is freed.
impl Drop for Prepared {
    fn drop(&mut self) {
        let tokens = self.parsed.tokens();
        drop(FreedAside::new((self.parsed.take_ast(), self.keyed.take()), tokens));
    }
}

impl Prepared {
    pub(crate) fn new(parsed: Parsed) -> Prepared {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        Prepared {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            control: entasis_sql::transaction_control(&parsed),
            keyed: parsed.keyed(),
            parsed,
            program: Mutex::default(),
            template: Mutex::default(),
            lists: OnceLock::new(),
        }
    }

    /// For each parameter, whether the statement compares with it, so that it may be a list of values.
    pub(crate) fn list_parameters(&self) -> &[bool] {
        self.lists.get_or_init(|| {
            let places = 0..self.parsed.parameters();
            let only = |place| places.clone().map(move |other| (other == place).then_some(1));
            let takes_list = |place| self.parsed.with_lists(&only(place).collect::<Vec<_>>()).is_ok();
            places.clone().map(takes_list).collect()
        })
    }

    /// True if the statement names rows by values of their columns, which may be a key.
    pub(crate) fn is_keyed(&self) -> bool {
        self.keyed.is_some()
    }

    /// The table whose rows the statement names by values, as it is written.
    pub(crate) fn table(&self) -> Option<&str> {
        self.keyed.as_ref().map(|keyed| keyed.table.name.as_str())
    }

    /// Its number, which no other statement of this process has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The statement in keyed form, if it names rows by values of their columns.
    pub(crate) fn keyed(&self) -> Option<&Keyed> {
        self.keyed.as_ref()
    }

    /// The program for a state of the catalog; `compile` makes it if there is none yet.
    pub(crate) fn program(
        &self,
        state: State,
        compile: impl FnOnce(&Keyed) -> Compiled<Program>,
    ) -> Option<Arc<Program>> {
        let keyed = self.keyed.as_ref()?;
        let mut known = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made_for, program)) = &*known
            && *made_for == state
        {
            return program.clone();
        }
        let program = compile(keyed).ok().map(Arc::new);
        *known = Some((state, program.clone()));
        program
    }

    /// Records the duration of the last run.
    pub(crate) fn took(&self, time: Duration) {
        let mut known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        if known.kept.is_some() {
            known.took = Some(time);
        }
    }

    /// True if a run is likely to end before anybody could interrupt it.
    pub(crate) fn is_short(&self) -> bool {
        let known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        known.took.is_some_and(|took| took < SHORT)
    }
}

// ---- by name ----------------------------------------------------------------------------------------------

/// A named statement.
#[derive(Clone)]
pub(crate) struct Named {
    /// The statement to run.
    pub(crate) prepared: Arc<Prepared>,
    /// Converts the arguments, its parameters, to the declared types.
    pub(crate) casts: Option<Arc<Prepared>>,
}

/// The statements of a connection by their names, in lower case.
#[derive(Default)]
pub(crate) struct ByName(Mutex<HashMap<String, Named>>);

impl ByName {
    /// The statements, locked.
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<String, Named>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything learnt about all statements, because the meaning of names has changed.
    pub(crate) fn start_afresh(&self) {
        for named in self.lock().values_mut() {
            named.prepared = Arc::new(Prepared::new(named.prepared.parsed.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Database};

    #[test]
    fn what_is_remembered_holds_no_rows() {
        let database = Database::in_memory(Config::default()).unwrap();
        let connection = database.connect();
        connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v INTEGER UNIQUE)").unwrap();
        let statements = [
            "SELECT sum(v) FROM t",
            "SELECT count(*) FROM t a JOIN t b ON a.k = b.v WHERE b.v > 1",
            "SELECT v FROM t WHERE k = 1",
            "INSERT INTO t SELECT 1 + coalesce(max(k), 0), max(k) FROM t",
            "INSERT INTO t SELECT 1 + max(k), 100 * max(k) FROM t",
            "UPDATE t SET v = v + 1 WHERE k = 1",
            "UPDATE t SET v = v + 1",
            "DELETE FROM t WHERE k = 1000",
        ];
        for _ in 0..3 {
            for sql in statements {
                connection.execute(sql).unwrap();
            }
        }
        let names = database.shared.catalog.version();
        let entry = names.table("t").unwrap();
        let tables = std::iter::once(&entry.table).chain(entry.indexes.iter().flatten());
        assert_eq!(tables.map(|table| table.snapshots()).collect::<Vec<_>>(), [0, 0]);
    }
}
