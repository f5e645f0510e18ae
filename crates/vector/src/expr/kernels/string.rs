//! Functions of strings.

use super::{Operand, Rows, binary, operand, strict, unary};
use crate::expr::Function;
use crate::expr::pattern::{Finder, Pattern, finds};
use crate::meter::Meter;
use crate::statement::STEP;
use crate::string::INLINE_BYTES;
use crate::types::PhysicalType;
use crate::vector::{StringsMut, Vector};
use crate::writer::StringMaker;
use crate::{Error, Result, StringHeap, StringView, characters};
use std::ops::Range;

/// `a LIKE pattern`.
///
/// # Errors
/// Interrupted, or resource, over long texts.
pub fn like(pattern: &Pattern, a: &Vector, rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    strict(&[a], rows, out, |rows, out| {
        let (texts, found) = (operand::<StringView>(a), out.values_mut::<u8>());
        match pattern.contained() {
            Some(piece) => find_in_each(piece, &texts, rows, found),
            None => rows.try_each(|p| {
                found[p] = u8::from(pattern.matches(texts.get(p).as_bytes())?);
                Ok(())
            }),
        }
    })
}

/// Sets `found` where the needle occurs in a text.
fn find_in_each(
    needle: &Finder<'_>,
    texts: &Operand<'_, StringView>,
    rows: Rows<'_>,
    found: &mut [u8],
) -> Result<()> {
    rows.try_each(|p| {
        found[p] = u8::from(needle.find(texts.get(p).as_bytes())?.is_some());
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
            out.values_mut::<u8>()[p] = u8::from(compiled.matches(texts.get(p).as_bytes())?);
            Ok(())
        })
    })
}

