//! Commands of other shells (SQLite, DuckDB, psql), and what does the same here; and the command that a
//! mistyped one may mean.

use crate::complete::COMMANDS;
use entasis::Error;

/// The dot commands of SQLite and DuckDB that this shell does not have.
const DOT: [(&str, &str); 40] = [
    ("archive", "EXPORT DATABASE 'directory' writes a database to files"),
    ("backup", "BACKUP TO 'copy.db' copies the database"),
    ("bail", "a script always stops at its first error"),
    ("cd", "paths begin in the directory in which the shell was started"),
    ("changes", "at the prompt, the number of changed rows is always shown"),
    ("clone", "BACKUP TO 'copy.db' copies the database"),
    ("columns", "use .mode line, or .mode table"),
    ("databases", "SHOW DATABASES lists the attached databases"),
    (
        "dump",
        ".schema prints the statements that create all objects; EXPORT DATABASE 'directory' writes the rows, too",
    ),
    ("echo", "there is no such setting"),
    ("edit", "an external editor is not supported"),
    ("excel", "COPY (SELECT …) TO 'result.csv' writes a file that spreadsheets open"),
    ("explain", "write EXPLAIN before the query"),
    ("fullschema", ".schema prints the statements that create all objects"),
    (
        "headers",
        "results always have headers; COPY (SELECT …) TO 'result.csv' (HEADER false) leaves them out",
    ),
    (
        "import",
        "CREATE TABLE t AS SELECT * FROM 'file.csv' makes a table of a file; COPY t FROM 'file.csv' adds to one",
    ),
    ("indexes", ".schema t shows the indexes of a table"),
    ("indices", ".schema t shows the indexes of a table"),
    ("large_number_rendering", "there is no such setting"),
    ("load", "extensions are not supported"),
    ("log", "there is no such setting"),
    ("maxrows", "at the prompt, 40 rows are shown; COPY (SELECT …) TO 'result.csv' writes them all"),
    ("maxwidth", "results are as wide as the terminal; .mode line shows long values whole"),
    ("nullvalue", "COPY (SELECT …) TO 'result.csv' (NULLSTR 'NA') chooses how NULL is written"),
    ("once", "COPY (SELECT …) TO 'result.csv' writes a result to a file"),
    ("open", "ATTACH 'other.db' AS other opens a database; USE other makes it the current one"),
    ("output", "COPY (SELECT …) TO 'result.csv' writes a result to a file"),
    ("parameter", "PREPARE and EXECUTE run a statement with parameters"),
    ("print", "SELECT 'text' prints a text"),
    ("prompt", "there is no such setting"),
    ("restore", "ATTACH 'copy.db' AS copy opens a backup"),
    ("save", "BACKUP TO 'copy.db' writes the database to a file"),
    ("separator", "COPY (SELECT …) TO 'result.csv' (DELIM ';') chooses what separates fields"),
    ("shell", "commands of the system are not run"),
    ("show", "SHOW ALL lists the settings"),
    ("stats", "EXPLAIN ANALYZE SELECT … shows what a query did"),
    ("system", "commands of the system are not run"),
    ("timeout", "SET lock_timeout limits how long a statement waits"),
    ("version", "SELECT version() shows the version"),
    ("width", "results are as wide as the terminal; .mode line shows long values whole"),
];

/// The backslash commands of psql, by their first letters.
const BACKSLASH: [(&str, &str); 11] = [
    ("copy", "COPY t FROM 'file.csv', COPY t TO 'file.csv'"),
    ("conninfo", "SHOW DATABASES"),
    ("dt", ".tables lists tables and views"),
    ("dv", ".tables lists tables and views"),
    ("d", ".tables lists tables and views, .schema t shows how one is created, DESCRIBE t its columns"),
    ("l", "SHOW DATABASES lists the attached databases"),
    ("c", "ATTACH 'other.db' AS other opens a database; USE other makes it the current one"),
    ("i", ".read file.sql runs a file"),
    ("timing", ".timer on|off"),
    ("x", ".mode line shows a value per line"),
    ("?", ".help lists the commands"),
];

/// The error of a dot command that does not exist, with what to do instead.
pub fn unknown_dot(name: &str) -> Error {
    let lower = name.to_ascii_lowercase();
    let error = Error::input(format!("there is no command .{name}"));
    if let Some((_, instead)) = DOT.iter().find(|(other, _)| *other == lower) {
        return error.with_hint(*instead);
    }
    match meant(&lower, COMMANDS.iter().map(|(own, ..)| *own)) {
        Some(own) => error.with_hint(format!("did you mean .{own}? .help lists the commands")),
        None => error.with_hint(".help lists the commands"),
    }
}

/// The error of a command of psql; `None` if the statement is none.
pub fn backslash(statement: &str) -> Option<Error> {
    let command = statement.trim_start().strip_prefix('\\')?;
    let word = command.split_whitespace().next().unwrap_or_default().trim_end_matches('+');
    let known = BACKSLASH.iter().find(|(own, _)| word == *own);
    let hint = known.map_or(".help lists the commands of this shell", |(_, instead)| instead);
    Some(Error::input(format!("there is no command \\{word}")).with_hint(hint))
}

/// The one of `words` that `typed` is probably meant to be: the only one that begins with it, or one that is
/// a few letters away.
pub fn meant<'a>(typed: &str, words: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let mut begun = words.clone().filter(|word| !typed.is_empty() && word.starts_with(typed));
    if let (Some(word), None) = (begun.next(), begun.next()) {
        return Some(word);
    }
    let near = words.map(|word| (distance(typed, word), word)).min()?;
    (near.0 <= 1 + near.1.len() / 5 && near.0 < typed.len()).then_some(near.1)
}

/// How many letters have to be added, removed, replaced or swapped with their neighbours to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, _) | (_, 0) => i + j,
                _ => {
                    let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let swapped = match i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        true => table[i - 2][j - 2] + 1,
                        false => usize::MAX,
                    };
                    replaced.min(swapped).min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
                }
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_others_are_answered() {
        for (name, part) in
            [("dump", "EXPORT DATABASE"), ("Import", "COPY"), ("tabels", ".tables"), ("he", ".help")]
        {
            let error = unknown_dot(name);
            assert!(error.hint().unwrap().contains(part), "{name}: {error:?}");
        }
        assert_eq!(unknown_dot("xyzzy").hint(), Some(".help lists the commands"));
        assert!(backslash("\\dt+ t").unwrap().hint().unwrap().contains(".tables"));
        assert!(backslash("SELECT 1").is_none());
        // None of them is one of our own.
        assert!(DOT.iter().all(|(other, _)| COMMANDS.iter().all(|(own, ..)| own != other)));
        assert!(DOT.is_sorted());
    }

    #[test]
    fn a_word_a_few_letters_away_is_meant() {
        assert_eq!(meant("dmeo", ["demo", "layout"].into_iter()), Some("demo"));
        assert_eq!(meant("lay", ["demo", "layout"].into_iter()), Some("layout"));
        assert_eq!(meant("sales", ["demo", "layout"].into_iter()), None);
        assert_eq!((distance("abc", "acb"), distance("", "ab"), distance("kitten", "sitting")), (1, 2, 3));
    }
}
