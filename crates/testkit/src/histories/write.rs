//! Statements that write one or a few rows, and return the resulting versions by `RETURNING`.

use super::anomaly::{Anomaly, Violation};
use super::history::{Effect, Predicate, Row, TableId};
use super::session::{Request, Session, Stop};
use super::tables::{CHILD, COLUMNS, GROUPS, KEYED, KEYS, PARENT, TABLES, UNIQUE};
use entasis::{DataType, Rows, Value};
use std::ops::Range;

impl Session<'_> {
    /// Runs one of them.
    pub(crate) fn write(&mut self) -> Result<(), Stop> {
        let table = self.some_table();
        match self.random.below(20) {
            0..=4 => self.insert(table),
            5..=9 => self.append(table),
            10..=11 => self.move_key(table),
            12..=13 => self.delete(table),
            14..=16 => self.upsert(table),
            17 => self.merge(table),
            18 => self.insert_many(table),
            _ => self.delete_keys(table),
        }
    }

    /// A new row with a number of its own.
    fn new_row(&mut self, table: TableId) -> (Row, Range<u64>) {
        let numbers = self.common.draw(1);
        let rules = &TABLES[table];
        let key = if rules.has_fresh_keys { numbers.start as i64 } else { self.random.between(0, KEYS - 1) };
        let row = Row {
            key,
            group: self.random.between(0, GROUPS - 1),
            unique: self.some_unique(table),
            refers: self.some_parent(table),
            list: vec![numbers.start],
        };
        (row, numbers)
    }

    fn some_unique(&mut self, table: TableId) -> Option<i64> {
        if !TABLES[table].has_unique || !self.common.has("unique") || self.random.chance(40) {
            return None;
        }
        // A number that is taken already, or that others also try to use.
        let number = self.random.between(0, UNIQUE - 1);
        Some(if self.random.chance(50) { number } else { UNIQUE + self.common.hot_number() })
    }

    fn some_parent(&mut self, table: TableId) -> Option<i64> {
        let parent = TABLES[table].refers_to.filter(|_| self.common.has("child"))?;
        self.random.chance(80).then(|| self.some_key(parent))
    }

    fn insert(&mut self, table: TableId) -> Result<(), Stop> {
        let (row, numbers) = self.new_row(table);
        let number = numbers.start;
        let rules = &TABLES[table];
        let may_be_refused = !rules.has_fresh_keys || row.unique.is_some() || row.refers.is_some();
        let parameters = [row.key, row.group, number as i64, 1]
            .map(|value| (Value::Integer(value.into()), DataType::Int64));
        let optional = [row.unique, row.refers]
            .map(|value| value.map_or(Value::Null, |value| Value::Integer(value.into())));
        let request = match self.random.chance(60) {
            true => Request {
                sql: format!(
                    "INSERT INTO {} (k, g, last, n, v, u, r) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    rules.name
                ),
                parameters: parameters
                    .into_iter()
                    .chain([(Value::Text(number.to_string().into()), DataType::Varchar)])
                    .chain(optional.map(|value| (value, DataType::Int64)))
                    .collect(),
                numbers,
                may_be_refused,
            },
            false => {
                Request { sql: self.insertion(table, &row), parameters: Vec::new(), numbers, may_be_refused }
            }
        };
        self.run(request, |session, rows| {
            counted(rows, 1)?;
            Ok(session.inserted(table, vec![row]))
        })
        .map(drop)
    }

    /// The text of a statement that inserts a row.
    fn insertion(&self, table: TableId, row: &Row) -> String {
        let null = |value: Option<i64>| value.map_or("NULL".into(), |value| value.to_string());
        format!(
            "INSERT INTO {} (k, g, u, r, last, n, v) VALUES ({}, {}, {}, {}, {number}, 1, '{number}')",
            TABLES[table].name,
            row.key,
            row.group,
            null(row.unique),
            null(row.refers),
            number = row.list[0]
        )
    }

    /// The effects of new rows.
    pub(crate) fn inserted(&mut self, table: TableId, rows: Vec<Row>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for row in rows {
            if TABLES[table].has_unique_key {
                effects.push(Effect::Sought { table, predicate: Predicate::Key(row.key) });
            }
            self.known[table].push(row.key);
            effects.push(Effect::Put { table, version: self.note(table, row) });
        }
        effects
    }

    pub(crate) fn insert_many(&mut self, table: TableId) -> Result<(), Stop> {
        let count = self.random.between(2, 20);
        let numbers = self.common.draw(count as u64);
        let first = numbers.start;
        let sql = format!(
            "INSERT INTO {} (k, g, last, n, v) SELECT {first} + i, i % {GROUPS}, {first} + i, 1, CAST({first} + i AS VARCHAR) \
             FROM generate_series(0, {}) s(i)",
            TABLES[table].name,
            count - 1
        );
        let row = |number: u64| Row {
            key: number as i64,
            group: (number - first) as i64 % GROUPS,
            unique: None,
            refers: None,
            list: vec![number],
        };
        let rows: Vec<Row> = numbers.clone().map(row).collect();
        self.run(Request { sql, numbers, ..Request::default() }, |session, result| {
            counted(result, count as u64)?;
            Ok(session.inserted(table, rows))
        })
        .map(drop)
    }

    /// The assignments that append a number to the list of a row.
    pub(crate) fn appending(number: u64) -> String {
        format!("v = v || ',{number}', last = {number}, n = n + 1")
    }

    /// Appends to the row with a key, and sometimes changes other columns.
    fn append(&mut self, table: TableId) -> Result<(), Stop> {
        let (key, numbers) = (self.some_key(table), self.common.draw(1));
        let mut set = Session::appending(numbers.start);
        let rules = &TABLES[table];
        let mut may_be_refused = false;
        if self.random.chance(30) {
            set += &format!(", g = {}", self.random.between(0, GROUPS - 1));
        }
        if rules.has_unique && self.random.chance(50) {
            may_be_refused = true;
            set += &self.some_unique(table).map_or(", u = NULL".into(), |unique| format!(", u = {unique}"));
        }
        if rules.refers_to.is_some() && self.random.chance(50) {
            may_be_refused = true;
            set += &self.some_parent(table).map_or(", r = NULL".into(), |parent| format!(", r = {parent}"));
        }
        let sql = format!("UPDATE {} SET {set} WHERE k = {key} RETURNING {COLUMNS}", rules.name);
        let request = Request { sql, numbers, may_be_refused, ..Request::default() };
        self.run(request, |session, rows| session.put_all(table, &[key], rows)).map(drop)
    }

    /// The effects of a statement that found rows by keys and returned their new versions.
    fn put_all(&mut self, table: TableId, keys: &[i64], rows: &Rows) -> Result<Vec<Effect>, Violation> {
        let sought = keys.iter().map(|key| Effect::Sought { table, predicate: Predicate::Key(*key) });
        let mut effects: Vec<Effect> = sought.collect();
        for row in self.rows_of(rows, 0)? {
            effects.push(Effect::Put { table, version: self.note(table, row) });
        }
        Ok(effects)
    }

    fn move_key(&mut self, table: TableId) -> Result<(), Stop> {
        if table == KEYED {
            return self.stamp();
        }
        let (key, numbers) = (self.some_key(table), self.common.draw(1));
        let rules = &TABLES[table];
        let (to, may_be_refused) = match rules.has_fresh_keys {
            true => (numbers.start as i64, false),
            false => (self.random.between(0, KEYS - 1), true),
        };
        let set = Session::appending(numbers.start);
        let sql = format!("UPDATE {} SET k = {to}, {set} WHERE k = {key} RETURNING {COLUMNS}", rules.name);
        let request = Request { sql, numbers, may_be_refused, ..Request::default() };
        self.run(request, |session, rows| {
            session.known[table].extend((rows.rows() > 0).then_some(to));
            let keys = if rows.rows() > 0 && rules.has_unique_key { vec![key, to] } else { vec![key] };
            session.put_all(table, &keys, rows)
        })
        .map(drop)
    }

    fn delete(&mut self, table: TableId) -> Result<(), Stop> {
        let key = self.some_key(table);
        self.delete_where(table, Predicate::Key(key), &format!("k = {key}"))
    }

    fn delete_keys(&mut self, table: TableId) -> Result<(), Stop> {
        let low = self.some_key(table);
        let high = low + self.random.between(1, 6);
        self.delete_where(table, Predicate::Keys(low, high), &format!("k BETWEEN {low} AND {high}"))
    }

    fn delete_where(&mut self, table: TableId, predicate: Predicate, condition: &str) -> Result<(), Stop> {
        let rules = &TABLES[table];
        let sql = format!("DELETE FROM {} WHERE {condition} RETURNING {COLUMNS}", rules.name);
        let request = Request { sql, may_be_refused: rules.is_referred_to, ..Request::default() };
        self.run(request, |session, rows| {
            let mut effects = vec![Effect::Sought { table, predicate }];
            for row in session.rows_of(rows, 0)? {
                effects.push(Effect::Delete { table, version: session.note(table, row) });
            }
            Ok(effects)
        })
        .map(drop)
    }

    /// Inserts a row, or appends to the one with its key.
    fn upsert(&mut self, table: TableId) -> Result<(), Stop> {
        if TABLES[table].has_fresh_keys {
            return self.append(table);
        }
        let (row, numbers) = self.new_row(table);
        let (name, number) = (TABLES[table].name, numbers.start);
        let sql = format!(
            "{} ON CONFLICT (k) DO UPDATE SET v = {name}.v || ',{number}', last = excluded.last, n = {name}.n + 1 RETURNING {COLUMNS}",
            self.insertion(table, &row)
        );
        let may_be_refused = row.unique.is_some() || row.refers.is_some();
        let request = Request { sql, numbers, may_be_refused, ..Request::default() };
        self.run(request, |session, rows| session.put_all(table, &[row.key], rows)).map(drop)
    }

    /// Inserts two rows, or appends to those with their keys.
    fn merge(&mut self, table: TableId) -> Result<(), Stop> {
        if TABLES[table].has_fresh_keys {
            return self.append(table);
        }
        let one = self.random.between(0, KEYS - 2);
        let (two, numbers) = (self.random.between(one + 1, KEYS - 1), self.common.draw(2));
        let number = numbers.start;
        let sql = format!(
            "MERGE INTO {} AS t USING (VALUES ({one}, {number}), ({two}, {})) AS s(id, number) ON t.k = s.id \
             WHEN MATCHED THEN UPDATE SET v = t.v || ',' || s.number, last = s.number, n = t.n + 1 \
             WHEN NOT MATCHED THEN INSERT (k, g, last, n, v) VALUES (s.id, 0, s.number, 1, CAST(s.number AS VARCHAR)) \
             RETURNING {}",
            TABLES[table].name,
            number + 1,
            COLUMNS.split(", ").map(|column| format!("t.{column}")).collect::<Vec<_>>().join(", ")
        );
        let request = Request { sql, numbers, ..Request::default() };
        self.run(request, |session, rows| session.put_all(table, &[one, two], rows)).map(drop)
    }

    /// Overwrites the stamp of a row, by key, without reading.
    pub(crate) fn stamp(&mut self) -> Result<(), Stop> {
        let (table, key, numbers) = (KEYED, self.some_key(KEYED), self.common.draw(1));
        let stamp = numbers.start;
        let sql = format!("UPDATE {} SET w = ? WHERE k = ?", TABLES[table].name);
        let parameters =
            [stamp as i64, key].map(|value| (Value::Integer(value.into()), DataType::Int64)).to_vec();
        let request = Request { sql, parameters, numbers, ..Request::default() };
        self.run(request, |_, rows| {
            Ok(match rows.changed() {
                Some(1) => vec![Effect::Stamp { table, key, stamp }],
                _ => {
                    counted(rows, 0)?;
                    vec![Effect::Sought { table, predicate: Predicate::Key(key) }]
                }
            })
        })
        .map(drop)
    }

    /// Deletes a row by key, without reading.
    pub(crate) fn delete_by_key(&mut self) -> Result<(), Stop> {
        let (table, key) = (KEYED, self.some_key(KEYED));
        let sql = format!("DELETE FROM {} WHERE k = ?", TABLES[table].name);
        let parameters = vec![(Value::Integer(key.into()), DataType::Int64)];
        self.run(Request { sql, parameters, ..Request::default() }, |_, rows| {
            Ok(match rows.changed() {
                Some(1) => vec![Effect::DeleteKey { table, key }],
                _ => {
                    counted(rows, 0)?;
                    vec![Effect::Sought { table, predicate: Predicate::Key(key) }]
                }
            })
        })
        .map(drop)
    }

    /// Runs statements that name rows by key, which run without a plan.
    pub(crate) fn keyed(&mut self) -> Result<(), Stop> {
        match self.random.below(10) {
            0..=4 => self.read_key(KEYED),
            5..=6 => self.insert(KEYED),
            7..=8 => self.stamp(),
            // Within a transaction, a blind delete would not know what it deletes.
            _ if self.open.is_none() => self.delete_by_key(),
            _ => self.append(KEYED),
        }
    }

    /// Writes a child of one row, or of none, and its parent in one transaction.
    pub(crate) fn write_family(&mut self) -> Result<(), Stop> {
        self.upsert(PARENT)?;
        self.upsert(CHILD)
    }
}

/// Checks that a statement has changed this many rows.
pub(crate) fn counted(rows: &Rows, expected: u64) -> Result<(), Violation> {
    match rows.changed() {
        Some(changed) if changed == expected => Ok(()),
        changed => {
            let text = format!("{expected} rows should have been changed, it says {changed:?}");
            Err(Violation::new(Anomaly::WrongCount, text))
        }
    }
}
