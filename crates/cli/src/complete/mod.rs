//! Completion by Tab, from the text before the cursor and the names in the database.
//!
//! | the cursor is | offered |
//! |---|---|
//! | in a line that starts with a dot | dot commands and their arguments |
//! | in a string | files |
//! | after `name.` | columns of the table or alias; tables of the schema or database after `FROM` |
//! | after `FROM`, `JOIN`, `INTO` … | tables, what the `WITH` defines, schemas and databases |
//! | after `SET`, `RESET`, `SHOW`, `PRAGMA` | settings |
//! | after `ORDER`, `GROUP`, `INSERT` … | the keyword that must follow |
//! | at the beginning of a statement | keywords that begin one |
//! | anywhere else | columns of the tables in the statement, or of all tables, functions, keywords, tables |

mod files;
mod keywords;
mod names;
mod statement;

pub use self::names::Names;

use self::files::{Within, files};
use self::statement::{Typed, is_before_tables};
use crate::commands::{self, COMMANDS, Offers};
use crate::lex::{Kind, Token, tokens};
use crate::literal::quoted_name;
use crate::render::Mode;
use entasis_vector::name;
use std::collections::HashSet;

/// Words that are followed by a setting, and what else may follow them.
const BEFORE_SETTINGS: [(&str, &[&str]); 4] = [
    ("SET", &[]),
    ("RESET", &[]),
    ("SHOW", &["all", "databases", "tables", "views"]),
    ("PRAGMA", &["integrity_check"]),
];

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
            let is_closed = text[cursor..].starts_with('\'');
            return files(&before[start..], start, Within::Text { is_closed });
        }
        Some(last) if last.open && last.kind == Kind::Comment => return (cursor, vec![]),
        Some(last) if last.kind == Kind::Word || (last.kind == Kind::Name && last.open) => {
            (last.range.start, last.text(before))
        }
        _ => (cursor, ""),
    };
    let earlier = earlier(before, &tokens_before, !prefix.is_empty());
    let typed = Typed::around(text, cursor);
    let previous = earlier.first().copied().unwrap_or_default();
    let candidates = if previous == "." {
        let (path, behind) = path(&earlier[1..]);
        match is_before_tables(behind) {
            true => matching(prefix, names.tables_of(&path).iter().map(|table| quoted_name(table))),
            false => {
                matching(prefix, typed.columns_of(&path, names).iter().map(|column| quoted_name(column)))
            }
        }
    } else if is_before_tables(previous) {
        tables(prefix, &typed, names)
    } else if let (Some(more), 1) = (before_settings(previous), earlier.len()) {
        matching(prefix, names.settings().into_iter().chain(more.iter().map(|word| (*word).to_owned())))
    } else {
        anywhere(prefix, &earlier, &typed, names)
    };
    (start, candidates)
}

/// The texts of the tokens of the statement before the word under the cursor, the last one first.
fn earlier<'t>(before: &'t str, tokens: &[Token], has_word: bool) -> Vec<&'t str> {
    let texts = tokens.iter().rev().skip(usize::from(has_word)).filter(|token| !token.is_blank());
    texts.map(|token| token.text(before)).take_while(|text| *text != ";").collect()
}

/// The name with its dots at the beginning of tokens in reverse, and the word before it.
fn path<'t>(reversed: &[&'t str]) -> (String, &'t str) {
    let mut parts = vec![reversed.first().copied().unwrap_or_default()];
    let mut at = 1;
    while reversed.get(at) == Some(&".") && at + 1 < reversed.len() {
        parts.push(reversed[at + 1]);
        at += 2;
    }
    parts.reverse();
    (parts.join("."), reversed.get(at).copied().unwrap_or_default())
}

/// What may follow one of these words besides a setting; `None` for other words.
fn before_settings(word: &str) -> Option<&'static [&'static str]> {
    BEFORE_SETTINGS.iter().find(|(own, _)| own.eq_ignore_ascii_case(word)).map(|(_, more)| *more)
}

