//! A section: some consecutive whole partitions, whose rows are in order; and the place of each row in them.
//!
//! Functions count in *positions*: places of rows in the section, from 0. A section knows the positions at
//! which partitions and groups of peers begin. Columns are not copied: a function gathers what it reads, a
//! chunk at a time.
//!
//! A section may also be a part of one partition with [gaps](Gaps): then groups of peers keep their numbers
//! in the partition, and those whose first row has a position are known.
//!
//! Two rows are peers, or of one partition, if they agree as under `IS NOT DISTINCT FROM`; since rows are in
//! order, each is compared with the one before it and no other.

use super::gaps::Gaps;
use super::kept::KeptOrder;
use crate::exec::operator::{Tasks, in_parallel};
use entasis_vector::value::canonical_bits;
use entasis_vector::{CHUNK_ROWS, Interval, Native, PhysicalType, Result, StringView, Vector};
use std::ops::Range;
use std::sync::Arc;

/// Rows that are worth a task of their own.
pub const TASK_ROWS: usize = 32 << 10;

/// See the module.
pub struct Section {
    rows: Arc<KeptOrder>,
    /// The place of the section in their order.
    range: Range<usize>,
    /// The positions at which partitions begin, ascending, and the number of rows.
    partitions: Vec<u32>,
    /// The same for groups of peers; empty if they are not needed.
    peers: Vec<u32>,
    /// By partition, the number of its first group of peers, and at the end the number of groups.
    first_groups: Vec<u32>,
    /// Rows of its partition that it leaves out.
    gaps: Option<Gaps>,
    /// With gaps, by group of peers, its number in the partition; at the end the number of groups.
    numbers: Vec<u64>,
}

