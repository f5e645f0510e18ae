//! Functions of regular expressions.
//!
//! Patterns are those of the crate `regex`, without backreferences and lookaround, in linear time. As in
//! PostgreSQL, `.` matches a line feed, `\y \m \M` match at the ends of words, and the letters of `flags`
//! are:
//!
//! | letters | meaning |
//! |---|---|
//! | `i`, `c` | case-insensitive; case-sensitive |
//! | `n`, `m` | `.` does not match a line feed, `^` and `$` match at every line |
//! | `p`, `w` | only the first of these; only the second |
//! | `s` | neither |
//! | `x` | blanks and comments in the pattern are ignored |
//! | `q`, `l` | the pattern is plain text |
//! | `g` | all matches; only in `regexp_replace` |
//!
//! A pattern may begin with such letters itself: `(?m)^a.*$`.

use crate::definition::{Body, Definition, Kernel, Row, Signature, define, takes};
use entasis_vector::statement::Looks;
use entasis_vector::value::nested;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result, characters};
use regex::{Captures, Regex, RegexBuilder};
use std::cell::RefCell;
use std::rc::Rc;

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const BOOLEAN: DataType = DataType::Boolean;

/// Number of compiled patterns that a thread keeps.
const KEPT: usize = 64;

pub const FUNCTIONS: &[Definition] = &[
    define(
        &["regexp_matches", "regexp_like"],
        "text, pattern [, flags]",
        "BOOLEAN",
        "whether a part of the text matches",
        &[
            takes(&[TEXT, TEXT], BOOLEAN, Kernel::Test(|row| matches(row, "", false))),
            takes(&[TEXT, TEXT, TEXT], BOOLEAN, Kernel::Test(|row| matches(row, row.text(2), false))),
        ],
        &[("regexp_matches('anabanana', 'ana')", "true"), ("regexp_matches('ABC', 'b', 'i')", "true")],
    ),
    define(
        &["regexp_full_match"],
        "text, pattern [, flags]",
        "BOOLEAN",
        "whether the whole text matches",
        &[
            takes(&[TEXT, TEXT], BOOLEAN, Kernel::Test(|row| matches(row, "", true))),
            takes(&[TEXT, TEXT, TEXT], BOOLEAN, Kernel::Test(|row| matches(row, row.text(2), true))),
        ],
        &[("regexp_full_match('anabanana', '(an)*')", "false")],
    ),
    define(
        &["regexp_replace"],
        "text, pattern, by [, start [, n]] [, flags]",
        "VARCHAR",
        "with the first match, or all under 'g', replaced; from a character on; \\1 to \\9 stand for groups, \\& for the match, \\\\ for a backslash",
        &[
            takes(&[TEXT, TEXT, TEXT], TEXT, Kernel::Text(|row, out| replace(row, out, 1, None, ""))),
            takes(
                &[TEXT, TEXT, TEXT, TEXT],
                TEXT,
                Kernel::Text(|row, out| replace(row, out, 1, None, row.text(3))),
            ),
            takes(
                &[TEXT, TEXT, TEXT, BIGINT],
                TEXT,
                Kernel::Text(|row, out| replace(row, out, row.whole(3), None, "")),
            ),
            takes(
                &[TEXT, TEXT, TEXT, BIGINT, BIGINT],
                TEXT,
                Kernel::Text(|row, out| replace(row, out, row.whole(3), Some(row.whole(4)), "")),
            ),
            takes(
                &[TEXT, TEXT, TEXT, BIGINT, BIGINT, TEXT],
                TEXT,
                Kernel::Text(|row, out| replace(row, out, row.whole(3), Some(row.whole(4)), row.text(5))),
            ),
        ],
        &[
            ("regexp_replace('hello', '[lo]', '-')", "he-lo"),
            ("regexp_replace('hello', '[lo]', '-', 'g')", "he---"),
            ("regexp_replace('a-b', '(.)-(.)', '\\2 \\& \\1')", "b a-b a"),
        ],
    ),
    define(
        &["regexp_extract"],
        "text, pattern [, group [, flags]]",
        "VARCHAR",
        "the first match, or a group of it; empty if there is none",
        &[
            takes(&[TEXT, TEXT], TEXT, Kernel::Text(|row, out| extract(row, out, 0, ""))),
            takes(&[TEXT, TEXT, BIGINT], TEXT, Kernel::Text(|row, out| extract(row, out, row.whole(2), ""))),
            takes(
                &[TEXT, TEXT, BIGINT, TEXT],
                TEXT,
                Kernel::Text(|row, out| extract(row, out, row.whole(2), row.text(3))),
            ),
        ],
        &[("regexp_extract('abc123', '([a-z]+)(\\d+)', 2)", "123")],
    ),
    Definition {
        names: &["regexp_extract_all"],
        arguments: "text, pattern [, group [, flags]]",
        gives: "VARCHAR[]",
        does: "all matches, or a group of each; empty where the group is not part of a match",
        examples: &[
            ("regexp_extract_all('a1b22', '[a-z]\\d+')", "[a1, b22]"),
            ("regexp_extract_all('a1b22', '([a-z])(\\d+)', 2)", "[1, 22]"),
        ],
        body: Body::Typed(|types| {
            static ALL: [DataType; 4] = [TEXT, TEXT, BIGINT, TEXT];
            let args = ALL.get(..types.len()).filter(|args| args.len() >= 2);
            let args = args.ok_or_else(|| Error::input("no such call"))?;
            let fits = |(given, wanted): (&DataType, &DataType)| match wanted {
                DataType::Int64 => given.is_integer() || matches!(given, DataType::Varchar | DataType::Null),
                _ => matches!(given, DataType::Varchar | DataType::Null),
            };
            match types.iter().zip(args).all(fits) {
                true => Ok(Signature {
                    args: args.to_vec(),
                    result: DataType::list(TEXT),
                    kernel: Kernel::Text(extract_all),
                }),
                false => Err(Error::input("no such call")),
            }
        }),
    },
    Definition {
        names: &["regexp_split_to_array", "string_split_regex", "str_split_regex"],
        arguments: "text, pattern [, flags]",
        gives: "VARCHAR[]",
        does: "the parts of a text between matches; its characters, if the pattern matches an empty text",
        examples: &[("regexp_split_to_array('a1b22c', '\\d+')", "[a, b, c]")],
        body: Body::Typed(|types| match types {
            [_, _] | [_, _, _] if types.iter().all(|ty| matches!(ty, DataType::Varchar | DataType::Null)) => {
                Ok(Signature {
                    args: vec![TEXT; types.len()],
                    result: DataType::list(TEXT),
                    kernel: Kernel::Text(split),
                })
            }
            _ => Err(Error::input("no such call")),
        }),
    },
    define(
        &["regexp_substr"],
        "text, pattern [, start [, n [, flags [, group]]]]",
        "VARCHAR",
        "the n-th match, or a group of it; NULL if there is none",
        &[
            takes(&[TEXT, TEXT], TEXT, Kernel::Text(substr)),
            takes(&[TEXT, TEXT, BIGINT], TEXT, Kernel::Text(substr)),
            takes(&[TEXT, TEXT, BIGINT, BIGINT], TEXT, Kernel::Text(substr)),
            takes(&[TEXT, TEXT, BIGINT, BIGINT, TEXT], TEXT, Kernel::Text(substr)),
            takes(&[TEXT, TEXT, BIGINT, BIGINT, TEXT, BIGINT], TEXT, Kernel::Text(substr)),
        ],
        &[("regexp_substr('a1b22', '\\d+', 1, 2)", "22")],
    ),
    define(
        &["regexp_count"],
        "text, pattern [, start [, flags]]",
        "BIGINT",
        "number of matches",
        &[
            takes(&[TEXT, TEXT], BIGINT, Kernel::Whole(count)),
            takes(&[TEXT, TEXT, BIGINT], BIGINT, Kernel::Whole(count)),
            takes(&[TEXT, TEXT, BIGINT, TEXT], BIGINT, Kernel::Whole(count)),
        ],
        &[("regexp_count('123456789012', '\\d\\d\\d', 2)", "3")],
    ),
    define(
        &["regexp_instr"],
        "text, pattern [, start [, n [, behind [, flags [, group]]]]]",
        "BIGINT",
        "place of the n-th match, or behind it if behind is 1; 0 if there is none",
        &[
            takes(&[TEXT, TEXT], BIGINT, Kernel::Whole(place)),
            takes(&[TEXT, TEXT, BIGINT], BIGINT, Kernel::Whole(place)),
            takes(&[TEXT, TEXT, BIGINT, BIGINT], BIGINT, Kernel::Whole(place)),
            takes(&[TEXT, TEXT, BIGINT, BIGINT, BIGINT], BIGINT, Kernel::Whole(place)),
            takes(&[TEXT, TEXT, BIGINT, BIGINT, BIGINT, TEXT], BIGINT, Kernel::Whole(place)),
            takes(&[TEXT, TEXT, BIGINT, BIGINT, BIGINT, TEXT, BIGINT], BIGINT, Kernel::Whole(place)),
        ],
        &[("regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i')", "3")],
    ),
];