/// The strings that `parts` have in a row, one behind another.
fn concat(args: &[&Vector], rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let parts: Vec<Operand<'_, StringView>> = args.iter().map(|arg| operand(arg)).collect();
    strict(args, rows, out, |rows, out| {
        let StringsMut { views, heap } = out.strings_mut();
        let mut maker = StringMaker::default();
        rows.try_each(|p| {
            let text = maker.make(heap, |out| {
                out.room(parts.iter().map(|part| part.get(p).len()).sum())?;
                parts.iter().try_for_each(|part| out.copy(part.get(p).as_bytes()))?;
                Ok(true)
            })?;
            views[p] = text.unwrap_or_default();
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
        Function::Upper => cased::<b'a'>(args[0], rows, out, str::to_uppercase),
        Function::Lower => cased::<b'A'>(args[0], rows, out, str::to_lowercase),
        Function::Substring => substring(args, rows, out),
        Function::Concat => concat(args, rows, out),
        Function::CharLength => length(args[0], rows, out, |text| characters::count(text.as_str())),
        Function::OctetLength => length(args[0], rows, out, |text| Ok(text.len())),
        Function::StartsWith => test(args, rows, out, <[u8]>::starts_with),
        Function::EndsWith => test(args, rows, out, <[u8]>::ends_with),
        Function::Contains => contains(args, rows, out),
        _ => Err(Error::internal(format!("{function:?} is no function of strings"))),
    }
}

/// Each text in the other case, where the letters that change are those from `FIRST` on if they are ASCII.
fn cased<const FIRST: u8>(
    a: &Vector,
    rows: Rows<'_>,
    out: &mut Vector,
    unicode: fn(&str) -> String,
) -> Result<()> {
    strict(&[a], rows, out, |rows, out| {
        let values = operand::<StringView>(a);
        let StringsMut { views, heap } = out.strings_mut();
        let mut meter = Meter::default();
        rows.try_each(|p| {
            let view = values.get(p);
            if view.len() > STEP {
                views[p] = cased_in_steps::<FIRST>(view.as_str(), unicode, heap)?;
                return Ok(());
            }
            if let Some(short) = view.padded() {
                if let Some(cased) = cased_short::<FIRST>(short) {
                    views[p] = StringView::of_padded(view.len(), cased);
                    return Ok(());
                }
            } else {
                meter.ask(view.len(), heap)?;
                let mut is_ascii = false;
                views[p] = heap.push_with(view.len(), |to| {
                    is_ascii = cased_long::<FIRST>(view.as_bytes(), to);
                    if is_ascii { to.len() } else { 0 }
                });
                if is_ascii {
                    return Ok(());
                }
            }
            cased_unicode(view, unicode, &mut meter, heap, &mut views[p])
        })
    })
}

#[cold]
#[inline(never)]
fn cased_unicode(
    text: StringView,
    unicode: fn(&str) -> String,
    meter: &mut Meter,
    heap: &mut StringHeap,
    out: &mut StringView,
) -> Result<()> {
    let cased = unicode(text.as_str());
    meter.ask(cased.len(), heap)?;
    *out = heap.push(cased.as_bytes());
    Ok(())
}

/// A text of more than a [`STEP`] in the other case.
#[cold]
#[inline(never)]
fn cased_in_steps<const FIRST: u8>(
    text: &str,
    unicode: fn(&str) -> String,
    heap: &mut StringHeap,
) -> Result<StringView> {
    let cased = StringMaker::default().make(heap, |out| {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(end_of_words(rest));
            out.more(piece.len())?;
            let start = out.len();
            out.buffer.resize(start + piece.len(), 0);
            let is_ascii =
                piece.len() >= 8 && cased_long::<FIRST>(piece.as_bytes(), &mut out.buffer[start..]);
            if !is_ascii {
                out.buffer.truncate(start);
                out.copy(unicode(piece).as_bytes())?;
            }
            rest = behind;
        }
        Ok(true)
    })?;
    Ok(cased.unwrap_or_default())
}

/// Where a text may be cut after about a [`STEP`] to change the case of its parts by themselves: the lower
/// case of Σ depends on the rest of its word, but no letter depends on those behind white space, or beyond
/// two letters or digits of ASCII.
fn end_of_words(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |at: &usize| {
        let (last, first) = (bytes[at - 1], bytes[*at]);
        last.is_ascii_whitespace() || last.is_ascii_alphanumeric() && first.is_ascii_alphanumeric()
    };
    if text.len() <= STEP {
        return text.len();
    }
    (1..STEP).rev().find(ends).or_else(|| (STEP..text.len()).find(ends)).unwrap_or(text.len())
}

/// The highest bit of each of eight bytes: none is set in ASCII.
const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);

/// Eight ASCII bytes in the other case. Their highest bits are free for the carries of two comparisons.
#[inline(always)]
fn cased_word<const FIRST: u8>(word: u64) -> u64 {
    let is_above = word.wrapping_add(u64::from_ne_bytes([0x80 - FIRST; 8]));
    let is_beyond = word.wrapping_add(u64::from_ne_bytes([0x80 - FIRST - 26; 8]));
    word ^ ((is_above & !is_beyond & HIGHEST) >> 2)
}

/// The padded text of a view that holds it, in the other case, if it is ASCII.
#[inline(always)]
fn cased_short<const FIRST: u8>(text: [u8; INLINE_BYTES]) -> Option<[u8; INLINE_BYTES]> {
    if !padded_is_ascii(text) {
        return None;
    }
    let (low, high) = text.split_at(8);
    let low = u64::from_le_bytes(low.try_into().expect("eight bytes"));
    let high = u64::from(u32::from_le_bytes(high.try_into().expect("four bytes")));
    let mut cased = [0; INLINE_BYTES];
    cased[..8].copy_from_slice(&cased_word::<FIRST>(low).to_le_bytes());
    cased[8..].copy_from_slice(&(cased_word::<FIRST>(high) as u32).to_le_bytes());
    Some(cased)
}

/// Writes a text of eight bytes or more in the other case; true if it is ASCII, as what was written means
/// nothing otherwise.
#[inline(always)]
fn cased_long<const FIRST: u8>(from: &[u8], to: &mut [u8]) -> bool {
    let mut seen = 0;
    let mut write = |from: &[u8; 8], to: &mut [u8; 8]| {
        let word = u64::from_le_bytes(*from);
        seen |= word;
        *to = cased_word::<FIRST>(word).to_le_bytes();
    };
    from.as_chunks().0.iter().zip(to.as_chunks_mut().0).for_each(|(from, to)| write(from, to));
    // The rest, with what precedes it.
    if let (Some(from), Some(to)) = (from.last_chunk(), to.last_chunk_mut()) {
        write(from, to);
    }
    seen & HIGHEST == 0
}

fn length(
    a: &Vector,
    rows: Rows<'_>,
    out: &mut Vector,
    f: impl Fn(StringView) -> Result<usize>,
) -> Result<()> {
    let physical = out.physical();
    strict(&[a], rows, out, |rows, out| {
        let values = operand::<StringView>(a);
        macro_rules! write {
            // PERF: without a long text nothing fails, and a row takes two thirds of the time.
            ($t:ty) => {{
                let lengths = out.values_mut::<$t>();
                if !has_long(&values, rows) {
                    unary(values, rows, lengths, |text| f(text).map_or(0, |length| length as $t));
                    return Ok(());
                }
                rows.try_each(|p| {
                    lengths[p] = f(values.get(p))? as $t;
                    Ok(())
                })
            }};
        }
        match physical {
            PhysicalType::I32 => write!(i32),
            _ => write!(i64),
        }
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
    strict(args, rows, out, |rows, out| {
        let (texts, parts) = (operand::<StringView>(args[0]), operand::<StringView>(args[1]));
        let found = out.values_mut::<u8>();
        match &parts {
            Operand::One(part) if part.is_empty() => {
                unary(texts, rows, found, |_| 1);
                Ok(())
            }
            Operand::One(part) => find_in_each(&Finder::new(part.as_bytes()), &texts, rows, found),
            Operand::Each(_) => rows.try_each(|p| {
                found[p] = u8::from(finds(parts.get(p).as_bytes(), texts.get(p).as_bytes())?);
                Ok(())
            }),
        }
    })
}

/// The result has views of the bytes of the text.
fn substring(args: &[&Vector], rows: Rows<'_>, out: &mut Vector) -> Result<()> {
    let values = operand::<StringView>(args[0]);
    let starts = operand::<i64>(args[1]);
    let counts = args.get(2).map(|count| operand::<i64>(count));
    strict(args, rows, out, |rows, out| {
        let views = out.values_mut::<StringView>();
        let bounds_at = |p: usize| bounds(starts.get(p), counts.as_ref().map(|counts| counts.get(p)));
        match (&starts, &counts) {
            (Operand::One(_), None | Some(Operand::One(_))) if rows.len() > 0 && !has_long(&values, rows) => {
                let bounds = bounds_at(0)?;
                unary(values, rows, views, |text| piece(text, bounds));
                Ok(())
            }
            _ => rows.try_each(|p| {
                let (text, bounds) = (values.get(p), bounds_at(p)?);
                views[p] = if text.len() > STEP { piece_of_long(text, bounds)? } else { piece(text, bounds) };
                Ok(())
            }),
        }
    })?;
    out.share_strings(args[0]);
    Ok(())
}

/// True if a text has more than a [`STEP`].
fn has_long(texts: &Operand<'_, StringView>, rows: Rows<'_>) -> bool {
    let mut longest = 0;
    rows.each(|p| longest = texts.get(p).len().max(longest));
    longest > STEP
}

/// As [`piece`], with looks.
#[cold]
fn piece_of_long(text: StringView, (first, end): (usize, usize)) -> Result<StringView> {
    let at = |n: usize| characters::place(text.as_str(), n);
    Ok(text.part(at(first)?..at(end)?))
}

/// The first character and the end, counted from 0, of those from `start` (counted from 1) on, `count` of
/// them. A start before the text counts into the length.
fn bounds(start: i64, count: Option<i64>) -> Result<(usize, usize)> {
    if count.is_some_and(|count| count < 0) {
        return Err(Error::input("negative substring length not allowed"));
    }
    let end = count.map_or(i64::MAX, |count| start.saturating_add(count));
    let first = (start.max(1) - 1) as usize;
    Ok((first, ((end.max(1) - 1) as usize).max(first)))
}

/// The characters from `first` to `end`.
#[inline(always)]
fn piece(text: StringView, (first, end): (usize, usize)) -> StringView {
    let bytes = text.as_bytes();
    let places = first.min(bytes.len())..end.min(bytes.len());
    if first == 0 && places.end <= INLINE_BYTES {
        let short = text.part(places.clone());
        if short.padded().is_some_and(padded_is_ascii) {
            return short;
        }
    }
    // Where all that precedes a character is ASCII, its number is its place.
    let counted = if end < bytes.len() { end } else { first.min(bytes.len()) };
    text.part(match bytes[..counted].is_ascii() {
        true => places,
        false => places_in_unicode(text.as_str(), first, end),
    })
}

/// Whether the bytes of a short text are ASCII.
#[inline(always)]
fn padded_is_ascii(text: [u8; INLINE_BYTES]) -> bool {
    let (low, high) = text.split_at(8);
    let low = u64::from_le_bytes(low.try_into().expect("eight bytes"));
    let high = u32::from_le_bytes(high.try_into().expect("four bytes"));
    (low | u64::from(high)) & HIGHEST == 0
}

// PERF: a cold function that returned a view would have it written to memory by all.
#[cold]
#[inline(never)]
fn places_in_unicode(text: &str, first: usize, end: usize) -> Range<usize> {
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    at(first)..at(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    /// Texts of all lengths, ASCII and not, with every byte that has a neighbour in the other case.
    fn texts_of_all_lengths() -> Vec<String> {
        let all: String = ('\0'..='\u{7f}').chain("ßäÖ€🦀ŉAZaz".chars()).collect();
        let around = |start: usize| (0..=30).map(move |length| (start, length));
        let pieces = [0, 60, 88, 100, 120].into_iter().flat_map(around);
        pieces.map(|(start, length)| all.chars().skip(start).take(length).collect()).collect()
    }

    fn vector(texts: &[String], nulls: bool) -> Vector {
        let value = |(p, text): (usize, &String)| match nulls && p % 3 == 1 {
            true => Value::Null,
            false => Value::Text(text.as_str().into()),
        };
        let values: Vec<Value> = texts.iter().enumerate().map(value).collect();
        Vector::from_values(PhysicalType::Str, &values).unwrap()
    }

    /// Calls the function and compares what it gives with `expected` of each text.
    fn check(function: Function, more: &[&Vector], expected: impl Fn(usize, &str) -> String) {
        let texts = texts_of_all_lengths();
        let some: Vec<u16> = (0..texts.len() as u16).filter(|p| p % 5 < 2).collect();
        for (nulls, rows) in [false, true].into_iter().flat_map(|nulls| {
            [Rows::Dense(texts.len()), Rows::Sparse(&some, texts.len())].map(|rows| (nulls, rows))
        }) {
            let input = vector(&texts, nulls);
            let mut out = Vector::new(PhysicalType::Str);
            let args: Vec<&Vector> = std::iter::once(&input).chain(more.iter().copied()).collect();
            string(function, &args, rows, &mut out).unwrap();
            drop(args);
            drop(input);
            rows.each(|p| {
                assert_eq!(out.is_valid(p), !(nulls && p % 3 == 1), "row {p}");
                if out.is_valid(p) {
                    let found = out.values::<StringView>()[p];
                    assert_eq!(found.as_str(), expected(p, &texts[p]), "{function:?} of {:?}", texts[p]);
                }
            });
        }
    }

    #[test]
    fn cases_are_those_of_the_standard_library() {
        check(Function::Upper, &[], |_, text| text.to_uppercase());
        check(Function::Lower, &[], |_, text| text.to_lowercase());
    }

    /// Texts of several steps, with words over the ends of steps, and none that end.
    #[test]
    fn cases_of_long_texts_are_those_of_the_standard_library() {
        let texts = ["Σaß ΑΣ", "ΑΣ", "aΣ", "Abc", " Σ", "a1"].map(|part| part.repeat(2 * STEP / part.len()));
        for text in texts.into_iter().flat_map(|text| [format!("a{text}"), format!("ä{text}Σ")]) {
            let input = vector(std::slice::from_ref(&text), false);
            for (function, expected) in
                [(Function::Upper, text.to_uppercase()), (Function::Lower, text.to_lowercase())]
            {
                let mut out = Vector::new(PhysicalType::Str);
                string(function, &[&input], Rows::Dense(1), &mut out).unwrap();
                let first: String = text.chars().take(9).collect();
                assert!(out.values::<StringView>()[0].as_str() == expected, "{function:?} of {first}…");
            }
        }
    }

    #[test]
    fn pieces_are_those_that_characters_give() {
        let by_character = |text: &str, start: i64, count: i64| {
            let is_in = |at: i64| at >= start && at < start.saturating_add(count);
            (1..).zip(text.chars()).filter(|(at, _)| is_in(*at)).map(|(_, c)| c).collect::<String>()
        };
        let bounds = [-3, 0, 1, 2, 8, 25, 40, i64::MAX];
        let rows = texts_of_all_lengths().len();
        for (start, count) in bounds.into_iter().flat_map(|start| bounds.map(|count| (start, count.max(0)))) {
            let constant = |v: i64| Vector::constant(PhysicalType::I64, &Value::Integer(v.into())).unwrap();
            let each = Vector::from_slice(&vec![start; rows]);
            for starts in [&constant(start), &each] {
                check(Function::Substring, &[starts, &constant(count)], |_, text| {
                    by_character(text, start, count)
                });
                check(Function::Substring, &[starts], |_, text| by_character(text, start, i64::MAX));
            }
        }
    }
}
