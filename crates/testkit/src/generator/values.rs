//! Types, literals with and without a type, the extremes of types.

use super::{Generator, Shape};

/// Types that expressions treat alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Boolean,
    Integer,
    Float,
    Decimal,
    Text,
    Date,
    Timestamp,
    /// A timestamp with time zone.
    Instant,
    Time,
    Interval,
    Uuid,
    Blob,
    /// A list of integers.
    Integers,
    /// A list of texts.
    Texts,
    /// A struct of an integer, a text and a list of integers.
    Struct,
}

use Family::*;

/// A type of a table's column.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnType {
    pub(super) name: &'static str,
    pub(super) family: Family,
    /// True if other databases have it too.
    pub(super) common: bool,
}

const fn common(name: &'static str, family: Family) -> ColumnType {
    ColumnType { name, family, common: true }
}

const fn own(name: &'static str, family: Family) -> ColumnType {
    ColumnType { name, family, common: false }
}

/// The types of the first columns of every table, which are good join keys.
pub(super) const KEYS: [ColumnType; 2] = [common("INTEGER", Integer), common("VARCHAR", Text)];

/// The type of instants, which sessions with a time zone have more often.
pub(super) const INSTANT: ColumnType = common("TIMESTAMPTZ", Instant);

/// The types of all other columns.
pub(super) const TYPES: &[ColumnType] = &[
    common("INTEGER", Integer),
    common("BIGINT", Integer),
    common("VARCHAR", Text),
    common("DECIMAL(6,2)", Decimal),
    common("DATE", Date),
    common("BOOLEAN", Boolean),
    common("DOUBLE PRECISION", Float),
    common("SMALLINT", Integer),
    own("TINYINT", Integer),
    own("UTINYINT", Integer),
    own("USMALLINT", Integer),
    own("UINTEGER", Integer),
    own("UBIGINT", Integer),
    own("REAL", Float),
    common("DECIMAL(18,4)", Decimal),
    common("DECIMAL(30,3)", Decimal),
    common("TIMESTAMP", Timestamp),
    INSTANT,
    common("TIME", Time),
    common("INTERVAL", Interval),
    common("INTEGER[]", Integers),
    common("TEXT[]", Texts),
    own(STRUCT, Struct),
    own("UUID", Uuid),
    own("BLOB", Blob),
];

/// The families that queries compute with, but for structs, which not all databases have.
pub(super) const COMPUTED: &[Family] = &[
    Boolean, Integer, Integer, Integer, Integer, Float, Decimal, Text, Text, Text, Date, Timestamp, Instant,
    Interval, Integers, Texts,
];

/// The type of structs.
const STRUCT: &str = "STRUCT(a INTEGER, b VARCHAR, l INTEGER[])";

impl Family {
    /// Families whose values are converted to this one when they occur together.
    fn narrower(self) -> &'static [Family] {
        match self {
            Decimal => &[Integer],
            Float => &[Integer, Decimal],
            Timestamp => &[Date],
            Instant => &[Timestamp, Date],
            _ => &[],
        }
    }

    /// One type that holds all values of the family, for set operations.
    pub(super) fn common_type(self) -> &'static str {
        match self {
            Boolean => "BOOLEAN",
            Integer => "DECIMAL(20,0)",
            Float => "DOUBLE PRECISION",
            Decimal => "DECIMAL(36,6)",
            Text => "VARCHAR",
            Date => "DATE",
            Timestamp => "TIMESTAMP",
            Instant => "TIMESTAMPTZ",
            Time => "TIME",
            Interval => "INTERVAL",
            Uuid => "UUID",
            Blob => "BLOB",
            Integers => "INTEGER[]",
            Texts => "TEXT[]",
            Struct => STRUCT,
        }
    }

    /// True for lists and structs.
    pub(super) fn is_nested(self) -> bool {
        matches!(self, Integers | Texts | Struct)
    }
}

