//! The filter that a finished build side publishes ([`FilterSlot`], [`KeyFilter`]), the choice of its kind
//! ([`choose`]), and one worker's test of it ([`FilterWorker`]). See [`super`].

use super::bits::Bits;
use super::bloom::Bloom;
use super::build_keys::BuildInput;
use super::integers::{for_each_integer, is_integer};
use super::places::Packing;
use crate::exec::profile::PassRate;
use crate::exec::trials::Trials;
use crate::memory::{MemoryBudget, Reservation};
use crate::settings::{FilterKind, Settings};
use crate::sync::{AtomicBool, OnceLock, Ordering};
use entasis_storage::{ValueSet, Zone};
use entasis_vector::hash::{HashCache, hash_column};
use entasis_vector::simd::{Kernel, widest_of};
use entasis_vector::{CHUNK_ROWS, Encoding, Result, Value, Vector};
use std::fmt;
use std::sync::Arc;

/// Places that may always have bits, even for few keys: 2 MB.
pub(crate) const FEW_PLACES: u64 = 16 << 20;
/// Places per row that may have bits: 8 bytes per row.
// PERF: a Bloom filter takes five to eight times as long as bits over 64 times as many places.
const BITS_PLACES: u64 = 64;
/// The expected share of matching probe rows above which a Bloom filter is useless.
pub(crate) const USELESS_SHARE: f64 = 0.9;
/// The number of keys from which even bits take a while to make.
const MANY_ROWS: usize = 1 << 20;
/// The number of tested rows after which a filter is continued or suspended.
const TRIAL_ROWS: usize = 32_768;
/// The percentage of rows that pass above which bits are suspended.
const USELESS_BITS: usize = 90;
/// The percentage of rows that pass above which a Bloom filter is suspended.
const USELESS_BLOOM: usize = 75;

/// The share of rows that pass up to which a filter is worth being tested beside its own way, too.
const KEEPS_FEW: f64 = 0.5;

/// Where the build side publishes its filter.
#[derive(Debug, Default)]
pub(crate) struct FilterSlot {
    filter: OnceLock<KeyFilter>,
    /// The filter is going to be tested.
    is_wanted: AtomicBool,
    expected: Expected,
}

/// What is expected of the probe side.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected {
    /// The number of rows.
    pub rows: f64,
    /// The share of the rows that match.
    pub matching: f64,
    /// Matching build rows per probe row with a match.
    pub per_key: f64,
    /// The number of build rows that this estimate assumes; 0 if unknown.
    pub build_rows: f64,
    /// A filter leaves few rows without a match.
    pub is_filtered: bool,
}

impl Expected {
    /// The expectation once the number of build rows is known: twice as many make twice as many probe rows
    /// match.
    pub(crate) fn given(self, build_rows: usize) -> Expected {
        let factor = if self.build_rows > 0.0 { build_rows as f64 / self.build_rows } else { 1.0 };
        Expected { matching: (self.matching * factor).min(1.0), ..self }
    }

    /// True if half of the rows or fewer are expected to match.
    pub(crate) fn keeps_few(self) -> bool {
        self.matching <= KEEPS_FEW
    }

    /// The rows that are looked up, and the share of them that match.
    pub(crate) fn looked_up(self) -> (f64, f64) {
        if self.is_filtered { (self.rows * self.matching, 1.0) } else { (self.rows, self.matching) }
    }
}

