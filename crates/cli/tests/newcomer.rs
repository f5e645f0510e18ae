//! Runs the script of a newcomer's first hour, `tests/newcomer/first-hour.txt`, and compares what is seen.
//! `ENTASIS_BLESS=1` rewrites it.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The script, from this crate.
const SCRIPT: &str = "../../tests/newcomer/first-hour.txt";
/// The files that a newcomer has.
const FILES: [&str; 2] = ["flights.parquet", "airlines.csv"];

/// What a command prints on both streams, in the order in which it does.
fn seen(command: &str, directory: &Path) -> String {
    let shell = Path::new(env!("CARGO_BIN_EXE_entasis")).parent().unwrap().to_owned();
    let path = format!("{}:{}", shell.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(directory)
        .env("PATH", path)
        .env("HOME", directory)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if !output.status.success() {
        text += &format!("(exit code {})\n", output.status.code().unwrap_or(-1));
    }
    text.lines().map(|line| steady(line) + "\n").collect()
}

/// The line with `#` for digits that differ from run to run.
fn steady(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_time = |at: usize| words.get(at + 1).is_some_and(|unit| matches!(*unit, "ms" | "s"));
    let steady =
        words.iter().enumerate().map(|(at, word)| match is_time(at) || words[0] == "entasis" && at == 1 {
            true => word.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect(),
            false => (*word).to_owned(),
        });
    steady.collect::<Vec<String>>().join(" ")
}

#[test]
fn the_first_hour_reads_well() {
    let directory: PathBuf = std::env::temp_dir().join(format!("entasis-newcomer-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for file in FILES {
        std::fs::copy(Path::new("../../data/flights").join(file), directory.join(file)).unwrap();
    }
    let script = std::fs::read_to_string(SCRIPT).unwrap();
    let mut found = String::new();
    // What follows a command is what it printed, up to an empty line.
    let mut is_output = false;
    for line in script.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => {
                if is_output {
                    found.push('\n');
                }
                found += &format!("{line}\n{}", seen(command, &directory));
                is_output = true;
            }
            None if line.starts_with("# ") => {
                found += &format!("{}{line}\n\n", if found.is_empty() { "" } else { "\n" });
                is_output = false;
            }
            None => {}
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
    if std::env::var_os("ENTASIS_BLESS").is_some() {
        return std::fs::write(SCRIPT, found).unwrap();
    }
    for (number, (expected, found)) in script.lines().zip(found.lines()).enumerate() {
        assert_eq!(found, expected, "{SCRIPT}, line {}", number + 1);
    }
    assert_eq!(found.lines().count(), script.lines().count(), "lines of {SCRIPT}");
}
