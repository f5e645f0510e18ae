//! PostgreSQL's number patterns: `to_char` of numbers, `to_number` of text.
//!
//! The number is rounded to the digits that the pattern has after the decimal point. Its digits then fill the
//! pattern's places from the right: places before the first digit are blanks, or zeros from the first `0` on.

use entasis_vector::types::pow10;
use entasis_vector::value::write_decimal;
use entasis_vector::writer::Writer;
use entasis_vector::{Error, Result};
use std::iter::Peekable;
use std::str::Chars;

/// A piece of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `9`
    Nine,
    /// `0`
    Zero,
    /// `.` and `D`
    Point,
    /// `,` and `G`
    Comma,
    /// `S`
    Sign,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    PlusMinus,
    /// `PR`
    Angles,
    /// `RN`; true: in upper case.
    Roman(bool),
    /// `TH`; true: in upper case.
    Ordinal(bool),
    /// `V`: multiplies the number by a power of ten for the places that follow.
    Shift,
    /// `L`
    Currency,
    /// `EEEE`
    Exponent,
    Char(char),
}

/// A pattern, with properties of the whole.
struct Pattern {
    parts: Vec<Part>,
    /// `FM`
    bare: bool,
    /// Number of places before and after the decimal point, and after the shift.
    before: usize,
    behind: usize,
    shift: usize,
}

fn parse(pattern: &str) -> Pattern {
    const KEYWORDS: [(&str, Part); 16] = [
        ("EEEE", Part::Exponent),
        ("FM", Part::Char('\0')),
        ("MI", Part::Minus),
        ("PL", Part::Plus),
        ("PR", Part::Angles),
        ("RN", Part::Roman(true)),
        ("SG", Part::PlusMinus),
        ("TH", Part::Ordinal(true)),
        ("0", Part::Zero),
        ("9", Part::Nine),
        (".", Part::Point),
        (",", Part::Comma),
        ("D", Part::Point),
        ("G", Part::Comma),
        ("L", Part::Currency),
        ("S", Part::Sign),
    ];
    let mut found = Pattern { parts: Vec::new(), bare: false, before: 0, behind: 0, shift: 0 };
    let mut rest = pattern;
    let (mut pointed, mut shifted) = (false, false);
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let (quoted, after) = quoted(&rest[1..]);
            found.parts.extend(quoted.chars().map(Part::Char));
            rest = after;
            continue;
        }
        // Outside quotes, a backslash is one, but before a quote.
        let c = if rest.starts_with("\\\"") { '"' } else { c };
        if c == '"' {
            found.parts.push(Part::Char(c));
            rest = &rest[2..];
            continue;
        }
        let known = KEYWORDS
            .iter()
            .find(|(name, _)| rest.get(..name.len()).is_some_and(|t| t.eq_ignore_ascii_case(name)));
        let (part, length) = match known {
            Some((name, Part::Roman(_))) => (Part::Roman(rest.starts_with('R')), name.len()),
            Some((name, Part::Ordinal(_))) => (Part::Ordinal(rest.starts_with('T')), name.len()),
            Some((name, part)) => (*part, name.len()),
            None if c.eq_ignore_ascii_case(&'v') => (Part::Shift, 1),
            None => (Part::Char(c), c.len_utf8()),
        };
        rest = &rest[length..];
        match part {
            Part::Char('\0') => {
                found.bare = true;
                continue;
            }
            Part::Point => pointed = true,
            Part::Shift => shifted = true,
            Part::Nine | Part::Zero if shifted => {
                found.shift += 1;
                found.before += 1;
            }
            Part::Nine | Part::Zero if pointed => found.behind += 1,
            Part::Nine | Part::Zero => found.before += 1,
            _ => {}
        }
        found.parts.push(part);
    }
    found
}

/// The text up to the next quote, in which a backslash stands before a character that is meant as it is, and
/// what follows the quote.
fn quoted(text: &str) -> (String, &str) {
    let (mut out, mut characters) = (String::new(), text.char_indices());
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (out, &text[at + 1..]),
            '\\' => out.push(characters.next().map_or('\\', |(_, c)| c)),
            c => out.push(c),
        }
    }
    (out, "")
}

/// A number to be written.
pub(super) enum Number {
    /// An unscaled integer, and its scale.
    Decimal(i128, u8),
    Float(f64),
}

/// Digits that a DOUBLE represents reliably.
const FLOAT_DIGITS: usize = 15;

