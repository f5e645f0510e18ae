//! Functions of text. Positions and lengths count characters, from 1.

use crate::definition::{Body, Definition, Kernel, Overload, Row, Signature, define, elsewhere, nth, takes};
use entasis_vector::expr::pattern::Finder;
use entasis_vector::statement::{Looks, STEP, pieces};
use entasis_vector::value::nested;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result, characters};
use std::collections::HashMap;

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const INTEGER: DataType = DataType::Int32;
const BLOB: DataType = DataType::Blob;

/// Lengths, letter case, and parts of texts.
pub const PARTS: &[Definition] = &[
    elsewhere(
        &["length", "char_length", "character_length", "len"],
        "text or blob",
        "BIGINT",
        "characters of a text, bytes of a BLOB",
        &[("length('Entasis')", "7"), ("length('\\xFF'::BLOB)", "1")],
    ),
    elsewhere(&["octet_length", "strlen"], "text or blob", "BIGINT", "bytes", &[("octet_length('ä')", "2")]),
    define(
        &["bit_length"],
        "text or blob",
        "BIGINT",
        "bits",
        &[
            takes(&[BLOB], BIGINT, Kernel::Whole(|row| Ok(Some(row.bytes(0).len() as i64 * 8)))),
            takes(&[TEXT], BIGINT, Kernel::Whole(|row| Ok(Some(row.bytes(0).len() as i64 * 8)))),
        ],
        &[("bit_length('abc')", "24")],
    ),
    elsewhere(&["upper", "ucase"], "text", "VARCHAR", "upper case", &[("upper('Straße')", "STRASSE")]),
    elsewhere(&["lower", "lcase"], "text", "VARCHAR", "lower case", &[("lower('ÄB')", "äb")]),
    define(
        &["initcap"],
        "text",
        "VARCHAR",
        "each word with a capital first letter",
        &[takes(&[TEXT], TEXT, Kernel::Text(initcap))],
        &[("initcap('hi THOMAS')", "Hi Thomas")],
    ),
    elsewhere(
        &["substring", "substr"],
        "text or blob, start [, count]",
        "type of the first",
        "part from start on; also substring(text FROM start FOR count), and substring(text FROM pattern), the first match",
        &[("substring('Entasis', 2, 3)", "nta"), ("substring('foobar' FROM 'o.b')", "oob")],
    ),
    define(
        &["left"],
        "text, n",
        "VARCHAR",
        "first n characters; all but the last -n if n is negative",
        &[takes(
            &[TEXT, BIGINT],
            TEXT,
            Kernel::Text(|row, out| {
                let (text, n) = (row.text(0), row.whole(1));
                out.copy(&text.as_bytes()[..cut(text, n)?])?;
                Ok(true)
            }),
        )],
        &[("left('Entasis', 2)", "En"), ("left('Entasis', -2)", "Entas")],
    ),
    define(
        &["right"],
        "text, n",
        "VARCHAR",
        "last n characters; all but the first -n if n is negative",
        &[takes(
            &[TEXT, BIGINT],
            TEXT,
            Kernel::Text(|row, out| {
                let (text, n) = (row.text(0), row.whole(1));
                // The part to skip is the one that `left` takes.
                let skip = if n < 0 {
                    n.saturating_neg()
                } else {
                    (characters::count(text)? as i64).saturating_sub(n).max(0)
                };
                out.copy(&text.as_bytes()[cut(text, skip)?..])?;
                Ok(true)
            }),
        )],
        &[("right('Entasis', 3)", "sis"), ("right('Entasis', -2)", "tasis")],
    ),
];

