//! The floors of the house: dependencies between modules point in one direction.
//!
//! **Between crates** the dependencies are those of `Cargo.toml`, which cannot form a cycle; here they are
//! compared with the list in `tests/floors.txt`. **Within a crate** the modules of each folder are nodes, and
//! an arrow leads from one to a sibling whose items it names, in a `use` or a path, itself or in a module
//! below it. Modules that reach each other form a *ring*: none of them can be read, moved or tested without
//! the others.
//!
//! `tests/floors.txt` lists the existing rings, each with its reason. A ring that is not listed fails the
//! test, and so does a line that is no longer true: the list can only shrink. `ENTASIS_BLESS=1` rewrites it.
//!
//! An item that a module re-exports by `pub use` counts as named in the module from which it comes. Tests do
//! not count, and neither do macros. Sources are read as tokens, not compiled: glob imports are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module's path in its crate: the names from the root down.
type Module = Vec<String>;

/// The paths in a module's source.
#[derive(Default)]
struct Source {
    /// The paths that it names, relative to the crate's root or to the module.
    paths: Vec<Vec<String>>,
    /// The paths imported by a `use`, by their last names.
    uses: BTreeMap<String, Vec<String>>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

// ---- sources as tokens ------------------------------------------------------------------------------------

/// Words, `::`, and signs of a source, without comments, literals and attributes.
pub(crate) fn tokens(source: &str) -> Vec<String> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut found = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                let mut depth = 0usize;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => depth += 1,
                        ('*', '/') => depth -= 1,
                        _ => {
                            i += 1;
                            if i >= chars.len() {
                                break;
                            }
                            continue;
                        }
                    }
                    i += 2;
                    if depth == 0 {
                        break;
                    }
                }
            }
            'r' if at(i + 1) == '"' || (at(i + 1) == '#' && (at(i + 2) == '"' || at(i + 2) == '#')) => {
                let hashes = (i + 1..).take_while(|&j| at(j) == '#').count();
                i += 2 + hashes;
                while i < chars.len() && !(at(i) == '"' && (1..=hashes).all(|j| at(i + j) == '#')) {
                    i += 1;
                }
                i += 1 + hashes;
            }
            '"' => {
                i += 1;
                while i < chars.len() && at(i) != '"' {
                    i += 1 + usize::from(at(i) == '\\');
                }
                i += 1;
            }
            // A character, not a lifetime.
            '\'' if at(i + 1) == '\\' => {
                i += 2;
                while i < chars.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            '\'' if at(i + 2) == '\'' => i += 3,
            c if c.is_alphanumeric() || c == '_' => {
                let start = i;
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                found.push(chars[start..i].iter().collect());
            }
            ':' if at(i + 1) == ':' => {
                found.push("::".to_owned());
                i += 2;
            }
            c if c.is_whitespace() => i += 1,
            c => {
                found.push(c.to_string());
                i += 1;
            }
        }
    }
    found
}

/// The end of the item that begins at a token: after its block, or its semicolon.
fn end_of_item(tokens: &[String], start: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token == "}" {
                    return i + 1;
                }
            }
            ";" if depth == 0 => return i + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The tokens without items under `#[cfg(test)]`.
pub(crate) fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let test = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        if tokens[i..].len() >= test.len() && test.iter().zip(&tokens[i..]).all(|(a, b)| a == b) {
            i = end_of_item(&tokens, i + test.len());
            continue;
        }
        kept.push(tokens[i].clone());
        i += 1;
    }
    kept
}

/// All paths in a source that lead into its own crate; `use` trees are expanded.
fn source(tokens: &[String]) -> Source {
    let children: BTreeSet<&String> =
        tokens.windows(2).filter(|two| two[0] == "mod").map(|two| &two[1]).collect();
    let mut found = Source::default();
    let mut i = 0;
    while i < tokens.len() {
        let is_use = tokens[i] == "use";
        i += usize::from(is_use);
        let Some(first) = tokens.get(i) else { break };
        let starts =
            ["crate", "super", "self"].contains(&first.as_str()) || (is_use && children.contains(first));
        let goes_on = tokens.get(i + 1).is_some_and(|token| token == "::");
        if starts && goes_on && (i == 0 || tokens[i - 1] != "::") {
            let before = found.paths.len();
            i = tree(tokens, i, &[], &mut found.paths);
            if is_use {
                let last = |path: &Vec<String>| Some((path.last()?.clone(), path.clone()));
                found.uses.extend(found.paths[before..].iter().filter_map(last));
            }
        } else {
            i += usize::from(!is_use);
        }
    }
    found
}

/// Parses a path, or a tree of paths, from a token on; returns where it ends.
fn tree(tokens: &[String], mut i: usize, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(i) {
        if token == "{" {
            i += 1;
            while tokens.get(i).is_some_and(|token| token != "}") {
                i = tree(tokens, i, &path, found).max(i + 1);
                while tokens.get(i).is_some_and(|token| token == "," || token == "as" || token == "_") {
                    // The name after `as` is not part of the path.
                    i += 1 + usize::from(tokens[i] == "as");
                }
            }
            return i + 1;
        }
        if !token.chars().all(|c| c.is_alphanumeric() || c == '_') {
            break;
        }
        path.push(token.clone());
        i += 1;
        match tokens.get(i) {
            Some(token) if token == "::" => i += 1,
            _ => break,
        }
    }
    found.push(path);
    i
}

// ---- modules of a crate -----------------------------------------------------------------------------------

/// The modules of a crate, with the paths that each names.
fn modules(crate_dir: &Path) -> BTreeMap<Module, Source> {
    let mut found = BTreeMap::new();
    let library = crate_dir.join("src/lib.rs");
    let main = if library.exists() { library } else { crate_dir.join("src/main.rs") };
    read(&main, &crate_dir.join("src"), &[], &mut found);
    found
}