/// What may follow FROM.
fn tables(prefix: &str, typed: &Typed<'_>, names: &dyn Names) -> Vec<String> {
    let readers = names.functions().into_iter().filter(|f| f.starts_with("read_")).map(|f| f + "(");
    let own = typed.definitions().into_iter().chain(names.tables().into_iter().map(|t| quoted_table(&t)));
    let mut candidates = matching(prefix, own.chain(readers));
    if !prefix.is_empty() {
        candidates.extend(matching(prefix, names.spaces().iter().map(|space| quoted_name(space) + ".")));
    }
    candidates
}

fn anywhere(prefix: &str, earlier: &[&str], typed: &Typed<'_>, names: &dyn Names) -> Vec<String> {
    let lower = prefix.starts_with(char::is_lowercase);
    let in_case = |word: &str| if lower { word.to_ascii_lowercase() } else { word.to_owned() };
    let forced = keywords::after(earlier.first().copied().unwrap_or_default());
    let forced = fitting(prefix, forced.iter().map(|word| in_case(word)));
    if !forced.is_empty() {
        return forced;
    }
    let best = fitting(prefix, keywords::fitting(earlier.iter().copied()).iter().map(|word| in_case(word)));
    if earlier.is_empty() && !prefix.is_empty() {
        let others = names.keywords();
        let others = matching(prefix, others.iter().map(|word| in_case(word)));
        return unique(best.into_iter().chain(others));
    }
    let columns = match typed.columns(names) {
        Some(columns) => columns,
        None if prefix.is_empty() => Vec::new(),
        None => names.all_columns(),
    };
    let mut candidates = matching(prefix, columns.iter().map(|column| quoted_name(column)));
    if !prefix.is_empty() {
        candidates.extend(matching(prefix, names.functions().into_iter().map(|f| f + "(")));
        candidates.extend(best);
        candidates.extend(matching(prefix, names.keywords().iter().map(|word| in_case(word))));
    }
    candidates.extend(matching(prefix, names.tables().iter().map(|t| quoted_table(t))));
    unique(candidates.into_iter())
}

/// Each candidate once.
fn unique(candidates: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    candidates.filter(|candidate| seen.insert(candidate.clone())).collect()
}

/// Those of `candidates` that start with `prefix`, ignoring case and quotes, sorted.
fn matching(prefix: &str, candidates: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = fitting(prefix, candidates);
    found.sort();
    found.dedup();
    found
}

/// The same, in their order.
fn fitting(prefix: &str, candidates: impl Iterator<Item = String>) -> Vec<String> {
    let plain = |s: &str| s.trim_start_matches('"').to_ascii_lowercase();
    let prefix = plain(prefix);
    candidates.filter(|candidate| plain(candidate).starts_with(&prefix)).collect()
}

/// The name of a table or view, which may have a schema, as it must be written in SQL.
fn quoted_table(table: &str) -> String {
    if !table.contains(['.', '"']) {
        return quoted_name(table);
    }
    let parts: Vec<String> = name::parts(table).iter().map(|part| quoted_name(part)).collect();
    parts.join(".")
}