impl Number {
    /// Sign and digits, with `behind` digits after the decimal point, which is not written; `None` if it is
    /// not finite.
    fn digits(&self, behind: usize, shift: usize) -> Option<(bool, String)> {
        match *self {
            Number::Decimal(value, scale) => {
                // value · 10^-scale in units of 10^-(behind + shift)
                let wanted = (behind + shift) as i64 - i64::from(scale);
                let magnitude = value.unsigned_abs();
                let text = if wanted >= 0 {
                    let zeros = if value == 0 { 0 } else { wanted as usize };
                    format!("{magnitude}{}", "0".repeat(zeros))
                } else {
                    let unit = pow10((-wanted).min(38) as u8).unsigned_abs();
                    let (whole, rest) = (magnitude / unit, magnitude % unit);
                    (whole + u128::from(rest >= unit - rest)).to_string()
                };
                let text = format!("{text:0>width$}", width = behind + 1);
                Some((value < 0, text))
            }
            Number::Float(value) if value.is_nan() => None,
            // More digits than any pattern has.
            Number::Float(value) if value.is_infinite() => Some((value < 0.0, "9".repeat(1001 + behind))),
            Number::Float(value) => {
                let before = if value.abs() < 1.0 { 1 } else { value.abs().log10().floor() as usize + 1 };
                let exact = FLOAT_DIGITS.saturating_sub(before).min(behind + shift);
                let text = format!("{:.exact$}", value.abs());
                let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
                let zeros = "0".repeat(behind + shift - fraction.len());
                let text = format!("{whole}{fraction}{zeros}");
                let text = text.trim_start_matches('0');
                Some((value < 0.0, format!("{text:0>width$}", width = behind + 1)))
            }
        }
    }

    fn float(&self) -> f64 {
        match *self {
            Number::Decimal(value, scale) => {
                let mut text = String::new();
                let _ = write_decimal(&mut text, value, scale);
                text.parse().unwrap_or(f64::NAN)
            }
            Number::Float(value) => value,
        }
    }
}

/// Bytes of a pattern with 1000 digits, each with other characters around it.
const LONGEST: usize = 100_000;

/// Writes a number by a pattern.
///
/// # Errors
/// Input, if the pattern combines parts that exclude each other.
pub(super) fn write(number: &Number, pattern: &str, out: &mut Writer<'_>) -> Result<()> {
    let too_long = || Error::input("a number pattern has at most 1000 digits");
    // Before it is parsed, which takes much more memory than it has.
    if pattern.len() > LONGEST {
        return Err(too_long());
    }
    let pattern = parse(pattern);
    if pattern.before + pattern.behind > 1000 {
        return Err(too_long());
    }
    if let Some(Part::Roman(upper)) = pattern.parts.iter().find(|part| matches!(part, Part::Roman(_))) {
        return write_roman(number, pattern.bare, *upper, out);
    }
    if pattern.parts.contains(&Part::Exponent) {
        return write_exponent(number, &pattern, out);
    }
    let Some((negative, digits)) = number.digits(pattern.behind, pattern.shift) else {
        write_nan(&pattern, out);
        return Ok(());
    };
    let (whole, fraction) = digits.split_at(digits.len() - pattern.behind);
    let whole = whole.trim_start_matches('0');
    Filling::new(&pattern, negative, whole, fraction).write(out);
    Ok(())
}

/// `NaN` in the places before the point and that of the sign, if there are enough.
fn write_nan(pattern: &Pattern, out: &mut Writer<'_>) {
    let places = pattern.parts.iter().take_while(|part| **part != Part::Point);
    let width = places.filter(|part| matches!(part, Part::Nine | Part::Zero | Part::Comma)).count();
    let text = if pattern.before < 3 { "#".repeat(pattern.before) } else { "NaN".to_owned() };
    out.text(&if pattern.bare { text } else { format!("{text:>width$}", width = width + 1) });
}

/// The digits of a number in the places of a pattern.
struct Filling<'a> {
    pattern: &'a Pattern,
    negative: bool,
    /// Digits before the decimal point, without zeros in front, and after it.
    whole: &'a str,
    fraction: &'a str,
    /// The number has more digits than the pattern has places.
    overflow: bool,
    /// The place of the first digit, and the first that is written, before the decimal point.
    first_digit: usize,
    start: usize,
    /// Number of digits that are written after the decimal point.
    kept: usize,
    /// An `S` before all digits: the sign is directly before the first digit.
    sign_first: bool,
}

