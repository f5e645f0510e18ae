//! Expressions of a family: columns and literals, constructs that every family has, and operations on numbers
//! and text.

use super::scope::{Column, Scope};
use super::values::Family::{self, *};
use super::{Generator, Shape};

impl Generator {
    /// One of `families`, if possible that of a column in `scope`.
    pub(super) fn family_among(&mut self, families: &[Family], scope: &Scope) -> Family {
        let there: Vec<Family> =
            scope.columns().map(|column| column.family).filter(|family| families.contains(family)).collect();
        *self.random.pick(if there.is_empty() { families } else { &there })
    }

    /// A column of `family`, or a literal.
    pub(super) fn leaf(&mut self, family: Family, scope: &Scope, tame: bool) -> String {
        if self.is_wrong()
            && let Some(name) = scope.ambiguous()
        {
            return name.to_string();
        }
        let fitting: Vec<&Column> =
            scope.columns().filter(|column| column.family == family && !(tame && column.wild)).collect();
        if !fitting.is_empty() && self.random.chance(85) {
            return self.random.pick(&fitting).name.clone();
        }
        if self.random.chance(6) {
            let ty = if family == Integer { "BIGINT" } else { family.common_type() };
            return format!("CAST(NULL AS {ty})");
        }
        self.literal(family)
    }

    /// A column or a literal of `family`, or of one whose values are implicitly converted to it.
    pub(super) fn narrow_leaf(&mut self, family: Family, scope: &Scope, tame: bool) -> String {
        let family = if self.random.chance(25) { self.narrower(family) } else { family };
        self.leaf(family, scope, tame)
    }

    /// An expression of `family`. `tame`: it reads no wild column, so that it can be used in computations.
    pub(super) fn expression(&mut self, family: Family, scope: &Scope, depth: usize, tame: bool) -> String {
        if depth == 0 || self.random.chance(35) {
            return self.leaf(family, scope, tame);
        }
        let depth = depth - 1;
        if self.random.chance(25) {
            return self.conditional(family, scope, depth, tame);
        }
        match family {
            Boolean => self.condition(scope, depth),
            Integer => self.integer(scope, depth),
            Float => self.float(scope, depth),
            Decimal => match self.random.below(4) {
                0 => {
                    format!("CAST({} AS DECIMAL(12,2))", self.expression(Integer, scope, depth.min(1), true))
                }
                1 => format!("({} * {})", self.leaf(Decimal, scope, true), self.literal(Decimal)),
                _ => {
                    let operator = self.random.pick(&["+", "-"]);
                    format!(
                        "({} {operator} {})",
                        self.leaf(Decimal, scope, true),
                        self.leaf(Decimal, scope, true)
                    )
                }
            },
            Text => self.text(scope, depth, tame),
            Date => self.date(scope, depth, tame),
            Timestamp => self.timestamp(scope, depth, tame),
            Instant => self.instant(scope, depth),
            Interval => self.interval(scope),
            Time => self.time(scope, tame),
            Integers | Texts | Struct => self.nested(family, scope, tame),
            Uuid | Blob => self.leaf(family, scope, tame),
        }
    }

    /// Constructs that every family has: CASE, COALESCE, NULLIF and scalar subqueries.
    fn conditional(&mut self, family: Family, scope: &Scope, depth: usize, tame: bool) -> String {
        match self.random.below(6) {
            0 => {
                let a = self.expression(family, scope, depth, tame);
                let b = if self.random.chance(15) {
                    self.untyped(family)
                } else {
                    self.narrow_leaf(family, scope, tame)
                };
                format!("COALESCE({a}, {b})")
            }
            1 => format!("NULLIF({}, {})", self.leaf(family, scope, tame), self.leaf(family, scope, tame)),
            2 if self.shape == Shape::Small && !matches!(family, Uuid | Blob | Time) => {
                self.scalar_subquery(family, scope, tame)
            }
            3 => format!(
                "CASE WHEN {} THEN {} END",
                self.condition(scope, depth),
                self.expression(family, scope, depth, tame)
            ),
            // The type of the first result is derived from the second.
            4 => {
                let first = if self.random.chance(50) { "NULL".to_string() } else { self.untyped(family) };
                let second = self.expression(family, scope, depth, tame);
                format!("CASE WHEN {} THEN {first} ELSE {second} END", self.condition(scope, depth))
            }
            _ => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.condition(scope, depth),
                self.narrow_leaf(family, scope, tame),
                self.expression(family, scope, depth, tame)
            ),
        }
    }

    fn integer(&mut self, scope: &Scope, depth: usize) -> String {
        match self.random.below(12) {
            0 => format!("length({})", self.expression(Text, scope, depth, true)),
            1..=3 => self.field(scope, depth),
            4 if self.is_common() => format!("CAST({} AS INTEGER)", self.leaf(Decimal, scope, true)),
            4 => format!("TRY_CAST({} AS INTEGER)", self.leaf(Text, scope, true)),
            5 => format!("CAST({} AS INTEGER)", self.expression(Boolean, scope, depth, true)),
            6 => {
                let operator = self.random.pick(&["/", "%"]);
                let divisor = self.random.pick(&["2", "3", "-5", "7"]);
                format!(
                    "(CAST({} AS BIGINT) {operator} {divisor})",
                    self.expression(Integer, scope, depth, true)
                )
            }
            7 => self.integer_within(scope),
            8 => format!("abs(CAST({} AS BIGINT))", self.leaf(Integer, scope, true)),
            _ => {
                let operator = *self.random.pick(&["+", "-", "*"]);
                let (a, b) = (self.expression(Integer, scope, depth, true), self.leaf(Integer, scope, true));
                format!("(CAST({a} AS BIGINT) {operator} CAST({b} AS BIGINT))")
            }
        }
    }

    fn float(&mut self, scope: &Scope, depth: usize) -> String {
        match self.random.below(6) {
            0 => format!("CAST({} AS DOUBLE PRECISION)", self.expression(Integer, scope, depth, true)),
            1 => {
                let function = self.random.pick(&["floor", "ceil", "abs"]);
                format!("{function}({})", self.expression(Float, scope, depth, true))
            }
            2 => {
                let divisor = self.random.pick(&["2", "4.0", "-8"]);
                format!("({} / {divisor})", self.expression(Float, scope, depth, true))
            }
            3 => format!("sqrt(abs({}))", self.leaf(Float, scope, true)),
            _ => {
                let operator = self.random.pick(&["+", "-", "*"]);
                format!("({} {operator} {})", self.leaf(Float, scope, true), self.leaf(Float, scope, true))
            }
        }
    }

    fn text(&mut self, scope: &Scope, depth: usize, tame: bool) -> String {
        // The upper case of ß differs between databases.
        let cased = self.expression(Text, scope, depth, tame || self.is_common());
        match self.random.below(11) {
            0 => format!("upper({cased})"),
            1 => format!("lower({cased})"),
            2 => format!("substring({cased}, {}, {})", self.random.between(0, 3), self.random.between(0, 4)),
            3 => format!("CAST({} AS VARCHAR)", self.expression(Integer, scope, depth, true)),
            4 => {
                let family = *self.random.pick(&[Date, Timestamp, Boolean, Instant]);
                format!("CAST({} AS VARCHAR)", self.leaf(family, scope, true))
            }
            5 => format!("reverse({cased})"),
            6 => format!("replace({cased}, 'a', 'xx')"),
            7 => format!("trim({cased})"),
            8 => self.text_within(scope, tame || self.is_common()),
            _ => format!("({cased} || {})", self.leaf(Text, scope, tame)),
        }
    }
}
