//! What scans have asked of tables that follow their workload: of each a sample of questions, and how many
//! there were. It lives as long as the table in this process; a file does not have it.
//!
//! A table follows its workload if its own words are `layout = 'auto'` and it has no primary or unique key.

use entasis_engine::question::Question;
use entasis_engine::relation::{Definition, LayoutName};
use entasis_storage::{Table, TableEntry, is_temporary};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Questions that are kept at a time. With one more, every second is dropped, and from then on every second
/// of those that would have been kept is.
const KEPT: usize = 64;
/// Questions before the layout is judged for the first time.
const FIRST: u64 = 16;

/// True if the layout of tables with this definition follows their workload.
pub(crate) fn follows(definition: &Definition) -> bool {
    let is_asked_for = definition.layout.layout == Some(LayoutName::Auto);
    is_asked_for && definition.primary_key().is_none() && definition.unique_keys().next().is_none()
}

/// What was asked of a table.
#[derive(Debug)]
pub(crate) struct Record {
    asked: Mutex<Asked>,
    /// The number of questions at which the layout is to be judged the next time.
    due: AtomicU64,
    /// Set when it is due: that of all records of the database.
    is_due: Arc<AtomicBool>,
    /// Transactions and statements that write to the table.
    writers: AtomicUsize,
}

#[derive(Debug, Default)]
struct Asked {
    /// Rows when it was asked first.
    rows: u64,
    kept: Vec<Question>,
    /// All questions.
    count: u64,
    /// One in so many is kept, a power of two; 0 is one.
    every: u64,
}

impl Record {
    fn new(is_due: Arc<AtomicBool>) -> Record {
        let due = AtomicU64::new(FIRST);
        Record { asked: Mutex::default(), due, is_due, writers: AtomicUsize::new(0) }
    }

    /// Notes that a scan of the table, which has so many rows, has asked something.
    pub(crate) fn note(&self, rows: u64, question: &dyn Fn() -> Question) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.count += 1;
        if asked.count == 1 {
            asked.rows = rows;
        }
        if asked.count >= self.due.load(Ordering::Relaxed) {
            self.is_due.store(true, Ordering::Relaxed);
        }
        if !asked.count.is_multiple_of(asked.every.max(1)) {
            return;
        }
        asked.kept.push(question());
        if asked.kept.len() > KEPT {
            let mut number = 0;
            asked.kept.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            asked.every = 2 * asked.every.max(1);
        }
    }

    /// The questions that are kept, and how many there were.
    pub(crate) fn questions(&self) -> (Vec<Question>, u64) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        (asked.kept.clone(), asked.count)
    }

    /// Rows when it was asked first.
    pub(crate) fn rows(&self) -> u64 {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).rows
    }

    /// True if the layout is to be judged now; the next time once there are twice as many questions.
    pub(crate) fn takes_its_turn(&self) -> bool {
        let count = self.asked.lock().unwrap_or_else(PoisonError::into_inner).count;
        let is_due = count >= self.due.load(Ordering::Relaxed);
        if is_due {
            self.due.store(2 * count, Ordering::Relaxed);
        }
        is_due
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
    use entasis_engine::question::Comparison;
    use entasis_vector::expr::CompareOp;
    use entasis_vector::{DataType, Value};

    /// However many there are, some are kept, evenly spread over all.
    #[test]
    fn a_record_keeps_a_sample_of_all_times() {
        let record = Record::new(Arc::default());
        for number in 1..=10_000i128 {
            record.note(9 + number as u64, &|| Question {
                comparisons: vec![Comparison {
                    column: 0,
                    op: CompareOp::Eq,
                    value: Value::Integer(number),
                    ty: DataType::Int64,
                }],
            });
            let (questions, count) = record.questions();
            let kept = questions.len();
            assert_eq!((count, record.rows()), (number as u64, 10));
            assert!(kept <= KEPT && kept as u64 >= count.min(KEPT as u64 / 2), "{kept} of {count}");
            let mut last = 0;
            for question in &questions {
                let Value::Integer(next) = question.comparisons[0].value else { panic!("no number") };
                assert!(next > last && next - last <= 4 * number / KEPT as i128 + 1, "{next} after {last}");
                last = next;
            }
            assert!(number - last <= 4 * number / KEPT as i128 + 1, "{last} is the last of {number}");
        }
    }

    #[test]
    fn a_record_is_due_after_twice_as_many_questions() {
        let records = Records::default();
        let record = Record::new(records.is_due.clone());
        let mut turns = Vec::new();
        for number in 1..=100 {
            record.note(0, &Question::default);
            if records.are_due() {
                records.look();
                assert!(record.takes_its_turn() && !record.takes_its_turn());
                turns.push(number);
            }
        }
        assert_eq!(turns, [16, 32, 64]);
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