impl Section {
    /// The rows `range` of an order, which are partitions that begin at these positions; peers agree in the
    /// columns `order`, if they are needed.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(
        rows: Arc<KeptOrder>,
        range: Range<usize>,
        mut partitions: Vec<u32>,
        order: Option<&[usize]>,
        tasks: &dyn Tasks,
    ) -> Result<Section> {
        let (mut peers, mut first_groups) = (Vec::new(), Vec::new());
        if let Some(order) = order {
            let mut of_partitions = partitions.iter().copied().peekable();
            let changes = boundaries(&rows, range.clone(), order, tasks)?;
            // Where a partition begins, so does a group of peers, whatever its keys are.
            for change in changes {
                while let Some(first) = of_partitions.next_if(|first| *first < change) {
                    peers.push(first);
                }
                of_partitions.next_if_eq(&change);
                peers.push(change);
            }
            peers.extend(of_partitions);
            let mut groups = 0..peers.len();
            first_groups.extend(
                partitions
                    .iter()
                    .filter_map(|first| groups.find(|&group| peers[group] == *first))
                    .map(|at| at as u32),
            );
            first_groups.push(peers.len() as u32);
            peers.push(range.len() as u32);
        }
        partitions.push(range.len() as u32);
        Ok(Section { rows, range, partitions, peers, first_groups, gaps: None, numbers: Vec::new() })
    }

    /// A part of one partition: `rows` are the positions of `gaps`. Otherwise as `new`.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn with_gaps(
        rows: Arc<KeptOrder>,
        gaps: Gaps,
        order: Option<&[usize]>,
        tasks: &dyn Tasks,
    ) -> Result<Section> {
        let len = gaps.len();
        debug_assert_eq!(rows.len(), len);
        let (mut peers, mut numbers, mut first_groups) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(order) = order {
            let index = gaps.index();
            for stretch in gaps.stretches() {
                let block = stretch.blocks.start;
                let at = stretch.position;
                let mut changes = vec![0];
                if !stretch.is_gap {
                    let positions = at as usize..at as usize + index.rows_in(&stretch.blocks);
                    changes = boundaries(&rows, positions, order, tasks)?;
                }
                // A group that continues began before.
                let changes = changes.into_iter().filter(|change| *change > 0 || index.begins(block));
                for (number, change) in (index.groups_before(block)..).zip(changes) {
                    peers.push(at + change);
                    numbers.push(number);
                }
            }
            first_groups.extend([0, peers.len() as u32]);
            peers.push(len as u32);
            numbers.push(index.groups());
        }
        let partitions = vec![0, len as u32];
        Ok(Section { rows, range: 0..len, partitions, peers, first_groups, gaps: Some(gaps), numbers })
    }

    /// What it leaves out of its partition.
    pub fn gaps(&self) -> Option<&Gaps> {
        self.gaps.as_ref()
    }
    /// The number of rows, including those of gaps.
    pub fn rows(&self) -> u64 {
        self.gaps.as_ref().map_or(self.len() as u64, |gaps| gaps.index().rows())
    }
    /// The row at a position, or the number of rows after the last one.
    #[inline]
    pub fn row(&self, position: u32) -> i64 {
        self.gaps.as_ref().map_or(position.into(), |gaps| gaps.row(position) as i64)
    }
    /// The position of a row, or the number of positions after the last one; it may be [missed](Gaps).
    #[inline]
    pub fn position(&self, row: i64) -> u32 {
        self.gaps.as_ref().map_or(row as u32, |gaps| gaps.position(row as u64))
    }
    /// How many rows there are between two positions.
    #[inline]
    pub fn rows_between(&self, from: u32, to: u32) -> i64 {
        if self.gaps.is_none() { i64::from(to - from) } else { self.row(to) - self.row(from) }
    }
    /// The number of a group of peers: with gaps that in the partition, otherwise that in the section.
    #[inline]
    pub fn number_of_group(&self, group: u32) -> i64 {
        if self.gaps.is_none() { group.into() } else { self.numbers[group as usize] as i64 }
    }
    /// The position at which the group of this number begins; it may be [missed](Gaps).
    pub fn start_of_group(&self, number: i64) -> u32 {
        let Some(gaps) = &self.gaps else { return self.peers[number as usize] };
        let number = number as u64;
        self.numbers.binary_search(&number).map_or_else(
            |_| {
                gaps.miss([gaps.index().block_of_group(number)]);
                0
            },
            |group| self.peers[group],
        )
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.range.len()
    }
    /// Bytes of memory in use, without the rows.
    pub fn bytes(&self) -> usize {
        let lists = self.partitions.capacity() + self.peers.capacity() + self.first_groups.capacity();
        lists * size_of::<u32>() + self.numbers.capacity() * size_of::<u64>()
    }
    /// The positions at which partitions begin, and the number of rows.
    pub fn partitions(&self) -> &[u32] {
        &self.partitions
    }
    /// The positions at which groups of peers begin, and the number of rows.
    pub fn peers(&self) -> &[u32] {
        &self.peers
    }
    fn places(&self, positions: Range<usize>) -> Range<usize> {
        self.range.start + positions.start..self.range.start + positions.end
    }
    /// The row id of a position.
    pub fn id(&self, position: u32) -> u32 {
        self.rows.id(self.range.start + position as usize)
    }

    /// Writes the values of `column` at consecutive `positions` to `out`, flat.
    pub fn read(&self, column: usize, positions: Range<usize>, out: &mut Vector) {
        self.rows.read(column, self.places(positions), out);
    }
    /// The same for several columns, each to its vector.
    pub fn read_all(&self, columns: &[usize], positions: Range<usize>, out: &mut [Vector]) {
        self.rows.read_all(columns, self.places(positions), out);
    }
    /// Writes the values of `column` in the rows `ids` to `out`, flat; no row gives NULL.
    pub fn gather(&self, column: usize, ids: &[u32], out: &mut Vector) {
        self.rows.gather(column, ids, out);
    }
    /// True if some value of `column` is NULL, in this section or another.
    pub fn has_nulls(&self, column: usize) -> bool {
        self.rows.has_nulls(column)
    }
}

/// Splits `rows` positions into ranges that are worth a task each.
pub fn task_ranges(rows: usize) -> Vec<Range<usize>> {
    (0..rows).step_by(TASK_ROWS).map(|first| first..(first + TASK_ROWS).min(rows)).collect()
}

/// The positions in `range` of an order at which a row differs from the one before it in one of `columns`;
/// the first one always does.
///
/// # Errors
/// Those of `tasks`.
pub fn boundaries(
    rows: &KeptOrder,
    range: Range<usize>,
    columns: &[usize],
    tasks: &dyn Tasks,
) -> Result<Vec<u32>> {
    if range.is_empty() || columns.is_empty() {
        return Ok(if range.is_empty() { Vec::new() } else { vec![0] });
    }
    let mut found: Vec<(Range<usize>, Vec<u32>)> =
        task_ranges(range.len()).into_iter().map(|part| (part, Vec::new())).collect();
    in_parallel(tasks, found.iter_mut().collect(), &|_, (part, found)| {
        tasks.check()?;
        let mut vector = Vector::new(PhysicalType::I64);
        let mut differs = [false; CHUNK_ROWS];
        for first in part.clone().step_by(CHUNK_ROWS - 1) {
            let end = part.end.min(first + CHUNK_ROWS - 1);
            // Including the row before, except for the very first one.
            let before = usize::from(first > 0);
            let places = range.start + first - before..range.start + end;
            differs.fill(false);
            differs[0] = before == 0;
            for &column in columns {
                rows.read(column, places.clone(), &mut vector);
                mark_changes(&vector, places.len(), &mut differs[1 - before..]);
            }
            let changes = differs[..end - first].iter().enumerate().filter(|(_, differs)| **differs);
            found.extend(changes.map(|(i, _)| (first + i) as u32));
        }
        Ok(())
    })?;
    Ok(found.into_iter().flat_map(|(_, found)| found).collect())
}

