//! Files and directories.

use std::path::{MAIN_SEPARATOR, Path};

/// Where a path is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// A text of SQL, whose quote is to be closed unless it is.
    Text {
        /// Whether the quote follows.
        is_closed: bool,
    },
    /// A dot command, without quotes.
    Command,
}

/// Files and directories whose path starts with `path`, which begins at byte `start`. After a file there is
/// nothing more to say; below a directory there is.
pub fn files(path: &str, start: usize, within: Within) -> (usize, Vec<String>) {
    let (directory, prefix) = match path.rfind(['/', MAIN_SEPARATOR]) {
        Some(at) => (&path[..=at], &path[at + 1..]),
        None => ("", path),
    };
    let Ok(entries) = Path::new(if directory.is_empty() { "." } else { directory }).read_dir() else {
        return (start, vec![]);
    };
    let mut found: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let shown = name.starts_with(prefix) && (!name.starts_with('.') || prefix.starts_with('.'));
            let path = format!("{directory}{name}");
            let (path, end) = match within {
                Within::Command => (path, ""),
                Within::Text { is_closed: true } => (path.replace('\'', "''"), ""),
                Within::Text { is_closed: false } => (path.replace('\'', "''"), "'"),
            };
            let end = if entry.path().is_dir() { "/" } else { end };
            shown.then(|| path + end)
        })
        .collect();
    found.sort();
    (start, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quote_is_closed_after_files_and_not_after_directories() {
        let found = |path, within| files(path, 0, within).1;
        let open = Within::Text { is_closed: false };
        assert_eq!(found("src/ma", open), ["src/main.rs'"]);
        assert_eq!(found("src/ma", Within::Text { is_closed: true }), ["src/main.rs"]);
        assert_eq!(found("src/ma", Within::Command), ["src/main.rs"]);
        assert_eq!(found("src/rend", open), ["src/render/"]);
        assert_eq!(found("no-such/", open), Vec::<String>::new());
    }
}
