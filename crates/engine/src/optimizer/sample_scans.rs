//! Rule: the filters of scans that are joined are tested on samples of their tables, so that the order of
//! joins rests on what is there.
//!
//! Nothing is sampled without a join: nothing else that is decided needs to know so well.

use crate::estimate::sample::sample;
use crate::plan::{Columns, Node, Plan};
use entasis_vector::Result;

/// Samples the filtered scans of a plan with joins.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    if has_join(&plan.root) {
        sample_scans(&mut plan.root, &plan.columns);
    }
    Ok(())
}

fn has_join(node: &Node) -> bool {
    matches!(node, Node::Join(_)) || node.children().into_iter().any(has_join)
}

fn sample_scans(node: &mut Node, columns: &Columns) {
    if let Node::Scan(scan) = node {
        scan.sampled = sample(scan, columns);
    }
    node.children_mut().into_iter().for_each(|child| sample_scans(child, columns));
}
