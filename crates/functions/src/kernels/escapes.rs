//! Patterns of LIKE and SIMILAR TO, with a character that escapes others, and texts as patterns.

use crate::definition::{Definition, Kernel, Row, define, takes};
use entasis_vector::expr::pattern::Pattern;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result};

const TEXT: DataType = DataType::Varchar;
const BOOLEAN: DataType = DataType::Boolean;

pub const FUNCTIONS: &[Definition] = &[
    define(
        &["similar_to_escape"],
        "pattern [, escape]",
        "VARCHAR",
        "a pattern of SIMILAR TO as a regular expression; the escape is a backslash, or none if it is empty",
        &[
            takes(&[TEXT], TEXT, Kernel::Text(|row, out| similar(row, out, "\\"))),
            takes(&[TEXT, TEXT], TEXT, Kernel::Text(|row, out| similar(row, out, row.text(1)))),
        ],
        &[
            ("similar_to_escape('a_(b|c)%')", "^(?:a.(?:b|c).*)$"),
            ("similar_to_escape('10!%', '!')", "^(?:10%)$"),
        ],
    ),
    define(
        &["regexp_escape"],
        "text",
        "VARCHAR",
        "a pattern that matches the text",
        &[takes(
            &[TEXT],
            TEXT,
            Kernel::Text(|row, out| {
                out.each(row.text(0), |c, out| {
                    if c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' {
                        out.char('\\');
                    }
                    out.char(c);
                })?;
                Ok(true)
            }),
        )],
        &[("regexp_escape('a.b c')", "a\\.b\\ c")],
    ),
    define(
        &["like_escape"],
        "text, pattern, escape",
        "BOOLEAN",
        "text LIKE pattern ESCAPE escape",
        &[takes(&[TEXT, TEXT, TEXT], BOOLEAN, Kernel::Test(|row| like(row, false).map(Some)))],
        &[("like_escape('a%c', 'a$%c', '$')", "true")],
    ),
    define(
        &["not_like_escape"],
        "text, pattern, escape",
        "BOOLEAN",
        "text NOT LIKE pattern ESCAPE escape",
        &[takes(
            &[TEXT, TEXT, TEXT],
            BOOLEAN,
            Kernel::Test(|row| like(row, false).map(|found| Some(!found))),
        )],
        &[("not_like_escape('a%c', 'a$%c', '$')", "false")],
    ),
    define(
        &["ilike_escape"],
        "text, pattern, escape",
        "BOOLEAN",
        "text ILIKE pattern ESCAPE escape",
        &[takes(&[TEXT, TEXT, TEXT], BOOLEAN, Kernel::Test(|row| like(row, true).map(Some)))],
        &[("ilike_escape('A%c', 'a$%C', '$')", "true")],
    ),
    define(
        &["not_ilike_escape"],
        "text, pattern, escape",
        "BOOLEAN",
        "text NOT ILIKE pattern ESCAPE escape",
        &[takes(&[TEXT, TEXT, TEXT], BOOLEAN, Kernel::Test(|row| like(row, true).map(|found| Some(!found))))],
        &[("not_ilike_escape('A%c', 'a$%C', '$')", "false")],
    ),
];

fn like(row: &Row<'_>, case_insensitive: bool) -> Result<bool> {
    let mut escape = row.text(2).chars();
    let (first, None) = (escape.next(), escape.next()) else {
        return Err(Error::input("an escape is one character, or none"));
    };
    let pattern = Pattern::new(row.text(1), first, case_insensitive)?;
    pattern.matches(row.bytes(0))
}

/// Converts a pattern of SIMILAR TO to a regular expression: `%` matches any text, `_` any character; `|`,
/// `*`, `+`, `?`, `{m,n}`, `(…)` and `[…]` mean the same in both, and everything else stands for itself.
fn similar(row: &Row<'_>, out: &mut Writer<'_>, escape: &str) -> Result<bool> {
    let mut letters = escape.chars();
    let (escape, rest) = (letters.next(), letters.next());
    if rest.is_some() {
        return Err(Error::input("the ESCAPE of a pattern is one character, or none"));
    }
    out.text("^(?:");
    let mut rest = row.text(0).chars().peekable();
    // Within a bracket expression: number of characters so far.
    let mut listed: Option<usize> = None;
    while let Some(c) = rest.next() {
        out.more(c.len_utf8())?;
        if Some(c) == escape {
            let Some(plain) = rest.next() else {
                return Err(Error::input("a pattern ends with its ESCAPE"));
            };
            // A backslash before a letter keeps its meaning: `\d`, `\m`.
            if plain.is_ascii_alphanumeric() {
                out.char('\\');
                out.char(plain);
            } else {
                escaped(plain, out);
            }
            listed = listed.map(|count| count + 1);
            continue;
        }
        if let Some(count) = listed {
            match c {
                ']' if count > 0 => {
                    out.char(c);
                    listed = None;
                    continue;
                }
                '^' if count == 0 => {
                    out.char(c);
                    continue;
                }
                // A character class: `[:alpha:]`.
                '[' if rest.peek() == Some(&':') => {
                    out.char(c);
                    for part in rest.by_ref() {
                        out.char(part);
                        if part == ']' {
                            break;
                        }
                    }
                }
                '-' => out.char(c),
                plain => escaped(plain, out),
            }
            listed = Some(count + 1);
            continue;
        }
        match c {
            '%' => out.text(".*"),
            '_' => out.char('.'),
            '(' => out.text("(?:"),
            '[' => {
                out.char(c);
                listed = Some(0);
            }
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => out.char(c),
            plain => escaped(plain, out),
        }
    }
    out.text(")$");
    Ok(true)
}

/// A character that stands for itself in a regular expression.
fn escaped(plain: char, out: &mut Writer<'_>) {
    if r"\.+*?()|[]{}^$#&-~".contains(plain) {
        out.char('\\');
    }
    out.char(plain);
}