/// Near the hours that are skipped or occur twice in New York and Berlin.
const LOCAL: &[&str] = &[
    "2020-02-29 00:00:00",
    "2020-02-29 12:34:56.789",
    "2021-01-01 00:00:01",
    "2019-12-31 23:59:59",
    "2021-03-14 02:30:00",
    "2021-11-07 01:30:00",
    "2021-03-28 02:30:00",
    "2021-10-31 02:30:00",
];

/// The same hours, as instants; two of them in the session's time zone.
const INSTANTS: &[&str] = &[
    "2021-03-14 02:30:00",
    "2021-11-07 01:30:00",
    "2020-02-29 00:00:00+00",
    "2020-02-29 12:34:56.789+00",
    "2021-01-01 00:00:01+05:30",
    "2021-03-14 06:30:00+00",
    "2021-03-14 07:30:00+00",
    "2021-11-07 05:30:00+00",
    "2021-11-07 06:30:00+00",
    "2021-10-31 02:30:00+02",
    "2021-10-31 02:30:00+01",
];

/// Texts of intervals that all databases read in the same way.
const INTERVALS: &[&str] = &[
    "1 day",
    "2 days",
    "1 month",
    "30 days",
    "3 hours",
    "24 hours",
    "90 minutes",
    "1 year 2 months",
    "-1 month",
    "1 day 02:03:04",
    "-1 days 2 hours",
    "0 days",
    "1.5 hours",
];

/// Literals of intervals in forms of the standard, ISO 8601 and PostgreSQL.
const FORMS: &[&str] = &[
    "INTERVAL '1' DAY",
    "INTERVAL '1' DAY",
    "INTERVAL '-2' MONTH",
    "INTERVAL '36' HOUR",
    "INTERVAL '1' YEAR",
    "INTERVAL '02:30:00'",
    "CAST('1 day' AS INTERVAL)",
];

/// The forms that DuckDB does not support.
pub(super) const RARE_FORMS: &[&str] = &[
    "INTERVAL '1-2'",
    "INTERVAL '1 2:03'",
    "INTERVAL '1-2' YEAR TO MONTH",
    "INTERVAL '1 2:03' DAY TO MINUTE",
    "INTERVAL 'P1Y2M3DT4H5M6S'",
    "INTERVAL '1 month ago'",
    "INTERVAL '-1 days +02:00:00'",
    "INTERVAL '1.5 months'",
    "INTERVAL '0.5 days'",
];

impl Generator {
    /// A family whose values are converted to `family` when they occur together, or the family itself.
    pub(super) fn narrower(&mut self, family: Family) -> Family {
        let narrower = family.narrower();
        if narrower.is_empty() { family } else { *self.random.pick(narrower) }
    }

    /// A family to compute with.
    pub(super) fn computed(&mut self) -> Family {
        // PostgreSQL does not read statements with structs.
        let rarely = if self.is_common() { 150 } else { 40 };
        if self.random.below(rarely) == 0 { Struct } else { *self.random.pick(COMPUTED) }
    }

    /// A typed value of `family`.
    pub(super) fn literal(&mut self, family: Family) -> String {
        if family == Interval && self.random.chance(35) {
            return self.random.pick(FORMS).to_string();
        }
        if family.is_nested() {
            return self.nested_literal(family);
        }
        let text = self.text_of(family);
        match family {
            Boolean | Integer | Decimal => text,
            Text => format!("'{text}'"),
            Date | Timestamp | Instant | Time | Interval => format!("{} '{text}'", family.common_type()),
            Float => format!("CAST({text} AS {})", family.common_type()),
            Uuid | Blob => format!("CAST('{text}' AS {})", family.common_type()),
            Integers | Texts | Struct => unreachable!("they have literals of their own"),
        }
    }

    /// A value of `family`, as a text that gets its type from its context. Only other databases can check
    /// which type that is: the reference is given the type.
    pub(super) fn untyped(&mut self, family: Family) -> String {
        // The texts of lists differ.
        if self.is_common() && !family.is_nested() {
            format!("'{}'", self.text_of(family))
        } else {
            self.literal(family)
        }
    }

