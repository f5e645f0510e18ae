//! The optimizer: a plan in, an equal plan that runs faster out.
//!
//! A flat list of [`RULES`], each a small file whose header says what it does and what that unlocks, run once
//! in order. The order carries the reasons: a rule stands where those before it have prepared its ground.
//!
//! - [`decorrelate`] runs before all rules, and where there are none: subqueries become joins
//!   ([`crate::shared::decorrelated`]).
//! - [`crate::estimate`] says how many rows are expected and what joins cost; estimates choose among equal
//!   plans.
//! - [`properties`] and [`nulls`] prove things: uniqueness, at most one row, where NULL cannot pass;
//!   [`disjoint`] that conditions exclude each other; [`linear`] takes arithmetic apart.
//! - [`crate::plan::freedom`] says whether an expression may be computed again, elsewhere, or of equal
//!   values.
//! - [`validate`] checks the plan after every rule in debug builds.
//!
//! A rule never makes a result wrong if an estimate is: estimates choose among equal plans.

mod antis;
mod constants;
pub(crate) mod decorrelate;
#[cfg(test)]
mod differential;
mod disjoint;
mod distincts;
mod eager;
mod empties;
mod extremes;
mod factor;
mod fuse;
mod groups;
mod join_graph;
mod join_order;
mod known;
mod limits;
mod linear;
mod nulls;
mod orders;
mod parents;
mod properties;
mod prune;
mod pushdown;
mod reduce;
mod renamed;
mod repeats;
mod restrict;
mod samples;
mod seen;
mod simplify;
mod singles;
mod sums;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tops;
mod two_steps;
mod unions;
mod validate;

pub use crate::estimate::estimate_rows;

use crate::plan::Plan;
use crate::plan::freedom::within_ranges_of;
use crate::settings::Settings;
use entasis_vector::{Result, statement};

/// Changes a plan into an equal one.
type Rule = fn(&mut Plan) -> Result<()>;

/// All rules, in the order in which they run: name, rule, reason for its place.
const RULES: &[(&str, Rule, &str)] = &[
    ("simplify", simplify::apply, "all others recognize shapes; give them one shape for one meaning"),
    ("unions", unions::apply, "before anything walks each level of a long chain"),
    ("fuse", fuse::apply, "conditions stand where they were written, and no sample has been taken yet"),
    ("factor", factor::apply, "what disjunctions share or imply must exist before it can be pushed"),
    ("known", known::apply, "scans have no filters that are not written below the aggregate"),
    ("constants", constants::apply, "before comparisons with them are pushed, as keys of their joins"),
    ("pushdown", pushdown::apply, "join ordering wants its relations filtered and its predicates as keys"),
    ("antis", antis::apply, "filters stand right above the outer joins that they may not pass"),
    ("tops", tops::apply, "filters stand right above the windows that they may not pass"),
    ("limits", limits::apply, "after filters, which may not pass a limit"),
    ("orders", orders::apply, "a limit above has given its sort a limit, and keeps it"),
    (
        "empties",
        empties::apply,
        "constants that pushdown brought to light; before effort goes into dead branches",
    ),
    ("prune early", prune::apply, "joins that nobody reads must not take part in the order"),
    (
        "restrict",
        restrict::apply,
        "scans have their filters, and only the columns that are read; before rows are estimated",
    ),
    (
        "samples",
        samples::apply,
        "scans have all their filters; before the first rule that needs to know rows",
    ),
    ("reduce", reduce::apply, "makes semi joins, which join ordering places"),
    ("join order", join_order::apply, "needs all filters in place, to know how many rows are left"),
    ("groups", groups::apply, "functional dependencies become visible as equalities in the ordered joins"),
    ("distincts", distincts::apply, "one call that keeps a key as any_value is split like the others"),
    ("eager", eager::apply, "joins have their order, and calls are ones that can be split"),
    ("singles", singles::apply, "aggregations below joins make the rows above them unique"),
    ("repeats", repeats::apply, "joins have their order, and other aggregations stand where they will be"),
    ("sums", sums::apply, "late: what others know of sums, they know of plain calls"),
    ("extremes", extremes::apply, "late: nothing below needs to know of the order that it makes"),
    ("prune", prune::apply, "last: join ordering and grouping have moved what reads what"),
];

/// Rules that run again behind the last of them, while it has brought constants to light: `'s' = 's'`, where
/// a filter has met a column of a `UNION` that is a constant in one input, decides which part of a
/// disjunction is left, what that implies for other relations, and where it may go.
const AGAIN: [&str; 3] = ["simplify", "factor", "pushdown"];
/// How often they do at most.
const ROUNDS: usize = 4;

/// The rule that looks at all readers of a relation, which only a whole plan has.
const OF_WHOLE_PLANS: &str = "restrict";

/// Optimizes `plan`. With the setting off, the plan stays as it was written.
///
/// # Errors
/// Internal, if a rule breaks the plan; interrupted.
pub fn optimize(mut plan: Plan, settings: &Settings) -> Result<Plan> {
    run(&mut plan, settings, |_| true, |_, _| {})?;
    Ok(plan)
}

/// Optimizes a plan whose rows are a relation in another plan, which may read its relations too.
///
/// # Errors
/// As [`optimize`].
pub(crate) fn optimize_part(mut plan: Plan, settings: &Settings) -> Result<Plan> {
    run(&mut plan, settings, |rule| rule != OF_WHOLE_PLANS, |_, _| {})?;
    Ok(plan)
}

/// Like [`optimize`], with the text of the plan after each rule that changed it.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_traced(mut plan: Plan, settings: &Settings) -> Result<(Plan, Vec<(&'static str, String)>)> {
    let mut trace = Vec::new();
    let mut last = plan.to_string();
    let after = |name: &'static str, plan: &Plan| {
        let text = plan.to_string();
        if text != last {
            trace.push((name, text.clone()));
            last = text;
        }
    };
    run(&mut plan, settings, |_| true, after)?;
    Ok((plan, trace))
}

/// Runs the rules for which `is_run` holds.
fn run(
    plan: &mut Plan,
    settings: &Settings,
    is_run: impl Fn(&str) -> bool,
    mut after: impl FnMut(&'static str, &Plan),
) -> Result<()> {
    check(plan, "binding")?;
    if !settings.optimize {
        return Ok(());
    }
    within_ranges_of(plan, |plan| run_rules(plan, is_run, &mut after))
}

fn run_rules(
    plan: &mut Plan,
    is_run: impl Fn(&str) -> bool,
    after: &mut impl FnMut(&'static str, &Plan),
) -> Result<()> {
    let mut step = |(name, rule, _): &(&'static str, Rule, &str), plan: &mut Plan| -> Result<()> {
        statement::check()?;
        rule(plan)?;
        check(plan, name)?;
        after(name, plan);
        Ok(())
    };
    let again = || RULES.iter().filter(|(name, ..)| AGAIN.contains(name));
    for rule in RULES.iter().filter(|(name, ..)| is_run(name)) {
        step(rule, plan)?;
        if AGAIN.last() == Some(&rule.0) {
            let mut rounds = 0..ROUNDS;
            while rounds.next().is_some() && simplify::has_constants(&mut plan.root) {
                again().try_for_each(|rule| step(rule, plan))?;
            }
        }
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
