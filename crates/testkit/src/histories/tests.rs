//! Tests of the checker: hand-made histories of each anomaly, which it must name, and valid ones, which must
//! pass.

use super::history::{Effect, History, Predicate, Row, Span, Statement, Step, TableRules, Transaction};
use super::{Anomaly, Checked, Violation, check};

const T: usize = 0;
const U: usize = 1;
/// The table without constraints.
const N: usize = 2;

/// Row `list[0]` with its key, in group 0.
fn row(key: i64, list: &[u64]) -> Row {
    Row { key, group: 0, unique: None, refers: None, list: list.to_vec() }
}

fn in_group(group: i64, row: Row) -> Row {
    Row { group, ..row }
}

/// A history built step by step: calls follow each other, none overlap.
struct Story {
    history: History,
    now: u64,
}

impl Story {
    /// Rows 1 to 4: keys 10 and 20 of `t`, 30 of `u`, 40 of `n`; the last one has been written before.
    fn new() -> Story {
        let rules = |name: &str, has_unique_key, refers_to| TableRules {
            name: name.into(),
            has_unique_key,
            has_unique: has_unique_key,
            refers_to,
        };
        let tables = vec![rules("t", true, None), rules("u", true, Some(T)), rules("n", false, None)];
        let contents = [vec![row(10, &[1]), row(20, &[2])], vec![row(30, &[3])], vec![row(40, &[4, 0])]];
        Story { history: History::beginning(tables, &contents), now: 0 }
    }

    fn span(&mut self) -> Span {
        self.now += 2;
        Span { start: self.now - 1, end: self.now }
    }

    fn begin(&mut self) -> usize {
        let begin = self.span();
        let session = self.history.transactions.len();
        self.history.transactions.push(Transaction { session, begin, ..Transaction::default() });
        session
    }

    fn statement(&mut self, transaction: usize, number: u64, effects: Vec<Effect>) {
        let statement =
            Statement { sql: format!("{effects:?}"), numbers: number..number + 1, failed: false, effects };
        self.history.transactions[transaction].steps.push(Step::Statement(statement));
    }

    fn step(&mut self, transaction: usize, step: Step) {
        self.history.transactions[transaction].steps.push(step);
    }

    fn seen(&mut self, table: usize, predicate: Predicate, rows: &[Row]) -> Effect {
        let shown = rows.iter().map(|row| self.history.note(table, row.clone())).collect();
        Effect::Read { table, predicate, shown }
    }

    /// A statement that reads.
    fn read(&mut self, transaction: usize, table: usize, predicate: Predicate, rows: &[Row]) {
        let effect = self.seen(table, predicate, rows);
        self.statement(transaction, 0, vec![effect]);
    }

    fn put(&mut self, transaction: usize, table: usize, row: Row) {
        let number = row.list[row.list.len() - 1];
        let version = self.history.note(table, row);
        self.statement(transaction, number, vec![Effect::Put { table, version }]);
    }

    fn delete(&mut self, transaction: usize, table: usize, row: Row) {
        let version = self.history.note(table, row);
        self.statement(transaction, 0, vec![Effect::Delete { table, version }]);
    }

    fn end(&mut self, transaction: usize, committed: bool) {
        let commit = self.span();
        let transaction = &mut self.history.transactions[transaction];
        (transaction.commit, transaction.committed) = (commit, committed);
    }

    fn commit(&mut self, transaction: usize) {
        self.end(transaction, true);
    }

    /// Allows both moments of a transaction to be at any time from `start` to `end`.
    fn loosen(&mut self, transaction: usize, start: u64, end: u64) {
        let transaction = &mut self.history.transactions[transaction];
        (transaction.begin, transaction.commit) = (Span { start, end }, Span { start, end });
    }

    /// A transaction that writes these versions.
    fn write(&mut self, rows: &[(usize, Row)]) -> usize {
        let transaction = self.begin();
        for (table, row) in rows {
            self.put(transaction, *table, row.clone());
        }
        self.commit(transaction);
        transaction
    }

    fn check(mut self, contents: [&[Row]; 3]) -> Result<Checked, Violation> {
        self.history.contents = contents.map(<[Row]>::to_vec).to_vec();
        check(self.history)
    }
}

fn found(result: Result<Checked, Violation>) -> Option<Anomaly> {
    result.err().map(|violation| violation.anomaly)
}

/// The contents of a story's tables if only row 1 has changed.
fn with_first(list: &[u64]) -> [Vec<Row>; 3] {
    [vec![row(10, list), row(20, &[2])], vec![row(30, &[3])], vec![row(40, &[4, 0])]]
}

