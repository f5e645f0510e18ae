//! Statements that read: a row, a group, a range, a table, several tables at once, by all kinds of queries.

use super::anomaly::{Anomaly, Violation};
use super::history::{Effect, Predicate, Row, TableId};
use super::session::{Request, Session, Stop};
use super::tables::{CHILD, COLUMNS, GROUPS, PARENT, TABLES};
use entasis::{DataType, Rows, Value};

impl Session<'_> {
    /// Runs one of them.
    pub(crate) fn read(&mut self) -> Result<(), Stop> {
        let table = self.some_table();
        // Within a transaction all tables are of one moment anyway.
        let kinds = if self.open.is_some() || self.common.has("several") { 20 } else { 13 };
        match self.random.below(kinds) {
            0..=6 => self.read_key(table),
            7..=9 => self.read_group(table).map(drop),
            10..=11 => self.read_keys(table),
            12 => self.read_table(table),
            13..=14 => self.read_keys_of_several(),
            15..=17 => self.read_several(),
            18 => self.read_references(),
            _ => self.read_joined(),
        }
    }

    /// A table, or the view of it.
    fn source(&mut self, table: TableId) -> String {
        let name = TABLES[table].name;
        if self.random.chance(25) { format!("{name}_view") } else { name.into() }
    }

    pub(crate) fn read_key(&mut self, table: TableId) -> Result<(), Stop> {
        let (key, source) = (self.some_key(table), self.source(table));
        let mut request = Request::new(format!("SELECT {COLUMNS} FROM {source} WHERE k = ?"));
        match self.random.chance(70) {
            true => request.parameters.push((Value::Integer(key.into()), DataType::Int64)),
            false => request.sql = request.sql.replace('?', &key.to_string()),
        }
        self.run(request, |session, rows| session.saw(table, Predicate::Key(key), rows)).map(drop)
    }

    /// The rows of a group, and the group.
    pub(crate) fn read_group(&mut self, table: TableId) -> Result<(i64, Vec<Row>), Stop> {
        let (group, source) = (self.random.between(0, GROUPS - 1), self.source(table));
        let request = Request::new(format!("SELECT {COLUMNS} FROM {source} WHERE g = {group}"));
        let mut found = Vec::new();
        self.run(request, |session, rows| {
            found = session.rows_of(rows, 0)?;
            session.saw(table, Predicate::Group(group), rows)
        })?;
        Ok((group, found))
    }

    fn read_keys(&mut self, table: TableId) -> Result<(), Stop> {
        let (low, source) = (self.some_key(table), self.source(table));
        let high = low + self.random.between(0, 30);
        let order = if self.random.chance(30) { " ORDER BY k" } else { "" };
        let sql = format!("SELECT {COLUMNS} FROM {source} WHERE k BETWEEN {low} AND {high}{order}");
        self.run(Request::new(sql), |session, rows| session.saw(table, Predicate::Keys(low, high), rows))
            .map(drop)
    }

    /// All rows of a table. Their keys are known afterwards.
    pub(crate) fn read_table(&mut self, table: TableId) -> Result<(), Stop> {
        let request = Request::new(format!("SELECT {COLUMNS} FROM {}", self.source(table)));
        self.run(request, |session, rows| {
            session.known[table] = session.rows_of(rows, 0)?.iter().map(|row| row.key).collect();
            session.saw(table, Predicate::All, rows)
        })
        .map(drop)
    }

    /// Single rows of several tables, as scalar subqueries.
    fn read_keys_of_several(&mut self) -> Result<(), Stop> {
        let asked: Vec<(TableId, i64)> = (0..3)
            .map(|_| {
                // A scalar subquery returns one row, so the key must be unique.
                let hot = self.some_table();
                let table = if TABLES[hot].has_unique_key {
                    hot
                } else {
                    *self.random.pick(&[0, 1, 3, PARENT, CHILD])
                };
                (table, self.some_key(table))
            })
            .collect();
        let scalar = |&(table, key): &(TableId, i64)| {
            format!(
                "(SELECT k || ';' || g || ';' || coalesce(u || '', '') || ';' || coalesce(r || '', '') || ';;' || last || ';' || n \
                 || ';' || v FROM {} WHERE k = {key})",
                TABLES[table].name
            )
        };
        let sql = format!("SELECT {}", asked.iter().map(scalar).collect::<Vec<_>>().join(", "));
        self.run(Request::new(sql), |session, rows| {
            let values = rows.row_values().next().unwrap_or_default();
            let mut effects = Vec::new();
            for ((table, key), value) in asked.into_iter().zip(values) {
                let row = match value {
                    Value::Text(text) => Some(split(&text)),
                    _ => None,
                };
                effects.extend(session.saw_values(
                    table,
                    Predicate::Key(key),
                    row.iter().map(Vec::as_slice),
                )?);
            }
            Ok(effects)
        })
        .map(drop)
    }

    /// All rows of several tables, in one statement.
    fn read_several(&mut self) -> Result<(), Stop> {
        let tables = self.several();
        let union = self.union(&tables);
        let sql = match self.random.below(3) {
            0 => union,
            1 => format!("WITH everything AS ({union}) SELECT * FROM everything"),
            _ => format!("SELECT * FROM ({union}) x"),
        };
        self.run(Request::new(sql), |session, rows| session.saw_several(&tables, rows, 0)).map(drop)
    }

    /// Some tables.
    pub(crate) fn several(&mut self) -> Vec<TableId> {
        if self.random.chance(50) {
            return self.common.hot().to_vec();
        }
        let first = self.some_table();
        let count = if self.random.chance(30) { TABLES.len() } else { self.random.between(2, 3) as usize };
        (first..first + count).map(|table| table % TABLES.len()).collect()
    }

    /// A query for the rows of several tables, with the number of the table first.
    pub(crate) fn union(&mut self, tables: &[TableId]) -> String {
        let part = |&table: &TableId| format!("SELECT {table} AS t, {COLUMNS} FROM {}", self.source(table));
        tables.iter().map(part).collect::<Vec<_>>().join(" UNION ALL ")
    }

    /// What such a query returned, with `first` as its first column.
    pub(crate) fn saw_several(
        &mut self,
        tables: &[TableId],
        rows: &Rows,
        first: usize,
    ) -> Result<Vec<Effect>, Violation> {
        let values: Vec<Vec<Value>> = rows.row_values().collect();
        let mut effects = Vec::new();
        for &table in tables {
            let number = Value::Integer(table as i128);
            let own =
                values.iter().filter(|values| values[first] == number).map(|values| &values[first + 1..]);
            effects.extend(self.saw_values(table, Predicate::All, own)?);
        }
        Ok(effects)
    }

    /// All rows that refer to others, with the rows to which they refer.
    fn read_references(&mut self) -> Result<(), Stop> {
        let sides = [("c", TABLES[CHILD].name), ("p", TABLES[PARENT].name)];
        let columns = sides.map(|(alias, _)| qualified(alias)).join(", ");
        let sql = format!("SELECT {columns} FROM q c LEFT JOIN p ON p.k = c.r");
        self.run(Request::new(sql), |session, rows| {
            let values: Vec<Vec<Value>> = rows.row_values().collect();
            if let Some(dangling) = values.iter().find(|row| row[3] != Value::Null && row[8] == Value::Null) {
                let text = format!("a row refers to nothing: {:?}", &dangling[..8]);
                return Err(Violation::new(Anomaly::DanglingReference, text));
            }
            let mut effects =
                session.saw_values(CHILD, Predicate::All, values.iter().map(|row| &row[..8]))?;
            let parents = values.iter().map(|row| &row[8..]).filter(|row| row[0] != Value::Null);
            effects.extend(session.saw_values(PARENT, Predicate::Some, parents)?);
            Ok(effects)
        })
        .map(drop)
    }

    /// All rows of two tables, joined by their keys.
    fn read_joined(&mut self) -> Result<(), Stop> {
        // Each row occurs once, as keys are unique in both.
        let mut tables = [1, 3, PARENT, CHILD];
        let one = tables[self.random.below(4)];
        tables.rotate_left(1);
        let two = *tables.iter().find(|table| **table != one).expect("there are others");
        let sql = format!(
            "SELECT {}, {} FROM {} x FULL JOIN {} y ON x.k = y.k",
            qualified("x"),
            qualified("y"),
            self.source(one),
            self.source(two)
        );
        self.run(Request::new(sql), |session, rows| {
            let values: Vec<Vec<Value>> = rows.row_values().collect();
            let mut effects = Vec::new();
            for (table, columns) in [(one, 0..8), (two, 8..16)] {
                let rows = values.iter().map(|row| &row[columns.clone()]).filter(|row| row[0] != Value::Null);
                effects.extend(session.saw_values(table, Predicate::All, rows)?);
            }
            Ok(effects)
        })
        .map(drop)
    }
}

/// [`COLUMNS`] of a table in a join.
fn qualified(alias: &str) -> String {
    COLUMNS.split(", ").map(|column| format!("{alias}.{column}")).collect::<Vec<_>>().join(", ")
}

/// The values of [`COLUMNS`] from a text in which they are separated by semicolons.
fn split(text: &str) -> Vec<Value> {
    let last = COLUMNS.split(", ").count() - 1;
    let value = |(column, part): (usize, &str)| match part.parse() {
        Ok(number) if column < last => Value::Integer(number),
        _ if part.is_empty() => Value::Null,
        _ => Value::Text(part.into()),
    };
    text.split(';').enumerate().map(value).collect()
}
