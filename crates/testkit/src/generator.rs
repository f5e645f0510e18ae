//! Random tables and queries, as SQL text that a seed determines.
//!
//! **Strategy.** A [`Workload`] is a few small tables (all types, NULLs, duplicates, one table often empty; half of them laid
//! out by a key, with rows that were changed or removed) and a list of queries over them: joins of all kinds on equalities
//! and on anything else, filters, expressions of every type, aggregates, `DISTINCT`, set operations, subqueries in every
//! place, `ORDER BY` and `LIMIT`. The values come from tiny domains, so that keys meet.
//!
//! **Invariants.** What a query means is determined:
//! - `LIMIT` stands only over an order by all columns, so rows that tie are equal.
//! - Arithmetic cannot overflow: it reads *tame* columns and literals only, in BIGINT, a few levels deep. *Wild* columns
//!   hold the extremes of their types and are compared, grouped, joined and sorted, never computed with.
//! - Floats are multiples of a quarter and divisors powers of two, so sums are exact in whatever order they run.
//! - No functions of time or chance.
//!
//! So the engine and the reference must agree on every query, and an error of one of them alone is a failure.

use crate::random::Random;

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
    /// Thousands of rows, so that full chunks and several blocks occur; queries over one table, because the reference
    /// joins by nested loops.
    Large,
}

/// The workload of `seed`.
pub fn workload(seed: u64, shape: Shape, queries: usize) -> Workload {
    let mut generator = Generator { random: Random::new(seed), shape, tables: Vec::new(), aliases: 0 };
    let setup = generator.setup();
    let queries = (0..queries).map(|_| generator.query()).collect();
    Workload { setup, queries }
}

/// Types that expressions treat alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Boolean,
    Integer,
    Float,
    Decimal,
    Text,
    Date,
    Timestamp,
    Time,
    Interval,
    Uuid,
    Blob,
}

use Family::*;

/// Types of table columns. The first ones are frequent, because they are good join keys.
const TYPES: &[(&str, Family)] = &[
    ("INTEGER", Integer),
    ("BIGINT", Integer),
    ("VARCHAR", Text),
    ("DECIMAL(6,2)", Decimal),
    ("DATE", Date),
    ("BOOLEAN", Boolean),
    ("DOUBLE", Float),
    ("SMALLINT", Integer),
    ("TINYINT", Integer),
    ("UTINYINT", Integer),
    ("USMALLINT", Integer),
    ("UINTEGER", Integer),
    ("UBIGINT", Integer),
    ("REAL", Float),
    ("DECIMAL(18,4)", Decimal),
    ("DECIMAL(30,3)", Decimal),
    ("TIMESTAMP", Timestamp),
    ("TIME", Time),
    ("INTERVAL", Interval),
    ("UUID", Uuid),
    ("BLOB", Blob),
];

/// The families that queries compute with.
const COMPUTED: &[Family] = &[Boolean, Integer, Integer, Integer, Float, Decimal, Text, Text, Date, Timestamp];

impl Family {
    /// One type that holds all values of the family, for set operations.
    fn common_type(self) -> &'static str {
        match self {
            Boolean => "BOOLEAN",
            Integer => "DECIMAL(20,0)",
            Float => "DOUBLE",
            Decimal => "DECIMAL(36,6)",
            Text => "VARCHAR",
            Date => "DATE",
            Timestamp => "TIMESTAMP",
            Time => "TIME",
            Interval => "INTERVAL",
            Uuid => "UUID",
            Blob => "BLOB",
        }
    }
}

#[derive(Debug, Clone)]
struct Column {
    /// As an expression writes it.
    name: String,
    family: Family,
    wild: bool,
}

#[derive(Debug, Clone)]
struct Table {
    name: String,
    columns: Vec<Column>,
}

/// What an expression may read: the columns of its own FROM, and of the query around it.
#[derive(Debug, Clone, Default)]
struct Scope {
    columns: Vec<Column>,
}

struct Generator {
    random: Random,
    shape: Shape,
    tables: Vec<Table>,
    aliases: usize,
}

/// A query block and its result columns, named `c0`, `c1`, ….
struct Block {
    sql: String,
    columns: Vec<Column>,
}

impl Generator {
    // ---- tables ----------------------------------------------------------------------------------------------------

