//! The probe side of a join: a streaming operator that finds the pairs of matching rows for each chunk.
//!
//! For one chunk: keys → first candidates → (compare keys → residual conditions → account for the matches →
//! next candidates) until there are none → rows without a match. Pairs wait in `out` until they fill a chunk
//! or the input chunk ends, since they refer to it.

use super::dictionary_probe::{DictionaryProbe, EntryCounts};
use super::table::{Cursor, Pairs, ProbeKeys};
use super::unmatched::gather;
use super::{Built, BuiltSlot, Computed, ComputedWorker, ProbeOutput, Shape};
use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use crate::plan::second_row;
use entasis_vector::expr::{Machine, Program};
use entasis_vector::simd::widest;
use entasis_vector::{Buffer, CHUNK_ROWS, Chunk, Error, PhysicalType, Result, Selection, Vector};
use std::sync::Arc;

/// The probe side of a join: the operator.
#[derive(Clone)]
pub(crate) struct Probe {
    /// What the join outputs.
    pub shape: Shape,
    /// The keys over the probe side's columns.
    pub keys: Computed,
    /// For each key, whether NULL equals NULL.
    pub null_equals_null: Vec<bool>,
    /// The bounds of rows, if the table is [ordered](super::table::ordered).
    pub bounds: Option<Computed>,
    /// Conditions on pairs.
    pub residual: Option<Residual>,
    /// Columns of the probe side that are output for pairs.
    pub probe_columns: Vec<usize>,
    /// Columns of the kept rows that are output for pairs, after those.
    pub build_columns: Vec<usize>,
    /// Where the build side is.
    pub built: BuiltSlot,
    /// What was looked up by the entries of dictionaries.
    pub entry_counts: Arc<EntryCounts>,
    /// Settings.
    pub context: QueryContext,
}

/// Residual conditions on pairs, over some columns of both sides.
#[derive(Debug, Clone)]
pub(crate) struct Residual {
    /// The conditions over the columns below, those of the probe side first.
    pub program: Arc<Program>,
    /// Columns of the probe side.
    pub probe_columns: Vec<usize>,
    /// Columns of the kept rows.
    pub build_columns: Vec<usize>,
}

impl OperatorFactory for Probe {
    fn programs(&self) -> Vec<&Program> {
        let residual = self.residual.as_ref().map(|residual| &*residual.program);
        let bounds = self.bounds.as_ref().and_then(Computed::program);
        self.keys.program().into_iter().chain(bounds).chain(residual).collect()
    }

    fn worker(&self) -> Result<Box<dyn Operator>> {
        Ok(Box::new(self.block_worker()?))
    }

    fn end(&self) {
        self.entry_counts.note();
    }
}

impl Probe {
    /// One worker's instance, which also processes a build side block by block.
    pub(crate) fn block_worker(&self) -> Result<Worker> {
        let built =
            self.built.get().ok_or_else(|| Error::internal("a join is probed before it was built"))?;
        let vectors = |columns: &[usize]| -> Vec<Vector> {
            columns.iter().map(|&c| Vector::new(column_type(&built.rows, c))).collect()
        };
        let residual = self.residual.as_ref().map(|residual| ResidualWorker {
            machine: Machine::new(residual.program.clone()),
            composer: Composer::new(&residual.probe_columns, &residual.build_columns, &vectors),
        });
        let by_entry = self.bounds.is_none() && self.null_equals_null.len() == 1;
        Ok(Worker {
            keys: self.keys.worker(),
            bounds: self.bounds.as_ref().map(Computed::worker),
            probe_keys: ProbeKeys::new(self.null_equals_null.len(), self.context.settings.hash_collisions),
            dictionaries: by_entry
                .then(|| DictionaryProbe::new(&self.entry_counts, self.context.settings.hash_collisions)),
            composer: Composer::new(&self.probe_columns, &self.build_columns, &vectors),
            residual,
            cursor: Cursor::default(),
            candidates: Pairs::default(),
            hits: Pairs::default(),
            out: Pairs::default(),
            state: Vec::new(),
            picks: Vec::new(),
            untested: Pairs::default(),
            spares: Vec::new(),
            mark: Vector::new(PhysicalType::Bool),
            join: self.clone(),
        })
    }
}

