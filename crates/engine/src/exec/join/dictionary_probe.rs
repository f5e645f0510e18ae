//! Dictionary probing: a key that arrives as codes of a dictionary is looked up once for each entry of the
//! dictionary, not once for each row.
//!
//! A stored text column comes as a vector of codes, and the blocks of a row group share one dictionary. Its
//! hashes are computed once ([`HashCache`](entasis_vector::hash::HashCache)), but each row would still visit
//! the table and compare its key with a build row's, although rows with equal codes have equal matches.
//!
//! 1. As soon as a worker has seen as many rows of a dictionary as this has entries, it looks up all entries
//!    through the join's table, as if they were a probe chunk, and keeps the matches of each: at most twice
//!    the work of looking up rows.
//! 2. A row's matches are those of its code: the first is one access to a list by code, further ones follow
//!    in a second list. They have been compared, so nothing is compared again.
//!
//! Invariants: a row has the matches that the table would find, each once and in the same order; a build side
//! is that of one table, since each block of build rows has a worker of its own.
//!
//! Not here: joins by several keys, bounds, and NULLs that equal NULLs, whose rows are looked up one by one;
//! dictionaries whose entries have very many matches ([`MOST_ENTRY_MATCHES`]). Lists are not reserved: a
//! worker has at most some megabytes of them.
//!
//! None of the papers has this. Vectors of codes are those of Qiao and Zhang, *Data Chunk Compaction in
//! Vectorized Execution*, SIGMOD 2025, section 5.4.

use super::Built;
use super::table::{Cursor, Pairs, ProbeKeys};
use super::tuning::{KEPT_DICTIONARIES, MOST_ENTRY_MATCHES};
use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::profile::Recorder;
use crate::sync::{AtomicU64, Ordering};
use entasis_vector::{CHUNK_ROWS, Chunk, Dictionary, Encoding, PhysicalType, Result, Selection, Vector};
use std::sync::Arc;

/// Counts what the workers of a probe looked up by entry, for the profile.
pub(crate) struct EntryCounts {
    rows: AtomicU64,
    entries: AtomicU64,
    dictionaries: AtomicU64,
    recorder: Arc<Recorder>,
}

impl EntryCounts {
    /// Nothing yet; `recorder` is that of the join.
    pub(crate) fn new(recorder: &Arc<Recorder>) -> Arc<EntryCounts> {
        let [rows, entries, dictionaries] = [(); 3].map(|()| AtomicU64::new(0));
        Arc::new(EntryCounts { rows, entries, dictionaries, recorder: recorder.clone() })
    }

    /// Notes what has been counted since the last note, if anything.
    pub(crate) fn note(&self) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let (rows, entries, dictionaries) = (take(&self.rows), take(&self.entries), take(&self.dictionaries));
        if rows > 0 {
            self.recorder.note(format!(
                "{rows} probe rows matched by dictionary code: {entries} entries of {dictionaries} dictionaries were looked up"
            ));
        }
    }
}

/// The matches of a dictionary's entries.
struct EntryMatches {
    /// The dictionary's id.
    id: u64,
    /// Rows of the dictionary seen so far.
    rows: usize,
    /// For each code, its first match; empty as long as entries have not been looked up.
    firsts: Vec<u32>,
    /// For each code, where its matches are in `ids`, and a last end; empty if no code has two matches.
    starts: Vec<u32>,
    ids: Vec<u32>,
}

/// One worker's matches by dictionary, and the progress of one chunk's probe through them.
pub(super) struct DictionaryProbe {
    counts: Arc<EntryCounts>,
    kept: Vec<EntryMatches>,
    /// The next of `kept` to be replaced.
    oldest: usize,
    /// An entry had too many matches: no dictionary is tried again.
    is_given_up: bool,
    /// The current chunk's dictionary, in `kept`.
    current: usize,
    /// For each row of the current chunk, its code; only if codes have several matches.
    codes: Vec<u32>,
    /// Matches of each pair's row that have been given.
    step: u32,
    lookup: Lookup,
}

