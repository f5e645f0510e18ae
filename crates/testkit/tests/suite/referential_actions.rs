//! `ON DELETE` and `ON UPDATE` compared with a slow model: random tables that refer to each other and to
//! themselves in every way, random statements, and after each of them the rows of all tables.
//!
//! The model follows the manual, row by row and without indexes: a change of a table makes actions due, which
//! are done in order; constraints are checked at the end. A statement that fails in one must fail in the
//! other, and leave no effect.

use entasis::{Config, Connection, Database, ErrorKind, Value};
use entasis_testkit::random::Random;
use std::collections::VecDeque;
use std::fmt::Write;

const COLUMNS: [&str; 3] = ["k", "r", "s"];
/// Keys are initially below this.
const KEYS: i64 = 12;
/// The last table has no key, so that its rows are identified by position; nothing refers to it.
const TABLES: usize = 4;

type Row = [Option<i64>; 3];
type Tables = Vec<Vec<Row>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// `NO ACTION`: checked at the end of the statement.
    Deferred,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

const ACTIONS: [(Action, &str); 5] = [
    (Action::Deferred, "NO ACTION"),
    (Action::Restrict, "RESTRICT"),
    (Action::Cascade, "CASCADE"),
    (Action::SetNull, "SET NULL"),
    (Action::SetDefault, "SET DEFAULT"),
];

/// A foreign key that refers to the first column of `parent`.
#[derive(Debug, Clone, Copy)]
struct ForeignKey {
    child: usize,
    column: usize,
    parent: usize,
    on_delete: Action,
    on_update: Action,
}

/// What a statement does to a row.
enum Fate {
    Stays,
    Goes,
    Becomes(Row),
}

/// What a statement does to the rows of its table.
#[derive(Debug, Clone, Copy)]
enum Doing {
    Delete,
    /// `column = column + number`
    Add(usize, i64),
    /// `column = number - column`
    Mirror(usize, i64),
    /// `column = value`
    Set(usize, Option<i64>),
}

/// Selects rows.
#[derive(Debug, Clone, Copy)]
enum Condition {
    All,
    Equal(i64),
    AtLeast(i64),
    /// `k % 3 = number`
    Third(i64),
}

impl Condition {
    fn holds(self, row: &Row) -> bool {
        let Some(k) = row[0] else { return matches!(self, Condition::All) };
        match self {
            Condition::All => true,
            Condition::Equal(number) => k == number,
            Condition::AtLeast(number) => k >= number,
            Condition::Third(number) => k % 3 == number,
        }
    }

    fn sql(self) -> String {
        match self {
            Condition::All => "true".into(),
            Condition::Equal(number) => format!("k = {number}"),
            Condition::AtLeast(number) => format!("k >= {number}"),
            Condition::Third(number) => format!("k % 3 = {number}"),
        }
    }
}

impl Doing {
    fn fate(self, row: &Row) -> Fate {
        let set = |column: usize, value: Option<i64>| {
            let mut row = *row;
            row[column] = value;
            Fate::Becomes(row)
        };
        match self {
            Doing::Delete => Fate::Goes,
            Doing::Add(column, number) => set(column, row[column].map(|value| value + number)),
            Doing::Mirror(column, number) => set(column, row[column].map(|value| number - value)),
            Doing::Set(column, value) => set(column, value),
        }
    }

    fn sql(self, table: usize, condition: Condition) -> String {
        let update = |column: usize, value: String| {
            format!("UPDATE t{table} SET {} = {value} WHERE {}", COLUMNS[column], condition.sql())
        };
        match self {
            Doing::Delete => format!("DELETE FROM t{table} WHERE {}", condition.sql()),
            Doing::Add(column, number) => update(column, format!("{} + {number}", COLUMNS[column])),
            Doing::Mirror(column, number) => update(column, format!("{number} - {}", COLUMNS[column])),
            Doing::Set(column, value) => update(column, show(value)),
        }
    }
}

