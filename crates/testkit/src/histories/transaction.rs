//! Chooses what a session does next: a statement by itself, or several between `BEGIN` and `COMMIT` or
//! `ROLLBACK`, with savepoints.

use super::common::Theme;
use super::history::{Span, Step, Transaction};
use super::session::{Request, Session, Stop};
use entasis::{ErrorKind, Rows};
use std::sync::atomic::Ordering;

impl Session<'_> {
    /// Runs transactions until none are left in this window.
    pub(crate) fn work(&mut self) -> Result<(), Stop> {
        while !self.common.stop.load(Ordering::Relaxed)
            && self.common.left.fetch_sub(1, Ordering::Relaxed) > 0
        {
            self.next()?;
        }
        Ok(())
    }

    fn next(&mut self) -> Result<(), Stop> {
        match self.common.theme() {
            Theme::Mixed => {}
            Theme::References if self.random.chance(60) && self.common.has("family") => return self.kin(),
            Theme::Definitions if self.random.chance(15) && self.common.has("define") => {
                return self.define();
            }
            Theme::Bulk if self.random.chance(15) && self.common.has("alone") => return self.change_many(),
            _ => {}
        }
        match self.random.below(100) {
            0..=24 => self.keyed(),
            25..=39 => self.read(),
            40..=57 if self.common.has("alone") => self.write(),
            58 if self.random.chance(20) && self.common.has("rekey") => self.rekey(),
            58..=60 if self.common.has("alone") => self.change_many(),
            61..=62 if self.common.has("define") => self.define(),
            63.. if self.common.has("transaction") => self.transaction(Session::steps),
            _ => self.read(),
        }
    }

    /// A statement, or a transaction, on the tables of the family.
    fn kin(&mut self) -> Result<(), Stop> {
        match self.random.below(3) {
            0 if self.common.has("transaction") => self.transaction(Session::family_transaction),
            1 if self.common.has("several") => self.judge_family(),
            _ => self.family(),
        }
    }

    fn transaction(&mut self, steps: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        let (begin, result) = self.call(&Request::new("BEGIN"));
        result.map_err(|error| self.unexpected(&error, "BEGIN"))?;
        self.open = Some(Transaction { session: self.number, begin, ..Transaction::default() });
        match steps(self) {
            Ok(()) if self.random.chance(85) => self.end("COMMIT"),
            Ok(()) => {
                self.counts.rolled_back += 1;
                self.end("ROLLBACK")
            }
            Err(Stop::Conflict) => {
                self.counts.conflicts += 1;
                self.end("ROLLBACK")
            }
            Err(violation) => Err(violation),
        }
    }

    fn steps(&mut self) -> Result<(), Stop> {
        let mut is_saved = false;
        for _ in 0..self.random.between(1, 6) {
            match self.random.below(40) {
                0..=11 => self.read()?,
                12..=25 => self.write()?,
                26..=29 => self.keyed()?,
                30 => self.change_many()?,
                31 => self.write_family()?,
                32 if self.random.chance(30) && self.common.has("define") => self.copy_as_table()?,
                32 if self.random.chance(30) && self.common.has("define") && self.common.has("names") => {
                    self.share_index()?
                }
                33..=35 if !is_saved => {
                    is_saved = true;
                    self.step("SAVEPOINT s", Step::Savepoint)?;
                }
                36..=37 if is_saved => self.step("ROLLBACK TO s", Step::RollBackTo)?,
                38 if is_saved => {
                    is_saved = false;
                    self.step("RELEASE s", Step::Release)?;
                }
                _ => self.read_again()?,
            }
            // This makes transactions of several sessions overlap.
            if self.random.chance(50) {
                self.common.linger(self.random.below(10) as u64);
            }
        }
        Ok(())
    }

    /// Reads whole tables that the transaction may have read or changed.
    fn read_again(&mut self) -> Result<(), Stop> {
        let table = self.some_table();
        match self.random.chance(30) {
            true => self.read_table(table),
            false => self.read_key(table),
        }
    }

    fn step(&mut self, sql: &str, step: Step) -> Result<(), Stop> {
        self.aside(sql)?;
        self.open.as_mut().expect("a transaction is open").steps.push(step);
        Ok(())
    }

    fn end(&mut self, sql: &str) -> Result<(), Stop> {
        let (commit, result): (Span, entasis::Result<Rows>) = self.call(&Request::new(sql));
        let transaction = self.open.take().expect("a transaction is open");
        let committed = match result {
            Ok(_) => sql == "COMMIT",
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.counts.conflicts += 1;
                false
            }
            Err(error) => return Err(self.unexpected(&error, sql)),
        };
        self.counts.committed += u64::from(committed);
        self.transactions.push(Transaction { commit, committed, ..transaction });
        Ok(())
    }
}