fn checked(story: Story, contents: &[Vec<Row>; 3]) -> Result<Checked, Violation> {
    story.check([&contents[0], &contents[1], &contents[2]])
}

#[test]
fn old_snapshots_and_write_skew_are_clean() {
    let mut story = Story::new();
    let old = story.begin();
    let (one, two) = (story.begin(), story.begin());
    let both = [row(10, &[1]), row(20, &[2])];
    for transaction in [one, two] {
        story.read(transaction, T, Predicate::All, &both);
    }
    story.put(one, T, row(10, &[1, 5]));
    story.put(two, T, row(20, &[2, 6]));
    story.commit(one);
    story.commit(two);
    story.read(old, T, Predicate::All, &both);
    story.commit(old);
    let late = story.begin();
    story.read(late, T, Predicate::All, &[row(10, &[1, 5]), row(20, &[2, 6])]);
    story.end(late, false);
    let result = story.check([&[row(10, &[1, 5]), row(20, &[2, 6])], &[row(30, &[3])], &[row(40, &[4, 0])]]);
    let checked = result.expect("nothing is wrong");
    assert_eq!((checked.rows, checked.versions, checked.compared), (4, 6, 8));
}

#[test]
fn own_writes_savepoints_and_rows_that_come_and_go_are_clean() {
    let mut story = Story::new();
    let one = story.begin();
    story.put(one, T, row(10, &[1, 5]));
    story.step(one, Step::Savepoint);
    story.put(one, T, row(10, &[1, 5, 6]));
    story.delete(one, T, row(20, &[2]));
    story.read(one, T, Predicate::All, &[row(10, &[1, 5, 6])]);
    story.step(one, Step::RollBackTo);
    story.step(one, Step::Release);
    story.read(one, T, Predicate::All, &[row(10, &[1, 5]), row(20, &[2])]);
    story.put(one, N, row(50, &[7]));
    story.delete(one, N, row(50, &[7]));
    story.commit(one);
    // A key moves from one row to another.
    let two = story.begin();
    story.delete(two, T, row(20, &[2]));
    story.commit(two);
    story.write(&[(T, row(20, &[8]))]);
    let result = story.check([&[row(10, &[1, 5]), row(20, &[8])], &[row(30, &[3])], &[row(40, &[4, 0])]]);
    assert_eq!(found(result), None);
}

#[test]
fn rows_that_leave_a_predicate_are_not_shown() {
    let mut story = Story::new();
    let old = story.begin();
    story.write(&[(T, in_group(1, row(10, &[1, 5])))]);
    let new = story.begin();
    story.read(old, T, Predicate::Group(0), &[row(10, &[1]), row(20, &[2])]);
    story.read(new, T, Predicate::Group(0), &[row(20, &[2])]);
    story.read(new, T, Predicate::Keys(0, 15), &[in_group(1, row(10, &[1, 5]))]);
    story.commit(old);
    story.commit(new);
    let contents = [in_group(1, row(10, &[1, 5])), row(20, &[2])];
    assert_eq!(found(story.check([&contents, &[row(30, &[3])], &[row(40, &[4, 0])]])), None);
}

#[test]
fn bulk_appends_are_recovered_from_lists() {
    let tell = |rows: u64| {
        let mut story = Story::new();
        let one = story.begin();
        story.statement(
            one,
            5,
            vec![Effect::Sought { table: T, predicate: Predicate::All }, Effect::Append { table: T, rows }],
        );
        story.commit(one);
        story.write(&[(T, row(10, &[1, 5, 6]))]);
        story.check([&[row(10, &[1, 5, 6]), row(20, &[2, 5])], &[row(30, &[3])], &[row(40, &[4, 0])]])
    };
    assert_eq!(found(tell(2)), None);
    assert_eq!(found(tell(3)), Some(Anomaly::WrongCount));
}

#[test]
fn rows_deleted_by_key_are_gone() {
    let tell = |contents: [&[Row]; 3]| {
        let mut story = Story::new();
        let one = story.begin();
        story.statement(one, 0, vec![Effect::DeleteKey { table: T, key: 20 }]);
        story.commit(one);
        story.check(contents)
    };
    assert_eq!(found(tell([&[row(10, &[1])], &[row(30, &[3])], &[row(40, &[4, 0])]])), None);
    let resurrected = tell([&[row(10, &[1]), row(20, &[2])], &[row(30, &[3])], &[row(40, &[4, 0])]]);
    assert_eq!(found(resurrected), Some(Anomaly::StaleRead));
}

