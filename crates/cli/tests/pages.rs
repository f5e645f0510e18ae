//! Runs what the pages for users show: every ```` ```sql ```` block, and every line of a ```` ```sh ````
//! block that calls the shell.
//!
//! The blocks of a page run in order, on one connection, in an empty directory. What a page supposes, and a
//! reader has, stands before the block in a comment that is not shown:
//!
//! ````text
//! <!-- setup
//! directory logs
//! COPY (SELECT 1 AS status) TO 'logs/a.csv';
//! -->
//! ````
//!
//! A statement with the comment `-- error: text` must fail with that text, and one with `-- → 1, x` must give
//! this row. Blocks of other languages are not
//! run here; those of Python are by `crates/python/tests/test_pages.py`. A block that is not to be run needs
//! another language, such as `text`.

use entasis::{Config, Connection, Database, Value};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The pages, from the root.
const PAGES: [&str; 10] = [
    "README.md",
    "docs/coming-from.md",
    "docs/durability.md",
    "docs/files.md",
    "docs/layouts.md",
    "docs/python.md",
    "docs/queries.md",
    "docs/shell.md",
    "docs/tables.md",
    "docs/time.md",
];

/// A part of a page that is run.
struct Block {
    language: String,
    /// The number of the line before its text.
    line: usize,
    text: String,
}

/// The blocks of code and the hidden comments of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    // The line that ends the open block, and the block.
    let mut open: Option<(&str, Block)> = None;
    for (number, line) in page.lines().enumerate() {
        let begun =
            |language: &str| Block { language: language.to_owned(), line: number + 1, text: String::new() };
        match &mut open {
            Some((end, _)) if line.trim() == *end => blocks.extend(open.take().map(|(_, block)| block)),
            Some((_, block)) => block.text += &format!("{line}\n"),
            None if line.starts_with("<!-- setup") => open = Some(("-->", begun("setup"))),
            None => {
                if let Some(language) = line.trim().strip_prefix("```") {
                    open = Some(("```", begun(language.trim())));
                }
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// The statements of a text, each with the number of its first line and the comment after it.
fn statements(text: &str) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(end) = end_of_statement(rest) {
        let (statement, after) = rest.split_at(end);
        let end = after.split('\n').next().unwrap_or_default();
        let comment = end.trim().strip_prefix("--");
        let after = if comment.is_some() { &after[end.len()..] } else { after };
        let comment = comment.unwrap_or_default().trim().to_owned();
        // The line on which it begins, behind blank lines.
        let before = text.len() - rest.len() + (statement.len() - statement.trim_start().len());
        found.push((text[..before].matches('\n').count() + 1, statement.trim().to_owned(), comment));
        rest = after;
    }
    assert!(
        rest.lines().all(|line| line.trim().is_empty() || line.trim().starts_with("--")),
        "a statement without a semicolon: {rest}"
    );
    found
}

/// The end of the first statement: after a semicolon outside quotes and comments.
fn end_of_statement(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(open), _) => quote = Some(open).filter(|open| *open != c),
            (None, '\'' | '"') => quote = Some(c),
            (None, '-') if text[at..].starts_with("--") => {
                let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
                while chars.clone().next().is_some_and(|(next, _)| next < end) {
                    chars.next();
                }
            }
            (None, ';') => return Some(at + 1),
            (None, _) => {}
        }
    }
    None
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs the statements of a block; returns what went wrong.
fn run_sql(connection: &Connection, page: &str, block: &Block) -> Vec<String> {
    let mut faults = Vec::new();
    for (line, sql, comment) in statements(&block.text) {
        let place = format!("{page}:{}", block.line + line);
        let expected = comment.strip_prefix("error:").map(str::trim);
        match (connection.execute(&sql), expected) {
            (Ok(rows), None) => {
                let Some(expected) = comment.strip_prefix('→').map(str::trim) else { continue };
                let types = || rows.schema().iter().map(|field| field.ty);
                let cells = |row: Vec<Value>| -> Vec<String> {
                    row.iter().zip(types()).map(|(value, ty)| value.display(ty).to_string()).collect()
                };
                let found: Vec<String> = rows.row_values().map(|row| cells(row).join(", ")).collect();
                if found != [expected] {
                    faults.push(format!("{place}: gives {found:?}: {sql}"));
                }
            }
            (Ok(_), Some(_)) => faults.push(format!("{place}: does not fail: {sql}")),
            (Err(error), Some(text)) if error.message().contains(text) => {}
            (Err(error), _) => faults.push(format!("{place}: {error}: {sql}")),
        }
    }
    faults
}

/// Runs the lines that call the shell; returns what went wrong.
fn run_shell(page: &str, block: &Block) -> Vec<String> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_entasis"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut faults = Vec::new();
    for (number, line) in block.text.lines().enumerate() {
        let command = line.trim().trim_start_matches("$ ");
        // The output of the commands before, and other programs.
        if !command.split('|').any(|part| part.split_whitespace().next() == Some("entasis")) {
            continue;
        }
        let output = Command::new("sh")
            .args(["-c", command])
            .env("PATH", &path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            faults.push(format!("{page}:{}: {command}: {error}", block.line + number + 1));
        }
    }
    faults
}

#[test]
fn what_pages_show_runs() {
    let mut faults = Vec::new();
    let mut count = 0;
    for page in PAGES {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let place = format!("entasis-page-{}-{}", page.replace('/', "-"), std::process::id());
        let folder = std::env::temp_dir().join(place);
        std::fs::create_dir_all(&folder).unwrap();
        // What a clone of the repository has.
        #[cfg(unix)]
        for (name, target) in [("data", "data"), ("flights.parquet", "data/flights/flights.parquet")] {
            std::os::unix::fs::symlink(root().join(target), folder.join(name)).unwrap();
        }
        // Nothing else in this process depends on it.
        std::env::set_current_dir(&folder).unwrap();
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        for block in blocks(&text) {
            match block.language.as_str() {
                "sql" => faults.extend(run_sql(&connection, page, &block)),
                "sh" => faults.extend(run_shell(page, &block)),
                "setup" => {
                    let mut sql = String::new();
                    for line in block.text.lines() {
                        match line.strip_prefix("directory ") {
                            Some(directory) => std::fs::create_dir_all(folder.join(directory)).unwrap(),
                            None => sql += line,
                        }
                        sql.push('\n');
                    }
                    faults.extend(run_sql(&connection, page, &Block { text: sql, ..block }));
                }
                _ => continue,
            }
            count += 1;
        }
        drop(connection);
        std::env::set_current_dir(root()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
    assert!(faults.is_empty(), "{} snippets do not run:\n{}", faults.len(), faults.join("\n"));
    assert!(count > 60, "only {count} blocks were found");
}

#[test]
fn blocks_and_statements_are_found() {
    let page = "a\n<!-- setup\nSELECT 1;\n-->\n```sql\nSELECT ';' -- no; end\n  , 2;  -- error: x y\n\nSELECT 3;\n```\n```\nb\n```\n";
    let found = blocks(page);
    let languages: Vec<(&str, usize)> = found.iter().map(|block| (&*block.language, block.line)).collect();
    assert_eq!(languages, [("setup", 2), ("sql", 5), ("", 11)]);
    let statements = statements(&found[1].text);
    assert_eq!(statements[0], (1, "SELECT ';' -- no; end\n  , 2;".to_owned(), "error: x y".to_owned()));
    assert_eq!((statements[1].0, &*statements[1].2), (4, ""));
}
