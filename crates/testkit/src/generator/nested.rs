//! Lists and structs: literals, operations, and what is read out of them.
//!
//! PostgreSQL's arrays have a type for `=`: `TEXT[]` is not `VARCHAR[]`, and `INTEGER[]` not `BIGINT[]`. So
//! elements are cast to one type. Structs are for Entasis and DuckDB alone.

use super::Generator;
use super::scope::Scope;
use super::values::Family::{self, *};

/// Elements that are difficult to write and to read within a list.
const WORDS: &[&str] =
    &["a", "b", "ab", "a", "b", "", "a, b", "\"", "[", "]", "{x}", "NULL", "null", "\\", "it''s", " x ", "1"];

/// What random queries for the reference leave out, until they have been run with it: `unnest` in `FROM` of a
/// statement with `USING` or `NATURAL`, and in a `SELECT` list beside an expression with the name of a
/// column. `make compare` has it.
pub(super) const UNBOUND: bool = true;

impl Generator {
    /// True for a query that is to be replaced by another, see [`UNBOUND`].
    pub(super) fn is_unbound(&self, sql: &str) -> bool {
        UNBOUND
            && !self.is_common()
            && sql.contains("unnest(")
            && (sql.contains("USING (") || sql.contains("NATURAL"))
    }

    /// A list or a struct as a literal.
    pub(super) fn nested_literal(&mut self, family: Family) -> String {
        if family == Struct {
            let a = if self.random.chance(20) {
                "CAST(NULL AS INTEGER)".to_string()
            } else {
                let number = self.random.between(-2, 4);
                self.whole(number)
            };
            let b = if self.random.chance(20) { "CAST(NULL AS VARCHAR)".to_string() } else { self.word() };
            let l = self.nested_literal(Integers);
            return format!("{{'a': {a}, 'b': {b}, 'l': {l}}}");
        }
        let mut elements = Vec::new();
        for _ in 0..*self.random.pick(&[0, 1, 1, 2, 2, 3]) {
            elements.push(match family {
                _ if self.random.chance(20) => "NULL".to_string(),
                Integers => self.random.between(-2, 4).to_string(),
                _ => self.word(),
            });
        }
        self.list_of(family, &elements)
    }

    /// A list with the elements `elements`, which are literals or NULL.
    fn list_of(&mut self, family: Family, elements: &[String]) -> String {
        let (ty, all) = (family.common_type(), elements.join(", "));
        let is_typed = elements.iter().any(|element| element != "NULL");
        match family {
            // The reference does not convert lists, but a text is converted before it sees it.
            Integers if !self.is_common() => format!("CAST('[{all}]' AS {ty})"),
            _ if is_typed => format!("ARRAY[{all}]"),
            _ if self.is_common() => format!("CAST(ARRAY[{all}] AS {ty})"),
            _ => format!("CAST('[{all}]' AS {ty})"),
        }
    }

    fn word(&mut self) -> String {
        format!("'{}'", self.random.pick(WORDS))
    }

    /// An integer literal with the type of elements.
    fn whole(&self, number: i64) -> String {
        if self.is_common() { number.to_string() } else { format!("CAST({number} AS INTEGER)") }
    }

    /// A value for a column that contains extremes.
    pub(super) fn nested_extreme(&mut self, family: Family) -> String {
        let elements: Vec<String> = match (family, self.random.below(3)) {
            (Integers, 0) => (0..40).map(|i| (i % 7).to_string()).collect(),
            (Integers, _) => ["-2147483648", "NULL", "2147483647"].map(String::from).to_vec(),
            (Texts, 0) => (0..20).map(|_| self.word()).collect(),
            (Texts, 1) => {
                ["'größe'", "'日本語'", "'a text that is longer than a view'"].map(String::from).to_vec()
            }
            (Texts, _) => WORDS.iter().map(|word| format!("'{word}'")).chain(["NULL".to_string()]).collect(),
            _ => return self.nested_literal(family),
        };
        self.list_of(family, &elements)
    }

    /// An element for a list of `family`, small enough for its type.
    pub(super) fn element(&mut self, family: Family, scope: &Scope, tame: bool) -> String {
        match family {
            Integers => {
                format!("CAST(CAST({} AS BIGINT) % 1000 AS INTEGER)", self.leaf(Integer, scope, true))
            }
            _ => format!("CAST({} AS TEXT)", self.leaf(Text, scope, tame)),
        }
    }