/// Dot commands and their first arguments.
fn command(before: &str, names: &dyn Names) -> (usize, Vec<String>) {
    let dot = before.len() - before.trim_start().len();
    let all = || COMMANDS.iter().map(|command| command.name.to_owned());
    let Some((word, argument)) = before[dot + 1..].split_once(char::is_whitespace) else {
        return (dot + 1, matching(&before[dot + 1..], all()));
    };
    let argument = argument.trim_start();
    let start = before.len() - argument.len();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().into_iter();
    match commands::find(word).map_or(Offers::Nothing, |command| command.offers) {
        Offers::Nothing => (start, vec![]),
        Offers::Words(own) => (start, matching(argument, words(own))),
        Offers::Tables => (start, matching(argument, names.tables().into_iter())),
        Offers::Modes => (start, matching(argument, words(&Mode::NAMES))),
        Offers::Commands => (start, matching(argument, all())),
        Offers::Files => files(argument, start, Within::Command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Few;
    impl Names for Few {
        fn keywords(&self) -> Vec<String> {
            ["SELECT", "FROM", "WHERE", "ORDER", "AS", "BY", "BETWEEN", "SUM"].map(str::to_owned).into()
        }
        fn functions(&self) -> Vec<String> {
            ["sum", "read_csv", "sqrt"].map(str::to_owned).into()
        }
        fn settings(&self) -> Vec<String> {
            ["threads", "timezone", "memory_limit"].map(str::to_owned).into()
        }
        fn tables(&self) -> Vec<String> {
            ["orders", "Odd name", "stock"].map(str::to_owned).into()
        }
        fn tables_of(&self, space: &str) -> Vec<String> {
            vec![format!("of_{}", space.replace('.', "_"))]
        }
        fn spaces(&self) -> Vec<String> {
            ["other", "main"].map(str::to_owned).into()
        }
        fn columns(&self, query: &str) -> Vec<String> {
            match query.strip_prefix("SELECT * FROM ") {
                Some("orders") => ["id", "order", "status"].map(str::to_owned).into(),
                Some("'a.csv'") => vec!["speed".into()],
                None => vec!["of_cte".into()],
                _ => vec![],
            }
        }
        fn all_columns(&self) -> Vec<String> {
            vec!["carrier".into()]
        }
    }

    /// Completes at the `|` in `text`.
    fn offered(text: &str) -> Vec<String> {
        let cursor = text.find('|').unwrap();
        complete(&text.replace('|', ""), cursor, &Few).1
    }

    #[test]
    fn tables_follow_from() {
        assert_eq!(offered("select * from o|"), ["\"Odd name\"", "orders", "other."]);
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
        assert_eq!(offered("select carr|"), ["carrier"]);
        assert_eq!(offered("with c as (select 1) select c.| from c"), ["of_cte"]);
        assert_eq!(offered("with c as (select 1) select of| from c"), ["of_cte"]);
    }

    #[test]
    fn schemas_and_databases_have_tables() {
        assert_eq!(offered("select * from oth|"), ["other."]);
        assert_eq!(offered("select * from other.|"), ["of_other"]);
        assert_eq!(offered("select * from other.main.of|"), ["of_other_main"]);
        assert_eq!(offered("with orders2 as (select 1) from orders2|"), ["orders2"]);
    }

    #[test]
    fn settings_follow_set() {
        assert_eq!(offered("set t|"), ["threads", "timezone"]);
        assert_eq!(offered("select 1; reset m|"), ["memory_limit"]);
        assert_eq!(offered("SHOW |")[..2], ["all", "databases"]);
        assert_eq!(offered("pragma int|"), ["integrity_check"]);
        assert_eq!(offered("update orders set st|")[0], "status");
    }

    #[test]
    fn keywords_fit_their_place() {
        assert_eq!(offered("select * from orders order b|"), ["by"]);
        assert_eq!(offered("select * from orders ORDER |"), ["BY"]);
        assert_eq!(offered("select id f|")[0], "from");
        assert_eq!(offered("select * from 'x' wh|"), ["where"]);
    }

    #[test]
    fn keywords_follow_the_case_that_was_typed() {
        assert_eq!(offered("se|"), ["select", "set"]);
        assert_eq!(offered("SE|"), ["SELECT", "SET"]);
    }

    #[test]
    fn dot_commands_and_their_arguments() {
        assert_eq!(offered(".m|"), ["maxrows", "memory", "mode"]);
        assert_eq!(offered(".headers |"), ["off", "on"]);
        assert_eq!(offered(".help sch|"), ["schema"]);
        assert_eq!(offered(".read src/ma|"), ["src/main.rs"]);
        assert_eq!(offered(".mode js|"), ["json", "jsonl"]);
        assert_eq!(offered(".schema or|"), ["orders"]);
        assert_eq!(complete(".mode js", 8, &Few).0, 6);
    }

    #[test]
    fn files_are_offered_inside_of_strings() {
        let (start, found) = complete("select * from 'src/ma", 21, &Few);
        assert_eq!((start, found), (15, vec!["src/main.rs'".to_owned()]));
        assert_eq!(offered("select * from 'src/ma|'"), ["src/main.rs"]);
    }
}
