//! Late materialization: payload that a second pass leaves where the first pass put it.
//!
//! The table of a partition needs only keys; the other columns of a probe row, its *payload*, are needed only
//! if the row comes out. So a second pass may split just the keys, the columns that residual conditions read,
//! and a row id in place of the payload:
//!
//! ```text
//! first pass → a partition's probe rows, put together: [Payload]
//!                 ↓ keys, and the row's id
//! second pass → partitions → probe → rows that come out, with ids ─→ [Fetch]: payload by id → …
//! ```
//! 1. The workers' parts of a partition are put together, without copying, so that a row id takes four bytes.
//! 2. Chunks look like those of the probe side, except that each payload column is the column of ids:
//!    whatever composes or selects rows does so with ids.
//! 3. Before rows leave the join, their payload is gathered, within one partition of the first pass.
//!
//! If some rows of a partition are in a file, the rows are split with their payload. If a partition of the
//! second pass has to go to a file, its rows go there with their ids: the payload stays in memory, reserved,
//! until the whole partition of the first pass has been joined, just as without late materialization.
//!
//! Bandle, Giceva and Neumann, *To Partition, or Not to Partition*, SIGMOD 2021, sections 4.2 and 5.4.3,
//! leave the payload where it was scanned. Here it has been copied once: keeping rows costs memory in any
//! order, and gathering from 1/64 of the rows hits a cache more often (`docs/design/joins-measured.md`).
//!
//! Not here: the build side, whose rows belong to a table.

use super::Partitioning;
use crate::exec::join::ProbeOutput;
use crate::exec::join::buffered_columns::BufferedColumns;
use crate::exec::join::probe::Probe;
use crate::exec::join::strategy::partitions::{leaves_payload, width};
use crate::exec::materialized::{Materialized, column_of};
use crate::exec::operator::{Flow, Push};
use crate::memory::Reservation;
use crate::settings::JoinLate;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, DataType, PhysicalType, Result, Selection, Vector};

/// Which of the kept columns of probe rows are payload.
pub(crate) struct LatePayload {
    /// For each kept column, its index in a row without payload.
    pub from: Vec<usize>,
    /// The columns of a row without payload: the other kept columns, and the id.
    pub columns: Vec<ColumnMeta>,
    /// Their positions in chunks of the probe side.
    pub places: Vec<usize>,
    /// Bytes of a row's payload.
    pub bytes: usize,
    /// Pairs must satisfy residual conditions.
    has_conditions: bool,
    /// The kept columns that are payload, and their positions in the output of the probe.
    payload: Vec<usize>,
    out: Vec<usize>,
}

impl LatePayload {
    /// The payload among the kept columns of a probe side with `columns`: those for which `is_payload` is
    /// true. `None` if an id would not be shorter.
    pub(crate) fn new(
        columns: &[ColumnMeta],
        kept: &BufferedColumns,
        probe: &Probe,
        is_payload: impl Fn(&ColumnMeta) -> bool,
    ) -> Option<LatePayload> {
        let mut apart = LatePayload {
            from: Vec::new(),
            columns: Vec::new(),
            places: Vec::new(),
            bytes: 0,
            has_conditions: probe.residual.is_some(),
            payload: Vec::new(),
            out: Vec::new(),
        };
        let others = kept.places.iter().filter(|&&place| !is_payload(&columns[place])).count();
        for (i, &place) in kept.places.iter().enumerate() {
            if !is_payload(&columns[place]) {
                apart.from.push(apart.places.len());
                apart.columns.push(columns[place].clone());
                apart.places.push(place);
                continue;
            }
            apart.from.push(others);
            apart.payload.push(i);
            apart.bytes += width(columns[place].physical);
            apart.out.push(match probe.shape.gives_pairs() {
                true => probe.probe_columns.iter().position(|&column| column == place)?,
                false => place,
            });
        }
        let first = *apart.payload.first()?;
        if apart.bytes <= size_of::<u32>() {
            return None;
        }
        apart.columns.push(column_of(DataType::UInt32));
        apart.places.push(kept.places[first]);
        Some(apart)
    }
}

impl Partitioning {
    /// The payload, if it is left behind when partitions are split for a cache.
    pub(super) fn apart(&self) -> Option<&LatePayload> {
        let apart = self.probe().apart.as_ref()?;
        let stays = match self.context.settings.join_late {
            JoinLate::Auto => self.comes_out.get().is_some_and(|&share| leaves_payload(apart.bytes, share)),
            JoinLate::On => true,
            JoinLate::Off => false,
        };
        stays.then_some(apart)
    }