    fn setup(&mut self) -> Vec<String> {
        let mut statements = Vec::new();
        let count = if self.shape == Shape::Large { 1 } else { 3 };
        for t in 0..count {
            let name = format!("t{t}");
            let mut types = vec![TYPES[0], TYPES[2]];
            for _ in 0..self.random.between(2, 5) {
                types.push(*self.random.pick(TYPES));
            }
            let columns: Vec<Column> = types
                .iter()
                .enumerate()
                .map(|(i, (_, family))| Column { name: format!("c{i}"), family: *family, wild: self.random.chance(25) })
                .collect();
            let declared: Vec<String> =
                columns.iter().zip(&types).map(|(column, (ty, _))| format!("{} {ty}", column.name)).collect();
            statements.push(format!("CREATE TABLE {name} ({}){}", declared.join(", "), self.layout()));
            let rows = match self.shape {
                Shape::Large => self.random.between(1500, 5000),
                Shape::Small if self.random.chance(6) => 0,
                Shape::Small => self.random.between(1, 14),
            };
            // How many of a hundred are NULL, by column.
            let nulls: Vec<usize> = columns.iter().map(|_| *self.random.pick(&[0, 0, 15, 40])).collect();
            let own: Vec<(&str, &Column, usize)> = types
                .iter()
                .zip(&columns)
                .zip(&nulls)
                .map(|(((ty, _), column), nulls)| (*ty, column, *nulls))
                .collect();
            let mut lines: Vec<Vec<String>> = Vec::new();
            for _ in 0..rows {
                let cells: Vec<String> = own.iter().map(|(ty, column, nulls)| self.cell(ty, column, *nulls)).collect();
                lines.push(cells);
            }
            // Rows that come a few at a time and in the order of the key stand in several blocks.
            if self.random.chance(70) {
                lines.sort_by_key(|cells| cells[0].parse::<i64>().unwrap_or(i64::MAX));
            }
            let together = if self.shape == Shape::Large { 500 } else { *self.random.pick(&[1, 2, 4, 14]) };
            for part in lines.chunks(together) {
                let rows: Vec<String> = part.iter().map(|cells| format!("({})", cells.join(", "))).collect();
                statements.push(format!("INSERT INTO {name} VALUES {}", rows.join(", ")));
            }
            for _ in 0..self.random.between(0, 4) {
                statements.push(self.change(&name, &own));
            }
            self.tables.push(Table { name, columns });
        }
        statements
    }

    /// How a table is laid out, of half of them by a key.
    fn layout(&mut self) -> String {
        if self.random.chance(50) {
            return String::new();
        }
        let layout = *self.random.pick(&["sorted", "delta", "equi", "equi", "equi_ghost", "casper"]);
        let key = *self.random.pick(&["c0", "c0", "c0, c1", "c1", "c1, c0", "c2"]);
        format!(" WITH (layout = '{layout}', layout_key = ({key}))")
    }

    /// A statement that changes some rows of a table, so that blocks have been written and have empty slots.
    fn change(&mut self, name: &str, columns: &[(&str, &Column, usize)]) -> String {
        let some = match self.random.below(4) {
            0 => "c1 IS NULL".to_string(),
            1 => format!("c1 = {}", self.literal(Text)),
            2 => format!("c0 < {}", self.literal(Integer)),
            _ => format!("c0 = {}", self.literal(Integer)),
        };
        match self.random.below(4) {
            0 => format!("DELETE FROM {name} WHERE {some}"),
            1 => {
                let cells: Vec<String> =
                    columns.iter().map(|(ty, column, nulls)| self.cell(ty, column, *nulls)).collect();
                format!("INSERT INTO {name} VALUES ({})", cells.join(", "))
            }
            _ => {
                let (ty, column, nulls) = *self.random.pick(columns);
                format!("UPDATE {name} SET {} = {} WHERE {some}", column.name, self.cell(ty, column, nulls + 20))
            }
        }
    }

    fn cell(&mut self, ty: &str, column: &Column, nulls: usize) -> String {
        if self.random.chance(nulls) {
            return "NULL".to_string();
        }
        if column.wild && self.random.chance(40) {
            return self.extreme(ty);
        }
        match column.family {
            Integer if ty.starts_with('U') => self.random.between(0, 7).to_string(),
            Integer if self.shape == Shape::Large && !ty.contains("TINY") => self.random.between(-3, 900).to_string(),
            Decimal if self.random.chance(30) => {
                format!("{}.{:02}", self.random.between(-9, 9), self.random.between(0, 3) * 25)
            }
            family => self.literal(family),
        }
    }

