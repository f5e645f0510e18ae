//! Window functions.
//!
//! A result must not depend on which of several tying rows comes first. So functions that count rows (`ROWS`,
//! `row_number`, `lag`) are only used over an order by all columns, where rows that tie are equal, and only
//! once in a `SELECT`, because two orders may order equal rows differently. Functions that treat tying rows
//! alike are used over any order.

use super::Generator;
use super::scope::{Block, Column, Scope};
use super::values::Family::{self, *};

const EXCLUSIONS: [&str; 4] =
    [" EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"];

impl Generator {
    /// A `SELECT` with columns and calls of window functions; with results of these `families`, if there are
    /// any.
    pub(super) fn windowed(&mut self, from: &str, scope: &Scope, wanted: &[Family], casts: bool) -> Block {
        let (mut items, mut columns) = (Vec::new(), Vec::new());
        let mut named = Vec::new();
        let mut by_place = true;
        for (i, family) in wanted.iter().enumerate() {
            let item = if self.random.chance(30) {
                self.leaf(*family, scope, false)
            } else {
                self.window_call(*family, scope, &mut named, &mut by_place)
            };
            items.push(super::blocks::item_of(item, i, casts.then_some(*family)));
            columns.push(Column { name: format!("c{i}"), family: *family, wild: true });
        }
        let windows = if named.is_empty() { String::new() } else { format!(" WINDOW {}", named.join(", ")) };
        Block::closed(format!("SELECT {} FROM {from}{windows}", items.join(", ")), columns, scope.rows())
    }

    /// A call with a result of `family`. Named windows are added to `named`. The call may count rows if
    /// `by_place` is true, which is then set to false so that no other call may.
    fn window_call(
        &mut self,
        family: Family,
        scope: &Scope,
        named: &mut Vec<String>,
        by_place: &mut bool,
    ) -> String {
        let mut window = Vec::new();
        if self.random.chance(60) {
            let family = self.family_of(scope);
            window.push(format!("PARTITION BY {}", self.leaf(family, scope, false)));
        }
        let total = self.total_order(scope);
        let call = match total {
            Some(order) if *by_place && self.random.chance(50) => {
                *by_place = false;
                window.push(order);
                self.call_by_place(family, scope, &mut window)
            }
            _ => self.call_by_peers(family, scope, &mut window),
        };
        let window = window.join(" ");
        if self.random.chance(15) {
            let name = format!("w{}", named.len());
            named.push(format!("{name} AS ({window})"));
            return format!("{call} OVER {name}");
        }
        format!("{call} OVER ({window})")
    }

    /// An order by all columns, if rows that tie in it are identical: equal intervals may differ.
    pub(super) fn total_order(&mut self, scope: &Scope) -> Option<String> {
        let columns: Vec<Column> =
            scope.columns().filter(|column| column.name.contains('.')).cloned().collect();
        let is_total = scope.shown().len() <= columns.len()
            && columns.iter().all(|column| column.family != Interval)
            && columns.len() <= 8;
        if columns.is_empty() || !is_total {
            return None;
        }
        let start = self.random.below(columns.len());
        let keys: Vec<String> =
            (0..columns.len()).map(|i| self.sort_key(&columns[(start + i) % columns.len()].name)).collect();
        Some(format!("ORDER BY {}", keys.join(", ")))
    }

    /// A call that may count rows.
    fn call_by_place(&mut self, family: Family, scope: &Scope, window: &mut Vec<String>) -> String {
        if family == Integer && self.random.chance(30) {
            return match self.random.below(3) {
                0 => format!("ntile({})", self.random.between(1, 4)),
                _ => "row_number()".to_string(),
            };
        }
        let value = self.leaf(family, scope, false);
        let call = match self.random.below(6) {
            0..=2 if matches!(family, Integers | Texts) => {
                format!("array_agg({})", self.element(family, scope, false))
            }
            0 if family == Text => format!("string_agg({value}, ', ')"),
            0 | 1 => {
                let function = *self.random.pick(&["lag", "lead"]);
                return match self.random.below(3) {
                    0 => format!("{function}({value})"),
                    1 => format!("{function}({value}, {})", self.random.below(4)),
                    _ => format!("{function}({value}, {}, {})", self.random.below(4), self.literal(family)),
                };
            }
            2 => format!("{}({value})", self.random.pick(&["first_value", "last_value"])),
            3 => format!("nth_value({value}, {})", self.random.between(1, 3)),
            _ => self.window_aggregate(family, scope),
        };
        if self.random.chance(70) {
            let unit = *self.random.pick(&["ROWS", "ROWS", "GROUPS", "RANGE"]);
            window.push(self.frame(unit, unit != "RANGE"));
        }
        call
    }