fn show(value: Option<i64>) -> String {
    value.map_or("NULL".into(), |value| value.to_string())
}

/// A due action, because of removed keys; for updated rows, with their new keys.
struct Due {
    key: usize,
    event: Event,
    went: Vec<i64>,
}

enum Event {
    Deleted,
    Updated(Vec<Option<i64>>),
}

/// The remaining actions and checks of a statement, by numbers of foreign keys.
#[derive(Default)]
struct Open {
    due: VecDeque<Due>,
    came: Vec<(usize, i64)>,
}

struct Model {
    /// In the order of their tables' names, as in the catalog.
    keys: Vec<ForeignKey>,
    /// The defaults of columns.
    defaults: [Option<i64>; 3],
    tables: Tables,
}

impl Model {
    fn has_key(table: usize) -> bool {
        table + 1 < TABLES
    }

    fn change(
        &self,
        tables: &mut Tables,
        table: usize,
        fate: impl Fn(&Row) -> Fate,
        open: &mut Open,
    ) -> Option<()> {
        let (mut gone, mut updated) = (Vec::new(), Vec::new());
        for row in std::mem::take(&mut tables[table]) {
            match fate(&row) {
                Fate::Stays => tables[table].push(row),
                Fate::Goes => gone.push(row),
                Fate::Becomes(new) => {
                    updated.push((row, new));
                    tables[table].push(new);
                }
            }
        }
        self.judge_key(tables, table)?;
        for (number, key) in self.keys.iter().enumerate().filter(|(_, key)| key.child == table) {
            let others = updated.iter().filter(|(old, new)| old[key.column] != new[key.column]);
            open.came.extend(others.filter_map(|(_, new)| Some((number, new[key.column]?))));
        }
        for (number, key) in self.keys.iter().enumerate().filter(|(_, key)| key.parent == table) {
            let deleted: Vec<i64> = gone.iter().filter_map(|row| row[0]).collect();
            let others = updated.iter().filter(|(old, new)| old[0] != new[0]);
            let (replaced, new) = others.filter_map(|(old, new)| Some((old[0]?, new[0]))).unzip();
            for (went, event, action) in
                [(deleted, Event::Deleted, key.on_delete), (replaced, Event::Updated(new), key.on_update)]
            {
                let refers = |row: &Row| row[key.column].is_some_and(|value| went.contains(&value));
                match action {
                    Action::Deferred => {}
                    Action::Restrict if tables[key.child].iter().any(refers) => return None,
                    Action::Restrict => {}
                    _ if went.is_empty() => {}
                    _ => open.due.push_back(Due { key: number, event, went }),
                }
            }
        }
        Some(())
    }

    fn judge_key(&self, tables: &Tables, table: usize) -> Option<()> {
        if !Model::has_key(table) {
            return Some(());
        }
        let mut keys = tables[table].iter().map(|row| row[0]).collect::<Option<Vec<i64>>>()?;
        keys.sort_unstable();
        keys.windows(2).all(|pair| pair[0] != pair[1]).then_some(())
    }

    fn follow(&self, tables: &mut Tables, due: &Due, open: &mut Open) -> Option<()> {
        let key = self.keys[due.key];
        if tables[key.child].is_empty() {
            return Some(());
        }
        let is_again = |(number, value): &(usize, i64)| *number == due.key && due.went.contains(value);
        if matches!(due.event, Event::Updated(_)) && open.came.iter().any(is_again) {
            return None;
        }
        let fate = |row: &Row| {
            let Some(at) = due.went.iter().position(|&went| row[key.column] == Some(went)) else {
                return Fate::Stays;
            };
            let value = match (&due.event, key.on_delete, key.on_update) {
                (Event::Deleted, Action::Cascade, _) => return Fate::Goes,
                (Event::Updated(new), _, Action::Cascade) => new[at],
                (Event::Deleted, Action::SetDefault, _) | (Event::Updated(_), _, Action::SetDefault) => {
                    self.defaults[key.column]
                }
                _ => None,
            };
            Doing::Set(key.column, value).fate(row)
        };
        self.change(tables, key.child, fate, open)
    }

