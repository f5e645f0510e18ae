//! Keeps documents true: what `*.md` names in backticks or links to must exist.
//!
//! * a link to a file, relative to the page; a path, from the root, from the page, within a crate
//!   (`storage/tree/link.rs`), or as the end of the path of a file (`exec/sort/runs.rs`); braces and `*`
//!   stand for several;
//! * `make target`; "decision 12"; `SET name`;
//! * a type's name (`JoinTable`), in the sources.
//!
//! Decisions describe the state when they were made, and the changelog what was new then: in these only links
//! are checked. Blocks of code are not checked. Comments of sources cite pages: these, and decisions by their
//! numbers, must exist too. (Their links to items are checked by rustdoc.)

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root is there")
}

/// All files below a folder, except those that are built or fetched.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if entry.is_dir() && !matches!(name, ".git" | ".venv" | "target" | "__pycache__" | ".pytest_cache") {
            files(&entry, found);
        } else if entry.is_file() {
            found.push(entry);
        }
    }
}

/// The lines of a page outside blocks of code, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((number + 1, line));
        }
    }
    lines
}

/// The texts in backticks of a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of a line's links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn spread(path: &str) -> Vec<String> {
    let (Some(open), Some(close)) = (path.find('{'), path.find('}')) else { return vec![path.to_string()] };
    if open > close {
        return vec![path.to_string()];
    }
    let (before, after) = (&path[..open], &path[close + 1..]);
    path[open + 1..close]
        .split(',')
        .flat_map(|part| spread(&format!("{before}{}{after}", part.trim())))
        .collect()
}

/// What can be named.
struct House {
    root: PathBuf,
    /// Paths of all files and folders, relative to the root, each with a leading `/`.
    paths: Vec<String>,
    /// Words of all sources.
    words: BTreeSet<String>,
    targets: BTreeSet<String>,
    /// Used to look up settings.
    connection: entasis::Connection,
    decisions: BTreeSet<u32>,
}

impl House {
    fn new() -> House {
        let root = root();
        let mut found = Vec::new();
        files(&root, &mut found);
        let mut paths = BTreeSet::new();
        let mut words = BTreeSet::new();
        for file in &found {
            let path = file.strip_prefix(&root).expect("below the root");
            for part in path.ancestors().filter(|part| !part.as_os_str().is_empty()) {
                paths.insert(format!("/{}", part.display()));
            }
            if matches!(file.extension().and_then(|e| e.to_str()), Some("rs" | "py" | "toml" | "pyi")) {
                let text = fs::read_to_string(file).unwrap_or_default();
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                words.extend(text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned));
            }
        }
        let makefile = fs::read_to_string(root.join("Makefile")).expect("a Makefile");
        let targets = makefile
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, _)| name.to_owned())
            .collect();
        let connection =
            entasis::Database::in_memory(entasis::Config::default()).expect("a database").connect();
        let decisions = paths
            .iter()
            .filter_map(|path| path.strip_prefix("/docs/decisions/"))
            .filter_map(|name| name.get(..4)?.parse().ok())
            .collect();
        House { root, paths: paths.into_iter().collect(), words, targets, connection, decisions }
    }

    /// True if a path exists: from the root, from the page, or as the end of one.
    fn has_path(&self, page: &Path, path: &str) -> bool {
        let path = path.trim_end_matches('/').trim_start_matches("./");
        // `storage/tree/link.rs` is a file of the crate `storage`.
        let of_crate =
            path.split_once('/').map(|(name, rest)| format!("crates/{name}/src/{rest}")).unwrap_or_default();
        let beside = page.parent().expect("a page is in a folder").join(path);
        spread(path).iter().all(|path| {
            let pattern: Vec<&str> = path.split('*').collect();
            self.paths.iter().any(|there| match pattern[..] {
                [whole] => there.ends_with(&format!("/{whole}")),
                [first, .., last] => {
                    there.contains(&format!("/{first}"))
                        && there.ends_with(last.trim_start_matches('*').trim_end_matches('/'))
                }
                [] => false,
            })
        }) || beside.exists()
            || self.root.join(of_crate).exists()
    }

    /// The faults of a line.
    fn faults(&self, page: &Path, line: &str, only_links: bool) -> Vec<String> {
        let mut faults = Vec::new();
        for link in links(line) {
            let target = link.split('#').next().unwrap_or_default();
            let is_file = !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:");
            if is_file && !page.parent().expect("a page is in a folder").join(target).exists() {
                faults.push(format!("a link to {target}"));
            }
        }
        if only_links {
            return faults;
        }
        for text in quoted(line) {
            if let Some(rest) = text.strip_prefix("make ") {
                let target = rest.split_whitespace().next().unwrap_or_default();
                if !target.contains('=') && !self.targets.contains(target) {
                    faults.push(format!("the target {target}"));
                }
            } else if let Some(setting) =
                text.strip_prefix("SET ").and_then(|rest| rest.split([' ', '=']).next())
            {
                let is_name = setting.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                if is_name
                    && !setting.is_empty()
                    && self.connection.execute(&format!("SHOW {setting}")).is_err()
                {
                    faults.push(format!("the setting {setting}"));
                }
            } else if is_path(text) {
                if !self.has_path(page, text) {
                    faults.push(format!("the path {text}"));
                }
            } else if is_type(text) && !self.words.contains(text) {
                faults.push(format!("the name {text}"));
            }
        }
        faults.extend(self.faults_of_decisions(line));
        faults
    }

    /// Decisions that a line cites and that are not there.
    fn faults_of_decisions(&self, line: &str) -> Vec<String> {
        let lower = line.to_lowercase();
        let number = |rest: &str| -> Option<u32> {
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
        };
        let cited = lower.split("decision ").skip(1).chain(lower.split("decisions/").skip(1));
        let missing = cited.filter_map(number).filter(|number| !self.decisions.contains(number));
        missing.map(|number| format!("decision {number}")).collect()
    }

    /// The faults of a line of a comment.
    fn faults_of_comment(&self, page: &Path, line: &str) -> Vec<String> {
        let mut faults = self.faults_of_decisions(line);
        let is_apart = |c: char| !(c.is_ascii_alphanumeric() || "._-/".contains(c));
        for word in line.split(is_apart).map(|word| word.trim_end_matches('.')) {
            let is_page = word.ends_with(".md") || word.starts_with("docs/");
            let is_number = word.starts_with("docs/decisions/");
            if is_page && !is_number && !self.has_path(page, word.trim_start_matches("../")) {
                faults.push(format!("the page {word}"));
            }
        }
        faults
    }
}

