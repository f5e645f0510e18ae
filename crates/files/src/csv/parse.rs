//! Fast conversion of texts of the common types to values, for the usual notations only.

use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::days_from_civil;

/// `true` or `false`.
pub(super) fn boolean(text: &[u8]) -> Option<u8> {
    match text {
        text if text.eq_ignore_ascii_case(b"true") => Some(1),
        text if text.eq_ignore_ascii_case(b"false") => Some(0),
        _ => None,
    }
}

/// Up to 18 digits, with an optional minus sign.
#[inline]
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let magnitude = number(digits)?;
    Some(if negative { -magnitude } else { magnitude })
}

/// 1 to 18 digits.
#[inline]
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

/// Powers of ten that fit into 64 bits.
const POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// Digits with at most one point, and no more digits after it than the scale allows.
pub(super) fn decimal(text: &[u8], precision: u8, scale: u8) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let point = digits.iter().position(|&b| b == b'.');
    let (whole, fraction) = point.map_or((digits, &b""[..]), |at| (&digits[..at], &digits[at + 1..]));
    if fraction.len() > scale as usize || whole.len() + scale as usize > 18 || whole.is_empty() {
        return None;
    }
    let fraction_value = if fraction.is_empty() { 0 } else { number(fraction)? };
    let unit = POWERS[scale as usize];
    let magnitude = number(whole)? * unit + fraction_value * POWERS[scale as usize - fraction.len()];
    if magnitude >= POWERS[precision as usize] {
        return None;
    }
    Some(if negative { -magnitude } else { magnitude })
}

/// A finite float written in digits; the names of infinities and NaN are not accepted.
pub(super) fn float<T: std::str::FromStr + Copy + Into<f64>>(text: &[u8]) -> Option<T> {
    if !text.last().is_some_and(|last| last.is_ascii_digit() || *last == b'.') {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok().filter(|number: &T| (*number).into().is_finite())
}

/// `2024-02-29`, as days since 1970.
pub(super) fn date(text: &[u8]) -> Option<i64> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let year = number(&[*y1, *y2, *y3, *y4])?;
    let (month, day) = (number(&[*m1, *m2])?, number(&[*d1, *d2])?);
    let days_in_month = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (year > 0 && (1..=days_in_month).contains(&day)).then(|| days_from_civil(year, month as u32, day as u32))
}

/// `23:59:59`, with an optional fraction of up to six digits, as microseconds.
pub(super) fn time(text: &[u8]) -> Option<i64> {
    let (clock, fraction) = text.split_at_checked(8)?;
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    let micros = match fraction {
        [] => 0,
        [b'.', digits @ ..] if digits.len() <= 6 => number(digits)? * 10i64.pow(6 - digits.len() as u32),
        _ => return None,
    };
    (hour < 24 && minute < 60 && second < 60)
        .then_some(((hour * 60 + minute) * 60 + second) * 1_000_000 + micros)
}

/// A date, a blank or `T`, and a time, as microseconds since 1970.
pub(super) fn timestamp(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let [b' ' | b'T', clock @ ..] = rest else { return None };
    Some(date(day)? * MICROS_PER_DAY + time(clock)?)
}

/// A timestamp followed by its offset from UTC: `Z`, `+05`, `+0530` or `+05:30`.
pub(super) fn timestamp_tz(text: &[u8]) -> Option<i64> {
    // In the date, before the time, '-' separates numbers.
    let at = text.iter().skip(11).position(|b| matches!(b, b'Z' | b'+' | b'-'))? + 11;
    let sign = match &text[at..] {
        [b'Z'] => return timestamp(&text[..at]),
        [b'+', ..] => 1,
        _ => -1,
    };
    let (hour, minute) = match &text[at + 1..] {
        [h1, h2] => (number(&[*h1, *h2])?, 0),
        [h1, h2, m1, m2] | [h1, h2, b':', m1, m2] => (number(&[*h1, *h2])?, number(&[*m1, *m2])?),
        _ => return None,
    };
    let offset = (hour < 16 && minute < 60).then_some(sign * (hour * 60 + minute) * 60_000_000)?;
    Some(timestamp(&text[..at])? - offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_paths_read_what_they_know_and_nothing_else() {
        assert_eq!(integer(b"-42"), Some(-42));
        assert_eq!(
            (integer(b""), integer(b"-"), integer(b"4 2"), integer(b"1234567890123456789")),
            (None, None, None, None)
        );
        assert_eq!(decimal(b"-1.5", 15, 2), Some(-150));
        assert_eq!(
            (decimal(b"1.234", 15, 2), decimal(b"1000", 3, 0), decimal(b".5", 15, 2)),
            (None, None, None)
        );
        assert_eq!(date(b"1970-01-02"), Some(1));
        assert_eq!((date(b"2023-02-29"), date(b"2024-02-29")), (None, Some(19_782)));
        assert_eq!(timestamp(b"1970-01-01T00:00:01.5"), Some(1_500_000));
        assert_eq!(timestamp_tz(b"1970-01-01 01:00:00.5+01:00"), Some(500_000));
        assert_eq!(timestamp_tz(b"1970-01-01T00:00:01Z"), Some(1_000_000));
        assert_eq!(
            (timestamp_tz(b"1970-01-01 00:00:00"), timestamp_tz(b"1970-01-01 00:00:00+1")),
            (None, None)
        );
        assert_eq!((time(b"24:00:00"), timestamp(b"1970-01-01")), (None, None));
        assert_eq!(
            (float::<f64>(b"1e3"), float::<f64>(b"nan"), float::<f64>(b"-.5")),
            (Some(1000.0), None, Some(-0.5))
        );
        assert_eq!((float::<f64>(b"1e400"), float::<f32>(b"1e39")), (None, None));
    }
}
