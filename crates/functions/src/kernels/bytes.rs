//! Functions of bytes: hexadecimal and other codes, encodings, digests, single bytes and bits.

use crate::definition::{Definition, Kernel, Row, define, elsewhere, takes, written};
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine};
use entasis_vector::statement::{Growth, STEP, pieces};
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result, characters};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use std::fmt::Write;

const TEXT: DataType = DataType::Varchar;
const BLOB: DataType = DataType::Blob;
const BIGINT: DataType = DataType::Int64;
const UBIGINT: DataType = DataType::UInt64;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A digest of text or bytes, as bytes.
macro_rules! digest_bytes {
    ($name:literal, $digest:ty, $does:literal, $example:expr) => {
        define(
            &[$name],
            "text or blob",
            "BLOB",
            $does,
            &[
                takes(&[BLOB], BLOB, Kernel::Text(digest_bytes::<$digest>)),
                takes(&[TEXT], BLOB, Kernel::Text(digest_bytes::<$digest>)),
            ],
            &[$example],
        )
    };
}

/// A digest of text or bytes, in hexadecimal digits.
macro_rules! digest {
    ($name:literal, $digest:ty, $does:literal, $example:expr) => {
        define(
            &[$name],
            "text or blob",
            "VARCHAR",
            $does,
            &[
                takes(&[BLOB], TEXT, Kernel::Text(digest::<$digest>)),
                takes(&[TEXT], TEXT, Kernel::Text(digest::<$digest>)),
            ],
            &[$example],
        )
    };
}