impl<'a> Filling<'a> {
    fn new(pattern: &'a Pattern, negative: bool, whole: &'a str, fraction: &'a str) -> Filling<'a> {
        let overflow = whole.len() > pattern.before;
        let is_zero = whole.is_empty() && fraction.bytes().all(|b| b == b'0');
        // The first place with a digit: the number's first, or the pattern's first zero.
        let first_zero = {
            let places = pattern.parts.iter().filter(|part| matches!(part, Part::Nine | Part::Zero));
            places.take(pattern.before).position(|part| *part == Part::Zero).unwrap_or(usize::MAX)
        };
        let first_digit = if overflow { 0 } else { pattern.before - whole.len() };
        let kept = if pattern.bare && !overflow { kept_digits(pattern, fraction) } else { fraction.len() };
        let mut start = first_digit.min(first_zero);
        // A zero before the decimal point is written if there would be no digit at all.
        if start >= pattern.before && pattern.before > 0 && kept == 0 {
            start = pattern.before - 1;
        }
        let sign_first = pattern.parts.iter().position(|part| *part == Part::Sign).is_some_and(|at| {
            pattern.parts[..at].iter().all(|part| !matches!(part, Part::Nine | Part::Zero | Part::Point))
        });
        let negative = negative && !is_zero;
        Filling { pattern, negative, whole, fraction, overflow, first_digit, start, kept, sign_first }
    }

    /// What stands directly before the first digit.
    fn sign(&self) -> Option<char> {
        let bare = self.pattern.bare;
        let has = |wanted: &[Part]| self.pattern.parts.iter().any(|part| wanted.contains(part));
        let own_sign = has(&[Part::Sign, Part::Minus, Part::PlusMinus, Part::Angles]);
        let angles = has(&[Part::Angles]);
        match (own_sign, self.negative) {
            (false, true) => Some('-'),
            (false, false) if !bare => Some(' '),
            _ if angles && self.negative => Some('<'),
            _ if angles && !bare => Some(' '),
            _ if self.sign_first => Some(self.plus_or_minus()),
            _ => None,
        }
    }

    fn plus_or_minus(&self) -> char {
        if self.negative { '-' } else { '+' }
    }

    /// The digit in a place before the decimal point.
    fn digit(&self, place: usize) -> char {
        match place {
            _ if self.overflow => '#',
            place if place >= self.first_digit => char::from(self.whole.as_bytes()[place - self.first_digit]),
            _ => '0',
        }
    }

    /// The digit in a place after the decimal point.
    fn fraction_digit(&self, place: usize) -> char {
        if self.overflow { '#' } else { char::from(self.fraction.as_bytes()[place]) }
    }

    /// Writes a mark, or a blank in its place if there is none, which `FM` leaves out.
    fn mark(&self, mark: char, is_there: bool, out: &mut Writer<'_>) {
        match is_there {
            true => out.char(mark),
            false if !self.pattern.bare => out.char(' '),
            false => {}
        }
    }

    fn write(&self, out: &mut Writer<'_>) {
        let mut sign = self.sign();
        let mut write_sign = |out: &mut Writer<'_>| sign.take().into_iter().for_each(|c| out.char(c));
        let (mut place, mut behind, mut pointed) = (0, 0, false);
        let mut last = String::new();
        for part in &self.pattern.parts {
            match part {
                Part::Nine | Part::Zero if pointed => {
                    if behind < self.kept {
                        out.char(self.fraction_digit(behind));
                    }
                    behind += 1;
                }
                Part::Nine | Part::Zero => {
                    if place >= self.start {
                        write_sign(out);
                        let digit = self.digit(place);
                        out.char(digit);
                        last.push(digit);
                    } else if !self.pattern.bare {
                        out.char(' ');
                    }
                    place += 1;
                }
                Part::Point => {
                    write_sign(out);
                    pointed = true;
                    out.char('.');
                }
                Part::Comma => self.mark(',', pointed || place > self.start, out),
                Part::Sign if self.sign_first => {}
                Part::Sign | Part::PlusMinus => out.char(self.plus_or_minus()),
                Part::Minus => self.mark('-', self.negative, out),
                Part::Plus => self.mark('+', !self.negative, out),
                Part::Angles => self.mark('>', self.negative, out),
                Part::Ordinal(upper) => {
                    if !self.negative && !self.overflow && self.pattern.behind == 0 {
                        out.text(ending(&last, *upper));
                    }
                }
                Part::Currency => self.mark(' ', false, out),
                Part::Shift | Part::Roman(_) | Part::Exponent => {}
                Part::Char(c) => out.char(*c),
            }
        }
    }
}

/// Number of digits after the decimal point that `FM` leaves: it drops trailing zeros, down to the last 0 of
/// the pattern.
fn kept_digits(pattern: &Pattern, fraction: &str) -> usize {
    let places = pattern.parts.iter().skip_while(|part| **part != Part::Point);
    let places: Vec<&Part> = places.filter(|part| matches!(part, Part::Nine | Part::Zero)).collect();
    let forced = places.iter().rposition(|part| **part == Part::Zero).map_or(0, |at| at + 1);
    fraction.trim_end_matches('0').len().max(forced)
}

fn ending(digits: &str, upper: bool) -> &'static str {
    let mut last = digits.bytes().rev();
    let (unit, ten) = (last.next(), last.next());
    let at = match (ten, unit) {
        (Some(b'1'), _) => 0,
        (_, Some(b'1')) => 1,
        (_, Some(b'2')) => 2,
        (_, Some(b'3')) => 3,
        _ => 0,
    };
    if upper { ["TH", "ST", "ND", "RD"][at] } else { ["th", "st", "nd", "rd"][at] }
}