fn column_type(rows: &Materialized, column: usize) -> PhysicalType {
    rows.columns()[column].physical
}

/// States of a probe row.
const UNMATCHED: u8 = 0;
const MATCHED: u8 = 1;
/// The row has no match, but a comparison with a NULL.
const UNKNOWN: u8 = 2;

/// See [`Probe::block_worker`].
pub(crate) struct Worker {
    join: Probe,
    keys: ComputedWorker,
    bounds: Option<ComputedWorker>,
    probe_keys: ProbeKeys,
    /// Matches of the entries of dictionaries, if keys may be looked up by entry.
    dictionaries: Option<DictionaryProbe>,
    residual: Option<ResidualWorker>,
    composer: Composer,
    cursor: Cursor,
    /// The current candidates.
    candidates: Pairs,
    /// The candidates that match.
    hits: Pairs,
    /// Pairs that have not been pushed yet.
    out: Pairs,
    /// The state of each probe row of the chunk.
    state: Vec<u8>,
    picks: Vec<u16>,
    /// Hits of short steps, which are tested by the residual conditions together.
    untested: Pairs,
    spares: Vec<Arc<Buffer>>,
    mark: Vector,
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let slot = self.join.built.clone();
        let built = slot.get().ok_or_else(|| Error::internal("a join is probed before it was built"))?;
        if !built.any && self.join.shape.drops_unmatched_probe_rows() {
            return Ok(Flow::Stop);
        }
        self.state.clear();
        self.state.resize(chunk.len(), UNMATCHED);
        self.probe(built, chunk, true, next)
    }
}

impl Worker {
    /// Probes one of several blocks of build rows. `states` has what earlier blocks found for these rows,
    /// zeros before the first block, and is updated. Rows whose output depends on their state are pushed with
    /// the last block.
    pub(crate) fn push_block(
        &mut self,
        chunk: &mut Chunk,
        states: &mut [u8],
        is_last: bool,
        next: &mut dyn Push,
    ) -> Result<Flow> {
        let slot = self.join.built.clone();
        let built = slot.get().ok_or_else(|| Error::internal("a join is probed before it was built"))?;
        self.state.clear();
        self.state.extend_from_slice(states);
        let flow = self.probe(built, chunk, is_last, next)?;
        states.copy_from_slice(&self.state);
        Ok(flow)
    }

    fn probe(
        &mut self,
        built: &Built,
        chunk: &mut Chunk,
        is_last: bool,
        next: &mut dyn Push,
    ) -> Result<Flow> {
        let flow = self.match_rows(built, chunk, is_last, next);
        self.probe_keys.release();
        self.keys.release();
        self.bounds.iter_mut().for_each(ComputedWorker::release);
        if flow? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        if is_last { self.finish_rows(chunk, next) } else { Ok(Flow::Continue) }
    }

    /// Finds all matches of the chunk's rows, and pushes pairs or sets the rows' state in `self.state`.
    fn match_rows(
        &mut self,
        built: &Built,
        chunk: &Chunk,
        is_last: bool,
        next: &mut dyn Push,
    ) -> Result<Flow> {
        let (keys, positions) = self.keys.compute(chunk)?;
        self.probe_keys.begin(keys, positions, &self.join.null_equals_null);
        if let Some(bounds) = &mut self.bounds {
            let (bounds, positions) = bounds.compute(chunk)?;
            self.probe_keys.take_bounds(bounds, positions);
        }
        let by_entry = self.first_by_entry(built)?;
        if !by_entry {
            built.table.first(&mut self.probe_keys, &mut self.candidates, &mut self.cursor);
        }
        let mut unmatched = self.state.iter().filter(|&&state| state != MATCHED).count();
        while self.candidates.len() > 0 {
            self.hits.clear();
            self.hits.extend(&self.candidates);
            if !by_entry && !built.table.is_exact(&self.cursor) {
                self.compare(built);
            }
            self.collect();
            if self.take_hits(built, chunk, &mut unmatched)? == Flow::Stop {
                self.untested.clear();
                break;
            }
            // Without logical compaction, each step along the chains yields a chunk.
            let at_once = !self.join.context.settings.compaction.is_logical();
            if self.join.shape.gives_pairs()
                && (at_once || self.out.len() >= self.join.context.settings.chunk_rows)
                && self.give(built, chunk, next, at_once)? == Flow::Stop
            {
                return Ok(Flow::Stop);
            }
            match &mut self.dictionaries {
                Some(dictionaries) if by_entry => dictionaries.next(&mut self.candidates),
                _ => built.table.next(&mut self.probe_keys, &mut self.candidates, &mut self.cursor),
            }
            // Long chains and large cross products must be cancellable within a chunk.
            self.join.context.check()?;
        }
        std::mem::swap(&mut self.hits, &mut self.untested);
        self.untested.clear();
        self.take_hits(built, chunk, &mut unmatched)?;
        match self.join.shape.probe {
            ProbeOutput::PairsOrNulls | ProbeOutput::OneOrNulls if unmatched > 0 && is_last => {
                self.out.add_where(&self.state, |state| *state == UNMATCHED);
            }
            ProbeOutput::SurelyUnmatched | ProbeOutput::Mark { null_aware: true } if unmatched > 0 => {
                self.find_unknown(built, chunk)?;
            }
            _ => {}
        }
        if self.join.shape.gives_pairs() { self.give(built, chunk, next, true) } else { Ok(Flow::Continue) }
    }