#[test]
fn writes_in_a_circle() {
    let mut story = Story::new();
    let (one, two) = (story.begin(), story.begin());
    story.put(one, T, row(10, &[1, 5]));
    story.put(two, T, row(10, &[1, 5, 6]));
    story.put(two, T, row(20, &[2, 7]));
    story.put(one, T, row(20, &[2, 7, 8]));
    story.commit(one);
    story.commit(two);
    // A write sees what it overwrites, so it is a cycle of reads as well; that of writes alone is shorter.
    let result =
        story.check([&[row(10, &[1, 5, 6]), row(20, &[2, 7, 8])], &[row(30, &[3])], &[row(40, &[4, 0])]]);
    assert_eq!(found(result), Some(Anomaly::DirtyWrite));
}

#[test]
fn aborted_and_intermediate_versions() {
    let mut story = Story::new();
    let (one, two) = (story.begin(), story.begin());
    story.put(one, T, row(10, &[1, 5]));
    story.read(two, T, Predicate::Key(10), &[row(10, &[1, 5])]);
    story.end(one, false);
    story.commit(two);
    assert_eq!(found(checked(story, &with_first(&[1]))), Some(Anomaly::AbortedRead));

    let mut story = Story::new();
    let (one, two) = (story.begin(), story.begin());
    story.put(one, T, row(10, &[1, 5]));
    story.put(one, T, row(10, &[1, 5, 6]));
    story.read(two, T, Predicate::Key(10), &[row(10, &[1, 5])]);
    story.commit(one);
    story.commit(two);
    assert_eq!(found(checked(story, &with_first(&[1, 5, 6]))), Some(Anomaly::IntermediateRead));

    // What was rolled back to a savepoint, or failed, is permanently in a row.
    let mut story = Story::new();
    let one = story.begin();
    story.step(one, Step::Savepoint);
    story.put(one, T, row(10, &[1, 5]));
    story.step(one, Step::RollBackTo);
    story.commit(one);
    assert_eq!(found(checked(story, &with_first(&[1, 5]))), Some(Anomaly::AbortedRead));

    let mut story = Story::new();
    let one = story.begin();
    story.step(one, Step::Statement(Statement { numbers: 5..6, failed: true, ..Statement::default() }));
    story.commit(one);
    assert_eq!(found(checked(story, &with_first(&[1, 5]))), Some(Anomaly::AbortedRead));
}

#[test]
fn information_in_a_circle() {
    let mut story = Story::new();
    let (one, two) = (story.begin(), story.begin());
    story.put(one, T, row(10, &[1, 5]));
    story.put(two, T, row(20, &[2, 6]));
    story.read(one, T, Predicate::Key(20), &[row(20, &[2, 6])]);
    story.read(two, T, Predicate::Key(10), &[row(10, &[1, 5])]);
    story.commit(one);
    story.commit(two);
    let result = story.check([&[row(10, &[1, 5]), row(20, &[2, 6])], &[row(30, &[3])], &[row(40, &[4, 0])]]);
    assert_eq!(found(result), Some(Anomaly::CircularInformationFlow));
}

/// A transaction writes to `t` and `u`; a reader sees `steps`, each a statement that returns `t` or `u`, old
/// or new.
fn seen_in_part(steps: &[&[(usize, bool)]]) -> Option<Anomaly> {
    let mut story = Story::new();
    let reader = story.begin();
    let writer = story.write(&[(T, row(10, &[1, 5])), (U, row(30, &[3, 6]))]);
    for step in steps {
        let mut effects = Vec::new();
        for (table, is_new) in *step {
            let (key, list): (i64, &[u64]) = match (*table, *is_new) {
                (T, true) => (10, &[1, 5]),
                (T, false) => (10, &[1]),
                (_, true) => (30, &[3, 6]),
                (_, false) => (30, &[3]),
            };
            effects.push(story.seen(*table, Predicate::Key(key), &[row(key, list)]));
        }
        story.statement(reader, 0, effects);
    }
    story.commit(reader);
    for transaction in [reader, writer] {
        story.loosen(transaction, 1, 100);
    }
    found(story.check([&[row(10, &[1, 5]), row(20, &[2])], &[row(30, &[3, 6])], &[row(40, &[4, 0])]]))
}

