//! What a statement that is being typed says so far: which relations it names, by which aliases, and what its
//! `WITH` defines.

use super::names::Names;
use crate::lex::{Kind, Token, tokens};

/// Words that are followed by a table.
const BEFORE_TABLES: [&str; 9] =
    ["FROM", "JOIN", "INTO", "TABLE", "DESCRIBE", "SUMMARIZE", "UPDATE", "VIEW", "USING"];

/// Whether a table follows this word.
pub fn is_before_tables(word: &str) -> bool {
    BEFORE_TABLES.iter().any(|own| own.eq_ignore_ascii_case(word))
}

/// The statement around the cursor.
pub struct Typed<'a> {
    text: &'a str,
    /// Its tokens without blanks.
    words: Vec<Token>,
}

/// A relation that it names.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    /// As written, with its schema.
    path: String,
    alias: Option<String>,
}

/// What a `WITH` defines: a name, and the byte at which the definition ends.
struct Defined {
    name: String,
    end: usize,
}

impl<'a> Typed<'a> {
    /// The statement of `text` around byte `cursor`.
    pub fn around(text: &'a str, cursor: usize) -> Typed<'a> {
        let all = tokens(text);
        let is_end = |t: &&Token| t.kind == Kind::Symbol && t.text(text) == ";";
        let start = all.iter().filter(is_end).map(|t| t.range.end).rfind(|&end| end <= cursor).unwrap_or(0);
        let words = all
            .iter()
            .filter(|t| t.range.start >= start && !t.is_blank())
            .take_while(|t| !is_end(t))
            .cloned()
            .collect();
        Typed { text, words }
    }

    fn word(&self, at: usize) -> &'a str {
        self.words.get(at).map_or("", |token| token.text(self.text))
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.word(at).eq_ignore_ascii_case(word)
    }

    /// What its `WITH` defines, as far as it is closed.
    fn defined(&self) -> Vec<Defined> {
        let mut found = Vec::new();
        if !self.is(0, "with") {
            return found;
        }
        let mut at = if self.is(1, "recursive") { 2 } else { 1 };
        loop {
            let name = self.word(at).to_owned();
            let Some(open) = (at + 1..self.words.len()).find(|&i| self.is(i, "as")) else { return found };
            let Some(open) = (open + 1..self.words.len()).find(|&i| self.word(i) == "(") else {
                return found;
            };
            let Some(close) = self.closing(open) else { return found };
            found.push(Defined { name, end: self.words[close].range.end });
            if self.word(close + 1) != "," {
                return found;
            }
            at = close + 2;
        }
    }