/// Sets `differs[i]` if the value at i + 1 differs from the one at i, for the first `rows` values of a flat
/// vector.
fn mark_changes(vector: &Vector, rows: usize, differs: &mut [bool]) {
    fn mark<T: Native, K: PartialEq>(
        vector: &Vector,
        rows: usize,
        differs: &mut [bool],
        key: impl Fn(T) -> K,
    ) {
        let values = &vector.values::<T>()[..rows];
        let changes = differs.iter_mut().zip(values.windows(2));
        match vector.validity() {
            None => changes.for_each(|(differs, pair)| *differs |= key(pair[0]) != key(pair[1])),
            Some(_) => changes.enumerate().for_each(|(i, (differs, pair))| {
                *differs |= match (vector.is_valid(i), vector.is_valid(i + 1)) {
                    (true, true) => key(pair[0]) != key(pair[1]),
                    (a, b) => a != b,
                }
            }),
        }
    }
    match vector.physical() {
        PhysicalType::F32 => mark(vector, rows, differs, |v: f32| canonical_bits(v.into())),
        PhysicalType::F64 => mark(vector, rows, differs, canonical_bits),
        PhysicalType::Str => mark(vector, rows, differs, |v: StringView| v),
        PhysicalType::Interval => mark(vector, rows, differs, |v: Interval| v.estimate()),
        other => match other.width() {
            1 => mark(vector, rows, differs, |v: u8| v),
            2 => mark(vector, rows, differs, |v: u16| v),
            4 => mark(vector, rows, differs, |v: u32| v),
            8 => mark(vector, rows, differs, |v: u64| v),
            _ => mark(vector, rows, differs, |v: i128| v),
        },
    }
}

/// The places of some rows: for each, its partition and its group of peers.
#[derive(Default)]
pub struct Places {
    /// The positions of the rows.
    pub rows: Range<usize>,
    /// Where each row's partition begins.
    pub partition_start: Vec<u32>,
    /// Where it ends.
    pub partition_end: Vec<u32>,
    /// Where each row's group of peers begins. This and the following fields are empty if they are not
    /// needed.
    pub peers_start: Vec<u32>,
    /// Where it ends.
    pub peers_end: Vec<u32>,
    /// The number of the group of peers in the section.
    pub group: Vec<u32>,
    /// The number of the first group of its partition.
    pub first_group: Vec<u32>,
    /// The number of the last group of its partition, plus one.
    pub end_group: Vec<u32>,
}

impl Places {
    /// Finds the places of `rows`.
    pub fn find(&mut self, section: &Section, rows: Range<usize>) {
        self.rows = rows.clone();
        let clear = |places: &mut Vec<u32>| places.clear();
        [&mut self.partition_start, &mut self.partition_end, &mut self.peers_start]
            .into_iter()
            .for_each(clear);
        [&mut self.peers_end, &mut self.group, &mut self.first_group, &mut self.end_group]
            .into_iter()
            .for_each(clear);
        let peers = section.peers();
        for_each_stretch(section.partitions(), rows.clone(), |partition, start, end, count| {
            self.partition_start.extend(std::iter::repeat_n(start, count));
            self.partition_end.extend(std::iter::repeat_n(end, count));
            if let Some(&[first, after]) =
                section.first_groups.get(partition as usize..partition as usize + 2)
            {
                self.first_group.extend(std::iter::repeat_n(first, count));
                self.end_group.extend(std::iter::repeat_n(after, count));
            }
        });
        if !peers.is_empty() {
            for_each_stretch(peers, rows, |group, start, end, count| {
                self.peers_start.extend(std::iter::repeat_n(start, count));
                self.peers_end.extend(std::iter::repeat_n(end, count));
                self.group.extend(std::iter::repeat_n(group, count));
            });
        }
    }
}

/// Calls `take` for each of the stretches beginning at `starts` that has rows in `rows`: with its number,
/// start and end, and how many of the rows are in it.
fn for_each_stretch(starts: &[u32], rows: Range<usize>, mut take: impl FnMut(u32, u32, u32, usize)) {
    let mut stretch = starts.partition_point(|&start| start as usize <= rows.start).saturating_sub(1);
    let mut row = rows.start;
    while row < rows.end {
        let (start, end) = (starts[stretch], starts[stretch + 1]);
        let after = rows.end.min(end as usize);
        take(stretch as u32, start, end, after - row);
        (row, stretch) = (after, stretch + 1);
    }
}
