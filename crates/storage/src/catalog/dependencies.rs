//! Dependencies: which objects of the catalog need which others.
//!
//! | an object | needs |
//! |---|---|
//! | a view | the tables, views and sequences that its query names |
//! | a table | the tables that its foreign keys refer to, the sequences of its identity columns, and those that its defaults and checks call |
//! | a sequence, a type | nothing more |
//! | all of them | the schema that they are in, if it is not the main one |
//!
//! In one version of the catalog no object that another one needs is missing. Temporary objects are an
//! exception: whoever drops an object does not see the temporary objects of other connections, so these keep
//! nothing from being dropped. A statement that drops or changes an object takes care of its [`users`]. But
//! of two transactions one may drop a table and the other create a view of it, each of them correct by
//! itself. So when the second one commits, `judge` compares the changes of both: no object that one of them
//! changed may need an object that the other changed. Then nothing that an object needs has changed
//! unnoticed.
//!
//! What an object needs *of* another (columns, types, keys) is not known here: changing that makes a new
//! entry.

use super::entry::{Entry, is_temporary, needs, space};
use super::version::{CatalogVersion, changed};
use entasis_vector::Result;
use std::collections::BTreeSet;

/// The objects that need the one of this name: everything in a schema; views; tables with foreign keys that
/// refer to it or defaults that call it. A table that refers to itself does not count.
pub fn users<'a>(names: &'a CatalogVersion, name: &str) -> Vec<&'a Entry> {
    names.users(name)
}

/// Checks the changes of names from `base` to `now` against those that others have made from `base` to
/// `newest`.
///
/// # Errors
/// Conflict, if an object that was changed on one side needs one that was changed on the other.
pub(crate) fn judge(base: &CatalogVersion, now: &CatalogVersion, newest: &CatalogVersion) -> Result<()> {
    let (own, others) = (changes(base, now), changes(base, newest));
    between(now, &own, &others)?;
    between(newest, &others, &own)
}

/// A conflict, if one of the objects of `changed_here` needs one of `changed_there`; both are given by their
/// keys.
fn between(
    names: &CatalogVersion,
    changed_here: &BTreeSet<String>,
    changed_there: &BTreeSet<String>,
) -> Result<()> {
    if changed_there.is_empty() {
        return Ok(());
    }
    for (own, entry) in changed_here.iter().filter_map(|own| Some((own, names.get_key(own)?))) {
        // A temporary object needs the temporary objects of its own space.
        let is_changed = |needed: &String| match is_temporary(needed) {
            true => changed_there.contains(&format!("{}{needed}", space(own))),
            false => changed_there.contains(needed),
        };
        if let Some(needed) = needs(entry).into_iter().find(is_changed) {
            return Err(changed(&format!("object that {} {} needs:", entry.kind(), entry.name()), &needed));
        }
    }
    Ok(())
}

