//! After any accepted statement every constraint holds, and after a refused one the rows are as before.
//!
//! Random tables with NOT NULL, CHECK, UNIQUE, PRIMARY KEY and foreign keys with every action (of one column
//! and several, to other tables and to their own), and random statements of every kind that changes rows or
//! declarations. The constraints are judged here, row by row, from what the tables contain; which rows a
//! statement should have left is not known. For rows that an `INSERT` gives one by one it is: one is refused
//! exactly if it violates something, before it is looked whether another row has its key.

use entasis::{Config, Connection, Database, ErrorKind, Value};
use entasis_testkit::random::Random;
use std::fmt::Write;

const COLUMNS: [&str; 4] = ["a", "b", "c", "d"];
const TABLES: usize = 3;
/// Values are below this.
const VALUES: i64 = 7;
const ACTIONS: [&str; 5] = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"];

type Row = Vec<Option<i64>>;

/// A CHECK: its text, and whether a row satisfies it.
type Check = (&'static str, fn(&[Option<i64>]) -> bool);

/// A condition that is not FALSE.
fn may(row: &[Option<i64>], columns: [usize; 2], holds: fn(i64, i64) -> bool) -> bool {
    match (row[columns[0]], row[columns[1]]) {
        (Some(a), Some(b)) => holds(a, b),
        _ => true,
    }
}

const CHECKS: [Check; 5] = [
    ("d < 6", |row| may(row, [3, 3], |d, _| d < 6)),
    ("c <> 3", |row| may(row, [2, 2], |c, _| c != 3)),
    ("c + d <> 4", |row| may(row, [2, 3], |c, d| c + d != 4)),
    ("b IS NOT NULL OR c IS NULL", |row| row[1].is_some() || row[2].is_none()),
    ("a >= 0", |row| may(row, [0, 0], |a, _| a >= 0)),
];

#[derive(Debug)]
struct ForeignKey {
    columns: Vec<usize>,
    parent: usize,
    references: Vec<usize>,
}

#[derive(Default)]
struct Spec {
    not_null: Vec<usize>,
    checks: Vec<usize>,
    keys: Vec<Vec<usize>>,
    foreign_keys: Vec<ForeignKey>,
}

fn names(columns: &[usize]) -> String {
    columns.iter().map(|&column| COLUMNS[column]).collect::<Vec<_>>().join(", ")
}

/// The tables, and the statements that make them.
fn declare(random: &mut Random) -> (Vec<Spec>, Vec<String>) {
    let (mut specs, mut statements): (Vec<Spec>, Vec<String>) = (Vec::new(), Vec::new());
    for table in 0..TABLES {
        let mut spec = Spec::default();
        let primary = if random.chance(50) { vec![0] } else { vec![0, 1] };
        let mut parts: Vec<String> = Vec::new();
        for (column, name) in COLUMNS.iter().enumerate() {
            let mut part = format!("{name} INTEGER");
            if random.chance(70) {
                write!(part, " DEFAULT {}", random.between(0, VALUES)).expect("a string takes it");
            }
            if primary.contains(&column) || random.chance(15) {
                spec.not_null.push(column);
                if !primary.contains(&column) {
                    part += " NOT NULL";
                }
            }
            parts.push(part);
        }
        parts.push(format!("PRIMARY KEY ({})", names(&primary)));
        spec.keys.push(primary);
        if random.chance(40) {
            let unique = random.pick(&[vec![2], vec![1, 2], vec![2, 3]]).clone();
            parts.push(format!("UNIQUE ({})", names(&unique)));
            spec.keys.push(unique);
        }
        for (check, (sql, ..)) in CHECKS.iter().enumerate() {
            if random.chance(25) {
                parts.push(format!("CHECK ({sql})"));
                spec.checks.push(check);
            }
        }
        statements.push(format!("CREATE TABLE t{table} ({})", parts.join(", ")));
        if random.chance(40) {
            statements
                .push(format!("CREATE INDEX i{table} ON t{table} ({})", random.pick(&["c", "d", "c, d"])));
        }
        specs.push(spec);
    }
    for table in 0..TABLES {
        for _ in 0..random.below(3) {
            let parent = random.below(TABLES);
            let references = specs[parent].keys[random.below(specs[parent].keys.len())].clone();
            let columns = match references.len() {
                1 => vec![1 + random.below(3)],
                _ => random.pick(&[vec![1, 2], vec![2, 3], vec![3, 1]]).clone(),
            };
            statements.push(format!(
                "ALTER TABLE t{table} ADD FOREIGN KEY ({}) REFERENCES t{parent} ({}) ON DELETE {} ON UPDATE {}",
                names(&columns),
                names(&references),
                random.pick(&ACTIONS),
                random.pick(&ACTIONS)
            ));
            specs[table].foreign_keys.push(ForeignKey { columns, parent, references });
        }
    }
    (specs, statements)
}

/// The values of a row in some columns; `None` if one is NULL.
fn key(row: &[Option<i64>], columns: &[usize]) -> Option<Vec<i64>> {
    columns.iter().map(|&column| row[column]).collect()
}

/// What a row violates by itself.
fn flaw(spec: &Spec, row: &[Option<i64>]) -> Option<String> {
    let null = spec.not_null.iter().find(|&&column| row[column].is_none());
    let check = spec.checks.iter().find(|&&check| !CHECKS[check].1(row));
    null.map(|&column| format!("NULL in {}", COLUMNS[column]))
        .or_else(|| check.map(|&check| format!("CHECK ({})", CHECKS[check].0)))
}

/// What the rows of all tables violate.
fn flaws(specs: &[Spec], tables: &[Vec<Row>]) -> Option<String> {
    for (table, (spec, rows)) in specs.iter().zip(tables).enumerate() {
        if let Some(flaw) = rows.iter().find_map(|row| flaw(spec, row)) {
            return Some(format!("{flaw} of t{table}"));
        }
        for columns in &spec.keys {
            let mut keys: Vec<Vec<i64>> = rows.iter().filter_map(|row| key(row, columns)).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                return Some(format!("two rows of t{table} have the same ({})", names(columns)));
            }
        }
        for foreign in &spec.foreign_keys {
            let has = |sought: &Vec<i64>| {
                tables[foreign.parent]
                    .iter()
                    .any(|row| key(row, &foreign.references).as_ref() == Some(sought))
            };
            if let Some(lost) = rows.iter().filter_map(|row| key(row, &foreign.columns)).find(|key| !has(key))
            {
                return Some(format!("t{table} refers to {lost:?} by {foreign:?}"));
            }
        }
    }
    None
}

