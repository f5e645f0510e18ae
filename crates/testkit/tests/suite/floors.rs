//! The floors of the house: dependencies between modules point in one direction.
//!
//! **Between crates** the dependencies are those of `Cargo.toml`, which cannot form a cycle; here they are
//! compared with the list in `tests/floors.txt`, with what each re-exports of another. **Within a crate** the
//! modules of each folder are nodes, and so is the file of the folder itself, called `mod`. An arrow leads
//! from one to another
//!
//! - whose items it names, in a `use` or a path, itself or in a module below it; the file of a folder also
//!   names what it declares, but for what it only re-exports;
//! - whose methods it calls with `self.`: the `impl` of a type may stand in several modules, and such a call
//!   names nothing of the one that has the method.
//!
//! Modules that reach each other form a *ring*: none of them can be read, moved or tested without the others.
//!
//! `tests/floors.txt` lists the existing rings, each with its reason. A ring that is not listed or has no
//! reason fails the test, and so does a line that is no longer true. `ENTASIS_BLESS=1` rewrites it.
//!
//! An item that a module re-exports by `pub use` counts as named in the module from which it comes, and a
//! glob import as naming the module. Tests do not count, and neither do macros. Sources are read as tokens,
//! not compiled.

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
    /// The paths that a `pub use` hands on.
    handed_on: BTreeSet<Vec<String>>,
    /// Methods by the names of their types, without those of traits.
    methods: BTreeSet<(String, String)>,
    /// What methods of a type call of `self`: the type's name, and the method's.
    calls: BTreeSet<(String, String)>,
    /// Crates of this workspace and what it re-exports of them.
    foreign: BTreeSet<(String, String)>,
}

/// The node of a folder's own file.
const OWN: &str = "mod";

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

/// The tokens without items under `#[cfg(test)]` or `#[cfg(all(test, …))]`.
pub(crate) fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let begin: [&[&str]; 2] =
        [&["#", "[", "cfg", "(", "test", ")"], &["#", "[", "cfg", "(", "all", "(", "test", ","]];
    let mut kept = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let is_test = |begin: &&[&str]| {
            begin.iter().enumerate().all(|(n, a)| tokens.get(i + n).is_some_and(|b| a == b))
        };
        if begin.iter().any(is_test) {
            let attribute = tokens[i..].iter().position(|token| token == "]").unwrap_or(0);
            i = end_of_item(&tokens, i + attribute + 1);
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
    (found.methods, found.calls) = methods(tokens);
    let mut i = 0;
    while i < tokens.len() {
        let is_use = tokens[i] == "use";
        let is_public = is_use && i > 0 && (tokens[i - 1] == "pub" || tokens[i - 1] == ")");
        i += usize::from(is_use);
        let Some(first) = tokens.get(i) else { break };
        if is_public && let Some(other) = first.strip_prefix("entasis_") {
            let mut paths = Vec::new();
            i = tree(tokens, i, &[], &mut paths);
            let names = paths.iter().filter_map(|path| path.last());
            found.foreign.extend(names.map(|name| (other.to_owned(), name.clone())));
            continue;
        }
        let starts =
            ["crate", "super", "self"].contains(&first.as_str()) || (is_use && children.contains(first));
        let goes_on = tokens.get(i + 1).is_some_and(|token| token == "::");
        if starts && goes_on && (i == 0 || tokens[i - 1] != "::") {
            let before = found.paths.len();
            i = tree(tokens, i, &[], &mut found.paths);
            if is_use {
                let last = |path: &Vec<String>| Some((path.last()?.clone(), path.clone()));
                found.uses.extend(found.paths[before..].iter().filter_map(last));
                if is_public {
                    found.handed_on.extend(found.paths[before..].iter().cloned());
                }
            }
        } else {
            i += usize::from(!is_use);
        }
    }
    found
}

/// A method, with the name of its type.
type Method = (String, String);