    /// A list or a struct that is computed.
    pub(super) fn nested(&mut self, family: Family, scope: &Scope, tame: bool) -> String {
        if family == Struct {
            let (a, b) = (self.element(Integers, scope, true), self.leaf(Text, scope, tame));
            let l = self.leaf(Integers, scope, true);
            return format!("{{'a': {a}, 'b': {b}, 'l': {l}}}");
        }
        let (list, element) = (self.leaf(family, scope, tame), self.element(family, scope, tame));
        match self.random.below(9) {
            0 => format!("ARRAY[{element}]"),
            1 => format!("ARRAY[{element}, {}]", self.element(family, scope, tame)),
            2 => format!("ARRAY[{element}, NULL]"),
            3 => format!("array_append({list}, {element})"),
            4 => format!("array_prepend({element}, {list})"),
            5 => format!("array_cat({list}, {})", self.leaf(family, scope, tame)),
            6 => format!("({list} || {})", self.leaf(family, scope, tame)),
            // To text, in whatever form, and back.
            7 if self.is_common() => format!("CAST(CAST({list} AS VARCHAR) AS {})", family.common_type()),
            _ => format!("({list})[{}:{}]", self.random.between(1, 2), self.random.between(0, 4)),
        }
    }

    /// An integer that is read out of a list or a struct.
    pub(super) fn integer_within(&mut self, scope: &Scope) -> String {
        let family = self.family_among(&[Integers, Texts, Struct], scope);
        // Where there is a struct, PostgreSQL is left out anyway.
        if family == Struct && scope.columns().any(|column| column.family == Struct) {
            let value = self.leaf(Struct, scope, true);
            return match self.random.below(4) {
                0 => format!("({value}).a"),
                1 => format!("({value})['a']"),
                2 => format!("struct_extract({value}, 'a')"),
                _ => format!("cardinality(({value}).l)"),
            };
        }
        let family = if family == Struct { Integers } else { family };
        let list = self.leaf(family, scope, true);
        match self.random.below(4) {
            0 => format!("cardinality({list})"),
            1 => format!("array_position({list}, {})", self.element(family, scope, true)),
            _ => format!("({})[{}]", self.leaf(Integers, scope, true), self.random.between(0, 3)),
        }
    }

    /// A text that is read out of a list or a struct.
    pub(super) fn text_within(&mut self, scope: &Scope, tame: bool) -> String {
        if scope.columns().any(|column| column.family == Struct && !(tame && column.wild)) {
            return format!("({}).b", self.leaf(Struct, scope, tame));
        }
        match self.random.below(3) {
            0 => {
                let family = *self.random.pick(&[Integers, Texts]);
                format!("array_to_string({}, ', ')", self.leaf(family, scope, tame))
            }
            _ => format!("({})[{}]", self.leaf(Texts, scope, tame), self.random.between(0, 3)),
        }
    }

    /// The elements of a list, each a row: an expression of `family`, which is that of elements.
    pub(super) fn unnested(&mut self, family: Family, scope: &Scope) -> Option<String> {
        if UNBOUND && !self.is_common() {
            return None;
        }
        let lists = match family {
            Integer => Integers,
            Text => Texts,
            _ => return None,
        };
        Some(format!("unnest({})", self.leaf(lists, scope, true)))
    }

    /// A condition on the elements of a list, by a subquery.
    pub(super) fn condition_on_elements(&mut self, scope: &Scope) -> String {
        let family = self.family_among(&[Integers, Texts], scope);
        let (list, value) = (self.leaf(family, scope, false), self.element(family, scope, false));
        let (alias, column) = (self.name("r"), self.name("e"));
        let not = *self.random.pick(&["", "NOT "]);
        match self.random.below(3) {
            0 => format!(
                "{not}EXISTS (SELECT 1 FROM unnest({list}) {alias}({column}) WHERE {column} >= {value})"
            ),
            _ => format!("{value} {not}IN (SELECT {column} FROM unnest({list}) {alias}({column}))"),
        }
    }
}
