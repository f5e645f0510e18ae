//! Commands of other shells (SQLite, DuckDB, psql), and what does the same here; and the command that a
//! mistyped one may mean.

use crate::commands::COMMANDS;
use entasis::Error;

/// The dot commands of SQLite and DuckDB that this shell does not have.
const DOT: [(&str, &str); 22] = [
    ("archive", "EXPORT DATABASE 'directory' writes a database to files"),
    ("backup", "BACKUP TO 'copy.db' copies the database"),
    ("changes", "at the prompt, the number of changed rows is always shown; so it is with .stats on"),
    ("clone", "BACKUP TO 'copy.db' copies the database"),
    ("columns", "use .mode line, or .mode table"),
    ("excel", "COPY (SELECT …) TO 'result.csv' writes a file that spreadsheets open"),
    ("explain", "write EXPLAIN before the query"),
    ("fullschema", ".schema prints the statements that create all objects"),
    ("large_number_rendering", "there is no such setting"),
    ("load", "extensions are not supported"),
    ("log", "there is no such setting"),
    ("maxwidth", "results are as wide as the terminal; .x and .mode line show long values whole"),
    (
        "parameter",
        "entasis -v name=value gives $name a value; PREPARE and EXECUTE run a statement with parameters",
    ),
    ("prompt", "there is no such setting"),
    ("restore", "ATTACH 'copy.db' AS copy opens a backup"),
    ("rows", "use .mode table"),
    ("save", "BACKUP TO 'copy.db' writes the database to a file"),
    ("testcase", "there is no such command"),
    (
        "timeout",
        "SET lock_timeout limits how long a statement waits, and entasis --timeout how long it takes",
    ),
    ("version", "SELECT version() shows the version"),
    ("vfsinfo", ".databases lists the attached databases and their files"),
    ("width", "results are as wide as the terminal; .x and .mode line show long values whole"),
];

/// The backslash commands of psql.
const BACKSLASH: [(&str, &str); 25] = [
    ("copy", ".import file.csv t, or COPY t FROM 'file.csv', COPY t TO 'file.csv'"),
    ("conninfo", ".show and .databases say what is open"),
    ("cd", ".cd directory"),
    ("dt", ".tables lists tables and views"),
    ("dv", ".tables lists tables and views"),
    ("di", ".indexes lists the indexes"),
    ("dn", "SELECT schema_name FROM information_schema.schemata lists the schemas"),
    ("df", "docs/functions.md lists the functions; Tab completes them"),
    ("d", ".tables lists tables and views, .schema t shows how one is created, DESCRIBE t its columns"),
    ("l", ".databases lists the attached databases"),
    ("c", ".open other.db goes on with another database; ATTACH 'other.db' AS other opens it besides"),
    ("connect", ".open other.db goes on with another database; ATTACH 'other.db' AS other opens it besides"),
    ("i", ".read file.sql runs a file"),
    ("ir", ".read file.sql runs a file"),
    ("e", ".edit opens the last statement in $VISUAL or $EDITOR"),
    ("echo", ".print text"),
    ("g", ".once file, and then the statement"),
    ("gx", ".x shows the last result, one value a line"),
    ("o", ".output file, or .once file for the next result"),
    ("pset", ".mode, .headers, .nullvalue, .separator"),
    ("set", "entasis -v name=value gives $name a value"),
    ("timing", ".timer on|off"),
    ("watch", ".watch 2 runs the last statement every two seconds"),
    ("x", ".x shows the last result, one value a line; .mode line shows all so"),
    ("?", ".help lists the commands"),
];

/// The error of a dot command that does not exist, with what to do instead.
pub fn unknown_dot(name: &str) -> Error {
    let lower = name.to_ascii_lowercase();
    let error = Error::input(format!("there is no command .{name}"));
    if let Some((_, instead)) = DOT.iter().find(|(other, _)| *other == lower) {
        return error.with_hint(*instead);
    }
    match meant(&lower, COMMANDS.iter().map(|own| own.name)) {
        Some(own) => error.with_hint(format!("did you mean .{own}? .help lists the commands")),
        None => error.with_hint(".help lists the commands"),
    }
}

/// Whether another shell has a dot command of this name that we do not have.
pub fn is_known(name: &str) -> bool {
    DOT.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
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
            [("backup", "BACKUP TO"), ("Excel", "COPY"), ("tabels", ".tables"), ("improt", ".import")]
        {
            let error = unknown_dot(name);
            assert!(error.hint().unwrap().contains(part), "{name}: {error:?}");
        }
        assert_eq!(unknown_dot("xyzzy").hint(), Some(".help lists the commands"));
        assert!(backslash("\\dt+ t").unwrap().hint().unwrap().contains(".tables"));
        assert!(backslash("SELECT 1").is_none());
        assert!(DOT.is_sorted() && is_known("Log") && !is_known("tables"));
    }

    #[test]
    fn a_word_a_few_letters_away_is_meant() {
        assert_eq!(meant("dmeo", ["demo", "layout"].into_iter()), Some("demo"));
        assert_eq!(meant("lay", ["demo", "layout"].into_iter()), Some("layout"));
        assert_eq!(meant("sales", ["demo", "layout"].into_iter()), None);
        assert_eq!((distance("abc", "acb"), distance("", "ab"), distance("kitten", "sitting")), (1, 2, 3));
    }
}
