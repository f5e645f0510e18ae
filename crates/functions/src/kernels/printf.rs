//! `printf`, `format` with `{}`, and PostgreSQL's `format` with `%s`, `%I` and `%L`: three syntaxes for one
//! [`Spec`].

use super::written::{quote, quote_ident};
use crate::definition::Row;
use entasis_vector::statement::{Charge, STEP, reserve};
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result, Value, characters};

/// The format of one argument.
#[derive(Debug, Clone, Copy)]
struct Spec {
    fill: char,
    /// `<`, `>`, `^`; `=` puts the fill between sign and digits.
    align: Option<char>,
    /// Written before a nonnegative number.
    plus: Option<char>,
    /// `0x` and the like.
    alternate: bool,
    width: usize,
    /// Separates thousands.
    grouping: Option<char>,
    precision: Option<usize>,
    /// The conversion; `None` writes the argument's own text.
    kind: Option<char>,
}

impl Default for Spec {
    fn default() -> Spec {
        let (align, plus, grouping, precision, kind) = (None, None, None, None, None);
        Spec { fill: ' ', align, plus, alternate: false, width: 0, grouping, precision, kind }
    }
}

/// The most characters of a number or padding.
const WIDEST: usize = 1 << 20;

fn invalid(format: &str, reason: &str) -> Error {
    Error::input(format!("the format {format:?} is not valid: {reason}"))
}

/// Parses digits at the start.
fn digits(rest: &mut &str) -> Option<usize> {
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(count);
    *rest = after;
    number.parse().ok()
}

// ---- arguments --------------------------------------------------------------------------------------------

fn argument(row: &Row<'_>, format: &str, i: usize) -> Result<usize> {
    if i < row.count() { Ok(i) } else { Err(invalid(format, &format!("it needs {i} arguments"))) }
}

/// An argument as its conversion writes it, before it is padded.
struct Converted {
    negative: bool,
    /// `0x` and the like.
    prefix: &'static str,
    body: String,
    is_number: bool,
}

impl Converted {
    fn number(negative: bool, body: String) -> Converted {
        Converted { negative, prefix: "", body, is_number: true }
    }
}

/// Writes argument `i` by `spec`.
fn write(row: &Row<'_>, i: usize, spec: &Spec, format: &str, out: &mut Writer<'_>) -> Result<()> {
    if spec.width > WIDEST || spec.precision.is_some_and(|p| p > WIDEST) {
        return Err(invalid(format, "it is too wide"));
    }
    let _copies = copies(row, i)?;
    let Converted { negative, prefix, mut body, is_number } = converted(row, i, spec, format)?;
    if let (Some(separator), true) = (spec.grouping, is_number) {
        body = grouped(&body, separator);
    }
    let sign = match (negative, spec.plus) {
        (true, _) => "-",
        (false, Some('+')) if is_number => "+",
        (false, Some(' ')) if is_number => " ",
        _ => "",
    };
    let length = sign.len() + prefix.len() + characters::count(&body)?;
    let missing = spec.width.saturating_sub(length);
    out.more(body.len() + sign.len() + prefix.len() + missing * spec.fill.len_utf8())?;
    let align = spec.align.unwrap_or(if is_number { '>' } else { '<' });
    let (before, inside, after) = match align {
        '<' => (0, 0, missing),
        '^' => (missing / 2, 0, missing - missing / 2),
        '=' => (0, missing, 0),
        _ => (missing, 0, 0),
    };
    (0..before).for_each(|_| out.char(spec.fill));
    out.text(sign);
    out.text(prefix);
    (0..inside).for_each(|_| out.char(spec.fill));
    out.copy(body.as_bytes())?;
    (0..after).for_each(|_| out.char(spec.fill));
    Ok(())
}