// ---- patterns ---------------------------------------------------------------------------------------------

/// A compiled pattern and the arguments that it was compiled from.
struct Compiled {
    pattern: String,
    flags: String,
    whole: bool,
    // Shared, because a clone of a `Regex` has caches of its own.
    regex: Rc<Regex>,
}

thread_local! {
    /// Ordered by last use, the latest at the end.
    static COMPILED: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

/// The compiled pattern; usually that of the previous row.
pub(super) fn compiled(pattern: &str, flags: &str, whole: bool) -> Result<Rc<Regex>> {
    COMPILED.with(|kept| {
        let mut kept = kept.borrow_mut();
        let same = |c: &Compiled| c.whole == whole && c.pattern == pattern && c.flags == flags;
        match kept.iter().rposition(same) {
            Some(at) if at + 1 == kept.len() => {}
            Some(at) => {
                let found = kept.remove(at);
                kept.push(found);
            }
            None => {
                let regex = Rc::new(compile(pattern, flags, whole)?);
                if kept.len() >= KEPT {
                    kept.remove(0);
                }
                kept.push(Compiled { pattern: pattern.to_owned(), flags: flags.to_owned(), whole, regex });
            }
        }
        kept.last().map(|c| c.regex.clone()).ok_or_else(|| Error::internal("no pattern was compiled"))
    })
}

/// Bytes of the longest regular expression. It is compiled without a look, for some tenths of a second, and
/// the automaton of a longer one would be too large.
const LONGEST_PATTERN: usize = 1 << 20;

fn compile(pattern: &str, flags: &str, whole: bool) -> Result<Regex> {
    if pattern.len() > LONGEST_PATTERN {
        return Err(Error::input(format!(
            "a regular expression of {} bytes is longer than the {LONGEST_PATTERN} that one may have",
            pattern.len()
        )));
    }
    let (mut plain, mut ignore_case, mut extended) = (false, false, false);
    let (mut dot, mut lines) = (true, false);
    let (own, pattern) = own_flags(pattern);
    for flag in flags.chars().chain(own.chars()) {
        match flag {
            'i' => ignore_case = true,
            'c' => ignore_case = false,
            'n' | 'm' => (dot, lines) = (false, true),
            'p' => (dot, lines) = (false, false),
            'w' => (dot, lines) = (true, true),
            's' => (dot, lines) = (true, false),
            'x' => extended = true,
            'q' | 'l' => plain = true,
            'g' | 't' | 'e' => {}
            other => return Err(Error::input(format!("{other:?} is not a flag of a regular expression"))),
        }
    }
    let pattern = if plain { regex::escape(pattern) } else { translated(pattern) };
    let pattern = if whole { format!(r"\A(?:{pattern})\z") } else { pattern };
    RegexBuilder::new(&pattern)
        .case_insensitive(ignore_case)
        .dot_matches_new_line(dot)
        .multi_line(lines)
        .ignore_whitespace(extended)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Error::input(format!("the regular expression {pattern:?} is not valid: {reason}"))
        })
}