/// Other texts that are made of texts, and places in them.
pub const FUNCTIONS: &[Definition] = &[
    define(
        &["concat"],
        "value, …",
        "VARCHAR, or BLOB of BLOBs",
        "all as one text; NULLs count as empty",
        &[
            Overload {
                args: &[],
                rest: Some(DataType::Null),
                result: TEXT,
                kernel: Kernel::TextOfNulls(concat),
            },
            Overload { args: &[], rest: Some(BLOB), result: BLOB, kernel: Kernel::TextOfNulls(concat) },
        ],
        &[("concat('a', NULL, 1, true)", "a1true")],
    ),
    define(
        &["concat_ws"],
        "separator, value, …",
        "VARCHAR",
        "all that are not NULL as one text, with the separator between them",
        &[Overload {
            args: &[TEXT],
            rest: Some(DataType::Null),
            result: TEXT,
            kernel: Kernel::TextOfNulls(concat_ws),
        }],
        &[("concat_ws(', ', 'a', NULL, 1)", "a, 1")],
    ),
    Definition {
        names: &["repeat"],
        arguments: "text, blob or list, n",
        gives: "type of the first",
        does: "n times",
        examples: &[("repeat('ab', 3)", "ababab"), ("repeat([1, 2], 2)", "[1, 2, 1, 2]")],
        body: Body::Typed(|types| {
            let ty = match types {
                [DataType::List(element) | DataType::Array(element, _), _] => DataType::List(element),
                [BLOB, _] => BLOB,
                [_, _] => TEXT,
                _ => return Err(Error::input("repeat takes a value and a number")),
            };
            let is_count = types[1].is_integer() || matches!(types[1], DataType::Null | TEXT);
            match is_count && !matches!(types[0], DataType::Struct(_) | DataType::Map(_)) {
                true => Ok(Signature { args: vec![ty, BIGINT], result: ty, kernel: Kernel::Text(repeat) }),
                false => Err(Error::input("repeat takes a text, blob or list, and an integer")),
            }
        }),
    },
    define(
        &["replace"],
        "text, part, by",
        "VARCHAR",
        "with every part replaced",
        &[takes(&[TEXT, TEXT, TEXT], TEXT, Kernel::Text(replace))],
        &[("replace('hello', 'l', '-')", "he--o")],
    ),
    define(
        &["translate"],
        "text, from, to",
        "VARCHAR",
        "each character of from replaced by that of to in its place, or removed",
        &[takes(&[TEXT, TEXT, TEXT], TEXT, Kernel::Text(translate))],
        &[("translate('12345', '143', 'ax')", "a2x5")],
    ),
    define(
        &["overlay"],
        "text, part, start [, count]",
        "VARCHAR",
        "count characters from start on replaced; also overlay(text PLACING part FROM start FOR count)",
        &[
            takes(&[TEXT, TEXT, BIGINT], TEXT, Kernel::Text(overlay)),
            takes(&[TEXT, TEXT, BIGINT, BIGINT], TEXT, Kernel::Text(overlay)),
            takes(&[BLOB, BLOB, BIGINT], BLOB, Kernel::Text(overlay_bytes)),
            takes(&[BLOB, BLOB, BIGINT, BIGINT], BLOB, Kernel::Text(overlay_bytes)),
        ],
        &[("overlay('Txxxxas', 'hom', 2, 4)", "Thomas")],
    ),
    define(
        &["reverse"],
        "text",
        "VARCHAR",
        "backwards",
        &[takes(
            &[TEXT],
            TEXT,
            Kernel::Text(|row, out| {
                let text = row.text(0);
                out.more(text.len())?;
                if text.len() <= STEP && text.is_ascii() {
                    out.buffer.extend(text.bytes().rev());
                    return Ok(true);
                }
                let mut left = text.chars();
                // About a megabyte between two looks.
                while !left.as_str().is_empty() {
                    let before = left.as_str().len();
                    left.by_ref().rev().take(STEP).for_each(|c| out.char(c));
                    out.read(before - left.as_str().len())?;
                }
                Ok(true)
            }),
        )],
        &[("reverse('abc')", "cba")],
    ),
    define(
        &["strpos", "instr", "position"],
        "text, part",
        "BIGINT",
        "place of the first part, or 0; also position(part IN text)",
        &[
            takes(
                &[TEXT, TEXT],
                BIGINT,
                Kernel::Whole(|row| {
                    let (text, part) = (row.text(0), row.text(1));
                    let Some(at) = first_place(row.bytes(0), part.as_bytes())? else { return Ok(Some(0)) };
                    Ok(Some(characters::count(&text[..at])? as i64 + 1))
                }),
            ),
            takes(
                &[BLOB, BLOB],
                BIGINT,
                Kernel::Whole(|row| {
                    let place = first_place(row.bytes(0), row.bytes(1))?;
                    Ok(Some(place.map_or(0, |at| at as i64 + 1)))
                }),
            ),
        ],
        &[("strpos('high', 'ig')", "2"), ("position('x' IN 'abc')", "0")],
    ),
    elsewhere(
        &["contains"],
        "text, part",
        "BOOLEAN",
        "whether the part is in it",
        &[("contains('abc', 'b')", "true")],
    ),
    elsewhere(
        &["starts_with", "prefix"],
        "text, part",
        "BOOLEAN",
        "whether it begins so",
        &[("starts_with('abc', 'ab')", "true")],
    ),
    elsewhere(
        &["ends_with", "suffix"],
        "text, part",
        "BOOLEAN",
        "whether it ends so",
        &[("ends_with('abc', 'bc')", "true")],
    ),
    define(
        &["split_part"],
        "text, separator, n",
        "VARCHAR",
        "the n-th of the parts between separators; from the end if n is negative",
        &[takes(&[TEXT, TEXT, BIGINT], TEXT, Kernel::Text(split_part))],
        &[("split_part('a;b;c', ';', 2)", "b"), ("split_part('a;b;c', ';', -1)", "c")],
    ),
    define(
        &["ascii"],
        "text",
        "INTEGER",
        "number of the first character in Unicode, 0 of an empty text",
        &[takes(&[TEXT], INTEGER, Kernel::Whole(|row| Ok(Some(first_character(row.text(0)).unwrap_or(0)))))],
        &[("ascii('x')", "120")],
    ),
    define(
        &["unicode", "ord"],
        "text",
        "INTEGER",
        "number of the first character in Unicode, -1 of an empty text",
        &[takes(&[TEXT], INTEGER, Kernel::Whole(|row| Ok(Some(first_character(row.text(0)).unwrap_or(-1)))))],
        &[("unicode('ä')", "228")],
    ),
    define(
        &["chr"],
        "n",
        "VARCHAR",
        "character with this number in Unicode",
        &[takes(
            &[BIGINT],
            TEXT,
            Kernel::Text(|row, out| {
                let n = row.whole(0);
                match u32::try_from(n).ok().and_then(char::from_u32) {
                    Some(c) => out.char(c),
                    None => return Err(Error::input(format!("chr({n}): there is no such character"))),
                }
                Ok(true)
            }),
        )],
        &[("chr(65)", "A")],
    ),
    define(
        &["substring_index", "substr_index"],
        "text, separator, n",
        "VARCHAR",
        "all before the n-th separator; all behind the n-th from the end if n is negative",
        &[takes(&[TEXT, TEXT, BIGINT], TEXT, Kernel::Text(substring_index))],
        &[("substring_index('a.b.c', '.', 2)", "a.b")],
    ),
    define(
        &["find_in_set"],
        "text, list",
        "BIGINT",
        "place of a text among those between commas, or 0",
        &[takes(
            &[TEXT, TEXT],
            BIGINT,
            Kernel::Whole(|row| {
                // Once: a text is tested for being one each time that it is asked for.
                let wanted = row.text(0);
                for (place, item) in (1..).zip(split_at(row.text(1), ",")) {
                    if item? == wanted {
                        return Ok(Some(place));
                    }
                }
                Ok(Some(0))
            }),
        )],
        &[("find_in_set('b', 'a,b,c')", "2")],
    ),
];

