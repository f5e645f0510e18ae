//! Expands paths with `*`, `?`, `[ab]`, `{a,b}` and `**` to lists of files.
//!
//! Braces are expanded first, then each pattern is matched against the file system. `**` stands for any
//! number of directories, including none.

use entasis_vector::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// The most patterns to which one may expand.
const MOST_PATTERNS: usize = 10_000;
/// Bytes of the longest pattern: no path is longer.
const MOST_BYTES: usize = 4096;

/// The files that match `pattern`, sorted and without duplicates; at least one. A path without wildcards
/// stands for itself, even if it does not exist: opening it gives a better error.
///
/// # Errors
/// Input, if the pattern is malformed; I/O, if nothing matches or a directory cannot be read.
pub(super) fn expand(pattern: &str) -> Result<Vec<PathBuf>> {
    if !pattern.contains(['*', '?', '[', '{']) || std::fs::exists(pattern).unwrap_or(false) {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    if pattern.len() > MOST_BYTES {
        return Err(Error::input(format!("a path pattern of more than {MOST_BYTES} bytes")));
    }
    let mut paths = Vec::new();
    for mut one in braces(pattern)? {
        // The library matches only directories with a final `**`.
        if one.ends_with("/**") {
            one.push_str("/*");
        }
        let matches = ::glob::glob(&one).map_err(|e| {
            Error::input(format!("'{pattern}' is not a path pattern: {} at {}", e.msg, e.pos))
        })?;
        for path in matches {
            let path = path.map_err(|e| Error::io(format!("'{}'", e.path().display()), e.error()))?;
            if path.is_file() {
                paths.push(path);
            }
        }
    }
    if paths.is_empty() {
        return Err(Error::new(ErrorKind::Io, format!("no file matches '{pattern}'")));
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Patterns without braces, one for each combination of their alternatives: `{a,b}/{c,d}` yields four. Braces
/// without a comma, and unclosed ones, are ordinary text.
fn braces(pattern: &str) -> Result<Vec<String>> {
    let mut done = Vec::new();
    // The expanded prefix, and the rest of the pattern.
    let mut open = vec![(String::new(), pattern)];
    while let Some((mut settled, rest)) = open.pop() {
        match choice(rest) {
            None => {
                settled.push_str(rest);
                done.push(settled);
            }
            Some((start, parts, end)) => {
                settled.push_str(&rest[..start]);
                for part in parts.into_iter().rev() {
                    // An alternative may contain braces.
                    for inner in braces(part)? {
                        open.push((format!("{settled}{inner}"), &rest[end..]));
                    }
                }
            }
        }
        if done.len() + open.len() > MOST_PATTERNS {
            return Err(Error::input(format!("'{pattern}' stands for more than {MOST_PATTERNS} patterns")));
        }
    }
    Ok(done)
}

/// The first pair of braces in `text`: its start, its alternatives, and its end.
fn choice(text: &str) -> Option<(usize, Vec<&str>, usize)> {
    let start = text.find('{')?;
    let (mut depth, mut part, mut parts) = (0, start + 1, Vec::new());
    for (at, c) in text[start..].char_indices().map(|(at, c)| (start + at, c)) {
        match c {
            '{' => depth += 1,
            ',' if depth == 1 => {
                parts.push(&text[part..at]);
                part = at + 1;
            }
            '}' if depth == 1 => {
                parts.push(&text[part..at]);
                return match parts.len() {
                    1 => choice(&text[at + 1..])
                        .map(|(start, parts, end)| (start + at + 1, parts, end + at + 1)),
                    _ => Some((start, parts, at + 1)),
                };
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::Directory;

    #[test]
    fn patterns_give_sorted_files() {
        let directory = Directory::new();
        let b = directory.write("b.csv", "");
        let a = directory.write("a.csv", "");
        let c = directory.write("c.txt", "");
        let files = |pattern: &str| expand(&directory.path(pattern)).unwrap();
        assert_eq!(files("*.csv"), [&a, &b].map(PathBuf::from));
        assert_eq!(files("[bc].*"), [&b, &c].map(PathBuf::from));
        assert_eq!(files("{c.txt,a.csv,none.csv}"), [&a, &c].map(PathBuf::from));
        assert_eq!(files("{a,?}.{csv,tsv}"), [&a, &b].map(PathBuf::from));
        let error = expand(&directory.path("*.parquet")).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("*.parquet"));
        let odd = directory.write("[1].csv", "");
        assert_eq!(expand(&odd).unwrap(), [PathBuf::from(odd)]);
    }

    #[test]
    fn two_stars_are_any_number_of_directories() {
        let directory = Directory::new();
        std::fs::create_dir_all(directory.path("x/y")).unwrap();
        let [a, b, c] =
            ["a.csv", "x/b.csv", "x/y/c.csv"].map(|name| PathBuf::from(directory.write(name, "")));
        assert_eq!(expand(&directory.path("**/*.csv")).unwrap(), [a.clone(), b.clone(), c.clone()]);
        assert_eq!(expand(&directory.path("**")).unwrap(), [a, b, c]);
    }

    #[test]
    fn braces_are_choices() {
        assert_eq!(braces("a{b,c{d,e}}f").unwrap().len(), 3);
        assert_eq!(braces("{a}").unwrap(), ["{a}"]);
        assert_eq!(braces("{a}{b,}").unwrap().len(), 2);
        assert_eq!(braces("{a,b").unwrap(), ["{a,b"]);
        assert!(braces(&"{a,b}".repeat(20)).is_err());
    }
}
