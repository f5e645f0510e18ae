//! Disguises: names under which a tree has what the parser cannot represent. They begin with a mark that
//! users cannot write. The module that reads the tokens puts them there, the binder recognizes them.

/// Begins a disguise.
pub const MARK: char = '\u{1}';

/// The table function that stands for a `DESCRIBE` in `FROM`.
pub const DESCRIBE: &str = "\u{1}describe";
/// The column of a `MERGE` that stands for `DO NOTHING`.
pub const NOTHING: &str = "\u{1}nothing";
/// The column of an `INSERT` that stands for `BY NAME`.
pub const BY_NAME: &str = "\u{1}by name";
/// The last column of an `INSERT` that stands for `OVERRIDING SYSTEM VALUE`.
pub const OVERRIDING_SYSTEM: &str = "\u{1}overriding system value";
/// The last column of an `INSERT` that stands for `OVERRIDING USER VALUE`.
pub const OVERRIDING_USER: &str = "\u{1}overriding user value";
/// The type of a column that has none: those of `CREATE TABLE t (a, b) AS query`.
pub const NO_TYPE: &str = "\u{1}no type";
/// The function that represents `USING SAMPLE`.
pub const SAMPLE: &str = "\u{1}sample";
/// The query of a `WITH` that stands for `MATERIALIZED` within the one that is.
pub const MATERIALIZED: &str = "\u{1}materialized";
/// The query of a `WITH` that stands for `NOT MATERIALIZED` within the one that is not.
pub const NOT_MATERIALIZED: &str = "\u{1}not materialized";
/// Begins the name of a window with an exclusion: then the kind of exclusion, a mark, and the original name.
pub const EXCLUDE: &str = "\u{1}exclude:";
/// Separates the columns of a query of a `WITH` from those of its key.
pub const KEY: &str = "\u{1}key";
