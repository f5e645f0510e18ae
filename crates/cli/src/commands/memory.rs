//! `.memory`: who has what memory of the database, as bars, and how much of the limit that is.
//!
//! The rows are those of `entasis_memory()`. In any mode but `table` they are written as other results are.

use super::arguments::Call;
use super::{Ran, say};
use crate::bars::{Bar, bars};
use crate::render::Mode;
use crate::run::screen;
use crate::session::Session;
use crate::style::Style;
use crate::words;
use std::cmp::Reverse;

/// The statement that asks for the rows.
const SQL: &str = "SELECT * FROM entasis_memory()";
/// The most lines with a bar; the last of them is for all that do not fit.
const LINES: usize = 20;

/// A row: owner, name, bytes, bytes of temporary files, the limit, and what it leaves.
type Held = (String, Option<String>, i64, i64, Option<i64>, Option<i64>);

/// `.memory`
pub(super) fn memory(session: &mut Session, call: Call<'_>) -> Ran {
    call.nothing()?;
    if session.look.mode != Mode::Table {
        return Ok(session.statement(SQL, call.line)?);
    }
    let rows: Vec<Held> = session.connection().query_as(SQL, ())?;
    let width = if session.out.is_terminal() { screen().1 } else { usize::MAX };
    let text = drawn(&rows, width, session.style());
    say(session, text)
}

/// A bar for each holder, the greatest first, and a line about the limit.
fn drawn(rows: &[Held], width: usize, style: Style) -> String {
    let mut held: Vec<&Held> = rows.iter().filter(|(_, _, bytes, ..)| *bytes != 0).collect();
    held.sort_by_key(|(_, _, bytes, ..)| Reverse(*bytes));
    let rest = if held.len() > LINES { held.split_off(LINES - 1) } else { Vec::new() };
    let bar = |labels: [&str; 2], bytes: i64| Bar {
        labels: labels.map(str::to_owned),
        figure: size(bytes),
        amount: bytes,
    };
    let mut all: Vec<Bar> = held
        .into_iter()
        .map(|(owner, name, bytes, ..)| bar([owner.as_str(), name.as_deref().unwrap_or_default()], *bytes))
        .collect();
    if !rest.is_empty() {
        let bytes: i64 = rest.iter().map(|(_, _, bytes, ..)| bytes).sum();
        let more = format!("{} more", rest.len());
        all.push(bar([more.as_str(), ""], bytes));
    }
    format!("{}{}\n", bars(&all, width, style), style.dim(in_use(rows)))
}

/// `93 MB of the memory_limit of 954 MB in use, 9.7 % · 40 MB in temporary files`
fn in_use(rows: &[Held]) -> String {
    let used: i64 = rows.iter().map(|(_, _, bytes, ..)| bytes).sum();
    let temporary: i64 = rows.iter().map(|(_, _, _, bytes, ..)| bytes).sum();
    let limit = rows.iter().find_map(|(.., limit, _)| *limit);
    let mut text = match limit {
        Some(limit) => {
            let percent = 100.0 * used as f64 / limit.max(1) as f64;
            format!("{} of the memory_limit of {} in use, {percent:.1} %", size(used), size(limit))
        }
        None => format!("{} in use; there is no memory_limit", size(used)),
    };
    if temporary > 0 {
        text += &format!(" · {} in temporary files", size(temporary));
    }
    text
}

/// A number of bytes, as people read it.
fn size(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", words::bytes(bytes.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(owner: &str, name: Option<&str>, bytes: i64, limit: Option<i64>) -> Held {
        let temporary = if owner == "temporary files" { 40 << 20 } else { 0 };
        (owner.to_owned(), name.map(str::to_owned), bytes, temporary, limit, None)
    }

    #[test]
    fn the_greatest_come_first_and_the_rest_is_summed() {
        let limit = Some(1000 << 20);
        let mut rows = vec![
            row("tables", Some("small"), 10 << 20, limit),
            row("tables", Some("orders"), 400 << 20, limit),
            row("other", None, 0, limit),
            row("temporary files", None, 0, limit),
        ];
        let text = drawn(&rows, 80, Style::PLAIN);
        let expected = format!(
            "tables  orders  400 MB  {}\ntables  small    10 MB  █\n\
             410 MB of the memory_limit of 1.0 GB in use, 41.0 % · 40 MB in temporary files\n",
            "█".repeat(40)
        );
        assert_eq!(text, expected);
        rows.extend((0..30).map(|number| row("indexes", Some(&format!("i{number}")), 1 << 20, limit)));
        let text = drawn(&rows, 80, Style::PLAIN);
        assert_eq!(text.lines().count(), LINES + 1);
        assert!(text.contains("13 more") && text.contains("440 MB of"), "{text}");
    }

    #[test]
    fn no_limit_and_nothing_in_use_are_said() {
        assert_eq!(
            drawn(&[row("other", None, 0, None)], 80, Style::PLAIN),
            "0 bytes in use; there is no memory_limit\n"
        );
        let over = [
            row("tables", Some("t"), 3 << 20, Some(1 << 20)),
            row("not charged", None, -(1 << 20), Some(1 << 20)),
        ];
        let text = drawn(&over, 80, Style::PLAIN);
        assert!(text.contains("not charged     -1.0 MB\n") && text.contains("2.0 MB of"), "{text}");
    }
}
