//! Work that the profile shows as one operator: what it is called, what is expected of it, and who owns the
//! memory that its parts reserve.

use crate::estimate::estimate_rows;
use crate::explain::node_title;
use crate::plan::{Columns, Node, Scan};
use entasis_vector::ColumnId;

/// What a [`PlannedNode`](super::physical_plan::PlannedNode) does.
#[derive(Debug)]
pub(crate) enum PlannedWork<'p> {
    /// That of a node of the logical plan.
    Node(&'p Node),
    /// A scan of some columns only, which decide what rows are fetched later.
    FirstScan {
        /// The scan of all.
        scan: &'p Scan,
        /// These columns.
        columns: Vec<(ColumnId, usize)>,
    },
    /// The columns that are fetched later.
    Fetch {
        /// The scan of all.
        scan: &'p Scan,
        /// These columns.
        late: Vec<ColumnId>,
        /// The most rows.
        rows: f64,
    },
    /// The result is received.
    Result,
}

impl PlannedWork<'_> {
    /// What `EXPLAIN ANALYZE` calls it.
    pub(super) fn title(&self, columns: &Columns) -> String {
        match self {
            PlannedWork::Node(node) => node_title(node, columns),
            PlannedWork::FirstScan { .. } => {
                self.first_scan().map_or_else(String::new, |node| node_title(&node, columns))
            }
            PlannedWork::Fetch { scan, late, .. } => {
                let late: Vec<&str> = late.iter().map(|id| columns.get(*id).name.as_str()).collect();
                format!("Fetch {} [{}]", scan.relation.name(), late.join(", "))
            }
            PlannedWork::Result => "Result".into(),
        }
    }

    /// The expected number of rows.
    pub(super) fn expected(&self, columns: &Columns) -> f64 {
        match self {
            PlannedWork::Node(node) => estimate_rows(node, columns),
            PlannedWork::FirstScan { .. } => {
                self.first_scan().map_or(0.0, |node| estimate_rows(&node, columns))
            }
            PlannedWork::Fetch { rows, .. } => *rows,
            PlannedWork::Result => 0.0,
        }
    }

    /// Whose memory it is that its parts reserve, as errors say it.
    pub(super) fn owner(&self) -> &'static str {
        match self {
            PlannedWork::Node(Node::Scan(_)) | PlannedWork::FirstScan { .. } => "a scan",
            PlannedWork::Node(Node::Values(_)) => "VALUES",
            PlannedWork::Node(Node::Filter(_) | Node::Project(_) | Node::Limit(_)) => "expressions",
            PlannedWork::Node(Node::Unnest(_)) => "unnest",
            PlannedWork::Node(Node::Join(_) | Node::Dependent(_)) => "a join",
            PlannedWork::Node(Node::Aggregate(_)) => "an aggregation",
            PlannedWork::Node(Node::Distinct(_)) => "DISTINCT",
            PlannedWork::Node(Node::Window(_)) => "a window",
            PlannedWork::Node(Node::Sort(_)) | PlannedWork::Fetch { .. } => "a sort",
            PlannedWork::Node(Node::SetOperation(_)) => "a set operation",
            PlannedWork::Node(Node::Recursion(_)) => "a recursion",
            PlannedWork::Result => "a result",
        }
    }

    /// The node of a scan of some columns only.
    fn first_scan(&self) -> Option<Node> {
        let PlannedWork::FirstScan { scan, columns } = self else { return None };
        Some(Node::Scan(Scan { columns: columns.clone(), ..(*scan).clone() }))
    }
}
