//! What there is: `.tables`, `.schema`, `.indexes`, `.databases`.

use super::arguments::Call;
use super::{Ran, say};
use crate::lex::begins_with;
use crate::literal::quoted_path;
use crate::script::{Piece, pieces};
use crate::session::{Outcome, Session};
use entasis::Error;
use entasis::Result;

/// `.tables [PATTERN]`: names of tables and views, those that are LIKE a pattern if there is one.
pub(super) fn tables(session: &mut Session, call: Call<'_>) -> Ran {
    let pattern = call.at_most_one()?.unwrap_or_default();
    let names = session.connection().tables();
    let shown = |name: &&String| pattern.is_empty() || is_like(name, &pattern);
    let list: String = names.iter().filter(shown).map(|name| format!("{name}\n")).collect();
    say(session, list)
}

/// `.schema [TABLE]`: the statements that create an object, or all; the columns of what was not created by a
/// statement, such as a quoted file.
pub(super) fn schema(session: &mut Session, call: Call<'_>) -> Ran {
    let relation = call.text;
    let is_file = relation.starts_with('\'');
    if !is_file
        && let Some(sql) = session.connection().declarations(Some(relation).filter(|r| !r.is_empty()))?
    {
        return say(session, sql);
    }
    let from = match is_file || relation.contains(['"', '.']) {
        true => relation.to_owned(),
        false => quoted_path(relation),
    };
    let schema = session.connection().describe(&format!("SELECT * FROM {from}"), &[])?.columns;
    let width = schema.iter().map(|field| field.name.chars().count()).max().unwrap_or(0);
    let mut text = format!("{relation}\n");
    for field in &schema {
        let required = if field.nullable { "" } else { " NOT NULL" };
        text.push_str(&format!("  {:width$}  {}{required}\n", field.name, field.ty));
    }
    say(session, text)
}

/// `.indexes [TABLE]`: the statements that create the indexes, or those of a table. Those of its keys are
/// part of its declaration.
pub(super) fn indexes(session: &mut Session, call: Call<'_>) -> Ran {
    let table = call.at_most_one()?;
    let text = declarations(session, table.as_deref())?;
    let is_index =
        |sql: &&str| begins_with(sql, &["create"]) && sql["create".len()..].trim_start().starts_with("INDEX");
    let list: String = statements(&text).filter(is_index).map(|sql| format!("{sql};\n")).collect();
    say(session, list)
}

/// `.databases`
pub(super) fn databases(session: &mut Session, call: Call<'_>) -> Ran {
    call.nothing()?;
    let outcome: Outcome = session.statement("SHOW DATABASES", call.line)?;
    Ok(outcome)
}

/// The statements that create a table or view, or all objects.
///
/// # Errors
/// Input, if there is no such table or view.
pub(super) fn declarations(session: &Session, object: Option<&str>) -> Result<String> {
    session.connection().declarations(object)?.ok_or_else(|| {
        let object = object.unwrap_or_default();
        Error::input(format!("there is no table or view '{object}'")).with_hint(".tables lists them")
    })
}

/// The statements of a script.
pub(super) fn statements(script: &str) -> impl Iterator<Item = &str> {
    pieces(script).into_iter().filter_map(|piece| match piece {
        Piece::Statement { sql, .. } => Some(sql),
        Piece::Command { .. } => None,
    })
}

/// Whether a name is LIKE a pattern, in either case: `%` is any text, `_` one character. A pattern without
/// either is found anywhere in the name.
fn is_like(name: &str, pattern: &str) -> bool {
    fn rest(name: &[char], pattern: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('%', after)) => (0..=name.len()).any(|at| rest(&name[at..], after)),
            Some((c, after)) => {
                name.split_first().is_some_and(|(own, others)| (*c == '_' || c == own) && rest(others, after))
            }
        }
    }
    let chars = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    match pattern.contains(['%', '_']) {
        true => rest(&chars(name), &chars(pattern)),
        false => name.to_lowercase().contains(&pattern.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_choose_names() {
        for (name, pattern, is) in [
            ("orders", "ord", true),
            ("orders", "ORD%", true),
            ("orders", "o_d_rs", true),
            ("orders", "o_d", false),
            ("orders", "%s", true),
            ("orders", "x", false),
        ] {
            assert_eq!(is_like(name, pattern), is, "{pattern}");
        }
    }
}
