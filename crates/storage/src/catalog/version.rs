//! Versions of the catalog: what names stand for at one moment.
//!
//! A name is one text, from which schema and own name can be told ([`entasis_vector::name`]). Names are
//! compared without regard to case, and kept as they were written, as in DuckDB. All objects share one space
//! of names but temporary ones: those of the schema `temp` belong to an *owner*, a connection, and each owner
//! has a space of its own. A version that is [`CatalogVersion::seen_by`] an owner has the names of the common
//! space and of the owner's, and no others. Any other version finds no temporary names, but lists the objects
//! of all spaces.

use super::entry::{Entry, SPACE, TableEntry, View, is_temporary, key, space_of};
use super::map::differences;
use super::names::NameIndex;
use crate::definition::Sequence;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, ErrorKind, Result};
use std::sync::Arc;

/// What to do if a name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// Fail.
    Fail,
    /// Keep the present object: `IF NOT EXISTS`.
    Keep,
    /// Replace it: `OR REPLACE`. Only a table can replace a table, and a view a view.
    Replace,
}

/// The names of one moment, with changes of one's own. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct CatalogVersion {
    pub(super) names: NameIndex,
    /// The owner whose temporary objects it finds.
    pub(super) owner: Option<u64>,
}

impl CatalogVersion {
    /// The same names, with the temporary ones of an owner.
    pub fn seen_by(mut self, owner: u64) -> CatalogVersion {
        self.owner = Some(owner);
        self
    }

    /// The key of an object by its name.
    fn key(&self, name: &str) -> String {
        match self.owner {
            Some(owner) if is_temporary(name) => space_of(owner) + &key(name),
            _ => key(name),
        }
    }

    /// What a name stands for.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.names.get(self.key(name).as_str())
    }

    /// What a key stands for.
    pub(crate) fn get_key(&self, key: &str) -> Option<&Entry> {
        self.names.get(key)
    }

    /// The space of its owner, if anybody has temporary objects.
    fn own_space(&self) -> Option<String> {
        // PERF: they come before nearly all others, and most databases have none.
        let has_some = self.names.entries().beginning(SPACE).next().is_some();
        self.owner.filter(|_| has_some).map(space_of)
    }

    /// The temporary objects of its owner.
    pub fn temporary(&self) -> impl Iterator<Item = &Entry> {
        let space = self.own_space();
        space.into_iter().flat_map(|space| {
            let own = self.names.entries().from(&space);
            own.take_while(move |(key, _)| key.starts_with(space.as_str())).map(|(_, entry)| entry)
        })
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Arc<TableEntry>> {
        match self.get(name) {
            Some(Entry::Table(entry)) => Some(entry),
            _ => None,
        }
    }

    /// The view of this name.
    pub fn view(&self, name: &str) -> Option<&Arc<View>> {
        match self.get(name) {
            Some(Entry::View(view)) => Some(view),
            _ => None,
        }
    }

    /// The sequence of this name.
    pub fn sequence(&self, name: &str) -> Option<&Arc<Sequence>> {
        match self.get(name) {
            Some(Entry::Sequence(sequence)) => Some(sequence),
            _ => None,
        }
    }

    /// True if any name is that of a type.
    pub fn has_types(&self) -> bool {
        self.names.has_types()
    }

    /// The table that has an index or unique key of this name, and the key's position. Searched among
    /// temporary tables, among the others, or, if `temporary` is `None`, among the former first and then
    /// among the latter.
    pub fn index(&self, name: &str, temporary: Option<bool>) -> Option<(&Arc<TableEntry>, usize)> {
        let among = |temporary: bool| {
            let entry = self.table_with_index(name, temporary)?;
            let number = entry.definition.keys.iter().position(|key| key.name.eq_ignore_ascii_case(name))?;
            Some((entry, number))
        };
        match temporary {
            Some(temporary) => among(temporary),
            None => among(true).or_else(|| among(false)),
        }
    }

    /// All objects, sorted by name, temporary ones first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        let is_seen = self.sees();
        self.names.entries().iter().filter(move |(key, _)| is_seen(key)).map(|(_, entry)| entry)
    }

    /// Whether it sees the object of a key.
    fn sees(&self) -> impl Fn(&str) -> bool + use<> {
        let own = self.own_space();
        move |key| match &own {
            Some(own) if key.starts_with(SPACE) => key.starts_with(own.as_str()),
            _ => true,
        }
    }

    /// The objects that need the one of this name, in the order of [`CatalogVersion::entries`].
    pub(super) fn users(&self, name: &str) -> Vec<&Entry> {
        let is_seen = self.sees();
        let users = self.names.users(&key(name)).into_iter().filter(|key| is_seen(key));
        users.filter_map(|key| self.names.get(key)).collect()
    }

    /// All tables, in the order of [`CatalogVersion::entries`].
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableEntry>> {
        self.entries().filter_map(|entry| if let Entry::Table(table) = entry { Some(table) } else { None })
    }

    /// The table that has an index or key of this name, among temporary tables or among the others.
    pub fn table_with_index(&self, name: &str, temporary: bool) -> Option<&Arc<TableEntry>> {
        self.tables_with_index(name, temporary).next()
    }

    /// All such tables: one, unless several are being made.
    pub fn tables_with_index(&self, name: &str, temporary: bool) -> impl Iterator<Item = &Arc<TableEntry>> {
        let is_seen = self.sees();
        let tables =
            self.names.tables_with_index(name, temporary).into_iter().filter(move |key| is_seen(key));
        tables.filter_map(|key| match self.names.get(key) {
            Some(Entry::Table(entry)) => Some(entry),
            _ => None,
        })
    }

    /// Adds an object under its name. True if it was added, false if the name was taken and is kept.
    ///
    /// # Errors
    /// Input, if the name is taken.
    pub fn add(&mut self, entry: Entry, if_exists: IfExists) -> Result<bool> {
        let name = entry.name();
        if let Some(taken) = self.get(name) {
            let same_kind = taken.kind() == entry.kind();
            match if_exists {
                IfExists::Keep if same_kind => return Ok(false),
                IfExists::Replace if same_kind => {}
                _ => {
                    let name = entry.shown_name();
                    let error = Error::input(format!("a {} named \"{name}\" already exists", taken.kind()));
                    return Err(error.with_sqlstate(sqlstate::TAKEN));
                }
            }
        }
        let key = self.key(name);
        self.names.insert(key.into(), entry);
        Ok(true)
    }

    /// The object of this name, which is to be dropped as one of `kind`.
    ///
    /// # Errors
    /// Input, if the name is that of another kind of object.
    pub fn find(&self, name: &str, kind: &'static str) -> Result<Option<&Entry>> {
        match self.get(name) {
            Some(entry) if entry.kind() != kind => {
                let is = entry.kind();
                let error = Error::input(format!("\"{name}\" is a {is}"));
                Err(error.with_hint(format!("use DROP {}", is.to_uppercase())))
            }
            found => Ok(found),
        }
    }

    /// Adds an object under its name, or replaces what has the name.
    pub(crate) fn put(&mut self, entry: Entry) {
        let key = self.key(entry.name());
        self.names.insert(key.into(), entry);
    }

    /// Removes a name. False if there was none.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        let key = self.key(name);
        self.names.remove(&key)
    }

    /// Removes the object of this name and `kind`. False if there is none of this name.
    ///
    /// # Errors
    /// Input, if the name is that of another kind of object.
    pub fn remove(&mut self, name: &str, kind: &'static str) -> Result<bool> {
        let is_there = self.find(name, kind)?.is_some();
        if is_there {
            let key = self.key(name);
            self.names.remove(&key);
        }
        Ok(is_there)
    }

    /// The names whose objects differ from those in `base`, in order. What both versions share is not read.
    pub fn changes_since<'a>(&'a self, base: &'a CatalogVersion) -> impl Iterator<Item = NameChange<'a>> {
        let pairs = differences(base.names.entries(), self.names.entries());
        let pairs = pairs.map(|(name, old, new)| NameChange { name, old, new });
        pairs.filter(|pair| !same(pair.old, pair.new))
    }

    /// True if one is a clone of the other, and neither has changed since.
    pub fn is(&self, other: &CatalogVersion) -> bool {
        self.names.is(&other.names)
    }
}

