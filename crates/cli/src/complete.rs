//! Completion by Tab, from the text before the cursor and the names in the database.
//!
//! | the cursor is | offered |
//! |---|---|
//! | in a line that starts with a dot | dot commands and their arguments |
//! | in a string | files |
//! | after `name.` | columns of the table or alias |
//! | after `FROM`, `JOIN`, `INTO` … | tables |
//! | anywhere else | columns of the tables in the statement, functions, keywords, tables |

use crate::lex::{Kind, Token, tokens};
use crate::render::Mode;
use entasis_vector::name;
use std::path::{MAIN_SEPARATOR, Path};

/// The dot commands with their arguments and descriptions; `.help` prints this.
pub const COMMANDS: [(&str, &str, &str); 7] = [
    ("help", "[COMMAND]", "This list"),
    ("tables", "[PATTERN]", "Tables and views, or those whose names are LIKE a pattern"),
    ("schema", "[TABLE]", "The statements that create a table or view, or all objects; columns of a file"),
    ("mode", "[MODE]", "How results are written: table, csv, json, jsonl, markdown, line"),
    ("timer", "on|off", "Whether to say how long a statement took"),
    ("read", "FILE", "Run the statements in a file"),
    ("quit", "", "Leave; so does Ctrl-D"),
];

/// Words that are followed by a table.
const BEFORE_TABLES: [&str; 8] = ["FROM", "JOIN", "INTO", "TABLE", "DESCRIBE", "SUMMARIZE", "UPDATE", "VIEW"];

/// The source of names.
pub trait Names {
    /// Keywords, in upper case.
    fn keywords(&self) -> Vec<String>;
    /// Functions.
    fn functions(&self) -> Vec<String>;
    /// Tables and views.
    fn tables(&self) -> Vec<String>;
    /// Columns of a relation, which is written as in a `FROM` clause; empty if it is unknown.
    fn columns(&self, relation: &str) -> Vec<String>;
}

/// The byte at which the word under the cursor starts, and the candidates that can replace it, best first.
pub fn complete(text: &str, cursor: usize, names: &dyn Names) -> (usize, Vec<String>) {
    let before = &text[..cursor];
    if before.trim_start().starts_with('.') {
        return command(before, names);
    }
    let tokens_before = tokens(before);
    let (start, prefix) = match tokens_before.last() {
        Some(last) if last.open && last.kind == Kind::Text => {
            let start = last.range.start + 1;
            return files(&before[start..], start);
        }
        Some(last) if last.open && last.kind == Kind::Comment => return (cursor, vec![]),
        Some(last) if last.kind == Kind::Word || (last.kind == Kind::Name && last.open) => {
            (last.range.start, last.text(before))
        }
        _ => (cursor, ""),
    };
    let mut earlier =
        tokens_before.iter().rev().skip(usize::from(!prefix.is_empty())).filter(|t| !t.is_blank());
    let previous = earlier.next().map_or("", |t| t.text(before));
    let candidates = if previous == "." {
        let qualifier = earlier.next().map_or("", |t| t.text(before));
        matching(
            prefix,
            relations(text, cursor, names).columns_of(qualifier, names).iter().map(|c| quoted(c, names)),
        )
    } else if BEFORE_TABLES.contains(&previous.to_uppercase().as_str()) {
        let readers = names.functions().into_iter().filter(|f| f.starts_with("read_")).map(|f| f + "(");
        matching(prefix, names.tables().iter().map(|t| quoted_table(t, names)).chain(readers))
    } else {
        anywhere(text, cursor, prefix, names)
    };
    (start, candidates)
}

