//! The tables of the workload: every layout, keys of all kinds, and columns in which each row carries its own
//! history.
//!
//! | column | holds |
//! |---|---|
//! | `k`, `g`, `u`, `r` | key, group, a possibly unique number, a reference to a key in `p` |
//! | `w` | the stamp |
//! | `v`, `n`, `last` | the list of numbers, its length, and its last number |

use super::history::{Row, TableRules};
use entasis::Value;

/// The columns of all tables, in the order in which rows are read.
pub(crate) const COLUMNS: &str = "k, g, u, r, w, last, n, v";
/// In tables with a unique key, keys that are reused are below this.
pub(crate) const KEYS: i64 = 60;
/// The name of a first column in tables to which others refer, until it is dropped.
pub(crate) const JUNK: &str = "junk";
/// Groups are below this.
pub(crate) const GROUPS: i64 = 8;
/// Unique numbers that are taken most of the time are below this.
pub(crate) const UNIQUE: i64 = 40;

/// A table of the workload.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The statements that create it.
    definition: &'static [&'static str],
    pub(crate) has_unique_key: bool,
    pub(crate) has_unique: bool,
    pub(crate) refers_to: Option<usize>,
    /// True if each key belongs to one row only, for ever.
    pub(crate) has_fresh_keys: bool,
    /// True if other tables refer to it.
    pub(crate) is_referred_to: bool,
}

/// The table whose rows are named by key, without a plan: it has no other declarations.
pub(crate) const KEYED: usize = 0;
/// The table to which others refer.
pub(crate) const PARENT: usize = 5;
/// The table that refers to others.
pub(crate) const CHILD: usize = 6;

const PLAIN: Table = Table {
    name: "",
    definition: &[],
    has_unique_key: false,
    has_unique: false,
    refers_to: None,
    has_fresh_keys: true,
    is_referred_to: false,
};

/// All tables.
pub(crate) const TABLES: [Table; 8] = [
    Table { name: "a", definition: &["PRIMARY KEY (k)", "layout = 'sorted'"], has_unique_key: true, ..PLAIN },
    Table {
        name: "b",
        definition: &["PRIMARY KEY (k)", "layout = 'delta'", "CREATE INDEX b_g ON b (g)"],
        has_unique_key: true,
        has_fresh_keys: false,
        ..PLAIN
    },
    Table { name: "c", definition: &["", "layout = 'equi', layout_key = (k)"], ..PLAIN },
    Table {
        name: "d",
        definition: &["PRIMARY KEY (k), UNIQUE (u)", "layout = 'equi_ghost'", "CREATE INDEX d_g ON d (g, k)"],
        has_unique_key: true,
        has_unique: true,
        has_fresh_keys: false,
        ..PLAIN
    },
    Table {
        name: "e",
        definition: &["", "layout = 'insertion'", "CREATE INDEX e_g ON e (g)", "CREATE INDEX e_k ON e (k)"],
        ..PLAIN
    },
    Table {
        name: "p",
        definition: &["PRIMARY KEY (k)", "layout = 'casper'"],
        has_unique_key: true,
        has_fresh_keys: false,
        is_referred_to: true,
        ..PLAIN
    },
    Table {
        name: "q",
        definition: &[
            "PRIMARY KEY (k), FOREIGN KEY (r) REFERENCES p (k)",
            "layout = 'equi'",
            "CREATE INDEX q_r ON q (r)",
        ],
        has_unique_key: true,
        refers_to: Some(PARENT),
        has_fresh_keys: false,
        ..PLAIN
    },
    Table { name: "f", definition: &["UNIQUE (u)", ""], has_unique: true, ..PLAIN },
];

impl Table {
    /// The constraints of the table.
    pub(crate) fn rules(&self) -> TableRules {
        let Table { has_unique_key, has_unique, refers_to, .. } = *self;
        TableRules { name: self.name.into(), has_unique_key, has_unique, refers_to }
    }

    /// The statements that create it, empty.
    pub(crate) fn definition(&self) -> Vec<String> {
        let [constraints, layout, indexes @ ..] = self.definition else {
            unreachable!("every table has both")
        };
        let constraints = if constraints.is_empty() { String::new() } else { format!(", {constraints}") };
        let layout = if layout.is_empty() { String::new() } else { format!(" WITH ({layout})") };
        // If a column is dropped, the referenced columns after it get other numbers.
        let junk = if self.is_referred_to { format!("{JUNK} INTEGER, ") } else { String::new() };
        let table = format!(
            "CREATE TABLE {} ({junk}k BIGINT, g INTEGER, u BIGINT, r BIGINT, w BIGINT, last BIGINT, n INTEGER, v VARCHAR{constraints}){layout}",
            self.name
        );
        let view = format!("CREATE VIEW {}_view AS SELECT {COLUMNS} FROM {}", self.name, self.name);
        std::iter::once(table).chain(indexes.iter().map(|&index| index.to_owned())).chain([view]).collect()
    }
}

/// A row that was read, and its stamp.
pub(crate) struct Read {
    pub(crate) row: Row,
    pub(crate) stamp: Option<u64>,
}

/// A row from the values of [`COLUMNS`].
///
/// # Errors
/// What is wrong with them, if they cannot be those of one row.
pub(crate) fn read(values: &[Value]) -> Result<Read, String> {
    let [key, group, unique, refers, stamp, last, count, list] = values else {
        return Err(format!("a row has the columns {values:?}"));
    };
    let wrong = || format!("a row has the values {values:?}");
    let number = |value: &Value| match value {
        Value::Integer(number) => Ok(Some(*number as i64)),
        Value::Null => Ok(None),
        _ => Err(wrong()),
    };
    let some = |value: &Value| number(value)?.ok_or_else(wrong);
    let Value::Text(list) = list else { return Err(wrong()) };
    let list: Vec<u64> = list.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let row =
        Row { key: some(key)?, group: some(group)?, unique: number(unique)?, refers: number(refers)?, list };
    let stamp = number(stamp)?.map(|stamp| stamp as u64);
    let ends = row.list.last() == Some(&(some(last)? as u64)) && row.list.len() as i64 == some(count)?;
    if ends { Ok(Read { row, stamp }) } else { Err(wrong()) }
}