    /// A call that treats rows that tie alike.
    fn call_by_peers(&mut self, family: Family, scope: &Scope, window: &mut Vec<String>) -> String {
        let key = *self.random.pick(&[Integer, Integer, Decimal, Text, Date]);
        let key = self.family_among(&[key, Integer], scope);
        let has_order = self.random.chance(80);
        if has_order {
            // A literal would be a column number, or no order at all.
            let tame: Vec<Column> = scope.columns().filter(|c| c.family == key && !c.wild).cloned().collect();
            let columns: Vec<Column> = scope.columns().filter(|c| c.family == key).cloned().collect();
            let (columns, is_tame) = if tame.is_empty() { (columns, false) } else { (tame, true) };
            if !columns.is_empty() {
                let name = self.random.pick(&columns).name.clone();
                window.push(format!("ORDER BY {}", self.sort_key(&name)));
                if family == Integer && self.random.chance(30) {
                    return self.random.pick(&["rank()", "dense_rank()"]).to_string();
                }
                if family == Float && self.random.chance(40) {
                    return self.random.pick(&["percent_rank()", "cume_dist()"]).to_string();
                }
                let call = self.window_aggregate(family, scope);
                match self.random.below(4) {
                    0 => window.push(self.frame("GROUPS", true)),
                    1 => window.push(self.frame("RANGE", is_tame && key == Integer)),
                    _ => {}
                }
                return call;
            }
        }
        self.window_aggregate(family, scope)
    }

    /// A frame; `offsets`: it may begin or end a number of rows, groups or values away.
    pub(super) fn frame(&mut self, unit: &str, offsets: bool) -> String {
        let mut bounds = vec![(0, "UNBOUNDED PRECEDING".to_string()), (2, "CURRENT ROW".to_string())];
        if offsets {
            bounds.push((1, format!("{} PRECEDING", self.random.below(4))));
            bounds.push((3, format!("{} FOLLOWING", self.random.below(4))));
        }
        let start = self.random.pick(&bounds).clone();
        bounds.push((4, "UNBOUNDED FOLLOWING".to_string()));
        let ends: Vec<(i32, String)> =
            bounds.into_iter().filter(|end| end.0 >= start.0 && end.0 > 0).collect();
        let end = self.random.pick(&ends).clone();
        let exclusion = if self.random.chance(30) { *self.random.pick(&EXCLUSIONS) } else { "" };
        match end.0 == 2 && exclusion.is_empty() && self.random.chance(50) {
            true => format!("{unit} {}", start.1),
            false => format!("{unit} BETWEEN {} AND {}{exclusion}", start.1, end.1),
        }
    }

    /// An aggregate, without `DISTINCT`, which PostgreSQL does not support here.
    fn window_aggregate(&mut self, family: Family, scope: &Scope) -> String {
        let call = match family {
            Integer => match self.random.below(4) {
                0 => "count(*)".to_string(),
                1 => {
                    let of = self.family_of(scope);
                    format!("count({})", self.leaf(of, scope, false))
                }
                2 => format!("sum({})", self.expression(Integer, scope, 1, true)),
                _ => format!("{}({})", self.random.pick(&["min", "max"]), self.leaf(Integer, scope, false)),
            },
            Float => match self.random.below(3) {
                0 => format!("avg({})", self.leaf(Integer, scope, true)),
                1 => format!("sum({})", self.leaf(Float, scope, true)),
                _ => format!("{}({})", self.random.pick(&["min", "max"]), self.leaf(Float, scope, false)),
            },
            Decimal if self.random.chance(50) => format!("sum({})", self.leaf(Decimal, scope, true)),
            Boolean => {
                format!("{}({})", self.random.pick(&["bool_and", "bool_or"]), self.leaf(Boolean, scope, true))
            }
            Interval | Uuid | Blob | Struct => format!("max({})", self.leaf(family, scope, false)),
            _ => format!("{}({})", self.random.pick(&["min", "max"]), self.leaf(family, scope, false)),
        };
        if self.random.chance(20) {
            format!("{call} FILTER (WHERE {})", self.condition(scope, 1))
        } else {
            call
        }
    }
}
