//! Tables, their rows and changes to them.

use super::scope::{Column, Table};
use super::values::Family::{Integer, Text};
use super::values::{ColumnType, INSTANT, KEYS, TYPES};
use super::{Generator, Shape};

/// A column to fill.
struct Filled {
    ty: ColumnType,
    column: Column,
    /// Percentage of values that are NULL.
    nulls: usize,
}

impl Generator {
    /// The statements that create and fill all tables.
    pub(super) fn setup(&mut self) -> Vec<String> {
        let mut statements = Vec::new();
        let zoned = self.random.chance(60);
        let count = if self.shape == Shape::Large { 1 } else { 3 };
        for t in 0..count {
            // What a table was filled with is read in another zone.
            if zoned && (t == 0 || self.random.chance(15)) {
                let zone = *self.random.pick(super::moments::ZONES);
                statements.push(format!("SET TimeZone = '{zone}'"));
            }
            self.table(format!("t{t}"), zoned, &mut statements);
        }
        statements
    }

    fn table(&mut self, name: String, zoned: bool, statements: &mut Vec<String>) {
        let columns = self.columns(zoned);
        let declared: Vec<String> =
            columns.iter().map(|own| format!("{} {}", own.column.name, own.ty.name)).collect();
        statements.push(format!("CREATE TABLE {name} ({}){}", declared.join(", "), self.layout()));
        let rows = match self.shape {
            Shape::Large => self.random.between(1500, 5000),
            Shape::Small if self.random.chance(6) => 0,
            Shape::Small => self.random.between(1, 14),
        };
        let mut lines: Vec<Vec<String>> = (0..rows).map(|_| self.line(&columns)).collect();
        // Rows inserted a few at a time and in the order of the key are spread over several blocks.
        if self.random.chance(70) {
            lines.sort_by_key(|cells| cells[0].parse::<i64>().unwrap_or(i64::MAX));
        }
        let together = if self.shape == Shape::Large { 500 } else { *self.random.pick(&[1, 2, 4, 14]) };
        for part in lines.chunks(together) {
            let rows: Vec<String> = part.iter().map(|cells| format!("({})", cells.join(", "))).collect();
            statements.push(format!("INSERT INTO {name} VALUES {}", rows.join(", ")));
        }
        let changes = self.random.between(0, 4);
        for _ in 0..changes {
            statements.push(self.change(&name, &columns));
        }
        let held = (rows + changes) as usize;
        self.tables.push(Table {
            name,
            columns: columns.into_iter().map(|own| own.column).collect(),
            rows: held,
        });
    }

    fn columns(&mut self, zoned: bool) -> Vec<Filled> {
        let known: Vec<ColumnType> =
            TYPES.iter().filter(|ty| ty.common || !self.is_common()).copied().collect();
        let mut types = KEYS.to_vec();
        for _ in 0..self.random.between(2, 5) {
            types.push(*self.random.pick(&known));
        }
        if zoned && self.random.chance(60) {
            types.push(INSTANT);
        }
        let mut columns = Vec::new();
        for (i, ty) in types.into_iter().enumerate() {
            let column = Column { name: format!("c{i}"), family: ty.family, wild: self.random.chance(25) };
            columns.push(Filled { ty, column, nulls: *self.random.pick(&[0, 0, 15, 40]) });
        }
        columns
    }

    fn line(&mut self, columns: &[Filled]) -> Vec<String> {
        columns.iter().map(|own| self.cell(own.ty, own.column.wild, own.nulls)).collect()
    }

    /// The layout of a table; for half of them by a key.
    fn layout(&mut self) -> String {
        if self.is_common() || self.random.chance(50) {
            return String::new();
        }
        let layout = *self.random.pick(&["sorted", "delta", "equi", "equi", "equi_ghost", "casper"]);
        let key = *self.random.pick(&["c0", "c0", "c0, c1", "c1", "c1, c0", "c2"]);
        format!(" WITH (layout = '{layout}', layout_key = ({key}))")
    }

    /// A statement that changes some rows of a table, so that some blocks are hot and have empty slots.
    fn change(&mut self, name: &str, columns: &[Filled]) -> String {
        let some = match self.random.below(4) {
            0 => "c1 IS NULL".to_string(),
            1 => format!("c1 = {}", self.literal(Text)),
            2 => format!("c0 < {}", self.literal(Integer)),
            _ => format!("c0 = {}", self.literal(Integer)),
        };
        match self.random.below(5) {
            0 => format!("DELETE FROM {name} WHERE {some}"),
            1 => format!("INSERT INTO {name} VALUES ({})", self.line(columns).join(", ")),
            // The types of the selected values are derived from their target columns.
            2 => format!("INSERT INTO {name} SELECT {}", self.line(columns).join(", ")),
            _ => {
                let own = self.random.pick(columns);
                let value = self.cell(own.ty, own.column.wild, own.nulls + 20);
                format!("UPDATE {name} SET {} = {value} WHERE {some}", own.column.name)
            }
        }
    }
}