/// True if a text in backticks is a path of the repository: it has an extension of its files, or begins with
/// one of its folders.
fn is_path(text: &str) -> bool {
    let is_plain =
        text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/{},*".contains(c)) && !text.starts_with('/');
    let is_file = [".rs", ".md", ".py", ".slt", ".toml"].iter().any(|end| text.ends_with(end));
    let begins =
        ["crates/", "docs/", "tests/", "bench/", "data/"].iter().any(|folder| text.starts_with(folder));
    is_plain && (is_file || begins)
}

/// True if a text may be the name of one of our types: it has capitals within.
fn is_type(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_uppercase());
    let humps =
        text.chars().skip(1).any(|c| c.is_ascii_uppercase()) && text.chars().any(|c| c.is_ascii_lowercase());
    first && humps && text.chars().all(|c| c.is_ascii_alphanumeric())
}

#[test]
fn what_pages_name_is_there() {
    let house = House::new();
    let mut pages = Vec::new();
    files(&house.root, &mut pages);
    let mut faults = Vec::new();
    for page in pages.iter().filter(|page| page.extension().is_some_and(|e| e == "md")) {
        let name = page.strip_prefix(&house.root).expect("below the root").display().to_string();
        let only_links = name.starts_with("docs/decisions/") || name == "CHANGELOG.md";
        let text = fs::read_to_string(page).expect("a page");
        for (number, line) in prose(&text) {
            faults.extend(
                house.faults(page, line, only_links).iter().map(|fault| format!("{name}:{number}: {fault}")),
            );
        }
    }
    assert!(faults.is_empty(), "pages name what is not there:\n{}", faults.join("\n"));
}

