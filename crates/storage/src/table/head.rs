//! Tables: the head of the version tree, and who may change it when.
//!
//! A table's head is the branch of which snapshots are taken. There are two locks, always taken in this order
//! ([`crate::sync::lock_order`]):
//!
//! - the *write lock*: one statement or commit changes the table at a time. It is held as long as that
//!   takes.
//! - the *head* lock: it is held to take a snapshot, to write single rows, and to replace the head by a
//!   finished fork; shared, to read single rows, and to change them in place (`in_place`). It is never held
//!   for long, so readers do not wait for writers.
//!
//! So single rows are written to the head ([`Table::write`]). Whatever takes longer works on a fork and ends
//! in a fast-forward: a statement outside a transaction holds the write lock meanwhile, and transactions hold
//! no lock until they commit ([`crate::transaction`]).

use super::attempts::Attempts;
use super::key_sample::KeySamples;
use super::latencies::Latencies;
use super::loads::LoadStore;
use super::logged::Logged;
use super::row_sample::RowSamples;
use super::summaries::Summaries;
use super::write_lock::WriteLock;
use crate::definition::{ObjectId, TableOptions};
use crate::node::{Link, Stamp};
use crate::sync::lock_order::{Held, Lock};
use crate::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::tree::{Branch, ColumnSource, Lineage, Root, Shape};
use crate::value::Sketch;
use crate::wal::Log;
use entasis_vector::Schema;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The number of tables that this process has created.
static TABLES: AtomicU64 = AtomicU64::new(0);

/// The next of their numbers.
pub(super) fn new_id() -> u64 {
    TABLES.fetch_add(1, Ordering::Relaxed) + 1
}

/// A table: a name, columns, and the newest version of its rows.
pub struct Table {
    id: u64,
    object: ObjectId,
    pub(crate) shape: Shape,
    /// What it has in common with tables that it was made of, or that are made of it.
    lineage: Arc<Lineage>,
    pub(crate) write_lock: WriteLock,
    /// Samples of its columns.
    pub(super) key_samples: KeySamples,
    /// A sample of its rows.
    pub(super) row_samples: RowSamples,
    /// Whether changes of single rows in place succeed.
    pub(super) attempts: Attempts,
    /// How long operations on single rows take; an heir goes on with those of the table that it succeeds.
    latencies: Arc<Latencies>,
    pub(crate) upkeep: Mutex<Due>,
    /// Set if changes of its rows go to the log ([`super::logged`]).
    logged: OnceLock<Logged>,
    head: RwLock<Head>,
}

/// Row groups that are still to be done in the present round of upkeep, the next one at the end.
pub(crate) type Due = Vec<usize>;

/// The head of a table, locked.
pub(crate) struct HeadGuard<'a> {
    head: RwLockWriteGuard<'a, Head>,
    _held: Held,
}

/// The head of a table, locked against changes other than those in place.
pub(super) struct SharedHead<'a> {
    head: RwLockReadGuard<'a, Head>,
    _held: Held,
}

impl Deref for SharedHead<'_> {
    type Target = Head;
    fn deref(&self) -> &Head {
        &self.head
    }
}

impl Deref for HeadGuard<'_> {
    type Target = Head;
    fn deref(&self) -> &Head {
        &self.head
    }
}

impl DerefMut for HeadGuard<'_> {
    fn deref_mut(&mut self) -> &mut Head {
        &mut self.head
    }
}

/// The newest version, and what is known of it.
pub(crate) struct Head {
    pub(crate) branch: Branch,
    /// Whose nodes the branch shows.
    pub(super) role: Role,
    /// A sketch for each column, of all rows that were ever added.
    pub(crate) sketches: Vec<Sketch>,
    /// Summaries of this version, unless `is_changed`.
    pub(super) summaries: Arc<Summaries>,
    pub(super) is_changed: bool,
    /// Counts changes of rows, but not those in place, which follow others. Upkeep makes new roots, which do
    /// not count.
    pub(crate) changes: u64,
    /// The stamp of the branch when the last change was counted.
    pub(super) changed_at: Stamp,
}

/// Whose nodes a table shows ([`super::successor`]).
pub(super) enum Role {
    /// Its own, and those that it shares with tables that it has succeeded.
    Owner,
    /// Its own, and those of the table that it was made of.
    Heir(Box<Heir>),
    /// Those of its successor, in the version that this was made of.
    Succeeded,
}