impl FilterSlot {
    /// A slot for a join with this expectation of its probe side.
    pub(crate) fn new(expected: Expected) -> FilterSlot {
        FilterSlot { expected, ..FilterSlot::default() }
    }
    /// Marks the filter as used. Called before the build runs.
    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }
    /// True if the filter is going to be tested.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }
    /// The filter, if the build has finished and a test is planned.
    pub(crate) fn get(&self) -> Option<&KeyFilter> {
        self.filter.get()
    }

    /// Publishes a filter that was made while the rows arrived.
    pub(crate) fn publish(&self, filter: KeyFilter) {
        // A slot belongs to one build side, which finishes once.
        self.filter.get_or_init(|| filter);
    }

    /// Makes the filter of a finished build side and publishes it here, if a test is planned. `bounds` are
    /// the smallest and the largest value of each key, if known; `spared` are bytes of memory that the join's
    /// table may need. Returns the filter and the reason for its kind.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn fill(
        &self,
        input: &BuildInput<'_>,
        bounds: Option<&[(i64, i64)]>,
        kind: FilterKind,
        memory: &Arc<MemoryBudget>,
        spared: usize,
    ) -> Result<Option<(&KeyFilter, String)>> {
        if !self.is_wanted() {
            return Ok(None);
        }
        let mut memory = Reservation::new(memory);
        let (test, reason) = choose(kind, input.rows.rows(), bounds, self.expected, &mut memory, spared);
        let test = match test {
            Chosen::Bits(packing) => {
                let bits = Arc::new(Bits::of(input.rows, &packing, input.tasks)?);
                Test::Bits { packing, bits }
            }
            Chosen::Bloom => Test::Bloom(Bloom::of(input)?),
            Chosen::Bounds => Test::Bounds,
        };
        let is_empty = match &test {
            Test::Bloom(bloom) => bloom.is_empty(),
            _ => input.rows.is_empty(),
        };
        let filter = KeyFilter { is_empty, bounds: bounds.map(<[_]>::to_vec), test, _memory: memory };
        let reason = format!("join filter: {reason}; {} bytes", filter.bytes());
        // A slot belongs to one build side, which finishes once.
        Ok(Some((self.filter.get_or_init(|| filter), reason)))
    }
}

/// The kind of a filter.
enum Chosen {
    Bits(Packing),
    Bloom,
    Bounds,
}

/// Chooses the kind of a filter over this many rows, reserves its memory, and gives the reason.
fn choose(
    kind: FilterKind,
    rows: usize,
    bounds: Option<&[(i64, i64)]>,
    expected: Expected,
    memory: &mut Reservation,
    spared: usize,
) -> (Chosen, String) {
    if rows == 0 {
        return (Chosen::Bounds, "no keys".into());
    }
    // A filter is not worth a join that must spill because of it.
    let is_forced = kind != FilterKind::Auto;
    let mut has_memory = |bytes: usize| {
        (is_forced || memory.free() >= bytes.saturating_add(spared)) && memory.resize(bytes).is_ok()
    };
    // Nor is one that takes longer to make than it saves.
    let few = expected.rows < rows as f64 && !is_forced;
    let most = if few { FEW_PLACES } else { FEW_PLACES.max(BITS_PLACES * rows as u64) };
    // Estimates are too unreliable to omit a few bits.
    let is_useless = expected.matching > USELESS_SHARE && !is_forced;
    if kind != FilterKind::Bloom
        && !(is_useless && rows > MANY_ROWS)
        && let Some(packing) = bounds.and_then(Packing::of).filter(|packing| packing.places() <= most)
        && has_memory(Bits::bytes_for(packing.places()))
    {
        let reason = format!("bits for {} places", packing.places());
        return (Chosen::Bits(packing), reason);
    }
    let share = format!("{:.0} % of the rows are expected to pass", 100.0 * expected.matching);
    match kind {
        FilterKind::Auto if few => {
            (Chosen::Bounds, format!("bounds only; {:.0} rows are expected to be tested", expected.rows))
        }
        FilterKind::Auto if is_useless => (Chosen::Bounds, format!("bounds only; {share}")),
        FilterKind::Auto | FilterKind::Bloom if has_memory(Bloom::bytes_for(rows)) => {
            (Chosen::Bloom, format!("Bloom for {rows} rows; {share}"))
        }
        FilterKind::Auto | FilterKind::Bloom => (Chosen::Bounds, "bounds only; memory is short".into()),
        FilterKind::Bits | FilterKind::Off => (Chosen::Bounds, "bounds only".into()),
    }
}

