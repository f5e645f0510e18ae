//! Numbers, times and sizes as people read them, and times as people write them.

use std::time::Duration;

/// `1 row`, `12,345 rows`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text} {}", if n == 1 { one } else { many })
}

/// A duration in readable form: `0.4 ms`, `12 ms`, `3.2 s`.
pub fn duration(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
    }
}

/// A number of bytes: `17 bytes`, `2.0 KB`, `350 MB`.
pub fn bytes(n: u64) -> String {
    let mut size = n as f64;
    let mut units = ["KB", "MB", "GB", "TB"].iter();
    let mut unit = "bytes";
    while size >= 1000.0
        && let Some(next) = units.next()
    {
        (size, unit) = (size / 1024.0, next);
    }
    match unit {
        "bytes" => count(n, "byte", "bytes"),
        _ if size < 10.0 => format!("{size:.1} {unit}"),
        _ => format!("{size:.0} {unit}"),
    }
}

/// A time such as `500ms`, `5s`, `1.5min` or `2h`.
///
/// # Errors
/// What is wrong with it. A number needs its unit: other programs mean seconds or milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let factor = match text[digits..].trim() {
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "min" | "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let seconds = factor.and_then(|factor| Some(text[..digits].parse::<f64>().ok()? * factor));
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match time.filter(|time| !time.is_zero()) {
        Some(time) => Ok(time),
        None => Err(format!("'{text}' is not a time; write it as 500ms, 5s or 2min")),
    }
}

/// A number of rows, `all` of which is 0.
///
/// # Errors
/// What is wrong with it.
pub fn parse_rows(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(0),
        text => text.parse().map_err(|_| format!("takes a number of rows or all, not {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_times_and_sizes_read_well() {
        assert_eq!(count(1, "row", "rows"), "1 row");
        assert_eq!(count(1234567, "row", "rows"), "1,234,567 rows");
        assert_eq!(duration(Duration::from_micros(430)), "0.4 ms");
        assert_eq!(duration(Duration::from_millis(12)), "12 ms");
        assert_eq!(duration(Duration::from_millis(3210)), "3.2 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 05 s");
        assert_eq!(["17 bytes", "2.0 KB", "1.0 MB", "350 MB"], [17, 2048, 1 << 20, 350 << 20].map(bytes)[..]);
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(parse_duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_duration("1.5 min"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("100ms"), Ok(Duration::from_millis(100)));
        for wrong in ["", "5", "0s", "s", "-1s", "1e3s", "1 fortnight", "99999999999999999999h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_are_a_number_or_all() {
        assert_eq!((parse_rows("7"), parse_rows("all")), (Ok(7), Ok(0)));
        assert!(parse_rows("-1").is_err());
    }
}
