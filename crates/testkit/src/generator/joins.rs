//! `FROM`: tables, derived tables, `VALUES`, and joins with `ON`, `USING` and `NATURAL`.

use super::scope::{Column, Scope};
use super::values::Family::{self, Integer, Integers, Text, Texts};
use super::{Generator, Shape};

/// The most rows in the product of all tables in a FROM: the reference visits each.
const MOST_ROWS: usize = 40_000;
/// The same within a derived table, a named query or a set operation, which are joined in turn.
const MOST_INNER_ROWS: usize = 400;

impl Generator {
    /// A `FROM` clause.
    pub(super) fn from(&mut self, depth: usize) -> (String, Scope) {
        let (mut sql, mut scope) = self.item(depth);
        if self.shape == Shape::Large {
            return (sql, scope);
        }
        for _ in 0..*self.random.pick(&[0, 0, 1, 1, 1, 2, 3]) {
            let (item, right) = self.item(depth);
            let most = if depth > 1 { MOST_ROWS } else { MOST_INNER_ROWS };
            if scope.rows_beside(&right) > most {
                break;
            }
            let kind =
                *self.random.pick(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]);
            let common = scope.common_names(&right);
            if kind == "CROSS JOIN" {
                sql = format!("{sql} CROSS JOIN {item}");
                scope = scope.beside(right);
            } else if scope.joins_naturally(&right) && self.random.chance(50) {
                sql = format!("{sql} NATURAL {kind} {item}");
                scope = scope.merged(right, &common);
            } else if !common.is_empty() && self.random.chance(50) {
                let names = self.some_of(common);
                sql = format!("{sql} {kind} {item} USING ({})", names.join(", "));
                scope = scope.merged(right, &names);
            } else {
                let condition = self.join_condition(&scope, &right, kind);
                sql = format!("{sql} {kind} {item} ON {condition}");
                scope = scope.beside(right);
            }
        }
        if self.random.chance(12) {
            return self.beside_elements(sql, scope, depth);
        }
        (sql, scope)
    }

    /// Each row beside each element of a list of its own, if it has one.
    fn beside_elements(&mut self, sql: String, scope: Scope, depth: usize) -> (String, Scope) {
        let is_list =
            |column: &&Column| column.name.contains('.') && matches!(column.family, Integers | Texts);
        let lists: Vec<Column> = scope.columns().filter(is_list).cloned().collect();
        if lists.is_empty() {
            return (sql, scope);
        }
        let list = self.random.pick(&lists).clone();
        let (alias, name) = (self.name("r"), self.name("e"));
        let family = if list.family == Integers { Integer } else { Text };
        let column = Column { name: name.clone(), family, wild: list.wild };
        let elements = Scope::of(&alias, vec![column], 6);
        if scope.rows_beside(&elements) > if depth > 1 { MOST_ROWS } else { MOST_INNER_ROWS } {
            return (sql, scope);
        }
        let join = *self.random.pick(&[" CROSS JOIN", ","]);
        (format!("{sql}{join} unnest({}) {alias}({name})", list.name), scope.beside(elements))
    }

    /// One or two of `names`, in any order.
    fn some_of(&mut self, names: Vec<String>) -> Vec<String> {
        let first = self.random.below(names.len());
        let second = self.random.below(names.len());
        let mut chosen = vec![names[first].clone()];
        if second != first && self.random.chance(60) {
            chosen.push(names[second].clone());
        }
        chosen
    }

    /// One relation, with an alias of its own.
    pub(super) fn item(&mut self, depth: usize) -> (String, Scope) {
        let alias = self.name("r");
        let large = self.shape == Shape::Large;
        let (choice, derived) = (self.random.below(100), if large { 12 } else { 22 });
        if depth > 1 && choice < derived {
            let mut block = if !large && self.random.chance(15) {
                self.set_operation()
            } else {
                self.block(None, depth - 1)
            };
            if self.random.chance(30) {
                let order = self.order_and_limit(&block);
                block.sql.push_str(&order);
            }
            // PostgreSQL before version 16 requires an alias.
            if self.is_common() && self.random.chance(4) {
                return (format!("({})", block.sql), Scope::unnamed(block.columns, block.rows));
            }
            return (format!("({}) {alias}", block.sql), Scope::of(&alias, block.columns, block.rows));
        }
        if !large && choice >= 94 {
            return self.values(&alias);
        }
        if !large && choice >= 90 {
            return self.counted(&alias);
        }
        if !large && choice >= 74 {
            return self.renamed(&alias);
        }
        let table = self.random.pick(&self.tables).clone();
        (format!("{} {alias}", table.name), Scope::of(&alias, table.columns, table.rows))
    }

    /// A table with other names for all but one or two of its first columns, which are those that joins
    /// merge.
    fn renamed(&mut self, alias: &str) -> (String, Scope) {
        let table = self.random.pick(&self.tables).clone();
        let (mut items, mut columns) = (Vec::new(), Vec::new());
        for (i, column) in table.columns.into_iter().enumerate() {
            let keeps = i < 2 && self.random.chance(75);
            let name = if keeps { column.name.clone() } else { self.name("v") };
            items.push(if keeps { name.clone() } else { format!("{} AS {name}", column.name) });
            columns.push(column.named(name));
        }
        let turn = self.random.below(columns.len());
        items.rotate_left(turn);
        columns.rotate_left(turn);
        (
            format!("(SELECT {} FROM {}) {alias}", items.join(", "), table.name),
            Scope::of(alias, columns, table.rows),
        )
    }

    /// Rows of literals whose types must be inferred.
    fn values(&mut self, alias: &str) -> (String, Scope) {
        let count = self.random.between(1, 4) as usize;
        let mut rows = vec![Vec::new(); count];
        let mut columns = Vec::new();
        for i in 0..self.random.between(1, 3) {
            let family = self.computed();
            let narrower = self.narrower(family);
            // A single row determines its own type.
            let mix = if count > 1 { self.random.below(4) } else { 3 };
            for (at, row) in rows.iter_mut().enumerate() {
                row.push(match mix {
                    // Of another type, whose values are converted to the column's.
                    0 if at % 2 == 0 => self.literal(narrower),
                    1 if at == 0 => "NULL".to_string(),
                    2 if at > 0 => self.untyped(family),
                    _ => self.literal(family),
                });
            }
            columns.push(Column { name: format!("c{i}"), family, wild: false });
        }
        if count == 1 && self.is_common() {
            let mut items: Vec<String> = rows[0]
                .iter()
                .zip(&columns)
                .map(|(value, column)| format!("{value} AS {}", column.name))
                .collect();
            let unknown = Column { name: self.name("v"), family: Text, wild: false };
            items.insert(0, format!("NULL AS {}", unknown.name));
            columns.insert(0, unknown);
            return (format!("(SELECT {}) {alias}", items.join(", ")), Scope::of(alias, columns, 1));
        }
        // Rows that must be computed, between constant ones.
        for row in rows.iter_mut().filter(|_| count > 1) {
            if columns[0].family == Text && self.random.chance(40) {
                row[0] = format!("{}('Ab')", self.random.pick(&["upper", "lower"]));
            }
        }
        let lines: Vec<String> = rows.into_iter().map(|row| format!("({})", row.join(", "))).collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let (lines, names) = (lines.join(", "), names.join(", "));
        if count > 1 && self.random.chance(30) {
            // Rows have the numbers of their places.
            let number = Column { name: self.name("n"), family: Integer, wild: false };
            let rows = format!("(VALUES {lines}) q({names})");
            let sql = format!("(SELECT *, row_number() OVER () AS {} FROM {rows}) {alias}", number.name);
            columns.push(number);
            return (sql, Scope::of(alias, columns, count));
        }
        (format!("(VALUES {lines}) {alias}({names})"), Scope::of(alias, columns, count))
    }

    fn join_condition(&mut self, left: &Scope, right: &Scope, kind: &str) -> String {
        let mut parts = Vec::new();
        // PostgreSQL supports FULL JOIN only on equalities.
        let plain = self.is_common() && kind == "FULL JOIN";
        if plain || self.random.chance(80) {
            for _ in 0..*self.random.pick(&[1, 1, 1, 2]) {
                parts.extend(self.equality(left, right));
            }
        }
        if plain {
            parts.iter_mut().for_each(|part: &mut String| *part = part.replace("IS NOT DISTINCT FROM", "="));
        } else if parts.is_empty() || self.random.chance(25) {
            let both = left.clone().beside(right.clone());
            parts.push(self.condition(&both, 1));
        }
        if parts.is_empty() { "true".to_string() } else { parts.join(" AND ") }
    }

    /// `l = r` over two columns of the same family.
    fn equality(&mut self, left: &Scope, right: &Scope) -> Option<String> {
        let both = left.clone().beside(right.clone());
        // An unqualified name must be unambiguous with the other side's.
        let good = |column: &&Column| column.name.contains('.') || both.once(&column.name).is_some();
        let (l, r) =
            self.pair(left.columns().filter(good).collect(), right.columns().filter(good).collect())?;
        let operator = if self.random.chance(12) { "IS NOT DISTINCT FROM" } else { "=" };
        Some(format!("{l} {operator} {r}"))
    }

    /// A condition that correlates a subquery with the enclosing query.
    pub(super) fn correlation(&mut self, inner: &Scope, outer: &Scope) -> Option<String> {
        let outer = outer.around(inner);
        let (l, r) = (0..6).find_map(|_| self.pair(inner.columns().collect(), outer.columns().collect()))?;
        Some(format!("{l} = {r}"))
    }

    /// One column of `left`, and one of `right` that is of the same family.
    fn pair(&mut self, left: Vec<&Column>, right: Vec<&Column>) -> Option<(String, String)> {
        if left.is_empty() {
            return None;
        }
        let l = *self.random.pick(&left);
        let partners: Vec<&Column> = right.into_iter().filter(|column| column.family == l.family).collect();
        if partners.is_empty() {
            return None;
        }
        Some((l.name.clone(), self.random.pick(&partners).name.clone()))
    }

    /// The family of a column in `scope`, or one to compute with.
    pub(super) fn family_of(&mut self, scope: &Scope) -> Family {
        let families: Vec<Family> = scope.columns().map(|column| column.family).collect();
        if self.random.chance(85) && !families.is_empty() {
            *self.random.pick(&families)
        } else {
            self.computed()
        }
    }
}
