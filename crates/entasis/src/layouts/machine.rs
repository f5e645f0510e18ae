//! The cost model of our storage on this machine: the constants of [`Engine::default`], measured on one of
//! ours, scaled by what `CALIBRATE` has found here. Look-ups are scaled by look-ups, and all that reads
//! slices by the cost of a byte, and by the bits that the table's codes have.

use super::words::time;
use entasis_engine::cost::Costs;
use entasis_engine::relation::LayoutChoice;
use entasis_layout::cost::Engine;
use entasis_storage::TableSnapshot;

/// The model for a table.
pub(super) fn engine(costs: &Costs, snapshot: &TableSnapshot) -> Engine {
    let (typical, model) = (Costs::default(), Engine::default());
    let (lookups, reads) = (costs.lookup / typical.lookup, costs.byte / typical.byte);
    let key = snapshot.encoded_bits(&snapshot.table().options().layout_key);
    let columns: Vec<usize> = (0..snapshot.schema().len()).collect();
    // A range is priced by one column of average width; most read some, and few all.
    let column = snapshot.encoded_bits(&columns) / columns.len().max(1) as f64;
    let engine = Engine {
        lookup: model.lookup * lookups,
        compare: model.compare * reads,
        scan: model.scan * reads,
        row_bytes: snapshot.bytes() as f64 / snapshot.rows().max(1) as f64,
        ..model
    };
    engine.encoded(key, column)
}

/// What to tell somebody who promises latencies that no layout has; nothing if they can be kept. Costs are
/// those by which storage bounds partitions, on every machine.
pub(crate) fn promise_note(choice: &LayoutChoice) -> Option<String> {
    let (engine, promises) = (Engine::default(), choice.promises());
    let note = |option: &str, promise: Option<f64>, what: &str, least: f64| {
        let promise = promise.filter(|promise| *promise < least)?;
        let (promise, least) = (time(promise), time(least));
        Some(format!(
            "{option} = {promise} cannot be kept: {what} takes {least} in any layout; partitions are as \
             narrow as they can be"
        ))
    };
    note("read_sla", promises.read, "a point query", engine.point_query(1))
        .or_else(|| note("update_sla", promises.update, "an insert", engine.insert(1)))
}