fn anywhere(text: &str, cursor: usize, prefix: &str, names: &dyn Names) -> Vec<String> {
    let mentioned = relations(text, cursor, names);
    let columns = mentioned.0.iter().flat_map(|(relation, _)| names.columns(relation));
    let mut candidates = matching(prefix, columns.map(|c| quoted(&c, names)));
    if !prefix.is_empty() {
        let lower = prefix.starts_with(char::is_lowercase);
        let keyword = |k: String| if lower { k.to_ascii_lowercase() } else { k };
        candidates.extend(matching(prefix, names.functions().into_iter().map(|f| f + "(")));
        candidates.extend(matching(prefix, names.keywords().into_iter().map(keyword)));
    }
    candidates.extend(matching(prefix, names.tables().iter().map(|t| quoted_table(t, names))));
    let mut seen = std::collections::HashSet::new();
    candidates.retain(|c| seen.insert(c.clone()));
    candidates
}

/// Those of `candidates` that start with `prefix`, ignoring case and quotes, sorted.
fn matching(prefix: &str, candidates: impl Iterator<Item = String>) -> Vec<String> {
    let plain = |s: &str| s.trim_start_matches('"').to_ascii_lowercase();
    let prefix = plain(prefix);
    let mut found: Vec<String> = candidates.filter(|c| plain(c).starts_with(&prefix)).collect();
    found.sort();
    found.dedup();
    found
}

/// The relations of the statement around the cursor: as written, and their alias.
struct Relations(Vec<(String, Option<String>)>);

impl Relations {
    /// Columns of the relation to which `qualifier` refers, by its alias or its name.
    fn columns_of(&self, qualifier: &str, names: &dyn Names) -> Vec<String> {
        let is = |name: &str| name.eq_ignore_ascii_case(qualifier);
        let relation = self.0.iter().find(|(relation, alias)| alias.as_deref().map_or(is(relation), is));
        names.columns(relation.map_or(qualifier, |(relation, _)| relation))
    }
}

fn relations(text: &str, cursor: usize, names: &dyn Names) -> Relations {
    let all = tokens(text);
    let is_end = |t: &&Token| t.kind == Kind::Symbol && t.text(text) == ";";
    let start = all.iter().filter(is_end).map(|t| t.range.end).rfind(|&end| end <= cursor).unwrap_or(0);
    let words: Vec<&Token> =
        all.iter().filter(|t| t.range.start >= start && !t.is_blank()).take_while(|t| !is_end(t)).collect();
    let tables = names.tables();
    let keywords = names.keywords();
    let mut relations = Vec::new();
    for (i, token) in words.iter().enumerate() {
        let name = token.text(text);
        let behind_from = i > 0 && BEFORE_TABLES.contains(&words[i - 1].text(text).to_uppercase().as_str());
        let is_relation = match token.kind {
            Kind::Text => behind_from && !token.open,
            Kind::Word | Kind::Name => tables.iter().any(|t| t.eq_ignore_ascii_case(name.trim_matches('"'))),
            _ => false,
        };
        if is_relation {
            let as_follows = words.get(i + 1).is_some_and(|t| t.text(text).eq_ignore_ascii_case("as"));
            let alias = words.get(i + 1 + usize::from(as_follows)).filter(|t| t.kind == Kind::Word);
            let alias = alias.map(|t| t.text(text)).filter(|a| !keywords.contains(&a.to_uppercase()));
            relations.push((name.to_owned(), alias.map(str::to_owned)));
        }
    }
    Relations(relations)
}

