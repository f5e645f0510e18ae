//! What an operation is expected to cost on a planned column by the paper's model, kind by kind.
//!
//! Of ranges the model knows the blocks of keys only; but a count reads no more than the first and the last
//! partition, and a sum other columns as well. So there is no forecast of them.

use super::Shape;
use super::plan::{self, Plan};
use crate::operations::Step;
use entasis_layout::cost::{Access, Ghosted, Model, Paper};
use entasis_layout::frequency::Frequency;
use entasis_layout::ghosts::budget;
use entasis_layout::outlook::{OperationKind, by};

/// Mean nanoseconds by query, as in [`Step::QUERIES`]; `None` where the model does not say.
pub type Forecast = [Option<f64>; Step::QUERIES.len()];

/// The query of a kind of operation, if there is a forecast.
pub fn query_of(operation: OperationKind) -> Option<usize> {
    match operation {
        OperationKind::PointQuery => Some(0),
        OperationKind::Range => None,
        OperationKind::Insert => Some(3),
        OperationKind::Delete => Some(4),
        OperationKind::Update => Some(5),
    }
}

/// The forecast for a table, of which `frequency` are the histograms.
pub fn forecast(shape: &Shape, plans: &[Option<Plan>], frequency: &Frequency) -> Forecast {
    let mut sums = [(0.0, 0.0); Step::QUERIES.len()];
    let mut start = 0;
    for plan in plans.iter().flatten() {
        let blocks = start..start + plan.partitioning.blocks();
        start = blocks.end;
        let own = plan::part(frequency, blocks);
        let rows = own.blocks() * shape.block;
        let room = room(plan, &own, budget(rows, shape.ghosts), shape.access);
        let each = match plan.ghosts {
            Some(_) => by(|f| Ghosted { access: shape.access }.in_place(f), &own, &plan.partitioning),
            None => by(|f| Paper { access: shape.access }.terms(f), &own, &plan.partitioning),
        };
        for (operation, expected) in OperationKind::ALL.into_iter().zip(each) {
            let Some(query) = query_of(operation) else { continue };
            let room =
                if matches!(operation, OperationKind::Insert | OperationKind::Update) { room } else { 0.0 };
            sums[query].0 += expected.count * (expected.each + room);
            sums[query].1 += expected.count;
        }
    }
    sums.map(|(sum, count)| (count > 0.0).then(|| sum / count))
}

/// What a row that comes pays for room, on average: the flow, and ripples where ghosts are short. Nothing in
/// a dense column, where ripples are the paper's.
fn room(plan: &Plan, frequency: &Frequency, budget: u64, access: Access) -> f64 {
    let (Some(ghosts), Some(period)) = (&plan.ghosts, plan::period(frequency, budget)) else { return 0.0 };
    let flow = Ghosted::flow(&period);
    let crossed: f64 = plan.partitioning.ends().iter().map(|&end| flow[end]).sum();
    let (paid, _) = plan::shortage(&period, &plan.partitioning, ghosts, access);
    ((access.random_read + access.random_write) * crossed + paid) / budget as f64
}
