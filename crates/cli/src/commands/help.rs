//! `.help`: the list of commands.

use super::arguments::Call;
use super::{COMMANDS, DotCommand, Ran, find, say};
use crate::session::Session;
use crate::style::Style;

/// The width of what a command is called with, in the list.
const WIDTH: usize = 22;

/// `.help [COMMAND]`
pub(super) fn help(session: &mut Session, call: Call<'_>) -> Ran {
    let style = session.style();
    if let Some(only) = call.at_most_one()? {
        let command = find(only.trim_start_matches('.'))?;
        return say(session, line(command, style));
    }
    let list: String = COMMANDS.iter().map(|command| line(command, style)).collect();
    say(
        session,
        list + "\nCommands may be shortened as long as only one begins so. Statements end with a semicolon and \
                may run over\nseveral lines. Tab completes, Ctrl-R searches the history, Ctrl-C cancels. Files are \
                tables:\nFROM 'flights.parquet', FROM 'logs/*.csv'.\n",
    )
}

fn line(command: &DotCommand, style: Style) -> String {
    let usage = format!(".{} {}", command.name, command.arguments);
    let usage = usage.trim_end();
    let help = command.help;
    match usage.chars().count() <= WIDTH {
        true => format!("  {}  {help}\n", style.bold(format!("{usage:WIDTH$}"))),
        false => format!("  {}\n  {:WIDTH$}  {help}\n", style.bold(usage), ""),
    }
}
