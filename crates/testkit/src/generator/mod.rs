//! Random tables and queries, as SQL text that a seed determines.
//!
//! **Strategy.** A [`Workload`] is a few small tables (all types, NULLs, duplicates, one table often empty;
//! half of them laid out by a key, with rows that were changed or removed) and a list of queries over them.
//! The values come from tiny domains, so that keys meet.
//!
//! | file | what it writes |
//! |---|---|
//! | [`values`] | types, literals with and without a type, the extremes of types |
//! | [`tables`] | tables, their rows and changes to them |
//! | [`scope`] | which names an expression may use |
//! | [`queries`] | set operations, `WITH`, `ORDER BY`, `LIMIT` |
//! | [`blocks`] | `SELECT` blocks, grouping, aggregates |
//! | [`joins`] | `FROM`: tables, derived tables, `VALUES`, joins with `ON`, `USING`, `NATURAL` |
//! | [`expressions`] | expressions of every family but the next |
//! | [`moments`] | dates, timestamps, instants, intervals |
//! | [`conditions`] | comparisons, logic, patterns, lists |
//! | [`windows`] | window functions |
//! | [`subqueries`] | `EXISTS`, `IN`, `ANY`, `ALL`, rows, scalars |
//!
//! **Invariants.** What a query means is determined:
//! - `LIMIT` stands only over an order by all columns, so rows that tie are equal.
//! - Arithmetic cannot overflow: it reads *tame* columns and literals only, in BIGINT, a few levels deep.
//!   *Wild* columns hold the extremes of their types and are compared, grouped, joined and sorted, never
//!   computed with.
//! - Floats are multiples of a quarter and divisors powers of two, so sums are exact in whatever order they
//!   run.
//! - No functions of time or chance.
//!
//! So the engine and the reference must agree on every query, and an error of one of them alone is a failure.
//!
//! **Dialects.** [`Dialect::Own`] has every type and clause that the reference engine can run.
//! [`Dialect::Common`] is for other databases: what DuckDB and PostgreSQL understand too, and mean alike
//! where that can be had by writing it out (the place of NULLs in a descending order); and now and then
//! something that all must refuse. What it does not avoid are differences that a query as users write it
//! shows; `tests/differences.md` has them.

mod blocks;
mod conditions;
mod expressions;
mod joins;
mod moments;
mod queries;
mod scope;
mod subqueries;
mod tables;
mod values;
mod windows;

use crate::random::Random;
use scope::Table;

/// Tables and queries.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Statements that make and fill the tables.
    pub setup: Vec<String>,
    /// Queries, each with whether its result comes in a defined order.
    pub queries: Vec<Query>,
}

/// One generated query.
#[derive(Debug, Clone)]
pub struct Query {
    /// The text.
    pub sql: String,
    /// True: the rows must come in the reference's order.
    pub ordered: bool,
}

/// How large tables are and which queries run over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Up to a dozen rows, queries of every kind.
    Small,
    /// Thousands of rows, so that full chunks and several blocks occur; queries over one table, because the
    /// reference joins by nested loops.
    Large,
}

/// For whom statements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Entasis and the reference engine.
    Own,
    /// Entasis, DuckDB and PostgreSQL.
    Common,
}

/// The workload of `seed`.
pub fn workload(seed: u64, shape: Shape, dialect: Dialect, queries: usize) -> Workload {
    let mut generator = Generator { random: Random::new(seed), shape, dialect, tables: Vec::new(), names: 0 };
    let setup = generator.setup();
    let queries = (0..queries).map(|_| generator.query()).collect();
    Workload { setup, queries }
}

struct Generator {
    random: Random,
    shape: Shape,
    dialect: Dialect,
    /// What `FROM` may name; a name that stands here several times is read more often.
    tables: Vec<Table>,
    /// Names that were made so far.
    names: usize,
}

impl Generator {
    fn is_common(&self) -> bool {
        self.dialect == Dialect::Common
    }

    /// True if something wrong should be written: an ambiguous name, a column that is not grouped. Others
    /// must refuse it, too.
    fn is_wrong(&mut self) -> bool {
        self.is_common() && self.random.below(300) == 0
    }

    /// A name that no other thing has.
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queries(dialect: Dialect) -> String {
        (0..90)
            .flat_map(|seed| workload(seed, Shape::Small, dialect, 20).queries)
            .map(|q| q.sql + "\n")
            .collect()
    }

    #[test]
    fn a_seed_determines_the_workload() {
        let text = |seed| format!("{:?}", workload(seed, Shape::Small, Dialect::Own, 20));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn every_construct_occurs() {
        for dialect in [Dialect::Own, Dialect::Common] {
            let all = queries(dialect);
            for construct in [
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "CROSS JOIN",
                "NATURAL",
                "USING (c0)",
                "USING (c0, c1)",
                "SELECT *",
                "GROUP BY",
                "GROUP BY ()",
                "HAVING",
                "DISTINCT",
                "UNION ALL",
                "INTERSECT",
                "EXCEPT ALL",
                "WITH",
                "NOT EXISTS",
                "NOT IN (SELECT",
                ") IN (SELECT",
                "= ANY (SELECT",
                ">= ALL (SELECT",
                "(VALUES",
                "FILTER",
                "LIMIT",
                "NULLS FIRST",
                "CASE",
                "ILIKE",
                "BETWEEN",
                "(SELECT max",
                "IS NOT DISTINCT FROM",
                "extract",
                "AT TIME ZONE",
                "INTERVAL '1' DAY",
                "row_number() OVER (",
                "RANGE BETWEEN",
                "GROUPS",
                "EXCLUDE TIES",
                "WINDOW w0 AS (",
            ] {
                assert!(all.contains(construct), "{construct} is never generated for {dialect:?}");
            }
        }
        assert!(queries(Dialect::Own).contains("TRY_CAST"));
        assert!(queries(Dialect::Common).contains("(SELECT NULL"));
    }

    #[test]
    fn what_others_do_not_know_is_not_common() {
        let setup: String =
            (0..90).flat_map(|seed| workload(seed, Shape::Small, Dialect::Common, 0).setup).collect();
        for foreign in ["TRY_CAST", "UINTEGER", "TINYINT", "BLOB", "layout"] {
            assert!(!queries(Dialect::Common).contains(foreign) && !setup.contains(foreign), "{foreign}");
        }
    }
}