    /// Finds the first match of each row by the entries of the keys' dictionary. False if rows are to be
    /// looked up one by one.
    fn first_by_entry(&mut self, built: &Built) -> Result<bool> {
        let Some(dictionaries) = &mut self.dictionaries else { return Ok(false) };
        let (join, pairs) = (&self.join, &mut self.candidates);
        dictionaries.first(built, &self.probe_keys, join.null_equals_null[0], &join.context, pairs)
    }

    /// Keeps the hits whose keys are equal.
    fn compare(&mut self, built: &Built) {
        for (i, &null_equals_null) in self.join.null_equals_null.iter().enumerate() {
            let (vector, positions) = self.probe_keys.column(i);
            let Pairs { rows, ids } = &mut self.hits;
            built.rows.retain_equal(i, vector, positions, null_equals_null, rows, ids);
        }
    }

    /// Puts hits of short steps aside until there are enough of them for the residual conditions, which cost
    /// about the same for few pairs as for many. A part of logical compaction.
    fn collect(&mut self) {
        let settings = &self.join.context.settings;
        let enough = settings.chunk_rows / 2;
        let together = self.untested.len() + self.hits.len();
        if self.residual.is_none()
            || !settings.compaction.is_logical()
            || self.hits.len() >= enough
            || together > settings.chunk_rows
        {
            return;
        }
        self.untested.extend(&self.hits);
        self.hits.clear();
        if together >= enough {
            std::mem::swap(&mut self.hits, &mut self.untested);
        }
    }

    /// Tests the hits by the residual conditions, and accounts for those that are left. `Stop` if nothing
    /// that follows can change the output.
    fn take_hits(&mut self, built: &Built, chunk: &Chunk, unmatched: &mut usize) -> Result<Flow> {
        if let Some(residual) = &mut self.residual {
            residual.retain(built, chunk, &mut self.hits)?;
        }
        if !built.matched.is_empty() {
            built.mark(&self.hits.ids);
        }
        self.account(unmatched)
    }

    /// Accounts for the hits. `Stop` if nothing that follows can change the output.
    fn account(&mut self, unmatched: &mut usize) -> Result<Flow> {
        let shape = self.join.shape;
        if shape.probe == ProbeOutput::Pairs {
            self.out.extend(&self.hits);
            return Ok(Flow::Continue);
        }
        if shape.probe == ProbeOutput::Nothing {
            return Ok(Flow::Continue);
        }
        let mut new = 0;
        for &row in &self.hits.rows {
            let state = &mut self.state[row as usize];
            if *state == MATCHED && shape.probe == ProbeOutput::OneOrNulls {
                return Err(second_row());
            }
            new += usize::from(*state != MATCHED);
            *state = MATCHED;
        }
        *unmatched -= new;
        if shape.gives_pairs() {
            self.out.extend(&self.hits);
            return Ok(Flow::Continue);
        }
        // One match is enough: rows with a match have no further candidates.
        let mut kept = 0;
        for i in 0..self.candidates.len() {
            let row = self.candidates.rows[i];
            self.candidates.rows[kept] = row;
            self.candidates.ids[kept] = self.candidates.ids[i];
            kept += usize::from(self.state[row as usize] != MATCHED);
        }
        self.candidates.truncate(kept);
        Ok(if *unmatched == 0 { Flow::Stop } else { Flow::Continue })
    }