    /// Runs the due actions, and checks constraints.
    fn finish(&self, tables: &mut Tables, open: &mut Open) -> Option<()> {
        while let Some(due) = open.due.pop_front() {
            self.follow(tables, &due, open)?;
        }
        // Not only what the statement has touched: whatever it did, every reference must have its row.
        let holds = |key: &ForeignKey| {
            let is_there = |value: i64| tables[key.parent].iter().any(|row| row[0] == Some(value));
            tables[key.child].iter().all(|row| row[key.column].is_none_or(is_there))
        };
        self.keys.iter().all(holds).then_some(())
    }

    fn run(&mut self, table: usize, doing: Doing, condition: Condition) -> Option<()> {
        let (mut tables, mut open) = (self.tables.clone(), Open::default());
        let fate = |row: &Row| if condition.holds(row) { doing.fate(row) } else { Fate::Stays };
        self.change(&mut tables, table, fate, &mut open)?;
        self.finish(&mut tables, &mut open)?;
        self.tables = tables;
        Some(())
    }

    fn insert(&mut self, table: usize, rows: &[Row]) -> Option<()> {
        let (mut tables, mut open) = (self.tables.clone(), Open::default());
        tables[table].extend(rows);
        self.judge_key(&tables, table)?;
        for (number, key) in self.keys.iter().enumerate().filter(|(_, key)| key.child == table) {
            open.came.extend(rows.iter().filter_map(|row| Some((number, row[key.column]?))));
        }
        self.finish(&mut tables, &mut open)?;
        self.tables = tables;
        Some(())
    }
}

/// Random tables, as statements and as a model.
fn tables(random: &mut Random) -> (Vec<String>, Model) {
    let defaults = [Some(0), random.chance(50).then_some(1), random.chance(50).then_some(0)];
    let mut keys = Vec::new();
    let mut statements = Vec::new();
    for table in 0..TABLES {
        let mut columns = String::new();
        for (name, default) in COLUMNS.iter().zip(defaults) {
            write!(columns, "{name} INTEGER DEFAULT {}, ", show(default)).expect("a string takes it");
        }
        let layout = *random.pick(&["sorted", "delta", "equi", "equi_ghost", "auto"]);
        let rest = match Model::has_key(table) {
            true => format!("PRIMARY KEY (k)) WITH (layout = '{layout}')"),
            false => "more INTEGER)".into(),
        };
        statements.push(format!("CREATE TABLE t{table} ({columns}{rest}"));
        for name in &COLUMNS[1..] {
            if Model::has_key(table) && random.chance(50) {
                statements.push(format!("CREATE INDEX t{table}_{name} ON t{table} ({name})"));
            }
        }
    }
    for child in 0..TABLES {
        for (column, name) in COLUMNS.iter().enumerate() {
            if !random.chance(if column == 0 { 20 } else { 60 }) {
                continue;
            }
            let parent = random.below(TABLES - 1);
            // Actions that change something, more often than not.
            let mut action =
                || ACTIONS[if random.chance(80) { 2 + random.below(3) } else { random.below(2) }];
            let ((on_delete, delete), (on_update, update)) = (action(), action());
            statements.push(format!(
                "ALTER TABLE t{child} ADD FOREIGN KEY ({name}) REFERENCES t{parent} ON DELETE {delete} ON UPDATE {update}"
            ));
            keys.push(ForeignKey { child, column, parent, on_delete, on_update });
        }
    }
    (statements, Model { keys, defaults, tables: vec![Vec::new(); TABLES] })
}

