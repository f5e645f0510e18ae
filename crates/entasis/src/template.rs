//! Statements on rows that are run often, with plans made from templates.
//!
//! A template is bound once and optimized for each run, because what the optimizer concludes holds for one
//! version of the tables and one set of values.

use crate::catalog::Names;
use crate::prepared::Prepared;
use crate::session::Session;
use crate::work::Work;
use entasis_engine::plan::{Columns, Node, Plan, Values};
use entasis_engine::template::Template;
use entasis_sql::{Catalog, ROW_ID, Statement};
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::{Arc, PoisonError};

/// A bound statement that is kept: what is the same for all runs, and the template of its plan.
#[derive(Debug)]
pub(crate) struct Kept {
    /// A query, an insert or a change, whose plan is empty.
    statement: Statement,
    template: Template,
}

impl Kept {
    /// What can be kept of `bound`; `None` if it must be bound for each run.
    fn new(mut bound: Statement) -> Option<Kept> {
        let nothing = Plan {
            root: Node::Values(Values { columns: Vec::new(), rows: Vec::new() }),
            columns: Columns::default(),
            output: Vec::new(),
        };
        let plan = std::mem::replace(plan_of(&mut bound)?, nothing);
        Some(Kept { statement: bound, template: Template::new(plan)? })
    }

    /// The statement with this plan.
    fn with(&self, plan: Plan) -> Statement {
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

impl Prepared {
    /// The bound statement of this run, from the template; `None` if the statement must be bound.
    ///
    /// # Errors
    /// Only those that binding would raise.
    pub(crate) fn bound(
        &self,
        session: &Session,
        work: &mut Work,
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Statement>> {
        let catalog = &session.shared.catalog;
        let has_null = parameters.iter().any(|(value, _)| value.is_null());
        if !self.parsed.is_of_rows() || has_null {
            return Ok(None);
        }
        // The state of the catalog in which these names are the newest.
        let state = |work: &Work| catalog.at_rest(|newest| work.has_names(newest).then(|| catalog.changes()));
        let Some(changes) = state(work) else { return Ok(None) };
        let Some(kept) = self.kept(session, work, changes, parameters) else { return Ok(None) };
        loop {
            let plan = {
                let names = Names::new(session, work);
                kept.template.instance(parameters, |place| {
                    let name = place.name();
                    let has_row_ids = place.schema().last().is_some_and(|field| &*field.name == ROW_ID);
                    let table = if has_row_ids { names.table_with_row_ids(name) } else { names.table(name) };
                    let gone = || Error::internal(format!("a template reads {name:?}, which is gone"));
                    table.ok_or_else(gone)
                })?
            };
            if plan.is_none() || work.sees_one_moment() {
                return Ok(plan.map(|plan| kept.with(plan)));
            }
            if state(work) != Some(changes) {
                return Ok(None);
            }
        }
    }

    /// What is kept for all runs, if something is.
    fn kept(
        &self,
        session: &Session,
        work: &mut Work,
        changes: u64,
        parameters: &[(Value, DataType)],
    ) -> Option<Arc<Kept>> {
        let mut known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        known.runs += 1;
        let types = parameters.iter().map(|(_, ty)| *ty);
        let is_made = known
            .made_for
            .as_ref()
            .is_some_and(|(state, made)| *state == changes && made.iter().copied().eq(types.clone()));
        // Most statements run only once.
        if !is_made && known.runs > 1 {
            let types: Vec<DataType> = types.collect();
            let bound = entasis_sql::bind_template(&self.parsed, &Names::new(session, work), &types);
            known.kept = bound.ok().and_then(Kept::new).map(Arc::new);
            known.made_for = Some((changes, types));
            known.took = None;
        }
        if known.runs > 1 { known.kept.clone() } else { None }
    }
}