/// The keys whose objects differ between two versions.
fn changes(from: &CatalogVersion, to: &CatalogVersion) -> BTreeSet<String> {
    if from.is(to) {
        return BTreeSet::new();
    }
    to.changes_since(from).map(|change| change.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Catalog, IfExists, TableEntry, View};
    use crate::definition::{Counting, Definition, ForeignKey, ReferentialAction, Sequence};
    use crate::table::Table;
    use crate::tests::random::Random;
    use entasis_vector::{DataType, ErrorKind, Field};
    use std::sync::Arc;

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    fn table(name: &str, parents: &[&str], sequences: &[&str]) -> Entry {
        let foreign_key = |parent: &&str| ForeignKey {
            name: format!("{name}_{parent}"),
            columns: vec![0],
            table: (*parent).to_owned(),
            references: vec![0],
            on_delete: ReferentialAction::NoAction,
            on_update: ReferentialAction::NoAction,
        };
        let definition = Definition {
            foreign_keys: parents.iter().map(foreign_key).collect(),
            sequences: sequences.iter().map(|&sequence| sequence.to_owned()).collect(),
            ..Definition::default()
        };
        let table = Table::new(name, vec![Field::new("a", DataType::Int32)]);
        let definition = Arc::new(definition);
        Entry::Table(Arc::new(TableEntry { name: name.to_owned(), table, definition, indexes: Vec::new() }))
    }

    fn view(name: &str, needs: &[&str]) -> Entry {
        let needs = needs.iter().map(|&name| name.to_owned()).collect();
        Entry::View(Arc::new(View { name: name.to_owned(), sql: String::new(), schema: Vec::new(), needs }))
    }

    fn sequence(name: &str) -> Entry {
        let counting = Counting { start: 1, increment: 1, min: 1, max: 9, cycle: false };
        Entry::Sequence(Arc::new(Sequence::new(name, counting)))
    }

    /// True if every object has what it needs: the slow and obvious reading.
    fn is_whole(names: &CatalogVersion) -> bool {
        let exists = |needed: &String| names.get(needed).is_some();
        names.entries().all(|entry| match entry {
            Entry::View(view) => view.needs.iter().all(exists),
            Entry::Table(table) => {
                let parents = table.definition.foreign_keys.iter().map(|foreign| &foreign.table);
                let is_table = |name: &String| names.table(name).is_some();
                let is_sequence = |name: &String| names.sequence(name).is_some();
                parents.into_iter().all(is_table) && table.definition.sequences.iter().all(is_sequence)
            }
            Entry::Sequence(_) | Entry::Type(_) | Entry::Schema(_) => true,
        })
    }

    /// A version that comes of `base` by a random step, and is whole.
    fn step(base: &CatalogVersion, random: &mut Random) -> CatalogVersion {
        loop {
            let mut names = base.clone();
            let mut pick = || NAMES[random.below(NAMES.len() as u64) as usize];
            let (name, other) = (pick(), pick());
            match random.below(5) {
                0 => drop(names.get(name).map(Entry::kind).map(|kind| names.remove(name, kind).unwrap())),
                1 => drop(names.add(sequence(name), IfExists::Fail)),
                2 => drop(names.add(view(name, &[other]), IfExists::Replace)),
                3 => drop(names.add(table(name, &[other], &[]), IfExists::Replace)),
                _ if random.below(2) == 0 => drop(names.add(table(name, &[], &[]), IfExists::Replace)),
                _ => drop(names.add(table(name, &[], &[other]), IfExists::Replace)),
            }
            if is_whole(&names) {
                return names;
            }
        }
    }

    #[test]
    fn whatever_two_transactions_do_nothing_that_is_needed_is_missing() {
        let mut random = Random(32);
        let (mut conflicts, mut commits) = (0, 0);
        for _ in 0..2_000 {
            let catalog = Catalog::new();
            let mut versions = vec![catalog.version()];
            for _ in 0..12 {
                // Somebody who began some commits ago.
                let base = versions[versions.len() - 1 - random.below(versions.len().min(3) as u64) as usize]
                    .clone();
                let now = (0..=random.below(2)).fold(base.clone(), |names, _| step(&names, &mut random));
                match catalog.publish(&base, &now, &[], &mut || true) {
                    Ok(_) => commits += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict);
                        conflicts += 1;
                    }
                }
                let newest = catalog.version();
                assert!(is_whole(&newest), "{newest:?}");
                versions.push(newest);
            }
        }
        assert!(conflicts > 1_000 && commits > 1_000, "{conflicts} conflicts, {commits} commits");
    }

    #[test]
    fn users_are_those_that_would_break() {
        let mut names = CatalogVersion::default();
        for entry in [
            sequence("s"),
            table("t", &["t"], &["s"]),
            table("child", &["t"], &[]),
            view("v", &["t", "s"]),
            view("w", &["v"]),
        ] {
            names.add(entry, IfExists::Fail).unwrap();
        }
        let users =
            |name: &str| users(&names, name).into_iter().map(Entry::name).collect::<Vec<_>>().join(" ");
        assert_eq!([users("T"), users("s"), users("v"), users("w")], ["child v", "t v", "w", ""]);
    }
}
