//! Data definition concurrent with writers: indexes and columns are added and dropped, views are replaced,
//! tables are copied, and tables that refer to others are created and dropped.
//!
//! Each session has names of its own, so only a conflict may prevent a definition.

use super::anomaly::{Anomaly, Violation};
use super::history::{Predicate, Span, Statement, Step, Transaction};
use super::session::{Request, Session, Stop};
use super::tables::{COLUMNS, JUNK, PARENT, TABLES};
use entasis::{ErrorKind, Rows, Value};

/// An index that all sessions create and drop.
pub(crate) const SHARED_INDEX: &str = "shared_index";

impl Session<'_> {
    /// Runs one of these statements, outside transactions.
    pub(crate) fn define(&mut self) -> Result<(), Stop> {
        self.counts.definitions += 1;
        let kinds = if self.common.has("several") { 14 } else { 11 };
        match self.random.below(kinds) {
            0 if self.common.has("dependencies") => self.break_dependency(),
            1 if self.common.has("names") => self.share_index(),
            2..=4 if self.common.has("index") => self.toggle_index(),
            5..=7 if self.common.has("column") => self.toggle_column(),
            8..=9 => self.replace_view(),
            10 if self.common.has("refer") => self.refer(),
            11..=12 => self.copy_as_table(),
            _ if self.common.has("several") => self.copy_into_table(),
            _ => self.replace_view(),
        }
    }

    fn toggle_index(&mut self) -> Result<(), Stop> {
        let name = format!("index_{}", self.number);
        match self.defined.index {
            Some(_) => {
                if self.aside(&format!("DROP INDEX {name}"))?.is_some() {
                    self.defined.index = None;
                }
            }
            None => {
                let table = self.random.below(TABLES.len());
                let columns = *self.random.pick(&["g", "last", "k", "v", "n, g", "r"]);
                if self
                    .aside(&format!("CREATE INDEX {name} ON {} ({columns})", TABLES[table].name))?
                    .is_some()
                {
                    self.defined.index = Some(table);
                }
            }
        }
        Ok(())
    }

    fn toggle_column(&mut self) -> Result<(), Stop> {
        let name = format!("column_{}", self.number);
        match self.defined.column {
            Some(table) => {
                if self.aside(&format!("ALTER TABLE {} DROP COLUMN {name}", TABLES[table].name))?.is_some() {
                    self.defined.column = None;
                }
            }
            None if self.random.chance(10) && self.common.has("junk") => {
                let parent = TABLES[PARENT].name;
                self.aside(&format!("ALTER TABLE {parent} DROP COLUMN IF EXISTS {JUNK}"))?;
            }
            None => {
                let table = self.random.below(TABLES.len());
                let default = if self.random.chance(50) { " DEFAULT 7" } else { "" };
                let sql = format!("ALTER TABLE {} ADD COLUMN {name} INTEGER{default}", TABLES[table].name);
                if self.aside(&sql)?.is_some() {
                    self.defined.column = Some(table);
                }
            }
        }
        Ok(())
    }

    /// Creates or drops an index with a name that other sessions also use.
    pub(crate) fn share_index(&mut self) -> Result<(), Stop> {
        let table = self.some_table();
        let sql = match self.random.chance(60) {
            true => format!("CREATE INDEX {SHARED_INDEX} ON {} (g)", TABLES[table].name),
            false => format!("DROP INDEX {SHARED_INDEX}"),
        };
        self.attempt(&sql).map(drop)
    }

    /// Tries what must be refused, because other tables refer to the table.
    fn break_dependency(&mut self) -> Result<(), Stop> {
        let parent = TABLES[PARENT].name;
        let attempts = [
            format!("ALTER TABLE {parent} DROP CONSTRAINT {parent}_pkey"),
            format!("ALTER TABLE {parent} ALTER COLUMN k TYPE VARCHAR"),
            format!("ALTER TABLE {parent} DROP COLUMN k"),
            format!("DROP TABLE {parent}"),
        ];
        let sql = self.random.pick(&attempts).clone();
        match self.attempt(&sql)? {
            false => Ok(()),
            true => Err(Stop::Violation(Violation::new(Anomaly::BrokenDependency, sql))),
        }
    }

    /// Runs a statement that may be refused, because others change names as well. True if it succeeded.
    pub(crate) fn attempt(&mut self, sql: &str) -> Result<bool, Stop> {
        match self.call(&Request::new(sql)).1 {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::Conflict if self.open.is_some() => Err(Stop::Conflict),
                ErrorKind::Conflict | ErrorKind::Input | ErrorKind::Constraint | ErrorKind::NotSupported => {
                    Ok(false)
                }
                _ => Err(self.unexpected(&error, sql)),
            },
        }
    }

    fn replace_view(&mut self) -> Result<(), Stop> {
        let name = TABLES[self.random.below(TABLES.len())].name;
        let rows = match self.random.below(3) {
            0 => name.to_owned(),
            1 => format!("(SELECT {COLUMNS} FROM {name}) x"),
            _ => format!("{name} WHERE n > 0"),
        };
        self.aside(&format!("CREATE OR REPLACE VIEW {name}_view AS SELECT {COLUMNS} FROM {rows}")).map(drop)
    }

    /// Copies several tables into a new one, and checks its contents: all were copied at one moment.
    pub(crate) fn copy_as_table(&mut self) -> Result<(), Stop> {
        let tables = self.several();
        let name = format!("copy_{}_{}", self.number, self.counts.statements);
        let sql = format!("CREATE TABLE {name} AS {}", self.union(&tables));
        let Some((span, _)) = self.aside(&sql)? else { return Ok(()) };
        let Some((_, rows)) = self.aside(&format!("SELECT * FROM {name}"))? else { return Ok(()) };
        self.tell(span, &sql, |session| session.saw_several(&tables, &rows, 0))?;
        while self.aside(&format!("DROP TABLE {name}"))?.is_none() {}
        Ok(())
    }

    /// Copies several tables into one, by one statement that returns what it copied.
    fn copy_into_table(&mut self) -> Result<(), Stop> {
        let tables = self.several();
        let name = format!("copies_{}", self.number);
        let columns =
            "t INTEGER, k BIGINT, g INTEGER, u BIGINT, r BIGINT, w BIGINT, last BIGINT, n INTEGER, v VARCHAR";
        if self.aside(&format!("CREATE TABLE IF NOT EXISTS {name} ({columns})"))?.is_none() {
            return Ok(());
        }
        let sql = format!("INSERT INTO {name} {} RETURNING *", self.union(&tables));
        self.run(Request::new(sql), |session, rows| session.saw_several(&tables, rows, 0))?;
        while self.aside(&format!("TRUNCATE {name}"))?.is_none() {}
        Ok(())
    }

    /// Records what a statement saw that was run outside the history.
    fn tell(
        &mut self,
        span: Span,
        sql: &str,
        saw: impl FnOnce(&mut Self) -> Result<Vec<super::history::Effect>, Violation>,
    ) -> Result<(), Stop> {
        let effects = saw(self).map_err(|violation| {
            let account = format!("{}\nin session {}: {sql}", violation.account, self.number);
            Stop::Violation(Violation { account, ..violation })
        })?;
        let step = Step::Statement(Statement { sql: sql.into(), effects, ..Statement::default() });
        let session = self.number;
        match &mut self.open {
            Some(transaction) => transaction.steps.push(step),
            None => {
                let transaction =
                    Transaction { session, begin: span, commit: span, committed: true, steps: vec![step] };
                self.transactions.push(transaction);
            }
        }
        Ok(())
    }

    /// Creates a table that refers to others' rows, while these are added and removed, and drops it.
    fn refer(&mut self) -> Result<(), Stop> {
        let (name, parent) = (format!("refers_{}", self.number), TABLES[PARENT].name);
        let is_made = match self.random.chance(50) {
            true => self.aside(&format!("CREATE TABLE {name} (r BIGINT REFERENCES {parent} (k))"))?.is_some(),
            false => {
                let made = self.aside(&format!("CREATE TABLE {name} (r BIGINT)"))?.is_some();
                if made {
                    self.refer_to_some(&name)?;
                    // It is refused if one of the rows has been removed meanwhile.
                    let request = Request {
                        may_be_refused: true,
                        ..Request::new(format!(
                            "ALTER TABLE {name} ADD FOREIGN KEY (r) REFERENCES {parent} (k)"
                        ))
                    };
                    let is_bound = self.run(request, |_, _| Ok(Vec::new()))?;
                    if !is_bound {
                        while self.aside(&format!("DROP TABLE {name}"))?.is_none() {}
                        return Ok(());
                    }
                }
                made
            }
        };
        if !is_made {
            return Ok(());
        }
        for _ in 0..3 {
            self.refer_to_some(&name)?;
            self.read_key(PARENT)?;
        }
        let dangling = format!(
            "SELECT c.r FROM {name} c LEFT JOIN {parent} p ON p.k = c.r WHERE c.r IS NOT NULL AND p.k IS NULL"
        );
        self.run(Request::new(dangling), |_, rows| nothing_dangles(rows))?;
        while self.aside(&format!("DROP TABLE {name}"))?.is_none() {}
        Ok(())
    }

    fn refer_to_some(&mut self, name: &str) -> Result<(), Stop> {
        let key = self.some_key(PARENT);
        let sql = format!("INSERT INTO {name} VALUES ({key})");
        self.run(Request { may_be_refused: true, ..Request::new(sql) }, |_, _| Ok(Vec::new()))?;
        let sql = format!(
            "INSERT INTO {name} SELECT k FROM {} WHERE k BETWEEN {key} AND {}",
            TABLES[PARENT].name,
            key + 5
        );
        self.run(Request { may_be_refused: true, ..Request::new(sql) }, |_, _| Ok(Vec::new()))?;
        let request = Request::new(format!("SELECT {COLUMNS} FROM {} WHERE k = {key}", TABLES[PARENT].name));
        self.run(request, |session, rows| session.saw(PARENT, Predicate::Key(key), rows)).map(drop)
    }
}

fn nothing_dangles(rows: &Rows) -> Result<Vec<super::history::Effect>, Violation> {
    match rows.row_values().next() {
        None => Ok(Vec::new()),
        Some(row) => {
            let key = row.first().unwrap_or(&Value::Null);
            Err(Violation::new(
                Anomaly::DanglingReference,
                format!("key {key:?} is referred to and not there"),
            ))
        }
    }
}
