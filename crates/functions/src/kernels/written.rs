//! Functions of texts that represent other values: numbers in other bases, quoted texts and names, amounts of
//! bytes, bars, URLs and paths.

use super::bytes::hex_digits;
use super::numbers::share;
use crate::definition::{Definition, Kernel, Row, define, takes, written};
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result};
use std::fmt::Write;

const TEXT: DataType = DataType::Varchar;
const BIGINT: DataType = DataType::Int64;

pub const FUNCTIONS: &[Definition] = &[
    define(
        &["to_base"],
        "n, base [, width]",
        "VARCHAR",
        "a number to a base of 2 to 36, with zeros in front up to a width",
        &[
            takes(&[BIGINT, BIGINT], TEXT, Kernel::Text(to_base)),
            takes(&[BIGINT, BIGINT, BIGINT], TEXT, Kernel::Text(to_base)),
        ],
        &[("to_base(42, 16)", "2A"), ("to_base(5, 2, 8)", "00000101")],
    ),
    define(
        &["to_oct"],
        "n",
        "VARCHAR",
        "a number to the base 8",
        &[takes(&[BIGINT], TEXT, Kernel::Text(|row, out| written(write!(out, "{:o}", row.whole(0)))))],
        &[("to_oct(8)", "10")],
    ),
    define(
        &["quote_literal"],
        "value",
        "VARCHAR",
        "as a text literal",
        &[takes(&[TEXT], TEXT, Kernel::Text(|row, out| quote(row.text(0), out)))],
        &[("quote_literal('it''s')", "'it''s'")],
    ),
    define(
        &["quote_nullable"],
        "value",
        "VARCHAR",
        "as a text literal, or the word NULL",
        &[takes(
            &[TEXT],
            TEXT,
            Kernel::TextOfNulls(|row, out| match row.is_null(0) {
                true => {
                    out.text("NULL");
                    Ok(true)
                }
                false => quote(row.text(0), out),
            }),
        )],
        &[("quote_nullable(NULL)", "NULL")],
    ),
    define(
        &["quote_ident"],
        "text",
        "VARCHAR",
        "as a name, in quotes where it needs them",
        &[takes(&[TEXT], TEXT, Kernel::Text(|row, out| quote_ident(row.text(0), out).map(|()| true)))],
        &[("quote_ident('a b')", "\"a b\""), ("quote_ident('ab')", "ab")],
    ),
    define(
        &["format_bytes", "pg_size_pretty", "formatreadablesize"],
        "n",
        "VARCHAR",
        "bytes in KiB, MiB, … up to PiB",
        &[takes(
            &[BIGINT],
            TEXT,
            Kernel::Text(|row, out| size(row.whole(0), out, 1024, &["KiB", "MiB", "GiB", "TiB", "PiB"])),
        )],
        &[("format_bytes(16384)", "16.0 KiB"), ("format_bytes(100)", "100 bytes")],
    ),
    define(
        &["formatreadabledecimalsize"],
        "n",
        "VARCHAR",
        "bytes in kB, MB, … up to PB",
        &[takes(
            &[BIGINT],
            TEXT,
            Kernel::Text(|row, out| size(row.whole(0), out, 1000, &["kB", "MB", "GB", "TB", "PB"])),
        )],
        &[("formatReadableDecimalSize(16000)", "16.0 kB")],
    ),
    define(
        &["bar"],
        "x, low, high [, width]",
        "VARCHAR",
        "a bar whose length is proportional to x - low, and width, by default 80, at high",
        &[
            takes(&[DataType::Float64, DataType::Float64, DataType::Float64], TEXT, Kernel::Text(bar)),
            takes(
                &[DataType::Float64, DataType::Float64, DataType::Float64, DataType::Float64],
                TEXT,
                Kernel::Text(bar),
            ),
        ],
        &[("trim(bar(5, 0, 20, 10))", "██▌")],
    ),
    define(
        &["url_encode"],
        "text",
        "VARCHAR",
        "with %xx for what is not allowed in a URL",
        &[takes(&[TEXT], TEXT, Kernel::Text(url_encode))],
        &[("url_encode('a b/ä')", "a%20b%2F%C3%A4")],
    ),
    define(
        &["url_decode"],
        "text",
        "VARCHAR",
        "with the bytes that %xx stand for",
        &[takes(&[TEXT], TEXT, Kernel::Text(url_decode))],
        &[("url_decode('a%20b%2Fc')", "a b/c")],
    ),
    define(
        &["parse_filename"],
        "path [, without_extension]",
        "VARCHAR",
        "the last part of a path",
        &[
            takes(&[TEXT], TEXT, Kernel::Text(|row, out| file_name(row, out, false))),
            takes(
                &[TEXT, DataType::Boolean],
                TEXT,
                Kernel::Text(|row, out| file_name(row, out, row.test(1))),
            ),
        ],
        &[("parse_filename('a/b/c.csv')", "c.csv"), ("parse_filename('a/b/c.csv', true)", "c")],
    ),
    define(
        &["parse_dirname"],
        "path",
        "VARCHAR",
        "the first part of a path",
        &[takes(
            &[TEXT],
            TEXT,
            Kernel::Text(|row, out| {
                let path = row.text(0);
                out.copy(path.split_once(['/', '\\']).map_or("", |(first, _)| first).as_bytes())?;
                Ok(true)
            }),
        )],
        &[("parse_dirname('a/b/c.csv')", "a")],
    ),
    define(
        &["parse_dirpath"],
        "path",
        "VARCHAR",
        "a path without its last part",
        &[takes(
            &[TEXT],
            TEXT,
            Kernel::Text(|row, out| {
                let path = row.text(0);
                out.copy(path.rsplit_once(['/', '\\']).map_or("", |(before, _)| before).as_bytes())?;
                Ok(true)
            }),
        )],
        &[("parse_dirpath('a/b/c.csv')", "a/b")],
    ),
];

