//! Aggregates of aggregates: window functions over groups, aggregates over window functions; and ordered
//! aggregates, which make lists.

use super::Generator;
use super::scope::{Column, Scope};
use super::values::Family::{self, *};

impl Generator {
    /// A list or a text that an ordered aggregate makes: its order is total, or by its argument.
    pub(super) fn ordered_aggregate(&mut self, family: Family, scope: &Scope) -> String {
        let element = self.element(if family == Text { Texts } else { family }, scope, false);
        let total = if self.random.chance(60) { self.total_order(scope) } else { None };
        let (distinct, order) = match total {
            Some(order) => ("", order),
            None => {
                let distinct = if self.random.chance(40) { "DISTINCT " } else { "" };
                (distinct, format!("ORDER BY {}", self.sort_key(&element)))
            }
        };
        if family == Text {
            format!("string_agg({distinct}{element}, ', ' {order})")
        } else {
            format!("array_agg({distinct}{element} {order})")
        }
    }

    /// A window function over groups, whose argument is an aggregate. `keys` are the columns by which it is
    /// grouped; `distinct`: no two groups have the same keys.
    pub(super) fn over_groups(
        &mut self,
        family: Family,
        keys: &[String],
        distinct: bool,
        scope: &Scope,
    ) -> String {
        let mut window = Vec::new();
        if !keys.is_empty() && self.random.chance(40) {
            window.push(format!("PARTITION BY {}", self.random.pick(keys)));
        }
        if distinct && !keys.is_empty() && matches!(family, Integers | Text) && self.random.chance(60) {
            let order: Vec<String> = keys.iter().map(|key| self.sort_key(key)).collect();
            window.push(format!("ORDER BY {}", order.join(", ")));
            window.push(self.frame("ROWS", true));
            let call = match family {
                Text => "string_agg(CAST(count(*) AS VARCHAR), ', ')",
                _ => "array_agg(CAST(count(*) AS INTEGER))",
            };
            return format!("{call} OVER ({})", window.join(" "));
        }
        let has_order = self.random.chance(60);
        if has_order {
            let key = match keys {
                [] => "count(*)".to_string(),
                _ if self.random.chance(30) => self.aggregate(Integer, scope),
                _ => self.random.pick(keys).clone(),
            };
            window.push(format!("ORDER BY {}", self.sort_key(&key)));
        }
        let call = match (family, self.random.below(5)) {
            (Integer, 0 | 1) => "sum(count(*))".to_string(),
            (Integer, 2) => {
                let of = self.family_of(scope);
                format!("count({})", self.aggregate(of, scope))
            }
            (Integer, 3) if has_order => self.random.pick(&["rank()", "dense_rank()"]).to_string(),
            (Integer, _) => {
                let function = *self.random.pick(&["max", "min", "sum"]);
                format!("{function}(sum({}))", self.leaf(Integer, scope, true))
            }
            (Float, 0 | 1) => "avg(count(*))".to_string(),
            (Float, _) => format!("sum(sum({}))", self.leaf(Float, scope, true)),
            (Decimal, 0 | 1) => format!("sum(sum({}))", self.leaf(Decimal, scope, true)),
            (Boolean, _) => format!("bool_and({})", self.aggregate(Boolean, scope)),
            _ => format!("max({})", self.aggregate(family, scope)),
        };
        if has_order && !call.contains("rank()") && self.random.chance(40) {
            window.push(self.frame("GROUPS", true));
        }
        format!("{call} OVER ({})", window.join(" "))
    }

    /// A table with results of window functions, with which queries may compute.
    pub(super) fn counted(&mut self, alias: &str) -> (String, Scope) {
        let table = self.random.pick(&self.tables).clone();
        let inner = Scope::of("q", table.columns.clone(), table.rows);
        let mut columns = table.columns;
        let mut items = vec!["q.*".to_string()];
        let order = self.total_order(&inner);
        for by_place in [true, false] {
            let mut window = Vec::new();
            if self.random.chance(40) {
                let family = self.family_of(&inner);
                window.push(format!("PARTITION BY {}", self.leaf(family, &inner, false)));
            }
            let (call, family) = match &order {
                Some(order) if by_place => {
                    window.push(order.clone());
                    let (call, family) = match self.random.below(4) {
                        0 => (format!("array_agg({})", self.element(Integers, &inner, true)), Integers),
                        1 => (format!("string_agg({}, ', ')", self.element(Texts, &inner, true)), Text),
                        2 => ("count(*)".to_string(), Integer),
                        _ => ("row_number()".to_string(), Integer),
                    };
                    if call != "row_number()" && self.random.chance(70) {
                        window.push(self.frame("ROWS", true));
                    }
                    (call, family)
                }
                _ => {
                    let first = self.random.pick(&inner.columns().cloned().collect::<Vec<_>>()).name.clone();
                    window.push(format!("ORDER BY {}", self.sort_key(&first)));
                    let sum = format!("sum(CAST({} AS BIGINT) % 100)", self.leaf(Integer, &inner, true));
                    (self.random.pick(&["count(*)".to_string(), "rank()".to_string(), sum]).clone(), Integer)
                }
            };
            let name = self.name("n");
            items.push(format!("{call} OVER ({}) AS {name}", window.join(" ")));
            columns.push(Column { name, family, wild: false });
        }
        let sql = format!("(SELECT {} FROM {} q) {alias}", items.join(", "), table.name);
        (sql, Scope::of(alias, columns, table.rows))
    }
}
