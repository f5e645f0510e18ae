//! Files of other programs that are opened as databases: what they are, and what to do with them.

use entasis_vector::{Error, ErrorKind};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The error of opening the file at `path`, with a hint if it is a file of another kind that we know.
pub(crate) fn explained(error: Error, path: &Path) -> Error {
    if error.kind() != ErrorKind::Input || error.hint().is_some() {
        return error;
    }
    match hint(path) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn hint(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(64).read_to_end(&mut start).ok()?;
    let shown = path.display();
    let is_text = !start.is_empty() && start.iter().all(|byte| *byte >= b' ' || b"\t\r\n".contains(byte));
    Some(if start.starts_with(b"SQLite format 3\0") {
        "it is a database of SQLite: there, .mode csv and .output write its tables to files, and FROM 'file.csv' reads \
         them here"
            .to_owned()
    } else if start.get(8..12) == Some(b"DUCK") {
        "it is a database of DuckDB: EXPORT DATABASE 'directory' (FORMAT parquet) there, and FROM 'directory/table.parquet' \
         here"
            .to_owned()
    } else if start.starts_with(b"PAR1") {
        format!("it is a Parquet file: SELECT * FROM '{shown}' reads it")
    } else if start.starts_with(b"PK\x03\x04") {
        "it is an archive or a spreadsheet; save it as CSV".to_owned()
    } else if is_text {
        format!(
            "it is a text: SELECT * FROM read_csv('{shown}') reads CSV, and entasis -f {shown} runs a script"
        )
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_known() {
        let directory = std::env::temp_dir().join(format!("entasis-foreign-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("x");
        let write = |bytes: &[u8]| std::fs::write(&path, bytes).unwrap();
        for (start, part) in [
            (&b"SQLite format 3\0rest"[..], "SQLite"),
            (b"12345678DUCK", "DuckDB"),
            (b"PAR1...", "Parquet"),
            (b"PK\x03\x04...", "spreadsheet"),
            (b"a,b\n1,2\n", "read_csv"),
        ] {
            write(start);
            let error = crate::Database::open(&path, crate::Config::default()).err().unwrap();
            assert!(error.hint().unwrap().contains(part), "{error:?}");
            assert_eq!(std::fs::read(&path).unwrap(), start);
        }
        write(b"\0\x01");
        assert_eq!(hint(&path), None);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