    fn extreme(&mut self, ty: &str) -> String {
        let of: &[&str] = match ty {
            "TINYINT" => &["-128", "127"],
            "SMALLINT" => &["-32768", "32767"],
            "INTEGER" => &["-2147483648", "2147483647"],
            "BIGINT" => &["-9223372036854775807", "9223372036854775807", "4294967296"],
            "UTINYINT" => &["255", "128"],
            "USMALLINT" => &["65535", "32768"],
            "UINTEGER" => &["4294967295", "2147483648"],
            "UBIGINT" => &["18446744073709551615", "9223372036854775808"],
            "REAL" => &["CAST('inf' AS REAL)", "16777216", "CAST('nan' AS REAL)"],
            "DOUBLE" => {
                &["CAST('-inf' AS DOUBLE)", "CAST('nan' AS DOUBLE)", "CAST(1e300 AS DOUBLE)", "4503599627370496.5"]
            }
            "DECIMAL(6,2)" => &["9999.99", "-9999.99"],
            "DECIMAL(18,4)" => &["999999999999.9999", "-999999999999.9999"],
            "DECIMAL(30,3)" => &["123456789012345678.901", "-9223372036854775808.001"],
            "VARCHAR" => &["''", "'größe'", "'exactly12byt'", "'a text that is longer than a view'", "'日本語'", "' '"],
            "DATE" => &["DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1970-01-01'"],
            "TIMESTAMP" => &["TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP '9999-12-31 23:59:59'"],
            "TIME" => &["TIME '23:59:59.999999'", "TIME '00:00:00'"],
            "UUID" => &["CAST('ffffffff-ffff-ffff-ffff-ffffffffffff' AS UUID)"],
            "INTERVAL" => &["INTERVAL '-100 years'", "INTERVAL '100 years'"],
            "BLOB" => &["CAST('' AS BLOB)", "CAST('a blob that is longer than a view' AS BLOB)"],
            _ => &["true"],
        };
        self.random.pick(of).to_string()
    }

    fn literal(&mut self, family: Family) -> String {
        match family {
            Boolean => self.random.pick(&["true", "false"]).to_string(),
            Integer => self.random.between(-2, 7).to_string(),
            Float => format!("CAST({} AS DOUBLE)", self.random.between(-12, 12) as f64 / 4.0),
            Decimal => format!("{}.{}", self.random.between(-4, 4), self.random.pick(&["00", "25", "50", "75"])),
            Text => format!("'{}'", self.random.pick(&["a", "b", "ab", "Ab", "abc", "ba", "c d", "xyz", "12", "-7"])),
            Date => {
                let of = ["2020-02-29", "2020-03-01", "2021-01-01", "2021-01-31", "2019-12-30"];
                format!("DATE '{}'", self.random.pick(&of))
            }
            Timestamp => {
                let of =
                    ["2020-02-29 00:00:00", "2020-02-29 12:34:56.789", "2021-01-01 00:00:01", "2019-12-31 23:59:59"];
                format!("TIMESTAMP '{}'", self.random.pick(&of))
            }
            Time => format!("TIME '{}'", self.random.pick(&["00:00:01", "12:00:00", "12:34:56.789"])),
            Interval => {
                let of = ["1 day", "2 days", "1 month", "3 hours", "1 year 2 months"];
                format!("INTERVAL '{}'", self.random.pick(&of))
            }
            Uuid => format!("CAST('00000000-0000-0000-0000-00000000000{}' AS UUID)", self.random.between(0, 3)),
            Blob => format!("CAST('{}' AS BLOB)", self.random.pick(&["a", "b", "ab"])),
        }
    }

    // ---- queries ---------------------------------------------------------------------------------------------------

    fn query(&mut self) -> Query {
        let large = self.shape == Shape::Large;
        let block = match self.random.below(10) {
            0 | 1 if !large => self.set_operation(),
            2 if !large => self.with_clause(),
            _ => self.block(&Scope::default(), None, 2),
        };
        if !self.random.chance(40) {
            return Query { sql: block.sql, ordered: false };
        }
        let sql = format!("{}{}", block.sql, self.order_and_limit(block.columns.len()));
        Query { sql, ordered: true }
    }

