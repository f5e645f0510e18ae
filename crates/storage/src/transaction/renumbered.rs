//! Row numbers that change when a transaction is replayed.
//!
//! A fork numbers its new rows from where its version ended, and so do other forks beside it. The one that
//! commits second numbers its rows again. They keep their order. All other numbers are those of rows that
//! were there before, and stay.

/// Maps row numbers in a fork to those after its replay.
#[derive(Default)]
pub(super) struct Renumbered {
    /// Sorted by old numbers.
    runs: Vec<Run>,
}

/// Rows with consecutive numbers, before and after.
struct Run {
    old: u64,
    new: u64,
    rows: u64,
}

impl Renumbered {
    /// Adds rows that were inserted again. Old numbers ascend from call to call.
    pub(super) fn add(&mut self, old: u64, new: u64, rows: u64) {
        match self.runs.last_mut() {
            Some(last) if last.old + last.rows == old && last.new + last.rows == new => last.rows += rows,
            _ => self.runs.push(Run { old, new, rows }),
        }
    }

    /// True if a row got another number.
    pub(super) fn changes(&self) -> bool {
        self.runs.iter().any(|run| run.old != run.new)
    }

    /// The new number of a row.
    pub(super) fn of(&self, number: u64) -> u64 {
        let behind = self.runs.partition_point(|run| run.old <= number);
        let run = behind.checked_sub(1).map(|at| &self.runs[at]);
        run.filter(|run| number - run.old < run.rows).map_or(number, |run| run.new + (number - run.old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_were_there_keep_their_numbers() {
        let mut numbers = Renumbered::default();
        assert_eq!(numbers.of(10), 10);
        numbers.add(8, 8, 2);
        assert!(!numbers.changes());
        numbers.add(10, 20, 1);
        assert!(numbers.changes());
        numbers.add(11, 21, 2);
        numbers.add(13, 30, 5);
        assert_eq!(numbers.runs.len(), 3, "what follows is one run");
        let found: Vec<u64> = [9, 10, 12, 13, 17, 18].map(|number| numbers.of(number)).to_vec();
        assert_eq!(found, [9, 20, 22, 30, 34, 18]);
    }
}
