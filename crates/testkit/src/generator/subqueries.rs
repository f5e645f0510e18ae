//! Subqueries in conditions, correlated half of the time: `EXISTS`, `IN`, `ANY`, `ALL`, rows, scalars; and
//! recursions that read columns of the outer block.

use super::scope::Scope;
use super::values::Family::{self, *};
use super::{Generator, Shape};

impl Generator {
    /// A predicate for WHERE: a condition, sometimes with a subquery.
    pub(super) fn predicate(&mut self, scope: &Scope, depth: usize) -> String {
        let condition = self.condition(scope, 2);
        if self.shape == Shape::Large || depth < 2 || !self.random.chance(35) {
            return condition;
        }
        let subquery = self.subquery_condition(scope);
        let joint = *self.random.pick(&["AND", "AND", "OR"]);
        match self.random.below(3) {
            0 => format!("{condition} {joint} {subquery}"),
            _ => subquery,
        }
    }

    /// A condition with a subquery.
    pub(super) fn subquery_condition(&mut self, scope: &Scope) -> String {
        let not = *self.random.pick(&["", "NOT "]);
        let families = [Integer, Text, Date, Decimal, Timestamp, Instant, Interval, Integers, Texts];
        match self.random.below(9) {
            0 | 1 => {
                let family = self.computed();
                format!("{not}EXISTS ({})", self.subquery(scope, &[family]))
            }
            2 | 3 => {
                let family = self.family_among(&families, scope);
                format!("{} {not}IN ({})", self.leaf(family, scope, false), self.subquery(scope, &[family]))
            }
            4 => self.condition_on_elements(scope),
            5 => {
                let row = [self.family_among(&families, scope), self.family_among(&families, scope)];
                let (a, b) = (self.leaf(row[0], scope, false), self.leaf(row[1], scope, false));
                format!("({a}, {b}) {not}IN ({})", self.subquery(scope, &row))
            }
            _ => {
                let family = self.family_among(&families, scope);
                let operator = *self.random.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let quantifier = *self.random.pick(&["ANY", "ANY", "ALL", "ALL", "SOME"]);
                let value = self.leaf(family, scope, false);
                format!("({value} {operator} {quantifier} ({}))", self.subquery(scope, &[family]))
            }
        }
    }

    /// A scalar subquery: an aggregate over one table, or over a recursion.
    pub(super) fn scalar_subquery(&mut self, family: Family, outer: &Scope, tame: bool) -> String {
        if !self.is_common() && family == Text && self.random.chance(40) {
            return self.outer_recursion(outer, tame);
        }
        let (from, scope) = self.item(1);
        let argument = self.leaf(family, &scope, tame);
        let call = match family {
            Boolean => format!("bool_or({argument})"),
            Integer if self.random.chance(40) => format!("count({argument})"),
            _ => format!("max({argument})"),
        };
        let correlation = if self.random.chance(50) { self.correlation(&scope, outer) } else { None };
        let sql_where = correlation.map_or(String::new(), |c| format!(" WHERE {c}"));
        format!("(SELECT {call} FROM {from}{sql_where})")
    }

    /// A text that a recursion of a few rounds makes of columns of the outer block.
    fn outer_recursion(&mut self, outer: &Scope, tame: bool) -> String {
        let (first, next) = (self.leaf(Text, outer, tame), self.leaf(Text, outer, tame));
        let next = if self.random.chance(30) { "v" } else { next.as_str() };
        let union = *self.random.pick(&["UNION", "UNION ALL"]);
        let (table, scope) = self.item(1);
        let further = match self.correlation(&scope, outer) {
            Some(same) if self.random.chance(40) => {
                format!(" AND EXISTS (SELECT 1 FROM {table} WHERE {same})")
            }
            _ => String::new(),
        };
        let condition = self.condition(outer, 1);
        let rows = *self.random.pick(&["min(v)", "max(v)", "CAST(count(v) AS VARCHAR)"]);
        format!(
            "(WITH RECURSIVE rounds(n, v) AS (SELECT 0, CAST({first} AS VARCHAR) {union} SELECT n + 1, CAST({next} AS VARCHAR) \
             FROM rounds WHERE n < 3 AND ({condition}){further}) SELECT {rows} FROM rounds)"
        )
    }

    /// A subquery whose columns are of `families`: over one table or a join, sometimes grouped or a set
    /// operation of two blocks.
    fn subquery(&mut self, outer: &Scope, families: &[Family]) -> String {
        let joined = self.random.chance(20);
        let (from, scope) = if joined { self.from(1) } else { self.item(1) };
        let mut conditions = Vec::new();
        if self.random.chance(50) {
            conditions.extend(self.correlation(&scope, outer));
        }
        if self.random.chance(40) {
            conditions.push(self.condition(&scope, 1));
        }
        let sql_where = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let grouped = families.len() == 1 && self.random.chance(15);
        let mut items = Vec::new();
        for (i, family) in families.iter().enumerate() {
            let item =
                if grouped { self.aggregate(*family, &scope) } else { self.leaf(*family, &scope, false) };
            items.push(format!("{item} AS c{i}"));
        }
        let sql = format!("SELECT {} FROM {from}{sql_where}", items.join(", "));
        if grouped && self.random.chance(60) {
            let columns: Vec<String> = scope.columns().map(|column| column.name.clone()).collect();
            return format!("{sql} GROUP BY {}", self.random.pick(&columns));
        }
        if !grouped && families.len() == 1 && self.random.chance(10) {
            let other = self.subquery(outer, families);
            return if self.is_common() {
                format!("({sql}) UNION ALL ({other})")
            } else {
                format!("{sql} UNION ALL {other}")
            };
        }
        sql
    }
}
