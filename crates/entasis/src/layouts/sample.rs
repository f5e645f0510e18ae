//! A sample workload: SQL statements as *acts* on the rows of one table. They are parsed, bound and optimized
//! as if they were to run, and are not run.
//!
//! A query is an act for each scan of the table in its plan, with the filters that the optimizer has pushed
//! there. Rows and new keys count only if they stand in the statement. What is no act is skipped, with a
//! reason; a syntax error is an error, as nothing after it can be read.

use super::{Binding, Looked, literals};
use entasis_engine::access_path::question_of;
use entasis_engine::common_subplans;
use entasis_engine::exec::Settings;
use entasis_engine::plan::{Node, Plan};
use entasis_engine::scan_predicates::Question;
use entasis_sql::{Action, Catalog, Parsed, Statement};
use entasis_vector::{Error, Result, Value};
use std::path::Path;
use std::sync::Arc;

/// What a statement does with rows of the table.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Reads some, or changes columns that are in no key.
    Read(Question),
    /// Adds a row; `None` for values that do not stand in the statement.
    Insert(Vec<Option<Value>>),
    /// Removes some.
    Delete(Question),
    /// Sets columns of some.
    Update {
        /// Which rows.
        which: Question,
        /// The columns, with `None` for values that do not stand in the statement.
        set: Vec<(usize, Option<Value>)>,
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) acts: Vec<Act>,
    /// So many acts each of them stands for.
    pub(super) weight: f64,
    /// Rows that were added beside the acts; it is not known where.
    pub(super) added: u64,
    /// True if it is what scans have asked, and not statements.
    pub(super) is_recorded: bool,
    /// How many statements or scans there are.
    pub(super) statements: u64,
    /// Why some of them are no acts, and how many.
    pub(super) skipped: Vec<(String, usize)>,
}

impl Default for Sample {
    fn default() -> Sample {
        Sample {
            acts: Vec::new(),
            weight: 1.0,
            added: 0,
            is_recorded: false,
            statements: 0,
            skipped: Vec::new(),
        }
    }
}

impl Sample {
    /// The statements of `workload`: a text that ends in `.sql` is the path of a file, any other one is SQL.
    ///
    /// # Errors
    /// Input, if it cannot be parsed; I/O.
    pub(super) fn read(looked: &Looked<'_>, binding: &Binding<'_>, workload: &str) -> Result<Sample> {
        let is_file = workload.trim_end().to_ascii_lowercase().ends_with(".sql");
        let text = match is_file {
            true => {
                let path = Path::new(workload.trim());
                std::fs::read_to_string(path).map_err(|error| Error::io(path.display(), &error))?
            }
            false => workload.to_owned(),
        };
        let settings = Settings { optimize: true, ..binding.settings.clone() };
        let mut sample = Sample::default();
        for statement in entasis_sql::parse(&text)? {
            looked.interrupt.look()?;
            sample.statements += 1;
            match acts_of(looked, binding.catalog, &settings, &statement) {
                Ok(acts) if acts.is_empty() => sample.skip("it does not name the table"),
                Ok(acts) => sample.acts.extend(acts),
                Err(why) => sample.skip(&why),
            }
        }
        Ok(sample)
    }

    /// Counts a statement that is no act.
    pub(super) fn skip(&mut self, why: &str) {
        match self.skipped.iter_mut().find(|(own, _)| own == why) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((why.to_owned(), 1)),
        }
    }
}

/// The acts of a statement, or why there are none.
fn acts_of(
    looked: &Looked<'_>,
    catalog: &dyn Catalog,
    settings: &Settings,
    statement: &Parsed,
) -> std::result::Result<Vec<Act>, String> {
    if statement.parameters() > 0 {
        return Err("it has parameters instead of values".to_owned());
    }
    let said = |error: Error| error.message().to_owned();
    let bound = entasis_sql::bind(statement, catalog, &[]).map_err(said)?;
    let is_own = |name: &str| {
        let relation = catalog.table(name);
        relation.is_some_and(|relation| relation.table().is_some_and(|table| looked.is_of(table.table())))
    };
    match bound {
        Statement::Query(plan) => {
            let plan = common_subplans::optimize(plan, settings).map_err(said)?;
            Ok(scans(looked, &plan).into_iter().map(Act::Read).collect())
        }
        Statement::Insert(insert) => {
            let plan = common_subplans::optimize(insert.plan, settings).map_err(said)?;
            if !is_own(&insert.table) {
                return Ok(scans(looked, &plan).into_iter().map(Act::Read).collect());
            }
            let columns = looked.snapshot.schema().len();
            let rows = literals::rows(&plan).ok_or("its rows come from a query")?;
            let own = |row: Vec<Option<Value>>| Act::Insert(row.into_iter().take(columns).collect());
            Ok(rows.into_iter().map(own).collect())
        }
        Statement::Change(change) if is_own(&change.table) => {
            let plan = common_subplans::optimize(change.plan, settings).map_err(said)?;
            let mut scans = scans(looked, &plan).into_iter();
            let which = scans.next().ok_or("it changes no rows")?;
            let own = match change.action {
                Action::Delete => Act::Delete(which),
                Action::Update => {
                    let value = |(number, &column): (usize, &usize)| {
                        // The first column is the row's id.
                        (column, literals::constant(&plan, number + 1))
                    };
                    Act::Update { which, set: change.columns.iter().enumerate().map(value).collect() }
                }
                Action::ByRow => return Err("MERGE and ON CONFLICT depend on the rows".to_owned()),
            };
            Ok(std::iter::once(own).chain(scans.map(Act::Read)).collect())
        }
        Statement::Change(change) => {
            let plan = common_subplans::optimize(change.plan, settings).map_err(said)?;
            Ok(scans(looked, &plan).into_iter().map(Act::Read).collect())
        }
        _ => Err("it is neither a query nor a change of rows".to_owned()),
    }
}

impl Looked<'_> {
    /// True if this is the table.
    fn is_of(&self, table: &Arc<entasis_storage::Table>) -> bool {
        Arc::ptr_eq(self.snapshot.table(), table)
    }
}

/// What the scans of the table in a plan ask, in the order in which they stand there.
fn scans(looked: &Looked<'_>, plan: &Plan) -> Vec<Question> {
    let mut found = Vec::new();
    collect(looked, &plan.root, &mut found);
    found
}

fn collect(looked: &Looked<'_>, node: &Node, found: &mut Vec<Question>) {
    if let Node::Scan(scan) = node
        && scan.relation.table().is_some_and(|table| looked.is_of(table.table()))
    {
        found.extend(question_of(scan));
    }
    node.children().into_iter().for_each(|child| collect(looked, child, found));
}