/// `substring` for arguments that the engine's does not support.
pub(super) const SUBSTRING: Definition = define(
    &["substring"],
    "blob, start [, count]; or text, pattern",
    "type of the first",
    "part of bytes; first match of a pattern, or its first group",
    &[
        takes(&[BLOB, BIGINT], BLOB, Kernel::Text(part_of_bytes)),
        takes(&[BLOB, BIGINT, BIGINT], BLOB, Kernel::Text(part_of_bytes)),
        takes(&[TEXT, TEXT], TEXT, Kernel::Text(first_match)),
    ],
    &[],
);

fn part_of_bytes(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (bytes, start) = (row.bytes(0), row.whole(1));
    let end = match row.count() {
        2 => i64::MAX,
        _ if row.whole(2) < 0 => return Err(Error::input("negative substring length not allowed")),
        _ => start.saturating_add(row.whole(2)),
    };
    let place = |at: i64| usize::try_from(at.saturating_sub(1)).map_or(0, |at| at.min(bytes.len()));
    out.copy(&bytes[place(start)..place(end).max(place(start))])?;
    Ok(true)
}

fn first_match(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let regex = super::patterns::compiled(row.text(1), "", false)?;
    let Some(groups) = regex.captures(row.text(0)) else { return Ok(false) };
    // If there is a group, its match, or NULL if it did not participate.
    let found = groups.get(usize::from(groups.len() > 1));
    found.map_or(Ok(false), |m| out.copy(m.as_str().as_bytes()).map(|()| true))
}