fn write_exponent(number: &Number, pattern: &Pattern, out: &mut Writer<'_>) -> Result<()> {
    if pattern.parts.iter().any(|part| {
        matches!(part, Part::Sign | Part::Minus | Part::Plus | Part::PlusMinus | Part::Angles | Part::Shift)
    }) {
        return Err(Error::input("EEEE goes with digits and a point only"));
    }
    let behind = pattern.behind;
    let text = format!("{:.behind$e}", number.float());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !mantissa.starts_with('-') && !pattern.bare {
        out.char(' ');
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    out.text(&format!("{mantissa}e{sign}{:02}", exponent.abs()));
    Ok(())
}

fn write_roman(number: &Number, bare: bool, upper: bool, out: &mut Writer<'_>) -> Result<()> {
    const STEPS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let value = number.float().round();
    let mut text = String::new();
    if (1.0..4000.0).contains(&value) {
        let mut rest = value as u32;
        for (step, letters) in STEPS {
            while rest >= step {
                text.push_str(letters);
                rest -= step;
            }
        }
    } else {
        text = "#".repeat(15);
    }
    let text = if upper { text } else { text.to_lowercase() };
    out.text(&if bare { text } else { format!("{text:>15}") });
    Ok(())
}

// ---- reading ----------------------------------------------------------------------------------------------

/// Number of digits after the decimal point in a pattern, including those after a `V`.
pub(super) fn scale(pattern: &str) -> u8 {
    let pattern = parse(pattern);
    (pattern.behind + pattern.shift).min(38) as u8
}

/// Parses a number by a pattern, as an unscaled decimal of the given scale.
///
/// # Errors
/// Input, if there is no number, or it has too many digits.
pub(super) fn read(text: &str, pattern: &str, scale: u8) -> Result<i128> {
    let parsed = parse(pattern);
    if parsed.parts.iter().any(|part| matches!(part, Part::Roman(_) | Part::Exponent)) {
        return Err(Error::not_supported("RN and EEEE in to_number"));
    }
    let mismatch = || Error::input(format!("{text:?} does not fit the number pattern {pattern:?}"));
    let mut reader = Reader {
        rest: text.chars().peekable(),
        whole: String::new(),
        fraction: String::new(),
        negative: false,
        pointed: false,
    };
    parsed.parts.iter().for_each(|part| reader.read(*part));
    let Reader { mut whole, mut fraction, negative, .. } = reader;
    if whole.is_empty() && fraction.is_empty() {
        return Err(mismatch());
    }
    if parsed.shift > 0 {
        // The last places are after the decimal point.
        let at = whole.len().saturating_sub(parsed.shift);
        fraction = whole.split_off(at);
    }
    let zeros = usize::from(scale).saturating_sub(fraction.len());
    fraction.truncate(scale.into());
    let digits = format!("{whole}{fraction}{}", "0".repeat(zeros));
    let value: i128 = digits.parse().map_err(|_| mismatch())?;
    Ok(if negative { -value } else { value })
}

/// A text that is read, and the digits that were found before and after the decimal point.
struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
    whole: String,
    fraction: String,
    negative: bool,
    pointed: bool,
}

impl Reader<'_> {
    /// Takes what a part of the pattern stands for.
    fn read(&mut self, part: Part) {
        match part {
            Part::Nine | Part::Zero => {
                if self.whole.is_empty() && self.fraction.is_empty() {
                    self.sign();
                }
                if let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
                    let digits = if self.pointed { &mut self.fraction } else { &mut self.whole };
                    digits.push(digit);
                }
            }
            Part::Point => {
                self.pointed = true;
                // Skips digits for which the pattern has no places.
                self.rest.next_if_eq(&'.');
            }
            Part::Comma => {
                self.rest.next_if_eq(&',');
            }
            Part::Sign | Part::Minus | Part::Plus | Part::PlusMinus | Part::Angles => self.sign(),
            Part::Ordinal(_) => {
                self.rest.next();
                self.rest.next();
            }
            Part::Currency | Part::Char(_) => {
                self.rest.next_if(|c| !c.is_ascii_digit() && !matches!(c, '-' | '+' | '.'));
            }
            Part::Shift | Part::Roman(_) | Part::Exponent => {}
        }
    }

    /// Takes a sign, and the blanks in front of it.
    fn sign(&mut self) {
        while self.rest.next_if_eq(&' ').is_some() {}
        if let Some(sign) = self.rest.next_if(|c| matches!(c, '-' | '+' | '<')) {
            self.negative |= matches!(sign, '-' | '<');
        }
    }
}
