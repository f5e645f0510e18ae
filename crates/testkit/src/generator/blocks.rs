//! `SELECT` blocks: select lists, grouping, aggregates.

use super::scope::{Block, Column, Scope};
use super::values::Family::{self, *};
use super::{Generator, Shape};

/// The most columns of a wide list, which is rare.
const WIDE: i64 = 70;

impl Generator {
    /// A SELECT block. `families` are those of the result's columns, by default arbitrary; the columns are
    /// mostly cast to a common type.
    pub(super) fn block(&mut self, families: Option<&[Family]>, depth: usize) -> Block {
        let casts = families.is_some() && self.random.chance(60);
        let (mut from, scope) = self.from(depth);
        if self.random.chance(50) {
            from = format!("{from} WHERE {}", self.predicate(&scope, depth));
            if self.is_common() && depth > 1 && self.random.chance(4) {
                from.push_str(" AND random() < 2");
            }
        }
        if families.is_none() && scope.has_distinct_names() && self.random.chance(15) {
            let distinct = self.distinct();
            return Block::closed(
                format!("SELECT {distinct}* FROM {from}"),
                scope.shown().to_vec(),
                scope.rows(),
            );
        }
        if families.is_none() && !scope.relations().is_empty() && self.random.chance(6) {
            let relation = self.random.pick(scope.relations()).clone();
            return Block::closed(
                format!("SELECT {}.* FROM {from}", relation.name),
                relation.columns,
                scope.rows(),
            );
        }
        let free: Vec<Family>;
        let wanted = match families {
            Some(families) => families,
            None => {
                let most = if self.shape == Shape::Small && self.random.chance(2) { WIDE } else { 4 };
                free = (0..self.random.between(1, most)).map(|_| self.family_of(&scope)).collect();
                &free
            }
        };
        if self.random.chance(40) {
            return self.grouped(&from, &scope, wanted, casts);
        }
        if self.shape == Shape::Small && self.random.chance(15) {
            return self.windowed(&from, &scope, wanted, casts);
        }
        let distinct = self.distinct();
        let (mut items, mut columns) = (Vec::new(), Vec::new());
        let mut rows = scope.rows();
        for (i, family) in wanted.iter().enumerate() {
            let tame = self.random.chance(60);
            let elements = if self.shape == Shape::Small && !casts && self.random.chance(5) {
                self.unnested(*family, &scope)
            } else {
                None
            };
            let (item, wild) = match elements {
                Some(elements) => {
                    rows = rows.saturating_mul(6);
                    (elements, false)
                }
                None if *family == Boolean
                    && self.shape == Shape::Small
                    && depth > 0
                    && self.random.chance(25) =>
                {
                    (self.subquery_condition(&scope), !tame)
                }
                None => (self.expression(*family, &scope, depth, tame), !tame),
            };
            items.push(item_of(item, i, casts.then_some(*family)));
            columns.push(Column { name: format!("c{i}"), family: *family, wild });
        }
        let inputs = if distinct.is_empty() && self.is_common() {
            scope.columns().cloned().collect()
        } else {
            Vec::new()
        };
        Block { sql: format!("SELECT {distinct}{} FROM {from}", items.join(", ")), columns, rows, inputs }
    }

