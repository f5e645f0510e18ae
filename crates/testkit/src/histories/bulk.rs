//! Statements that change many rows and do not report which: their effects are known from previous reads in
//! the same transaction, or are found later in lists.

use super::history::{Effect, Predicate, Row, TableId};
use super::session::{Request, Session, Stop};
use super::tables::{CHILD, COLUMNS, GROUPS, KEYED, TABLES};
use super::write::counted;

impl Session<'_> {
    /// Runs one of them.
    pub(crate) fn change_many(&mut self) -> Result<(), Stop> {
        let table = self.some_table();
        if self.open.is_none() {
            return self.append_to_many(table);
        }
        match self.random.below(6) {
            0..=2 => self.append_to_group(table),
            3..=4 => self.delete_some(table),
            _ if self.common.has("truncate") => self.truncate_and_fill(table),
            _ => Ok(()),
        }
    }

    /// Appends to all rows of a group, or of all groups, as a statement by itself.
    fn append_to_many(&mut self, table: TableId) -> Result<(), Stop> {
        // A delete by key would not know what these statements did to a row.
        if table == KEYED {
            return self.stamp();
        }
        let numbers = self.common.draw(1);
        let (predicate, condition) = match self.random.chance(80) {
            true => {
                let group = self.random.between(0, GROUPS - 1);
                (Predicate::Group(group), format!(" WHERE g = {group}"))
            }
            false => (Predicate::All, String::new()),
        };
        let sql =
            format!("UPDATE {} SET {}{condition}", TABLES[table].name, Session::appending(numbers.start));
        self.run(Request { sql, numbers, ..Request::default() }, |_, rows| {
            let changed = rows.changed().unwrap_or(0);
            Ok(vec![Effect::Sought { table, predicate }, Effect::Append { table, rows: changed }])
        })
        .map(drop)
    }

    /// Reads a group and moves it to the next one.
    fn append_to_group(&mut self, table: TableId) -> Result<(), Stop> {
        let (group, found) = self.read_group(table)?;
        let numbers = self.common.draw(1);
        let to = (group + 1) % GROUPS;
        let number = numbers.start;
        let sql = format!(
            "UPDATE {} SET {}, g = {to} WHERE g = {group}",
            TABLES[table].name,
            Session::appending(number)
        );
        self.run(Request { sql, numbers, ..Request::default() }, |session, rows| {
            counted(rows, found.len() as u64)?;
            let mut effects = vec![Effect::Sought { table, predicate: Predicate::Group(group) }];
            for mut row in found {
                row.list.push(number);
                let version = session.note(table, Row { group: to, ..row });
                effects.push(Effect::Put { table, version });
            }
            Ok(effects)
        })
        .map(drop)
    }

    /// Reads a group and deletes part of it.
    fn delete_some(&mut self, table: TableId) -> Result<(), Stop> {
        let (group, mut found) = self.read_group(table)?;
        found.retain(|row| row.key % 3 == 0);
        let rules = &TABLES[table];
        let sql = format!("DELETE FROM {} WHERE g = {group} AND k % 3 = 0", rules.name);
        let request = Request { sql, may_be_refused: rules.is_referred_to, ..Request::default() };
        self.run(request, |session, rows| {
            counted(rows, found.len() as u64)?;
            Ok(session.deleted(table, found))
        })
        .map(drop)
    }

    fn deleted(&mut self, table: TableId, rows: Vec<Row>) -> Vec<Effect> {
        let delete = |row: Row| Effect::Delete { table, version: self.note(table, row) };
        rows.into_iter().map(delete).collect()
    }

    /// Empties a table, and before that the one that refers to it, and fills it again.
    fn truncate_and_fill(&mut self, table: TableId) -> Result<(), Stop> {
        if TABLES[table].is_referred_to {
            self.truncate(CHILD)?;
        }
        if self.truncate(table)? { (0..4).try_for_each(|_| self.insert_many(table)) } else { Ok(()) }
    }

    /// Reads a table and empties it. False if that was refused.
    fn truncate(&mut self, table: TableId) -> Result<bool, Stop> {
        let rules = &TABLES[table];
        let mut found = Vec::new();
        let request = Request::new(format!("SELECT {COLUMNS} FROM {}", rules.name));
        self.run(request, |session, rows| {
            found = session.rows_of(rows, 0)?;
            session.saw(table, Predicate::All, rows)
        })?;
        let sql = format!("TRUNCATE {}", rules.name);
        let request = Request { sql, may_be_refused: rules.is_referred_to, ..Request::default() };
        self.run(request, |session, _| {
            let mut effects = vec![Effect::Sought { table, predicate: Predicate::All }];
            effects.extend(session.deleted(table, found));
            Ok(effects)
        })
    }
}
