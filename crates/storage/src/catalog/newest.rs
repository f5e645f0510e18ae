//! The newest version of the catalog, and how a changed version replaces it.

use super::dependencies;
use super::entry::{Entry, TableEntry, is_temporary, space_of};
use super::version::{CatalogVersion, NameChange, changed, same};
use crate::sync::lock_order::{Held, Lock};
use crate::sync::{AtomicU64, Ordering, PoisonError, RwLock, RwLockReadGuard};
use entasis_vector::Result;
use std::sync::Arc;

/// The newest version, shared by all connections of a database.
#[derive(Debug, Default)]
pub struct Catalog {
    newest: RwLock<CatalogVersion>,
    /// The number of changes so far.
    changes: AtomicU64,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// A catalog with this newest version.
    pub(crate) fn of(version: CatalogVersion) -> Catalog {
        Catalog { newest: RwLock::new(version), changes: AtomicU64::new(0) }
    }

    /// The newest version.
    pub fn version(&self) -> CatalogVersion {
        self.at_rest(CatalogVersion::clone)
    }

    /// Calls `look` with the newest version while no commit can change names, so that the versions of tables
    /// that it pins belong to these names. It must take no locks but those of heads.
    pub fn at_rest<R>(&self, look: impl FnOnce(&CatalogVersion) -> R) -> R {
        let (newest, _held) = self.read();
        look(&newest)
    }

    fn read(&self) -> (RwLockReadGuard<'_, CatalogVersion>, Held) {
        let held = Held::ordered(Lock::Names);
        (self.newest.read().unwrap_or_else(PoisonError::into_inner), held)
    }

    /// Counts the changes of the catalog, each from before it is made: what was found by name is still valid
    /// while the count stays the same and one holds the table's write lock.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Publishes the names of `now`, which began as `base`, together with the rows of some tables. `rows`
    /// publishes the rows, and returns whether it did so. A new table that was made of another one succeeds
    /// it ([`crate::TableSnapshot::with_columns`]). Meanwhile nobody else can change names, and `tables` must
    /// still be what their names stand for. Nothing is waited for but locks of heads. True if rows and names
    /// have been published.
    ///
    /// # Errors
    /// Conflict, if somebody else has changed one of these names meanwhile, or a name of `tables`, or what an
    /// object of one side needs of the other, or has created an index of the same name. Then nothing is
    /// published.
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
        // Before the rows, so that the holder of a table under its old name sees that a change is under way.
        self.changes.fetch_add(1, Ordering::AcqRel);
        let is_published = rows();
        if is_published {
            *newest = merged;
            // At the same moment for whoever asks for names, checkpoints among them.
            let new = now.changes_since(base).filter_map(|change| match change.new {
                Some(Entry::Table(entry)) => Some(entry),
                _ => None,
            });
            new.for_each(|entry| _ = entry.table.succeed());
        }
        Ok(is_published)
    }

    /// Removes the temporary objects of an owner, and returns their tables.
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
        let keys: Vec<Arc<str>> =
            newest.names.entries().beginning(&space).map(|(key, _)| key.clone()).collect();
        for key in &keys {
            newest.names.remove(key);
        }
        gone.into_iter()
            .filter_map(|entry| if let Entry::Table(table) = entry { Some(table) } else { None })
            .collect()
    }

    /// Checks in advance whether [`Catalog::publish`] would fail.
    ///
    /// # Errors
    /// As of [`Catalog::publish`].
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

/// Refuses tables that are no longer what their names stand for. Tables that this transaction has created or
/// dropped are left out.
fn check_tables(
    base: &CatalogVersion,
    now: &CatalogVersion,
    newest: &CatalogVersion,
    tables: &[Arc<TableEntry>],
) -> Result<()> {
    if base.is(newest) && now.is(newest) {
        return Ok(());
    }
    let newest = &CatalogVersion { owner: now.owner, ..newest.clone() };
    let has = |version: &CatalogVersion, entry: &Arc<TableEntry>| {
        version.table(&entry.name).is_some_and(|found| Arc::ptr_eq(found, entry))
    };
    let mut shared = tables.iter().filter(|entry| has(base, entry) && has(now, entry));
    shared.find(|entry| !has(newest, entry)).map_or(Ok(()), |entry| Err(changed("table", &entry.name)))
}

/// The newest names, with the changes from `base` to `now`.
fn merge(base: &CatalogVersion, now: &CatalogVersion, newest: &CatalogVersion) -> Result<CatalogVersion> {
    let mut merged = newest.clone();
    if base.is(now) {
        return Ok(merged);
    }
    if base.is(newest) {
        merged = CatalogVersion { owner: None, ..now.clone() };
    } else {
        for NameChange { name, old, new } in now.changes_since(base) {
            if !same(newest.get_key(name), old) {
                return Err(changed("object", old.or(new).map_or(&**name, Entry::name)));
            }
            match new {
                Some(entry) => merged.names.insert(name.clone(), entry.clone()),
                None => {
                    merged.names.remove(name);
                }
            }
        }
        dependencies::judge(base, now, newest)?;
    }
    judge_index_names(base, now, &merged)?;
    Ok(merged)
}

/// Checks that tables that were changed between `base` and `now` share no index name with any other table.
/// Temporary tables are compared with each other only.
fn judge_index_names(base: &CatalogVersion, now: &CatalogVersion, merged: &CatalogVersion) -> Result<()> {
    let merged = CatalogVersion { owner: now.owner, ..merged.clone() };
    for NameChange { new, .. } in now.changes_since(base) {
        let Some(Entry::Table(entry)) = new else { continue };
        for index in &entry.definition.keys {
            let mut tables = merged.tables_with_index(&index.name, is_temporary(&entry.name));
            if tables.any(|other| !Arc::ptr_eq(other, entry)) {
                return Err(changed("index", &index.name));
            }
        }
    }
    Ok(())
}
