//! Statements that a connection remembers by their texts, and what it learnt of them.
//!
//! | of a statement | is kept | for |
//! |---|---|---|
//! | that names rows by their key | its program ([`crate::keyed`]) | one state of the catalog |
//! | that is a query, from its second run on | its bound plan, a template ([`Template`]) | one state of the catalog and the types of its parameters |
//! | any other | its syntax tree | ever |
//!
//! A template is bound once and optimized for each run, as what the optimizer concludes holds for one version
//! of the tables and one set of values.

use crate::catalog::Names;
use crate::connection::Connection;
use crate::keyed::{self, Program};
use crate::work::Work;
use entasis_engine::plan::Plan;
use entasis_engine::template::Template;
use entasis_sql::{Catalog, Keyed, Parsed};
use entasis_vector::{DataType, Error, Result, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Statements that a connection remembers.
const REMEMBERED: usize = 256;
/// The longest text that is remembered, in bytes.
const LONGEST: usize = 16 << 10;
/// Who waits no longer need not be able to interrupt.
const SHORT: Duration = Duration::from_millis(10);

/// A statement by its text, parsed once.
pub(crate) struct Prepared {
    pub(crate) parsed: Parsed,
    keyed: Option<Keyed>,
    /// The program for a state of the catalog; `None` if there is none for it.
    program: Mutex<Option<(u64, Option<Arc<Program>>)>>,
    template: Mutex<Known>,
}

/// What is known of a query.
#[derive(Default)]
struct Known {
    runs: u64,
    /// What the template was made for: a state of the catalog, and types of parameters.
    made_for: Option<(u64, Vec<DataType>)>,
    /// `None` if the query must be bound for each run.
    template: Option<Arc<Template>>,
    /// Of the last run with a template.
    took: Option<Duration>,
}

/// Statements by their texts.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<HashMap<String, Arc<Prepared>>>);

impl Remembered {
    /// The statement of this text, if it is a single one; else all.
    ///
    /// # Errors
    /// Those of parsing.
    pub(crate) fn prepare(&self, sql: &str) -> Result<Result<Arc<Prepared>, Vec<Parsed>>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = known.get(sql) {
            return Ok(Ok(prepared.clone()));
        }
        let mut parsed = entasis_sql::parse(sql)?;
        if parsed.len() != 1 {
            return Ok(Err(parsed));
        }
        let parsed = parsed.pop().expect("just counted");
        let prepared = Arc::new(Prepared::new(parsed));
        if sql.len() <= LONGEST {
            if known.len() == REMEMBERED {
                known.clear();
            }
            known.insert(sql.to_owned(), prepared.clone());
        }
        Ok(Ok(prepared))
    }

    /// Forgets all, as names have got another meaning.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Prepared {
    pub(crate) fn new(parsed: Parsed) -> Prepared {
        Prepared { keyed: parsed.keyed(), parsed, program: Mutex::default(), template: Mutex::default() }
    }

    /// True if it names rows by values of their columns, which may be a key.
    pub(crate) fn is_keyed(&self) -> bool {
        self.keyed.is_some()
    }

    /// The table whose rows it names so, as it is written.
    pub(crate) fn table(&self) -> Option<&str> {
        self.keyed.as_ref().map(|keyed| keyed.table.name.as_str())
    }

    /// The program for the catalog as it is after `changes` changes.
    pub(crate) fn program(&self, changes: u64, connection: &Connection) -> Option<Arc<Program>> {
        let keyed = self.keyed.as_ref()?;
        let mut known = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((state, program)) = &*known
            && *state == changes
        {
            return program.clone();
        }
        let program =
            keyed::compile(keyed, &connection.newest_names(), &connection.search_path()).map(Arc::new);
        *known = Some((changes, program.clone()));
        program
    }

    /// The plan of this run, from the template; `None` if the statement must be bound.
    ///
    /// # Errors
    /// None that binding would not raise.
    pub(crate) fn plan(
        &self,
        connection: &Connection,
        work: &mut Work,
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Plan>> {
        let catalog = &connection.shared.catalog;
        let has_null = parameters.iter().any(|(value, _)| value.is_null());
        if !self.parsed.is_query() || has_null {
            return Ok(None);
        }
        // The state of the catalog that has these names, if they are the newest.
        let state = |work: &Work| catalog.at_rest(|newest| work.has_names(newest).then(|| catalog.changes()));
        let Some(changes) = state(work) else { return Ok(None) };
        let Some(template) = self.template(connection, work, changes, parameters) else { return Ok(None) };
        loop {
            let plan = {
                let names = Names::new(connection, work);
                let gone = |name: &str| Error::internal(format!("a template reads {name:?}, which is gone"));
                template.instance(parameters, |name| names.table(name).ok_or_else(|| gone(name)))?
            };
            if plan.is_none() || work.sees_one_moment() {
                return Ok(plan);
            }
            if state(work) != Some(changes) {
                return Ok(None);
            }
        }
    }

    fn template(
        &self,
        connection: &Connection,
        work: &mut Work,
        changes: u64,
        parameters: &[(Value, DataType)],
    ) -> Option<Arc<Template>> {
        let mut known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        known.runs += 1;
        let types = parameters.iter().map(|(_, ty)| *ty);
        let is_made = known
            .made_for
            .as_ref()
            .is_some_and(|(state, made)| *state == changes && made.iter().copied().eq(types.clone()));
        // Most texts are run once.
        if !is_made && known.runs > 1 {
            let types: Vec<DataType> = types.collect();
            let bound = entasis_sql::bind_template(&self.parsed, &Names::new(connection, work), &types);
            known.template = bound.ok().and_then(Template::new).map(Arc::new);
            known.made_for = Some((changes, types));
            known.took = None;
        }
        if known.runs > 1 { known.template.clone() } else { None }
    }

    /// Keeps how long the last run took.
    pub(crate) fn took(&self, time: Duration) {
        let mut known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        if known.template.is_some() {
            known.took = Some(time);
        }
    }

    /// True if a run is likely to be over before anybody could interrupt it.
    pub(crate) fn is_short(&self) -> bool {
        let known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        known.took.is_some_and(|took| took < SHORT)
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
