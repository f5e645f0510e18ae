//! The options with which a database is opened.

use crate::state::machine;
use entasis_engine::exec::{Progress, Settings};
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// How a database is opened, and its limits; `SET` changes each limit later.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Number of workers of a statement, including the calling thread. Defaults to the number of cores.
    pub threads: usize,
    /// Bytes that tables, statements and results may use together. Defaults to 80 % of the memory of
    /// the machine, or of the container.
    pub memory_limit: usize,
    /// Opens the database read-only: its file must exist, and another process may write to it meanwhile. By
    /// default this process alone opens it, for writing.
    pub read_only: bool,
    /// Opens a database whose log is lost, though it was not closed, with the state of its last checkpoint:
    /// what was committed since is not there any more. By default that is an error. It makes no difference if
    /// there is a log.
    pub allow_missing_log: bool,
    /// Progress of opening the file, for a progress bar: the share that has been read.
    pub opening: Option<Arc<Progress>>,
    /// Called when the database has been idle for more than a second. For an allocator that keeps freed
    /// memory until the next allocation.
    pub when_idle: Option<fn()>,
    /// Called when a statement has failed because the memory limit was reached. For an allocator that keeps
    /// freed memory, so that the process holds no more than the limit.
    pub when_short: Option<fn()>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            threads: Settings::default().threads,
            memory_limit: machine::memory().map_or(usize::MAX, |bytes| bytes / 10 * 8),
            read_only: false,
            allow_missing_log: false,
            opening: None,
            when_idle: None,
            when_short: None,
        }
    }
}

/// Options one after another.
///
/// ```
/// use entasis::{Config, Database};
///
/// let config = Config::new().with_threads(2).with_memory_limit(512 << 20);
/// let connection = Database::in_memory(config)?.connect();
/// assert_eq!(connection.query_row_as::<String>("SHOW memory_limit", ())?, "536.9 MB");
/// # Ok::<(), entasis::Error>(())
/// ```
impl Config {
    /// The defaults: all cores, and 80 % of the machine's memory.
    pub fn new() -> Config {
        Config::default()
    }

    /// The same with so many workers of a statement, including the calling thread; at least one.
    pub fn with_threads(self, threads: usize) -> Config {
        Config { threads: threads.max(1), ..self }
    }

    /// The same with so many bytes that tables, statements and results may use together.
    pub fn with_memory_limit(self, bytes: usize) -> Config {
        Config { memory_limit: bytes, ..self }
    }

    /// The same, opening the database read-only or not.
    pub fn with_read_only(self, read_only: bool) -> Config {
        Config { read_only, ..self }
    }

    /// The same, opening a database whose log is lost or not ([`Config::allow_missing_log`]).
    pub fn with_missing_log_allowed(self, allowed: bool) -> Config {
        Config { allow_missing_log: allowed, ..self }
    }

    /// The same, calling a function when the database is idle ([`Config::when_idle`]).
    pub fn with_when_idle(self, call: fn()) -> Config {
        Config { when_idle: Some(call), ..self }
    }

    /// The same, calling a function when the memory limit was reached ([`Config::when_short`]).
    pub fn with_when_short(self, call: fn()) -> Config {
        Config { when_short: Some(call), ..self }
    }
}

impl Config {
    /// Sets an option by its SQL name, as `connect(database, threads=2)` in Python does.
    ///
    /// # Errors
    /// Input, if there is no such option or the value is not valid for it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "threads" => self.threads = parse_threads(value)?,
            "memory_limit" => self.memory_limit = parse_bytes(value)?,
            "read_only" => self.read_only = parse_flag(name, value)?,
            "allow_missing_log" => self.allow_missing_log = parse_flag(name, value)?,
            other => {
                return Err(Error::input(format!("there is no option '{other}'"))
                    .with_hint("the options are threads, memory_limit, read_only and allow_missing_log"));
            }
        }
        Ok(())
    }
}

/// A truth value.
fn parse_flag(name: &str, text: &str) -> Result<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(Error::input(format!("{name} must be true or false, not '{text}'"))),
    }
}

/// A number of threads, at least 1.
pub(crate) fn parse_threads(text: &str) -> Result<usize> {
    match text.trim().parse::<usize>() {
        Ok(threads) if (1..=1024).contains(&threads) => Ok(threads),
        _ => Err(Error::input(format!("threads must be a number from 1 to 1024, not '{text}'"))),
    }
}

/// A number of bytes: `1000000`, `512MB`, `1.5 GiB`, `80%` (of the machine's memory).
pub(crate) fn parse_bytes(text: &str) -> Result<usize> {
    let wrong = || {
        Error::input(format!("'{text}' is not an amount of memory"))
            .with_hint("write it as '512MB', '2GB' or '50%'")
    };
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "%" if number <= 100.0 => machine::memory().ok_or_else(wrong)? as f64 / 100.0,
        _ => return Err(wrong()),
    };
    Ok((number * factor) as usize)
}

/// Bytes in readable form: `1.5 GB`.
pub(crate) fn format_bytes(bytes: usize) -> String {
    match bytes {
        usize::MAX => "unlimited".into(),
        b if b >= 10_usize.pow(9) => format!("{:.1} GB", b as f64 / 1e9),
        b if b >= 10_usize.pow(6) => format!("{:.1} MB", b as f64 / 1e6),
        b => format!("{b} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read_as_people_write_them() {
        assert_eq!(parse_bytes("1000").unwrap(), 1000);
        assert_eq!(parse_bytes("1.5 GB").unwrap(), 1_500_000_000);
        assert_eq!(parse_bytes("2MiB").unwrap(), 2 << 20);
        assert!(parse_bytes("lots").is_err());
        assert!(parse_bytes("101%").is_err());
        assert!(parse_bytes("").is_err());
    }
}
