//! Names of objects as one text: the identity of a table, view, sequence or index in its catalog.
//!
//! | object | its name |
//! |---|---|
//! | `t` in the schema `main` | `t` |
//! | `t` in another schema | `x.t`; temporary objects are in the schema `temp` |
//! | one whose own name contains a dot, `"a.b"` | `main..a.b`, or `x..a.b` in another schema |
//! | one of another database | `d.main.t`, `d.x.t`, `d.x..a.b` |
//!
//! A schema's name has no dot, and before an own name that contains one there is a second dot. So the text
//! can be taken apart in only one way: `"temp.z"`, which is `main..temp.z`, is not the temporary table `z`,
//! which is `temp.z`. Whoever needs a part of a name asks here; nobody looks for dots.
//!
//! **Case.** Names are compared without regard to the case of ASCII letters ([`fold`]), and of these only, as
//! in DuckDB, and in PostgreSQL for names without quotes: `"Ü"` and `"ü"` are two names.

/// The schema that always exists.
pub const MAIN: &str = "main";

/// A name in the form in which names are compared.
pub fn fold(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// True if two names are the same.
pub fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// The name of an object in a schema.
pub fn joined(schema: &str, own: &str) -> String {
    match (own.contains('.'), schema) {
        (false, MAIN) => own.to_owned(),
        (false, _) => format!("{schema}.{own}"),
        (true, _) => format!("{schema}..{own}"),
    }
}

/// The schema of an object, and its own name.
pub fn split(name: &str) -> (&str, &str) {
    match name.split_once('.') {
        Some((schema, own)) => (schema, own.strip_prefix('.').unwrap_or(own)),
        None => (MAIN, name),
    }
}

/// The own name of an object, without its schema.
pub fn own(name: &str) -> &str {
    split(name).1
}

/// The name of an object of another database. `name` is its name there.
pub fn in_database(database: &str, name: &str) -> String {
    let (schema, own) = split(name);
    let second = if own.contains('.') { "." } else { "" };
    format!("{database}.{schema}.{second}{own}")
}

/// The name in a database, of this name, of an object; `None` if the name is not one of that database.
pub fn within_database(name: &str, database: &str) -> Option<String> {
    let rest = name.strip_prefix(database)?.strip_prefix('.')?;
    // In the name of an object with a schema, what follows the first dot is its own name.
    let (schema, own) = rest.split_once('.').filter(|(schema, _)| !schema.is_empty())?;
    Some(joined(schema, own.strip_prefix('.').unwrap_or(own)))
}

/// A name as users write it, and as [`parts`] reads it.
pub fn shown(name: &str) -> String {
    let quoted = |part: &str| match part.contains(['.', '"']) {
        true => format!("\"{}\"", part.replace('"', "\"\"")),
        false => part.to_owned(),
    };
    match name.split_once('.') {
        Some((MAIN, own)) => quoted(own.strip_prefix('.').unwrap_or(own)),
        // Of another database.
        Some((_, own)) if own.contains('.') && !own.starts_with('.') => name.to_owned(),
        Some((schema, own)) => format!("{}.{}", quoted(schema), quoted(own.strip_prefix('.').unwrap_or(own))),
        None => quoted(name),
    }
}

/// The parts of a name in a text, in the form in which names are compared: `x."a.b"` has two.
pub fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(c) = chars.next() {
        let last = parts.last_mut().expect("there is one from the beginning");
        match c {
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => last.push('"'),
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(String::new()),
            c => last.push(c),
        }
    }
    parts.iter().map(|part| fold(part)).collect()
}

/// The name of an object that was stored before own names with a dot were told apart: `a.b` was both `b` in
/// the schema `a`, if there was one, and `"a.b"`.
pub fn renewed(name: &str, is_schema: impl Fn(&str) -> bool) -> String {
    match name.split_once('.') {
        Some((_, own)) if !own.is_empty() && !own.starts_with('.') => {
            let (schema, own) =
                name.split_once('.').filter(|(schema, _)| is_schema(schema)).unwrap_or((MAIN, name));
            joined(schema, own)
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn no_two_objects_have_one_name() {
        let owns = ["t", "a.b", "temp.z", "main.x", ".", "..", "a.", ".a", "a..b", "x", "d.x.t"];
        let mut known = HashMap::new();
        for schema in [MAIN, "temp", "x", "a"] {
            for own in owns {
                let name = joined(schema, own);
                assert_eq!(split(&name), (schema, own), "{name}");
                assert_eq!(known.insert(name.clone(), (None, schema, own)), None, "{name}");
                for database in ["d", "x", MAIN] {
                    let there = in_database(database, &name);
                    assert_eq!(within_database(&there, database), Some(name.clone()));
                    assert_eq!(within_database(&name, database), None, "{name}");
                    assert_eq!(known.insert(there, (Some(database), schema, own)), None);
                }
            }
        }
    }

    #[test]
    fn names_of_before_are_told_apart_by_the_schemas() {
        let is_schema = |schema: &str| schema == "x";
        for (old, new) in [
            ("t", "t"),
            ("x.t", "x.t"),
            ("x.a.b", "x..a.b"),
            ("a.b", "main..a.b"),
            ("temp.z", "main..temp.z"),
            ("main.z", "main..main.z"),
            ("x.", "x."),
        ] {
            assert_eq!(renewed(old, is_schema), new);
            assert_eq!(renewed(new, is_schema), new);
        }
    }

    #[test]
    fn parts_of_a_text() {
        assert_eq!(parts("X.T"), ["x", "t"]);
        assert_eq!(parts("x.\"A.b\""), ["x", "a.b"]);
        assert_eq!(parts("\"a\"\"b\""), ["a\"b"]);
        assert_eq!(shown("main..a.b"), "\"a.b\"");
        assert_eq!(shown("x..a.b"), "x.\"a.b\"");
        assert_eq!(shown("x.t"), "x.t");
    }

    #[test]
    fn only_letters_of_ascii_are_folded() {
        assert_eq!(fold("ÜBER"), "Über");
        assert!(same("Trips", "tRIPS") && !same("Ü", "ü"));
    }
}