/// The flags with which a pattern begins, `(?im)`, and the rest of it. Others than PostgreSQL's, and those of
/// a part, `(?i:a)`, are left to the crate.
fn own_flags(pattern: &str) -> (&str, &str) {
    let of = |rest: &'_ str| rest.bytes().take_while(|letter| b"cimnpqswx".contains(letter)).count();
    match pattern.strip_prefix("(?") {
        Some(rest) if of(rest) > 0 && rest[of(rest)..].starts_with(')') => {
            (&rest[..of(rest)], &rest[of(rest) + 1..])
        }
        _ => ("", pattern),
    }
}

/// Translates PostgreSQL's escapes for positions to those of the crate.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        out.push(c);
        if c != '\\' {
            continue;
        }
        match rest.next() {
            Some('y') => out.push('b'),
            Some('Y') => out.push('B'),
            Some('m') => out.push_str("b{start}"),
            Some('M') => out.push_str("b{end}"),
            Some('Z') => out.push('z'),
            other => out.extend(other),
        }
    }
    out
}

/// The byte at which the character `start`, from 1, begins.
fn byte_of(text: &str, start: i64) -> Result<usize> {
    let Some(before) = usize::try_from(start).ok().and_then(|start| start.checked_sub(1)) else {
        return Err(Error::input(format!("the start of a search is 1 or more, not {start}")));
    };
    characters::place(text, before)
}

