//! Which keywords come next: those that must follow the word before, and those that fit into the clause.

/// Words after which only these come.
const AFTER: [(&str, &[&str]); 24] = [
    ("ORDER", &["BY"]),
    ("GROUP", &["BY"]),
    ("PARTITION", &["BY"]),
    ("INSERT", &["INTO"]),
    ("MERGE", &["INTO"]),
    ("DELETE", &["FROM"]),
    ("ALTER", &["TABLE"]),
    ("TRUNCATE", &["TABLE"]),
    ("ROLLBACK", &["TO"]),
    ("RELEASE", &["SAVEPOINT"]),
    ("PRIMARY", &["KEY"]),
    ("FOREIGN", &["KEY"]),
    ("CREATE", &["TABLE", "VIEW", "INDEX", "OR", "SCHEMA", "SEQUENCE", "TEMPORARY", "TYPE", "UNIQUE"]),
    (
        "DROP",
        &["TABLE", "VIEW", "COLUMN", "CONSTRAINT", "DEFAULT", "INDEX", "NOT", "SCHEMA", "SEQUENCE", "TYPE"],
    ),
    ("INNER", &["JOIN"]),
    ("CROSS", &["JOIN"]),
    ("ASOF", &["JOIN"]),
    ("NATURAL", &["JOIN", "LEFT", "RIGHT", "FULL", "INNER"]),
    ("OUTER", &["JOIN"]),
    ("EXPORT", &["DATABASE"]),
    ("IMPORT", &["DATABASE"]),
    ("BACKUP", &["TO"]),
    ("NULLS", &["FIRST", "LAST"]),
    ("IS", &["NULL", "NOT", "DISTINCT", "TRUE", "FALSE"]),
];

/// Words with which statements begin, the most frequent first.
const STATEMENTS: [&str; 27] = [
    "SELECT",
    "FROM",
    "WITH",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "ALTER",
    "COPY",
    "DESCRIBE",
    "SUMMARIZE",
    "EXPLAIN",
    "SHOW",
    "SET",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "MERGE",
    "ATTACH",
    "DETACH",
    "USE",
    "EXPORT",
    "IMPORT",
    "PRAGMA",
    "TRUNCATE",
    "VALUES",
];

/// Words that begin clauses, and those that fit into and after each, the most frequent first.
const CLAUSES: [(&str, &[&str]); 11] = [
    ("SELECT", &["FROM", "AS", "DISTINCT", "CASE", "FILTER", "OVER"]),
    ("FROM", &["WHERE", "JOIN", "LEFT", "GROUP", "ORDER", "LIMIT", "ON", "AS"]),
    ("JOIN", &["ON", "USING", "WHERE", "JOIN", "LEFT", "GROUP", "ORDER", "LIMIT", "AS"]),
    ("ON", &["AND", "OR", "WHERE", "JOIN", "LEFT", "GROUP", "ORDER", "LIMIT"]),
    ("WHERE", &["AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "GROUP", "ORDER", "LIMIT"]),
    ("GROUP", &["HAVING", "ORDER", "LIMIT"]),
    ("HAVING", &["AND", "OR", "ORDER", "LIMIT"]),
    ("ORDER", &["DESC", "ASC", "NULLS", "LIMIT"]),
    ("LIMIT", &["OFFSET"]),
    ("SET", &["WHERE", "FROM", "RETURNING"]),
    ("INTO", &["VALUES", "SELECT", "ON", "RETURNING"]),
];

/// The words that must follow this one; empty, if there is no such rule.
pub fn after(word: &str) -> &'static [&'static str] {
    AFTER.iter().find(|(own, _)| own.eq_ignore_ascii_case(word)).map_or(&[], |(_, words)| *words)
}

/// The words that fit best after others, given in reverse; none before: at the beginning of a statement.
pub fn fitting<'a>(mut before: impl Iterator<Item = &'a str>) -> &'static [&'static str] {
    let Some(previous) = before.next() else { return &STATEMENTS };
    let clause = |word: &str| CLAUSES.iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
    let begun = clause(previous).or_else(|| before.find_map(clause));
    begun.map_or(&[], |(_, words)| *words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_depends_on_the_clause() {
        let first =
            |before: &str| fitting(before.split(' ').rev().filter(|word| !word.is_empty())).first().copied();
        assert_eq!(first(""), Some("SELECT"));
        assert_eq!(first("select a"), Some("FROM"));
        assert_eq!(first("select a from t"), Some("WHERE"));
        assert_eq!(first("select a from t where x"), Some("AND"));
        assert_eq!(first("begin"), None);
        assert_eq!((after("order"), after("a")), (&["BY"][..], &[][..]));
    }
}
