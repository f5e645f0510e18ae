//! Tests filters of a scan on some rows of its table when a query is planned, and says which.

use crate::facts::relation_columns;
use crate::plan::{Columns, Scan};
use crate::pruning::{KnownBounds, PruningPredicate};
use entasis_storage::{RowGroup, RowSample, TableSnapshot};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, ColumnId, Selection, Vector};
use std::ops::Range;

/// How many of a sample are believed to be what none of it is.
pub(crate) const NONE: f64 = 0.5;

/// How many blocks are looked at to know the share of those whose zones pass.
const ZONES: usize = 64;

/// Tests rows.
pub(crate) struct Tester {
    /// `None` if there are no filters.
    machine: Option<Machine>,
    /// The columns that are read: index in the table.
    columns: Vec<(usize, ColumnMeta)>,
    /// Those of them that are wanted, the last ones.
    wanted: usize,
    vectors: Vec<Vector>,
    chunk: Chunk,
}

impl Tester {
    /// A tester of the filters of `scan`, which also reads the columns `wanted`; `None` if they may fail,
    /// are volatile, or read what is not stored.
    pub(crate) fn of(scan: &Scan, wanted: &[ColumnId], columns: &Columns) -> Option<Tester> {
        let metas = relation_columns(&*scan.relation, &scan.columns, columns);
        if scan.filters.iter().any(Expr::is_volatile) {
            return None;
        }
        let mut read: Vec<ColumnId> = Vec::new();
        scan.filters.iter().for_each(|filter| filter.collect_columns(&mut read));
        let row_id = scan.relation.schema().len();
        let place = |id: ColumnId| {
            let found = scan.columns.iter().zip(&metas).find(|((own, _), _)| *own == id);
            found.filter(|((_, index), _)| *index != row_id).map(|((_, index), meta)| (*index, meta.clone()))
        };
        read.sort_unstable();
        read.dedup();
        let columns: Option<Vec<(usize, ColumnMeta)>> =
            read.into_iter().chain(wanted.iter().copied()).map(place).collect();
        let columns = columns?;
        let own_metas: Vec<ColumnMeta> = columns.iter().map(|(_, meta)| meta.clone()).collect();
        let machine = match scan.filters.as_slice() {
            [] => None,
            filters => Some(Machine::new(Program::compile(filters, &own_metas).ok()?)),
        };
        Some(Tester {
            machine,
            wanted: wanted.len(),
            vectors: own_metas.iter().map(|meta| Vector::new(meta.ty.physical())).collect(),
            columns,
            chunk: Chunk::new(),
        })
    }

    /// Tests the live slots of these runs, at most a chunk. Returns how many there are, and tells `passes`
    /// of those that satisfy all filters: their positions in the vectors of the wanted columns. `None` if
    /// a filter fails.
    pub(crate) fn test(
        &mut self,
        group: &RowGroup,
        runs: &[Range<usize>],
        passes: impl FnMut(usize, &[Vector]),
    ) -> Option<usize> {
        for ((index, meta), vector) in self.columns.iter().zip(&mut self.vectors) {
            group.decode_runs(*index, meta.ty.physical(), runs, vector);
        }
        let slots = runs.iter().flat_map(Range::clone).enumerate();
        let rows: Vec<u16> =
            slots.filter(|(_, slot)| group.is_live(*slot)).map(|(position, _)| position as u16).collect();
        self.test_vectors(runs.iter().map(Range::len).sum(), &rows, passes)
    }

    /// The same of the sample that is kept with a table.
    pub(crate) fn test_sample(
        &mut self,
        sample: &RowSample<'_>,
        mut passes: impl FnMut(usize, &[Vector]),
    ) -> Option<usize> {
        let mut rows = 0;
        for part in sample.parts() {
            for ((index, meta), vector) in self.columns.iter().zip(&mut self.vectors) {
                *vector = part.column(*index, meta.ty.physical()).into_owned();
            }
            rows += self.test_vectors(part.slots(), part.rows(), &mut passes)?;
        }
        Some(rows)
    }

    /// Tests the positions `rows` of the vectors, which have values for `slots` of them.
    fn test_vectors(
        &mut self,
        slots: usize,
        rows: &[u16],
        mut passes: impl FnMut(usize, &[Vector]),
    ) -> Option<usize> {
        let wanted = &self.vectors[self.vectors.len() - self.wanted..];
        let mut pass = |position: u16| passes(usize::from(position), wanted);
        match &mut self.machine {
            Some(machine) => {
                let is_all = rows.len() == slots;
                let selection = if is_all { Selection::ALL } else { Selection::from_indices(rows) };
                self.chunk.reset(rows.len());
                let group = self.chunk.push_group(selection);
                self.vectors.iter().for_each(|vector| self.chunk.push_column(vector.clone(), group));
                machine.select(&self.chunk).ok()?.iter().for_each(|&row| pass(rows[usize::from(row)]));
                self.chunk.reset(0);
            }
            None => rows.iter().copied().for_each(pass),
        }
        Some(rows.len())
    }
}

