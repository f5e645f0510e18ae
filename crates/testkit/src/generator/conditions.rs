//! BOOLEAN expressions: comparisons, logic, patterns, lists.

use super::Generator;
use super::scope::Scope;
use super::values::Family::*;

impl Generator {
    /// A BOOLEAN expression in parentheses, or a column.
    pub(super) fn condition(&mut self, scope: &Scope, depth: usize) -> String {
        let choice = if depth == 0 { self.random.below(9) } else { self.random.below(13) };
        let below = depth.saturating_sub(1);
        match choice {
            0 => {
                let family = self.family_of(scope);
                let not = self.random.pick(&["", "NOT "]);
                format!("({} IS {not}NULL)", self.leaf(family, scope, false))
            }
            1 => {
                let not = self.random.pick(&["", "NOT "]);
                let pattern = self.random.pick(&["a%", "%b", "%a%", "_b%", "ab", "%", "", "A_%", "%b%c%"]);
                let like = self.random.pick(&["LIKE", "LIKE", "ILIKE"]);
                format!("({} {not}{like} '{pattern}')", self.leaf(Text, scope, false))
            }
            2 => self.in_list(scope),
            3 => {
                let family = self.family_among(
                    &[Integer, Text, Date, Decimal, Timestamp, Instant, Interval, Float, Integers, Texts],
                    scope,
                );
                let not = self.random.pick(&["", "NOT "]);
                let value = self.expression(family, scope, below, false);
                let low = if self.random.chance(15) { self.untyped(family) } else { self.literal(family) };
                format!("({value} {not}BETWEEN {low} AND {})", self.narrow_leaf(family, scope, false))
            }
            4 => self.leaf(Boolean, scope, false),
            5..=8 => self.comparison(scope, below),
            9 => format!("(NOT {})", self.condition(scope, below)),
            10 | 11 => format!("({} AND {})", self.condition(scope, below), self.condition(scope, below)),
            _ => format!("({} OR {})", self.condition(scope, below), self.condition(scope, below)),
        }
    }

    fn in_list(&mut self, scope: &Scope) -> String {
        let family =
            self.family_among(&[Integer, Text, Date, Decimal, Float, Interval, Integers, Texts], scope);
        let not = self.random.pick(&["", "NOT "]);
        let mut list: Vec<String> = (0..self.random.between(1, 4)).map(|_| self.literal(family)).collect();
        if self.random.chance(15) {
            list.push("NULL".to_string());
        }
        match family {
            Integer if self.random.chance(15) => list.insert(0, self.literal(Decimal)),
            _ if self.random.chance(15) => list.push(self.untyped(family)),
            _ => {}
        }
        format!("({} {not}IN ({}))", self.leaf(family, scope, false), list.join(", "))
    }

    fn comparison(&mut self, scope: &Scope, depth: usize) -> String {
        let family = self.family_of(scope);
        let operators = ["=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"];
        let operator = *self.random.pick(&operators);
        let a = self.expression(family, scope, depth, false);
        let b = if self.random.chance(10) {
            self.untyped(family)
        } else {
            self.expression(family, scope, depth, false)
        };
        if self.random.chance(5) { format!("({b} {operator} {a})") } else { format!("({a} {operator} {b})") }
    }
}
