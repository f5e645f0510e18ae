//! Lays out very many rows that come in any order.
//!
//! To sort all rows, and then gather each value from wherever it is, takes a cache miss for each value. So
//! rows are first distributed to buckets of about a row group each, by bounds that a sample gives. Every part
//! is read once, sequentially, and values are written to the ends of as many sequences as there are buckets.
//! A bucket's column fits into the cache, where its values are gathered in the order of keys. Workers share
//! out the columns, and each has one column twice at a time.
//!
//! Keys are words here: those of one word themselves, others by their ranks ([`super::ranks`]).
//! [`super::spread::lay`] is the slow twin; strings and columns with NULLs are gathered as it does.

use super::Writer;
use super::demand::among;
use super::looking::sort;
use super::spread::{Laid, SourceSlice, plan};
use crate::BLOCK_ROWS;
use crate::block::masks::{WORDS, first_slots};
use crate::block::{Block, Fixed, Form, with_fixed};
use crate::parallel::{Look, share};
use crate::tree::key::{Key, count_not_above};
use crate::tree::{EncodedSlice, RowGroup};
use entasis_vector::statement::reserve;
use entasis_vector::{Buffer, DataType, PhysicalType, Result, bitmap};
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The number of sampled keys for each bound.
const SAMPLED: usize = 64;
/// Blocks that are gathered in one task: some milliseconds of work.
const GATHERED: usize = 32;
/// Rows that are dealt or counted between two looks.
const DEALT: usize = 1 << 16;
/// Stands for no row.
const NONE: u32 = u32::MAX;

/// Gives the key of a word.
type KeyOf<'a> = &'a (dyn Fn(u64) -> Key + Sync);

/// A block that is going to be built: a bucket, and for each slot the row's index in the bucket, or none.
type PlannedBlock<'a> = (usize, &'a [u32]);

/// A row group that is going to be built: rows of a bucket, and the slots that they go to.
struct Planned {
    bucket: usize,
    /// For each slot the row's index in the bucket, or none.
    rows: Vec<u32>,
    laid: Laid,
    blocks: Vec<Vec<Block>>,
}