/// The keys of a build side, or a superset of them.
#[derive(Debug)]
pub(crate) struct KeyFilter {
    /// There are no keys at all.
    is_empty: bool,
    /// For each key, a lower and an upper bound, if any are known; bits are of the places between them.
    bounds: Option<Vec<(i64, i64)>>,
    test: Test,
    _memory: Reservation,
}

#[derive(Debug)]
enum Test {
    Bounds,
    Bits { packing: Packing, bits: Arc<Bits> },
    Bloom(Bloom),
}

impl KeyFilter {
    /// The filter of one key column. `bounds` are its smallest and largest value, if there is one; `bits`, if
    /// given, are those of their places.
    pub(crate) fn of_column(
        bounds: Option<(i64, i64)>,
        bits: Option<(Packing, Arc<Bits>)>,
        memory: Reservation,
    ) -> KeyFilter {
        let test = bits.map_or(Test::Bounds, |(packing, bits)| Test::Bits { packing, bits });
        KeyFilter {
            is_empty: bounds.is_none(),
            bounds: bounds.map(|bounds| vec![bounds]),
            test,
            _memory: memory,
        }
    }

    /// The filter of keys whose bits are all known.
    pub(crate) fn of_bits(packing: Packing, bits: Arc<Bits>, memory: Reservation) -> KeyFilter {
        let (is_empty, bounds) = (bits.keys() == 0, Some(packing.bounds()));
        KeyFilter { is_empty, bounds, test: Test::Bits { packing, bits }, _memory: memory }
    }

    /// The bits, if there are any, of the places between the keys' bounds.
    pub(crate) fn bits(&self) -> Option<Arc<Bits>> {
        match &self.test {
            Test::Bits { bits, .. } => Some(bits.clone()),
            _ => None,
        }
    }

    /// True if keys are looked up in it, rather than only blocks being skipped.
    pub(crate) fn is_tested(&self) -> bool {
        !matches!(self.test, Test::Bounds)
    }

    fn bytes(&self) -> usize {
        match &self.test {
            Test::Bounds => 0,
            Test::Bits { bits, .. } => bits.bytes(),
            Test::Bloom(bloom) => bloom.bytes(),
        }
    }

    /// False if no value of `zone`, of key column `key`, can be one of a key.
    pub(crate) fn may_be_in(&self, zone: &Zone, key: usize) -> bool {
        if self.is_empty || zone.min.is_null() {
            return false;
        }
        let (Some(bounds), Value::Integer(min), Value::Integer(max)) = (&self.bounds, &zone.min, &zone.max)
        else {
            return true;
        };
        let (low, high) = (i128::from(bounds[key].0), i128::from(bounds[key].1));
        if *min > high || *max < low {
            return false;
        }
        match &self.test {
            Test::Bits { bits, .. } if bounds.len() == 1 => {
                let place = |value: i128| (value.clamp(low, high) - low) as u64;
                bits.may_have_between(place(*min), place(*max))
            }
            _ => true,
        }
    }
}

impl fmt::Display for KeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.test {
            Test::Bounds => write!(f, "bounds only"),
            Test::Bits { packing, .. } => write!(f, "bits for {} places", packing.places()),
            Test::Bloom(_) => write!(f, "Bloom"),
        }?;
        write!(f, "; {} bytes", self.bytes())
    }
}

/// One worker's test of a filter at one place, and its statistics.
pub(crate) struct FilterWorker {
    slot: Arc<FilterSlot>,
    keys: usize,
    trials: Trials,
    /// All hashes are the same.
    hash_collisions: bool,
    caches: Vec<HashCache>,
    /// Hashes or places.
    words: Vec<u64>,
    hits: Vec<bool>,
    positions: Vec<u16>,
    /// Decoded values of a column that came in codes.
    flat: Option<Vector>,
}

