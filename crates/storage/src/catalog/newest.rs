//! The newest version of the catalog, and how a changed one takes its place.

use super::dependencies;
use super::version::{CatalogVersion, Entry, NameChange, TableEntry, changed, is_temporary, same, space_of};
use crate::sync::lock_order::{Held, Lock};
use crate::sync::{AtomicU64, Ordering, PoisonError, RwLock, RwLockReadGuard};
use entasis_vector::Result;
use std::sync::Arc;

/// The newest version, shared by all connections of a database.
#[derive(Debug, Default)]
pub struct Catalog {
    newest: RwLock<CatalogVersion>,
    /// Changes so far.
    changes: AtomicU64,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// A catalog whose newest version is this one.
    pub(crate) fn of(version: CatalogVersion) -> Catalog {
        Catalog { newest: RwLock::new(version), changes: AtomicU64::new(0) }
    }

    /// The newest version.
    pub fn version(&self) -> CatalogVersion {
        self.at_rest(CatalogVersion::clone)
    }

    /// Looks at the newest version while no commit changes names, so that what `look` pins belongs to these
    /// names. It takes only locks of heads.
    pub fn at_rest<R>(&self, look: impl FnOnce(&CatalogVersion) -> R) -> R {
        let (newest, _held) = self.read();
        look(&newest)
    }

    fn read(&self) -> (RwLockReadGuard<'_, CatalogVersion>, Held) {
        let held = Held::ordered(Lock::Names);
        (self.newest.read().unwrap_or_else(PoisonError::into_inner), held)
    }

    /// How often it has been changed, or was about to be: what was found by name is still good while this
    /// stays the same and one holds the table's turn to write.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Calls `rows`, which makes the rows of some tables public and says if it did, and publishes the names
    /// of `now`, which began as `base`, at the same moment. While it does so no one else changes names, and
    /// `tables` are still what their names stand for. Nothing is waited for but locks of heads. True if rows
    /// and names have been published.
    ///
    /// # Errors
    /// Conflict, if another has changed one of the names meanwhile, or a name of `tables`, or what the
    /// objects of one need of the other, or has made an index of the same name. Nothing is published then.
    pub fn publish(
        &self,
        base: &CatalogVersion,
        now: &CatalogVersion,
        tables: &[Arc<TableEntry>],
        rows: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        if base.is(now) {
            let (newest, _held) = self.read();
            check_tables(base, now, &newest, tables)?;
            return Ok(rows());
        }
        let _held = Held::ordered(Lock::Names);
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        check_tables(base, now, &newest, tables)?;
        let merged = merge(base, now, &newest)?;
        // Before the rows: whoever holds a table that has its old name, and looks here, sees that this goes
        // on.
        self.changes.fetch_add(1, Ordering::AcqRel);
        let is_published = rows();
        if is_published {
            *newest = merged;
        }
        Ok(is_published)
    }

    /// Removes the temporary objects of an owner, and returns its tables.
    pub fn forget(&self, owner: u64) -> Vec<Arc<TableEntry>> {
        let own = |newest: &CatalogVersion| -> Vec<Entry> { newest.temporary().cloned().collect() };
        if own(&self.version().seen_by(owner)).is_empty() {
            return Vec::new();
        }
        let _held = Held::ordered(Lock::Names);
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::AcqRel);
        let gone = own(&newest.clone().seen_by(owner));
        let space = space_of(owner);
        Arc::make_mut(&mut newest.names).retain(|key, _| !key.starts_with(space.as_str()));
        gone.into_iter()
            .filter_map(|entry| if let Entry::Table(table) = entry { Some(table) } else { None })
            .collect()
    }

    /// Finds out early that [`Catalog::publish`] would fail.
    ///
    /// # Errors
    /// As there.
    pub fn judge(
        &self,
        base: &CatalogVersion,
        now: &CatalogVersion,
        tables: &[Arc<TableEntry>],
    ) -> Result<()> {
        let newest = self.version();
        check_tables(base, now, &newest, tables)?;
        merge(base, now, &newest).map(drop)
    }
}

/// Refuses tables that are not what their names stand for any more. Tables of one's own are not known to
/// others, and those that one has dropped do not matter.
fn check_tables(
    base: &CatalogVersion,
    now: &CatalogVersion,
    newest: &CatalogVersion,
    tables: &[Arc<TableEntry>],
) -> Result<()> {
    let newest = &CatalogVersion { owner: now.owner, ..newest.clone() };
    let has = |version: &CatalogVersion, entry: &Arc<TableEntry>| {
        version.table(&entry.name).is_some_and(|found| Arc::ptr_eq(found, entry))
    };
    let mut shared = tables.iter().filter(|entry| has(base, entry) && has(now, entry));
    shared.find(|entry| !has(newest, entry)).map_or(Ok(()), |entry| Err(changed("table", &entry.name)))
}

/// The newest names with what was changed from `base` to `now`.
fn merge(base: &CatalogVersion, now: &CatalogVersion, newest: &CatalogVersion) -> Result<CatalogVersion> {
    let mut merged = newest.clone();
    if base.is(now) {
        return Ok(merged);
    }
    if base.is(newest) {
        merged = CatalogVersion { owner: None, ..now.clone() };
    } else {
        let names = Arc::make_mut(&mut merged.names);
        for NameChange { name, old, new } in now.changes_since(base) {
            if !same(newest.get_key(name), old) {
                return Err(changed("object", old.or(new).map_or(&**name, Entry::name)));
            }
            match new {
                Some(entry) => names.insert(name.clone(), entry.clone()),
                None => names.remove(name),
            };
        }
        dependencies::judge(base, now, newest)?;
    }
    judge_index_names(base, now, &merged)?;
    Ok(merged)
}

/// The tables that were changed between `base` and `now` share no name of an index with any other; temporary
/// ones are among themselves.
fn judge_index_names(base: &CatalogVersion, now: &CatalogVersion, merged: &CatalogVersion) -> Result<()> {
    let merged = CatalogVersion { owner: now.owner, ..merged.clone() };
    for NameChange { new, .. } in now.changes_since(base) {
        let Some(Entry::Table(entry)) = new else { continue };
        let is_beside = |other: &TableEntry| is_temporary(&other.name) == is_temporary(&entry.name);
        for index in &entry.definition.keys {
            let mut others = merged.tables().filter(|other| !Arc::ptr_eq(other, entry) && is_beside(other));
            if others.any(|other| {
                other.definition.keys.iter().any(|key| key.name.eq_ignore_ascii_case(&index.name))
            }) {
                return Err(changed("index", &index.name));
            }
        }
    }
    Ok(())
}
