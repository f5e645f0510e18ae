//! The cost model of our storage on this machine ([`Engine::on`]), by what `CALIBRATE` has found here, and
//! for a table: its columns, its ghosts, and the bits that its codes have.

use super::words::time;
use entasis_engine::cost::Costs;
use entasis_engine::relation::LayoutChoice;
use entasis_layout::cost::{Engine, Machine, Stored};
use entasis_storage::{Layout, TableSnapshot};

/// The model for a table.
pub(super) fn engine(costs: &Costs, snapshot: &TableSnapshot) -> Engine {
    let options = snapshot.table().options();
    let columns: Vec<usize> = (0..snapshot.schema().len()).collect();
    let table = Stored {
        columns: columns.len(),
        key_bits: snapshot.encoded_bits(&options.layout_key),
        // A range is priced by one column of average width; most read some, and few all.
        read_bits: snapshot.encoded_bits(&columns) / columns.len().max(1) as f64,
        ghosts: if options.layout == Layout::Equi { 0.0 } else { options.ghost },
        row_bytes: snapshot.bytes() as f64 / snapshot.rows().max(1) as f64,
    };
    Engine::on(&Machine { lookup: costs.lookup, byte: costs.byte }, &table)
}

/// What to tell somebody who bounds latencies that no layout has; nothing if they can be kept. Costs are
/// those by which storage bounds partitions, on every machine.
pub(crate) fn sla_note(choice: &LayoutChoice) -> Option<String> {
    let (engine, bounds) = (Engine::default(), choice.sla_bounds());
    let note = |option: &str, bound: Option<f64>, what: &str, least: f64| {
        let bound = bound.filter(|bound| *bound < least)?;
        let (bound, least) = (time(bound), time(least));
        Some(format!(
            "{option} = {bound} cannot be kept: {what} takes {least} in any layout; partitions are as \
             narrow as they can be"
        ))
    };
    note("read_sla", bounds.read, "a point query", engine.point_query(1))
        .or_else(|| note("update_sla", bounds.update, "an insert", engine.insert(1)))
}
