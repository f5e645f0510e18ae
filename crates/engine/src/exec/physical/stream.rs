//! Streams: what a node of the plan becomes, until a sink ends it.

use crate::exec::align::Align;
use crate::exec::join::swap::Swap;
use crate::exec::operator::OperatorFactory;
use crate::exec::pipeline::Part;
use crate::exec::profile::Recorder;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, Error, Result};
use std::sync::Arc;

/// Rows on their way to a sink.
#[derive(Clone)]
pub(super) struct Stream {
    pub(super) parts: Vec<Part>,
    pub(super) columns: Vec<ColumnMeta>,
    pub(super) recorder: Arc<Recorder>,
}

impl Stream {
    /// The stream after one more operator, which reports to `recorder`; the stream's recorder becomes a child
    /// of `recorder`.
    pub(super) fn then(self, operator: Arc<dyn OperatorFactory>, recorder: &Arc<Recorder>) -> Stream {
        if !recorder.has_children() {
            recorder.add_child(&self.recorder);
        }
        Stream { recorder: recorder.clone(), ..self.extend(operator, recorder) }
    }

    /// The stream for a consumer that takes stored rows.
    pub(super) fn leaving_stored(mut self) -> Stream {
        for part in self.parts.iter_mut().filter(|part| part.operators.is_empty()) {
            part.source = part.source.leaving_stored().unwrap_or_else(|| part.source.clone());
        }
        self
    }

    /// The stream, which runs only if the sides of that join are swapped, or only if they are not.
    pub(super) fn only_if(mut self, swap: &Arc<Swap>, is_swapped: bool) -> Stream {
        self.parts.iter_mut().for_each(|part| part.only_if.push((swap.switch().clone(), is_swapped)));
        self
    }

    /// The stream after an operator that dropped an unknown share of its rows.
    pub(super) fn sparse(mut self) -> Stream {
        self.parts.iter_mut().for_each(|part| part.sparse = true);
        self
    }

    /// The stream after one more operator of a node whose inputs are known.
    pub(super) fn extend(mut self, operator: Arc<dyn OperatorFactory>, recorder: &Arc<Recorder>) -> Stream {
        for part in &mut self.parts {
            part.operators.push((operator.clone(), recorder.clone()));
        }
        self
    }
}

/// The stream with exactly the `wanted` columns, in their order and physical types.
pub(super) fn align(stream: Stream, wanted: &[ColumnMeta], recorder: &Arc<Recorder>) -> Result<Stream> {
    let positions = wanted.iter().map(|meta| find(&stream.columns, meta.id)).collect::<Result<Vec<_>>>()?;
    let in_place =
        positions.len() == stream.columns.len() && positions.iter().enumerate().all(|(i, &p)| i == p);
    let as_is = positions.iter().zip(wanted).all(|(&p, meta)| stream.columns[p].physical == meta.physical);
    if in_place && as_is {
        return Ok(stream);
    }
    let operator = Align::new(&stream.columns, &positions, wanted)?;
    let columns = positions.iter().zip(wanted);
    let columns = columns
        .map(|(&p, meta)| ColumnMeta { physical: meta.physical, ..stream.columns[p].clone() })
        .collect();
    Ok(Stream { columns, ..stream.extend(Arc::new(operator), recorder) })
}

/// The place of a column.
pub(super) fn find(metas: &[ColumnMeta], id: ColumnId) -> Result<usize> {
    let place = metas.iter().position(|meta| meta.id == id);
    place.ok_or_else(|| Error::internal(format!("column {id} is read and nothing below gives it")))
}