    /// The expected number of output rows per kept probe row, with this many build rows. `is_filtered`:
    /// hardly any row without a match is kept.
    pub(super) fn share_that_comes_out(&self, build_rows: usize, is_filtered: bool) -> f64 {
        let expected = self.spec.expected.given(build_rows);
        let matching = if is_filtered { 1.0 } else { expected.matching };
        let has_conditions = self.probe().apart.as_ref().is_none_or(|apart| apart.has_conditions);
        match self.spec.shape.probe {
            // Payload is gathered for each pair.
            ProbeOutput::Pairs => matching * expected.per_key.max(1.0),
            ProbeOutput::Matched => matching,
            // Residual conditions may rule out any number of matches.
            ProbeOutput::Unmatched | ProbeOutput::SurelyUnmatched if !has_conditions => 1.0 - matching,
            _ => 1.0,
        }
    }
}

/// The probe rows of a partition as the first pass left them.
pub(crate) struct Payload {
    /// The rows of all workers.
    pub rows: Materialized,
    /// Their reservation.
    pub _memory: Reservation,
}

/// Reads all rows of a [`Payload`], as chunks of the probe side with ids in place of the payload.
pub(crate) struct IdReader<'a> {
    rows: &'a Materialized,
    apart: &'a LatePayload,
    kept: &'a BufferedColumns,
    chunk_rows: usize,
    /// The current segment, and how many of its rows have been read.
    at: (usize, usize),
    ids: Vec<u32>,
    /// By column of a row without payload.
    vectors: Vec<Vector>,
}

impl<'a> IdReader<'a> {
    /// Starts at the first row; at most `chunk_rows` rows per chunk.
    pub(crate) fn new(
        payload: &'a Payload,
        apart: &'a LatePayload,
        kept: &'a BufferedColumns,
        chunk_rows: usize,
    ) -> IdReader<'a> {
        let vectors = apart.columns.iter().map(|meta| Vector::new(meta.physical)).collect();
        IdReader { rows: &payload.rows, apart, kept, chunk_rows, at: (0, 0), ids: Vec::new(), vectors }
    }

    /// Fills `chunk` with the next rows; false at the end.
    pub(crate) fn next(&mut self, chunk: &mut Chunk) -> bool {
        // Releases the vectors, so that they can be overwritten.
        chunk.reset(0);
        let (mut segment, mut first) = self.at;
        while segment < self.rows.segments() && first == self.rows.segment_rows(segment) {
            (segment, first) = (segment + 1, 0);
        }
        if segment == self.rows.segments() {
            return false;
        }
        let count = self.chunk_rows.min(self.rows.segment_rows(segment) - first);
        self.at = (segment, first + count);
        let start = (segment << 16 | first) as u32;
        self.ids.clear();
        self.ids.extend(start..start + count as u32);
        for (column, &from) in self.apart.from.iter().enumerate() {
            if from + 1 < self.vectors.len() {
                self.rows.read(column, segment, first, count, &mut self.vectors[from]);
            }
        }
        let ids = self.vectors.last_mut().expect("rows have ids");
        ids.begin_flat::<u32>(count)[..count].copy_from_slice(&self.ids);
        self.kept.fill(chunk, count, self.apart.from.iter().map(|&from| &self.vectors[from]));
        true
    }
}

/// Gathers the payload of rows that leave the join with ids.
pub(crate) struct Fetch<'a> {
    from: Option<(&'a Payload, &'a LatePayload)>,
    ids: Vector,
    /// By column of the payload.
    vectors: Vec<Vector>,
    output: Chunk,
    next: &'a mut dyn Push,
}

impl<'a> Fetch<'a> {
    /// Pushes to `next`. If `from` is `None`, rows have their payload already.
    pub(crate) fn new(from: Option<(&'a Payload, &'a LatePayload)>, next: &'a mut dyn Push) -> Fetch<'a> {
        let vector =
            |(payload, column): (&Payload, usize)| Vector::new(payload.rows.columns()[column].physical);
        let vectors =
            from.iter().flat_map(|(payload, apart)| apart.payload.iter().map(|&c| vector((payload, c))));
        let vectors = vectors.collect();
        Fetch { from, ids: Vector::new(PhysicalType::U32), vectors, output: Chunk::new(), next }
    }
}

impl Push for Fetch<'_> {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        let Some((payload, apart)) = self.from else { return self.next.push(chunk) };
        chunk.flatten_column(apart.out[0], &mut self.ids);
        payload.rows.gather_all(&apart.payload, &self.ids.values::<u32>()[..chunk.len()], &mut self.vectors);
        let output = &mut self.output;
        output.reset(chunk.len());
        chunk.groups().iter().for_each(|selection| {
            output.push_group(selection.clone());
        });
        let gathered = output.push_group(Selection::ALL);
        for (i, column) in chunk.columns().iter().enumerate() {
            match apart.out.iter().position(|&out| out == i) {
                Some(own) => output.push_column(self.vectors[own].clone(), gathered),
                None => output.push_column(column.vector.clone(), column.group),
            }
        }
        let flow = self.next.push(output);
        self.output.reset(0);
        flow
    }

    fn is_over(&self) -> bool {
        self.next.is_over()
    }
}