fn contents(connection: &Connection) -> Vec<Vec<Row>> {
    let number = |value: &Value| match value {
        Value::Integer(number) => Some(*number as i64),
        _ => None,
    };
    let of = |table: usize| {
        let rows = connection.execute(&format!("SELECT a, b, c, d FROM t{table}")).expect("it is there");
        let mut rows: Vec<Row> = rows.row_values().map(|row| row.iter().map(number).collect()).collect();
        rows.sort_unstable();
        rows
    };
    (0..TABLES).map(of).collect()
}

fn shown(value: Option<i64>) -> String {
    value.map_or("NULL".into(), |value| value.to_string())
}

fn value(random: &mut Random) -> Option<i64> {
    random.chance(80).then(|| random.between(0, VALUES))
}

/// A statement; for an INSERT that may skip rows the row that it proposes.
fn statement(random: &mut Random, specs: &[Spec], file: &str) -> (String, Option<(usize, Row)>) {
    let table = random.below(TABLES);
    let other = random.below(TABLES);
    let row = |random: &mut Random| -> Row { (0..4).map(|_| value(random)).collect() };
    let listed =
        |row: &Row| format!("({})", row.iter().map(|value| shown(*value)).collect::<Vec<_>>().join(", "));
    let column = |random: &mut Random| COLUMNS[random.below(4)];
    let set = |random: &mut Random| {
        let column = COLUMNS[random.below(4)];
        match random.below(4) {
            0 => format!("{column} = {column} + 1"),
            1 => format!("{column} = {}", COLUMNS[random.below(4)]),
            2 => format!("{column} = DEFAULT"),
            _ => format!("{column} = {}", shown(value(random))),
        }
    };
    let condition = |random: &mut Random| match random.below(4) {
        0 => "true".to_owned(),
        1 => format!("{} = {}", COLUMNS[random.below(4)], random.between(0, VALUES)),
        2 => format!("a = {}", random.between(0, VALUES)),
        _ => format!("b >= {}", random.between(0, VALUES)),
    };
    let primary = &specs[table].keys[random.below(specs[table].keys.len())];
    let sql = match random.below(16) {
        0 | 1 => {
            let rows: Vec<Row> = (0..=random.below(2)).map(|_| row(random)).collect();
            format!("INSERT INTO t{table} VALUES {}", rows.iter().map(listed).collect::<Vec<_>>().join(", "))
        }
        2 => format!(
            "INSERT INTO t{table} SELECT a + {}, b, c, d FROM t{other} WHERE {}",
            random.between(0, 4),
            condition(random)
        ),
        3 | 4 => {
            let row = row(random);
            let what = match random.below(4) {
                0 => "ON CONFLICT DO NOTHING".to_owned(),
                1 => format!("ON CONFLICT ({}) DO NOTHING", names(primary)),
                2 => format!("ON CONFLICT ({}) DO UPDATE SET {}", names(primary), set(random)),
                _ => format!(
                    "ON CONFLICT ({}) DO UPDATE SET d = excluded.d WHERE excluded.d > 2",
                    names(primary)
                ),
            };
            return (format!("INSERT INTO t{table} VALUES {} {what}", listed(&row)), Some((table, row)));
        }
        5 => format!("INSERT INTO t{table} (a, b) SELECT b, a FROM t{other} ON CONFLICT DO NOTHING"),
        6 => format!("INSERT OR IGNORE INTO t{table} SELECT * FROM t{other}"),
        7 | 8 => format!("UPDATE t{table} SET {} WHERE {}", set(random), condition(random)),
        9 => format!(
            "UPDATE t{table} SET {0} = o.{0} FROM t{other} AS o WHERE t{table}.a = o.{1}",
            column(random),
            column(random)
        ),
        10 | 11 => format!("DELETE FROM t{table} WHERE {}", condition(random)),
        12 => format!(
            "MERGE INTO t{table} AS t USING t{other} AS o ON t.a = o.{} WHEN MATCHED AND o.d > 3 THEN DELETE \
             WHEN MATCHED THEN UPDATE SET {} = o.{} WHEN NOT MATCHED THEN INSERT VALUES (o.a, o.b, o.d, o.c)",
            column(random),
            column(random),
            column(random)
        ),
        13 => format!("TRUNCATE t{table}"),
        14 => format!("COPY t{table} FROM '{file}'"),
        // The old values break some of these; those that are added are dropped again.
        _ => match random.below(4) {
            0 => format!(
                "ALTER TABLE t{table} ALTER COLUMN {} TYPE INTEGER USING {} + 1",
                column(random),
                column(random)
            ),
            1 => format!(
                "ALTER TABLE t{table} ALTER COLUMN {} SET NOT NULL; ALTER TABLE t{table} ALTER COLUMN c DROP NOT NULL",
                "c"
            ),
            2 => format!(
                "ALTER TABLE t{table} ADD COLUMN e INTEGER CHECK (c < 5); ALTER TABLE t{table} DROP COLUMN e CASCADE"
            ),
            _ => format!(
                "ALTER TABLE t{table} ADD CONSTRAINT x UNIQUE (d); ALTER TABLE t{table} DROP CONSTRAINT x"
            ),
        },
    };
    (sql, None)
}

