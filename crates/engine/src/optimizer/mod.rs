//! The optimizer: a plan in, an equal plan that runs faster out.
//!
//! A flat list of [`RULES`], each a small file whose header says what it does and what that unlocks, run once
//! in order. The order carries the reasons: a rule stands where those before it have prepared its ground.
//!
//! - [`crate::estimate`] says how many rows are expected and what joins cost; estimates choose among equal
//!   plans.
//! - [`properties`] and [`nulls`] prove things: uniqueness, at most one row, where NULL cannot pass;
//!   [`linear`] takes arithmetic apart.
//! - [`validate`] checks the plan after every rule in debug builds.
//!
//! A rule never makes a result wrong if an estimate is: estimates choose among equal plans.

#[cfg(test)]
mod differential;
mod distincts;
mod empties;
mod factor;
mod groups;
mod join_graph;
mod join_order;
mod limits;
mod linear;
mod nulls;
mod orders;
mod properties;
mod prune;
mod pushdown;
mod reduce;
mod simplify;
mod sums;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tops;
mod unions;
mod validate;

pub use crate::estimate::estimate_rows;

use crate::plan::Plan;
use crate::settings::Settings;
use entasis_vector::{Result, statement};

/// Changes a plan into an equal one.
type Rule = fn(&mut Plan) -> Result<()>;

/// All rules, in the order in which they run: name, rule, reason for its place.
const RULES: &[(&str, Rule, &str)] = &[
    ("simplify", simplify::apply, "all others recognize shapes; give them one shape for one meaning"),
    ("unions", unions::apply, "before anything walks each level of a long chain"),
    ("factor", factor::apply, "what disjunctions share or imply must exist before it can be pushed"),
    ("pushdown", pushdown::apply, "join ordering wants its relations filtered and its predicates as keys"),
    ("tops", tops::apply, "filters stand right above the windows that they may not pass"),
    ("limits", limits::apply, "after filters, which may not pass a limit"),
    ("orders", orders::apply, "a limit above has given its sort a limit, and keeps it"),
    (
        "empties",
        empties::apply,
        "constants that pushdown brought to light; before effort goes into dead branches",
    ),
    ("prune early", prune::apply, "joins that nobody reads must not take part in the order"),
    ("reduce", reduce::apply, "makes semi joins, which join ordering places"),
    ("join order", join_order::apply, "needs all filters in place, to know how many rows are left"),
    ("groups", groups::apply, "functional dependencies become visible as equalities in the ordered joins"),
    ("distincts", distincts::apply, "one call that keeps a key as any_value is split like the others"),
    ("sums", sums::apply, "late: what others know of sums, they know of plain calls"),
    ("prune", prune::apply, "last: join ordering and grouping have moved what reads what"),
];

/// Optimizes `plan`. With the setting off, the plan stays as it was written.
///
/// # Errors
/// Internal, if a rule breaks the plan; interrupted.
pub fn optimize(mut plan: Plan, settings: &Settings) -> Result<Plan> {
    run(&mut plan, settings, |_, _| {})?;
    Ok(plan)
}

/// Like [`optimize`], with the text of the plan after each rule that changed it.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_traced(mut plan: Plan, settings: &Settings) -> Result<(Plan, Vec<(&'static str, String)>)> {
    let mut trace = Vec::new();
    let mut last = plan.to_string();
    run(&mut plan, settings, |name, plan| {
        let text = plan.to_string();
        if text != last {
            trace.push((name, text.clone()));
            last = text;
        }
    })?;
    Ok((plan, trace))
}

fn run(plan: &mut Plan, settings: &Settings, mut after: impl FnMut(&'static str, &Plan)) -> Result<()> {
    check(plan, "binding")?;
    if !settings.optimize {
        return Ok(());
    }
    for (name, rule, _) in RULES {
        statement::check()?;
        rule(plan)?;
        check(plan, name)?;
        after(name, plan);
    }
    Ok(())
}

/// Validates the plan in debug builds.
fn check(plan: &Plan, step: &str) -> Result<()> {
    if cfg!(debug_assertions) {
        validate::validate(plan).map_err(|e| e.with_context(format!("after {step}")))
    } else {
        Ok(())
    }
}