    fn distinct(&mut self) -> &'static str {
        if self.random.chance(15) { "DISTINCT " } else { "" }
    }

    fn grouped(&mut self, from: &str, scope: &Scope, wanted: &[Family], casts: bool) -> Block {
        let count = if self.random.chance(80) { self.random.below(3).min(wanted.len()) } else { 0 };
        let mut chosen: Vec<(String, bool)> = Vec::new();
        for family in &wanted[..count] {
            let tame = self.random.chance(50);
            // Group keys are mostly plain columns.
            let key = if self.random.chance(70) {
                self.leaf(*family, scope, tame)
            } else {
                self.expression(*family, scope, 1, tame)
            };
            chosen.push((key, !tame));
        }
        let mut keys: Vec<String> = chosen.iter().map(|(key, _)| key.clone()).collect();
        let group_by = self.group_by(&keys, scope);
        // A cast turns a key into another expression.
        if casts {
            keys.clear();
        }
        let is_column = |key: &String| scope.columns().any(|column| column.name == *key);
        let plain: Vec<String> = keys.iter().filter(|key| is_column(key)).cloned().collect();
        let distinct = plain.len() == count && !group_by.contains('(');
        for family in &wanted[count..] {
            // Groups in a total order are rare, and so are lists.
            let often = if distinct && matches!(family, Integers | Text) { 50 } else { 12 };
            let item = if self.is_wrong() {
                self.leaf(*family, scope, false)
            } else if self.shape == Shape::Small && self.random.chance(often) {
                self.over_groups(*family, &plain, distinct, scope)
            } else {
                self.aggregate(*family, scope)
            };
            chosen.push((item, true));
        }
        let (mut items, mut columns) = (Vec::new(), Vec::new());
        for (i, ((item, wild), family)) in chosen.into_iter().zip(wanted).enumerate() {
            items.push(item_of(item, i, casts.then_some(*family)));
            columns.push(Column { name: format!("c{i}"), family: *family, wild });
        }
        let mut sql = format!("SELECT {} FROM {from}{group_by}", items.join(", "));
        if self.random.chance(30) {
            sql = format!("{sql} HAVING {}", self.group_condition(&keys, scope));
        }
        Block::closed(sql, columns, scope.rows())
    }

    /// `GROUP BY` the first columns: by number or, if they are plain columns, by name; some are repeated, in
    /// the same form or both.
    fn group_by(&mut self, keys: &[String], scope: &Scope) -> String {
        if keys.is_empty() {
            return if self.random.chance(20) { " GROUP BY ()".to_string() } else { String::new() };
        }
        let mut groups = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            let (place, is_column) = ((i + 1).to_string(), scope.columns().any(|column| column.name == *key));
            let group = if is_column && self.random.chance(50) { key } else { &place };
            groups.push(group.clone());
            if self.random.chance(15) {
                groups.push(if is_column && group == &place { key.clone() } else { place });
            }
        }
        let is_column = |key: &String| scope.columns().any(|column| column.name == *key);
        if self.shape == Shape::Small && keys.iter().all(is_column) && self.random.chance(20) {
            return format!(" GROUP BY {}", self.sets(keys));
        }
        format!(" GROUP BY {}", groups.join(", "))
    }

    /// Sets of keys, in which a key may be written several times: alone, in one set, in several.
    fn sets(&mut self, keys: &[String]) -> String {
        let mut elements = Vec::new();
        for _ in 0..*self.random.pick(&[1, 1, 2]) {
            let mut some: Vec<String> = keys.to_vec();
            if self.random.chance(30) {
                some.push(self.random.pick(keys).clone());
            }
            let all = some.join(", ");
            elements.push(match self.random.below(5) {
                0 => format!("ROLLUP ({all})"),
                1 => format!("CUBE ({all})"),
                2 => format!("GROUPING SETS (({all}), ({}), ())", self.random.pick(keys)),
                3 => format!("GROUPING SETS (({all}), ({all}))"),
                _ => format!("ROLLUP (({all}))"),
            });
        }
        if self.random.chance(50) {
            elements.push(self.random.pick(keys).clone());
        }
        // A key that no set has would not be one.
        let all = elements.join(", ");
        elements.extend(keys.iter().filter(|key| !all.contains(*key)).cloned());
        elements.join(", ")
    }

    /// A condition on groups: on an aggregate, or on a key.
    fn group_condition(&mut self, keys: &[String], scope: &Scope) -> String {
        let operator = *self.random.pick(&["=", "<>", "<", ">="]);
        if self.random.chance(25)
            && let Some(key) = keys.first()
            && let Some(column) = scope.columns().find(|column| column.name == *key)
        {
            return format!("{key} {operator} {}", self.literal(column.family));
        }
        let family = *self.random.pick(&[Integer, Text, Date]);
        format!("{} {operator} {}", self.aggregate(family, scope), self.literal(family))
    }

    /// A call of an aggregate with a result of `family`.
    pub(super) fn aggregate(&mut self, family: Family, scope: &Scope) -> String {
        let distinct = if self.random.chance(20) { "DISTINCT " } else { "" };
        let call = match family {
            Integer => match self.random.below(6) {
                0 => "count(*)".to_string(),
                1 | 2 => {
                    let of = self.family_of(scope);
                    format!("count({distinct}{})", self.expression(of, scope, 1, false))
                }
                3 => format!("sum({distinct}{})", self.expression(Integer, scope, 1, true)),
                _ => format!(
                    "{}({})",
                    self.random.pick(&["min", "max"]),
                    self.expression(Integer, scope, 1, false)
                ),
            },
            Float => match self.random.below(4) {
                0 => format!("avg({distinct}{})", self.expression(Integer, scope, 1, true)),
                1 => format!("avg({})", self.expression(Decimal, scope, 0, true)),
                2 => format!("sum({distinct}{})", self.expression(Float, scope, 1, true)),
                _ => format!(
                    "{}({})",
                    self.random.pick(&["min", "max"]),
                    self.expression(Float, scope, 1, false)
                ),
            },
            Decimal => match self.random.below(3) {
                0 => format!("sum({distinct}{})", self.expression(Decimal, scope, 1, true)),
                _ => format!(
                    "{}({})",
                    self.random.pick(&["min", "max"]),
                    self.expression(Decimal, scope, 1, false)
                ),
            },
            Boolean => {
                format!(
                    "{}({})",
                    self.random.pick(&["bool_and", "bool_or"]),
                    self.expression(Boolean, scope, 1, true)
                )
            }
            // DuckDB has no sum of intervals.
            Interval if self.random.chance(10) => format!("sum({})", self.leaf(Interval, scope, true)),
            Integers | Texts if self.random.chance(60) => self.ordered_aggregate(family, scope),
            Text if self.random.chance(15) => self.ordered_aggregate(family, scope),
            Interval | Uuid | Blob | Struct => format!("max({})", self.leaf(family, scope, false)),
            _ => {
                format!("{}({})", self.random.pick(&["min", "max"]), self.expression(family, scope, 1, false))
            }
        };
        if self.random.chance(20) {
            format!("{call} FILTER (WHERE {})", self.condition(scope, 1))
        } else {
            call
        }
    }
}

/// The `i`-th item of a select list, cast to the common type of a family.
pub(super) fn item_of(item: String, i: usize, family: Option<Family>) -> String {
    match family {
        Some(family) => format!("CAST({item} AS {}) AS c{i}", family.common_type()),
        None => format!("{item} AS c{i}"),
    }
}