pub const FUNCTIONS: &[Definition] = &[
    define(
        &["to_hex"],
        "value",
        "VARCHAR",
        "as hex, with small digits for a number",
        &[
            takes(&[BIGINT], TEXT, Kernel::Text(|row, out| written(write!(out, "{:x}", row.whole(0))))),
            takes(&[UBIGINT], TEXT, Kernel::Text(|row, out| written(write!(out, "{:x}", row.wide(0))))),
            takes(&[BLOB], TEXT, Kernel::Text(hex)),
            takes(&[TEXT], TEXT, Kernel::Text(hex)),
        ],
        &[("to_hex(42)", "2a")],
    ),
    define(
        &["hex"],
        "value",
        "VARCHAR",
        "hexadecimal digits of a number, or of the bytes of a text or BLOB",
        &[
            takes(&[BIGINT], TEXT, Kernel::Text(|row, out| written(write!(out, "{:X}", row.whole(0))))),
            takes(&[UBIGINT], TEXT, Kernel::Text(|row, out| written(write!(out, "{:X}", row.wide(0))))),
            takes(&[BLOB], TEXT, Kernel::Text(hex)),
            takes(&[TEXT], TEXT, Kernel::Text(hex)),
        ],
        &[("hex(42)", "2A"), ("hex('Az')", "417A")],
    ),
    define(
        &["unhex", "from_hex"],
        "text",
        "BLOB",
        "the bytes that hexadecimal digits stand for",
        &[takes(&[TEXT], BLOB, Kernel::Text(|row, out| unhex(row.text(0), out)))],
        &[("unhex('2A41')", "*A")],
    ),
    define(
        &["bin", "to_binary"],
        "value",
        "VARCHAR",
        "binary digits of a number, or of the bytes of a text or BLOB",
        &[
            takes(&[BIGINT], TEXT, Kernel::Text(|row, out| written(write!(out, "{:b}", row.whole(0))))),
            takes(&[UBIGINT], TEXT, Kernel::Text(|row, out| written(write!(out, "{:b}", row.wide(0))))),
            takes(&[BLOB], TEXT, Kernel::Text(binary)),
            takes(&[TEXT], TEXT, Kernel::Text(binary)),
        ],
        &[("bin(42)", "101010"), ("bin('A')", "01000001")],
    ),
    define(
        &["unbin", "from_binary"],
        "text",
        "BLOB",
        "the bytes that binary digits stand for",
        &[takes(&[TEXT], BLOB, Kernel::Text(unbinary))],
        &[("unbin('0100000101000010')", "AB")],
    ),
    define(
        &["to_base64", "base64"],
        "blob",
        "VARCHAR",
        "bytes in base 64",
        &[
            takes(&[BLOB], TEXT, Kernel::Text(|row, out| to_base64(row.bytes(0), out))),
            takes(&[TEXT], TEXT, Kernel::Text(|row, out| to_base64(row.bytes(0), out))),
        ],
        &[("base64('A'::BLOB)", "QQ==")],
    ),
    define(
        &["from_base64"],
        "text",
        "BLOB",
        "the bytes that base 64 stands for",
        &[takes(&[TEXT], BLOB, Kernel::Text(|row, out| from_base64(row.text(0), out)))],
        &[("from_base64('QQ==')", "A")],
    ),
    define(
        &["encode"],
        "text, or blob, format",
        "BLOB, or VARCHAR",
        "a text as bytes of UTF-8; bytes as text in 'hex', 'base64' or 'escape'",
        &[
            takes(&[TEXT], BLOB, Kernel::Text(|row, out| out.copy(row.bytes(0)).map(|()| true))),
            takes(&[BLOB, TEXT], TEXT, Kernel::Text(encode)),
            takes(&[TEXT, TEXT], TEXT, Kernel::Text(encode)),
        ],
        &[("encode('ä')", "\\xC3\\xA4"), ("encode('12'::BLOB, 'hex')", "3132")],
    ),
    define(
        &["decode"],
        "blob, or text, format",
        "VARCHAR, or BLOB",
        "bytes of UTF-8 as text; the bytes that 'hex', 'base64' or 'escape' stand for",
        &[
            takes(&[BLOB], TEXT, Kernel::Text(|row, out| utf8(row.bytes(0), out))),
            takes(&[TEXT, TEXT], BLOB, Kernel::Text(decode)),
        ],
        &[("decode('\\xC3\\xA4'::BLOB)", "ä"), ("decode('3132', 'hex')", "12")],
    ),
    define(
        &["convert_from"],
        "blob, encoding",
        "VARCHAR",
        "bytes of an encoding, UTF8 or LATIN1, as text",
        &[takes(
            &[BLOB, TEXT],
            TEXT,
            Kernel::Text(|row, out| match encoding(row.text(1))? {
                Encoding::Utf8 => utf8(row.bytes(0), out),
                Encoding::Latin1 => {
                    out.each_part(row.bytes(0), 1, |bytes, out| {
                        bytes.iter().for_each(|b| out.char(char::from(*b)));
                        Ok(())
                    })?;
                    Ok(true)
                }
            }),
        )],
        &[("convert_from('\\xE4'::BLOB, 'LATIN1')", "ä")],
    ),
    define(
        &["convert_to"],
        "text, encoding",
        "BLOB",
        "text as bytes of an encoding, UTF8 or LATIN1",
        &[takes(
            &[TEXT, TEXT],
            BLOB,
            Kernel::Text(|row, out| {
                match encoding(row.text(1))? {
                    Encoding::Utf8 => out.copy(row.bytes(0))?,
                    Encoding::Latin1 => {
                        for piece in pieces(row.text(0)) {
                            let piece = piece?;
                            out.more(piece.len())?;
                            for c in piece.chars() {
                                let missing = |_| Error::input(format!("LATIN1 has no {c:?}"));
                                out.bytes(&[u8::try_from(c).map_err(missing)?]);
                            }
                        }
                    }
                }
                Ok(true)
            }),
        )],
        &[("convert_to('ä', 'UTF8')", "\\xC3\\xA4")],
    ),
    digest!("md5", Md5, "MD5 digest", ("md5('abc')", "900150983cd24fb0d6963f7d28e17f72")),
    digest!("sha1", Sha1, "SHA-1 digest", ("sha1('abc')", "a9993e364706816aba3e25717850c26c9cd0d89d")),
    digest_bytes!("sha224", Sha224, "SHA-224 digest", ("left(encode(sha224('abc'), 'hex'), 8)", "23097d22")),
    digest_bytes!("sha256", Sha256, "SHA-256 digest", ("left(encode(sha256('abc'), 'hex'), 8)", "ba7816bf")),
    digest_bytes!("sha384", Sha384, "SHA-384 digest", ("left(encode(sha384('abc'), 'hex'), 8)", "cb00753f")),
    digest_bytes!("sha512", Sha512, "SHA-512 digest", ("left(encode(sha512('abc'), 'hex'), 8)", "ddaf35a1")),
    define(
        &["get_byte"],
        "blob, n",
        "INTEGER",
        "the byte at n, from 0",
        &[takes(
            &[BLOB, BIGINT],
            DataType::Int32,
            Kernel::Whole(|row| {
                let (bytes, n) = (row.bytes(0), row.whole(1));
                Ok(Some(bytes[index(n, bytes.len())?].into()))
            }),
        )],
        &[("get_byte('abc'::BLOB, 1)", "98")],
    ),
    define(
        &["set_byte"],
        "blob, n, value",
        "BLOB",
        "with another byte at n, from 0",
        &[takes(
            &[BLOB, BIGINT, BIGINT],
            BLOB,
            Kernel::Text(|row, out| {
                let at = index(row.whole(1), row.bytes(0).len())?;
                out.copy(row.bytes(0))?;
                out.buffer[at] = row.whole(2) as u8;
                Ok(true)
            }),
        )],
        &[("set_byte('abc'::BLOB, 1, 65)", "aAc")],
    ),
    define(
        &["get_bit"],
        "blob, n",
        "INTEGER",
        "the bit at n, from 0, the lowest of a byte first",
        &[takes(
            &[BLOB, BIGINT],
            DataType::Int32,
            Kernel::Whole(|row| {
                let (bytes, n) = (row.bytes(0), row.whole(1));
                let at = index(n, bytes.len() * 8)?;
                Ok(Some(i64::from(bytes[at / 8] >> (at % 8) & 1)))
            }),
        )],
        &[("get_bit('a'::BLOB, 0)", "1")],
    ),
    define(
        &["set_bit"],
        "blob, n, value",
        "BLOB",
        "with another bit at n, from 0, the lowest of a byte first",
        &[takes(
            &[BLOB, BIGINT, BIGINT],
            BLOB,
            Kernel::Text(|row, out| {
                let at = index(row.whole(1), row.bytes(0).len() * 8)?;
                out.copy(row.bytes(0))?;
                let byte = &mut out.buffer[at / 8];
                match row.whole(2) {
                    0 => *byte &= !(1 << (at % 8)),
                    1 => *byte |= 1 << (at % 8),
                    other => return Err(Error::input(format!("set_bit: {other} is not a bit"))),
                }
                Ok(true)
            }),
        )],
        &[("set_bit('a'::BLOB, 1, 1)", "c")],
    ),
    elsewhere(
        &["uuid", "gen_random_uuid", "uuidv4"],
        "",
        "UUID",
        "a random UUID",
        &[("length(uuid()::VARCHAR)", "36")],
    ),
    define(
        &["uuid_extract_version"],
        "uuid",
        "INTEGER",
        "the version of a UUID; NULL of other variants",
        &[takes(
            &[DataType::Uuid],
            DataType::Int32,
            Kernel::Whole(|row| {
                let bits = row.uuid(0);
                Ok((bits >> 62 & 3 == 2).then_some((bits >> 76 & 15) as i64))
            }),
        )],
        &[("uuid_extract_version('5dd6ac92-0c2c-4a8b-9d6f-3d8e0e5a2b1c'::UUID)", "4")],
    ),
    define(
        &["uuid_extract_timestamp"],
        "uuid",
        "TIMESTAMPTZ",
        "the time in a UUID of version 7; NULL of others",
        &[takes(
            &[DataType::Uuid],
            DataType::TimestampTz,
            Kernel::Whole(|row| {
                let bits = row.uuid(0);
                Ok((bits >> 76 & 15 == 7).then_some((bits >> 80) as i64 * 1000))
            }),
        )],
        &[(
            "uuid_extract_timestamp('019482e4-1441-7aad-8127-eec99573b0a0'::UUID)",
            "2025-01-20 08:46:13.057+00",
        )],
    ),
];