/// A name as it must be written in SQL.
fn quoted(name: &str, names: &dyn Names) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let reserved = [
        "ORDER", "GROUP", "SELECT", "FROM", "WHERE", "TABLE", "ALL", "CASE", "END", "UNION", "JOIN", "LIMIT",
    ];
    if plain
        && !(reserved.contains(&name.to_uppercase().as_str())
            && names.keywords().contains(&name.to_uppercase()))
    {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The name of a table or view, which may have a schema, as it must be written in SQL.
fn quoted_table(name: &str, names: &dyn Names) -> String {
    if !name.contains(['.', '"']) {
        return quoted(name, names);
    }
    let parts: Vec<String> = name::parts(name).iter().map(|part| quoted(part, names)).collect();
    parts.join(".")
}

/// Dot commands and their arguments.
fn command(before: &str, names: &dyn Names) -> (usize, Vec<String>) {
    let dot = before.len() - before.trim_start().len();
    let Some((word, argument)) = before[dot + 1..].split_once(char::is_whitespace) else {
        let commands = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
        return (dot + 1, matching(&before[dot + 1..], commands));
    };
    let argument = argument.trim_start();
    let start = before.len() - argument.len();
    match word {
        "schema" => (start, matching(argument, names.tables().into_iter())),
        "mode" => (start, matching(argument, Mode::NAMES.iter().map(|m| (*m).to_owned()))),
        "timer" => (start, matching(argument, ["off", "on"].iter().map(|s| (*s).to_owned()))),
        "read" => files(argument, start),
        _ => (start, vec![]),
    }
}

/// Files and directories whose path starts with `path`, which begins at byte `start`.
fn files(path: &str, start: usize) -> (usize, Vec<String>) {
    let (directory, prefix) = match path.rfind(['/', MAIN_SEPARATOR]) {
        Some(at) => (&path[..=at], &path[at + 1..]),
        None => ("", path),
    };
    let Ok(entries) = Path::new(if directory.is_empty() { "." } else { directory }).read_dir() else {
        return (start, vec![]);
    };
    let mut found: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let shown = name.starts_with(prefix) && (!name.starts_with('.') || prefix.starts_with('.'));
            let end = if entry.path().is_dir() { "/" } else { "" };
            shown.then(|| format!("{directory}{name}{end}").replace('\'', "''"))
        })
        .collect();
    found.sort();
    (start, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Few;
    impl Names for Few {
        fn keywords(&self) -> Vec<String> {
            ["SELECT", "FROM", "WHERE", "ORDER", "AS", "SUM"].map(str::to_owned).into()
        }
        fn functions(&self) -> Vec<String> {
            ["sum", "read_csv", "sqrt"].map(str::to_owned).into()
        }
        fn tables(&self) -> Vec<String> {
            ["orders", "Odd name", "stock"].map(str::to_owned).into()
        }
        fn columns(&self, relation: &str) -> Vec<String> {
            match relation {
                "orders" => ["id", "order", "status"].map(str::to_owned).into(),
                "'a.csv'" => vec!["speed".into()],
                _ => vec![],
            }
        }
    }

    /// Completes at the `|` in `text`.
    fn offered(text: &str) -> Vec<String> {
        let cursor = text.find('|').unwrap();
        complete(&text.replace('|', ""), cursor, &Few).1
    }

    #[test]
    fn tables_follow_from() {
        assert_eq!(offered("select * from o|"), ["\"Odd name\"", "orders"]);
        assert_eq!(offered("select * from |"), ["\"Odd name\"", "orders", "read_csv(", "stock"]);
    }

    #[test]
    fn columns_come_from_the_tables_of_the_statement() {
        assert_eq!(offered("select s| from orders"), ["status", "sqrt(", "sum(", "select", "sum", "stock"]);
        assert_eq!(offered("select S| from 'a.csv'; select * from orders")[0], "speed");
        assert_eq!(offered("select | from orders")[..3], ["\"order\"", "id", "status"]);
        assert_eq!(offered("select o.| from orders as o where 1=1"), ["\"order\"", "id", "status"]);
        assert_eq!(offered("select orders.st|\nfrom orders"), ["status"]);
        assert_eq!(offered("select id from stock; select i|"), Vec::<String>::new());
    }

    #[test]
    fn keywords_follow_the_case_that_was_typed() {
        assert_eq!(offered("se|"), ["select"]);
        assert_eq!(offered("SE|"), ["SELECT"]);
    }

    #[test]
    fn dot_commands_and_their_arguments() {
        assert_eq!(offered(".m|"), ["mode"]);
        assert_eq!(offered(".mode js|"), ["json", "jsonl"]);
        assert_eq!(offered(".schema or|"), ["orders"]);
        assert_eq!(complete(".mode js", 8, &Few).0, 6);
    }

    #[test]
    fn files_are_offered_inside_of_strings() {
        let (start, found) = complete("select * from 'src/ma", 21, &Few);
        assert_eq!((start, found), (15, vec!["src/main.rs".to_owned()]));
    }
}
