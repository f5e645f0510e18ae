//! Plans of queries that are run often, made from templates.
//!
//! A template is bound once and optimized for each run, because what the optimizer concludes holds for one
//! version of the tables and one set of values.

use crate::catalog::Names;
use crate::prepared::Prepared;
use crate::session::Session;
use crate::work::Work;
use entasis_engine::plan::Plan;
use entasis_engine::template::Template;
use entasis_sql::Catalog;
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::{Arc, PoisonError};

impl Prepared {
    /// The plan of this run, from the template; `None` if the statement must be bound.
    ///
    /// # Errors
    /// Only those that binding would raise.
    pub(crate) fn plan(
        &self,
        session: &Session,
        work: &mut Work,
        parameters: &[(Value, DataType)],
    ) -> Result<Option<Plan>> {
        let catalog = &session.shared.catalog;
        let has_null = parameters.iter().any(|(value, _)| value.is_null());
        if !self.parsed.is_query() || has_null {
            return Ok(None);
        }
        // The state of the catalog in which these names are the newest.
        let state = |work: &Work| catalog.at_rest(|newest| work.has_names(newest).then(|| catalog.changes()));
        let Some(changes) = state(work) else { return Ok(None) };
        let Some(template) = self.template(session, work, changes, parameters) else { return Ok(None) };
        loop {
            let plan = {
                let names = Names::new(session, work);
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
        session: &Session,
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
        // Most statements run only once.
        if !is_made && known.runs > 1 {
            let types: Vec<DataType> = types.collect();
            let bound = entasis_sql::bind_template(&self.parsed, &Names::new(session, work), &types);
            known.template = bound.ok().and_then(Template::new).map(Arc::new);
            known.made_for = Some((changes, types));
            known.took = None;
        }
        if known.runs > 1 { known.template.clone() } else { None }
    }
}
