//! Padding and trimming of texts.

use super::text::cut;
use crate::definition::{Definition, Kernel, Row, define, takes};
use entasis_vector::statement::STEP;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Result, characters};

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;
const BLOB: DataType = DataType::Blob;

pub const FUNCTIONS: &[Definition] = &[
    define(
        &["lpad"],
        "text, n [, fill]",
        "VARCHAR",
        "filled on the left to n characters, or cut to them",
        &[
            takes(&[TEXT, BIGINT], TEXT, Kernel::Text(|row, out| pad(row, out, " ", true))),
            takes(&[TEXT, BIGINT, TEXT], TEXT, Kernel::Text(|row, out| pad(row, out, row.text(2), true))),
        ],
        &[("lpad('hi', 5, 'xy')", "xyxhi"), ("lpad('hello', 2)", "he")],
    ),
    define(
        &["rpad"],
        "text, n [, fill]",
        "VARCHAR",
        "filled on the right to n characters, or cut to them",
        &[
            takes(&[TEXT, BIGINT], TEXT, Kernel::Text(|row, out| pad(row, out, " ", false))),
            takes(&[TEXT, BIGINT, TEXT], TEXT, Kernel::Text(|row, out| pad(row, out, row.text(2), false))),
        ],
        &[("rpad('hi', 5, 'xy')", "hixyx")],
    ),
    define(
        &["trim", "btrim"],
        "text [, characters]",
        "VARCHAR",
        "without the characters, by default blanks, at both ends; also trim(BOTH characters FROM text)",
        &[
            takes(&[TEXT], TEXT, Kernel::Text(|row, out| trim(row.text(0), out, " ", true, true))),
            takes(
                &[TEXT, TEXT],
                TEXT,
                Kernel::Text(|row, out| trim(row.text(0), out, row.text(1), true, true)),
            ),
            takes(&[BLOB, BLOB], BLOB, Kernel::Text(|row, out| trim_bytes(row, out, true, true))),
        ],
        &[("trim('  a ')", "a"), ("trim('xxaxy', 'xy')", "a")],
    ),
    define(
        &["ltrim"],
        "text [, characters]",
        "VARCHAR",
        "without the characters at the start",
        &[
            takes(&[TEXT], TEXT, Kernel::Text(|row, out| trim(row.text(0), out, " ", true, false))),
            takes(
                &[TEXT, TEXT],
                TEXT,
                Kernel::Text(|row, out| trim(row.text(0), out, row.text(1), true, false)),
            ),
            takes(&[BLOB, BLOB], BLOB, Kernel::Text(|row, out| trim_bytes(row, out, true, false))),
        ],
        &[("ltrim('xxaxx', 'x')", "axx")],
    ),
    define(
        &["rtrim"],
        "text [, characters]",
        "VARCHAR",
        "without the characters at the end",
        &[
            takes(&[TEXT], TEXT, Kernel::Text(|row, out| trim(row.text(0), out, " ", false, true))),
            takes(
                &[TEXT, TEXT],
                TEXT,
                Kernel::Text(|row, out| trim(row.text(0), out, row.text(1), false, true)),
            ),
            takes(&[BLOB, BLOB], BLOB, Kernel::Text(|row, out| trim_bytes(row, out, false, true))),
        ],
        &[("rtrim('xxaxx', 'x')", "xxa")],
    ),
];

fn pad(row: &Row<'_>, out: &mut Writer<'_>, fill: &str, left: bool) -> Result<bool> {
    let (text, n) = (row.text(0), row.whole(1).max(0));
    let length = characters::count(text)? as i64;
    if n <= length || fill.is_empty() {
        out.copy(&text.as_bytes()[..cut(text, n)?])?;
        return Ok(true);
    }
    let missing = n - length;
    let characters = characters::count(fill)? as i64;
    let (times, rest) = (missing / characters, &fill[..cut(fill, missing % characters)?]);
    if !left {
        out.copy(text.as_bytes())?;
    }
    out.repeat(fill.as_bytes(), usize::try_from(times).unwrap_or(usize::MAX))?;
    out.text(rest);
    if left {
        out.copy(text.as_bytes())?;
    }
    Ok(true)
}

fn trim(text: &str, out: &mut Writer<'_>, characters: &str, start: bool, end: bool) -> Result<bool> {
    let (gone, mut text) = (|c: char| characters.contains(c), text);
    if text.len() <= STEP {
        text = if start { text.trim_start_matches(gone) } else { text };
        text = if end { text.trim_end_matches(gone) } else { text };
        out.copy(text.as_bytes())?;
        return Ok(true);
    }
    // As long as a whole piece is gone there may be more.
    let (mut more_before, mut more_behind) = (start, end);
    while more_before {
        let piece = &text[..text.floor_char_boundary(STEP)];
        let kept = piece.trim_start_matches(gone);
        text = &text[piece.len() - kept.len()..];
        more_before = kept.is_empty() && !text.is_empty();
        out.read(piece.len())?;
    }
    while more_behind {
        let piece = &text[text.ceil_char_boundary(text.len().saturating_sub(STEP))..];
        let kept = piece.trim_end_matches(gone);
        text = &text[..text.len() - (piece.len() - kept.len())];
        more_behind = kept.is_empty() && !text.is_empty();
        out.read(piece.len())?;
    }
    out.copy(text.as_bytes())?;
    Ok(true)
}

fn trim_bytes(row: &Row<'_>, out: &mut Writer<'_>, start: bool, end: bool) -> Result<bool> {
    let (mut bytes, gone) = (row.bytes(0), row.bytes(1));
    while let ([first, rest @ ..], true) = (bytes, start) {
        if !gone.contains(first) {
            break;
        }
        out.read(1)?;
        bytes = rest;
    }
    while let ([rest @ .., last], true) = (bytes, end) {
        if !gone.contains(last) {
            break;
        }
        out.read(1)?;
        bytes = rest;
    }
    out.copy(bytes)?;
    Ok(true)
}