/// What a table was made of that has not succeeded yet.
#[derive(Clone)]
pub(super) struct Heir {
    pub(super) base: Base,
    pub(super) sources: Vec<ColumnSource>,
    /// The root that it began with.
    pub(super) root: Link<Root>,
    /// Bytes of memory that belong to the other table.
    pub(super) shared_bytes: usize,
}

/// A version of a table that another one is made of, held as by a snapshot.
pub(super) struct Base {
    table: Arc<Table>,
    root: Link<Root>,
    stamp: Stamp,
    changes: u64,
}

impl Base {
    /// Holds a version that is held, of the head after so many changes.
    pub(super) fn hold(table: &Arc<Table>, (root, stamp): (Link<Root>, Stamp), changes: u64) -> Base {
        table.lineage.epochs().enter(stamp);
        Base { table: table.clone(), root, stamp, changes }
    }

    /// The table.
    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Its root and stamp.
    pub(super) fn pinned(&self) -> (Link<Root>, Stamp) {
        (self.root, self.stamp)
    }

    /// True if the head of its table has these rows, in the same places or others.
    pub(super) fn is_of(&self, head: &Head) -> bool {
        self.changes == head.changes || self.root.is(head.branch.root)
    }
}

impl Clone for Base {
    fn clone(&self) -> Base {
        Base::hold(&self.table, self.pinned(), self.changes)
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        self.table.lineage.epochs().leave(self.stamp);
    }
}

impl Table {
    /// An empty table in the order of insertion.
    pub fn new(name: impl Into<String>, schema: Schema) -> Arc<Table> {
        Table::with_options(name, schema, TableOptions::default())
    }

    /// An empty table.
    pub fn with_options(name: impl Into<String>, schema: Schema, options: TableOptions) -> Arc<Table> {
        Table::with_id(ObjectId::fresh(), name, schema, options)
    }

    /// An empty table with the id that a file has for it.
    pub(crate) fn with_id(
        object: ObjectId,
        name: impl Into<String>,
        schema: Schema,
        options: TableOptions,
    ) -> Arc<Table> {
        let shape = Shape::new(name.into(), schema, options);
        let id = new_id();
        let lineage = Arc::new(Lineage::new(id, object));
        let fences = shape.no_fences();
        let root = |stamp| Root { stamp, rows: 0, groups: Vec::new(), fences, next_number: 1 };
        let branch = Branch::new(lineage.epochs().clone(), &shape.options, root);
        let sketches = vec![Sketch::default(); shape.schema.len()];
        Table::of_branch((id, object, shape, lineage), branch, sketches, Role::Owner)
    }

    /// A table with the version that a branch shows.
    pub(super) fn of_branch(
        (id, object, shape, lineage): (u64, ObjectId, Shape, Arc<Lineage>),
        branch: Branch,
        sketches: Vec<Sketch>,
        role: Role,
    ) -> Arc<Table> {
        let latencies = match &role {
            Role::Heir(heir) => heir.base.table().latencies.clone(),
            _ => Arc::default(),
        };
        let head = Head {
            branch,
            role,
            sketches,
            summaries: Arc::new(Summaries::new(shape.schema.len())),
            is_changed: false,
            changes: 0,
            changed_at: 0,
        };
        Arc::new(Table {
            id,
            object,
            shape,
            lineage,
            write_lock: WriteLock::new(id),
            key_samples: KeySamples::default(),
            row_samples: RowSamples::default(),
            attempts: Attempts::default(),
            latencies,
            upkeep: Mutex::default(),
            logged: OnceLock::new(),
            head: RwLock::new(head),
        })
    }

    /// Its name, as it was written when the table was created.
    pub fn name(&self) -> &str {
        &self.shape.name
    }

    /// A number that no other table of the process has. Locks of several tables are taken in the order of
    /// their ids.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its id in the catalog, which lasts when the database is closed and opened again.
    pub fn object(&self) -> ObjectId {
        self.object
    }

    /// Its columns.
    pub fn schema(&self) -> &Schema {
        &self.shape.schema
    }

    /// How it is laid out.
    pub fn options(&self) -> &TableOptions {
        &self.shape.options
    }

