//! The name of a type has only one meaning in a crate.
//!
//! Types that more than one module can see (`pub`, `pub(crate)`, `pub(super)`) and that have the same name
//! are listed in `tests/type_names.txt`, each with its reason. A pair that is not in the list fails the test,
//! and so does a line that is no longer true: the list can only shrink. Private types belong to their
//! modules, and types of tests do not count. `ENTASIS_BLESS=1` rewrites the list; people write the reasons.

use super::floors::{tokens, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of the types that a source declares as visible to others.
fn declared(source: &[String]) -> Vec<String> {
    const KINDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];
    let mut found = Vec::new();
    for (i, token) in source.iter().enumerate() {
        if token != "pub" {
            continue;
        }
        let mut next = i + 1;
        if source.get(next).is_some_and(|token| token == "(") {
            next += 1 + source[next..].iter().take_while(|token| *token != ")").count();
        }
        if let Some([kind, name]) = source.get(next..next + 2)
            && KINDS.contains(&kind.as_str())
        {
            found.push(name.clone());
        }
    }
    found
}

/// Adds the types of the sources in a folder, except those of tests.
fn read(folder: &Path, types: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if matches!(stem, "tests" | "testing") || stem.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            read(&path, types);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = without_tests(tokens(&fs::read_to_string(&path).unwrap()));
            declared(&source).into_iter().for_each(|name| *types.entry(name).or_default() += 1);
        }
    }
}

/// `crate: Name`, for each name that several types of a crate have.
fn found() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let dir = entry.unwrap().path();
        let mut types = BTreeMap::new();
        read(&dir.join("src"), &mut types);
        let crate_name = dir.file_name().and_then(|name| name.to_str()).unwrap().to_owned();
        let several = types.into_iter().filter(|(_, times)| *times > 1);
        lines.extend(several.map(|(name, _)| format!("{crate_name}: {name}")));
    }
    lines
}

#[test]
fn names_of_types_have_one_meaning() {
    let file = root().join("tests/type_names.txt");
    let listed = fs::read_to_string(&file).unwrap_or_default();
    let without_reason = |line: &str| line.split(" # ").next().unwrap_or(line).trim_end().to_owned();
    let known: BTreeMap<String, &str> = listed
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| (without_reason(line), line))
        .collect();
    let found = found();
    if std::env::var_os("ENTASIS_BLESS").is_some() {
        let head: Vec<&str> =
            listed.lines().take_while(|line| line.starts_with('#') || line.is_empty()).collect();
        let lines: Vec<&str> = found.iter().map(|line| known.get(line).copied().unwrap_or(line)).collect();
        fs::write(&file, format!("{}\n\n{}\n", head.join("\n").trim_end(), lines.join("\n"))).unwrap();
        return;
    }
    let new: Vec<&String> = found.iter().filter(|line| !known.contains_key(*line)).collect();
    let gone: Vec<&String> = known.keys().filter(|line| !found.contains(*line)).collect();
    let bare: Vec<&&str> = known.values().filter(|line| !line.contains(" # ")).collect();
    assert!(
        new.is_empty() && gone.is_empty() && bare.is_empty(),
        "tests/type_names.txt does not say what the sources say\n\
         new: {new:#?}\ngone (take them from the list): {gone:#?}\nwithout a reason: {bare:#?}"
    );
}

#[test]
fn declarations_are_read() {
    let source = "pub struct A; pub(crate) enum B { C } struct D; pub(in crate::x) type E = u8; \
                  #[cfg(test)] mod tests { pub struct F; } pub fn g() {} // pub struct H\n";
    assert_eq!(declared(&without_tests(tokens(source))), ["A", "B", "E"]);
}
