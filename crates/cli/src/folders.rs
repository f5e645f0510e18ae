//! Where files of the user are: the history, and `init.sql`, by the conventions of the system.

use std::path::PathBuf;

/// The file of the history; `None` if there is no place for it. Creates its directory.
pub fn history() -> Option<PathBuf> {
    let directory = folder("XDG_DATA_HOME", ".local/share")?;
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("history"))
}

/// The file of statements that run before the first prompt, if there is one.
pub fn init() -> Option<PathBuf> {
    Some(folder("XDG_CONFIG_HOME", ".config")?.join("init.sql")).filter(|path| path.is_file())
}

/// Our directory below that of a variable, or else below one of the user's.
fn folder(name: &str, default: &str) -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let in_home = |path: &str| variable("HOME").map(|home| home.join(path));
    let above = if cfg!(windows) {
        variable("APPDATA")
    } else if cfg!(target_os = "macos") {
        in_home("Library/Application Support")
    } else {
        variable(name).or_else(|| in_home(default))
    };
    Some(above?.join("entasis"))
}