fn contents(connection: &Connection, table: usize) -> Vec<Row> {
    let rows = connection.execute(&format!("SELECT k, r, s FROM t{table}")).expect("it is there");
    let number = |value: &Value| match value {
        Value::Integer(number) => Some(*number as i64),
        _ => None,
    };
    let mut rows: Vec<Row> =
        rows.row_values().map(|row| [number(&row[0]), number(&row[1]), number(&row[2])]).collect();
    rows.sort_unstable();
    rows
}

fn statement(random: &mut Random, model: &mut Model) -> (String, Option<()>) {
    let table = random.below(TABLES);
    let key = |random: &mut Random| random.between(-2, KEYS);
    if random.chance(25) {
        let value = |random: &mut Random| random.chance(80).then(|| random.between(0, KEYS));
        let count = 1 + random.below(3);
        let rows: Vec<Row> = (0..count).map(|_| [Some(key(random)), value(random), value(random)]).collect();
        let shown = rows.iter().map(|row| format!("({})", row.map(show).join(", ")));
        let sql = format!("INSERT INTO t{table} (k, r, s) VALUES {}", shown.collect::<Vec<_>>().join(", "));
        return (sql, model.insert(table, &rows));
    }
    let column = if random.chance(70) { 0 } else { random.below(3) };
    let doing = match random.below(7) {
        0 | 1 => Doing::Delete,
        2 | 3 => Doing::Add(column, random.between(1, KEYS)),
        4 => Doing::Mirror(column, KEYS),
        _ => Doing::Set(column, random.chance(80).then(|| key(random))),
    };
    let condition = match random.below(8) {
        0 => Condition::All,
        1 => Condition::AtLeast(key(random)),
        2 => Condition::Third(random.between(0, 2)),
        _ => Condition::Equal(key(random)),
    };
    (doing.sql(table, condition), model.run(table, doing, condition))
}

fn check(seed: u64) -> [usize; 2] {
    let mut random = Random::new(seed);
    let database = Database::in_memory(Config::default()).expect("memory is there");
    let connection = database.connect();
    let (mut log, mut model) = tables(&mut random);
    for sql in &log {
        connection.execute(sql).unwrap_or_else(|error| panic!("seed {seed}: {sql}: {error}"));
    }
    // Rows without references first, so that there are rows to refer to.
    for table in 0..TABLES - 1 {
        let rows: Vec<Row> = (0..KEYS).map(|k| [Some(k), None, None]).collect();
        let sql = format!("INSERT INTO t{table} (k, r, s) SELECT i, NULL, NULL FROM range({KEYS}) r(i)");
        let expected = model.insert(table, &rows);
        assert_eq!(connection.execute(&sql).is_ok(), expected.is_some(), "seed {seed}: {sql}");
        log.push(sql);
    }
    let mut counts = [0, 0];
    for _ in 0..60 {
        let (sql, expected) = statement(&mut random, &mut model);
        let found = connection.execute(&sql);
        log.push(sql);
        let script = || format!("seed {seed}:\n{};", log.join(";\n"));
        match (&found, expected) {
            (Ok(_), Some(())) => counts[0] += 1,
            (Err(error), None) if error.kind() == ErrorKind::Constraint => counts[1] += 1,
            _ => panic!("{}\ngave {found:?}, expected {expected:?}", script()),
        }
        for (table, rows) in model.tables.iter_mut().enumerate() {
            rows.sort_unstable();
            assert_eq!(&contents(&connection, table), rows, "{}\nin table t{table}", script());
        }
    }
    counts
}

#[test]
fn actions_are_those_of_a_slow_model() {
    let seeds = match std::env::var("ENTASIS_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..60,
    };
    let is_single = seeds.clone().count() == 1;
    let mut done = [0, 0];
    for seed in seeds {
        let counts = check(seed);
        done = [done[0] + counts[0], done[1] + counts[1]];
    }
    assert!(is_single || done.iter().all(|&count| count > 100), "{done:?} statements succeeded and failed");
}