    /// How long operations on single rows take; whoever runs them times them.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// The number of rows in the newest version.
    pub fn rows(&self) -> u64 {
        self.head().branch.root.rows
    }

    /// The number of snapshots that are held, of this table or of those that it was made of.
    pub fn snapshots(&self) -> usize {
        self.lineage.epochs().held()
    }

    /// What it has in common with tables that it was made of, or that are made of it.
    pub(crate) fn lineage(&self) -> &Arc<Lineage> {
        &self.lineage
    }

    /// Bytes of memory of the newest version, as they were counted. Exact after [`Table::sweep`], except for
    /// shared dictionaries.
    pub fn bytes(&self) -> usize {
        self.head().branch.bytes()
    }

    pub(crate) fn head(&self) -> HeadGuard<'_> {
        let held = Held::ordered(Lock::Head(self.id));
        // Changes of single rows do not panic half-way, unless there is a defect, which the checks of debug
        // builds would find; forks become the head by moves.
        HeadGuard { head: self.head.write().unwrap_or_else(PoisonError::into_inner), _held: held }
    }

    /// The head, which others can read meanwhile, and change in place.
    pub(super) fn shared_head(&self) -> SharedHead<'_> {
        let held = Held::ordered(Lock::Head(self.id));
        SharedHead { head: self.head.read().unwrap_or_else(PoisonError::into_inner), _held: held }
    }

    /// Logs changes of rows from now on; the rows of large loads are written to `loads`, if there is such a
    /// store. To be called before anybody writes to the table, or once what was written is in the file or the
    /// log refers to it.
    ///
    /// # Panics
    /// If it is logged already.
    pub(crate) fn log_to(&self, log: Arc<Log>, loads: Option<Arc<dyn LoadStore>>) {
        let logged = Logged::new(self.object.number(), &self.shape, log, loads);
        let is_first = self.logged.set(logged).is_ok();
        assert!(is_first, "table {} is logged once", self.name());
    }

    /// Begins a new round of checkpoints, and returns the number of the one that ends.
    pub(crate) fn end_round(&self) -> u32 {
        self.head().branch.end_round()
    }

    pub(crate) fn logged(&self) -> Option<&Logged> {
        self.logged.get()
    }

    /// Frees what no snapshot shows any more, which writers also do now and then, and counts all bytes again.
    /// This takes a while.
    pub fn sweep(&self) {
        let mut head = self.head();
        head.branch.sweep_now();
        head.branch.recount();
    }

    /// Bytes of memory of the newest version, and of older ones that have not been freed, mostly because
    /// snapshots show them.
    pub fn held_bytes(&self) -> (usize, usize) {
        let head = self.head();
        (head.branch.bytes(), head.branch.retired_bytes())
    }

    /// Frees what no snapshot shows any more, without counting. Cheap where little was replaced.
    pub fn free_old(&self) {
        let dead = self.head().branch.take_dead();
        // Freed after the lock has been released.
        drop(dead);
    }

    /// How often its rows may have changed.
    pub(crate) fn changes(&self) -> u64 {
        self.head().changes
    }

    /// Nodes of older versions that are not freed.
    pub fn retired(&self) -> usize {
        self.head().branch.retired()
    }
}

impl Head {
    /// Notes that rows may change.
    ///
    /// # Panics
    /// If another table has succeeded this one.
    pub(crate) fn change(&mut self) {
        assert!(!self.branch.is_succeeded(), "a table that another one has succeeded is not written");
        self.changes += 1;
        self.changed_at = self.branch.edit.stamp;
        self.is_changed = true;
    }

    /// Notes that summaries may be more exact now.
    pub(crate) fn forget_summaries(&mut self) {
        self.is_changed = true;
    }

    /// Counts the distinct values of rows that were added.
    pub(crate) fn count(&mut self, sketches: &[Sketch]) {
        self.sketches.iter_mut().zip(sketches).for_each(|(all, added)| all.merge(added));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // Snapshots, forks and statements hold the table, so there are none any more.
        let Head { branch, role, .. } = self.head.get_mut().unwrap_or_else(PoisonError::into_inner);
        match role {
            Role::Owner => self.lineage.keep(branch),
            Role::Heir(_) => branch.free_own(),
            Role::Succeeded => branch.free_succeeded(),
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, {} rows)", self.name(), self.rows())
    }
}
