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
//!
//! The lines come from [`crate::plan::display`]; here they are annotated with what is decided above the plan:
//! the rows that are expected ([`crate::estimate`]), where a scan looks ([`crate::reach`]) and by what a join
//! searches ([`crate::bounds`]).

use crate::bounds::Bounds;
use crate::estimate::estimate_rows;
use crate::plan::display::{Names, Notes, SearchText};
use crate::plan::{Columns, Node, Plan};
use crate::reach;
use std::fmt;

/// One line that says what `node` does, without its inputs.
pub(crate) fn node_title(node: &Node, columns: &Columns) -> String {
    Names::of_columns(columns).title(node, &notes(node, columns))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names::of_plan(self);
        let outputs: Vec<String> = self
            .output
            .iter()
            .map(|output| {
                let name = names.name(output.column);
                if name == output.name { name } else { format!("{name} AS {}", output.name) }
            })
            .collect();
        writeln!(f, "Output {}", outputs.join(", "))?;
        write_tree(f, &self.root, &self.columns, &names, 1)
    }
}

fn write_tree(
    f: &mut fmt::Formatter<'_>,
    node: &Node,
    columns: &Columns,
    names: &Names<'_>,
    depth: usize,
) -> fmt::Result {
    let rows = estimate_rows(node, columns).round();
    let title = names.title(node, &notes(node, columns));
    writeln!(f, "{:indent$}{title}  ~{rows} rows", "", indent = depth * 2)?;
    node.children().into_iter().try_for_each(|child| write_tree(f, child, columns, names, depth + 1))
}

/// What is known of how `node` is going to be run.
fn notes(node: &Node, columns: &Columns) -> Notes {
    match node {
        Node::Scan(scan) => Notes { found: reach::in_words(scan), ..Notes::default() },
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
