//! Tables: the head of the version tree, and who may change it when.
//!
//! A table's head is the branch that snapshots are taken of. Two locks, always in this order
//! ([`crate::sync::lock_order`]):
//!
//! - the writers' *turn*: one statement or commit changes the table at a time. Held as long as that takes.
//! - *head*: held to take a snapshot, to change single rows in place, to let a finished fork take the head's
//!   place. Never held for long, so readers do not wait for writers.
//!
//! So single rows are written to the head ([`Table::write`]), and whatever takes its time works on a fork and
//! ends in a fast-forward: statements on their own with the turn in their hands, transactions without any
//! lock until they commit ([`crate::transaction`]).

use super::logged::Logged;
use super::summaries::Summaries;
use super::turns::Turns;
use crate::definition::{ObjectId, TableOptions};
use crate::sync::lock_order::{Held, Lock};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::tree::{Branch, Epochs, Root, Shape};
use crate::value::Sketch;
use crate::wal::Log;
use entasis_vector::Schema;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Tables so far.
static TABLES: AtomicU64 = AtomicU64::new(0);

/// A table: a name, columns, and the newest version of its rows.
pub struct Table {
    id: u64,
    object: ObjectId,
    pub(crate) shape: Shape,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) turns: Turns,
    pub(crate) upkeep: Mutex<Due>,
    /// Whether what is done to its rows goes to the log ([`super::logged`]).
    logged: OnceLock<Logged>,
    head: Mutex<Head>,
}

/// Row groups that are due in the round that is on its way, the last one first.
pub(crate) type Due = Vec<usize>;

/// The head of a table, locked.
pub(crate) struct HeadGuard<'a> {
    head: MutexGuard<'a, Head>,
    _held: Held,
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

/// The newest version.
pub(crate) struct Head {
    pub(crate) branch: Branch,
    /// By column, of all rows ever added.
    pub(crate) sketches: Vec<Sketch>,
    /// Of this version, if `is_changed` is false.
    pub(super) summaries: Arc<Summaries>,
    pub(super) is_changed: bool,
    /// How often rows may have changed: what upkeep does is another root, and none of these.
    pub(crate) changes: u64,
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

    /// An empty table that a file knows by an id.
    pub(crate) fn with_id(
        object: ObjectId,
        name: impl Into<String>,
        schema: Schema,
        options: TableOptions,
    ) -> Arc<Table> {
        let shape = Shape::new(name.into(), schema, options);
        let epochs = Arc::new(Epochs::default());
        let fences = shape.no_fences();
        let root = |stamp| Root { stamp, rows: 0, groups: Vec::new(), fences, next_number: 1 };
        let head = Head {
            branch: Branch::new(epochs.clone(), &shape.options, root),
            sketches: vec![Sketch::default(); shape.schema.len()],
            summaries: Arc::new(Summaries::new(shape.schema.len())),
            is_changed: false,
            changes: 0,
        };
        let id = TABLES.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Table {
            id,
            object,
            shape,
            epochs,
            turns: Turns::new(id),
            upkeep: Mutex::default(),
            logged: OnceLock::new(),
            head: Mutex::new(head),
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

    /// What tells it apart from all other objects, also when its database is opened again.
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

    /// Rows in the newest version.
    pub fn rows(&self) -> u64 {
        self.head().branch.root.rows
    }

    /// Snapshots of it that are held.
    pub fn snapshots(&self) -> usize {
        self.epochs.held()
    }

    /// Bytes of memory of the newest version, as they were counted: exact after [`Table::sweep`], and but for
    /// shared dictionaries.
    pub fn bytes(&self) -> usize {
        self.head().branch.bytes()
    }

    pub(crate) fn head(&self) -> HeadGuard<'_> {
        let held = Held::ordered(Lock::Head(self.id));
        // What single rows are changed by does not panic half-way but by a defect, which the check of debug
        // builds would find; forks become the head by moves.
        HeadGuard { head: self.head.lock().unwrap_or_else(PoisonError::into_inner), _held: held }
    }

    /// Logs from now on what is done to rows. Before anybody has written to it, or when what was written is
    /// in the file, or referred to by the log.
    ///
    /// # Panics
    /// If it is logged already.
    pub fn log_to(&self, log: Arc<Log>) {
        let is_first = self.logged.set(Logged::new(self.object.number(), &self.shape, log)).is_ok();
        assert!(is_first, "table {} is logged once", self.name());
    }

    /// Begins a new round of checkpoints, and gives the number of the one that ends.
    pub(crate) fn end_round(&self) -> u32 {
        self.head().branch.end_round()
    }

    pub(crate) fn logged(&self) -> Option<&Logged> {
        self.logged.get()
    }

    /// Frees what no snapshot shows any more, which writers do by and by, and counts the bytes anew. Takes
    /// its time.
    pub fn sweep(&self) {
        let mut head = self.head();
        head.branch.sweep_now();
        head.branch.recount();
    }

    /// Bytes of memory of the newest version, and of older ones that are not freed yet: most of them because
    /// snapshots show them.
    pub fn held_bytes(&self) -> (usize, usize) {
        let head = self.head();
        (head.branch.bytes(), head.branch.retired_bytes())
    }

    /// Frees what no snapshot shows any more, without counting. Cheap where little was replaced.
    pub fn free_old(&self) {
        let dead = self.head().branch.take_dead();
        // Freed when the lock is given back.
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
    /// Says that rows may change.
    pub(crate) fn change(&mut self) {
        self.changes += 1;
        self.is_changed = true;
    }

    /// Says that what is known of the columns may be found out better.
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
        // Snapshots, forks and statements hold the table, so none is left.
        self.head.get_mut().unwrap_or_else(PoisonError::into_inner).branch.free();
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, {} rows)", self.name(), self.rows())
    }
}
