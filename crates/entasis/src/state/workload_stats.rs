//! What scans have asked of tables that follow their workload: of each a sample of the questions since its
//! layout was judged, how many there were, and how its layouts stand by those before ([`Standings`]). It
//! lives as long as the table in this process, and the standings as long as the tables that come of it by
//! being laid anew; a file does not have it, and after any other change of the table it begins anew.
//!
//! A table follows its workload if its own words are `layout = 'auto'` and it has no primary or unique key.

use entasis_engine::relation::{Definition, LayoutName};
use entasis_engine::scan_predicates::Question;
use entasis_layout::standing::Standings;
use entasis_storage::{BLOCK_ROWS, Curve, Table, TableEntry, is_temporary};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What rows are ordered by.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LaidBy {
    /// The columns of the layout key; none for the order of insertion.
    pub(crate) key: Vec<usize>,
    /// The curve through them; `None` for one column after the other.
    pub(crate) curve: Option<Curve>,
}

/// Questions that are kept at a time. With one more, every second is dropped, and from then on every second
/// of those that would have been kept is.
const KEPT: usize = 64;
/// The layout is never judged by fewer questions.
const FIRST: u64 = 16;

/// True if the layout of tables with this definition follows their workload.
pub(crate) fn follows(definition: &Definition) -> bool {
    let is_asked_for = definition.layout.layout == Some(LayoutName::Auto);
    is_asked_for && definition.primary_key().is_none() && definition.unique_keys().next().is_none()
}

/// What was asked of a table since its layout was judged, as a sample.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    /// Rows of the table when the batch began; `None` before the first question of all.
    rows: Option<u64>,
    kept: Vec<Question>,
    /// All questions.
    count: u64,
    /// One in so many is kept, a power of two; 0 is one.
    every: u64,
    /// Slots that the scans might have looked into, before zone maps.
    slots: u64,
}

impl Batch {
    fn note(&mut self, rows: u64, slots: u64, question: &dyn Fn() -> Question) {
        self.rows.get_or_insert(rows);
        self.count += 1;
        self.slots += slots.max(BLOCK_ROWS as u64);
        if !self.count.is_multiple_of(self.every.max(1)) {
            return;
        }
        self.kept.push(question());
        if self.kept.len() > KEPT {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.every = 2 * self.every.max(1);
        }
    }

    /// The questions that are kept, evenly spread over all.
    pub(crate) fn questions(&self) -> &[Question] {
        &self.kept
    }

    /// How many questions there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Rows of the table when the batch began.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.unwrap_or(0)
    }

    /// Slots that the scans might have looked into, before zone maps; at least a block for each question.
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }
}

/// What was asked of a table, and how its layouts stand by it.
#[derive(Debug)]
pub(crate) struct Record {
    state: Mutex<State>,
    /// Set when a record is due: that of all records of the database.
    is_due: Arc<AtomicBool>,
    /// Transactions and statements that write to the table.
    writers: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// What was asked since the last judgement.
    now: Batch,
    /// What was judged last.
    judged: Batch,
    standings: Standings<LaidBy>,
    /// The layout is judged when scans might have looked into so many slots.
    due: u64,
}

impl State {
    fn is_due(&self) -> bool {
        self.now.count >= FIRST && self.now.slots >= self.due
    }
}