fn first_character(text: &str) -> Option<i64> {
    text.chars().next().map(|c| u32::from(c).into())
}

/// The byte after the first `n` characters; if `n` is negative, after all but the last `-n`.
pub(super) fn cut(text: &str, n: i64) -> Result<usize> {
    let n = if n < 0 { (characters::count(text)? as i64).saturating_add(n) } else { n };
    usize::try_from(n).map_or(Ok(0), |n| characters::place(text, n))
}

/// Where a part, which may be empty, first occurs.
fn first_place(bytes: &[u8], part: &[u8]) -> Result<Option<usize>> {
    if part.is_empty() { Ok(Some(0)) } else { Finder::new(part).find(bytes) }
}

/// The parts of a text between separators, which are not empty, with looks for an interrupt: an error is the
/// last item.
pub(super) fn split_at<'a>(text: &'a str, separator: &'a str) -> impl Iterator<Item = Result<&'a str>> {
    let finder = Finder::new(separator.as_bytes());
    let (mut rest, mut looks) = (Some(text), Looks::default());
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let part = match finder.find(text.as_bytes()) {
            Ok(Some(at)) => {
                rest = Some(&text[at + separator.len()..]);
                &text[..at]
            }
            Ok(None) => text,
            Err(error) => return Some(Err(error)),
        };
        let looked = looks.after(part.len() + separator.len());
        if looked.is_err() {
            rest = None;
        }
        Some(looked.map(|()| part))
    })
}

fn initcap(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let mut inside = false;
    out.each(row.text(0), |c, out| {
        match inside {
            true => c.to_lowercase().for_each(|c| out.char(c)),
            false => c.to_uppercase().for_each(|c| out.char(c)),
        }
        inside = c.is_alphanumeric();
    })?;
    Ok(true)
}

/// Writes an argument of any type.
pub(super) fn display(row: &Row<'_>, i: usize, out: &mut Writer<'_>) -> Result<()> {
    match row.ty(i) {
        BLOB if row.result == BLOB => out.copy(row.bytes(i)),
        _ => row.show(i, out),
    }
}

fn concat(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    for i in (0..row.count()).filter(|i| !row.is_null(*i)) {
        display(row, i, out)?;
    }
    Ok(true)
}

fn concat_ws(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    if row.is_null(0) {
        return Ok(false);
    }
    let mut first = true;
    for i in (1..row.count()).filter(|i| !row.is_null(*i)) {
        if !std::mem::take(&mut first) {
            out.copy(row.bytes(0))?;
        }
        display(row, i, out)?;
    }
    Ok(true)
}

fn repeat(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let n = usize::try_from(row.whole(1).max(0)).unwrap_or(usize::MAX);
    let is_list = row.ty(0).is_nested();
    let part = if is_list { nested::without_end(row.bytes(0)) } else { row.bytes(0) };
    if !part.is_empty() {
        out.repeat(part, n)?;
    }
    if is_list {
        nested::end_list(out.buffer);
    }
    Ok(true)
}

/// `replace` counts the places first if its result may have so many bytes.
const COUNTED: usize = 1 << 20;