impl FilterWorker {
    /// For a filter of this many key columns.
    pub(crate) fn new(
        slot: &Arc<FilterSlot>,
        rate: &Arc<PassRate>,
        keys: usize,
        settings: &Settings,
    ) -> FilterWorker {
        let may_rest = settings.adaptive && settings.join_filter == FilterKind::Auto;
        FilterWorker {
            slot: slot.clone(),
            keys,
            trials: Trials::new(rate, may_rest, TRIAL_ROWS),
            hash_collisions: settings.hash_collisions,
            caches: (0..keys).map(|_| HashCache::default()).collect(),
            words: Vec::new(),
            hits: Vec::new(),
            positions: Vec::new(),
            flat: None,
        }
    }

    /// True if the filter must be tested for the next `rows` rows.
    pub(crate) fn is_on(&mut self, rows: usize) -> bool {
        let Some(filter) = self.slot.get() else { return false };
        if matches!(filter.test, Test::Bounds) && !filter.is_empty {
            return false;
        }
        !self.trials.rests(rows)
    }

    /// Keeps in `rows`, which ascend, those whose keys may exist; a key with a NULL does not. `key` yields a
    /// key column and the positions of rows in it, unless these are the rows themselves.
    pub(crate) fn retain<'a>(
        &mut self,
        key: impl Fn(usize) -> (&'a Vector, Option<&'a [u16]>),
        rows: &mut Vec<u16>,
    ) {
        let slot = self.slot.clone();
        let Some(filter) = slot.get() else { return };
        let before = rows.len();
        if filter.is_empty {
            rows.clear();
        }
        if !rows.is_empty() {
            self.look_up(filter, &key, rows);
            let mut kept = 0;
            for (i, &hit) in self.hits[..rows.len()].iter().enumerate() {
                // Branch-free: every row is written, and one that passes stays.
                rows[kept] = rows[i];
                kept += usize::from(hit);
            }
            rows.truncate(kept);
        }
        // PERF: last, as few are left. What was looked up for a NULL is arbitrary.
        for i in 0..self.keys {
            let (vector, positions) = key(i);
            if vector.validity().is_some() {
                let constant = vector.is_constant();
                let position =
                    |row: u16| if constant { 0 } else { positions.map_or(row, |at| at[row as usize]) };
                rows.retain(|&row| vector.is_valid(position(row).into()));
            }
        }
        self.count(before, rows.len());
    }

    /// The keys, if a column of integers of up to 64 bits has them and bits say which.
    pub(crate) fn values(&self) -> Option<ValueSet> {
        let filter = self.slot.get()?;
        match &filter.test {
            Test::Bits { packing, bits } if self.keys == 1 && !filter.is_empty => {
                Some(ValueSet::new(packing.window(), bits.clone()))
            }
            _ => None,
        }
    }

    /// Finds which of `rows` pass.
    fn look_up<'a>(
        &mut self,
        filter: &KeyFilter,
        key: &impl Fn(usize) -> (&'a Vector, Option<&'a [u16]>),
        rows: &[u16],
    ) {
        let count = rows.len();
        let has_places = |i: usize| is_integer(key(i).0.physical());
        if matches!(filter.test, Test::Bits { .. }) && !(0..self.keys).all(has_places) {
            // Integers that come in 128 bits are not tested here; the join compares them.
            self.hits.resize(CHUNK_ROWS.max(count), true);
            return self.hits[..count].fill(true);
        }
        let room = CHUNK_ROWS.max(count);
        self.words.resize(room, 0);
        self.hits.resize(room, false);
        // Rows ascend, so these are all rows up to the last.
        let is_dense = rows.last().is_some_and(|&last| usize::from(last) + 1 == count);
        for i in 0..self.keys {
            let (vector, positions) = key(i);
            let at = match positions {
                None if is_dense => None,
                None => Some(rows),
                Some(positions) if is_dense => Some(&positions[..count]),
                Some(positions) => {
                    self.positions.clear();
                    self.positions.extend(rows.iter().map(|&row| positions[row as usize]));
                    Some(&self.positions[..])
                }
            };
            let words = &mut self.words[..count];
            match &filter.test {
                Test::Bounds => {}
                // Integers rarely come as codes.
                Test::Bits { packing, .. } if vector.encoding() == Encoding::Dictionary => {
                    let flat = self.flat.get_or_insert_with(|| Vector::new(vector.physical()));
                    vector.flatten_into(at, count, flat);
                    widest_of(Places { packing, part: i, vector: flat, at: None, out: words });
                }
                Test::Bits { packing, .. } => widest_of(Places { packing, part: i, vector, at, out: words }),
                Test::Bloom(_) => hash_column(vector, at, count, i > 0, &mut self.caches[i], words),
            }
        }
        let (words, hits) = (&mut self.words[..count], &mut self.hits[..count]);
        if self.hash_collisions && matches!(filter.test, Test::Bloom(_)) {
            words.fill(0);
        }
        match &filter.test {
            Test::Bounds => hits.fill(true),
            Test::Bits { bits, .. } => bits.look_up(words, hits),
            Test::Bloom(bloom) => bloom.look_up(words, hits),
        }
    }

    /// Counts tested rows and those that passed; decides whether others may pass untested.
    pub(crate) fn count(&mut self, seen: usize, passed: usize) {
        let is_bloom = || self.slot.get().is_some_and(|filter| matches!(filter.test, Test::Bloom(_)));
        self.trials.count(seen, passed, || if is_bloom() { USELESS_BLOOM } else { USELESS_BITS });
    }
}