/// A name whose object differs between two versions.
#[derive(Debug)]
pub struct NameChange<'a> {
    /// Its key: the name in lower case, after its space.
    pub name: &'a Arc<str>,
    /// The object before.
    pub old: Option<&'a Entry>,
    /// The object now.
    pub new: Option<&'a Entry>,
}

/// True if both are the same object, or there is none in either.
pub(crate) fn same(a: Option<&Entry>, b: Option<&Entry>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.is(b),
        _ => false,
    }
}

/// The error of the second one to change a name.
pub(crate) fn changed(what: &str, name: &str) -> Error {
    let message = format!("another transaction has created, changed or dropped the {what} {name}");
    Error::new(ErrorKind::Conflict, message).with_hint("roll back and try the transaction again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::definition::{Definition, Key, KeyKind};
    use crate::table::Table;
    use entasis_vector::{DataType, Field};

    fn table(name: &str) -> Entry {
        Entry::Table(Arc::new(TableEntry::plain(Table::new(name, vec![Field::new("a", DataType::Int32)]))))
    }

    fn view(name: &str) -> Entry {
        Entry::View(Arc::new(View {
            name: name.into(),
            sql: "SELECT 1".into(),
            schema: Vec::new(),
            needs: Vec::new(),
        }))
    }

    #[test]
    fn names_are_found_in_any_case_and_kept_as_written() {
        let mut names = CatalogVersion::default();
        assert!(names.add(table("Trips"), IfExists::Fail).unwrap());
        assert_eq!(names.table("TRIPS").unwrap().name, "Trips");
        assert!(!names.add(table("trips"), IfExists::Keep).unwrap());
        let error = names.add(table("trips"), IfExists::Fail).unwrap_err();
        assert_eq!(error.message(), "a table named \"trips\" already exists");
        assert!(names.add(view("trips"), IfExists::Replace).is_err());
        assert!(names.remove("trips", "view").is_err());
        assert!(names.remove("tripS", "table").unwrap());
        assert!(!names.remove("trips", "table").unwrap());
        assert!(names.add(view("trips"), IfExists::Fail).unwrap());
        assert_eq!(names.entries().map(Entry::name).collect::<Vec<_>>(), ["trips"]);
    }

    #[test]
    fn temporary_names_are_their_owners() {
        let catalog = Catalog::new();
        let publish = |base: &CatalogVersion, now: &CatalogVersion| {
            catalog.publish(base, now, &[], &mut || true).unwrap()
        };
        let names_of =
            |version: &CatalogVersion| version.entries().map(|e| e.name().to_owned()).collect::<Vec<_>>();
        let (base_1, base_2) = (catalog.version().seen_by(1), catalog.version().seen_by(2));
        let (mut one, mut two) = (base_1.clone(), base_2.clone());
        one.add(table("t"), IfExists::Fail).unwrap();
        one.add(table("Temp.t"), IfExists::Fail).unwrap();
        two.add(table("temp.t"), IfExists::Fail).unwrap();
        two.add(view("temp.v"), IfExists::Fail).unwrap();
        let (of_one, of_two) = (one.table("temp.T").unwrap().clone(), two.table("temp.t").unwrap().clone());
        publish(&base_1, &one);
        publish(&base_2, &two);
        let newest = catalog.version();
        assert_eq!(names_of(&newest.clone().seen_by(1)), ["Temp.t", "t"]);
        assert_eq!(names_of(&newest.clone().seen_by(2)), ["temp.t", "temp.v", "t"]);
        assert_eq!(names_of(&newest.clone().seen_by(3)), ["t"]);
        assert_eq!(newest.entries().count(), 4);
        assert!(newest.get("temp.t").is_none());
        assert!(Arc::ptr_eq(newest.clone().seen_by(1).table("temp.t").unwrap(), &of_one));
        assert!(Arc::ptr_eq(newest.clone().seen_by(2).table("temp.t").unwrap(), &of_two));
        let forgotten = catalog.forget(2);
        assert!(forgotten.len() == 1 && Arc::ptr_eq(&forgotten[0], &of_two));
        assert_eq!(names_of(&catalog.version()), ["Temp.t", "t"]);
        let changes = catalog.changes();
        assert!(catalog.forget(3).is_empty());
        assert_eq!(catalog.changes(), changes, "nothing has changed");
    }

    #[test]
    fn the_first_to_change_a_name_wins() {
        let catalog = Catalog::new();
        let publish =
            |base: &CatalogVersion, now: &CatalogVersion| catalog.publish(base, now, &[], &mut || true);
        let base = catalog.version();
        let (mut one, mut two, mut three) = (base.clone(), base.clone(), base.clone());
        one.add(table("a"), IfExists::Fail).unwrap();
        two.add(table("b"), IfExists::Fail).unwrap();
        three.add(view("a"), IfExists::Fail).unwrap();
        publish(&base, &one).unwrap();
        publish(&base, &two).unwrap();
        assert_eq!(publish(&base, &three).unwrap_err().kind(), ErrorKind::Conflict);
        let newest = catalog.version();
        assert_eq!(newest.entries().map(Entry::name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(catalog.changes(), 2);

        // Two indexes of one name, on different tables.
        let indexed = |name: &str| {
            let key = Key { name: "ix".into(), columns: vec![0], kind: KeyKind::Index };
            let Entry::Table(plain) = table(name) else { unreachable!("it is a table") };
            let definition = Arc::new(Definition { keys: vec![key], ..Definition::default() });
            let TableEntry { name, table, .. } = &*plain;
            let entry =
                TableEntry { name: name.clone(), table: table.clone(), definition, indexes: vec![None] };
            Entry::Table(Arc::new(entry))
        };
        let (mut one, mut two) = (newest.clone(), newest.clone());
        one.add(indexed("e"), IfExists::Fail).unwrap();
        two.add(indexed("f"), IfExists::Fail).unwrap();
        publish(&newest, &one).unwrap();
        let error = publish(&newest, &two).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("index ix"), "{error}");
        let newest = catalog.version();

        // Rows of a table that was dropped meanwhile are not published.
        let written = newest.table("a").unwrap().clone();
        let mut without = newest.clone();
        without.remove("a", "table").unwrap();
        publish(&newest, &without).unwrap();
        let error =
            catalog.publish(&newest, &newest, std::slice::from_ref(&written), &mut || true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        // Those of a table of one's own are.
        let base = catalog.version();
        let mut own = base.clone();
        own.add(table("c"), IfExists::Fail).unwrap();
        let made = own.table("c").unwrap().clone();
        assert!(!catalog.publish(&base, &own, std::slice::from_ref(&made), &mut || false).unwrap());
        assert!(catalog.version().get("c").is_none(), "names come with the rows or not at all");
        assert!(catalog.publish(&base, &own, &[made], &mut || true).unwrap());
    }
}