// ---- kernels ----------------------------------------------------------------------------------------------

fn matches(row: &Row<'_>, flags: &str, whole: bool) -> Result<Option<bool>> {
    Ok(Some(compiled(row.text(1), flags, whole)?.is_match(row.text(0))))
}

fn replace(row: &Row<'_>, out: &mut Writer<'_>, start: i64, n: Option<i64>, flags: &str) -> Result<bool> {
    let (text, by) = (row.text(0), row.text(2));
    let regex = compiled(row.text(1), flags, false)?;
    let from = byte_of(text, start)?;
    let wanted = match n {
        None => usize::from(!flags.contains('g')),
        Some(n) => usize::try_from(n).map_err(|_| Error::input("regexp_replace: n must not be negative"))?,
    };
    // `wanted` is the number of the only match to replace; 0: all.
    let mut end = 0;
    for (i, groups) in captures_from(&regex, text, from).enumerate() {
        let groups = groups?;
        if wanted == 0 || i + 1 == wanted {
            let found = groups.get(0).map_or(0..0, |m| m.range());
            out.copy(&text.as_bytes()[end..found.start])?;
            expand(by, &groups, out)?;
            end = found.end;
            if wanted > 0 {
                break;
            }
        }
    }
    out.copy(&text.as_bytes()[end..])?;
    Ok(true)
}

/// Writes the replacement of a match.
fn expand(by: &str, groups: &Captures<'_>, out: &mut Writer<'_>) -> Result<()> {
    let mut rest = by;
    while let Some(at) = rest.find('\\') {
        out.copy(&rest.as_bytes()[..at])?;
        rest = &rest[at + 1..];
        let group = match rest.bytes().next() {
            Some(digit @ b'1'..=b'9') => Some(usize::from(digit - b'0')),
            Some(b'&') => Some(0),
            Some(b'\\') => None,
            _ => {
                out.char('\\');
                continue;
            }
        };
        match group {
            Some(group) => {
                let found = groups.get(group).map_or("", |m| m.as_str());
                out.copy(found.as_bytes())?;
            }
            None => out.char('\\'),
        }
        rest = &rest[1..];
    }
    out.copy(rest.as_bytes())
}

fn extract(row: &Row<'_>, out: &mut Writer<'_>, group: i64, flags: &str) -> Result<bool> {
    let regex = compiled(row.text(1), flags, false)?;
    let group = usize::try_from(group).ok().filter(|group| *group < regex.captures_len());
    let Some(group) = group else {
        return Err(Error::input("regexp_extract: the pattern has no such group"));
    };
    let found = regex.captures(row.text(0)).and_then(|groups| groups.get(group));
    out.copy(found.map_or("", |m| m.as_str()).as_bytes())?;
    Ok(true)
}

/// An optional argument.
fn whole_or(row: &Row<'_>, i: usize, default: i64) -> i64 {
    if row.count() > i { row.whole(i) } else { default }
}

fn flags_of<'a>(row: &Row<'a>, i: usize) -> &'a str {
    if row.count() > i { row.text(i) } else { "" }
}

/// The range of the n-th match, or of a group of it.
fn nth(row: &Row<'_>, flags: &str, group: i64) -> Result<Option<std::ops::Range<usize>>> {
    let text = row.text(0);
    let regex = compiled(row.text(1), flags, false)?;
    let from = byte_of(text, whole_or(row, 2, 1))?;
    let n = usize::try_from(whole_or(row, 3, 1)).ok().and_then(|n| n.checked_sub(1));
    let (Some(n), Ok(group)) = (n, usize::try_from(group)) else {
        return Err(Error::input("the number of a match is 1 or more, that of a group 0 or more"));
    };
    let groups = crate::definition::nth(captures_from(&regex, text, from), n).transpose()?;
    Ok(groups.and_then(|groups| groups.get(group)).map(|m| m.range()))
}