    /// An order by all of `columns`, often with a limit.
    fn order_and_limit(&mut self, columns: usize) -> String {
        let mut places: Vec<usize> = (1..=columns).collect();
        for i in (1..columns).rev() {
            places.swap(i, self.random.below(i + 1));
        }
        let mut keys = Vec::new();
        for place in places {
            let direction = self.random.pick(&["", " ASC", " DESC"]);
            let nulls = self.random.pick(&["", "", " NULLS FIRST", " NULLS LAST"]);
            keys.push(format!("{place}{direction}{nulls}"));
        }
        let limit = match self.random.below(4) {
            0 => format!(" LIMIT {}", self.random.below(8)),
            1 => format!(" LIMIT {} OFFSET {}", self.random.below(8), self.random.below(5)),
            _ => String::new(),
        };
        format!(" ORDER BY {}{limit}", keys.join(", "))
    }

    fn set_operation(&mut self) -> Block {
        let families: Vec<Family> = (0..self.random.between(1, 3)).map(|_| *self.random.pick(COMPUTED)).collect();
        let first = self.block(&Scope::default(), Some(&families), 1);
        let mut sql = first.sql;
        for _ in 0..self.random.between(1, 2) {
            let operator =
                *self.random.pick(&["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]);
            let other = self.block(&Scope::default(), Some(&families), 1);
            sql = format!("({sql}) {operator} ({})", other.sql);
        }
        let columns = first.columns.into_iter().map(|column| Column { wild: true, ..column }).collect();
        Block { sql, columns }
    }

    fn with_clause(&mut self) -> Block {
        let inner = self.block(&Scope::default(), None, 1);
        self.tables.push(Table { name: "cte".to_string(), columns: inner.columns });
        let outer = self.block(&Scope::default(), None, 1);
        self.tables.pop();
        Block { sql: format!("WITH cte AS ({}) {}", inner.sql, outer.sql), columns: outer.columns }
    }

    /// A SELECT block. `families`: the result's columns, cast to the families' common types; by default any.
    fn block(&mut self, outer: &Scope, families: Option<&[Family]>, depth: usize) -> Block {
        let (from, scope) = self.from(depth);
        let mut sql_where = String::new();
        if self.random.chance(50) {
            sql_where = format!(" WHERE {}", self.predicate(&scope, depth));
        }
        if !outer.columns.is_empty()
            && let Some(correlation) = self.correlation(&scope, outer)
        {
            sql_where = if sql_where.is_empty() {
                format!(" WHERE {correlation}")
            } else {
                format!("{sql_where} AND {correlation}")
            };
        }
        let free: Vec<Family>;
        let wanted = match families {
            Some(families) => families,
            None => {
                free = (0..self.random.between(1, 4)).map(|_| self.family_of(&scope)).collect();
                &free
            }
        };
        if self.random.chance(40) {
            return self.grouped(&from, &sql_where, &scope, wanted, families.is_some());
        }
        let distinct = if self.random.chance(15) { "DISTINCT " } else { "" };
        let (mut items, mut columns) = (Vec::new(), Vec::new());
        for (i, family) in wanted.iter().enumerate() {
            let tame = self.random.chance(60);
            let mut item = self.expression(*family, &scope, depth, tame);
            if families.is_some() {
                item = format!("CAST({item} AS {})", family.common_type());
            }
            items.push(format!("{item} AS c{i}"));
            columns.push(Column { name: format!("c{i}"), family: *family, wild: !tame });
        }
        Block { sql: format!("SELECT {distinct}{} FROM {from}{sql_where}", items.join(", ")), columns }
    }

    fn grouped(&mut self, from: &str, sql_where: &str, scope: &Scope, wanted: &[Family], cast: bool) -> Block {
        let keys = if self.random.chance(80) { self.random.below(3) } else { 0 };
        let (mut items, mut columns, mut group_by) = (Vec::new(), Vec::new(), Vec::new());
        for (i, family) in wanted.iter().enumerate() {
            let (mut item, wild) = if i < keys {
                let tame = self.random.chance(50);
                // Group keys are mostly plain columns.
                let key = if self.random.chance(70) {
                    self.leaf(*family, scope, tame)
                } else {
                    self.expression(*family, scope, 1, tame)
                };
                group_by.push(i + 1);
                (key, !tame)
            } else {
                (self.aggregate(*family, scope), true)
            };
            if cast {
                item = format!("CAST({item} AS {})", family.common_type());
            }
            items.push(format!("{item} AS c{i}"));
            columns.push(Column { name: format!("c{i}"), family: *family, wild });
        }
        let mut sql = format!("SELECT {} FROM {from}{sql_where}", items.join(", "));
        if group_by.len() == wanted.len() || !group_by.is_empty() {
            let places: Vec<String> = group_by.iter().map(usize::to_string).collect();
            sql.push_str(&format!(" GROUP BY {}", places.join(", ")));
            if self.random.chance(30) {
                let family = *self.random.pick(&[Integer, Text, Date]);
                let (aggregate, bound) = (self.aggregate(family, scope), self.literal(family));
                let operator = *self.random.pick(&["=", "<>", "<", ">="]);
                sql.push_str(&format!(" HAVING {aggregate} {operator} {bound}"));
            }
        }
        Block { sql, columns }
    }

    fn aggregate(&mut self, family: Family, scope: &Scope) -> String {
        let distinct = if self.random.chance(20) { "DISTINCT " } else { "" };
        let call = match family {
            Integer => match self.random.below(6) {
                0 => "count(*)".to_string(),
                1 | 2 => {
                    let of = self.family_of(scope);
                    format!("count({distinct}{})", self.expression(of, scope, 1, false))
                }
                3 => format!("sum({distinct}{})", self.expression(Integer, scope, 1, true)),
                _ => format!("{}({})", self.random.pick(&["min", "max"]), self.expression(Integer, scope, 1, false)),
            },
            Float => match self.random.below(4) {
                0 => format!("avg({distinct}{})", self.expression(Integer, scope, 1, true)),
                1 => format!("avg({})", self.expression(Decimal, scope, 0, true)),
                2 => format!("sum({distinct}{})", self.expression(Float, scope, 1, true)),
                _ => format!("{}({})", self.random.pick(&["min", "max"]), self.expression(Float, scope, 1, false)),
            },
            Decimal => match self.random.below(3) {
                0 => format!("sum({distinct}{})", self.expression(Decimal, scope, 1, true)),
                _ => format!("{}({})", self.random.pick(&["min", "max"]), self.expression(Decimal, scope, 1, false)),
            },
            Boolean => {
                format!("{}({})", self.random.pick(&["bool_and", "bool_or"]), self.expression(Boolean, scope, 1, true))
            }
            Interval | Uuid | Blob => format!("max({})", self.leaf(family, scope, false)),
            _ => format!("{}({})", self.random.pick(&["min", "max"]), self.expression(family, scope, 1, false)),
        };
        if self.random.chance(20) { format!("{call} FILTER (WHERE {})", self.condition(scope, 1)) } else { call }
    }

    // ---- FROM ------------------------------------------------------------------------------------------------------

    fn from(&mut self, depth: usize) -> (String, Scope) {
        let (mut sql, mut scope) = self.item_of_from(depth);
        if self.shape == Shape::Large {
            return (sql, scope);
        }
        for _ in 0..*self.random.pick(&[0, 0, 1, 1, 1, 2]) {
            let (item, right) = self.item_of_from(depth);
            let kind = *self.random.pick(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]);
            if kind == "CROSS JOIN" {
                sql = format!("{sql} CROSS JOIN {item}");
            } else {
                let condition = self.join_condition(&scope, &right);
                sql = format!("{sql} {kind} {item} ON {condition}");
            }
            scope.columns.extend(right.columns);
        }
        (sql, scope)
    }

    fn item_of_from(&mut self, depth: usize) -> (String, Scope) {
        let alias = format!("r{}", self.aliases);
        self.aliases += 1;
        let (sql, columns) = if depth > 1 && self.random.chance(12) {
            let mut block = self.block(&Scope::default(), None, depth - 1);
            if self.random.chance(30) {
                let order = self.order_and_limit(block.columns.len());
                block.sql.push_str(&order);
            }
            (format!("({}) {alias}", block.sql), block.columns)
        } else {
            let table = self.random.pick(&self.tables).clone();
            (format!("{} {alias}", table.name), table.columns)
        };
        let columns = columns.into_iter().map(|column| Column { name: format!("{alias}.{}", column.name), ..column });
        (sql, Scope { columns: columns.collect() })
    }

    fn join_condition(&mut self, left: &Scope, right: &Scope) -> String {
        let mut parts = Vec::new();
        if self.random.chance(80) {
            for _ in 0..*self.random.pick(&[1, 1, 1, 2]) {
                parts.extend(self.equality(left, right));
            }
        }
        let both = Scope { columns: left.columns.iter().chain(&right.columns).cloned().collect() };
        if parts.is_empty() || self.random.chance(25) {
            parts.push(self.condition(&both, 1));
        }
        parts.join(" AND ")
    }

    /// `l = r` over two columns of one family.
    fn equality(&mut self, left: &Scope, right: &Scope) -> Option<String> {
        let l = self.random.pick(&left.columns).clone();
        let partners: Vec<&Column> = right.columns.iter().filter(|column| column.family == l.family).collect();
        if partners.is_empty() {
            return None;
        }
        let r = self.random.pick(&partners).name.clone();
        let operator = if self.random.chance(12) { "IS NOT DISTINCT FROM" } else { "=" };
        Some(format!("{} {operator} {r}", l.name))
    }

    fn correlation(&mut self, inner: &Scope, outer: &Scope) -> Option<String> {
        let found = (0..6).find_map(|_| self.equality(inner, outer))?;
        Some(found.replace("IS NOT DISTINCT FROM", "="))
    }

    // ---- expressions -----------------------------------------------------------------------------------------------

    /// One of `families`, if possible of a column in `scope`.
    fn family_among(&mut self, families: &[Family], scope: &Scope) -> Family {
        let there: Vec<Family> =
            scope.columns.iter().map(|column| column.family).filter(|family| families.contains(family)).collect();
        *self.random.pick(if there.is_empty() { families } else { &there })
    }

    /// A family that has a column in `scope`, or one to compute with.
    fn family_of(&mut self, scope: &Scope) -> Family {
        if self.random.chance(85) && !scope.columns.is_empty() {
            self.random.pick(&scope.columns).family
        } else {
            *self.random.pick(COMPUTED)
        }
    }

    fn leaf(&mut self, family: Family, scope: &Scope, tame: bool) -> String {
        let fitting: Vec<&Column> =
            scope.columns.iter().filter(|column| column.family == family && !(tame && column.wild)).collect();
        if !fitting.is_empty() && self.random.chance(85) {
            return self.random.pick(&fitting).name.clone();
        }
        if self.random.chance(6) {
            let ty = if family == Integer { "BIGINT" } else { family.common_type() };
            return format!("CAST(NULL AS {ty})");
        }
        self.literal(family)
    }

    /// An expression of `family`. `tame`: it reads no wild column, so that it may be computed with.
    fn expression(&mut self, family: Family, scope: &Scope, depth: usize, tame: bool) -> String {
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
            Float => match self.random.below(6) {
                0 => format!("CAST({} AS DOUBLE)", self.expression(Integer, scope, depth, true)),
                1 => format!(
                    "{}({})",
                    self.random.pick(&["floor", "ceil", "abs"]),
                    self.expression(Float, scope, depth, true)
                ),
                2 => format!(
                    "({} / {})",
                    self.expression(Float, scope, depth, true),
                    self.random.pick(&["2", "4.0", "-8"])
                ),
                3 => format!("sqrt(abs({}))", self.leaf(Float, scope, true)),
                _ => {
                    let operator = self.random.pick(&["+", "-", "*"]);
                    format!("({} {operator} {})", self.leaf(Float, scope, true), self.leaf(Float, scope, true))
                }
            },
            Decimal => match self.random.below(4) {
                0 => format!("CAST({} AS DECIMAL(12,2))", self.expression(Integer, scope, depth.min(1), true)),
                1 => format!("({} * {})", self.leaf(Decimal, scope, true), self.literal(Decimal)),
                _ => {
                    let operator = self.random.pick(&["+", "-"]);
                    format!("({} {operator} {})", self.leaf(Decimal, scope, true), self.leaf(Decimal, scope, true))
                }
            },
            Text => self.text(scope, depth, tame),
            Date => match self.random.below(3) {
                0 => format!("CAST({} AS DATE)", self.expression(Timestamp, scope, depth, tame)),
                1 => format!(
                    "CAST(date_trunc('{}', {}) AS DATE)",
                    self.random.pick(&["month", "year", "week"]),
                    self.leaf(Date, scope, true)
                ),
                _ => {
                    let span = self.random.pick(&["1 day", "1 month", "-2 months", "1 year"]);
                    format!("CAST({} + INTERVAL '{span}' AS DATE)", self.leaf(Date, scope, true))
                }
            },
            Timestamp => match self.random.below(3) {
                0 => format!("CAST({} AS TIMESTAMP)", self.leaf(Date, scope, tame)),
                1 => {
                    let part = self.random.pick(&["hour", "day", "month", "minute", "quarter"]);
                    format!("date_trunc('{part}', {})", self.expression(Timestamp, scope, depth, true))
                }
                _ => {
                    let span = self.random.pick(&["1 day", "1 month", "-90 minutes", "1 second"]);
                    // A day becomes a moment.
                    let family = if self.random.chance(30) { Date } else { Timestamp };
                    format!("({} + INTERVAL '{span}')", self.leaf(family, scope, true))
                }
            },
            Time | Interval | Uuid | Blob => self.leaf(family, scope, tame),
        }
    }