    /// Sets the state UNKNOWN for rows that have no match but might have one if a NULL were known. For a row
    /// with a NULL key, candidates are all build rows; for other rows, the build rows with a NULL key.
    fn find_unknown(&mut self, built: &Built, chunk: &Chunk) -> Result<()> {
        let simple = self.residual.is_none() && self.join.null_equals_null.len() == 1;
        let mut all_ids: Option<Vec<u32>> = None;
        for row in 0..chunk.len() {
            if self.state[row] != UNMATCHED {
                continue;
            }
            let has_null = self.probe_keys.has_null(row, &self.join.null_equals_null);
            let unknown = if simple {
                if has_null { built.any } else { built.has_null_keys }
            } else {
                let ids = if has_null {
                    all_ids.get_or_insert_with(|| built.rows.ids().collect())
                } else {
                    &built.null_keys
                };
                maybe_matches(
                    &self.probe_keys,
                    &self.join,
                    &mut self.residual,
                    built,
                    chunk,
                    row,
                    ids,
                    &mut self.hits,
                )?
            };
            if unknown {
                self.state[row] = UNKNOWN;
            }
        }
        Ok(())
    }

    /// Pushes pairs as chunks: full ones, and if `all` also the last one.
    fn give(&mut self, built: &Built, chunk: &Chunk, next: &mut dyn Push, all: bool) -> Result<Flow> {
        let chunk_rows = self.join.context.settings.chunk_rows;
        let mut from = 0;
        while self.out.len() - from >= chunk_rows || (all && from < self.out.len()) {
            let to = self.out.len().min(from + chunk_rows);
            let output =
                self.composer.compose(built, chunk, &self.out.rows[from..to], &self.out.ids[from..to]);
            let flow = next.push(output);
            output.reset(0);
            if flow? == Flow::Stop {
                self.out.clear();
                return Ok(Flow::Stop);
            }
            from = to;
        }
        self.out.rows.drain(..from);
        self.out.ids.drain(..from);
        Ok(Flow::Continue)
    }

    /// Pushes the rows whose state says so.
    fn finish_rows(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let wanted = match self.join.shape.probe {
            ProbeOutput::Matched => MATCHED,
            ProbeOutput::Unmatched | ProbeOutput::SurelyUnmatched => UNMATCHED,
            ProbeOutput::Mark { .. } => {
                self.write_marks();
                let group = chunk.push_group(Selection::ALL);
                chunk.push_column(self.mark.clone(), group);
                let flow = next.push(chunk);
                chunk.reset(0);
                return flow;
            }
            _ => return Ok(Flow::Continue),
        };
        self.picks.clear();
        self.picks.resize(self.state.len(), 0);
        let mut kept = 0;
        for (row, &state) in self.state.iter().enumerate() {
            self.picks[kept] = row as u16;
            kept += usize::from(state == wanted);
        }
        self.picks.truncate(kept);
        if kept == 0 {
            return Ok(Flow::Continue);
        }
        if kept < chunk.len() {
            chunk.select(&self.picks, &mut self.spares);
        }
        next.push(chunk)
    }

    fn write_marks(&mut self) {
        let marks = self.mark.begin_flat::<u8>(CHUNK_ROWS);
        for (mark, &state) in marks.iter_mut().zip(&self.state) {
            *mark = u8::from(state == MATCHED);
        }
        for (row, _) in self.state.iter().enumerate().filter(|&(_, &state)| state == UNKNOWN) {
            self.mark.set_null(row);
        }
    }
}