/// What entries are looked up with.
struct Lookup {
    keys: ProbeKeys,
    chunk: Chunk,
    entries: Vector,
    candidates: Pairs,
    hits: Pairs,
    cursor: Cursor,
    /// Codes and their matches.
    found: Vec<(u32, u32)>,
}

impl DictionaryProbe {
    /// For a join by one key. `hash_collisions`: all keys have one hash.
    pub(super) fn new(counts: &Arc<EntryCounts>, hash_collisions: bool) -> DictionaryProbe {
        DictionaryProbe {
            counts: counts.clone(),
            kept: Vec::new(),
            oldest: 0,
            is_given_up: false,
            current: 0,
            codes: Vec::new(),
            step: 0,
            lookup: Lookup {
                keys: ProbeKeys::new(1, hash_collisions),
                chunk: Chunk::new(),
                entries: Vector::new(PhysicalType::U32),
                candidates: Pairs::default(),
                hits: Pairs::default(),
                cursor: Cursor::default(),
                found: Vec::new(),
            },
        }
    }

    /// Replaces `pairs` with the first match of each row of the chunk whose keys are in `probe_keys`, and
    /// returns true, if rows are to be matched by their codes.
    ///
    /// # Errors
    /// Interrupted.
    pub(super) fn first(
        &mut self,
        built: &Built,
        probe_keys: &ProbeKeys,
        null_equals_null: bool,
        context: &QueryContext,
        pairs: &mut Pairs,
    ) -> Result<bool> {
        let (vector, positions) = probe_keys.column(0);
        if self.is_given_up
            || vector.encoding() != Encoding::Dictionary
            || null_equals_null && vector.validity().is_some()
        {
            return Ok(false);
        }
        let Some(dictionary) = vector.dictionary().filter(|dictionary| !dictionary.is_empty()) else {
            return Ok(false);
        };
        let count = probe_keys.count();
        self.current = self.place_of(dictionary.id());
        let matches = &mut self.kept[self.current];
        if matches.firsts.is_empty() {
            matches.rows += count;
            if matches.rows < dictionary.len() {
                return Ok(false);
            }
            self.is_given_up = !self.lookup.run(built, dictionary, context, matches)?;
            if self.is_given_up {
                self.kept.clear();
                return Ok(false);
            }
            self.counts.entries.fetch_add(dictionary.len() as u64, Ordering::Relaxed);
            self.counts.dictionaries.fetch_add(1, Ordering::Relaxed);
        }
        self.counts.rows.fetch_add(count as u64, Ordering::Relaxed);
        self.step = 0;
        let matches = &self.kept[self.current];
        let codes = vector.codes();
        // Codes of rows that cannot match may be of another dictionary: these rows are not among those given.
        match positions {
            None => pairs.fill(probe_keys.rows(), count, |row| matches.firsts[codes[row] as usize]),
            Some(at) => {
                pairs.fill(probe_keys.rows(), count, |row| matches.firsts[codes[at[row] as usize] as usize]);
            }
        }
        if !matches.starts.is_empty() {
            self.codes.clear();
            self.codes.extend((0..count).map(|row| codes[positions.map_or(row, |at| at[row] as usize)]));
        }
        Ok(true)
    }

    /// Replaces pairs with their rows' next matches, after [`DictionaryProbe::first`] has returned true.
    pub(super) fn next(&mut self, pairs: &mut Pairs) {
        let matches = &self.kept[self.current];
        if matches.starts.is_empty() {
            return pairs.clear();
        }
        self.step += 1;
        let mut left = 0;
        for i in 0..pairs.len() {
            let row = pairs.rows[i];
            let code = self.codes[row as usize] as usize;
            let at = matches.starts[code] + self.step;
            if at < matches.starts[code + 1] {
                (pairs.rows[left], pairs.ids[left]) = (row, matches.ids[at as usize]);
                left += 1;
            }
        }
        pairs.truncate(left);
    }

