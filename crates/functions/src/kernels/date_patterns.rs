//! PostgreSQL's date patterns, which `to_char`, `to_date` and `to_timestamp` take.
//!
//! A pattern is split into fields, each with its modifiers (`FM`, `TH`), separators and text ([`parts`]).
//! [`super::to_char`] writes dates by them, and [`super::to_date`] reads them.

use Field as F;
use entasis_vector::value::days_from_civil;

/// A field of a pattern. The letter case of its keyword is kept separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    HalfDayDots,
    HalfDay,
    EraDots,
    Era,
    Century,
    DayName,
    DayShort,
    DayOfYear,
    DayOfIsoYear,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    Fraction(usize),
    Exact,
    Hour24,
    Hour12,
    IsoWeek,
    IsoYear(usize),
    Julian,
    Minute,
    Month,
    MonthName,
    MonthShort,
    Millisecond,
    Offset,
    Quarter,
    Roman,
    SecondOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone,
    Microsecond,
    Week,
    WeekOfMonth,
    Year(usize),
    YearWithComma,
}

/// Keywords in lower case; a keyword precedes those that are prefixes of it.
const FIELDS: &[(&str, Field)] = &[
    ("a.d.", F::EraDots),
    ("a.m.", F::HalfDayDots),
    ("ad", F::Era),
    ("am", F::HalfDay),
    ("b.c.", F::EraDots),
    ("bc", F::Era),
    ("cc", F::Century),
    ("day", F::DayName),
    ("ddd", F::DayOfYear),
    ("dd", F::Day),
    ("dy", F::DayShort),
    ("d", F::DayOfWeek),
    ("ff1", F::Fraction(1)),
    ("ff2", F::Fraction(2)),
    ("ff3", F::Fraction(3)),
    ("ff4", F::Fraction(4)),
    ("ff5", F::Fraction(5)),
    ("ff6", F::Fraction(6)),
    ("fx", F::Exact),
    ("hh24", F::Hour24),
    ("hh12", F::Hour12),
    ("hh", F::Hour12),
    ("iddd", F::DayOfIsoYear),
    ("id", F::IsoDayOfWeek),
    ("iw", F::IsoWeek),
    ("iyyy", F::IsoYear(4)),
    ("iyy", F::IsoYear(3)),
    ("iy", F::IsoYear(2)),
    ("i", F::IsoYear(1)),
    ("j", F::Julian),
    ("mi", F::Minute),
    ("mm", F::Month),
    ("month", F::MonthName),
    ("mon", F::MonthShort),
    ("ms", F::Millisecond),
    ("of", F::Offset),
    ("p.m.", F::HalfDayDots),
    ("pm", F::HalfDay),
    ("q", F::Quarter),
    ("rm", F::Roman),
    ("sssss", F::SecondOfDay),
    ("ssss", F::SecondOfDay),
    ("ss", F::Second),
    ("tzh", F::ZoneHour),
    ("tzm", F::ZoneMinute),
    ("tz", F::Zone),
    ("us", F::Microsecond),
    ("ww", F::Week),
    ("w", F::WeekOfMonth),
    ("y,yyy", F::YearWithComma),
    ("yyyy", F::Year(4)),
    ("yyy", F::Year(3)),
    ("yy", F::Year(2)),
    ("y", F::Year(1)),
];

/// The letter case of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    /// `Month`
    Capital,
    Lower,
}

/// A piece of a pattern.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Field {
        field: Field,
        case: Case,
        /// `FM`: no padding.
        bare: bool,
        /// `TH` or `th`: an ordinal.
        ordinal: Option<Case>,
    },
    /// A character that belongs to no keyword.
    Char {
        c: char,
        /// From a part in quotes.
        quoted: bool,
    },
}

/// Splits a pattern.
pub(super) fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let mut bare = false;
        let mut after = rest;
        // Prefixes: FM has an effect, TM concerns locales and has none here.
        while let Some(prefix) = ["FM", "fm", "TM", "tm"].into_iter().find(|prefix| after.starts_with(prefix))
        {
            bare |= prefix.eq_ignore_ascii_case("fm");
            after = &after[2..];
        }
        if let Some((field, case, length)) = keyword(after) {
            after = &after[length..];
            let ordinal = match after.get(..2) {
                Some("TH") => Some(Case::Upper),
                Some("th") => Some(Case::Lower),
                _ => None,
            };
            if ordinal.is_some() {
                after = &after[2..];
            }
            if after.starts_with("SP") || after.starts_with("sp") {
                after = &after[2..];
            }
            parts.push(Part::Field { field, case, bare, ordinal });
            rest = after;
            continue;
        }
        if bare {
            rest = after;
            continue;
        }
        if c == '"' {
            rest = &rest[1..];
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '"' => break,
                    '\\' if !rest.is_empty() => {
                        let c = rest.chars().next().unwrap_or('\\');
                        rest = &rest[c.len_utf8()..];
                        parts.push(Part::Char { c, quoted: true });
                    }
                    c => parts.push(Part::Char { c, quoted: true }),
                }
            }
            continue;
        }
        let c = if rest.starts_with("\\\"") {
            rest = &rest[1..];
            '"'
        } else {
            c
        };
        rest = &rest[c.len_utf8()..];
        parts.push(Part::Char { c, quoted: false });
    }
    parts
}

/// The keyword at the start, with its letter case and length.
fn keyword(text: &str) -> Option<(Field, Case, usize)> {
    FIELDS.iter().find_map(|&(name, field)| {
        let given = text.get(..name.len()).filter(|given| given.is_ascii())?;
        let capital = matches!(field, F::MonthName | F::MonthShort | F::DayName | F::DayShort);
        let case = if given == name {
            Case::Lower
        } else if given == name.to_ascii_uppercase() {
            Case::Upper
        } else if capital && given[1..] == name[1..] && given[..1] == name[..1].to_ascii_uppercase() {
            Case::Capital
        } else {
            return None;
        };
        Some((field, case, name.len()))
    })
}

/// Months in Roman numerals.
pub(super) const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The Monday of the first week of an ISO year.
pub(super) fn iso_start(year: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_their_longest() {
        let fields: Vec<Field> = parts("YYYYMonthDDDHH24")
            .into_iter()
            .filter_map(|part| match part {
                Part::Field { field, .. } => Some(field),
                Part::Char { .. } => None,
            })
            .collect();
        assert_eq!(fields, [F::Year(4), F::MonthName, F::DayOfYear, F::Hour24]);
    }
}