/// Argument `i` by the conversion of `spec`.
fn converted(row: &Row<'_>, i: usize, spec: &Spec, format: &str) -> Result<Converted> {
    let (value, ty) = (row.value(i), row.ty(i));
    let wrong = |kind: char| invalid(format, &format!("{kind:?} does not go with {ty}"));
    Ok(match spec.kind {
        Some(kind @ ('d' | 'i' | 'u' | 'x' | 'X' | 'o' | 'b' | 'B')) => {
            let number = whole(&value, ty).ok_or_else(|| wrong(kind))?;
            let (prefix, body) = integer_text(number.unsigned_abs(), kind);
            let prefix = if spec.alternate { prefix } else { "" };
            Converted { prefix, ..Converted::number(number < 0, body) }
        }
        // Integers beyond 2^53 are no floats.
        Some('f' | 'F') if ty.is_integer() && whole(&value, ty).is_some() => {
            let number = whole(&value, ty).unwrap_or(0);
            let (magnitude, precision) = (number.unsigned_abs(), spec.precision.unwrap_or(6));
            let point = if precision > 0 { "." } else { "" };
            Converted::number(number < 0, format!("{magnitude}{point}{}", "0".repeat(precision)))
        }
        Some(kind @ ('f' | 'F' | 'e' | 'E' | 'g' | 'G' | '%')) => {
            let number = float(&value, ty).ok_or_else(|| wrong(kind))?;
            let negative = number.is_sign_negative() && !number.is_nan();
            Converted::number(negative, float_text(number.abs(), kind, spec))
        }
        Some('c') => {
            let number = whole(&value, ty);
            let c = number.and_then(|n| u32::try_from(n).ok()).and_then(char::from_u32);
            let text = match &value {
                Value::Text(text) => text.chars().next().map(String::from),
                _ => c.map(String::from),
            };
            let body = text.ok_or_else(|| wrong('c'))?;
            Converted { negative: false, prefix: "", body, is_number: false }
        }
        Some('s') | None if (ty.is_float() || ty.is_decimal()) && spec.precision.is_some() => {
            let number = float(&value, ty).ok_or_else(|| wrong('s'))?;
            Converted::number(number < 0.0, float_text(number.abs(), 'g', spec))
        }
        Some('s') | None => own_text(row.zone.shown(&value, ty), ty.is_numeric(), spec),
        Some(other) => return Err(invalid(format, &format!("there is no conversion {other:?}"))),
    })
}

/// The digits of an integer, and what is in front of them if that is asked for.
fn integer_text(magnitude: u128, kind: char) -> (&'static str, String) {
    match kind {
        'x' => ("0x", format!("{magnitude:x}")),
        'X' => ("0X", format!("{magnitude:X}")),
        'o' => ("0", format!("{magnitude:o}")),
        'b' | 'B' => ("0b", format!("{magnitude:b}")),
        _ => ("", magnitude.to_string()),
    }
}

/// An argument as its type is written, cut to the precision unless it is a number.
fn own_text(text: String, is_number: bool, spec: &Spec) -> Converted {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) if is_number => (true, rest.to_owned()),
        _ => (false, text),
    };
    let body = match spec.precision {
        Some(longest) if !is_number => text.chars().take(longest).collect(),
        _ => text,
    };
    Converted { negative, prefix: "", body, is_number }
}

fn whole(value: &Value, ty: DataType) -> Option<i128> {
    match (value, ty) {
        (Value::Integer(v), ty) if ty.is_integer() => Some(*v),
        (Value::Boolean(v), _) => Some((*v).into()),
        _ => None,
    }
}

fn float(value: &Value, ty: DataType) -> Option<f64> {
    match (value, ty) {
        (Value::Float(v), _) => Some(*v),
        (Value::Integer(_), ty) if ty.is_integer() || ty.is_decimal() => {
            value.display(ty).to_string().parse().ok()
        }
        _ => None,
    }
}

