//! Chooses the table of a join: a setting forces one, or it follows from what is known of the finished build
//! side.
//!
//! If only the existence of keys matters, the table is a bitmap. Otherwise it is, of the tables that the keys
//! and the memory allow, the one with the least estimated time of the join ([`super::cost`]); but a concise
//! hash table precedes chains that would take a large share of the memory. The reason names the next best
//! tables with their times (`docs/design/joins.md`). If a forced kind is impossible, `auto` chooses, and the
//! reason tells so.

use super::cat::Cat;
use super::chained::Chained;
use super::cht::Cht;
use super::cost::{self, Table, Work};
use super::everything::Everything;
use super::indexed::Indexed;
use super::unchained::Unchained;
use super::{Arranged, JoinTable};
use crate::exec::join::table::bitmap::BitsOnly;
use crate::exec::join::table::repetition::{Repetition, repetition};
use crate::exec::join::tuning::{
    ARRAY_PLACES, BITMAP_PLACES, CAT_PLACES, DISTINCT_PER_KEY, FEW_ARRAY_PLACES, FEW_CAT_PLACES,
    FEW_OTHER_PLACES, FORCED_PLACES, LARGE_CHAINS_PART, OVERFLOW_PART, WINDOW_PLACES, WINDOW_SHARE,
};
use crate::exec::join::{BuildTail, Shape};
use crate::exec::key_filter::{Bits, BuildInput, Expected, Packing, sample};
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::memory::Reservation;
use crate::settings::TableKind;
use entasis_vector::Result;
use std::sync::Arc;

/// What a join looks up in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupKind {
    /// Whether a key exists.
    Existence,
    /// How often a key occurs.
    Number,
    /// Which rows have a key.
    Rows,
}

impl LookupKind {
    /// What a join needs from its table. `plain`: it has no residual conditions and reads no column of the
    /// build side.
    pub(crate) fn of(shape: Shape, plain: bool) -> LookupKind {
        match shape.probe {
            _ if !plain || shape.tail != BuildTail::Nothing => LookupKind::Rows,
            _ if shape.gives_pairs() => LookupKind::Number,
            _ => LookupKind::Existence,
        }
    }
}

/// The requirements for a table.
pub(crate) struct TableRequest<'a> {
    /// The setting.
    pub kind: TableKind,
    /// What the join looks up.
    pub asked: LookupKind,
    /// Columns of the rows that are read with any table.
    pub read: &'a [bool],
    /// What is expected of the probe side.
    pub expected: Expected,
}

/// What is known of a finished build side.
#[derive(Debug, Clone)]
pub(crate) struct BuildStats {
    /// Number of key columns.
    pub keys: usize,
    /// Smallest and largest value of each key, if all are integers that 64 bits hold and NULL equals nothing.
    pub bounds: Option<Vec<(i64, i64)>>,
    /// The keys that exist, if they are known already.
    pub bits: Option<Arc<Bits>>,
    /// How often keys are repeated, if that has been sampled.
    pub repetition: Option<Repetition>,
}

/// A table, and its rows.
pub(crate) struct ChosenTable {
    /// The rows, possibly in another order and without columns that nobody reads.
    pub rows: Materialized,
    /// The table over them.
    pub table: Box<dyn JoinTable>,
    /// Which table it is, and why.
    pub reason: String,
}

/// How many rejected tables a reason names.
const NAMED: usize = 3;
/// Attempts to sample a key for the window of a concise array table.
const SAMPLE: usize = 1024;

/// The table for these facts. `memory` is the reservation of the rows; afterwards it is the most that was
/// needed.
///
/// # Errors
/// Those of the tasks; resource.
pub(crate) fn choose(
    request: &TableRequest<'_>,
    facts: &BuildStats,
    rows: Materialized,
    null_equals_null: &[bool],
    hash_collisions: bool,
    memory: &mut Reservation,
    tasks: &dyn Tasks,
) -> Result<ChosenTable> {
    let mut ladder = Ladder { request, facts, null_equals_null, hash_collisions, memory, tasks };
    ladder.choose(rows)
}