fn replace(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (text, part, by) = (row.text(0), row.text(1), row.text(2));
    if part.is_empty() {
        out.copy(text.as_bytes())?;
        return Ok(true);
    }
    // A result that may be long is announced at once: a string that grows is moved again and again.
    if by.len() > part.len() && text.len() / part.len() >= COUNTED / by.len() {
        let mut bytes = text.len();
        for piece in split_at(text, part).skip(1) {
            piece?;
            bytes = bytes.saturating_add(by.len() - part.len());
        }
        out.more(bytes)?;
    }
    let mut first = true;
    for piece in split_at(text, part) {
        let piece = piece?;
        // What was announced before is not counted again.
        out.read(by.len() + piece.len())?;
        if !std::mem::take(&mut first) {
            out.copy(by.as_bytes())?;
        }
        out.copy(piece.as_bytes())?;
    }
    Ok(true)
}

fn translate(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let mut to = row.text(2).chars();
    let mut places: HashMap<char, Option<char>> = HashMap::new();
    for piece in pieces(row.text(1)) {
        for from in piece?.chars() {
            let by = to.next();
            places.entry(from).or_insert(by);
        }
    }
    out.each(row.text(0), |c, out| match places.get(&c) {
        None => out.char(c),
        Some(Some(by)) => out.char(*by),
        Some(None) => {}
    })?;
    Ok(true)
}

fn overlay(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (text, part, start) = (row.text(0), row.text(1), row.whole(2));
    let count = if row.count() > 3 { row.whole(3) } else { characters::count(part)? as i64 };
    if start <= 0 {
        return Err(Error::input("overlay: negative substring length not allowed"));
    }
    out.copy(&text.as_bytes()[..cut(text, start - 1)?])?;
    out.copy(part.as_bytes())?;
    out.copy(&text.as_bytes()[cut(text, (start - 1).saturating_add(count).max(0))?..])?;
    Ok(true)
}

fn overlay_bytes(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (bytes, part, start) = (row.bytes(0), row.bytes(1), row.whole(2));
    let count = if row.count() > 3 { row.whole(3) } else { part.len() as i64 };
    if start <= 0 {
        return Err(Error::input("overlay: negative substring length not allowed"));
    }
    let place = |at: i64| usize::try_from(at).map_or(0, |at| at.min(bytes.len()));
    out.copy(&bytes[..place(start - 1)])?;
    out.copy(part)?;
    out.copy(&bytes[place((start - 1).saturating_add(count))..])?;
    Ok(true)
}

fn split_part(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (text, separator, n) = (row.text(0), row.text(1), row.whole(2));
    let place = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let part = match n {
        0 => return Err(Error::input("split_part: the part number must not be zero")),
        _ if separator.is_empty() => (place == 1).then_some(text),
        n if n > 0 => nth(split_at(text, separator), place - 1).transpose()?,
        _ => nth(with_looks(text.rsplit(separator)), place - 1).transpose()?,
    };
    out.copy(part.unwrap_or("").as_bytes())?;
    Ok(true)
}

fn substring_index(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (text, separator, n) = (row.text(0), row.text(1), row.whole(2));
    let place = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    if n == 0 || separator.is_empty() {
        return Ok(true);
    }
    // The parts that are taken, and the separators between them.
    let taken = |part: Result<&str>| part.map(|part| part.len() + separator.len());
    let bytes: usize = match n > 0 {
        true => split_at(text, separator).take(place).map(taken).sum::<Result<_>>()?,
        false => with_looks(text.rsplit(separator)).take(place).map(taken).sum::<Result<_>>()?,
    };
    let bytes = bytes - separator.len();
    out.copy(if n > 0 { &text.as_bytes()[..bytes] } else { &text.as_bytes()[text.len() - bytes..] })?;
    Ok(true)
}

/// The parts of a text, with looks after each megabyte of them.
fn with_looks<'a>(parts: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Result<&'a str>> {
    let mut looks = Looks::default();
    parts.map(move |part| looks.after(part.len() + 1).map(|()| part))
}
