//! The modules that may contain `unsafe` are those that rule 4 of `CONTRIBUTING.md` lists, and every crate
//! denies it elsewhere.
//!
//! The list gives files relative to the crate's folder, without `src`: `vector/buffer.rs`. A file that allows
//! unsafe code and is not listed fails the test, and so does a listed name that is no such file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The text in a module that may be unsafe; in two parts, so that this file does not contain it.
const ALLOWS: &str = concat!("allow(", "unsafe_code)");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The `.rs` files of a folder and those below it.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files that allow unsafe code, as the list names them.
fn allowed() -> BTreeSet<String> {
    let crates = root().join("crates");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    let is_one = |file: &&PathBuf| fs::read_to_string(file).unwrap().contains(ALLOWS);
    let name = |file: &PathBuf| {
        let parts = file.strip_prefix(&crates).unwrap().iter().map(|part| part.to_str().unwrap());
        parts.filter(|part| *part != "src").collect::<Vec<_>>().join("/")
    };
    files.iter().filter(is_one).map(name).collect()
}

/// The files that a text names between backticks.
fn named(text: &str) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_file = |name: &&str| name.ends_with(".rs") && !name.starts_with("suite/");
    quoted.filter(is_file).map(str::to_owned).collect()
}

#[test]
fn contributing_lists_the_unsafe_modules() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, rules) = text.split_once("\n## Rules").expect("there is a section of rules");
    let (_, rest) = rules.split_once("\n4. ").expect("there is a rule 4");
    let (rule, _) = rest.split_once("\n5. ").expect("there is a rule 5");
    let (listed, allowed) = (named(rule), allowed());
    let missing: Vec<&String> = allowed.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(&allowed).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "CONTRIBUTING.md, rule 4: unsafe but not listed {missing:?}, listed but not unsafe {gone:?}"
    );
}

#[test]
fn every_crate_keeps_the_lints_of_the_workspace() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"deny\""));
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let lints = text.split("[lints]").nth(1).unwrap_or_default();
        assert!(
            lints.trim_start().starts_with("workspace = true"),
            "{} has lints of its own",
            manifest.display()
        );
    }
}

#[test]
fn a_list_is_read_as_it_is_written() {
    let found = named("may be `unsafe` in `a/b.rs`,\n`a/c.rs`; see `suite/x.rs`");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a/b.rs", "a/c.rs"]);
}
