//! Tables and their versions.
//!
//! A table's head names its newest version: a list of row groups that never changes. A snapshot is a share of it.
//!
//! **Commit**, under the head's lock, all or nothing:
//! 1. The workers' pieces are sorted by morsel, which is the order of the rows.
//! 2. Neighbouring small pieces are encoded together to row groups of decent size.
//! 3. A small piece goes onto the last row group while that has room (`RowGroup::grow`), so that a million single-row
//!    inserts cost a million small steps; a row group that is full is encoded once more with all its rows at hand.
//!    Large pieces become row groups as they are.
//! 4. The new list becomes the head.

use crate::ROW_GROUP_ROWS;
use crate::appender::{AppendedRows, Appender};
use crate::builder::{Effort, GroupBuilder};
use crate::row_group::RowGroup;
use crate::sketch::Sketch;
use crate::zone::{ColumnSummary, Zone};
use entasis_vector::{DataType, Result, Schema, Value};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A piece of fewer rows is small: it is joined with its neighbours.
const SMALL_ROWS: usize = ROW_GROUP_ROWS / 4;

/// A table: a name, columns, and the newest version of its rows.
pub struct Table {
    name: String,
    schema: Schema,
    head: Mutex<Head>,
}

struct Head {
    version: Arc<Version>,
    /// By column, of all rows ever added.
    sketches: Vec<Sketch>,
}

/// The rows of a table at one time.
struct Version {
    groups: Vec<Arc<RowGroup>>,
    rows: u64,
    bytes: usize,
    /// By column, made when first asked for.
    summaries: Box<[OnceLock<ColumnSummary>]>,
}

impl Version {
    fn new(groups: Vec<Arc<RowGroup>>, columns: usize) -> Arc<Version> {
        let rows = groups.iter().map(|group| group.rows() as u64).sum();
        let bytes = groups.iter().map(|group| group.bytes()).sum();
        Arc::new(Version { groups, rows, bytes, summaries: (0..columns).map(|_| OnceLock::new()).collect() })
    }
}

impl Table {
    /// An empty table.
    pub fn new(name: impl Into<String>, schema: Schema) -> Arc<Table> {
        let version = Version::new(Vec::new(), schema.len());
        let sketches = vec![Sketch::default(); schema.len()];
        Arc::new(Table { name: name.into(), schema, head: Mutex::new(Head { version, sketches }) })
    }

    /// Its name, as it was written when the table was created.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Rows in the newest version.
    pub fn rows(&self) -> u64 {
        self.head().version.rows
    }

    /// Bytes of memory of the newest version.
    pub fn bytes(&self) -> usize {
        self.head().version.bytes
    }

    /// The newest version, for as long as the snapshot is held.
    pub fn snapshot(self: &Arc<Table>) -> TableSnapshot {
        TableSnapshot { version: self.head().version.clone(), table: self.clone() }
    }

    /// What one worker adds rows with.
    pub fn appender(self: &Arc<Table>) -> Appender {
        Appender::new(self.clone())
    }