/// What a column of keys adds to the places of its rows.
struct Places<'a> {
    packing: &'a Packing,
    part: usize,
    vector: &'a Vector,
    at: Option<&'a [u16]>,
    out: &'a mut [u64],
}

impl Kernel for Places<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Places { packing, part, vector, at, out } = self;
        for_each_integer!(vector.physical(), |T| {
            let values = vector.values::<T>();
            match at {
                _ if vector.is_constant() => {
                    packing.add(part, std::iter::repeat_n(values[0] as i64, out.len()), out)
                }
                None => packing.add(part, values[..out.len()].iter().map(|&v| v as i64), out),
                // The minimum avoids a bounds check.
                Some(at) => {
                    let Some(last) = values.len().checked_sub(1) else { return };
                    packing.add(part, at.iter().map(|&p| values[usize::from(p).min(last)] as i64), out);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::materialized::{Materialized, column_of};
    use crate::exec::profile::Recorder;
    use crate::exec::testing::{Chance, TwoThreads, chunk_of};
    use crate::exec::trials::REST_ROWS;
    use entasis_vector::DataType;
    use entasis_vector::expr::ColumnMeta;
    use std::collections::HashSet;

    type Row = Vec<Value>;

    fn rows_of(metas: &[ColumnMeta], rows: &[Row], chance: &mut Chance) -> Materialized {
        let mut kept = Materialized::new(metas);
        let positions: Vec<usize> = (0..metas.len()).collect();
        for rows in rows.chunks(CHUNK_ROWS) {
            kept.append(&chunk_of(metas, rows, chance), &positions, None);
        }
        kept
    }

    fn filled(
        kind: FilterKind,
        kept: &Materialized,
        bounds: Option<&[(i64, i64)]>,
    ) -> (Arc<FilterSlot>, String) {
        let nulls = vec![false; kept.columns().len()];
        let input =
            BuildInput { rows: kept, null_equals_null: &nulls, hash_collisions: false, tasks: &TwoThreads };
        let slot = Arc::new(FilterSlot::new(Expected { rows: 1e6, matching: 0.5, ..Expected::default() }));
        slot.want();
        let reason = slot.fill(&input, bounds, kind, &Arc::default(), 0).unwrap().unwrap().1;
        (slot, reason)
    }

    fn int(v: i64) -> Value {
        Value::Integer(v.into())
    }

    /// Compares every kind of filter over every kind of key with a list of the keys, over chunks in every
    /// encoding and with some of their rows.
    #[test]
    fn rows_with_a_key_pass_and_of_the_others_few() {
        let mut chance = Chance(77);
        let chance = &mut chance;
        let text = |i: u64| Value::Text(format!("a text with number {i}").into());
        let (long, name) = (DataType::Int64, DataType::Varchar);
        let (exact, hashed) = (["bits", "bits", "Bloom"], ["Bloom", "bounds only", "Bloom"]);
        let cases = [
            ("near", vec![long], exact),
            ("two near", vec![long, DataType::Int16], exact),
            ("far", vec![long], hashed),
            ("texts", vec![name], hashed),
            ("text and number", vec![name, long], hashed),
        ];
        for (what, types, expected) in cases {
            let metas: Vec<ColumnMeta> = types.iter().map(|&ty| column_of(ty)).collect();
            let one = |chance: &mut Chance, n: u64| -> Row {
                let number = chance.below(n);
                match what {
                    "near" => vec![int(number as i64 - 40)],
                    "two near" => vec![int(number as i64), int(chance.below(3) as i64 - 1)],
                    "far" => vec![int((number as i64 - 40) << 40)],
                    "texts" => vec![text(number)],
                    _ => vec![text(number), int(chance.below(2) as i64)],
                }
            };
            let with_nulls = |mut row: Row, chance: &mut Chance| {
                if chance.below(17) == 0 {
                    let at = chance.below(row.len() as u64) as usize;
                    row[at] = Value::Null;
                }
                row
            };
            let mut build: Vec<Row> = Vec::new();
            for _ in 0..3000 {
                let row = one(chance, 4000);
                build.push(with_nulls(row, chance));
            }
            let kept = rows_of(&metas, &build, chance);
            let keys: HashSet<String> = build.iter().map(|key| format!("{key:?}")).collect();
            let nulls = vec![false; types.len()];
            let bounds = crate::exec::key_filter::key_bounds(&kept, &nulls, &TwoThreads).unwrap();
            for (kind, expected) in
                [FilterKind::Auto, FilterKind::Bits, FilterKind::Bloom].into_iter().zip(expected)
            {
                let (slot, reason) = filled(kind, &kept, bounds.as_deref());
                assert!(reason.starts_with(&format!("join filter: {expected}")), "{what}: {reason}");
                let settings = Settings { join_filter: kind, ..Settings::default() };
                let mut worker = FilterWorker::new(
                    &slot,
                    &Recorder::new(String::new()).pass_rate("join filter", "k"),
                    types.len(),
                    &settings,
                );
                let (mut wrong, mut absent) = (0, 0);
                for _ in 0..20 {
                    let mut probe: Vec<Row> = Vec::new();
                    for _ in 0..500 {
                        let row = one(chance, 8000);
                        probe.push(with_nulls(row, chance));
                    }
                    let chunk = chunk_of(&metas, &probe, chance);
                    let mut rows: Vec<u16> = (0..500).collect();
                    if chance.below(3) > 0 {
                        rows.retain(|_| chance.below(3) > 0);
                    }
                    let all = rows.clone();
                    if expected == "bounds only" {
                        assert!(!worker.is_on(all.len()));
                        continue;
                    }
                    assert!(worker.is_on(all.len()));
                    worker.retain(|i| (chunk.vector(i), chunk.positions(i)), &mut rows);
                    for row in all {
                        let key = &probe[row as usize];
                        let is_key = !key.iter().any(Value::is_null) && keys.contains(&format!("{key:?}"));
                        assert!(!is_key || rows.contains(&row), "{what}: {key:?} is missed");
                        absent += usize::from(!is_key);
                        wrong += usize::from(!is_key && rows.contains(&row));
                    }
                }
                match expected {
                    "bits" => assert!(wrong == 0 && absent > 0, "{what}: {wrong} of {absent}"),
                    "Bloom" => assert!(wrong * 20 < absent, "{what}: {wrong} of {absent}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn what_matches_goes_by_the_build_rows_that_there_are() {
        let expected = Expected { rows: 1000.0, matching: 0.1, build_rows: 50.0, ..Expected::default() };
        assert_eq!(expected.given(50).looked_up(), (1000.0, 0.1));
        assert_eq!(expected.given(100).looked_up(), (1000.0, 0.2));
        assert_eq!(expected.given(5000).looked_up(), (1000.0, 1.0));
        assert_eq!(Expected { is_filtered: true, ..expected }.given(100).looked_up(), (200.0, 1.0));
        assert_eq!(Expected { build_rows: 0.0, ..expected }.given(100).looked_up(), (1000.0, 0.1));
    }

    #[test]
    fn what_a_filter_is_made_of_is_a_matter_of_keys_memory_and_what_is_expected() {
        use FilterKind::{Auto, Bits, Bloom};
        let (near, far) = (Some(&[(-5, 63_994)][..]), Some(&[(0, i64::MAX)][..]));
        let (plenty, half) = (usize::MAX, 0.5);
        for (kind, rows, bounds, expected, memory, wanted, bytes) in [
            (Auto, 1000, near, half, plenty, "bits for 64000 places", 8000),
            // A few bits are made whatever is expected.
            (Auto, 1000, near, 1.0, plenty, "bits for 64000 places", 8000),
            (
                Auto,
                1000,
                near,
                half,
                5000,
                "Bloom for 1000 rows; 50 % of the rows are expected to pass",
                1504,
            ),
            (Auto, 1000, near, half, 1000, "bounds only; memory is short", 0),
            (
                Auto,
                1000,
                far,
                half,
                plenty,
                "Bloom for 1000 rows; 50 % of the rows are expected to pass",
                1504,
            ),
            (Auto, 1000, far, 0.95, plenty, "bounds only; 95 % of the rows are expected to pass", 0),
            (
                Auto,
                1000,
                None,
                half,
                plenty,
                "Bloom for 1000 rows; 50 % of the rows are expected to pass",
                1504,
            ),
            (Auto, 0, None, half, plenty, "no keys", 0),
            (Bits, 1000, near, half, plenty, "bits for 64000 places", 8000),
            (Bits, 1000, far, half, plenty, "bounds only", 0),
            (
                Bloom,
                1000,
                near,
                1.0,
                plenty,
                "Bloom for 1000 rows; 100 % of the rows are expected to pass",
                1504,
            ),
            // 16 M places are few, and so are 64 per row.
            (Auto, 2, Some(&[(0, (16 << 20) - 1)][..]), half, plenty, "bits for 16777216 places", 2 << 20),
            (Auto, 2, Some(&[(0, 16 << 20)][..]), half, plenty, "Bloom for 2 rows", 8),
            (
                Auto,
                1 << 20,
                Some(&[(0, (64 << 20) - 1)][..]),
                half,
                plenty,
                "bits for 67108864 places",
                8 << 20,
            ),
            // Bits for many keys are not made if most rows are expected to pass.
            (
                Auto,
                1 << 20,
                Some(&[(0, (1 << 20) - 1)][..]),
                0.95,
                plenty,
                "bits for 1048576 places",
                1 << 17,
            ),
            (
                Auto,
                3 << 19,
                Some(&[(0, (1 << 20) - 1)][..]),
                0.95,
                plenty,
                "bounds only; 95 % of the rows",
                0,
            ),
            (
                Auto,
                3 << 19,
                Some(&[(0, (1 << 20) - 1)][..]),
                half,
                plenty,
                "bits for 1048576 places",
                1 << 17,
            ),
            (
                Bits,
                3 << 19,
                Some(&[(0, (1 << 20) - 1)][..]),
                0.95,
                plenty,
                "bits for 1048576 places",
                1 << 17,
            ),
        ] {
            let mut memory = Reservation::new(&Arc::new(MemoryBudget::new(memory)));
            let expected = Expected { rows: 2e6, matching: expected, ..Expected::default() };
            let (_, reason) = choose(kind, rows, bounds, expected, &mut memory, 0);
            assert!(reason.starts_with(wanted), "{kind}: wanted {wanted}, got {reason}");
            assert_eq!(memory.bytes(), bytes, "{reason}");
        }
        // Memory for the table is spared; if few rows will be tested, only a few bits are made.
        let some = Expected { rows: 2e6, matching: half, ..Expected::default() };
        let few = Expected { rows: 900.0, ..some };
        for (bounds, expected, spared, wanted) in [
            (near, some, 2000, "bits for 64000 places"),
            (near, some, 2001, "Bloom for 1000 rows"),
            (near, some, 9000, "bounds only; memory is short"),
            (near, few, 0, "bits for 64000 places"),
            (far, few, 0, "bounds only; 900 rows are expected to be tested"),
        ] {
            let mut memory = Reservation::new(&Arc::new(MemoryBudget::new(10_000)));
            let (_, reason) = choose(Auto, 1000, bounds, expected, &mut memory, spared);
            assert!(reason.starts_with(wanted), "wanted {wanted}, got {reason}");
        }
    }

    #[test]
    fn blocks_without_a_key_are_ruled_out() {
        let mut chance = Chance(5);
        let metas = [column_of(DataType::Int64)];
        let keys: Vec<Row> = [100, 101, 5000].map(|v| vec![int(v)]).to_vec();
        let kept = rows_of(&metas, &keys, &mut chance);
        let zone = |min: i64, max: i64| Zone { min: int(min), max: int(max), nulls: 0 };
        for (kind, gap) in [(FilterKind::Bits, false), (FilterKind::Bloom, true)] {
            let (slot, _) = filled(kind, &kept, Some(&[(100, 5000)]));
            let filter = slot.get().unwrap();
            for (min, max, may_have) in [
                (0, 99, false),
                (0, 100, true),
                (101, 101, true),
                (102, 4999, gap),
                (4000, 9000, true),
                (5001, 9000, false),
            ] {
                assert_eq!(filter.may_be_in(&zone(min, max), 0), may_have, "{kind} from {min} to {max}");
            }
            assert!(!filter.may_be_in(&Zone { nulls: 3, ..Zone::EMPTY }, 0), "NULLs only");
        }
        let (slot, _) = filled(FilterKind::Auto, &Materialized::new(&metas), None);
        assert!(!slot.get().unwrap().may_be_in(&zone(0, 1), 0), "there are no keys");
    }

    #[test]
    fn a_filter_that_most_rows_pass_rests_for_a_while() {
        let mut chance = Chance(6);
        let metas = [column_of(DataType::Int64)];
        let keys: Vec<Row> = (0..2000).map(|i| vec![int(i)]).collect();
        let kept = rows_of(&metas, &keys, &mut chance);
        let recorder = Recorder::new(String::new());
        for (kind, adaptive, rests) in [
            (FilterKind::Auto, true, true),
            (FilterKind::Auto, false, false),
            (FilterKind::Bits, true, false),
        ] {
            let (slot, _) = filled(kind, &kept, Some(&[(0, 1999)]));
            let settings = Settings { join_filter: kind, adaptive, ..Settings::default() };
            let rate = recorder.pass_rate("join filter", "k");
            let mut worker = FilterWorker::new(&slot, &rate, 1, &settings);
            let all = Vector::from_slice(&(0..2000).collect::<Vec<i64>>());
            let few = Vector::from_slice(&(1000..3000).collect::<Vec<i64>>());
            let mut run = |vector: &Vector, rows: usize| {
                let mut tested = 0;
                for _ in 0..rows / 2000 {
                    if worker.is_on(2000) {
                        let mut rows: Vec<u16> = (0..2000).collect();
                        worker.retain(|_| (vector, None), &mut rows);
                        tested += 2000;
                    }
                }
                tested
            };
            assert_eq!(run(&few, 100_000), 100_000, "half of the rows are worth it");
            let tested = run(&all, 1_000_000);
            assert_eq!(tested < 100_000, rests, "{tested} rows were tested");
            // The result of the last trial no longer holds.
            run(&few, REST_ROWS + TRIAL_ROWS);
            assert_eq!(run(&few, 100_000), 100_000);
            drop(worker);
            assert_eq!(rate.to_string().contains("were not tested"), rests, "{rate}");
        }
    }
}
