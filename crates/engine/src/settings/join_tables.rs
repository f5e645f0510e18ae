//! The setting `join_table`: which table joins make, and which one single joins make.
//!
//! ```text
//! cht               all joins
//! auto, 3=cht       the third join of the plan; all others choose
//! 1=array, 2=cat    the same for two joins
//! ```
//! Joins are numbered from 1 in the order in which `EXPLAIN` prints them: a join before those below it, its
//! left input before its right one. `EXPLAIN ANALYZE` prints the numbers. A number that a plan does not have
//! counts for nothing.

use super::TableKind;
use entasis_vector::{Error, Result};
use std::fmt::Write;

/// What the setting says: the table of all joins, and those of single ones by number.
pub type WantedTables = (TableKind, Vec<(usize, TableKind)>);

/// Reads the setting.
///
/// # Errors
/// Input: a word that is no table, a number that is none, something said twice.
pub fn parse_wanted(text: &str) -> Result<WantedTables> {
    let (mut all, mut single) = (None, Vec::new());
    for part in text.split(',').map(str::trim) {
        match part.split_once('=') {
            None if all.is_some() => {
                return Err(Error::input(format!("join_table names a second table for all joins, '{part}'"))
                    .with_hint("write number=table for a single join, as in 'auto, 3=cht'"));
            }
            None => all = Some(parse_kind(part)?),
            Some((number, kind)) => {
                let number = number.trim();
                let known = number.parse().ok().filter(|&number: &usize| number > 0);
                let known = known.ok_or_else(|| {
                    Error::input(format!("join_table has '{number}' where the number of a join is expected"))
                        .with_hint("joins are numbered from 1, as EXPLAIN (ANALYZE, VERBOSE) prints them: 'auto, 3=cht'")
                })?;
                if single.iter().any(|(other, _)| *other == known) {
                    return Err(Error::input(format!("join_table names two tables for join {known}")));
                }
                single.push((known, parse_kind(kind.trim())?));
            }
        }
    }
    Ok((all.unwrap_or_default(), single))
}

fn parse_kind(name: &str) -> Result<TableKind> {
    TableKind::parse(&name.to_ascii_lowercase()).ok_or_else(|| {
        let names = TableKind::NAMES.map(|(_, name)| name).join(", ");
        Error::input(format!("join_table must be one of {names}, not '{name}'"))
            .with_hint("for a single join write its number before the table, as in 'auto, 3=cht'")
    })
}

/// The setting as [`parse_wanted`] reads it.
pub fn show_wanted(all: TableKind, single: &[(usize, TableKind)]) -> String {
    let mut text = all.to_string();
    for (number, kind) in single {
        write!(text, ", {number}={kind}").expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for (text, shown) in [
            ("auto", "auto"),
            (" CHT ", "cht"),
            ("auto, 3=cht", "auto, 3=cht"),
            ("3 = Cht,cat , 1=array", "cat, 3=cht, 1=array"),
            ("2=bitmap", "auto, 2=bitmap"),
        ] {
            let (all, single) = parse_wanted(text).unwrap();
            assert_eq!(show_wanted(all, &single), shown);
            assert_eq!(parse_wanted(shown).unwrap(), (all, single));
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, wrong) in [
            ("", "not ''"),
            ("merge", "not 'merge'"),
            ("auto, ", "second table"),
            ("cat, cht", "second table for all joins, 'cht'"),
            ("0=cat", "'0' where the number"),
            ("x=cat", "'x' where the number"),
            ("=cat", "'' where the number"),
            ("1=cat, 1=cht", "two tables for join 1"),
            ("1=", "not ''"),
            ("1=2=cat", "not '2=cat'"),
            ("99999999999999999999=cat", "where the number"),
        ] {
            let error = parse_wanted(text).unwrap_err().to_string();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }
}