/// True if a pair of `row` and one of `ids` satisfies the residual conditions and in each key has equal
/// values or a NULL.
#[allow(clippy::too_many_arguments)]
fn maybe_matches(
    keys: &ProbeKeys,
    join: &Probe,
    residual: &mut Option<ResidualWorker>,
    built: &Built,
    chunk: &Chunk,
    row: usize,
    ids: &[u32],
    pairs: &mut Pairs,
) -> Result<bool> {
    let count = join.null_equals_null.len();
    let value = |i: usize| {
        let (vector, positions) = keys.column(i);
        let position = positions.map_or(row, |at| at[row] as usize);
        vector.value(position, built.rows.columns()[i].ty)
    };
    let values: Vec<_> = (0..count).map(value).collect();
    let may_equal = |id: u32| {
        values.iter().enumerate().all(|(i, value)| {
            let other = built.rows.value(id, i);
            *value == other || (!join.null_equals_null[i] && (value.is_null() || other.is_null()))
        })
    };
    for ids in ids.chunks(CHUNK_ROWS) {
        pairs.clear();
        // With one key, each of these pairs has a NULL on one side.
        pairs.ids.extend(ids.iter().filter(|&&id| count == 1 || may_equal(id)));
        pairs.rows.resize(pairs.ids.len(), row as u16);
        if let Some(residual) = residual {
            residual.retain(built, chunk, pairs)?;
        }
        if pairs.len() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

struct ResidualWorker {
    machine: Machine,
    composer: Composer,
}

impl ResidualWorker {
    /// Keeps the pairs for which the conditions are true.
    fn retain(&mut self, built: &Built, chunk: &Chunk, pairs: &mut Pairs) -> Result<()> {
        if pairs.len() == 0 {
            return Ok(());
        }
        let composed = self.composer.compose(built, chunk, &pairs.rows, &pairs.ids);
        let kept = self.machine.select(composed);
        let kept = kept.map(|kept| pairs.keep(kept));
        composed.reset(0);
        kept
    }
}

/// True if `rows` are 0, 1, 2, ….
///
/// PERF: compares all of them in vector code, unless the last one differs; a loop that stops at the first
/// difference takes as long as the lookup in a small bitmap.
fn are_in_order(rows: &[u16]) -> bool {
    let ends_elsewhere = rows.last().is_some_and(|&last| last as usize != rows.len() - 1);
    !ends_elsewhere
        && widest(|| rows.iter().zip(0u16..).fold(0, |differing, (&row, i)| differing | (row ^ i)) == 0)
}

/// Makes chunks of pairs: the probe chunk's columns under a composed selection, and gathered columns of the
/// kept rows.
struct Composer {
    probe_columns: Vec<usize>,
    build_columns: Vec<usize>,
    vectors: Vec<Vector>,
    spares: Vec<Arc<Buffer>>,
    /// For each column group of the probe chunk, the group of the output.
    groups: Vec<Option<usize>>,
    output: Chunk,
}

impl Composer {
    fn new(
        probe_columns: &[usize],
        build_columns: &[usize],
        vectors: &impl Fn(&[usize]) -> Vec<Vector>,
    ) -> Composer {
        Composer {
            probe_columns: probe_columns.to_vec(),
            build_columns: build_columns.to_vec(),
            vectors: vectors(build_columns),
            spares: Vec::new(),
            groups: Vec::new(),
            output: Chunk::new(),
        }
    }

    fn compose(&mut self, built: &Built, chunk: &Chunk, rows: &[u16], ids: &[u32]) -> &mut Chunk {
        let output = &mut self.output;
        output.reset(chunk.len());
        self.groups.clear();
        self.groups.resize(chunk.groups().len(), None);
        for &i in &self.probe_columns {
            let column = chunk.column(i);
            let slot = &mut self.groups[column.group];
            let group = *slot.get_or_insert_with(|| output.push_group(chunk.groups()[column.group].clone()));
            output.push_column(column.vector.clone(), group);
        }
        // Each row has exactly one match, as with a foreign key: no selection is composed.
        if !(rows.len() == chunk.len() && are_in_order(rows)) {
            output.select(rows, &mut self.spares);
        }
        let group = output.push_group(Selection::ALL);
        let one_partner = ids.len() > 1 && ids[0] != Materialized::NO_ROW && !self.build_columns.is_empty();
        if one_partner && ids.iter().all(|&id| id == ids[0]) {
            for (&column, vector) in self.build_columns.iter().zip(&mut self.vectors) {
                built.rows.gather(column, &ids[..1], vector);
                vector.make_constant();
                output.push_column(vector.clone(), group);
            }
        } else {
            gather(&built.rows, &self.build_columns, ids, &mut self.vectors, output, group);
        }
        output
    }
}