fn substr(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let found = nth(row, flags_of(row, 4), whole_or(row, 5, 0))?;
    found.map_or(Ok(false), |range| out.copy(&row.bytes(0)[range]).map(|()| true))
}

fn place(row: &Row<'_>) -> Result<Option<i64>> {
    let behind = whole_or(row, 4, 0);
    if !(0..=1).contains(&behind) {
        return Err(Error::input("regexp_instr: behind is 0 or 1"));
    }
    let found = nth(row, flags_of(row, 5), whole_or(row, 6, 0))?;
    let Some(range) = found else { return Ok(Some(0)) };
    let before = &row.text(0)[..if behind == 1 { range.end } else { range.start }];
    Ok(Some(characters::count(before)? as i64 + 1))
}

fn count(row: &Row<'_>) -> Result<Option<i64>> {
    let text = row.text(0);
    let regex = compiled(row.text(1), flags_of(row, 3), false)?;
    let from = byte_of(text, whole_or(row, 2, 1))?;
    captures_from(&regex, text, from).try_fold(0, |count, found| found.map(|_| count + 1)).map(Some)
}

fn extract_all(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let text = row.text(0);
    let regex = compiled(row.text(1), if row.count() > 3 { row.text(3) } else { "" }, false)?;
    let group = usize::try_from(if row.count() > 2 { row.whole(2) } else { 0 }).ok();
    let group = group.filter(|group| *group < regex.captures_len());
    let group = group.ok_or_else(|| Error::input("the pattern has no such group"))?;
    let mut seen = Seen::default();
    for groups in regex.captures_iter(text) {
        seen.up_to(groups.get(0).map_or(0, |found| found.end()))?;
        let found = groups.get(group).map_or("", |found| found.as_str());
        nested::write_string(found.as_bytes(), out)?;
    }
    nested::end_list(out.buffer);
    Ok(true)
}

fn split(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let text = row.text(0);
    let regex = compiled(row.text(1), if row.count() > 2 { row.text(2) } else { "" }, false)?;
    let (mut start, mut seen) = (0, Seen::default());
    for found in regex.find_iter(text) {
        seen.up_to(found.end())?;
        // An empty match separates characters, and so none at the ends or behind another match.
        if found.is_empty() && (found.start() == start || found.start() == text.len()) {
            continue;
        }
        nested::write_string(&text.as_bytes()[start..found.start()], out)?;
        start = found.end();
    }
    nested::write_string(&text.as_bytes()[start..], out)?;
    nested::end_list(out.buffer);
    Ok(true)
}

/// How far a text has been searched: looks after each part of it whether the statement may go on.
#[derive(Default)]
struct Seen {
    end: usize,
    looks: Looks,
}

impl Seen {
    /// A match ends there, or is empty. To find one takes as long as to read some bytes.
    fn up_to(&mut self, end: usize) -> Result<()> {
        let read = end.saturating_sub(self.end) + 8;
        self.end = end;
        self.looks.after(read)
    }
}

/// Matches from a position on; the text before it is visible to the pattern. An error is the last item.
fn captures_from<'r, 't>(
    regex: &'r Regex,
    text: &'t str,
    from: usize,
) -> impl Iterator<Item = Result<Captures<'t>>> + use<'r, 't> {
    let mut at = Some(from);
    let mut seen = Seen { end: from, looks: Looks::default() };
    // An empty match at the end of the previous match does not count.
    let mut before = None;
    std::iter::from_fn(move || {
        loop {
            let groups = regex.captures_at(text, at?)?;
            let found = groups.get(0)?;
            if let Err(error) = seen.up_to(found.end()) {
                at = None;
                return Some(Err(error));
            }
            let next = text[found.end()..].chars().next().map(|c| found.end() + c.len_utf8());
            at = if found.is_empty() { next } else { Some(found.end()) };
            if !(found.is_empty() && before == Some(found.end())) {
                before = Some(found.end());
                return Some(Ok(groups));
            }
        }
    })
}