impl Writer<'_> {
    /// Lays out the rows of some parts in new row groups, by the words `keys`, in the order of parts and
    /// slots. `key` gives the key of a word.
    pub(super) fn lay_buckets(
        &self,
        parts: &[SourceSlice<'_>],
        keys: Vec<u64>,
        key: KeyOf<'_>,
        (workers, look): (usize, Look<'_>),
    ) -> Result<Vec<RowGroup>> {
        let options = &self.shape.options;
        let schema = &self.shape.schema;
        let widest = schema.iter().map(|field| field.ty.physical().width()).max().unwrap_or(0);
        // Rows with their keys, their buckets, and a column as it is dealt and gathered.
        let of_row = size_of::<(u64, u32)>() + size_of::<u64>() + size_of::<u32>();
        let _memory = reserve(keys.len() * (of_row + 2 * widest * workers.min(schema.len())))?;
        let width = options.block_slots;
        let filled = (options.group_slots / width * options.filled_slots(width)).max(1);
        let bounds = bounds_of(&keys, keys.len().div_ceil((filled * 3 / 4).max(1)));
        let buckets = Buckets::of(&keys, &bounds, look)?;
        let rows = buckets.deal_keys(&keys, look)?;
        drop(keys);
        let mut planned = self.plan_buckets(&buckets, rows, (filled, key), (workers, look))?;
        let blocks: Vec<PlannedBlock<'_>> = planned
            .iter()
            .flat_map(|planned| planned.rows.chunks(width).map(|rows| (planned.bucket, rows)))
            .collect();
        let columns = self.build_columns(parts, &buckets, (&blocks, widest), (workers, look))?;
        for column in columns {
            let slices = planned.iter_mut().flat_map(|planned| &mut planned.blocks);
            slices.zip(column).for_each(|(blocks, block)| blocks.push(block));
        }
        Ok(planned.into_iter().map(|planned| self.finished(planned)).collect())
    }

    /// Sorts the rows of each bucket, and divides them into row groups of `filled` rows at most.
    fn plan_buckets(
        &self,
        buckets: &Buckets,
        mut rows: Vec<(u64, u32)>,
        (filled, key): (usize, KeyOf<'_>),
        (workers, look): (usize, Look<'_>),
    ) -> Result<Vec<Planned>> {
        let count = buckets.starts.len();
        let mut rest = &mut rows[..];
        let of_buckets = (0..count).map(|bucket| {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(buckets.range(bucket).len());
            rest = others;
            Mutex::new(own)
        });
        let of_buckets: Vec<Mutex<&mut [(u64, u32)]>> = of_buckets.collect();
        let expected = self.expected();
        let first = (0..count).find(|&bucket| !buckets.range(bucket).is_empty());
        let plan = |(): &mut (), bucket: usize, look: Look<'_>| {
            let mut rows = of_buckets[bucket].lock().unwrap_or_else(PoisonError::into_inner);
            sort(&mut rows, &Ord::cmp, (1, look))?;
            let groups = rows.len().div_ceil(filled);
            let own = (0..groups)
                .map(|group| &rows[group * rows.len() / groups..(group + 1) * rows.len() / groups]);
            let is_first = |group: usize| group == 0 && first == Some(bucket);
            let own = own.enumerate().map(|(group, own)| {
                look()?;
                Ok(self.planned(bucket, (own, key), is_first(group), &expected))
            });
            own.collect::<Result<Vec<Planned>>>()
        };
        let planned = share((workers, look), count, || (), plan)?;
        Ok(planned.into_iter().flatten().collect())
    }

    /// The blocks of each column. Strings and columns with NULLs are gathered in tasks of some blocks, others
    /// are filled as a whole.
    fn build_columns(
        &self,
        parts: &[SourceSlice<'_>],
        buckets: &Buckets,
        (blocks, widest): (&[PlannedBlock<'_>], usize),
        (workers, look): (usize, Look<'_>),
    ) -> Result<Vec<Vec<Block>>> {
        let schema = &self.shape.schema;
        let plain = |part: &SourceSlice<'_>, column: usize| {
            part.blocks[column].validity.is_none() && !part.blocks[column].is_all_null()
        };
        let is_filled = |column: &usize| {
            schema[*column].ty.physical() != PhysicalType::Str
                && parts.iter().all(|part| plain(part, *column))
        };
        let (filled, gathered): (Vec<usize>, Vec<usize>) = (0..schema.len()).partition(is_filled);
        let of_gathered = |&column: &usize| blocks.chunks(GATHERED).map(move |blocks| (column, Some(blocks)));
        let of_filled = filled.iter().map(|&column| (column, None));
        let tasks: Vec<(usize, Option<&[PlannedBlock<'_>]>)> =
            of_filled.chain(gathered.iter().flat_map(of_gathered)).collect();
        let dealt = || None;
        let places = OnceLock::new();
        let columns = share((workers, look), tasks.len(), dealt, |dealt, task, look| {
            let (column, own) = tasks[task];
            let ty = schema[column].ty;
            if let Some(own) = own {
                let places = places.get_or_init(|| places_of(parts, buckets));
                return gather(parts, (column, ty), (buckets, places), own, look);
            }
            let dealt = dealt.get_or_insert_with(|| Buffer::zeroed(buckets.of_rows.len() * widest));
            let form = self.shape.form(column);
            with_fixed!(
                ty.physical(),
                T => fill::<T>(parts, column, (ty, form), (buckets, dealt), blocks, look),
                unreachable!("strings have no fixed width")
            )
        })?;
        let mut of_columns: Vec<Vec<Block>> = schema.iter().map(|_| Vec::new()).collect();
        for ((column, _), blocks) in tasks.iter().zip(columns) {
            of_columns[*column].extend(blocks);
        }
        Ok(of_columns)
    }

    fn planned(
        &self,
        bucket: usize,
        (rows, key): (&[(u64, u32)], KeyOf<'_>),
        is_first: bool,
        expected: &[(Key, f64)],
    ) -> Planned {
        let options = &self.shape.options;
        let width = options.block_slots;
        let most = options.group_slots / width;
        let slices = rows.len().div_ceil(options.filled_slots(width)).clamp(1, most);
        let mut of_slot = vec![NONE; slices * width];
        let mut laid = Laid { slices: Vec::new(), partitions: Vec::new(), fences: Vec::new() };
        let least = self.shape.key.as_ref().expect("the table has a layout key").least();
        let wanted = among(
            rows,
            |row: &(u64, u32)| key(row.0),
            expected,
            (slices * width).saturating_sub(rows.len()) as u64,
        );
        for (own, slots) in plan(rows.len(), (slices, &wanted), self.shape) {
            let is_least = is_first && own.start == 0;
            laid.fences.push(if is_least { least.clone() } else { key(rows[own.start].0) });
            rows[own.clone()]
                .iter()
                .zip(&mut of_slot[slots.clone()])
                .for_each(|((_, row), slot)| *slot = *row);
            laid.partitions.push(crate::tree::Partition {
                start: slots.start as u32,
                end: slots.end as u32,
                rows: own.len() as u32,
            });
        }
        let blocks = (0..slices).map(|_| Vec::with_capacity(self.shape.schema.len())).collect();
        Planned { bucket, rows: of_slot, laid, blocks }
    }

    fn finished(&self, planned: Planned) -> RowGroup {
        let Planned { rows, mut laid, blocks, .. } = planned;
        for (rows, blocks) in rows.chunks(self.shape.options.block_slots).zip(blocks) {
            let mut live = [0; WORDS];
            let of_rows = rows.iter().enumerate().filter(|(_, row)| **row != NONE);
            of_rows.for_each(|(slot, _)| bitmap::set(&mut live, slot, true));
            laid.slices.push(EncodedSlice::of(live, blocks));
        }
        self.group_of(laid)
    }
}

/// The least keys of buckets, ascending; about as many as wanted. The first is the least of all keys.
fn bounds_of(keys: &[u64], wanted: usize) -> Vec<u64> {
    let wanted = wanted.clamp(1, usize::from(u16::MAX));
    let step = (keys.len() / (wanted * SAMPLED)).max(1);
    let mut sample: Vec<u64> = keys.iter().copied().step_by(step).collect();
    sample.sort_unstable();
    let mut bounds: Vec<u64> = (0..wanted).map(|bucket| sample[bucket * sample.len() / wanted]).collect();
    bounds[0] = 0;
    bounds.dedup();
    bounds
}

/// The bucket of each row, in the order of parts and slots, and the offset of each bucket if all buckets are
/// stored one after the other.
struct Buckets {
    of_rows: Vec<u16>,
    starts: Vec<u32>,
}

impl Buckets {
    fn of(keys: &[u64], bounds: &[u64], look: Look<'_>) -> Result<Buckets> {
        let mut of_rows: Vec<u16> = Vec::with_capacity(keys.len());
        let mut counts = vec![0; bounds.len()];
        for keys in keys.chunks(DEALT) {
            look()?;
            let from = of_rows.len();
            of_rows.extend(keys.iter().map(|key| (count_not_above(bounds, *key) - 1) as u16));
            of_rows[from..].iter().for_each(|&bucket| counts[bucket as usize] += 1);
        }
        let starts = counts.iter().scan(0, |end, count| {
            let start = *end;
            *end += count;
            Some(start)
        });
        Ok(Buckets { starts: starts.collect(), of_rows })
    }

    /// Bucket after bucket, the rows' keys, and their indexes in the bucket.
    fn deal_keys(&self, keys: &[u64], look: Look<'_>) -> Result<Vec<(u64, u32)>> {
        let mut rows: Vec<(u64, u32)> = vec![(0, 0); keys.len()];
        let mut ends = self.starts.clone();
        for (keys, of_rows) in keys.chunks(DEALT).zip(self.of_rows.chunks(DEALT)) {
            look()?;
            for (&key, &bucket) in keys.iter().zip(of_rows) {
                let end = &mut ends[bucket as usize];
                rows[*end as usize] = (key, *end - self.starts[bucket as usize]);
                *end += 1;
            }
        }
        Ok(rows)
    }

    fn range(&self, bucket: usize) -> Range<usize> {
        let end = self.starts.get(bucket + 1).map_or(self.of_rows.len(), |&start| start as usize);
        self.starts[bucket] as usize..end
    }
}

/// The part and slot of each row, bucket after bucket.
fn places_of(parts: &[SourceSlice<'_>], buckets: &Buckets) -> Vec<(u32, u32)> {
    let mut places = vec![(0, 0); buckets.of_rows.len()];
    let mut ends = buckets.starts.clone();
    let mut of_rows = buckets.of_rows.iter();
    for (number, part) in parts.iter().enumerate() {
        part.each_live(|slot| {
            let end = &mut ends[*of_rows.next().expect("a bucket for each row") as usize];
            places[*end as usize] = (number as u32, slot as u32);
            *end += 1;
        });
    }
    places
}

/// The blocks of a column of fixed width without NULLs, for all slices. `dealt` has room for all of its
/// values; each block has the rows of a bucket with some indexes.
///
/// # Errors
/// Those of `look`.
fn fill<T: Fixed>(
    parts: &[SourceSlice<'_>],
    column: usize,
    own: (DataType, Form),
    (buckets, dealt): (&Buckets, &mut Buffer),
    blocks: &[PlannedBlock<'_>],
    look: Look<'_>,
) -> Result<Vec<Block>> {
    let dealt = dealt.as_mut_slice::<T>();
    let mut ends = buckets.starts.clone();
    let mut values: Vec<T> = Vec::new();
    let mut of_rows = &buckets.of_rows[..];
    for part in parts {
        look()?;
        let block = part.blocks[column];
        values.resize(block.slots(), T::default());
        block.decode_fixed(T::PHYSICAL, 0, &mut values);
        let rows = bitmap::count_ones(part.live, BLOCK_ROWS);
        let (own, rest) = of_rows.split_at(rows);
        let mut deal = |bucket: u16, value: T| {
            let end = &mut ends[bucket as usize];
            dealt[*end as usize] = value;
            *end += 1;
        };
        if *part.live == first_slots(rows) {
            // PERF: the usual case, where rows were appended.
            own.iter().zip(&values).for_each(|(&bucket, &value)| deal(bucket, value));
        } else {
            let mut own = own.iter();
            part.each_live(|slot| deal(*own.next().expect("a bucket for each row"), values[slot]));
        }
        of_rows = rest;
    }
    let block = |&(bucket, rows): &PlannedBlock<'_>| {
        look()?;
        Ok(Block::picked(&dealt[buckets.range(bucket)], rows, NONE, own))
    };
    blocks.iter().map(block).collect()
}

/// Some blocks of any column, each with the rows of a bucket that have some indexes. `places` has those of
/// all rows, bucket after bucket.
///
/// # Errors
/// Those of `look`.
fn gather(
    parts: &[SourceSlice<'_>],
    (column, ty): (usize, DataType),
    (buckets, places): (&Buckets, &[(u32, u32)]),
    blocks: &[PlannedBlock<'_>],
    look: Look<'_>,
) -> Result<Vec<Block>> {
    let mut from = Vec::new();
    let block = |&(bucket, rows): &PlannedBlock<'_>| {
        look()?;
        let places = &places[buckets.range(bucket)];
        let place = |row: &u32| {
            let (part, slot) = *places.get(*row as usize)?;
            Some((parts[part as usize].blocks[column], slot as usize))
        };
        from.clear();
        from.extend(rows.iter().map(place));
        Ok(Block::gather(&from, ty))
    };
    blocks.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Slice;
    use crate::{Curve, Table, TableOptions};
    use entasis_vector::{Field, Value};

    #[test]
    fn buckets_lay_rows_as_the_slow_twin_does() {
        let schema = [DataType::Int64, DataType::Int32, DataType::Varchar, DataType::Float64];
        let schema: Vec<Field> = schema.iter().map(|&ty| Field::new(format!("{ty}"), ty)).collect();
        let cases = [(1, 1, 1), (700, 700, 1), (700, 700, 3), (700, 20, 2), (700, 1, 1)];
        // A word; bytes that a prefix has; bytes that it cuts, and NULLs; curves.
        let layout_keys: [(&[usize], Option<Curve>); 6] = [
            (&[0], None),
            (&[1], None),
            (&[0, 3], None),
            (&[1, 2, 3, 0], None),
            (&[0, 1], Some(Curve::ZOrder)),
            (&[1, 2, 3, 0], Some(Curve::Hilbert)),
        ];
        for ((rows, distinct, every), (layout_key, curve)) in
            cases.into_iter().flat_map(|case| layout_keys.map(|own| (case, own)))
        {
            let sizes = TableOptions {
                block_slots: 8,
                group_slots: 64,
                partitions: 8,
                curve,
                ..TableOptions::keyed(layout_key.to_vec())
            };
            let schema = vec![
                Field { nullable: false, ..schema[0].clone() },
                schema[1].clone(),
                schema[2].clone(),
                schema[3].clone(),
            ];
            let table = Table::with_options("t", schema.clone(), sizes);
            // 7919 is a prime, so that keys come in another order, each as often as the next.
            let row = |i: i128| {
                let key = i * 7919 % 100_003 % distinct;
                let text = Value::Text(format!("{}", key % 5).into());
                let small = if key % 11 == 3 { Value::Null } else { Value::Integer(key * 3) };
                vec![Value::Integer(key), small, text, Value::Float(key as f64)]
            };
            let rows: Vec<Vec<Value>> = (0..rows).map(row).collect();
            crate::table::tests::rows::insert(&table, &rows, false);
            let old = table.snapshot();
            let parts: Vec<(Box<[u64; WORDS]>, &Slice)> = old
                .row_groups()
                .flat_map(|group| &group.slices)
                .map(|slice| {
                    // Some rows are left out, so that parts have holes.
                    let mut live = Box::new(*slice.live());
                    (0..8)
                        .filter(|slot| slot % every != 0)
                        .for_each(|slot| bitmap::set(&mut *live, slot, false));
                    (live, &**slice)
                })
                .collect();
            let parts: Vec<SourceSlice<'_>> = parts
                .iter()
                .map(|(live, slice)| SourceSlice {
                    live,
                    blocks: slice.blocks().iter().map(|block| &**block).collect(),
                })
                .collect();
            let key = table.shape.key.as_ref().unwrap();
            let key_of = |part: &SourceSlice<'_>, slot: usize| {
                key.of_row(|column| part.blocks[column].datum(slot, schema[column].ty.physical()))
            };
            let laid = [true, false].map(|by_buckets| {
                let mut head = table.head();
                let mut writer = Writer { shape: &table.shape, branch: &mut head.branch };
                let groups = match by_buckets {
                    true => writer.lay_many(&parts, 3, &|| Ok(())).unwrap(),
                    false => writer.lay_parts(&parts, &key_of, &Key::clone, &|| Ok(())).unwrap(),
                };
                writer.replace_groups(groups);
                drop(head);
                let snapshot = table.snapshot();
                snapshot.check();
                let row = |id| -> Vec<Value> {
                    table
                        .schema()
                        .iter()
                        .enumerate()
                        .map(|(c, field)| snapshot.datum(id, c).value(field.ty))
                        .collect()
                };
                snapshot.row_ids().map(row).collect::<Vec<_>>()
            });
            assert_eq!(laid[0], laid[1], "rows with equal keys are equal here");
        }
    }
}