    fn text_of(&mut self, family: Family) -> String {
        match family {
            Boolean => self.random.pick(&["true", "false"]).to_string(),
            Integer => self.random.between(-2, 7).to_string(),
            Float => (self.random.between(-12, 12) as f64 / 4.0).to_string(),
            Decimal => {
                format!("{}.{}", self.random.between(-4, 4), self.random.pick(&["00", "25", "50", "75"]))
            }
            Text => {
                self.random.pick(&["a", "b", "ab", "Ab", "abc", "ba", "c d", "xyz", "12", "-7"]).to_string()
            }
            Date => self
                .random
                .pick(&["2020-02-29", "2020-03-01", "2021-01-01", "2021-01-31", "2019-12-30"])
                .to_string(),
            Timestamp => self.random.pick(LOCAL).to_string(),
            Instant => self.random.pick(INSTANTS).to_string(),
            Time => self.random.pick(&["00:00:01", "12:00:00", "12:34:56.789"]).to_string(),
            Interval => self.random.pick(INTERVALS).to_string(),
            Uuid => format!("00000000-0000-0000-0000-00000000000{}", self.random.between(0, 3)),
            Blob => self.random.pick(&["a", "b", "ab"]).to_string(),
            Integers | Texts | Struct => unreachable!("they have no common text"),
        }
    }

    /// A value for a column of type `ty`; NULL in `nulls` percent of cases.
    pub(super) fn cell(&mut self, ty: ColumnType, wild: bool, nulls: usize) -> String {
        if self.random.chance(nulls) {
            return "NULL".to_string();
        }
        if wild && self.random.chance(40) {
            return if ty.family.is_nested() {
                self.nested_extreme(ty.family)
            } else {
                self.extreme(ty.name)
            };
        }
        match ty.family {
            Integer if ty.name.starts_with('U') => self.random.between(0, 7).to_string(),
            Integer if self.shape == Shape::Large && !ty.name.contains("TINY") => {
                self.random.between(-3, 900).to_string()
            }
            Decimal if self.random.chance(30) => {
                format!("{}.{:02}", self.random.between(-9, 9), self.random.between(0, 3) * 25)
            }
            // A text literal that is converted to the column's type.
            Date | Timestamp | Instant | Interval | Boolean | Decimal if self.random.chance(25) => {
                format!("'{}'", self.text_of(ty.family))
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
            "DOUBLE PRECISION" => &[
                "CAST('-inf' AS DOUBLE PRECISION)",
                "CAST('nan' AS DOUBLE PRECISION)",
                "CAST(1e300 AS DOUBLE PRECISION)",
                "4503599627370496.5",
            ],
            "DECIMAL(6,2)" => &["9999.99", "-9999.99"],
            "DECIMAL(18,4)" => &["99999999999999.9999", "-99999999999999.9999"],
            "DECIMAL(30,3)" => &["123456789012345678.901", "-9223372036854775808.001"],
            "VARCHAR" => {
                &["''", "'größe'", "'exactly12byt'", "'a text that is longer than a view'", "'日本語'", "' '"]
            }
            "DATE" => &["DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1970-01-01'"],
            "TIMESTAMP" => &["TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP '9999-12-31 23:59:59'"],
            "TIMESTAMPTZ" => {
                &["TIMESTAMPTZ '1969-12-31 23:59:59.999999+00'", "TIMESTAMPTZ '2999-12-31 23:59:59+00'"]
            }
            "TIME" => &["TIME '23:59:59.999999'", "TIME '00:00:00'"],
            "UUID" => &["CAST('ffffffff-ffff-ffff-ffff-ffffffffffff' AS UUID)"],
            "INTERVAL" => &["INTERVAL '-100 years'", "INTERVAL '100 years'"],
            "BLOB" => &["CAST('' AS BLOB)", "CAST('a blob that is longer than a view' AS BLOB)"],
            _ => &["true"],
        };
        self.random.pick(of).to_string()
    }
}
