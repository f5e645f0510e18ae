//! How results are written, and where: `.mode`, `.headers`, `.output` and so on. Without an argument they say
//! what is set; `.show` says all of it.

use super::arguments::Call;
use super::{Ran, say};
use crate::output::Destination;
use crate::render::{Look, Mode};
use crate::session::{Outcome, Session};
use crate::words::parse_rows;
use clap::ValueEnum;
use entasis::{Error, Result};

/// `.mode [MODE [TABLE]]`
pub(super) fn mode(session: &mut Session, call: Call<'_>) -> Ran {
    let words = call.words()?;
    let [mode, rest @ ..] = words.as_slice() else {
        return say(session, format!("{} (of {})\n", name_of(session.look.mode), Mode::NAMES.join(", ")));
    };
    let chosen = Mode::from_str(mode, true).map_err(|_| {
        Error::input(format!("there is no mode {mode}"))
            .with_hint(format!("the modes are {}", Mode::NAMES.join(", ")))
    })?;
    match rest {
        [] => {}
        [table] if chosen == Mode::Insert => session.look.table.clone_from(table),
        [_, more, ..] if chosen == Mode::Insert => {
            return Err(call.error(format!("insert takes one table; {more} is too much")).into());
        }
        [more, ..] => return Err(call.error(format!("{mode} takes no argument {more}")).into()),
    }
    session.look.mode = chosen;
    Ok(Outcome::Done)
}

fn name_of(mode: Mode) -> String {
    mode.to_possible_value().expect("no mode is hidden").get_name().to_owned()
}

/// Sets what `switch` finds to on or off; without an argument, says what it is.
pub(super) fn switch(session: &mut Session, call: Call<'_>, switch: fn(&mut Session) -> &mut bool) -> Ran {
    match call.on_or_off()? {
        Some(on) => {
            *switch(session) = on;
            Ok(Outcome::Done)
        }
        None => {
            let is_on = *switch(session);
            say(session, format!("{}: {}\n", call.name, on_off(is_on)))
        }
    }
}

fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// `.headers [on|off]`
pub(super) fn headers(session: &mut Session, call: Call<'_>) -> Ran {
    switch(session, call, |session| &mut session.look.headers)
}

/// `.pager [on|off]`
pub(super) fn pager(session: &mut Session, call: Call<'_>) -> Ran {
    switch(session, call, |session| &mut session.switches.pager)
}

/// `.timer [on|off]`
pub(super) fn timer(session: &mut Session, call: Call<'_>) -> Ran {
    switch(session, call, |session| &mut session.switches.timer)
}

/// `.stats [on|off]`
pub(super) fn stats(session: &mut Session, call: Call<'_>) -> Ran {
    switch(session, call, |session| &mut session.switches.stats)
}

/// `.nullvalue [TEXT]`
pub(super) fn null_value(session: &mut Session, call: Call<'_>) -> Ran {
    match call.at_most_one()? {
        None => say(session, format!("nullvalue: {}\n", shown(session.look.null.as_deref()))),
        Some(text) => {
            session.look.null = Some(text).filter(|text| text != "-");
            Ok(Outcome::Done)
        }
    }
}

/// `.separator [TEXT]`
pub(super) fn separator(session: &mut Session, call: Call<'_>) -> Ran {
    match call.at_most_one()? {
        None => say(session, format!("separator: {}\n", shown(session.look.separator.as_deref()))),
        Some(text) if text.is_empty() => Err(call.error("takes at least one character").into()),
        Some(text) => {
            session.look.separator = Some(unescaped(&text)).filter(|_| text != "-");
            Ok(Outcome::Done)
        }
    }
}

/// A text with `\t`, `\n` and `\\` as what they stand for.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let stands_for = match (c, chars.peek()) {
            ('\\', Some('t')) => '\t',
            ('\\', Some('n')) => '\n',
            ('\\', Some('\\')) => '\\',
            (other, _) => {
                out.push(other);
                continue;
            }
        };
        chars.next();
        out.push(stands_for);
    }
    out
}

fn shown(text: Option<&str>) -> String {
    text.map_or("as the mode has it".to_owned(), |text| format!("'{}'", text.escape_default()))
}

/// `.maxrows [N|all]`
pub(super) fn max_rows(session: &mut Session, call: Call<'_>) -> Ran {
    match call.at_most_one()? {
        None => say(session, format!("maxrows: {}\n", rows(&session.look))),
        Some(text) => {
            session.look.max_rows = Some(parse_rows(&text).map_err(|error| call.error(error))?);
            Ok(Outcome::Done)
        }
    }
}

fn rows(look: &Look) -> String {
    match look.max_rows {
        None => "40 on a terminal, all elsewhere".to_owned(),
        Some(0) => "all".to_owned(),
        Some(rows) => rows.to_string(),
    }
}

/// Where a command wants results to go.
fn destination(call: Call<'_>) -> Result<Option<Destination>> {
    let text = match call.text.starts_with('|') {
        true => call.text.to_owned(),
        false => call.at_most_one()?.unwrap_or_default(),
    };
    match text.as_str() {
        "" | "-" => Ok(None),
        text => Destination::parse(text).map(Some),
    }
}

/// `.output [FILE or | CMD]`
pub(super) fn output(session: &mut Session, call: Call<'_>) -> Ran {
    let to = destination(call)?;
    session.out.redirect(to)?;
    Ok(Outcome::Done)
}

/// `.once FILE or | CMD`
pub(super) fn once(session: &mut Session, call: Call<'_>) -> Ran {
    let to = destination(call)?.ok_or_else(|| call.error("takes a file, or | and a command"))?;
    session.out.once(to)?;
    Ok(Outcome::Done)
}

/// `.print TEXT`
pub(super) fn print(session: &mut Session, call: Call<'_>) -> Ran {
    let is_quoted = call.text.starts_with(['\'', '"']) && call.words().is_ok_and(|words| words.len() == 1);
    let text = if is_quoted { call.words()?.concat() } else { call.text.to_owned() };
    say(session, text + "\n")
}

/// `.show`
pub(super) fn show(session: &mut Session, call: Call<'_>) -> Ran {
    call.nothing()?;
    let (look, switches) = (&session.look, session.switches);
    let database = session.database.as_ref().map_or("in memory".into(), |path| path.display().to_string());
    let mode = match look.mode {
        Mode::Insert => format!("insert {}", look.table),
        mode => name_of(mode),
    };
    let lines = [
        ("bail", on_off(switches.bail).to_owned()),
        ("database", database),
        ("echo", on_off(switches.echo).to_owned()),
        ("headers", on_off(look.headers).to_owned()),
        ("maxrows", rows(look)),
        ("mode", mode),
        ("nullvalue", shown(look.null.as_deref())),
        ("output", session.out.described()),
        ("pager", on_off(switches.pager).to_owned()),
        ("separator", shown(look.separator.as_deref())),
        ("stats", on_off(switches.stats).to_owned()),
        ("timer", on_off(switches.timer).to_owned()),
    ];
    let text: String = lines.iter().map(|(name, value)| format!("{name:>9}: {value}\n")).collect();
    say(session, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_written_with_escapes() {
        assert_eq!(unescaped("\\t"), "\t");
        assert_eq!(unescaped("a\\\\t\\n\\x\\"), "a\\t\n\\x\\");
    }
}
