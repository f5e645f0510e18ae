//! Tables: the head of the version tree, and who may change it when.
//!
//! A table's head is the branch that snapshots are taken of. Two locks, always in this order:
//!
//! - the writers' *turn*: one statement or commit changes the table at a time. Held as long as that takes.
//! - *head*: held to take a snapshot, to change single rows in place, to let a finished fork take the head's place. Never
//!   held for long, so readers do not wait for writers.
//!
//! So single rows are written to the head ([`Table::write`]), and whatever takes its time works on a fork and ends in a
//! fast-forward: statements on their own with the turn in their hands, transactions without any lock until they commit
//! ([`crate::transaction`]).

use crate::appender::{AppendedRows, Appender};
use crate::builder::{Effort, GroupBuilder};
use crate::layout::TableOptions;
use crate::reader::TableReader;
use crate::row_group::Piece;
use crate::sketch::Sketch;
use crate::snapshot::{Origin, Summaries, TableSnapshot};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};
use crate::tree::{Branch, Epochs, Root};
use crate::turn::{Turns, WriterTurn};
use crate::upkeep::Due;
use crate::write::Shape;
use crate::writer::{Statement, TableFork, TableWriter};
use entasis_vector::{Result, Schema};
use std::fmt;
use std::sync::Arc;

/// A table: a name, columns, and the newest version of its rows.
pub struct Table {
    pub(crate) shape: Shape,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) turns: Turns,
    pub(crate) upkeep: Mutex<Due>,
    is_superseded: AtomicBool,
    head: Mutex<Head>,
}

/// Rows that are to be added, ready to be hung into the tree.
pub(crate) struct Added {
    pub(crate) pieces: Vec<Arc<Piece>>,
    /// Of each appender, by column.
    pub(crate) sketches: Vec<Vec<Sketch>>,
}