    /// Adds the rows that the appenders of one statement took: all of them, or none. They stand behind the rows that
    /// are there, in the order of their morsels. Returns how many they are.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB.
    pub fn commit(&self, appended: Vec<AppendedRows>) -> Result<u64> {
        let rows = appended.iter().map(AppendedRows::rows).sum();
        if rows == 0 {
            return Ok(0);
        }
        let (pieces, sketches): (Vec<_>, Vec<_>) = appended.into_iter().map(|a| (a.pieces, a.sketches)).unzip();
        let mut pieces: Vec<(u64, RowGroup)> = pieces.into_iter().flatten().collect();
        pieces.sort_by_key(|(morsel, _)| *morsel);
        let pieces = self.join_small(pieces.into_iter().map(|(_, piece)| piece))?;

        let mut head = self.head();
        let mut groups = head.version.groups.clone();
        for piece in pieces {
            self.add_piece(&mut groups, piece)?;
        }
        head.version = Version::new(groups, self.schema.len());
        for sketches in &sketches {
            head.sketches.iter_mut().zip(sketches).for_each(|(all, added)| all.merge(added));
        }
        Ok(rows)
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        // A panic under the lock leaves the head as it was: it is changed last, by moves.
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Encodes neighbouring small pieces together.
    fn join_small(&self, pieces: impl Iterator<Item = RowGroup>) -> Result<Vec<RowGroup>> {
        let mut joined = Vec::new();
        let mut small: Vec<RowGroup> = Vec::new();
        let mut small_rows = 0;
        let flush = |small: &mut Vec<RowGroup>, joined: &mut Vec<RowGroup>| -> Result<()> {
            if small.len() <= 1 {
                joined.append(small);
                return Ok(());
            }
            let mut builder = GroupBuilder::new(&self.schema, Effort { dictionaries: true, sketch: false });
            for piece in small.drain(..) {
                builder.append_group(&piece, 0..piece.rows(), &self.schema)?;
            }
            joined.push(builder.finish());
            Ok(())
        };
        for piece in pieces {
            if piece.rows() >= SMALL_ROWS || small_rows + piece.rows() > ROW_GROUP_ROWS {
                flush(&mut small, &mut joined)?;
                small_rows = 0;
            }
            if piece.rows() >= SMALL_ROWS {
                joined.push(piece);
            } else {
                small_rows += piece.rows();
                small.push(piece);
            }
        }
        flush(&mut small, &mut joined)?;
        Ok(joined)
    }

    fn add_piece(&self, groups: &mut Vec<Arc<RowGroup>>, piece: RowGroup) -> Result<()> {
        if let Some(last) = groups.last_mut()
            && piece.rows() < SMALL_ROWS
        {
            if last.rows() + piece.rows() <= ROW_GROUP_ROWS {
                *last = Arc::new(last.grow(&piece, &self.schema)?);
                return Ok(());
            }
            *last = last.settle(&self.schema)?;
        }
        groups.push(Arc::new(piece));
        Ok(())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, {} rows)", self.name, self.rows())
    }
}

/// The rows of a table as they were when the snapshot was taken. It pins them, and every string that was decoded from
/// them. Cheap to clone.
#[derive(Clone)]
pub struct TableSnapshot {
    table: Arc<Table>,
    version: Arc<Version>,
}

impl TableSnapshot {
    /// The table's name.
    pub fn name(&self) -> &str {
        self.table.name()
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The columns.
    pub fn schema(&self) -> &Schema {
        self.table.schema()
    }

    /// Rows.
    pub fn rows(&self) -> u64 {
        self.version.rows
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.version.bytes
    }

    /// The row groups, in the order of their rows.
    pub fn row_groups(&self) -> &[Arc<RowGroup>] {
        &self.version.groups
    }

    /// What is known of a column.
    pub fn column_statistics(&self, column: usize) -> ColumnSummary {
        self.version.summaries[column].get_or_init(|| self.summarize(column)).clone()
    }

    fn summarize(&self, column: usize) -> ColumnSummary {
        let groups = self.row_groups();
        let mut zone = Zone::EMPTY;
        let mut nulls = 0;
        for group in groups {
            let of_group = group.column_zone(column);
            nulls += u64::from(of_group.nulls);
            zone.merge(&Zone { nulls: 0, ..of_group.clone() });
        }
        let values = self.rows() - nulls;
        let bounds_are_known = self.schema()[column].ty != DataType::Uuid;
        let known = |value: Value| (bounds_are_known && !value.is_null()).then_some(value);
        let ascends = nulls == 0
            && groups.iter().all(|group| group.ascends(column))
            && groups.windows(2).all(|pair| {
                let (a, b) = (pair[0].column_zone(column), pair[1].column_zone(column));
                a.max.total_cmp(&b.min).is_lt()
            });
        let distinct = if ascends && bounds_are_known {
            values
        } else if zone.min == zone.max && bounds_are_known {
            values.min(1)
        } else {
            self.table.head().sketches[column].estimate().clamp(values.min(1), values)
        };
        ColumnSummary { min: known(zone.min), max: known(zone.max), nulls, distinct, unique: ascends }
    }
}

impl fmt::Debug for TableSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableSnapshot({}, {} rows)", self.name(), self.rows())
    }
}
