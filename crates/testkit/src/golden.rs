//! Golden files: the expected output of tests, kept under `tests/` and reviewed by people.
//!
//! `ENTASIS_BLESS=1` rewrites them with the present output of the tests; the change is then visible in the
//! diff.

use crate::configuration::tests_directory;

/// Compares `text` with the file `path` below `tests/`.
///
/// # Errors
/// A message with the first line that differs.
pub fn check(path: &str, text: &str) -> Result<(), String> {
    let file = tests_directory().join(path);
    let found = format!("{}\n", text.trim_end());
    if std::env::var_os("ENTASIS_BLESS").is_some() {
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory).map_err(|e| format!("{path}: {e}"))?;
        }
        return std::fs::write(&file, found).map_err(|e| format!("{path}: {e}"));
    }
    let expected = std::fs::read_to_string(&file)
        .map_err(|e| format!("{path}: {e}. ENTASIS_BLESS=1 writes it; look at what it wrote."))?;
    first_difference(&expected, &found).map_or(Ok(()), |(line, expected, found)| {
        Err(format!(
            "{path}, line {line}\n  expected: {expected}\n  found:    {found}\nENTASIS_BLESS=1 accepts the new text."
        ))
    })
}

fn first_difference(expected: &str, found: &str) -> Option<(usize, String, String)> {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    for line in 1.. {
        match (expected.next(), found.next()) {
            (None, None) => break,
            (e, f) if e == f => {}
            (e, f) => {
                return Some((line, e.unwrap_or("(end)").to_string(), f.unwrap_or("(end)").to_string()));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b".into(), "c".into())));
        assert_eq!(first_difference("a\n", "a\nc\n"), Some((2, "(end)".into(), "c".into())));
    }
}