#[test]
fn pages_that_comments_cite_are_there() {
    let house = House::new();
    let mut sources = Vec::new();
    files(&house.root.join("crates"), &mut sources);
    files(&house.root.join("bench"), &mut sources);
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| source.extension().is_some_and(|e| e == "rs")) {
        // The tests of this file name what is not there.
        if source.ends_with("suite/documents.rs") {
            continue;
        }
        let name = source.strip_prefix(&house.root).expect("below the root").display().to_string();
        let text = fs::read_to_string(source).expect("a source");
        for (number, line) in text.lines().enumerate() {
            if let Some(comment) = line.trim_start().strip_prefix("//") {
                let own = house.faults_of_comment(source, comment);
                faults.extend(own.iter().map(|fault| format!("{name}:{}: {fault}", number + 1)));
            }
        }
    }
    assert!(faults.is_empty(), "comments cite what is not there:\n{}", faults.join("\n"));
}

#[test]
fn faults_are_found() {
    let house = House::new();
    let page = house.root.join("README.md");
    let faults = |line: &str| house.faults(&page, line, false);
    assert!(
        faults(
            "`make test` runs `docs/tables.md`, `exec/{mod,execute}.rs`, `DataType` and `SET memory_limit = '1 GB'`"
        )
        .is_empty()
    );
    assert_eq!(faults("`make nothing`"), ["the target nothing"]);
    assert_eq!(faults("`exec/{mod,nothing}.rs`"), ["the path exec/{mod,nothing}.rs"]);
    // Composed so that this source does not contain it.
    let nobody = ["No", "Such", "Type"].concat();
    assert_eq!(faults(&format!("`{nobody}`")), [format!("the name {nobody}")]);
    assert_eq!(
        faults("see decision 999 and [this](docs/nothing.md)"),
        ["a link to docs/nothing.md", "decision 999"]
    );
    assert_eq!(faults("`SET no_such_setting = 1`"), ["the setting no_such_setting"]);
    let of_comment = |line: &str| house.faults_of_comment(&page, line);
    assert!(of_comment("see docs/tables.md, docs/decisions/0026 and decision 12; docs/rust.md.").is_empty());
    assert_eq!(of_comment("(docs/nothing.md, section 3)"), ["the page docs/nothing.md"]);
    assert_eq!(of_comment("[decision 999]; docs/decisions/0998"), ["decision 999", "decision 998"]);
}

/// The maximum width of a line of code or prose, in characters.
const WIDTH: usize = 110;

/// The lines of a file that are wider than [`WIDTH`] without need. Literals, tables, targets of links and
/// blocks of code within prose may be wider.
fn wide_lines(path: &Path, text: &str) -> Vec<usize> {
    let is_source = path.extension().is_some_and(|end| end == "rs");
    let mut in_code = false;
    let mut in_literal = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let comment = trimmed.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim_start());
        let prose = match is_source {
            true if in_literal => None,
            true => comment,
            false => Some(trimmed),
        };
        let is_wide = line.chars().count() > WIDTH;
        let Some(prose) = prose else {
            let quotes = line.replace("\\\"", "").replace("'\"'", "").matches('"').count();
            if is_wide && !in_literal && quotes == 0 {
                found.push(number + 1);
            }
            in_literal ^= quotes % 2 == 1;
            continue;
        };
        if prose.starts_with("```") {
            in_code = !in_code;
        } else if is_wide && !in_code && !prose.starts_with('|') && !prose.starts_with('[') {
            found.push(number + 1);
        }
    }
    found
}

#[test]
fn lines_are_not_wide() {
    let root = root();
    let mut found = Vec::new();
    files(&root, &mut found);
    let mut wide = Vec::new();
    for file in found {
        // The page of functions is generated from the catalog.
        let is_looked_at = matches!(file.extension().and_then(|end| end.to_str()), Some("rs" | "md"))
            && !file.ends_with("docs/functions.md");
        if is_looked_at && let Ok(text) = fs::read_to_string(&file) {
            let path = file.strip_prefix(&root).expect("below the root").display();
            wide.extend(wide_lines(&file, &text).into_iter().map(|line| format!("{path}:{line}")));
        }
    }
    assert!(wide.is_empty(), "wider than {WIDTH} characters:\n{}", wide.join("\n"));
}

#[test]
fn wide_lines_are_found() {
    let long = "x ".repeat(WIDTH);
    let text = format!("// {long}\n//| {long}\nlet a = \"{long}\";\nlet b = \"\n{long}\n\";\nf({long});\n");
    assert_eq!(wide_lines(Path::new("a.rs"), &text), [1, 7]);
    assert_eq!(wide_lines(Path::new("a.md"), &format!("```\n{long}\n```\n| {long}\n{long}\n")), [5]);
}