    /// What every family has: CASE, COALESCE, NULLIF and scalar subqueries.
    fn conditional(&mut self, family: Family, scope: &Scope, depth: usize, tame: bool) -> String {
        match self.random.below(5) {
            0 => {
                let (a, b) = (self.expression(family, scope, depth, tame), self.leaf(family, scope, tame));
                format!("COALESCE({a}, {b})")
            }
            1 => format!("NULLIF({}, {})", self.leaf(family, scope, tame), self.leaf(family, scope, tame)),
            2 if self.shape == Shape::Small && !matches!(family, Interval | Uuid | Blob | Time) => {
                self.scalar_subquery(family, scope, tame)
            }
            3 => format!(
                "CASE WHEN {} THEN {} END",
                self.condition(scope, depth),
                self.expression(family, scope, depth, tame)
            ),
            _ => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.condition(scope, depth),
                self.expression(family, scope, depth, tame),
                self.expression(family, scope, depth, tame)
            ),
        }
    }

    fn scalar_subquery(&mut self, family: Family, outer: &Scope, tame: bool) -> String {
        let (from, scope) = self.item_of_from(1);
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

    fn integer(&mut self, scope: &Scope, depth: usize) -> String {
        match self.random.below(9) {
            0 => format!("length({})", self.expression(Text, scope, depth, true)),
            1 => {
                let part = self.random.pick(&["year", "month", "day", "doy", "dow", "quarter", "week"]);
                format!("extract({part} FROM {})", self.expression(Date, scope, depth, true))
            }
            2 => {
                let part = self.random.pick(&["hour", "minute", "second", "year"]);
                format!("extract({part} FROM {})", self.leaf(Timestamp, scope, true))
            }
            3 => format!("TRY_CAST({} AS INTEGER)", self.leaf(Text, scope, true)),
            4 => format!("CAST({} AS INTEGER)", self.expression(Boolean, scope, depth, true)),
            5 => {
                let operator = self.random.pick(&["/", "%"]);
                let divisor = self.random.pick(&["2", "3", "-5", "7"]);
                format!("(CAST({} AS BIGINT) {operator} {divisor})", self.expression(Integer, scope, depth, true))
            }
            6 => format!("abs(CAST({} AS BIGINT))", self.leaf(Integer, scope, true)),
            _ => {
                let operator = *self.random.pick(&["+", "-", "*"]);
                let (a, b) = (self.expression(Integer, scope, depth, true), self.leaf(Integer, scope, true));
                format!("(CAST({a} AS BIGINT) {operator} CAST({b} AS BIGINT))")
            }
        }
    }

    fn text(&mut self, scope: &Scope, depth: usize, tame: bool) -> String {
        let inner = self.expression(Text, scope, depth, tame);
        match self.random.below(9) {
            0 => format!("upper({inner})"),
            1 => format!("lower({inner})"),
            2 => format!("substring({inner}, {}, {})", self.random.between(0, 3), self.random.between(0, 4)),
            3 => format!("CAST({} AS VARCHAR)", self.expression(Integer, scope, depth, true)),
            4 => format!("reverse({inner})"),
            5 => format!("replace({inner}, 'a', 'xx')"),
            6 => format!("trim({inner})"),
            _ => format!("({inner} || {})", self.leaf(Text, scope, tame)),
        }
    }

    /// A predicate for WHERE: a condition, sometimes with a subquery.
    fn predicate(&mut self, scope: &Scope, depth: usize) -> String {
        let condition = self.condition(scope, 2);
        if self.shape == Shape::Large || depth < 2 || !self.random.chance(25) {
            return condition;
        }
        let not = *self.random.pick(&["", "NOT "]);
        let subquery = if self.random.chance(50) {
            let family = *self.random.pick(COMPUTED);
            let inner = self.plain_block(scope, family);
            format!("{not}EXISTS ({})", inner.sql)
        } else {
            let family = self.family_among(&[Integer, Text, Date, Decimal], scope);
            let inner = self.plain_block(scope, family);
            format!("{} {not}IN ({})", self.leaf(family, scope, false), inner.sql)
        };
        let joint = *self.random.pick(&["AND", "AND", "OR"]);
        match self.random.below(3) {
            0 => format!("{condition} {joint} {subquery}"),
            _ => subquery,
        }
    }

    /// A subquery of one column over one table, correlated half of the time.
    fn plain_block(&mut self, outer: &Scope, family: Family) -> Block {
        let (from, scope) = self.item_of_from(1);
        let item = self.leaf(family, &scope, false);
        let mut conditions = Vec::new();
        if self.random.chance(50) {
            conditions.extend(self.correlation(&scope, outer));
        }
        if self.random.chance(40) {
            conditions.push(self.condition(&scope, 1));
        }
        let sql_where =
            if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let columns = vec![Column { name: "c0".to_string(), family, wild: true }];
        Block { sql: format!("SELECT {item} AS c0 FROM {from}{sql_where}"), columns }
    }

    /// A BOOLEAN expression in parentheses.
    fn condition(&mut self, scope: &Scope, depth: usize) -> String {
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
            2 => {
                let family = self.family_among(&[Integer, Text, Date, Decimal, Float], scope);
                let not = self.random.pick(&["", "NOT "]);
                let mut list: Vec<String> = (0..self.random.between(1, 4)).map(|_| self.literal(family)).collect();
                if self.random.chance(15) {
                    list.push("NULL".to_string());
                }
                format!("({} {not}IN ({}))", self.leaf(family, scope, false), list.join(", "))
            }
            3 => {
                let family = self.family_among(&[Integer, Text, Date, Decimal, Timestamp, Float], scope);
                let not = self.random.pick(&["", "NOT "]);
                let value = self.expression(family, scope, below, false);
                format!("({value} {not}BETWEEN {} AND {})", self.literal(family), self.leaf(family, scope, false))
            }
            4 => self.leaf(Boolean, scope, false),
            5..=8 => self.comparison(scope, below),
            9 => format!("(NOT {})", self.condition(scope, below)),
            10 | 11 => format!("({} AND {})", self.condition(scope, below), self.condition(scope, below)),
            _ => format!("({} OR {})", self.condition(scope, below), self.condition(scope, below)),
        }
    }

    fn comparison(&mut self, scope: &Scope, depth: usize) -> String {
        let family = self.family_of(scope);
        let operators = ["=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"];
        let operator = *self.random.pick(&operators);
        let (a, b) = (self.expression(family, scope, depth, false), self.expression(family, scope, depth, false));
        format!("({a} {operator} {b})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_workload() {
        let text = |seed| format!("{:?}", workload(seed, Shape::Small, 20));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn every_construct_occurs() {
        let all: String =
            (0..60).flat_map(|seed| workload(seed, Shape::Small, 20).queries).map(|q| q.sql + "\n").collect();
        for construct in [
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
            "CROSS JOIN",
            "GROUP BY",
            "HAVING",
            "DISTINCT",
            "UNION ALL",
            "INTERSECT",
            "EXCEPT ALL",
            "WITH",
            "NOT EXISTS",
            "NOT IN (SELECT",
            "FILTER",
            "LIMIT",
            "NULLS FIRST",
            "CASE",
            "ILIKE",
            "BETWEEN",
            "(SELECT max",
            "IS NOT DISTINCT FROM",
            "TRY_CAST",
            "extract",
        ] {
            assert!(all.contains(construct), "{construct} is never generated");
        }
    }
}