impl Record {
    fn new(is_due: Arc<AtomicBool>) -> Record {
        Record { state: Mutex::default(), is_due, writers: AtomicUsize::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a scan of the table, which has so many rows, has asked something for which it may look into
    /// so many slots.
    pub(crate) fn note(&self, rows: u64, slots: u64, question: &dyn Fn() -> Question) {
        let mut state = self.state();
        state.now.note(rows, slots, question);
        if state.is_due() {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// What was asked since the last judgement, or what was judged then if that is more; and whether it is
    /// the latter.
    pub(crate) fn latest(&self) -> (Batch, bool) {
        let state = self.state();
        match state.now.count < state.judged.count {
            true => (state.judged.clone(), true),
            false => (state.now.clone(), false),
        }
    }

    /// True if the layout is to be judged now.
    pub(crate) fn is_due(&self) -> bool {
        self.state().is_due()
    }

    /// What is to be judged now, if it is time; the table has so many rows. The next batch begins.
    pub(crate) fn turn(&self, rows: u64) -> Option<Batch> {
        let mut state = self.state();
        if !state.is_due() {
            return None;
        }
        let batch = std::mem::take(&mut state.now);
        state.now.rows = Some(rows);
        state.judged = batch.clone();
        Some(batch)
    }

    /// Has the layout judged again once scans might have looked into so many slots.
    pub(crate) fn wait_for(&self, slots: u64) {
        self.state().due = slots;
    }

    /// The standings of the layouts by what was judged.
    pub(crate) fn standings(&self) -> Standings<LaidBy> {
        self.state().standings.clone()
    }

    /// Counts what a batch costs under each layout ([`Standings::ask`]).
    pub(crate) fn ask(&self, costs: &[(LaidBy, f64)]) -> Option<usize> {
        self.state().standings.ask(costs)
    }

    /// The table of `old` has become the one of this record, which has the same columns.
    pub(crate) fn succeed(&self, old: &Record) {
        let standings = old.standings();
        self.state().standings = standings;
    }

    /// How many transactions and statements write to the table.
    pub(crate) fn writers(&self) -> usize {
        self.writers.load(Ordering::SeqCst)
    }
}

/// Somebody writes to the table of a record as long as this exists.
pub(crate) struct Writing(Arc<Record>);

impl Writing {
    pub(crate) fn to(record: Arc<Record>) -> Writing {
        record.writers.fetch_add(1, Ordering::SeqCst);
        Writing(record)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The records of a database.
#[derive(Debug, Default)]
pub(crate) struct Records {
    of_tables: Mutex<Vec<(Weak<Table>, Arc<Record>)>>,
    is_due: Arc<AtomicBool>,
}

impl Records {
    /// The record of a table that follows its workload, which begins now if there is none; `None` for others.
    pub(crate) fn of(&self, entry: &TableEntry) -> Option<Arc<Record>> {
        // PERF: this is all that other tables pay.
        if !follows(&entry.definition) || is_temporary(&entry.name) {
            return None;
        }
        let table = &entry.table;
        let mut records = self.of_tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, own)) = records.iter().find(|(own, _)| own.as_ptr() == Arc::as_ptr(table)) {
            return Some(own.clone());
        }
        records.retain(|(table, _)| table.strong_count() > 0);
        let new = Arc::new(Record::new(self.is_due.clone()));
        records.push((Arc::downgrade(table), new.clone()));
        Some(new)
    }

    /// True if a record has become due since [`Records::look`].
    #[inline]
    pub(crate) fn are_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Whoever judges records calls this before.
    pub(crate) fn look(&self) {
        self.is_due.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_engine::pruning::Comparison;
    use entasis_vector::expr::CompareOp;
    use entasis_vector::{DataType, Value};

    /// However many there are, some are kept, evenly spread over all.
    #[test]
    fn a_record_keeps_a_sample_of_all_times() {
        let record = Record::new(Arc::default());
        for number in 1..=10_000i128 {
            record.note(9 + number as u64, 1, &|| Question {
                comparisons: vec![Comparison {
                    column: 0,
                    op: CompareOp::Eq,
                    value: Value::Integer(number),
                    ty: DataType::Int64,
                }],
            });
            let (batch, is_judged) = record.latest();
            let (count, kept) = (batch.count(), batch.questions().len());
            assert_eq!((count, batch.rows(), is_judged), (number as u64, 10, false));
            assert!(kept <= KEPT && kept as u64 >= count.min(KEPT as u64 / 2), "{kept} of {count}");
            let mut last = 0;
            for question in batch.questions() {
                let Value::Integer(next) = question.comparisons[0].value else { panic!("no number") };
                assert!(next > last && next - last <= 4 * number / KEPT as i128 + 1, "{next} after {last}");
                last = next;
            }
            assert!(number - last <= 4 * number / KEPT as i128 + 1, "{last} is the last of {number}");
        }
    }

    #[test]
    fn a_record_is_due_by_what_scans_look_into() {
        let records = Records::default();
        let record = Record::new(records.is_due.clone());
        let mut turns = Vec::new();
        for number in 1..=100 {
            // A block at least.
            record.note(number, if number <= 50 { 10 * BLOCK_ROWS as u64 } else { 1 }, &Question::default);
            if records.are_due() {
                records.look();
                let batch = record.turn(number).expect("it is due");
                assert!(record.turn(number).is_none() && !record.is_due());
                assert!(record.latest().1, "nothing was asked since");
                record.wait_for(20 * 10 * BLOCK_ROWS as u64);
                turns.push((number, batch.count(), batch.rows()));
            }
        }
        // At first when there are some questions; then by slots: the last by 14 questions, and by 60 small
        // ones.
        assert_eq!(turns, [(16, 16, 1), (36, 20, 16)]);
        assert_eq!(record.latest().0.count(), 64);
        assert_eq!(record.latest().0.rows(), 36);
        (0..30).for_each(|_| record.note(100, 1, &Question::default));
        assert!(record.is_due());
    }

    #[test]
    fn standings_go_to_the_table_that_comes_of_it() {
        let (old, new) = (Record::new(Arc::default()), Record::new(Arc::default()));
        let by = |column: usize| LaidBy { key: vec![column], curve: None };
        assert_eq!(old.ask(&[(by(0), 0.75), (by(1), 0.25)]), None);
        assert_eq!((old.standings().of(&by(0)), old.standings().of(&by(1))), (0.0, 0.5));
        assert_eq!(old.ask(&[(by(0), 2.0), (by(1), 0.25)]), Some(1));
        new.succeed(&old);
        assert_eq!(new.standings(), old.standings());
        assert_eq!((new.standings().of(&by(0)), new.standings().of(&by(1))), (1.0, 0.0));
    }

    #[test]
    fn writers_are_known_while_they_write() {
        let record = Arc::new(Record::new(Arc::default()));
        let writing = Writing::to(record.clone());
        assert_eq!(record.writers(), 1);
        drop(writing);
        assert_eq!(record.writers(), 0);
    }
}
