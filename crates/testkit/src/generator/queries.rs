//! Whole queries: set operations, `WITH`, `ORDER BY`, `LIMIT`.

use super::scope::{Block, Column, Table};
use super::values::Family;
use super::{Generator, Query, Shape};

const NULLS: [&str; 2] = [" NULLS FIRST", " NULLS LAST"];

impl Generator {
    /// A query over the tables.
    pub(super) fn query(&mut self) -> Query {
        let mut block =
            if self.shape == Shape::Large { self.block(None, 2) } else { self.query_expression() };
        while self.is_unbound(&block.sql) {
            block = self.query_expression();
        }
        if !self.random.chance(40) {
            return Query { sql: block.sql, ordered: false };
        }
        let sql = format!("{}{}", block.sql, self.order_and_limit(&block));
        Query { sql, ordered: true }
    }

    fn query_expression(&mut self) -> Block {
        match self.random.below(10) {
            0 | 1 => self.set_operation(),
            2 | 3 => self.with_clause(),
            4 if self.random.chance(40) => self.recursion(),
            _ => self.block(None, 2),
        }
    }

    /// An order by all columns of a block, by number or name, often with a limit; sometimes preceded by a
    /// column that the block's expressions read.
    pub(super) fn order_and_limit(&mut self, block: &Block) -> String {
        let columns = &block.columns;
        let mut places: Vec<usize> = (0..columns.len()).collect();
        for i in (1..places.len()).rev() {
            places.swap(i, self.random.below(i + 1));
        }
        let mut keys = Vec::new();
        if !block.inputs.is_empty() && self.random.chance(20) {
            let input = self.random.pick(&block.inputs).name.clone();
            keys.push(self.sort_key(&input));
        }
        for place in places {
            let name = &columns[place].name;
            let by_name =
                columns.iter().filter(|column| column.name == *name).count() == 1 && self.random.chance(30);
            let key = if by_name { name.clone() } else { (place + 1).to_string() };
            keys.push(self.sort_key(&key));
        }
        let limit = match self.random.below(4) {
            0 => format!(" LIMIT {}", self.random.below(8)),
            1 => format!(" LIMIT {} OFFSET {}", self.random.below(8), self.random.below(5)),
            _ => String::new(),
        };
        format!(" ORDER BY {}{limit}", keys.join(", "))
    }

    pub(super) fn sort_key(&mut self, key: &str) -> String {
        let direction = *self.random.pick(&["", " ASC", " DESC"]);
        // By default, PostgreSQL puts NULLs first in a descending order.
        let free = !(self.is_common() && direction == " DESC");
        let nulls: &[&str] = if free { &["", "", NULLS[0], NULLS[1]] } else { &NULLS };
        format!("{key}{direction}{}", self.random.pick(nulls))
    }

    /// `UNION`, `INTERSECT`, `EXCEPT` of two or three blocks; one of the first two may be a row of literals,
    /// whose types are determined by the other.
    pub(super) fn set_operation(&mut self) -> Block {
        let families: Vec<Family> = (0..self.random.between(1, 3)).map(|_| self.computed()).collect();
        let literals = if self.random.chance(30) { Some(self.random.below(2)) } else { None };
        let (mut sql, mut rows) = self.arm(&families, literals == Some(0));
        for arm in 1..=self.random.between(1, 2) as usize {
            let operator = *self.random.pick(&[
                "UNION",
                "UNION ALL",
                "INTERSECT",
                "INTERSECT ALL",
                "EXCEPT",
                "EXCEPT ALL",
            ]);
            let (other, others) = self.arm(&families, literals == Some(arm));
            sql = format!("({sql}) {operator} ({other})");
            rows += others;
        }
        let column =
            |(i, family): (usize, &Family)| Column { name: format!("c{i}"), family: *family, wild: true };
        Block::closed(sql, families.iter().enumerate().map(column).collect(), rows)
    }

    /// An input of a set operation, and the most rows that it returns.
    fn arm(&mut self, families: &[Family], of_literals: bool) -> (String, usize) {
        if of_literals {
            return (self.literal_row(families), 1);
        }
        let block = self.block(Some(families), 1);
        (block.sql, block.rows)
    }

    /// A row of literals that may be untyped.
    fn literal_row(&mut self, families: &[Family]) -> String {
        let mut items = Vec::new();
        for (i, family) in families.iter().enumerate() {
            let item = match self.random.below(4) {
                0 => "NULL".to_string(),
                1 => self.untyped(*family),
                2 => {
                    let narrower = self.narrower(*family);
                    self.literal(narrower)
                }
                _ => self.literal(*family),
            };
            items.push(format!("{item} AS c{i}"));
        }
        format!("SELECT {}", items.join(", "))
    }

    /// A recursion over pairs of values that come from tables, of which there are finitely many: rows that
    /// come again end it. Its rows are those of a transitive closure.
    fn recursion(&mut self) -> Block {
        let own = self.tables.len();
        use Family::{Date, Decimal, Integer, Text};
        // Equal values are the same values.
        let families =
            [*self.random.pick(&[Integer, Text, Date, Decimal]), *self.random.pick(&[Integer, Text])];
        let columns = |names: [&str; 2]| -> Vec<Column> {
            let column = |(name, family): (&str, &Family)| Column {
                name: name.to_string(),
                family: *family,
                wild: true,
            };
            names.into_iter().zip(&families).map(column).collect()
        };
        let cast = |family: Family, name: &str| format!("CAST({name} AS {})", family.common_type());
        let [a, b] = families;
        let start = self.block(Some(&families), 1);
        let edges = self.block(Some(&families), 1);
        let (start, edges) = (start.sql, edges.sql);
        let step = match self.random.below(3) {
            // From one pair to the next.
            0 => format!(
                "SELECT {}, {} FROM rec JOIN edge ON rec.k1 = edge.c1",
                cast(a, "edge.c0"),
                cast(b, "rec.k1")
            ),
            1 => format!(
                "SELECT {}, {} FROM rec JOIN edge ON rec.k0 = edge.c0",
                cast(a, "rec.k0"),
                cast(b, "edge.c1")
            ),
            _ => format!(
                "SELECT {}, {} FROM rec CROSS JOIN edge WHERE rec.k1 <= edge.c1",
                cast(a, "rec.k0"),
                cast(b, "edge.c1")
            ),
        };
        let rec = Table { name: "rec".into(), columns: columns(["k0", "k1"]), rows: 60 };
        self.tables.extend([rec.clone(), rec.clone(), rec]);
        let outer = self.block(None, 1);
        self.tables.truncate(own);
        let sql = format!(
            "WITH RECURSIVE edge AS ({edges}), rec(k0, k1) AS (SELECT {}, {} FROM ({start}) s UNION {step}) {}",
            cast(a, "c0"),
            cast(b, "c1"),
            outer.sql
        );
        Block { sql, ..outer }
    }

    /// One or two named queries, mostly read more than once; the second may read the first.
    fn with_clause(&mut self) -> Block {
        let own = self.tables.len();
        let mut named = Vec::new();
        for i in 0..*self.random.pick(&[1, 1, 2]) {
            let inner = if self.random.chance(25) { self.set_operation() } else { self.block(None, 1) };
            let cte = Table { name: format!("cte{i}"), columns: inner.columns, rows: inner.rows };
            named.push(format!("{} AS ({})", cte.name, inner.sql));
            self.tables.extend([cte.clone(), cte.clone(), cte]);
        }
        let outer = self.block(None, 2);
        self.tables.truncate(own);
        Block { sql: format!("WITH {} {}", named.join(", "), outer.sql), ..outer }
    }
}