#[test]
fn transactions_seen_in_part() {
    assert_eq!(seen_in_part(&[&[(T, true), (U, true)]]), None);
    assert_eq!(seen_in_part(&[&[(T, false)], &[(U, false)]]), None);
    assert_eq!(seen_in_part(&[&[(T, false), (U, true)]]), Some(Anomaly::FracturedRead));
    assert_eq!(seen_in_part(&[&[(T, false)], &[(U, true)]]), Some(Anomaly::ReadSkew));
    assert_eq!(seen_in_part(&[&[(T, true)], &[(U, false)]]), Some(Anomaly::ObservedTransactionVanishes));
    assert_eq!(seen_in_part(&[&[(T, false)], &[(T, true)]]), Some(Anomaly::NonRepeatableRead));
}

#[test]
fn predicates_of_two_moments() {
    let mut story = Story::new();
    let reader = story.begin();
    let writer = story.write(&[(T, row(50, &[5])), (U, row(60, &[6]))]);
    story.read(reader, U, Predicate::All, &[row(30, &[3]), row(60, &[6])]);
    story.read(reader, T, Predicate::Group(0), &[row(10, &[1]), row(20, &[2])]);
    story.commit(reader);
    for transaction in [reader, writer] {
        story.loosen(transaction, 1, 100);
    }
    let contents = [
        &[row(10, &[1]), row(20, &[2]), row(50, &[5])][..],
        &[row(30, &[3]), row(60, &[6])],
        &[row(40, &[4, 0])],
    ];
    assert_eq!(found(story.check(contents)), Some(Anomaly::PredicateManyPreceders));
}

#[test]
fn lost_updates() {
    // Two writes on one version: one of them is lost.
    let mut story = Story::new();
    let (one, two) = (story.begin(), story.begin());
    story.put(one, T, row(10, &[1, 5]));
    story.put(two, T, row(10, &[1, 6]));
    story.commit(one);
    story.commit(two);
    assert_eq!(found(checked(story, &with_first(&[1, 6]))), Some(Anomaly::LostUpdate));

    // Read before, but written on a later version.
    let mut story = Story::new();
    let one = story.begin();
    story.read(one, T, Predicate::Key(10), &[row(10, &[1])]);
    story.write(&[(T, row(10, &[1, 5]))]);
    story.put(one, T, row(10, &[1, 5, 6]));
    story.commit(one);
    assert_eq!(found(checked(story, &with_first(&[1, 5, 6]))), Some(Anomaly::LostUpdate));
}

#[test]
fn forks() {
    let mut story = Story::new();
    let (left, right) = (story.begin(), story.begin());
    story.write(&[(T, row(10, &[1, 5]))]);
    story.write(&[(T, row(20, &[2, 6]))]);
    story.read(left, T, Predicate::All, &[row(10, &[1, 5]), row(20, &[2])]);
    story.read(right, T, Predicate::All, &[row(10, &[1]), row(20, &[2, 6])]);
    story.commit(left);
    story.commit(right);
    (1..5).for_each(|transaction| story.loosen(transaction, 1, 100));
    let result = story.check([&[row(10, &[1, 5]), row(20, &[2, 6])], &[row(30, &[3])], &[row(40, &[4, 0])]]);
    assert_eq!(found(result), Some(Anomaly::LongFork));
}

#[test]
fn the_clock() {
    let mut story = Story::new();
    story.write(&[(T, row(10, &[1, 5]))]);
    let late = story.begin();
    story.read(late, T, Predicate::Key(10), &[row(10, &[1])]);
    story.commit(late);
    assert_eq!(found(checked(story, &with_first(&[1, 5]))), Some(Anomaly::StaleRead));

    let mut story = Story::new();
    let early = story.begin();
    story.write(&[(T, row(10, &[1, 5]))]);
    story.read(early, T, Predicate::Key(10), &[row(10, &[1, 5])]);
    story.commit(early);
    assert_eq!(found(checked(story, &with_first(&[1, 5]))), Some(Anomaly::RealTime));
}

#[test]
fn own_writes_are_not_seen() {
    let mut story = Story::new();
    let one = story.begin();
    story.put(one, T, row(10, &[1, 5]));
    story.read(one, T, Predicate::Key(10), &[row(10, &[1])]);
    story.commit(one);
    assert_eq!(found(checked(story, &with_first(&[1, 5]))), Some(Anomaly::OwnWrites));

    let mut story = Story::new();
    let one = story.begin();
    story.put(one, T, row(50, &[5]));
    story.read(one, T, Predicate::Key(50), &[]);
    story.end(one, false);
    assert_eq!(found(checked(story, &with_first(&[1]))), Some(Anomaly::OwnWrites));

    // An UPDATE does not find a row of its own transaction.
    let mut story = Story::new();
    let one = story.begin();
    story.put(one, N, row(50, &[5]));
    story.statement(one, 0, vec![Effect::Sought { table: N, predicate: Predicate::Key(50) }]);
    story.end(one, false);
    assert_eq!(found(checked(story, &with_first(&[1]))), Some(Anomaly::OwnWrites));
}