fn check(seed: u64, file: &str, counts: &mut [usize; 3]) {
    let mut random = Random::new(seed);
    let connection = Database::in_memory(Config::default()).expect("memory is there").connect();
    let (mut specs, mut log) = declare(&mut random);
    for sql in &log {
        connection.execute(sql).unwrap_or_else(|error| panic!("seed {seed}: {sql}: {error}"));
    }
    let mut before = contents(&connection);
    for _ in 0..70 {
        let (sql, proposed) = statement(&mut random, &specs, file);
        let found = connection.execute(&sql);
        log.push(sql.clone());
        let script = || format!("seed {seed}:\n{};", log.join(";\n"));
        let after = contents(&connection);
        if let Some(flaw) = flaws(&specs, &after) {
            panic!("{}\nwas accepted ({found:?}), but {flaw}", script());
        }
        match &found {
            Ok(_) => {
                counts[0] += 1;
                if sql.contains("DROP NOT NULL") {
                    for spec in specs
                        .iter_mut()
                        .enumerate()
                        .filter(|(table, _)| sql.contains(&format!("TABLE t{table} ")))
                    {
                        spec.1.not_null.retain(|&column| column != 2);
                    }
                }
            }
            Err(error) => {
                let kinds = [ErrorKind::Constraint, ErrorKind::Input, ErrorKind::NotSupported];
                assert!(kinds.contains(&error.kind()), "{}\n{error}", script());
                counts[1] += 1;
                assert_eq!(after, before, "{}\nfailed, but has changed rows", script());
            }
        }
        if let Some((table, row)) = proposed
            && let Some(flaw) = flaw(&specs[table], &row)
        {
            counts[2] += 1;
            assert!(found.is_err(), "{}\nproposes a row with {flaw}", script());
        }
        before = after;
    }
}

#[test]
fn every_constraint_holds_after_every_accepted_statement() {
    let directory = std::env::temp_dir().join(format!("entasis-constraints-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    let file = directory.join("rows.csv");
    std::fs::write(&file, "a,b,c,d\n1,2,,4\n5,1,2,2\n6,6,6,1\n").expect("a file");
    let seeds = match std::env::var("ENTASIS_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..80,
    };
    let is_single = seeds.clone().count() == 1;
    let mut counts = [0; 3];
    for seed in seeds {
        check(seed, &file.display().to_string(), &mut counts);
    }
    std::fs::remove_dir_all(&directory).expect("it was made");
    assert!(is_single || counts.iter().all(|&count| count > 50), "accepted, refused, proposed: {counts:?}");
}
