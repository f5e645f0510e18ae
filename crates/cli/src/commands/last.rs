//! The last statement and its result: `.last`, `.x`, `.watch`, `.edit`.

use super::Ran;
use super::arguments::Call;
use crate::output::system;
use crate::render::{Look, Mode};
use crate::script;
use crate::session::{Failure, Outcome, Session};
use entasis::{Error, Result};
use std::path::Path;
use std::time::Duration;

/// `.last [-x]`: at the prompt, the last result again; all its rows, in the pager if they are many.
pub(super) fn last(session: &mut Session, call: Call<'_>) -> Ran {
    let look = match call.at_most_one()?.as_deref() {
        None => session.look.clone(),
        Some("-x") => vertical_look(session),
        Some(other) => return Err(call.error(format!("takes -x or nothing, not {other}")).into()),
    };
    session.show_last(&look)?;
    Ok(Outcome::Done)
}

/// `.x [SQL]`
pub(super) fn vertical(session: &mut Session, call: Call<'_>) -> Ran {
    let look = vertical_look(session);
    match call.text {
        "" => {
            session.show_last(&look)?;
            Ok(Outcome::Done)
        }
        sql => Ok(session.statement_in(sql, call.line, &look)?),
    }
}

fn vertical_look(session: &Session) -> Look {
    Look { mode: Mode::Line, ..session.look.clone() }
}

/// What runs again if nothing else is said.
fn last_statement(session: &Session) -> Result<String> {
    session.last.sql.clone().ok_or_else(|| Error::input("there is no last statement"))
}

/// `.watch SECONDS [TIMES] [SQL]`
pub(super) fn watch(session: &mut Session, call: Call<'_>) -> Ran {
    let wrong = || call.error("takes a number of seconds first");
    let (seconds, rest) = call.text.split_once(char::is_whitespace).unwrap_or((call.text, ""));
    let seconds: f64 = seconds.parse().map_err(|_| wrong())?;
    let pause = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    let rest = rest.trim_start();
    let (times, sql) = match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
        (first, after) if first.bytes().all(|byte| byte.is_ascii_digit()) && !first.is_empty() => {
            let times: u64 = first.parse().map_err(|_| call.error(format!("cannot run {first} times")))?;
            (times, after.trim_start())
        }
        _ => (u64::MAX, rest),
    };
    let sql = if sql.is_empty() { last_statement(session)? } else { sql.to_owned() };
    let interrupts = session.interrupts.clone();
    interrupts.guard(|| -> Ran {
        for turn in 0..times {
            // Ctrl-C is how it ends: no failure at the prompt, and the end of a script.
            if turn > 0 && !interrupts.wait(pause) {
                return Ok(match session.is_interactive {
                    true => Outcome::Done,
                    false => Outcome::Failed(Failure::Interrupted),
                });
            }
            let outcome = session.statement(&sql, call.line)?;
            if outcome != Outcome::Done {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Done)
    })
}

/// `.edit`
pub(super) fn edit(session: &mut Session, call: Call<'_>) -> Ran {
    call.nothing()?;
    let before = session.last.sql.clone().map_or(String::new(), |sql| sql + ";\n");
    let place = std::env::temp_dir().join(format!("entasis-{}.sql", std::process::id()));
    let failed = |error: std::io::Error| Error::io(place.display(), &error);
    std::fs::write(&place, &before).map_err(failed)?;
    let edited = edited(&place);
    let removed = std::fs::remove_file(&place);
    let text = edited?;
    removed.map_err(failed)?;
    if text.trim().is_empty() || text == before {
        return Ok(Outcome::Done);
    }
    session.edited = Some(text.trim().to_owned());
    Ok(session.run(&text)?)
}

/// What is in a file after the user has left the editor.
fn edited(path: &Path) -> Result<String> {
    let named = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let default = if cfg!(windows) { "notepad" } else { "vi" };
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or(default.to_owned());
    let failed = |error| Error::io(format!("'{editor}'"), &error);
    // The editor may have options of its own, so the shell takes it apart; the path is an argument.
    let mut command =
        if cfg!(windows) { std::process::Command::new(&editor) } else { system(&format!("{editor} \"$0\"")) };
    let status = command.arg(path).status().map_err(failed)?;
    if !status.success() {
        return Err(Error::input(format!("the editor '{editor}' ended with {status}; nothing was run"))
            .with_hint("$VISUAL or $EDITOR names another one"));
    }
    script::read(path).map_err(failed)
}