    /// The bracket that closes the one at a token.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        (open..self.words.len()).find(|&at| {
            match self.word(at) {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            depth == 0
        })
    }

    /// The names that its `WITH` defines.
    pub fn definitions(&self) -> Vec<String> {
        self.defined().into_iter().map(|defined| defined.name).collect()
    }

    /// The relations that it names.
    fn relations(&self, names: &dyn Names) -> Vec<Named> {
        let mut known = names.tables();
        known.extend(self.definitions());
        let keywords = names.keywords();
        let mut relations = Vec::new();
        let mut at = 0;
        while at < self.words.len() {
            let first = &self.words[at];
            let follows = at > 0 && is_before_tables(self.word(at - 1));
            let own = first.text(self.text).trim_matches('"');
            let is_relation = match first.kind {
                Kind::Text => follows && !first.open,
                Kind::Word | Kind::Name if self.word(at + 1) == "." => follows,
                Kind::Word | Kind::Name => follows || known.iter().any(|name| name.eq_ignore_ascii_case(own)),
                _ => false,
            };
            let mut end = at;
            while follows
                && first.kind != Kind::Text
                && self.word(end + 1) == "."
                && end + 2 < self.words.len()
            {
                end += 2;
            }
            let is_call = self.word(end + 1) == "(" && !(at > 0 && self.is(at - 1, "into"));
            if is_relation && !is_call && !keywords.contains(&own.to_uppercase()) {
                let path = self.text[first.range.start..self.words[end].range.end].to_owned();
                let alias = end + 1 + usize::from(self.is(end + 1, "as"));
                let alias = self.words.get(alias).filter(|token| token.kind == Kind::Word);
                let alias = alias.map(|token| token.text(self.text));
                let alias = alias.filter(|alias| !keywords.contains(&alias.to_uppercase()));
                relations.push(Named { path, alias: alias.map(str::to_owned) });
            }
            at = end + 1;
        }
        relations
    }

    /// The query that returns all columns of a relation, written as in a `FROM` clause.
    fn query_of(&self, path: &str) -> String {
        let defined = self.defined();
        let own = defined.iter().find(|defined| defined.name.eq_ignore_ascii_case(path));
        match own {
            Some(own) => {
                let start = self.words[0].range.start;
                format!("{} SELECT * FROM {path}", &self.text[start..own.end])
            }
            None => format!("SELECT * FROM {path}"),
        }
    }

    /// Columns of all relations that it names; `None`, if it names none.
    pub fn columns(&self, names: &dyn Names) -> Option<Vec<String>> {
        let relations = self.relations(names);
        let columns = |named: &Named| names.columns(&self.query_of(&named.path));
        (!relations.is_empty()).then(|| relations.iter().flat_map(columns).collect())
    }

    /// Columns of the relation to which `qualifier` refers, by its alias or its name.
    pub fn columns_of(&self, qualifier: &str, names: &dyn Names) -> Vec<String> {
        let is = |name: &str| name.eq_ignore_ascii_case(qualifier);
        let own = |path: &str| path.rsplit('.').next().is_some_and(is) || is(path);
        let relations = self.relations(names);
        let meant = relations.iter().find(|named| named.alias.as_deref().map_or(own(&named.path), is));
        names.columns(&self.query_of(meant.map_or(qualifier, |named| &named.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;
    impl Names for Nothing {
        fn keywords(&self) -> Vec<String> {
            ["SELECT", "FROM", "WHERE", "ON", "SET"].map(str::to_owned).into()
        }
        fn functions(&self) -> Vec<String> {
            vec![]
        }
        fn settings(&self) -> Vec<String> {
            vec![]
        }
        fn tables(&self) -> Vec<String> {
            vec!["t".into()]
        }
        fn tables_of(&self, _: &str) -> Vec<String> {
            vec![]
        }
        fn spaces(&self) -> Vec<String> {
            vec![]
        }
        fn columns(&self, query: &str) -> Vec<String> {
            vec![query.to_owned()]
        }
        fn all_columns(&self) -> Vec<String> {
            vec![]
        }
    }

    #[test]
    fn relations_are_named_with_schemas_and_aliases() {
        let named = |text: &str| -> Vec<(String, Option<String>)> {
            let typed = Typed::around(text, text.len());
            typed.relations(&Nothing).into_iter().map(|named| (named.path, named.alias)).collect()
        };
        let pair = |path: &str, alias: Option<&str>| (path.to_owned(), alias.map(str::to_owned));
        assert_eq!(named("from s.u x, t where a"), [pair("s.u", Some("x")), pair("t", None)]);
        assert_eq!(
            named("select 1; from 'a.csv' as a join \"B\" on"),
            [pair("'a.csv'", Some("a")), pair("\"B\"", None)]
        );
        assert_eq!(named("from range(3) r"), []);
        assert_eq!(named("insert into u (a"), [pair("u", None)]);
        assert_eq!(named("update u set a"), [pair("u", None)]);
    }

    #[test]
    fn columns_of_definitions_are_those_of_their_queries() {
        let text = "with a as (select (1)), b (x) as materialized (from a) select b. from b";
        let typed = Typed::around(text, text.len());
        assert_eq!(typed.definitions(), ["a", "b"]);
        assert_eq!(
            typed.columns_of("b", &Nothing),
            ["with a as (select (1)), b (x) as materialized (from a) SELECT * FROM b"]
        );
        assert_eq!(typed.columns_of("a", &Nothing), ["with a as (select (1)) SELECT * FROM a"]);
        let open = "with a as (select ";
        assert_eq!(Typed::around(open, open.len()).definitions(), Vec::<String>::new());
    }
}