/// True if there is memory for a table for these facts; arguments as for [`choose`].
///
/// # Errors
/// Those of the tasks.
pub(crate) fn fits(
    request: &TableRequest<'_>,
    facts: &BuildStats,
    rows: &Materialized,
    null_equals_null: &[bool],
    memory: &mut Reservation,
    tasks: &dyn Tasks,
) -> Result<bool> {
    let ladder = Ladder { request, facts, null_equals_null, hash_collisions: false, memory, tasks };
    if facts.keys == 0 {
        return Ok(ladder.has_memory(rows, rows.rows() * 4));
    }
    let has_memory = ladder.has_memory(rows, bytes_at_most(request.kind, rows.id_space()));
    if has_memory || request.kind != TableKind::Auto {
        return Ok(has_memory);
    }
    let bits = || {
        ladder.packing(rows, BITMAP_PLACES, FEW_OTHER_PLACES).map(|packing| (packing.places() / 8) as usize)
    };
    if request.asked == LookupKind::Existence && bits().is_some_and(|bytes| ladder.has_memory(rows, bytes)) {
        return Ok(true);
    }
    Ok(ladder.steps(rows)?.iter().any(|(step, _)| ladder.has_memory(rows, ladder.bytes(step, rows))))
}

/// How often keys are repeated, if the best tables for these facts go by hash; arguments as for [`choose`].
///
/// # Errors
/// Those of the tasks.
pub(crate) fn repetition_by_hash(
    request: &TableRequest<'_>,
    facts: &BuildStats,
    rows: &Materialized,
    null_equals_null: &[bool],
    memory: &mut Reservation,
    tasks: &dyn Tasks,
) -> Result<Option<Repetition>> {
    let ladder = Ladder { request, facts, null_equals_null, hash_collisions: false, memory, tasks };
    let bits =
        request.asked != LookupKind::Rows && ladder.packing(rows, BITMAP_PLACES, FEW_OTHER_PLACES).is_some();
    let near = || ladder.window(rows).is_some_and(|(_, share)| share >= WINDOW_SHARE);
    let has_places = bits || ladder.packing(rows, CAT_PLACES, FEW_CAT_PLACES).is_some() || near();
    if has_places { Ok(None) } else { repetition(&ladder.input(rows)).map(Some) }
}

/// The most places of integer keys of about `rows` rows for a table that counts them first: a bitmap if no
/// row is needed, otherwise a CAT. `None` if the setting wants another table.
pub(crate) fn countable_places(kind: TableKind, asked: LookupKind, rows: f64) -> Option<u64> {
    let most = |for_each: u64, few: u64| ((for_each as f64 * rows) as u64).max(few);
    match (kind, asked) {
        (TableKind::Auto | TableKind::Bitmap, LookupKind::Existence | LookupKind::Number) => {
            Some(most(BITMAP_PLACES, FEW_OTHER_PLACES))
        }
        (TableKind::Auto, LookupKind::Rows) | (TableKind::Cat, _) => Some(most(CAT_PLACES, FEW_CAT_PLACES)),
        _ => None,
    }
}

/// Bytes beside `rows` rows that suffice for some table, whatever their keys.
pub(crate) fn bytes_at_most(kind: TableKind, rows: usize) -> usize {
    // Chains, or the most that any other table needs.
    if kind == TableKind::Auto { 24 * rows } else { 48 * rows + FEW_OTHER_PLACES as usize * 4 }
}

/// Bytes per row in the directory of chains, and of its hash while that is kept.
const CHAINED_ROW_BYTES: usize = 16;

/// A table to be built.
enum Step {
    Direct(Packing),
    Ranked(Packing),
    Cat(Packing),
    /// A concise array table of most keys.
    Window(Packing),
    Cht,
    Unchained,
    Chained,
}

impl Step {
    /// This table, for its costs.
    fn table(&self) -> Table {
        match self {
            Step::Direct(packing) => Table::Array(packing.places() as f64),
            Step::Ranked(packing) => Table::Ranked(packing.places() as f64),
            Step::Cat(packing) | Step::Window(packing) => Table::Cat(packing.places() as f64),
            Step::Cht => Table::Cht,
            Step::Unchained => Table::Unchained,
            Step::Chained => Table::Chained,
        }
    }

