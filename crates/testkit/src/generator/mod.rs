//! Random tables and queries, as SQL text that a seed determines.
//!
//! **Strategy.** A [`Workload`] is a few small tables (all types, NULLs, duplicates, one table often empty;
//! half of them laid out by a key, with rows that were changed or removed) and a list of queries over them.
//! The values come from tiny domains, so that keys match.
//!
//! | file | what it generates |
//! |---|---|
//! | [`values`] | types, literals with and without a type, the extremes of types |
//! | [`tables`] | tables, their rows and changes to them |
//! | [`scope`] | the names that an expression may use |
//! | [`queries`] | set operations, `WITH`, `ORDER BY`, `LIMIT` |
//! | [`blocks`] | `SELECT` blocks, grouping, aggregates |
//! | [`joins`] | `FROM`: tables, derived tables, `VALUES`, joins with `ON`, `USING`, `NATURAL` |
//! | [`expressions`] | expressions of every family but the next |
//! | [`moments`] | dates, timestamps, instants, intervals |
//! | [`conditions`] | comparisons, logic, patterns, lists |
//! | [`nested`] | lists and structs: literals, operations, elements |
//! | [`windows`] | window functions |
//! | [`totals`] | windows over groups, aggregates over windows, ordered aggregates |
//! | [`subqueries`] | `EXISTS`, `IN`, `ANY`, `ALL`, rows, scalars |
//!
//! **Invariants.** The result of a query is determined:
//! - `LIMIT` is only used with an order by all columns, so rows that tie are equal.
//! - Arithmetic cannot overflow: it only reads *tame* columns and literals, in BIGINT, a few levels deep.
//!   *Wild* columns contain the extremes of their types and are compared, grouped, joined and sorted, but
//!   never used in computations.
//! - Floats are multiples of a quarter and divisors powers of two, so sums are exact in any order.
//! - There are no functions of time or chance, but for conditions of others' dialect that are true whatever
//!   number is drawn.
//!
//! So the engine and the reference must agree on every query, and an error in only one of them is a failure.
//!
//! **Dialects.** [`Dialect::Own`] has every type and clause that the reference engine supports.
//! [`Dialect::Common`] is for other databases: it uses what DuckDB and PostgreSQL understand too, and what
//! means the same in all, if necessary by writing it out (the place of NULLs in a descending order); and now
//! and then something that all must refuse. It does not avoid differences that occur in queries as users
//! write them; `tests/differences.md` lists these.

mod blocks;
mod conditions;
mod expressions;
mod joins;
mod moments;
mod nested;
mod queries;
mod scope;
mod subqueries;
mod tables;
mod totals;
mod values;
mod windows;

use crate::random::Random;
use scope::Table;

/// Tables and queries.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Statements that create and fill the tables.
    pub setup: Vec<String>,
    /// Queries, each with whether the order of its result is defined.
    pub queries: Vec<Query>,
}

/// One generated query.
#[derive(Debug, Clone)]
pub struct Query {
    /// The text.
    pub sql: String,
    /// True if the rows must be in the reference's order.
    pub ordered: bool,
}

/// How large tables are and which queries run over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Up to a dozen rows, queries of every kind.
    Small,
    /// Thousands of rows, so that full chunks and several blocks occur; each query is over one table, because
    /// the reference uses nested-loop joins.
    Large,
}

/// The databases for which statements are generated.
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
    /// The tables that `FROM` may name; a table that occurs several times here is read more often.
    tables: Vec<Table>,
    /// Number of names generated so far.
    names: usize,
}

impl Generator {
    fn is_common(&self) -> bool {
        self.dialect == Dialect::Common
    }

    /// True if an error should be generated: an ambiguous name, or a column that is not grouped. Others must
    /// refuse it, too.
    fn is_wrong(&mut self) -> bool {
        self.is_common() && self.random.below(300) == 0
    }

    /// A new unique name.
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

    fn setups(dialect: Dialect) -> String {
        (0..90)
            .flat_map(|seed| workload(seed, Shape::Small, dialect, 0).setup)
            .map(|statement| statement + "\n")
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
            let all = queries(dialect) + &setups(dialect);
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
                "ROLLUP (",
                "CUBE (",
                "GROUPING SETS ((",
                "WITH RECURSIVE edge AS (",
                "row_number() OVER () AS",
                "SET TimeZone = ",
                " TIMESTAMPTZ",
                "extract(timezone",
                "AS VARCHAR) AS TIMESTAMPTZ",
                " AS TIME)",
                "sum(count(*)) OVER (",
                "max(sum(",
                "array_agg(DISTINCT ",
                "string_agg(CAST(count(*) AS VARCHAR), ', ') OVER (",
                "string_agg(",
                " q) r",
                " INTEGER[]",
                " TEXT[]",
                "'a, b'",
                ", unnest(",
                "CROSS JOIN unnest(",
                "IN (SELECT e",
                "array_append(",
                "array_cat(",
                "array_position(",
                "array_to_string(",
                "cardinality(",
                ")[1:",
                "{'a': ",
                ").b",
            ] {
                assert!(all.contains(construct), "{construct} is never generated for {dialect:?}");
            }
        }
        assert!(queries(Dialect::Own).contains("TRY_CAST"));
        assert!(queries(Dialect::Own).contains("WITH RECURSIVE rounds("));
        assert!(queries(Dialect::Common).contains("SELECT unnest("));
        assert!(queries(Dialect::Common).contains("(SELECT NULL"));
        assert!(queries(Dialect::Common).contains("random() < 2"));
    }

    #[test]
    fn what_others_do_not_know_is_not_common() {
        let all = queries(Dialect::Common) + &setups(Dialect::Common);
        for foreign in ["TRY_CAST", "UINTEGER", "TINYINT", "BLOB", "layout"] {
            assert!(!all.contains(foreign), "{foreign}");
        }
        // What PostgreSQL does not read is not in the tables, or it would have none.
        assert!(!setups(Dialect::Common).contains("STRUCT"));
    }
}
