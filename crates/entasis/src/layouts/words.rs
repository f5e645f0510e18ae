//! Numbers as people read them.

/// A time given in nanoseconds, with three digits: `1.48 us`.
pub(super) fn time(nanoseconds: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let (size, unit) = units.into_iter().find(|(size, _)| nanoseconds >= *size).unwrap_or((1.0, "ns"));
    let number = nanoseconds / size;
    let digits = match number {
        number if unit == "ns" || number >= 99.95 => 0,
        number if number >= 9.995 => 1,
        _ => 2,
    };
    let written = format!("{number:.digits$}");
    let short = if digits > 0 { written.trim_end_matches('0').trim_end_matches('.') } else { &written };
    format!("{short} {unit}")
}

/// A number, with commas between thousands.
pub(super) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many things, which have this name if there is one of them.
pub(super) fn counted(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        many => format!("{} {}", count(many), plural(one)),
    }
}

fn plural(one: &str) -> String {
    match one.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{one}s"),
    }
}

/// A share in percent, with a digit if it is small.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 && percent.fract() != 0.0 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (nanoseconds, written) in [
            (0.0, "0 ns"),
            (7.4, "7 ns"),
            (999.4, "999 ns"),
            (1000.0, "1 us"),
            (1480.0, "1.48 us"),
            (42_360.0, "42.4 us"),
            (132_000.0, "132 us"),
            (2.5e6, "2.5 ms"),
            (3.21e10, "32.1 s"),
        ] {
            assert_eq!(time(nanoseconds), written);
        }
        assert_eq!([count(7), count(1000), count(123_456_789)], ["7", "1,000", "123,456,789"]);
        assert_eq!([counted(1, "slice"), counted(2, "point query")], ["1 slice", "2 point queries"]);
        assert_eq!([percent(0.01), percent(0.0123), percent(0.5)], ["1%", "1.2%", "50%"]);
    }
}