/// The methods of `impl` blocks that are of no trait; and what these blocks, and those of traits, call of
/// `self`.
fn methods(tokens: &[String]) -> (BTreeSet<Method>, BTreeSet<Method>) {
    let (mut found, mut calls) = (BTreeSet::new(), BTreeSet::new());
    let is_block = |&i: &usize| tokens[i] == "impl" && (i == 0 || !is_in_type(&tokens[i - 1]));
    for start in (0..tokens.len()).filter(is_block) {
        let Some(open) = (start..tokens.len()).find(|&i| tokens[i] == "{") else { continue };
        let mut depth = 0usize;
        let mut head = Vec::new();
        for token in &tokens[start + 1..open] {
            match token.as_str() {
                "<" => depth += 1,
                ">" => depth = depth.saturating_sub(1),
                _ if depth == 0 => head.push(token.as_str()),
                _ => {}
            }
        }
        let end = head.iter().position(|token| *token == "where").unwrap_or(head.len());
        let Some(name) = head[..end].last() else { continue };
        let is_of_trait = head[..end].contains(&"for");
        let mut depth = 0usize;
        for i in open..tokens.len() {
            match tokens[i].as_str() {
                "{" => depth += 1,
                "}" if depth == 1 => break,
                "}" => depth -= 1,
                "fn" if depth == 1 && !is_of_trait => {
                    found.insert((name.to_string(), tokens[i + 1].clone()));
                }
                "self" if tokens[i + 1..].len() > 3 && tokens[i + 1] == "." && tokens[i + 3] == "(" => {
                    calls.insert((name.to_string(), tokens[i + 2].clone()));
                }
                _ => {}
            }
        }
    }
    (found, calls)
}

/// True if `impl` behind this token is a type.
fn is_in_type(before: &str) -> bool {
    [":", "(", ",", ">", "<", "=", "&", "-"].contains(&before)
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

/// Arrows between the nodes of each folder: which module needs which.
fn arrows(all: &BTreeMap<Module, Source>) -> BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut add = |from: &Module, to: &Module| {
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let node = |module: &Module| module.get(common).cloned().unwrap_or_else(|| OWN.to_owned());
        if from != to {
            let siblings = found.entry(from[..common].to_vec()).or_default();
            siblings.entry(node(from)).or_default().insert(node(to));
        }
    };
    for (from, source) in all {
        for path in source.paths.iter().filter(|path| !source.handed_on.contains(*path)) {
            if let Some(to) = target(from, path, all) {
                add(from, &to);
            }
        }
    }
    let methods: BTreeMap<&Method, &Module> =
        all.iter().flat_map(|(module, source)| source.methods.iter().map(move |own| (own, module))).collect();
    for (from, source) in all {
        for call in source.calls.iter().filter(|call| !source.methods.contains(*call)) {
            if let Some(to) = methods.get(call) {
                add(from, to);
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
        let modules = modules(&dir);
        let mut foreign: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (other, item) in modules.values().flat_map(|source| &source.foreign) {
            foreign.entry(other).or_default().insert(item);
        }
        for (other, items) in foreign {
            let items: Vec<&str> = items.into_iter().collect();
            lines.insert(format!("{name} hands on of {other}: {}", items.join(" ")));
        }
        for (parent, siblings) in arrows(&modules) {
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
    let is_dependency = |line: &&str| line.contains('→');
    let unexplained: Vec<&str> =
        known.values().copied().filter(|line| !is_dependency(line) && !line.contains(" # ")).collect();
    assert!(unexplained.is_empty(), "tests/floors.txt lists these without a reason: {unexplained:#?}");
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
    let text = r#"
        pub use entasis_vector::{Error, expr::Expr};
        pub struct Own<'a>(&'a u8);
        impl<'a> Own<'a> { fn near(&self) { self.0.far_away(); self.far(); Other::by_path(2) } }
        impl crate::a::Own<'_> { pub(crate) fn far(&self) -> impl Iterator<Item = u8> + '_ { [1].into_iter() } }
        impl Clone for Own<'_> { fn clone(&self) -> Self { self.near(); *self } }
    "#;
    let found = source(&tokens(text));
    let both = BTreeSet::from(["far", "near"].map(|name| ("Own".to_owned(), name.to_owned())));
    assert_eq!((&found.methods, &found.calls), (&both, &both));
    let handed_on: Vec<String> =
        found.foreign.iter().map(|(other, item)| format!("{other}.{item}")).collect();
    assert_eq!(handed_on, ["vector.Error", "vector.Expr"]);
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