/// The newest version.
pub(crate) struct Head {
    pub(crate) branch: Branch,
    /// By column, of all rows ever added.
    pub(crate) sketches: Vec<Sketch>,
    /// Of this version, if `is_changed` is false.
    summaries: Arc<Summaries>,
    is_changed: bool,
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
        let shape = Shape::new(name.into(), schema, options);
        let epochs = Arc::new(Epochs::default());
        let fences = shape.no_fences();
        let root = |stamp| Root { stamp, rows: 0, groups: Vec::new(), fences };
        let head = Head {
            branch: Branch::new(epochs.clone(), &shape.options, root),
            sketches: vec![Sketch::default(); shape.schema.len()],
            summaries: Arc::new(Summaries::new(shape.schema.len())),
            is_changed: false,
            changes: 0,
        };
        Arc::new(Table {
            shape,
            epochs,
            turns: Turns::default(),
            upkeep: Mutex::default(),
            is_superseded: AtomicBool::new(false),
            head: Mutex::new(head),
        })
    }

    /// Its name, as it was written when the table was created.
    pub fn name(&self) -> &str {
        &self.shape.name
    }

    /// Says that another table has taken this one's place. Commits of transactions that wrote to it are in conflict from
    /// now on. Whoever says so holds the writers' turn, so that no commit is on its way.
    pub fn supersede(&self) {
        self.is_superseded.store(true, Ordering::Release);
    }

    /// True if another table has taken this one's place. Who looked it up before writing single rows asks while the writer
    /// is open.
    pub fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Acquire)
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

    /// Bytes of memory of the newest version, as they were counted: exact after [`Table::sweep`], and but for shared
    /// dictionaries.
    pub fn bytes(&self) -> usize {
        self.head().branch.bytes()
    }

    /// The newest version, for as long as the snapshot is held.
    pub fn snapshot(self: &Arc<Table>) -> TableSnapshot {
        let mut head = self.head();
        self.pin(&mut head)
    }

    /// A snapshot of the head, which is locked.
    pub(crate) fn pin(self: &Arc<Table>, head: &mut Head) -> TableSnapshot {
        if std::mem::take(&mut head.is_changed) {
            head.summaries = Arc::new(Summaries::new(self.schema().len()));
        }
        let (root, stamp) = head.branch.pin();
        TableSnapshot::new(self.clone(), root, stamp, head.summaries.clone(), Origin::Head { changes: head.changes })
    }

    /// What one worker adds rows with.
    pub fn appender(self: &Arc<Table>) -> Appender {
        Appender::new(self.clone())
    }

    /// Writes single rows to the newest version. Nobody can take a snapshot meanwhile, so this is for short work.
    pub fn write(&self) -> TableWriter<'_> {
        let turn = self.turns.take();
        TableWriter::of_head(self, turn, self.head())
    }

    /// Reads single rows of the newest version. Nobody can change it meanwhile, so this is for short work; unlike a snapshot it
    /// makes no writer copy anything.
    pub fn read<R>(&self, look: impl FnOnce(TableReader<'_>) -> R) -> R {
        look(TableReader::new(self, &self.head().branch.root))
    }

    /// Writes many rows, all or nothing. Other writers wait, readers do not.
    pub(crate) fn statement(self: &Arc<Table>) -> Statement {
        let turn = WriterTurn::take(self);
        Statement::new(turn, TableFork::at(&self.snapshot(), None))
    }

    /// Adds the rows that the appenders of one statement took: all of them, or none. Without a layout key, they stand
    /// behind the rows that are there, in the order of their morsels. Returns how many they are.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB.
    pub fn commit(self: &Arc<Table>, appended: Vec<AppendedRows>) -> Result<u64> {
        let rows = appended.iter().map(AppendedRows::rows).sum();
        if rows == 0 {
            return Ok(0);
        }
        let added = self.join(appended)?;
        let few = rows <= 64;
        if few {
            self.write().hang(added)?;
        } else {
            let mut statement = self.statement();
            statement.write().hang(added)?;
            statement.commit();
        }
        Ok(rows)
    }

    /// Pieces in the order of their morsels, small ones encoded together.
    pub(crate) fn join(&self, appended: Vec<AppendedRows>) -> Result<Added> {
        let (pieces, sketches): (Vec<_>, Vec<_>) = appended.into_iter().map(|a| (a.pieces, a.sketches)).unzip();
        let mut pieces: Vec<(u64, Arc<Piece>)> = pieces.into_iter().flatten().collect();
        pieces.sort_by_key(|(morsel, _)| *morsel);
        let pieces = self.join_small(pieces.into_iter().map(|(_, piece)| piece))?;
        Ok(Added { pieces, sketches })
    }

    pub(crate) fn head(&self) -> MutexGuard<'_, Head> {
        // What single rows are changed by does not panic half-way but by a defect, which the check of debug builds
        // would find; forks become the head by moves.
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees what no snapshot shows any more, which writers do by and by, and counts the bytes anew. Takes its time.
    pub fn sweep(&self) {
        let mut head = self.head();
        head.branch.sweep_now();
        head.branch.recount();
    }

    /// Nodes of older versions that are not freed.
    pub fn retired(&self) -> usize {
        self.head().branch.retired()
    }

    /// How builders encode rows of this table. By key, slices have the slots that are left empty already, so that rows
    /// that come in order need not be laid anew.
    pub(crate) fn effort(&self, sketch: bool) -> Effort {
        let options = &self.shape.options;
        let (width, keyed) = (options.block_slots, self.shape.key.is_some());
        let block_rows = if keyed { options.filled_slots(width) } else { width };
        Effort {
            sketch,
            block_rows,
            capacity: if block_rows < width { width } else { 0 },
            group_rows: options.group_slots / width * block_rows,
        }
    }

    /// Encodes neighbouring small pieces together.
    fn join_small(&self, pieces: impl Iterator<Item = Arc<Piece>>) -> Result<Vec<Arc<Piece>>> {
        let full = self.effort(false).group_rows;
        let mut joined = Vec::new();
        let mut small: Vec<Arc<Piece>> = Vec::new();
        let mut small_rows = 0;
        let flush = |small: &mut Vec<Arc<Piece>>, joined: &mut Vec<Arc<Piece>>| -> Result<()> {
            if small.len() <= 1 {
                joined.append(small);
                return Ok(());
            }
            let mut builder = GroupBuilder::new(&self.shape, self.effort(false));
            for piece in small.drain(..) {
                builder.append_slots(&*piece, 0..piece.rows, self.schema())?;
            }
            joined.push(Arc::new(builder.finish()));
            Ok(())
        };
        for piece in pieces {
            let is_small = piece.rows < full / 4;
            if !is_small || small_rows + piece.rows > full {
                flush(&mut small, &mut joined)?;
                small_rows = 0;
            }
            if is_small {
                small_rows += piece.rows;
                small.push(piece);
            } else {
                joined.push(piece);
            }
        }
        flush(&mut small, &mut joined)?;
        Ok(joined)
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
