//! The meaning of a recursion that reads columns of rows around: by the time that it is interpreted, their
//! values stand in their place.
//!
//! Its rounds are those of the definition: the step is computed of the rows of the last round, until there
//! are none. A recursion without an end has none here.

use super::{columns_of, distinct, put_values};
use entasis_engine::plan::{Keeps, Node, Recursion, Values};
use entasis_engine::work_table::WorkTable;
use entasis_vector::{ColumnId, Result, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The rows of a recursion.
///
/// # Errors
/// Those of its start and its step.
pub fn rows(recursion: &Recursion) -> Result<Vec<Vec<Value>>> {
    let mut all = Vec::new();
    let mut found = columns_of(&recursion.start.node, &recursion.start.columns)?;
    loop {
        let last = keep(&recursion.keeps, &mut all, found);
        if last.is_empty() {
            return Ok(all);
        }
        let mut step = (*recursion.step.node).clone();
        put_values(&mut step, &HashMap::from([(recursion.around, Value::Null)]));
        put_rows(&mut step, &recursion.work, &last);
        if let Keeps::Keyed { all: Some(table), .. } = &recursion.keeps {
            put_rows(&mut step, table, &all);
        }
        found = columns_of(&step, &recursion.step.columns)?;
    }
}

/// Adds the rows of a round to all rows; returns those of them that are gone on with.
fn keep(keeps: &Keeps, all: &mut Vec<Vec<Value>>, found: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let last = match keeps {
        Keeps::All => found,
        Keeps::New => distinct(found).into_iter().filter(|row| !all.contains(row)).collect(),
        Keeps::Keyed { keys, only_changes, .. } => {
            let key = |row: &Vec<Value>| keys.iter().map(|&at| row[at].clone()).collect::<Vec<Value>>();
            // Of several rows of a key the last counts.
            let is_last = |at: usize| !found[at + 1..].iter().any(|later| key(later) == key(&found[at]));
            let last = (0..found.len()).filter(|&at| is_last(at)).map(|at| found[at].clone());
            let last: Vec<_> = last.filter(|row| !only_changes || !all.contains(row)).collect();
            all.retain(|row| !last.iter().any(|new| key(new) == key(row)));
            last
        }
    };
    all.extend(last.iter().cloned());
    last
}

/// Puts rows in the place of the scans of a work table.
fn put_rows(node: &mut Node, table: &Arc<WorkTable>, rows: &[Vec<Value>]) {
    match node {
        Node::Scan(scan) if std::ptr::addr_eq(Arc::as_ptr(&scan.relation), Arc::as_ptr(table)) => {
            let columns: Vec<ColumnId> = scan.columns.iter().map(|(id, _)| *id).collect();
            let row = |row: &Vec<Value>| scan.columns.iter().map(|(_, at)| row[*at].clone()).collect();
            *node = Node::Values(Values { columns, rows: rows.iter().map(row).collect() });
        }
        node => node.children_mut().into_iter().for_each(|child| put_rows(child, table, rows)),
    }
}