fn float_text(x: f64, kind: char, spec: &Spec) -> String {
    if !x.is_finite() {
        return if x.is_nan() { "nan".into() } else { "inf".into() };
    }
    let precision = spec.precision.unwrap_or(6);
    let exponential = |precision: usize| {
        let text = format!("{x:.precision$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        (mantissa.to_owned(), exponent)
    };
    let joined = |mantissa: &str, exponent: i32, e: char| {
        format!("{mantissa}{e}{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
    };
    match kind {
        'e' | 'E' => {
            let (mantissa, exponent) = exponential(precision);
            joined(&mantissa, exponent, kind)
        }
        'g' | 'G' => {
            let precision = precision.max(1);
            let (mantissa, exponent) = exponential(precision - 1);
            let short = |text: &str| match text.contains('.') && !spec.alternate {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text.to_owned(),
            };
            if exponent < -4 || exponent >= precision as i32 {
                joined(&short(&mantissa), exponent, if kind == 'g' { 'e' } else { 'E' })
            } else {
                let behind = (precision as i32 - 1 - exponent).max(0) as usize;
                short(&format!("{x:.behind$}"))
            }
        }
        '%' => format!("{:.precision$}%", x * 100.0),
        _ => format!("{x:.precision$}"),
    }
}

/// A number with a separator between its thousands.
fn grouped(text: &str, separator: char) -> String {
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i > 0 && i < whole && (whole - i) % 3 == 0 {
            out.push(separator);
        }
        out.push(c);
    }
    out
}

/// The memory of the copies that are made of a long argument: its value, its text, and that in its place.
fn copies(row: &Row<'_>, i: usize) -> Result<Option<Charge>> {
    let bytes = 3 * row.bytes(i).len();
    if bytes < STEP { Ok(None) } else { reserve(bytes) }
}

// ---- the three syntaxes -----------------------------------------------------------------------------------

/// `printf(format, …)`, as in C; `'`, `,` and `_` as flags separate thousands.
pub(super) fn printf(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let format = row.text(0);
    let mut rest = format;
    let mut next = 1;
    while let Some(at) = rest.find('%') {
        out.copy(&rest.as_bytes()[..at])?;
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.char('%');
            rest = after;
            continue;
        }
        let mut spec = Spec::default();
        while let Some(flag) = rest.chars().next() {
            match flag {
                '-' => spec.align = Some('<'),
                '+' => spec.plus = Some('+'),
                ' ' => spec.plus = spec.plus.or(Some(' ')),
                '#' => spec.alternate = true,
                '0' => (spec.fill, spec.align) = ('0', spec.align.or(Some('='))),
                '\'' | ',' => spec.grouping = Some(','),
                '_' => spec.grouping = Some('_'),
                _ => break,
            }
            rest = &rest[1..];
        }
        if spec.align == Some('<') {
            spec.fill = ' ';
        }
        let mut star = |rest: &mut &str| -> Result<Option<i64>> {
            let Some(after) = rest.strip_prefix('*') else { return Ok(digits(rest).map(|n| n as i64)) };
            *rest = after;
            let i = argument(row, format, next)?;
            next += 1;
            let given = whole(&row.value(i), row.ty(i)).and_then(|n| i64::try_from(n).ok());
            given.map(Some).ok_or_else(|| invalid(format, "* needs an integer"))
        };
        if let Some(width) = star(&mut rest)? {
            if width < 0 {
                spec.align = Some('<');
            }
            spec.width = width.unsigned_abs() as usize;
        }
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            spec.precision = Some(star(&mut rest)?.unwrap_or(0).max(0) as usize);
        }
        rest = rest.trim_start_matches(['h', 'l', 'L', 'q', 'j', 'z', 't']);
        let kind = rest.chars().next().ok_or_else(|| invalid(format, "a conversion is missing"))?;
        rest = &rest[kind.len_utf8()..];
        spec.kind = Some(kind);
        // In C, text is right-aligned.
        spec.align = spec.align.or(Some('>'));
        write(row, argument(row, format, next)?, &spec, format, out)?;
        next += 1;
    }
    out.copy(rest.as_bytes())?;
    Ok(true)
}

/// `format(text, …)`: as in PostgreSQL if there is a `%s`, `%I` or `%L`, otherwise with `{}` as in Python.
pub(super) fn format(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    if row.is_null(0) {
        return Ok(false);
    }
    let format = row.text(0);
    if is_percent(format) {
        return percent(row, out);
    }
    if (1..row.count()).any(|i| row.is_null(i)) {
        return Ok(false);
    }
    let mut rest = format;
    let mut next = 1;
    while let Some(at) = rest.find(['{', '}']) {
        out.copy(&rest.as_bytes()[..at])?;
        let brace = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        if rest.as_bytes().first() == Some(&brace) {
            out.char(char::from(brace));
            rest = &rest[1..];
            continue;
        }
        if brace == b'}' {
            return Err(invalid(format, "a } has no {"));
        }
        let i = match digits(&mut rest) {
            Some(i) => i.saturating_add(1),
            None => {
                next += 1;
                next - 1
            }
        };
        let mut spec = Spec::default();
        if let Some(after) = rest.strip_prefix(':') {
            rest = after;
            spec_of_braces(&mut rest, &mut spec);
        }
        rest = rest.strip_prefix('}').ok_or_else(|| invalid(format, "a } is missing"))?;
        write(row, argument(row, format, i)?, &spec, format, out)?;
    }
    out.copy(rest.as_bytes())?;
    Ok(true)
}

