//! Names of the parts of dates and times: `extract(part FROM …)`, `date_part('part', …)`.

use entasis_vector::expr::DatePart;

/// A date part by any of its names.
pub fn date_part(name: &str) -> Option<DatePart> {
    let name = name.to_ascii_lowercase();
    match &*name {
        "ms" => return Some(DatePart::Millisecond),
        "s" => return Some(DatePart::Second),
        _ => {}
    }
    Some(match name.trim_end_matches('s') {
        "millennium" | "millenium" | "millennia" | "mil" => DatePart::Millennium,
        "century" | "centurie" | "cent" | "c" => DatePart::Century,
        "decade" | "dec" => DatePart::Decade,
        "isoyear" => DatePart::IsoYear,
        "yearweek" => DatePart::YearWeek,
        "era" => DatePart::Era,
        "year" | "yr" | "y" => DatePart::Year,
        "quarter" | "qtr" => DatePart::Quarter,
        "month" | "mon" => DatePart::Month,
        "week" | "w" | "weekofyear" | "isoweek" => DatePart::Week,
        "day" | "d" | "dayofmonth" => DatePart::Day,
        "dow" | "dayofweek" | "weekday" => DatePart::DayOfWeek,
        "isodow" => DatePart::IsoDayOfWeek,
        "doy" | "dayofyear" => DatePart::DayOfYear,
        "hour" | "hr" | "h" => DatePart::Hour,
        "minute" | "min" | "m" => DatePart::Minute,
        "second" | "sec" => DatePart::Second,
        "millisecond" | "msec" => DatePart::Millisecond,
        "microsecond" | "u" | "usec" => DatePart::Microsecond,
        "epoch" => DatePart::Epoch,
        "julian" => DatePart::Julian,
        _ => return None,
    })
}