fn to_base(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (n, base) = (row.whole(0), row.whole(1));
    let width = if row.count() > 2 { row.whole(2) } else { 0 };
    if n < 0 || !(2..=36).contains(&base) || !(0..=64).contains(&width) {
        return Err(Error::input("to_base takes a number from 0, a base of 2 to 36 and a width of up to 64"));
    }
    let mut digits = Vec::new();
    let mut rest = n;
    while rest > 0 || digits.is_empty() {
        digits.push(char::from_digit((rest % base) as u32, base as u32).unwrap_or('0').to_ascii_uppercase());
        rest /= base;
    }
    (digits.len()..width as usize).for_each(|_| out.char('0'));
    digits.into_iter().rev().for_each(|c| out.char(c));
    Ok(true)
}

/// Writes a text literal.
pub(super) fn quote(text: &str, out: &mut Writer<'_>) -> Result<bool> {
    let escaped = text.contains('\\');
    if escaped {
        out.text("E");
    }
    out.char('\'');
    out.each(text, |c, out| {
        if c == '\'' || (escaped && c == '\\') {
            out.char(c);
        }
        out.char(c);
    })?;
    out.char('\'');
    Ok(true)
}

/// Writes a name, in quotes if it needs them.
pub(super) fn quote_ident(text: &str, out: &mut Writer<'_>) -> Result<()> {
    let plain = text.bytes().all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit());
    if plain && text.starts_with(|c: char| !c.is_ascii_digit()) {
        return out.copy(text.as_bytes());
    }
    out.char('"');
    out.each(text, |c, out| {
        if c == '"' {
            out.char(c);
        }
        out.char(c);
    })?;
    out.char('"');
    Ok(())
}

fn size(bytes: i64, out: &mut Writer<'_>, step: u64, units: &[&str]) -> Result<bool> {
    let count = bytes.unsigned_abs();
    if bytes < 0 {
        out.char('-');
    }
    if count < step {
        return written(write!(out, "{count} byte{}", if count == 1 { "" } else { "s" }));
    }
    let mut unit = step;
    let mut place = 0;
    while count / unit >= step && place + 1 < units.len() {
        unit *= step;
        place += 1;
    }
    // One digit, truncated.
    let tenths = u128::from(count) * 10 / u128::from(unit);
    written(write!(out, "{}.{} {}", tenths / 10, tenths % 10, units[place]))
}

fn bar(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let (x, low, high) = (row.float(0), row.float(1), row.float(2));
    let width = if row.count() > 3 { row.float(3) } else { 80.0 };
    if !(low.is_finite() && high.is_finite() && (1.0..=1000.0).contains(&width)) {
        return Err(Error::input("bar takes finite bounds and a width of 1 to 1000"));
    }
    let share = if x.is_nan() || x < low {
        0.0
    } else if x > high {
        1.0
    } else {
        share(x, low, high)
    };
    let eighths = (share * width * 8.0) as usize;
    (0..eighths / 8).for_each(|_| out.text("█"));
    out.text(PARTS[eighths % 8]);
    let used = eighths.div_ceil(8);
    (used..width as usize).for_each(|_| out.char(' '));
    Ok(true)
}

fn url_encode(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    out.each_part(row.bytes(0), 1, |bytes, out| {
        for &byte in bytes {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.char(byte.into()),
                _ => {
                    out.char('%');
                    hex_digits(&[byte], out, true)?;
                }
            }
        }
        Ok(())
    })?;
    Ok(true)
}

fn url_decode(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let text = row.bytes(0);
    let mut at = 0;
    while at < text.len() {
        out.room(at + 1)?;
        let coded = (text[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        let code = coded
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|d| u8::from_str_radix(d, 16).ok());
        match code {
            Some(byte) => {
                out.bytes(&[byte]);
                at += 3;
            }
            None => {
                out.bytes(&text[at..=at]);
                at += 1;
            }
        }
    }
    match std::str::from_utf8(out.buffer) {
        Ok(_) => Ok(true),
        Err(_) => Err(Error::input("url_decode: the bytes are not valid UTF-8")),
    }
}

fn file_name(row: &Row<'_>, out: &mut Writer<'_>, bare: bool) -> Result<bool> {
    let path = row.text(0);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = if bare { name.rsplit_once('.').map_or(name, |(stem, _)| stem) } else { name };
    out.copy(name.as_bytes())?;
    Ok(true)
}