/// Parses what follows the colon: `[[fill]align][sign][#][0][width][,][.precision][type]`.
fn spec_of_braces(rest: &mut &str, spec: &mut Spec) {
    let mut chars = rest.chars();
    let (first, second) = (chars.next(), chars.next());
    let is_align = |c: Option<char>| matches!(c, Some('<' | '>' | '^' | '='));
    if let (Some(fill), true) = (first, is_align(second)) {
        (spec.fill, spec.align) = (fill, second);
        *rest = &rest[fill.len_utf8() + 1..];
    } else if is_align(first) {
        spec.align = first;
        *rest = &rest[1..];
    }
    let take = |rest: &mut &str, wanted: &[char]| {
        let found = rest.chars().next().filter(|c| wanted.contains(c));
        if found.is_some() {
            *rest = &rest[1..];
        }
        found
    };
    if let Some(sign) = take(rest, &['+', '-', ' ']) {
        spec.plus = Some(sign);
    }
    spec.alternate = take(rest, &['#']).is_some();
    if take(rest, &['0']).is_some() {
        (spec.fill, spec.align) = ('0', spec.align.or(Some('=')));
    }
    spec.width = digits(rest).unwrap_or(0);
    spec.grouping = take(rest, &[',', '_', '\'']).map(|c| if c == '\'' { ',' } else { c });
    if take(rest, &['.']).is_some() {
        spec.precision = Some(digits(rest).unwrap_or(0));
    }
    // In DuckDB, {:t,} sets any separator of thousands.
    if rest.starts_with('t') {
        *rest = &rest[1..];
        if let Some(separator) = rest.chars().next().filter(|c| *c != '}') {
            spec.grouping = Some(separator);
            *rest = &rest[separator.len_utf8()..];
        }
    }
    spec.kind = rest.chars().next().filter(|c| c.is_ascii_alphabetic() || *c == '%');
    if spec.kind.is_some() {
        *rest = &rest[1..];
    }
}

/// True if a text contains a conversion of PostgreSQL's `format`.
fn is_percent(format: &str) -> bool {
    format.split('%').skip(1).any(|part| {
        let kind = part.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | '-' | '*'));
        kind.starts_with(['s', 'I', 'L'])
    })
}

/// `%[position$][-][width]type`, where the type is `s`, `I` for a name or `L` for a literal. NULL is written
/// as an empty text, with `L` as `NULL`.
fn percent(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let format = row.text(0);
    let mut rest = format;
    let mut next = 1;
    while let Some(at) = rest.find('%') {
        out.copy(&rest.as_bytes()[..at])?;
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.char('%');
            rest = after;
            continue;
        }
        let mut position = None;
        let mut ahead = rest;
        if let (Some(number), Some(after)) = (digits(&mut ahead), ahead.strip_prefix('$')) {
            position = Some(number);
            rest = after;
        }
        let mut left = false;
        while let Some(after) = rest.strip_prefix('-') {
            left = true;
            rest = after;
        }
        let mut width = digits(&mut rest).unwrap_or(0);
        if let Some(after) = rest.strip_prefix('*') {
            rest = after;
            let i = argument(row, format, next)?;
            next += 1;
            let given = whole(&row.value(i), row.ty(i)).unwrap_or(0);
            left |= given < 0;
            width = usize::try_from(given.unsigned_abs()).unwrap_or(usize::MAX);
        }
        let kind = rest.chars().next().ok_or_else(|| invalid(format, "a conversion is missing"))?;
        rest = &rest[kind.len_utf8()..];
        let i = match position {
            Some(0) => return Err(invalid(format, "arguments are counted from 1")),
            Some(position) => position,
            None => next,
        };
        next = i + 1;
        let i = argument(row, format, i)?;
        if width > WIDEST {
            return Err(invalid(format, "it is too wide"));
        }
        let text = percent_text(row, i, kind, out)?;
        let missing = width.saturating_sub(characters::count(&text)?);
        out.more(text.len() + missing)?;
        if !left {
            (0..missing).for_each(|_| out.char(' '));
        }
        out.copy(text.as_bytes())?;
        if left {
            (0..missing).for_each(|_| out.char(' '));
        }
    }
    out.copy(rest.as_bytes())?;
    Ok(true)
}

/// Argument `i` by a conversion of PostgreSQL's `format`.
fn percent_text(row: &Row<'_>, i: usize, kind: char, out: &mut Writer<'_>) -> Result<String> {
    let format = row.text(0);
    let unknown = |kind: char| invalid(format, &format!("there is no conversion {kind:?}"));
    let mut piece = Vec::new();
    let mut written = out.beside(&mut piece);
    match (kind, row.is_null(i)) {
        ('s', true) => {}
        ('L', true) => written.text("NULL"),
        ('I', true) => return Err(invalid(format, "a NULL is no name")),
        (kind, false) => {
            let _copies = copies(row, i)?;
            let text = row.shown(i);
            match kind {
                's' => written.copy(text.as_bytes())?,
                'I' => quote_ident(&text, &mut written)?,
                'L' => {
                    quote(&text, &mut written)?;
                }
                other => return Err(unknown(other)),
            }
        }
        (other, true) => return Err(unknown(other)),
    }
    String::from_utf8(piece).map_err(|_| Error::internal("text is not UTF-8"))
}
