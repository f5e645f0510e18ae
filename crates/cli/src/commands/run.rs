//! Scripts, other programs, another database, and the end: `.read`, `.shell`, `.cd`, `.open`, `.echo`,
//! `.bail`, `.quit`.

use super::Ran;
use super::arguments::Call;
use super::results::switch;
use crate::open::{Mistyped, Opener, mistyped};
use crate::output::system;
use crate::session::{Fault, Outcome, Session};
use entasis::{Error, ErrorKind};
use std::io::Write;
use std::path::{Path, PathBuf};

/// `.read FILE`
pub(super) fn read(session: &mut Session, call: Call<'_>) -> Ran {
    let path = call.one("a file")?;
    Ok(session.run_file(Path::new(&path), call.line)?)
}

/// `.shell CMD`
pub(super) fn shell(session: &mut Session, call: Call<'_>) -> Ran {
    if call.text.is_empty() {
        return Err(call.error("takes a command of the system").into());
    }
    session.out.flush()?;
    let failed = |error| Error::io(format!("'{}'", call.text), &error);
    let status = system(call.text).status().map_err(failed)?;
    match status.success() {
        true => Ok(Outcome::Done),
        false => Err(Error::new(ErrorKind::Io, format!("'{}' ended with {status}", call.text)).into()),
    }
}

/// `.cd DIR`
pub(super) fn cd(_: &mut Session, call: Call<'_>) -> Ran {
    let directory = call.one("a directory")?;
    std::env::set_current_dir(&directory).map_err(|error| Error::io(format!("'{directory}'"), &error))?;
    Ok(Outcome::Done)
}

/// `.open [--readonly] [FILE]`
pub(super) fn open(session: &mut Session, call: Call<'_>) -> Ran {
    let mut read_only = false;
    let mut path = None;
    for word in call.words()? {
        match word.as_str() {
            "--readonly" | "--read-only" => read_only = true,
            option if option.starts_with("--") => {
                return Err(call.error(format!("has no option {option}")).into());
            }
            ":memory:" => {}
            file if path.is_none() => path = Some(PathBuf::from(file)),
            more => return Err(call.error(format!("takes one file; {more} is too much")).into()),
        }
    }
    if read_only && path.is_none() {
        return Err(call.error("needs a file to open read-only").into());
    }
    let read_only = read_only || (session.opener.read_only && path.is_some());
    let opener = Opener { read_only, ..session.opener.clone() };
    if session.connection().in_transaction() {
        return Err(Error::input("a transaction is open").with_hint("COMMIT or ROLLBACK ends it").into());
    }
    match path.as_deref().and_then(|path| mistyped(path, &[])) {
        Some(Mistyped::Statement(error)) => return Err(error.into()),
        Some(Mistyped::Word(error)) => return Err(Fault::Open(error)),
        None => {}
    }
    // The database that is open stays so if the other one cannot be opened.
    let database = opener.open(path.as_deref()).map_err(Fault::Open)?;
    session.connect(database.connect(), path);
    Ok(Outcome::Done)
}

/// `.echo [on|off]`
pub(super) fn echo(session: &mut Session, call: Call<'_>) -> Ran {
    switch(session, call, |session| &mut session.switches.echo)
}

/// `.bail [on|off]`
pub(super) fn bail(session: &mut Session, call: Call<'_>) -> Ran {
    switch(session, call, |session| &mut session.switches.bail)
}

/// `.quit`
pub(super) fn quit(_: &mut Session, call: Call<'_>) -> Ran {
    call.nothing()?;
    Ok(Outcome::Quit)
}
