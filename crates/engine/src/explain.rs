//! Plans as text: what `EXPLAIN` prints, what golden plans hold, what profiles call an operator.
//!
//! One line a node, inputs indented below it, the estimated rows behind it:
//!
//! ```text
//! Output o_orderkey, revenue
//!   TopN 10 by revenue DESC  ~10 rows
//!     HashJoin inner on o_custkey = c_custkey  ~1500 rows
//!       Scan orders [o_orderkey, o_custkey] where (o_orderdate < DATE '1995-03-15')  ~7000 rows
//!       …
//! ```
//! Relations that are computed by plans of their own, for several readers, stand below the tree.
//!
//! The lines come from [`crate::plan::display`]; here they are annotated with what is decided above the plan:
//! the rows that are expected ([`crate::estimate`]), where a scan looks ([`crate::access_path`]) and by what
//! a join searches ([`crate::bounds`]).

use crate::access_path;
use crate::bounds::Bounds;
use crate::estimate::{Estimate, each_estimate, estimate_rows};
use crate::plan::display::{Names, Notes, SearchText};
use crate::plan::{Columns, Node, Plan};
use crate::relation::Relation;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// One line that says what `node` does, without its inputs.
pub(crate) fn node_title(node: &Node, columns: &Columns) -> String {
    Names::of_columns(columns).title(node, &notes(node, columns))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", PlanTree(self), self.computed(false))
    }
}

impl Plan {
    /// The relations that are computed by plans of their own when this one is run: what they do or, if they
    /// have been run with [`crate::exec::Settings::profile`], what they did. Empty if there are none.
    ///
    /// With everything that was noted, or a line for each operator.
    pub fn computed(&self, detailed: bool) -> String {
        let mut text = String::new();
        let mut relations = Vec::new();
        add_scanned(&self.root, &mut relations);
        let mut next = 0;
        while next < relations.len() {
            let relation = relations[next].clone();
            if let Some(own) = relation.plan_text(detailed) {
                text += &format!("{}, computed once:\n", relation.name());
                own.lines().for_each(|line| text += &format!("  {line}\n"));
            }
            relation.inputs().into_iter().for_each(|input| add_new(input, &mut relations));
            next += 1;
        }
        text
    }
}

/// An operator of a plan that has not been run.
#[derive(Debug, Clone)]
pub struct PlanNode {
    /// What it does, as `EXPLAIN` shows it.
    pub title: String,
    /// Rows that are expected to come out.
    pub expected: f64,
    /// The inputs, left to right.
    pub children: Vec<PlanNode>,
}

impl Plan {
    /// The operators, for programs that read plans.
    pub fn nodes(&self) -> PlanNode {
        fn of(node: &Node, plan: &Plan, names: &Names<'_>, expected: &ExpectedRows<'_>) -> PlanNode {
            PlanNode {
                title: names.title(node, &notes(node, &plan.columns)),
                expected: expected.of(node),
                children: node.children().into_iter().map(|child| of(child, plan, names, expected)).collect(),
            }
        }
        of(&self.root, self, &Names::of_plan(self), &ExpectedRows::below(&self.root, &self.columns))
    }
}

/// The nodes of a plan, without the plans of relations that it reads.
pub(crate) struct PlanTree<'a>(pub &'a Plan);

impl fmt::Display for PlanTree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlanTree(plan) = self;
        let names = Names::of_plan(plan);
        let outputs: Vec<String> = plan
            .output
            .iter()
            .map(|output| {
                let name = names.name(output.column);
                if name == output.name { name } else { format!("{name} AS {}", output.name) }
            })
            .collect();
        writeln!(f, "Output {}", outputs.join(", "))?;
        let expected = ExpectedRows::below(&plan.root, &plan.columns);
        write_tree(f, &plan.root, &expected, &names, 1)
    }
}

/// Adds the relations that `node` scans and that are no stored tables, each once.
fn add_scanned(node: &Node, all: &mut Vec<Arc<dyn Relation>>) {
    if let Node::Scan(scan) = node
        && scan.relation.table().is_none()
    {
        add_new(scan.relation.clone(), all);
    }
    node.children().into_iter().for_each(|child| add_scanned(child, all));
}

fn add_new(relation: Arc<dyn Relation>, all: &mut Vec<Arc<dyn Relation>>) {
    if !all.iter().any(|known| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(&relation))) {
        all.push(relation);
    }
}

fn write_tree(
    f: &mut fmt::Formatter<'_>,
    node: &Node,
    expected: &ExpectedRows<'_>,
    names: &Names<'_>,
    depth: usize,
) -> fmt::Result {
    let rows = expected.of(node).round();
    let title = names.title(node, &notes(node, expected.columns));
    writeln!(f, "{:indent$}{title}  ~{rows} rows", "", indent = depth * 2)?;
    node.children().into_iter().try_for_each(|child| write_tree(f, child, expected, names, depth + 1))
}

/// The rows that are expected of each node of a plan: estimated in one walk over all of it.
struct ExpectedRows<'a> {
    columns: &'a Columns,
    rows: HashMap<*const Node, f64>,
}

impl<'a> ExpectedRows<'a> {
    /// Of `root` and the nodes below.
    fn below(root: &Node, columns: &'a Columns) -> ExpectedRows<'a> {
        let mut rows = HashMap::new();
        let mut see = |node: &Node, estimate: &Estimate| {
            rows.insert(std::ptr::from_ref(node), estimate.rows);
        };
        each_estimate(root, columns, &mut see);
        ExpectedRows { columns, rows }
    }

    /// Of `node`. The estimate of the whole plan does without that of a few: they are estimated alone.
    fn of(&self, node: &Node) -> f64 {
        let known = self.rows.get(&std::ptr::from_ref(node));
        known.copied().unwrap_or_else(|| estimate_rows(node, self.columns))
    }
}

/// What is known of how `node` is going to be run.
fn notes(node: &Node, columns: &Columns) -> Notes {
    match node {
        Node::Scan(scan) => Notes { found: access_path::in_words(scan), ..Notes::default() },
        Node::Join(join) => {
            let search = Bounds::of(join, columns).map(|bounds| SearchText {
                by: bounds.conditions.iter().map(|condition| condition.to_expr()).collect(),
                rest: bounds.rest,
            });
            Notes { search, ..Notes::default() }
        }
        _ => Notes::default(),
    }
}
