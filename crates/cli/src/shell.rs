//! The prompt: reads, runs and shows statements until the user leaves.

use crate::editor::Editor;
use crate::script;
use crate::session::{Outcome, Session};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config};
use std::io;
use std::path::PathBuf;

/// Reads statements from the terminal and runs them.
///
/// # Errors
/// Those of the terminal.
pub fn run(session: &mut Session, database: &str) -> io::Result<()> {
    let style = session.style();
    writeln!(session.out(), "Entasis {} · {database} · .help for help", env!("CARGO_PKG_VERSION"))?;
    session.out().flush()?;

    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(false)
        .history_ignore_dups(true)
        .and_then(|builder| builder.max_history_size(10_000))
        .map_err(io::Error::other)?
        .build();
    let mut editor =
        rustyline::Editor::<Editor, DefaultHistory>::with_config(config).map_err(io::Error::other)?;
    editor.set_helper(Some(Editor::new(session.connection().clone(), style)));
    let history = history_file();
    if let Some(path) = &history {
        // If there is no history file, there is no history yet.
        let _ = editor.load_history(path);
    }

    let prompt = ("entasis> ", style.bold("entasis> "));
    loop {
        match editor.readline(&prompt) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                let _ = editor.add_history_entry(text.trim());
                if let Some(path) = &history {
                    let _ = editor.append_history(path);
                }
                if run_text(session, &text)? == Outcome::Quit {
                    return Ok(());
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

fn run_text(session: &mut Session, text: &str) -> io::Result<Outcome> {
    match text.trim() {
        "help" => session.command("help"),
        word if script::is_plain_command(word) => Ok(Outcome::Quit),
        _ => session.run(text),
    }
}

/// Where the history is kept; `None` if there is no place for it. Creates the directory.
fn history_file() -> Option<PathBuf> {
    let directory = data_directory()?.join("entasis");
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("history"))
}

/// The directory for the user's data, by the conventions of the system.
fn data_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if cfg!(windows) {
        return variable("APPDATA");
    }
    let home = variable("HOME");
    if cfg!(target_os = "macos") {
        return home.map(|home| home.join("Library/Application Support"));
    }
    variable("XDG_DATA_HOME").or_else(|| home.map(|home| home.join(".local/share")))
}