    /// Where the matches of a dictionary are in `kept`; they may still have to be looked up.
    fn place_of(&mut self, id: u64) -> usize {
        if let Some(at) = self.kept.iter().position(|matches| matches.id == id) {
            return at;
        }
        let fresh = EntryMatches { id, rows: 0, firsts: Vec::new(), starts: Vec::new(), ids: Vec::new() };
        if self.kept.len() < KEPT_DICTIONARIES {
            self.kept.push(fresh);
            return self.kept.len() - 1;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % KEPT_DICTIONARIES;
        self.kept[at] = fresh;
        at
    }
}

impl Lookup {
    /// Looks up all entries of `dictionary`. False if they have too many matches.
    fn run(
        &mut self,
        built: &Built,
        dictionary: &Arc<Dictionary>,
        context: &QueryContext,
        matches: &mut EntryMatches,
    ) -> Result<bool> {
        self.found.clear();
        for start in (0..dictionary.len()).step_by(CHUNK_ROWS) {
            let count = CHUNK_ROWS.min(dictionary.len() - start);
            let codes = start as u32..(start + count) as u32;
            self.chunk.reset(count);
            let of = self.entries.begin_codes(dictionary, count);
            of.iter_mut().zip(codes).for_each(|(to, code)| *to = code);
            let group = self.chunk.push_group(Selection::ALL);
            self.chunk.push_column(self.entries.clone(), group);
            // No entry is NULL.
            self.keys.begin(&self.chunk, &[0], &[false]);
            let fits = self.find(built, start as u32, context);
            self.keys.release();
            self.chunk.reset(0);
            if !fits? {
                return Ok(false);
            }
        }
        self.arrange(dictionary.len(), matches);
        Ok(true)
    }

    /// Adds the matches of the entries in `keys`, the first of which has the code `start`. False if there are
    /// too many.
    fn find(&mut self, built: &Built, start: u32, context: &QueryContext) -> Result<bool> {
        built.table.first(&mut self.keys, &mut self.candidates, &mut self.cursor);
        while self.candidates.len() > 0 {
            self.hits.clear();
            self.hits.extend(&self.candidates);
            if !built.table.is_exact(&self.cursor) {
                let (vector, positions) = self.keys.column(0);
                let Pairs { rows, ids } = &mut self.hits;
                built.rows.retain_equal(0, vector, positions, false, rows, ids);
            }
            let pairs = self.hits.rows.iter().zip(&self.hits.ids);
            self.found.extend(pairs.map(|(&row, &id)| (start + u32::from(row), id)));
            if self.found.len() > MOST_ENTRY_MATCHES {
                return Ok(false);
            }
            built.table.next(&mut self.keys, &mut self.candidates, &mut self.cursor);
            context.check()?;
        }
        Ok(true)
    }

    /// Makes lists by code of what was found for `entries` codes. Matches of a code stay in their order.
    fn arrange(&self, entries: usize, matches: &mut EntryMatches) {
        matches.firsts.resize(entries, Materialized::NO_ROW);
        let mut has_several = false;
        for &(code, id) in &self.found {
            let first = &mut matches.firsts[code as usize];
            has_several |= *first != Materialized::NO_ROW;
            if *first == Materialized::NO_ROW {
                *first = id;
            }
        }
        if !has_several {
            return;
        }
        // Counts of the next code's place become ends, which become starts as matches are put.
        matches.starts.resize(entries + 2, 0);
        self.found.iter().for_each(|&(code, _)| matches.starts[code as usize + 2] += 1);
        for code in 2..matches.starts.len() {
            matches.starts[code] += matches.starts[code - 1];
        }
        matches.ids.resize(self.found.len(), 0);
        for &(code, id) in &self.found {
            let at = &mut matches.starts[code as usize + 1];
            matches.ids[*at as usize] = id;
            *at += 1;
        }
        matches.starts.pop();
    }
}