/// The conditions that filters of `scan` set on the zones of a block.
pub(crate) fn pruning_predicates(scan: &Scan) -> Vec<PruningPredicate> {
    let index = |id| scan.columns.iter().find(|(own, _)| *own == id).map(|(_, index)| *index);
    let stored = scan.relation.schema().len();
    let place = |id| index(id).filter(|index| *index != stored);
    scan.filters.iter().filter_map(|filter| PruningPredicate::of(filter, &place)).collect()
}

/// The share of a relation's rows that is in blocks which zones do not rule out by the scan's filters; all if
/// it has none. Some blocks are looked at.
pub(crate) fn share_in_zones(scan: &Scan) -> f64 {
    scan.relation.table().map_or(1.0, |table| candidates(table, &pruning_predicates(scan), ZONES).within)
}

/// A block: its row group and number.
pub(crate) type BlockPlace<'a> = (&'a RowGroup, usize);

/// Blocks that may have rows which pass some tests.
pub(crate) struct Candidates<'a> {
    /// Of the blocks that were looked at those that have rows and pass, in the order of the table.
    pub blocks: Vec<BlockPlace<'a>>,
    /// The share of the table's rows that is in such blocks, whether they were looked at or not.
    pub within: f64,
}

/// The blocks whose zones satisfy all tests. Row groups are told apart by their own zones; of the blocks of
/// those that may have such rows, at most `most` are looked at, which are spread over them.
pub(crate) fn candidates<'a>(
    table: &'a TableSnapshot,
    tests: &[PruningPredicate],
    most: usize,
) -> Candidates<'a> {
    let may_pass = |group: &&RowGroup| {
        let zone = |column| Some(KnownBounds::from(group.column_zone(column)));
        group.rows() > 0 && tests.iter().all(|test| test.may_pass(&zone))
    };
    let groups: Vec<&RowGroup> = table.row_groups().filter(may_pass).collect();
    let count: usize = groups.iter().map(|group| group.blocks()).sum();
    let part = count.div_ceil(most).max(1);
    let (mut blocks, mut passed, mut looked) = (Vec::new(), 0, 0);
    let (mut before, mut number) = (0, 0);
    for group in &groups {
        loop {
            let place = number * part + scattered(number) % part;
            if place >= before + group.blocks() {
                break;
            }
            number += 1;
            let block = place - before;
            let zone = |column| Some(KnownBounds::from(group.zone(column, block)));
            let rows = group.block_rows(block);
            looked += rows;
            if rows > 0 && tests.iter().all(|test| test.may_pass(&zone)) {
                passed += rows;
                blocks.push((*group, block));
            }
        }
        before += group.blocks();
    }
    let share = match (passed, part) {
        // There may be some among those that were not looked at: half a block of those that were.
        (0, 2..) => NONE / number.max(1) as f64,
        _ => passed as f64 / looked.max(1) as f64,
    };
    let rows: usize = groups.iter().map(|group| group.rows()).sum();
    Candidates { blocks, within: share * rows as f64 / table.rows().max(1) as f64 }
}

/// `runs` runs of slots, by row group: one in each equal part of the blocks, which are in the order of the
/// table.
pub(crate) fn places<'a>(
    blocks: &[BlockPlace<'a>],
    (runs, run_slots): (usize, usize),
) -> Vec<(&'a RowGroup, Vec<Range<usize>>)> {
    let mut places: Vec<(&RowGroup, Vec<Range<usize>>)> = Vec::new();
    let Some(block_slots) = blocks.first().map(|(group, _)| group.block_slots()) else { return places };
    let part = (blocks.len() * block_slots / runs).max(run_slots);
    for number in 0..runs {
        let start = number * part + scattered(number) % (part - run_slots + 1);
        let Some((group, block)) = blocks.get(start / block_slots) else { break };
        // A run ends with its block, behind which another one may follow.
        let start = start % block_slots;
        let run = block * block_slots + start..block * block_slots + (start + run_slots).min(block_slots);
        match places.last_mut() {
            Some((last, runs)) if std::ptr::eq(*last, *group) => runs.push(run),
            _ => places.push((group, vec![run])),
        }
    }
    places
}

/// A number that looks random and is always the same.
fn scattered(number: usize) -> usize {
    ((number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize
}