enum Encoding {
    Utf8,
    Latin1,
}

fn encoding(name: &str) -> Result<Encoding> {
    match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "utf8" => Ok(Encoding::Utf8),
        "latin1" | "iso88591" => Ok(Encoding::Latin1),
        _ => Err(Error::input(format!("there is no encoding {name}")).with_hint("supported: UTF8, LATIN1")),
    }
}

fn utf8(bytes: &[u8], out: &mut Writer<'_>) -> Result<bool> {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.copy(text.as_bytes())?,
        Err(error) => {
            let at = error.valid_up_to();
            return Err(Error::input(format!(
                "the bytes are not valid UTF-8: \\x{:02X} at byte {at}",
                bytes[at]
            )));
        }
    }
    Ok(true)
}

fn index(n: i64, length: usize) -> Result<usize> {
    let at = usize::try_from(n).ok().filter(|at| *at < length);
    at.ok_or_else(|| Error::input(format!("index {n} is out of the range 0 to {}", length as i64 - 1)))
}

/// Writes two digits per byte.
///
/// # Errors
/// Interrupted; resource, if there is not enough memory.
pub(super) fn hex_digits(bytes: &[u8], out: &mut Writer<'_>, upper: bool) -> Result<()> {
    let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    out.more(bytes.len() * 2)?;
    out.each_part(bytes, 1, |bytes, out| {
        bytes.chunks(STEP / 2).try_for_each(|bytes| {
            for byte in bytes {
                out.bytes(&[digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
            }
            out.read(bytes.len() * 2)
        })
    })
}

fn hex(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    hex_digits(row.bytes(0), out, true).map(|()| true)
}

fn unhex(text: &str, out: &mut Writer<'_>) -> Result<bool> {
    let digit =
        |c: char| c.to_digit(16).ok_or_else(|| Error::input(format!("{c:?} is not a hexadecimal digit")));
    let mut high = None;
    // An odd number of digits lacks the leading one.
    if characters::count(text)? % 2 == 1 {
        high = Some(0);
    }
    for piece in pieces(text) {
        let piece = piece?;
        out.more(piece.len() / 2 + 1)?;
        for c in piece.chars() {
            let d = digit(c)?;
            match high.take() {
                Some(high) => out.bytes(&[(high << 4 | d) as u8]),
                None => high = Some(d),
            }
        }
    }
    Ok(true)
}

fn binary(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    out.more(row.bytes(0).len() * 8)?;
    out.each_part(row.bytes(0), 1, |bytes, out| {
        bytes.chunks(STEP / 8).try_for_each(|bytes| {
            written(bytes.iter().try_for_each(|byte| write!(out, "{byte:08b}")))?;
            out.read(bytes.len() * 8)
        })
    })?;
    Ok(true)
}

fn unbinary(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let digits = row.text(0).as_bytes();
    let first = digits.len() % 8;
    let (head, tail) = digits.split_at(first);
    for piece in std::iter::once(head).filter(|head| !head.is_empty()).chain(tail.chunks(8)) {
        let mut byte = 0;
        for digit in piece {
            byte = byte << 1
                | match digit {
                    b'0' => 0,
                    b'1' => 1,
                    other => {
                        return Err(Error::input(format!("{:?} is not a binary digit", char::from(*other))));
                    }
                };
        }
        out.more(1)?;
        out.bytes(&[byte]);
        out.read(8)?;
    }
    Ok(true)
}

fn to_base64(bytes: &[u8], out: &mut Writer<'_>) -> Result<bool> {
    out.more(bytes.len() / 3 * 4 + 4)?;
    out.each_part(bytes, 3, |bytes, out| {
        out.text(&BASE64.encode(bytes));
        out.read(bytes.len())
    })?;
    Ok(true)
}

fn from_base64(text: &str, out: &mut Writer<'_>) -> Result<bool> {
    // Four letters are three bytes; only the end may have fewer.
    let invalid = |error| Error::input(format!("this is not valid base64: {error}"));
    let mut start = 0;
    out.each_part(text.as_bytes(), 4, |letters, out| {
        let bytes = BASE64.decode(letters).map_err(|error| invalid(moved(error, start)))?;
        if bytes.len() < letters.len() / 4 * 3 && start + letters.len() < text.len() {
            return Err(invalid(DecodeError::InvalidLength(text.len())));
        }
        start += letters.len();
        out.bytes(&bytes);
        Ok(())
    })?;
    Ok(true)
}

/// The error where it is in a text of which the part from `start` on was decoded.
fn moved(error: DecodeError, start: usize) -> DecodeError {
    match error {
        DecodeError::InvalidByte(at, byte) => DecodeError::InvalidByte(start + at, byte),
        DecodeError::InvalidLastSymbol { offset, symbol, symbol_value } => {
            DecodeError::InvalidLastSymbol { offset: start + offset, symbol, symbol_value }
        }
        other => other,
    }
}

fn format_of(name: &str) -> Result<&'static str> {
    let known = ["hex", "base64", "escape"];
    known.into_iter().find(|known| name.eq_ignore_ascii_case(known)).ok_or_else(|| {
        Error::input(format!("there is no format {name:?}")).with_hint("there are hex, base64 and escape")
    })
}

fn encode(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let bytes = row.bytes(0);
    match format_of(row.text(1))? {
        "hex" => {
            hex_digits(bytes, out, false)?;
        }
        "base64" => {
            // A line has 76 characters, as in PostgreSQL and MIME.
            for (i, line) in bytes.chunks(76 / 4 * 3).enumerate() {
                out.more(77)?;
                if i > 0 {
                    out.char('\n');
                }
                out.text(&BASE64.encode(line));
            }
        }
        _ => {
            for &byte in bytes {
                out.more(4)?;
                match byte {
                    b'\\' => out.text("\\\\"),
                    1..=127 => out.char(byte.into()),
                    _ => {
                        let _ = write!(out, "\\{byte:03o}");
                    }
                }
            }
        }
    }
    Ok(true)
}

fn decode(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let text = row.text(0);
    match format_of(row.text(1))? {
        "hex" => {
            // There may be white space between bytes, but not within one.
            let (mut digits, mut growth) = (String::new(), Growth::default());
            for part in text.split_ascii_whitespace() {
                growth.add(part.len())?;
                if part.len() % 2 == 1 {
                    return Err(Error::input("decode: an odd number of hexadecimal digits"));
                }
                digits.push_str(part);
            }
            unhex(&digits, out)
        }
        "base64" => {
            let (mut letters, mut growth) = (String::new(), Growth::default());
            for piece in pieces(text) {
                letters.extend(piece?.chars().filter(|c| !c.is_whitespace()));
                growth.reach(letters.len())?;
            }
            from_base64(&letters, out)
        }
        _ => {
            let bytes = text.as_bytes();
            let mut at = 0;
            while at < bytes.len() {
                out.more(1)?;
                match (bytes[at], bytes.get(at + 1..at + 4), bytes.get(at + 1)) {
                    (b'\\', _, Some(b'\\')) => {
                        out.bytes(b"\\");
                        at += 2;
                    }
                    (b'\\', Some(octal), _)
                        if octal.iter().all(|d| (b'0'..=b'7').contains(d)) && octal[0] < b'4' =>
                    {
                        let value = octal.iter().fold(0u8, |value, d| value << 3 | (d - b'0'));
                        out.bytes(&[value]);
                        at += 4;
                    }
                    (b'\\', ..) => return Err(Error::input("decode: a backslash without an octal number")),
                    (byte, ..) => {
                        out.bytes(&[byte]);
                        at += 1;
                    }
                }
            }
            Ok(true)
        }
    }
}

fn digest_bytes<D: Digest>(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let digest = digest_of::<D>(row.bytes(0), out)?;
    out.bytes(&digest);
    Ok(true)
}

fn digest_of<D: Digest>(bytes: &[u8], out: &mut Writer<'_>) -> Result<Vec<u8>> {
    let mut digest = D::new();
    for part in bytes.chunks(STEP) {
        digest.update(part);
        out.read(part.len())?;
    }
    Ok(digest.finalize().to_vec())
}

fn digest<D: Digest>(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    hex_digits(&digest_of::<D>(row.bytes(0), out)?, out, false).map(|()| true)
}