    /// The setting that forces this table.
    fn kind(&self) -> TableKind {
        match self {
            Step::Direct(_) => TableKind::Array,
            Step::Ranked(_) => TableKind::Ranked,
            Step::Cat(_) | Step::Window(_) => TableKind::Cat,
            Step::Cht => TableKind::Cht,
            Step::Unchained => TableKind::Unchained,
            Step::Chained => TableKind::Chained,
        }
    }

    /// True if keys of some or all rows are compared.
    fn compares(&self) -> bool {
        matches!(self, Step::Window(_) | Step::Cht | Step::Unchained | Step::Chained)
    }
}

/// True if rows may be moved: tuples stay in place.
fn may_move(rows: &Materialized) -> bool {
    rows.compressed().0 == 0
}

struct Ladder<'a> {
    request: &'a TableRequest<'a>,
    facts: &'a BuildStats,
    null_equals_null: &'a [bool],
    hash_collisions: bool,
    memory: &'a mut Reservation,
    tasks: &'a dyn Tasks,
}

impl Ladder<'_> {
    fn input<'b>(&'b self, rows: &'b Materialized) -> BuildInput<'b> {
        BuildInput {
            rows,
            null_equals_null: self.null_equals_null,
            hash_collisions: self.hash_collisions,
            tasks: self.tasks,
        }
    }

    fn choose(&mut self, rows: Materialized) -> Result<ChosenTable> {
        if self.facts.keys == 0 {
            let table = Everything::new(&rows);
            return Ok(chosen(rows, table, "nested loop: no equality condition".into()));
        }
        let kind = self.request.kind;
        if (kind == TableKind::Auto || kind == TableKind::Bitmap)
            && self.request.asked != LookupKind::Rows
            && let Some(packing) = self.packing(&rows, BITMAP_PLACES, FEW_OTHER_PLACES)
            && self.has_memory(&rows, (packing.places() / 8) as usize)
        {
            self.memory.resize(rows.bytes() + (packing.places() / 8) as usize)?;
            let bits = match &self.facts.bits {
                Some(bits) => bits.clone(),
                None => Arc::new(Bits::of(&rows, &packing, self.tasks)?),
            };
            if self.request.asked == LookupKind::Existence || bits.is_unique() {
                let (count, keys) = (rows.rows(), self.describe());
                let mut reason =
                    format!("bitmap: {count} rows, {} distinct {keys}; no column is read", bits.keys());
                let table = BitsOnly::new(packing, bits);
                if table.is_full() {
                    reason += ", every value";
                }
                return Ok(chosen(Materialized::new(rows.columns()), table, reason));
            }
        }
        match self.forced(&rows) {
            Some(step) => self.build(step, rows),
            None => {
                let (step, times) = self.best(&rows)?;
                let mut chosen = self.build(step, rows)?;
                chosen.reason += &times;
                if kind != TableKind::Auto {
                    chosen.reason += &format!("; join_table = {kind} is not possible");
                }
                Ok(chosen)
            }
        }
    }

    /// The forced table, if it is possible.
    fn forced(&self, rows: &Materialized) -> Option<Step> {
        let may_move = may_move(rows);
        match self.request.kind {
            TableKind::Auto | TableKind::Bitmap | TableKind::Radix | TableKind::BloomRadix => None,
            TableKind::Array => self.packing(rows, FORCED_PLACES, FEW_OTHER_PLACES).map(Step::Direct),
            TableKind::Ranked => self.packing(rows, FORCED_PLACES, FEW_OTHER_PLACES).map(Step::Ranked),
            TableKind::Cat if may_move => {
                let window = || self.window(rows).map(|(packing, _)| Step::Window(packing));
                self.packing(rows, CAT_PLACES, FEW_CAT_PLACES).map(Step::Cat).or_else(window)
            }
            TableKind::Cht if may_move => Some(Step::Cht),
            TableKind::Unchained if may_move => Some(Step::Unchained),
            TableKind::Cat | TableKind::Cht | TableKind::Unchained => None,
            TableKind::Chained => Some(Step::Chained),
        }
    }

    /// The best table for which there is memory; if there is for none, the smallest. Also the times of the
    /// others.
    fn best(&self, rows: &Materialized) -> Result<(Step, String)> {
        let mut steps = self.steps(rows)?;
        let fits = steps.iter().position(|(step, _)| self.has_memory(rows, self.bytes(step, rows)));
        let smallest = || (0..steps.len()).min_by_key(|&at| self.bytes(&steps[at].0, rows));
        let at = fits.or_else(smallest).expect("chains are always possible");
        let (step, nanoseconds) = steps.remove(at);
        let mut times = format!("; estimated {:.3} ms", nanoseconds / 1e6);
        for (other, nanoseconds) in steps.iter().take(NAMED) {
            times += &format!(", {} {:.3}", other.kind(), nanoseconds / 1e6);
        }
        Ok((step, times))
    }

    /// The possible tables, from the best to the worst, with the estimated nanoseconds of each.
    fn steps(&self, rows: &Materialized) -> Result<Vec<(Step, f64)>> {
        let may_move = may_move(rows);
        let concise = || self.packing(rows, CAT_PLACES, FEW_CAT_PLACES);
        let mut steps: Vec<Step> =
            self.packing(rows, ARRAY_PLACES, FEW_ARRAY_PLACES).map(Step::Direct).into_iter().collect();
        if may_move {
            let near = || self.window(rows).filter(|(_, share)| *share >= WINDOW_SHARE);
            steps.extend(
                concise().map(Step::Cat).or_else(|| near().map(|(packing, _)| Step::Window(packing))),
            );
        }
        steps.extend(concise().map(Step::Ranked));
        let is_large = self.bytes(&Step::Chained, rows) > self.memory.free() / LARGE_CHAINS_PART;
        let mut per_key = self.rows_per_key();
        if may_move && (is_large || steps.is_empty()) {
            per_key = self.facts.repetition.map_or_else(|| repetition(&self.input(rows)), Ok)?.per_key;
            if steps.is_empty() {
                steps.push(Step::Unchained);
            }
            steps.extend((per_key <= DISTINCT_PER_KEY).then_some(Step::Cht));
        }
        steps.push(Step::Chained);
        let key_bytes =
            rows.columns()[..self.facts.keys].iter().map(|meta| meta.physical.width()).sum::<usize>();
        let (probes, matching) = self.request.expected.given(rows.rows()).looked_up();
        let work = Work {
            rows: rows.rows() as f64,
            probes,
            matching,
            per_key,
            key_bytes: key_bytes as f64,
            read: self.request.read.iter().filter(|read| **read).count() as f64,
        };
        let time = |step: Step| {
            let nanoseconds = cost::nanoseconds(step.table(), &work);
            (step, nanoseconds)
        };
        let mut steps: Vec<(Step, f64)> = steps.into_iter().map(time).collect();
        let comes_last = |step: &Step| is_large && matches!(step, Step::Chained);
        steps.sort_by(|(a, x), (b, y)| comes_last(a).cmp(&comes_last(b)).then(x.total_cmp(y)));
        Ok(steps)
    }

    /// Rows per key: exact if the keys' bits were counted, otherwise estimated.
    fn rows_per_key(&self) -> f64 {
        let counted = self.facts.bits.as_ref().and_then(|bits| bits.rows_per_key());
        counted.unwrap_or(self.request.expected.per_key).max(1.0)
    }

    /// The most bytes that a table needs beside these rows while it is built; a share of them may be found by
    /// chains.
    fn bytes(&self, step: &Step, rows: &Materialized) -> usize {
        let (count, ids) = (rows.rows(), rows.id_space());
        let overflow = count / OVERFLOW_PART * (CHAINED_ROW_BYTES + 4);
        let moving = || self.moving(rows, step.compares());
        // Chains have an entry for each id.
        match step {
            Step::Direct(packing) => packing.places() as usize * 4 + 4 * ids,
            Step::Ranked(packing) => packing.places() as usize / 4 + 4 * count + 4 * ids,
            Step::Cat(packing) | Step::Window(packing) => {
                packing.places() as usize / 4 + 4 * count + moving() + overflow
            }
            Step::Cht => 2 * count + moving() + overflow,
            Step::Unchained => 8 * count + moving(),
            Step::Chained => CHAINED_ROW_BYTES * count + 4 * ids,
        }
    }

    /// Bytes beside these rows while they move: 8 per row while they are spread; these make room for the
    /// order of the rows, 4 per row, and for one new column at a time. Keys that nobody reads are gone by
    /// then.
    fn moving(&self, rows: &Materialized, compared: bool) -> usize {
        let kept = self.kept(compared);
        let widths = || rows.columns().iter().map(|meta| meta.physical.width());
        let widest =
            widths().zip(&kept).filter(|(_, kept)| **kept).map(|(width, _)| width).max().unwrap_or(0);
        let keys = self.facts.keys;
        let dropped: usize = if kept[..keys].contains(&true) { 0 } else { widths().take(keys).sum() };
        rows.rows() * (4 + widest.max(8)).saturating_sub(dropped).max(8)
    }

    /// True if `bytes` bytes beside the rows are available.
    fn has_memory(&self, rows: &Materialized, bytes: usize) -> bool {
        (rows.bytes() + bytes).saturating_sub(self.memory.bytes()) <= self.memory.free()
    }

    fn build(&mut self, step: Step, rows: Materialized) -> Result<ChosenTable> {
        let (count, keys) = (rows.rows(), self.describe());
        if let Err(error) = self.memory.resize(rows.bytes() + self.bytes(&step, &rows)) {
            // Others may have taken the memory in the meantime. Chains need the least beside the rows that
            // partitions reserve.
            return match step {
                Step::Chained => Err(error),
                _ if self.request.kind == TableKind::Auto => self.build(Step::Chained, rows),
                _ => Err(error),
            };
        }
        match step {
            Step::Direct(packing) => {
                let table = Indexed::direct(&self.input(&rows), packing)?;
                let reason = format!("direct array: {count} rows, {} {keys}", uniqueness(table.is_unique()));
                Ok(chosen(rows, table, reason))
            }
            Step::Ranked(packing) => {
                let table = Indexed::ranked(&self.input(&rows), packing)?;
                let reason =
                    format!("ranked array: {count} rows, {} sparse {keys}", uniqueness(table.is_unique()));
                Ok(chosen(rows, table, reason))
            }
            Step::Cat(packing) => self.cat(rows, packing, false, &keys),
            Step::Window(packing) => self.cat(rows, packing, true, &keys),
            Step::Cht => self.cht(rows, &keys),
            Step::Unchained => self.unchained(rows, &keys),
            Step::Chained => {
                let table = Chained::build(&self.input(&rows))?;
                Ok(chosen(rows, table, format!("chained: {count} rows, {keys}")))
            }
        }
    }

    /// The places of the keys, if they are integers and there are at most `for_each` places per row, or
    /// `few`.
    fn packing(&self, rows: &Materialized, for_each: u64, few: u64) -> Option<Packing> {
        let packing = Packing::of(self.facts.bounds.as_deref()?)?;
        (packing.places() <= (for_each * rows.rows() as u64).max(few)).then_some(packing)
    }

    /// Describes the keys.
    fn describe(&self) -> String {
        match self.facts.bounds.as_deref() {
            Some([(min, max)]) => format!("keys from {min} to {max}"),
            Some(_) => format!("keys of {} integers", self.facts.keys),
            None if self.facts.keys == 1 => "keys that are not integers".into(),
            None => format!("keys of {} columns", self.facts.keys),
        }
    }

    /// For a single key: a packing of the keys near each other, and their share of a sample.
    fn window(&self, rows: &Materialized) -> Option<(Packing, f64)> {
        let Some([_]) = self.facts.bounds.as_deref() else { return None };
        let mut sample = sample(rows, SAMPLE);
        let packing = Packing::around(&mut sample, WINDOW_PLACES * rows.rows() as u64 + FEW_OTHER_PLACES)?;
        let (min, max) = packing.window();
        let inside = sample.iter().filter(|key| (min..=max).contains(key)).count();
        Some((packing, inside as f64 / sample.len() as f64))
    }

    /// `is_window`: some keys may be outside the packing.
    fn cat(
        &mut self,
        mut rows: Materialized,
        packing: Packing,
        is_window: bool,
        keys: &str,
    ) -> Result<ChosenTable> {
        let count = rows.rows();
        let is_read = self.kept(is_window)[..self.facts.keys].contains(&true);
        let apart = if is_read { Vec::new() } else { rows.take_columns(self.facts.keys) };
        let (mut table, arranged) = Cat::build(&self.input(&rows), packing, apart)?;
        self.reserve_overflow(&arranged)?;
        let rows = self.arrange(rows, &arranged, arranged.overflow > 0)?;
        table.add_outside(&self.input(&rows), &arranged)?;
        let mut reason =
            format!("concise array table: {count} rows, {} {keys}", uniqueness(table.is_unique()));
        if table.is_full() {
            reason += ", every value";
        }
        if arranged.overflow > 0 {
            let (min, max) = table.window();
            reason += &format!(", {} rows outside {min} to {max}", arranged.overflow);
        }
        Ok(chosen(rows, table, reason))
    }

    fn cht(&mut self, rows: Materialized, keys: &str) -> Result<ChosenTable> {
        let count = rows.rows();
        let (mut table, arranged) = Cht::build(&self.input(&rows))?;
        let overflows = self.request.kind != TableKind::Cht && arranged.overflow > count / OVERFLOW_PART;
        if overflows && self.has_memory(&rows, self.bytes(&Step::Chained, &rows)) {
            drop((table, arranged));
            return self.build(Step::Chained, rows);
        }
        self.reserve_overflow(&arranged)?;
        let rows = self.arrange(rows, &arranged, true)?;
        table.add_overflow(&self.input(&rows), &[arranged.overflow_ids()])?;
        let share = 100.0 * arranged.overflow as f64 / count.max(1) as f64;
        Ok(chosen(rows, table, format!("concise hash table: {count} rows, {share:.1} % overflow, {keys}")))
    }

    fn unchained(&mut self, rows: Materialized, keys: &str) -> Result<ChosenTable> {
        let count = rows.rows();
        let (table, arranged) = Unchained::build(&self.input(&rows))?;
        let rows = self.arrange(rows, &arranged, true)?;
        let taken = 100.0 * table.taken();
        Ok(chosen(rows, table, format!("unchained: {count} rows, {taken:.1} % of the slots taken, {keys}")))
    }

    /// Reserves memory for the chains of rows that are found by hash.
    fn reserve_overflow(&mut self, arranged: &Arranged) -> Result<()> {
        self.memory.resize(self.memory.bytes() + (CHAINED_ROW_BYTES + 4) * arranged.overflow)
    }

    /// Which columns are kept; `compared`: keys are.
    fn kept(&self, compared: bool) -> Vec<bool> {
        self.request
            .read
            .iter()
            .enumerate()
            .map(|(i, read)| *read || compared && i < self.facts.keys)
            .collect()
    }

    /// The rows in the order that a table requires, without columns that nobody reads; `compared`: keys are
    /// kept.
    fn arrange(&self, rows: Materialized, arranged: &Arranged, compared: bool) -> Result<Materialized> {
        rows.rearranged(&arranged.order, &self.kept(compared), self.tasks)
    }
}

fn chosen(rows: Materialized, table: impl JoinTable + 'static, reason: String) -> ChosenTable {
    let reason = format!("{reason}; table of {} bytes, rows of {} bytes", table.bytes(), rows.bytes());
    ChosenTable { rows, table: Box::new(table), reason }
}

fn uniqueness(unique: bool) -> &'static str {
    if unique { "unique" } else { "repeated" }
}
