//! Commands of other shells (SQLite, DuckDB, psql) that this one does not have, and what does the same here.

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

/// What does the same as a dot command of another shell; `None` if none has it, or we do.
pub fn instead_of(name: &str) -> Option<&'static str> {
    DOT.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, instead)| *instead)
}

/// The error of a command of psql; `None` if the statement is none.
pub fn backslash(statement: &str) -> Option<Error> {
    let command = statement.trim_start().strip_prefix('\\')?;
    let word = command.split_whitespace().next().unwrap_or_default().trim_end_matches('+');
    let known = BACKSLASH.iter().find(|(own, _)| word == *own);
    let hint = known.map_or(".help lists the commands of this shell", |(_, instead)| instead);
    Some(Error::input(format!("there is no command \\{word}")).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_others_are_answered() {
        assert!(instead_of("backup").unwrap().contains("BACKUP TO"));
        assert!(instead_of("Excel").unwrap().contains("COPY"));
        assert_eq!(instead_of("tables"), None);
        assert!(backslash("\\dt+ t").unwrap().hint().unwrap().contains(".tables"));
        assert!(backslash("SELECT 1").is_none());
        assert!(DOT.is_sorted());
    }
}
