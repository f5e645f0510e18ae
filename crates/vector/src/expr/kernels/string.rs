//! Functions of strings.

use super::{Operand, Rows, binary, operand, strict, unary};
use crate::expr::Function;
use crate::expr::pattern::Pattern;
use crate::statement::{LONGEST, Meter, too_long};
use crate::types::PhysicalType;
use crate::vector::Vector;
use crate::{Error, Result, StringView};

/// `a LIKE pattern`.
///
/// # Errors
/// None; the type is that of all kernels.
pub fn like(pattern: &Pattern, a: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    strict(&[a], rows, out, |rows, out| {
        unary(operand(a), rows, out.values_mut(), |v: StringView| u8::from(pattern.matches(v.as_bytes())));
        Ok(())
    })
}

/// `a LIKE pattern`, where the pattern comes with the rows. Runs of one pattern compile it once.
///
/// # Errors
/// Input, if a pattern ends with the escape character.
pub fn like_dynamic(
    escape: Option<char>,
    case_insensitive: bool,
    a: &Vector,
    pattern: &Vector,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    strict(&[a, pattern], rows, out, |rows, out| {
        let (texts, patterns) = (operand::<StringView>(a), operand::<StringView>(pattern));
        let mut last: Option<(StringView, Pattern)> = None;
        rows.try_each(|p| {
            let view = patterns.get(p);
            if last.as_ref().is_none_or(|(seen, _)| *seen != view) {
                last = Some((view, Pattern::new(view.as_str(), escape, case_insensitive)?));
            }
            let (_, compiled) = last.as_ref().expect("just set");
            out.values_mut::<u8>()[p] = u8::from(compiled.matches(texts.get(p).as_bytes()));
            Ok(())
        })
    })
}

/// Calls `f` for each row and keeps the text that it makes in the buffer that it is given.
fn texts(
    args: &[&Vector],
    rows: Rows<'_>,
    out: &mut Vector,
    mut f: impl FnMut(usize, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    strict(args, rows, out, |rows, out| {
        let strings = out.strings_mut();
        let mut text = Vec::new();
        let mut meter = Meter::default();
        rows.try_each(|p| {
            text.clear();
            f(p, &mut text)?;
            meter.ask(text.len(), strings.heap)?;
            strings.views[p] = strings.heap.push(&text);
            Ok(())
        })
    })
}

/// A function of strings, by its documentation at [`Function`].
///
/// # Errors
/// Input, if `substring` is given a negative length; internal for functions of other types.
pub fn string(function: Function, args: &[&Vector], rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    match function {
        Function::Upper => cased(args[0], rows, out, <[u8]>::make_ascii_uppercase, str::to_uppercase),
        Function::Lower => cased(args[0], rows, out, <[u8]>::make_ascii_lowercase, str::to_lowercase),
        Function::Substring => substring(args, rows, out),
        Function::Concat => {
            let parts: Vec<Operand<'_, StringView>> = args.iter().map(|arg| operand(arg)).collect();
            texts(args, rows, out, |p, text| {
                let bytes = parts.iter().map(|part| part.get(p).len()).sum();
                if bytes > LONGEST {
                    return Err(too_long(bytes));
                }
                parts.iter().for_each(|part| text.extend_from_slice(part.get(p).as_bytes()));
                Ok(())
            })
        }
        Function::CharLength => length(args[0], rows, out, |text| text.as_str().chars().count()),
        Function::OctetLength => length(args[0], rows, out, |text| text.len()),
        Function::StartsWith => test(args, rows, out, <[u8]>::starts_with),
        Function::EndsWith => test(args, rows, out, <[u8]>::ends_with),
        Function::Contains => contains(args, rows, out),
        _ => Err(Error::internal(format!("{function:?} is no function of strings"))),
    }
}

fn cased(
    a: &Vector,
    rows: Rows<'_>,
    out: &mut Vector,
    ascii: fn(&mut [u8]),
    unicode: fn(&str) -> String,
) -> Result<()> {
    let values = operand::<StringView>(a);
    texts(&[a], rows, out, |p, text| {
        let view = values.get(p);
        if view.as_bytes().is_ascii() {
            text.extend_from_slice(view.as_bytes());
            ascii(text);
        } else {
            text.extend_from_slice(unicode(view.as_str()).as_bytes());
        }
        Ok(())
    })
}

fn length(a: &Vector, rows: Rows<'_>, out: &mut Vector, f: impl Fn(StringView) -> usize) -> Result<()> {
    let physical = out.physical();
    strict(&[a], rows, out, |rows, out| {
        let values = operand::<StringView>(a);
        match physical {
            PhysicalType::I32 => unary(values, rows, out.values_mut(), |v| f(v) as i32),
            _ => unary(values, rows, out.values_mut(), |v| f(v) as i64),
        }
        Ok(())
    })
}

fn test(args: &[&Vector], rows: Rows<'_>, out: &mut Vector, f: fn(&[u8], &[u8]) -> bool) -> Result<()> {
    strict(args, rows, out, |rows, out| {
        let (texts, parts) = (operand::<StringView>(args[0]), operand::<StringView>(args[1]));
        binary(texts, parts, rows, out.values_mut(), |text, part| {
            u8::from(f(text.as_bytes(), part.as_bytes()))
        });
        Ok(())
    })
}

fn contains(args: &[&Vector], rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    use crate::expr::pattern::{Finder, finds};
    strict(args, rows, out, |rows, out| {
        let (texts, parts) = (operand::<StringView>(args[0]), operand::<StringView>(args[1]));
        match parts {
            Operand::One(part) if part.is_empty() => unary(texts, rows, out.values_mut::<u8>(), |_| 1),
            Operand::One(part) => {
                let finder = Finder::new(part.as_bytes());
                unary(texts, rows, out.values_mut(), |text| u8::from(finder.find(text.as_bytes()).is_some()));
            }
            Operand::Each(_) => binary(texts, parts, rows, out.values_mut(), |text, part| {
                u8::from(finds(part.as_bytes(), text.as_bytes()))
            }),
        }
        Ok(())
    })
}

fn substring(args: &[&Vector], rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let values = operand::<StringView>(args[0]);
    let starts = operand::<i64>(args[1]);
    let counts = args.get(2).map(|count| operand::<i64>(count));
    texts(args, rows, out, |p, text| {
        let count = counts.as_ref().map(|counts| counts.get(p));
        if count.is_some_and(|count| count < 0) {
            return Err(Error::input("negative substring length not allowed"));
        }
        let view = values.get(p);
        text.extend_from_slice(piece(view.as_str(), starts.get(p), count));
        Ok(())
    })
}

/// The characters from `start` (counted from 1) on, `count` of them. A start before the text counts into the
/// length.
fn piece(text: &str, start: i64, count: Option<i64>) -> &[u8] {
    let end = count.map_or(i64::MAX, |count| start.saturating_add(count));
    let (first, end) = (start.max(1) - 1, end.max(1) - 1);
    let (first, end) = (first as usize, (end as usize).max(first as usize));
    let bytes = text.as_bytes();
    if bytes.is_ascii() {
        return &bytes[first.min(bytes.len())..end.min(bytes.len())];
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    &bytes[at(first)..at(end)]
}
