//! Paths with `*`, `?`, `[…]` and `**` to lists of files.

use entasis_vector::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// The files that `pattern` names, sorted; at least one. A path without wildcards names itself, whether it is there or
/// not: opening it tells more.
///
/// # Errors
/// Input, if the pattern is malformed; I/O, if nothing matches or a directory cannot be read.
pub(super) fn expand(pattern: &str) -> Result<Vec<PathBuf>> {
    if !pattern.contains(['*', '?', '[']) || std::fs::exists(pattern).unwrap_or(false) {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let matches = ::glob::glob(pattern)
        .map_err(|e| Error::input(format!("'{pattern}' is not a path pattern: {} at {}", e.msg, e.pos)))?;
    let mut paths = Vec::new();
    for path in matches {
        let path = path.map_err(|e| Error::io(format!("'{}'", e.path().display()), e.error()))?;
        if path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(Error::new(ErrorKind::Io, format!("no file matches '{pattern}'")));
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_files::Directory;

    #[test]
    fn patterns_give_sorted_files() {
        let directory = Directory::new();
        let b = directory.write("b.csv", "");
        let a = directory.write("a.csv", "");
        directory.write("c.txt", "");
        assert_eq!(expand(&directory.path("*.csv")).unwrap(), [PathBuf::from(a), PathBuf::from(b)]);
        let error = expand(&directory.path("*.parquet")).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("*.parquet"));
        let odd = directory.write("[1].csv", "");
        assert_eq!(expand(&odd).unwrap(), [PathBuf::from(odd)]);
    }
}
