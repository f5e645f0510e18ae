//! The optimizer: a plan in, an equal plan that runs faster out.
//!
//! A flat list of [`RULES`], each a small file whose header says what it does and what that unlocks, run once
//! in order. The order carries the reasons: a rule stands where those before it have prepared its ground.
//!
//! - [`decorrelate`] runs before all rules, and where there are none: subqueries become joins
//!   ([`crate::common_subplans::decorrelated`]).
//! - [`crate::estimate`] says how many rows are expected and what joins cost; estimates choose among equal
//!   plans.
//! - [`properties`] and [`nulls`] prove things: uniqueness, at most one row, where NULL cannot pass;
//!   [`disjoint`] that conditions exclude each other; [`linear`] takes arithmetic apart.
//! - [`crate::plan::freedom`] says whether an expression may be computed again, elsewhere, or of equal
//!   values.
//! - [`validate`] checks the plan after every rule in debug builds.
//!
//! A rule never makes a result wrong if an estimate is: estimates choose among equal plans.

mod column_pruning;
pub(crate) mod decorrelate;
#[cfg(test)]
mod differential;
mod disjoint;
mod eager_aggregation;
mod eliminate_fk_join;
mod eliminate_group_by;
mod eliminate_group_keys;
mod eliminate_sort;
mod factor_disjunctions;
mod filter_common_subplans;
mod filter_pushdown;
mod join_graph;
mod join_order;
mod limit_pushdown;
mod linear;
mod merge_aggregates;
mod merge_unions;
mod metadata_aggregates;
mod min_max_by_order;
mod nulls;
mod outer_to_anti_join;
mod partition_top_n;
mod propagate_empty;
mod properties;
mod push_distinct;
mod renamed;
mod restrict_groups;
mod sample_scans;
mod scalar_subqueries;
mod seen;
mod simplify_expressions;
mod simplify_sums;
mod split_distinct;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod two_steps;
mod validate;

pub use crate::estimate::estimate_rows;

use crate::plan::Plan;
use crate::plan::freedom::within_ranges_of;
use crate::settings::Settings;
use entasis_vector::{Result, statement};

/// Changes a plan into an equal one.
type Rule = fn(&mut Plan) -> Result<()>;

/// A rule with the name of its module, which `EXPLAIN (VERBOSE)` shows, and the reason for its place.
macro_rules! rule {
    ($name:ident: $reason:literal) => {
        (stringify!($name), $name::apply as Rule, $reason)
    };
}

/// All rules, in the order in which they run.
const RULES: &[(&str, Rule, &str)] = &[
    rule!(simplify_expressions: "all others recognize shapes; give them one shape for one meaning"),
    rule!(merge_unions: "before anything walks each level of a long chain"),
    rule!(merge_aggregates: "conditions stand where they were written, and no sample has been taken yet"),
    rule!(factor_disjunctions: "what disjunctions share or imply must exist before it can be pushed"),
    rule!(metadata_aggregates: "scans have no filters that are not written below the aggregate"),
    rule!(scalar_subqueries: "before comparisons with them are pushed, as keys of their joins"),
    rule!(filter_pushdown: "join ordering wants its relations filtered and its predicates as keys"),
    rule!(outer_to_anti_join: "filters stand right above the outer joins that they may not pass"),
    rule!(partition_top_n: "filters stand right above the windows that they may not pass"),
    rule!(limit_pushdown: "after filters, which may not pass a limit"),
    rule!(eliminate_sort: "a limit above has given its sort a limit, and keeps it"),
    rule!(propagate_empty: "constants that pushdown brought to light; before effort goes into dead branches"),
    rule!(column_pruning: "joins that nobody reads must not take part in the order"),
    rule!(filter_common_subplans: "scans have their filters, and only the columns that are read; before rows are estimated"),
    rule!(sample_scans: "scans have all their filters; before the first rule that needs to know rows"),
    rule!(restrict_groups: "makes semi joins, which join ordering places"),
    rule!(join_order: "needs all filters in place, to know how many rows are left"),
    rule!(eliminate_group_keys: "functional dependencies become visible as equalities in the ordered joins"),
    rule!(split_distinct: "one call that keeps a key as any_value is split like the others"),
    rule!(eager_aggregation: "joins have their order, and calls are ones that can be split"),
    rule!(eliminate_group_by: "aggregations below joins make the rows above them unique"),
    rule!(push_distinct: "joins have their order, and other aggregations stand where they will be"),
    rule!(simplify_sums: "late: what others know of sums, they know of plain calls"),
    rule!(min_max_by_order: "late: nothing below needs to know of the order that it makes"),
    rule!(column_pruning: "last: join ordering and grouping have moved what reads what"),
];

/// Rules that run again behind the last of them, while it has brought constants to light: `'s' = 's'`, where
/// a filter has met a column of a `UNION` that is a constant in one input, decides which part of a
/// disjunction is left, what that implies for other relations, and where it may go.
const AGAIN: [&str; 3] = ["simplify_expressions", "factor_disjunctions", "filter_pushdown"];
/// How often they do at most.
const ROUNDS: usize = 4;

/// The rule that looks at all readers of a relation, which only a whole plan has.
const OF_WHOLE_PLANS: &str = "filter_common_subplans";

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
            while rounds.next().is_some() && simplify_expressions::has_constants(&mut plan.root) {
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