#[test]
fn versions_that_nobody_wrote() {
    let read = |row: Row| {
        let mut story = Story::new();
        let one = story.begin();
        story.read(one, T, Predicate::Key(10), &[row]);
        story.commit(one);
        found(checked(story, &with_first(&[1])))
    };
    assert_eq!(read(row(10, &[1])), None);
    assert_eq!(read(row(10, &[1, 1])), Some(Anomaly::UnwrittenRow));
    assert_eq!(read(in_group(7, row(10, &[1]))), Some(Anomaly::TornRow));

    let mut story = Story::new();
    let one = story.begin();
    story.read(one, N, Predicate::All, &[row(40, &[4, 0]), row(40, &[4, 0])]);
    story.commit(one);
    assert_eq!(found(checked(story, &with_first(&[1]))), Some(Anomaly::RowTwice));
}

#[test]
fn lost_rows_and_wrong_contents() {
    assert_eq!(found(checked(Story::new(), &with_first(&[1]))), None);
    let lost = Story::new().check([&[row(10, &[1])], &[row(30, &[3])], &[row(40, &[4, 0])]]);
    assert_eq!(found(lost), Some(Anomaly::LostRow));
    let mut story = Story::new();
    story.write(&[(T, row(10, &[1, 5]))]);
    assert_eq!(found(checked(story, &with_first(&[1]))), Some(Anomaly::StaleRead));
}

#[test]
fn the_model_finds_contents_that_differ() {
    let mut story = Story::new();
    story.write(&[(T, row(10, &[1, 5]))]);
    story.history.contents = with_first(&[1]).to_vec();
    let history = story.history;
    let written = super::written::Written::new(&history);
    let walks: Vec<_> =
        history.transactions.iter().map(|one| super::walk::walk(one, &written).unwrap()).collect();
    let chains = super::chains::Chains::new(&walks, &written).unwrap();
    let result = super::model::compare(&[0, 1], &chains, &written);
    assert_eq!(result.unwrap_err().anomaly, Anomaly::WrongContents);
}

#[test]
fn keys_and_references() {
    let mut story = Story::new();
    let one = story.begin();
    story.put(one, T, row(10, &[5]));
    story.commit(one);
    let result =
        story.check([&[row(10, &[1]), row(20, &[2]), row(10, &[5])], &[row(30, &[3])], &[row(40, &[4, 0])]]);
    assert_eq!(found(result), Some(Anomaly::UniqueViolation));

    let unique = |root, unique| Row { unique, ..row(root as i64 * 10, &[root]) };
    let tell = |five, six| {
        let mut story = Story::new();
        story.write(&[(T, unique(5, five)), (T, unique(6, six))]);
        let t = [row(10, &[1]), row(20, &[2]), unique(5, five), unique(6, six)];
        found(story.check([&t, &[row(30, &[3])], &[row(40, &[4, 0])]]))
    };
    assert_eq!(tell(Some(1), Some(2)), None);
    assert_eq!(tell(None, None), None);
    assert_eq!(tell(Some(1), Some(1)), Some(Anomaly::UniqueViolation));

    let refers = |key| {
        let child = Row { refers: Some(key), ..row(50, &[5]) };
        let mut story = Story::new();
        story.write(&[(U, child.clone())]);
        found(story.check([&[row(10, &[1]), row(20, &[2])], &[row(30, &[3]), child], &[row(40, &[4, 0])]]))
    };
    assert_eq!(refers(20), None);
    assert_eq!(refers(99), Some(Anomaly::DanglingReference));
}

#[test]
fn stamps() {
    // Two stamps in sequence, and a reader that sees `seen`.
    let tell = |is_committed: bool, seen: u64| {
        let mut story = Story::new();
        for stamp in [5, 6] {
            let one = story.begin();
            story.statement(one, stamp, vec![Effect::Stamp { table: T, key: 10, stamp }]);
            story.end(one, stamp == 5 || is_committed);
        }
        let reader = story.begin();
        story.statement(reader, 0, vec![Effect::Stamped { table: T, key: 10, stamp: seen }]);
        story.commit(reader);
        found(checked(story, &with_first(&[1])))
    };
    assert_eq!(tell(true, 6), None);
    assert_eq!(tell(false, 5), None);
    assert_eq!(tell(true, 5), Some(Anomaly::StaleRead));
    assert_eq!(tell(false, 6), Some(Anomaly::AbortedRead));
}
