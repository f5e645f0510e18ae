//! The settings under which the same tests are repeated: `tests/configs/*.conf`.
//!
//! ```text
//! # What this configuration looks for, in a sentence.
//! set chunk_size = 3
//! reopen
//! only slt/joins slt/queries: what else reads no join
//! skip slt/plan/explain.slt: plans name the number of chunks
//! ```
//! `reopen`: the database is in a file, and is closed and reopened before every statement
//! ([`crate::text_test`]). `only`: text tests outside these directories are skipped, since they would repeat
//! what other configurations show.
//!
//! A configuration must not change a result, only how it is computed. So every exception is a line with its
//! reason.

use std::path::{Path, PathBuf};

/// One configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The name of its file, without extension.
    pub name: String,
    /// The first comment.
    pub purpose: String,
    /// `SET` statements, run on each new connection.
    pub settings: Vec<String>,
    /// True if the database is in a file and is reopened again and again.
    pub reopens: bool,
    /// Directories below `tests/`; text tests elsewhere are skipped. Empty if all are run.
    pub only: Vec<String>,
    /// Paths below `tests/` that are skipped, with reasons.
    pub skips: Vec<(String, String)>,
}

impl Configuration {
    /// Reads the configuration `name`.
    ///
    /// # Panics
    /// If there is no such file or a line is invalid: the test fails with the reason.
    pub fn load(name: &str) -> Configuration {
        let path = tests_directory().join("configs").join(format!("{name}.conf"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Configuration::parse(name, &text)
            .unwrap_or_else(|line| panic!("{}: cannot read '{line}'", path.display()))
    }

    fn parse(name: &str, text: &str) -> Result<Configuration, String> {
        let (mut purpose, mut settings, mut skips) = (String::new(), Vec::new(), Vec::new());
        let (mut reopens, mut only) = (false, Vec::new());
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(comment) = line.strip_prefix('#') {
                if purpose.is_empty() {
                    purpose = comment.trim().to_string();
                }
            } else if line == "reopen" {
                reopens = true;
            } else if line.starts_with("set ") {
                settings.push(line.to_string());
            } else if let Some((directories, _)) =
                line.strip_prefix("only ").and_then(|rest| rest.split_once(": "))
            {
                only.extend(directories.split(' ').map(str::to_string));
            } else if let Some((path, reason)) =
                line.strip_prefix("skip ").and_then(|rest| rest.split_once(": "))
            {
                skips.push((path.trim().to_string(), reason.trim().to_string()));
            } else {
                return Err(line.to_string());
            }
        }
        Ok(Configuration { name: name.to_string(), purpose, settings, reopens, only, skips })
    }

    /// A new database in memory with a connection that has these settings.
    ///
    /// # Errors
    /// If a setting is refused.
    pub fn connect(&self) -> entasis::Result<(entasis::Database, entasis::Connection)> {
        let database = entasis::Database::in_memory(entasis::Config::default())?;
        let connection = database.connect();
        for setting in &self.settings {
            connection.execute(setting)?;
        }
        Ok((database, connection))
    }

    /// True if the text test `path`, below `tests/`, is run.
    pub fn runs(&self, path: &str) -> bool {
        let is_below = |directory: &String| Path::new(path).starts_with(directory);
        (self.only.is_empty() || self.only.iter().any(is_below))
            && !self.skips.iter().any(|(skip, _)| skip == path)
    }
}

/// The names of all configurations, sorted.
///
/// # Panics
/// If the directory cannot be read.
pub fn names() -> Vec<String> {
    files_below(&tests_directory().join("configs"), "conf")
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_string()))
        .collect()
}

/// The directory `tests/` of the repository, relative to a package, where Cargo runs tests. A compiled-in
/// path would be that of another clone with the same target directory.
pub fn tests_directory() -> PathBuf {
    PathBuf::from("../../tests")
}

/// All files below `directory` with this extension, sorted by path.
///
/// # Panics
/// If a directory cannot be read.
pub fn files_below(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|e| panic!("{}: {e}", directory.display())).path();
        if path.is_dir() {
            files.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_need_a_reason() {
        let read = Configuration::parse("x", "# Why.\nset threads = 1\nskip slt/a.slt: it counts chunks\n");
        let read = read.expect("well formed");
        assert_eq!((read.purpose.as_str(), read.settings.len()), ("Why.", 1));
        assert_eq!((read.runs("slt/a.slt"), read.runs("slt/b.slt")), (false, true));
        assert!(Configuration::parse("x", "skip slt/a.slt").is_err());
        assert!(Configuration::parse("x", "only slt/a").is_err());
    }

    #[test]
    fn others_directories_are_left_out() {
        let read = Configuration::parse("x", "only slt/a slt/b: no other reads it\nskip slt/b/2.slt: long");
        let read = read.expect("well formed");
        let runs = ["slt/a/1.slt", "slt/b/1.slt", "slt/b/2.slt", "slt/ab/1.slt"].map(|path| read.runs(path));
        assert_eq!(runs, [true, true, false, false]);
    }
}