/// Reads a module's file and those of the modules that it declares, which are in `below`.
fn read(file: &Path, below: &Path, module: &[String], found: &mut BTreeMap<Module, Source>) {
    let Ok(text) = fs::read_to_string(file) else { return };
    let tokens = without_tests(tokens(&text));
    found.insert(module.to_vec(), source(&tokens));
    for declared in tokens.windows(3).filter(|three| three[0] == "mod" && three[2] == ";") {
        let name = &declared[1];
        let child: Module = module.iter().chain([name]).cloned().collect();
        let folder = below.join(name);
        let (own, inner) = (below.join(format!("{name}.rs")), folder.join("mod.rs"));
        read(if own.exists() { &own } else { &inner }, &folder, &child, found);
    }
}

/// The module to which a path in a module leads, as far down as there are modules, following re-exports.
fn target(from: &[String], path: &[String], all: &BTreeMap<Module, Source>) -> Option<Module> {
    let (place, name) = step(from, path, all)?;
    let handed_on = name.and_then(|name| all.get(&place)?.uses.get(&name));
    match handed_on {
        // A re-export of a name under itself is not a step.
        Some(on) if *on != path && place != from => Some(step(&place, on, all)?.0),
        _ => Some(place),
    }
}

/// The module to which a path leads, and the name in it, if that is not a module's.
fn step(
    from: &[String],
    path: &[String],
    all: &BTreeMap<Module, Source>,
) -> Option<(Module, Option<String>)> {
    let mut at: Module = match path.first()?.as_str() {
        "crate" => Vec::new(),
        // Or relative to a child.
        _ => from.to_vec(),
    };
    for (i, part) in path.iter().enumerate() {
        match part.as_str() {
            "crate" | "self" if i == 0 => {}
            "super" => drop(at.pop()),
            name => {
                at.push(name.to_owned());
                if !all.contains_key(&at) {
                    at.pop();
                    return Some((at, Some(name.to_owned())));
                }
            }
        }
    }
    Some((at, None))
}

/// Arrows between siblings, by their common parent: which module names which.
fn arrows(all: &BTreeMap<Module, Source>) -> BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (from, source) in all {
        for to in source.paths.iter().filter_map(|path| target(from, path, all)) {
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(own), Some(other)) = (from.get(common), to.get(common)) {
                let siblings = found.entry(from[..common].to_vec()).or_default();
                siblings.entry(own.clone()).or_default().insert(other.clone());
            }
        }
    }
    found
}

/// Groups of nodes that reach each other.
fn rings(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reach = |start: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(node) = open.pop() {
            for next in arrows.get(&node).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        arrows.keys().map(|node| (node, reach(node))).collect();
    let ring = |node: &String| -> BTreeSet<String> {
        let is_both = |other: &&String| reached.get(*other).is_some_and(|back| back.contains(node));
        reached[node].iter().filter(is_both).cloned().collect()
    };
    let all: BTreeSet<BTreeSet<String>> = arrows.keys().map(ring).filter(|ring| ring.len() > 1).collect();
    all.into_iter().collect()
}

// ---- the list ---------------------------------------------------------------------------------------------

/// The lines that describe the sources: one for each ring, and for each crate its dependencies.
fn found() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let mut crates: Vec<PathBuf> =
        fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    crates.sort();
    for dir in crates {
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        let manifest = fs::read_to_string(dir.join("Cargo.toml")).unwrap();
        let own = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        let needed = own.lines().filter_map(|line| {
            let first = line.split(['.', ' ', '=']).next()?;
            first.strip_prefix("entasis-").or((first == "entasis").then_some("entasis"))
        });
        let needed: BTreeSet<&str> = needed.collect();
        lines.insert(
            format!("{name} → {}", needed.into_iter().collect::<Vec<_>>().join(" ")).trim_end().to_owned(),
        );
        for (parent, siblings) in arrows(&modules(&dir)) {
            let place: Vec<&str> =
                std::iter::once(name.as_str()).chain(parent.iter().map(String::as_str)).collect();
            for ring in rings(&siblings) {
                let ring: Vec<&str> = ring.iter().map(String::as_str).collect();
                lines.insert(format!("{}: {}", place.join("::"), ring.join(" ")));
            }
        }
    }
    lines
}

#[test]
fn modules_point_one_way() {
    let file = root().join("tests/floors.txt");
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
    assert!(
        new.is_empty() && gone.is_empty(),
        "tests/floors.txt does not say what the sources say\nnew: {new:#?}\ngone (take them from the list): {gone:#?}"
    );
}

#[test]
fn sources_are_understood() {
    let text = r#"
        // crate::comment
        use crate::a::{b::{self, C as D}, e};
        #[cfg(test)]
        mod tests { use crate::tests_only; }
        mod child;
        pub use child::Item;
        fn f<'a>(x: &'a str) -> char { let _ = "crate::text"; crate::g::h(super::i, 'x') }
    "#;
    let found: Vec<String> =
        source(&without_tests(tokens(text))).paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        found,
        ["crate::a::b::self", "crate::a::b::C", "crate::a::e", "child::Item", "crate::g::h", "super::i"]
    );
    let arrow = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|to| to.to_string()).collect());
    let graph: BTreeMap<String, BTreeSet<String>> = [
        arrow("a", &["b"]),
        arrow("b", &["c"]),
        arrow("c", &["a", "d"]),
        arrow("d", &[]),
        arrow("e", &["a"]),
    ]
    .into();
    let found: Vec<Vec<String>> = rings(&graph).into_iter().map(|ring| ring.into_iter().collect()).collect();
    assert_eq!(found, [["a", "b", "c"]]);
}
