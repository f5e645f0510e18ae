//! Truth tables: the answers of a stage for the entries of a dictionary, so that rows are tested by their
//! codes.
//!
//! A stage that reads one string column and always gives the same answer for the same string (comparisons,
//! `IN`, `LIKE`, any function without side effects) need not read rows: its program runs over the entries of
//! the dictionary and over NULL, and the storage narrows the rows by the codes of the blocks ([`CodeSet`]).
//! No string views are made.
//!
//! 1. A table is made once the rows that came with the dictionary are half as many as its entries. Until
//!    then, and for blocks with other strings, the stage runs over rows.
//! 2. If an entry raises an error (it may belong to no row), the stage runs over rows for this dictionary.
//!
//! A dictionary usually belongs to a row group, which one worker reads from its first slot to its last, so
//! each worker keeps one table. Slices that upkeep has encoded again have a dictionary of their own; the
//! table is made again where the dictionary changes. The slow twin is the machine, under `SET optimizer =
//! off`.

use super::stages::Stage;
use entasis_storage::CodeSet;
use entasis_vector::expr::Machine;
use entasis_vector::{
    CHUNK_ROWS, Chunk, Dictionary, PhysicalType, Result, Selection, StringView, Value, Vector,
};
use std::sync::Arc;

/// One worker's table for a stage.
pub(super) struct Truths {
    /// The last dictionary.
    dictionary: u64,
    /// Rows that came with it.
    rows: usize,
    state: State,
}

enum State {
    /// Not made yet.
    Open,
    /// The stage failed for an entry.
    Failed,
    Known(Arc<CodeSet>),
}

impl Truths {
    /// The state before the first dictionary.
    pub(super) fn new() -> Truths {
        Truths { dictionary: 0, rows: 0, state: State::Open }
    }

    /// The codes of `dictionary` that satisfy `stage`, once the table is worthwhile; `rows` more rows come
    /// with the dictionary. `machine` runs the stage.
    pub(super) fn of(
        &mut self,
        dictionary: &Arc<Dictionary>,
        rows: usize,
        stage: &Stage,
        machine: &mut Machine,
    ) -> Option<Arc<CodeSet>> {
        if self.dictionary != dictionary.id() {
            *self = Truths { dictionary: dictionary.id(), ..Truths::new() };
        }
        self.rows += rows;
        if matches!(self.state, State::Open) && dictionary.len() <= 2 * self.rows {
            let set = answers(dictionary, stage, machine);
            self.state = set.map_or(State::Failed, |set| State::Known(Arc::new(set)));
        }
        match &self.state {
            State::Known(set) => Some(set.clone()),
            State::Open | State::Failed => None,
        }
    }
}

/// Runs a stage over all entries and over NULL.
fn answers(dictionary: &Arc<Dictionary>, stage: &Stage, machine: &mut Machine) -> Result<CodeSet> {
    let views = dictionary.values().values::<StringView>();
    let mut entries = vec![false; dictionary.len()];
    let mut chunk = Chunk::new();
    for start in (0..dictionary.len()).step_by(CHUNK_ROWS) {
        let views = &views[start..dictionary.len().min(start + CHUNK_ROWS)];
        let mut texts = Vector::new(PhysicalType::Str);
        texts.begin_flat::<StringView>(CHUNK_ROWS)[..views.len()].copy_from_slice(views);
        texts.share_strings(dictionary.values());
        chunk.reset(views.len());
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(texts, group);
        machine.select(&chunk)?.iter().for_each(|&entry| entries[start + usize::from(entry)] = true);
    }
    let mut null = false;
    if stage.is_nullable {
        chunk.reset(1);
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::constant(PhysicalType::Str, &Value::Null)?, group);
        null = !machine.select(&chunk)?.is_empty();
    }
    Ok(CodeSet::new(dictionary.clone(), entries, null))
}
