//! The prompt: reads, runs and shows statements until the user leaves.
//!
//! The prompt is the name of the database, with a star while a transaction is open: `my.db> `, `my.db*> `.

use crate::editor::{Editor, Enter};
use crate::folders;
use crate::script;
use crate::session::{Outcome, Session};
use crate::style::Style;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{ColorMode, CompletionType, Config, Event, EventHandler, KeyCode, KeyEvent, Modifiers};
use std::io;

/// Reads statements from the terminal and runs them; first those of `init.sql`, if `no_init` is not set.
///
/// # Errors
/// Those of the terminal.
pub fn run(session: &mut Session, no_init: bool) -> io::Result<()> {
    session.is_interactive = true;
    let database =
        session.database.as_ref().map_or("in memory".to_owned(), |path| path.display().to_string());
    writeln!(session.out(), "Entasis {} · {database} · .help for help", env!("CARGO_PKG_VERSION"))?;
    session.out().flush()?;
    if let Some(init) = folders::init().filter(|_| !no_init)
        && session.run_file(&init, 1)? == Outcome::Quit
    {
        return Ok(());
    }

    let config = Config::builder()
        .completion_type(CompletionType::List)
        // Without colours, the marks of later lines are shown by the highlighter, too.
        .color_mode(ColorMode::Forced)
        .auto_add_history(false)
        .history_ignore_dups(true)
        .and_then(|builder| builder.max_history_size(10_000))
        .map_err(io::Error::other)?
        .build();
    let mut editor =
        rustyline::Editor::<Editor, DefaultHistory>::with_config(config).map_err(io::Error::other)?;
    editor.set_helper(Some(Editor::new(session.connection().clone(), Style::new(true))));
    // A terminal sends the one for the key, and a paste may have the other.
    for key in [KeyEvent(KeyCode::Enter, Modifiers::NONE), KeyEvent::ctrl('J')] {
        editor.bind_sequence(Event::from(key), EventHandler::Conditional(Box::new(Enter)));
    }
    let history = folders::history();
    if let Some(path) = &history {
        // If there is no history file, there is no history yet.
        let _ = editor.load_history(path);
    }

    loop {
        let prompt = prompt(session);
        if let Some(helper) = editor.helper_mut() {
            helper.prepare(session.connection(), prompt.chars().count());
        }
        let remember = |editor: &mut rustyline::Editor<Editor, DefaultHistory>, text: &str| {
            let _ = editor.add_history_entry(text.trim());
            if let Some(path) = &history {
                let _ = editor.append_history(path);
            }
        };
        let painted = Style::new(true).bold(&prompt);
        match editor.readline(&(prompt, painted)) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                remember(&mut editor, &text);
                // From here on Ctrl-C does not end the shell.
                let outcome = session.interrupts.clone().guard(|| run_text(session, &text))?;
                if let Some(edited) = session.edited.take() {
                    remember(&mut editor, &edited);
                }
                if outcome == Outcome::Quit {
                    return Ok(());
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

/// The prompt of a session.
fn prompt(session: &Session) -> String {
    let name = session.database.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    let name: String = name.as_deref().unwrap_or("entasis").chars().filter(|c| !c.is_control()).collect();
    let state = if session.connection().in_transaction() { "*" } else { "" };
    format!("{name}{state}> ")
}

fn run_text(session: &mut Session, text: &str) -> io::Result<Outcome> {
    match text.trim() {
        "help" => session.command("help", 1),
        word if script::is_plain_command(word) => Ok(Outcome::Quit),
        _ => session.run(text),
    }
}
