//! What decoding tables are worth: fields of compressed tuples that are found by adding up the lengths of all
//! fields before them, beside tables of their places (Westmann et al., *The Implementation and Performance of
//! Compressed Databases*, section 3.3.3, Figures 2 to 4).
//!
//! `cargo run --release -p entasis-engine --example naive_tuples -- [rows]`
//!
//! Rows are integers of varying length, as they come in part 4 of a tuple, with the codes of their lengths in
//! part 2. The example writes its own tuples, by the same rules as the engine, since its decoders are not the
//! engine's: values without leading zeros, codes of two bits, four to a byte. Nanoseconds a value of one
//! thread, the fastest of five passes, for the last field of all rows and for all fields, in order:
//!
//! | | |
//! |---|---|
//! | naive | for each field, the lengths of all fields before it are decoded and added up |
//! | running | all fields in turn: the place of a field is the end of the one before |
//! | tables | the paper's, row by row: places by the byte of codes, and totals of each byte before |
//! | engine | the same tables, field by field over 256 rows at a time ([`Materialized::gather_all`]) |
//!
//! All give the same values, which is asserted.

mod random;

use entasis_engine::exec::materialized::{Materialized, column_of};
use entasis_engine::exec::tuple::TupleLayout;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, DataType, Vector};
use random::Random;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

const PASSES: usize = 5;
/// Bits of a code, and codes of a byte of them.
const BITS: usize = 2;
const CODES: usize = 8 / BITS;
/// Bytes behind the last tuple, so that eight can be loaded wherever a field starts.
const SLACK: usize = 8;

/// Reads fields of some rows to vectors.
type Decoder<'a> = &'a mut dyn FnMut(Range<usize>, &mut [Vec<u64>]);

/// Tuples of equal fields.
struct Tuples {
    fields: usize,
    /// What a code means.
    lengths: [u8; 4],
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

/// Where a field starts behind those of earlier bytes, and its length.
#[derive(Clone, Copy, Default)]
struct Place {
    offset: u8,
    length: u8,
}

impl Tuples {
    fn encode(fields: usize, lengths: [u8; 4], rows: &[Vec<u64>]) -> Tuples {
        let (mut bytes, mut starts) = (Vec::new(), Vec::with_capacity(rows.len()));
        for row in rows {
            let start = bytes.len();
            starts.push(start as u32);
            bytes.resize(start + fields.div_ceil(CODES), 0);
            for (field, value) in row.iter().enumerate() {
                let needed = (64 - value.leading_zeros()).div_ceil(8) as u8;
                let code = lengths.iter().position(|&length| length >= needed).expect("the longest suffices");
                bytes[start + field / CODES] |= (code << (field % CODES * BITS)) as u8;
                bytes.extend_from_slice(&value.to_le_bytes()[..lengths[code].into()]);
            }
        }
        bytes.resize(bytes.len() + SLACK, 0);
        Tuples { fields, lengths, bytes, starts }
    }

    fn tuple(&self, row: usize) -> &[u8] {
        &self.bytes[self.starts[row] as usize..]
    }

    /// The length of a field, from its code.
    #[inline(always)]
    fn length(&self, tuple: &[u8], field: usize) -> usize {
        let code = tuple[field / CODES] >> (field % CODES * BITS) & ((1 << BITS) - 1);
        self.lengths[usize::from(code)].into()
    }

    fn naive(&self, row: usize, field: usize) -> u64 {
        let tuple = self.tuple(row);
        let mut at = self.fields.div_ceil(CODES);
        for earlier in 0..field {
            at += self.length(tuple, earlier);
        }
        load(tuple, at, self.length(tuple, field))
    }

    fn running(&self, row: usize, mut take: impl FnMut(usize, u64)) {
        let tuple = self.tuple(row);
        let mut at = self.fields.div_ceil(CODES);
        for field in 0..self.fields {
            let length = self.length(tuple, field);
            take(field, load(tuple, at, length));
            at += length;
        }
    }

    /// For each field of a byte, its places by that byte; and the total of all of them.
    fn tables(&self) -> ([[Place; 256]; CODES], [u8; 256]) {
        let (mut places, mut totals) = ([[Place::default(); 256]; CODES], [0; 256]);
        for (byte, total) in (0..=u8::MAX).zip(&mut totals) {
            for (field, places) in places.iter_mut().enumerate() {
                let length = self.length(&[byte], field) as u8;
                places[usize::from(byte)] = Place { offset: *total, length };
                *total += length;
            }
        }
        (places, totals)
    }
}

/// A number of some bytes.
#[inline(always)]
fn load(tuple: &[u8], at: usize, length: usize) -> u64 {
    let word: [u8; 8] = tuple[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(word) & (u64::MAX >> (64 - 8 * length))
}

/// Nanoseconds a value of the fastest pass, and a digest of the values, which are written to `out` first, as
/// an operator does with a vector.
fn best(values: usize, mut run: impl FnMut() -> u64) -> (f64, u64) {
    let mut digest = 0;
    let pass = |_| {
        let start = Instant::now();
        digest = black_box(run());
        start.elapsed().as_nanos() as f64 / values as f64
    };
    ((0..PASSES).map(pass).fold(f64::INFINITY, f64::min), digest)
}

/// The sum of the values of a chunk, each mixed with its place in it.
fn digest(sum: u64, values: &[u64]) -> u64 {
    (1..).zip(values).fold(sum, |sum, (place, value)| sum.wrapping_add(value.wrapping_mul(place)))
}

fn measure(fields: usize, longest: u8, rows: usize) {
    let lengths = if longest <= 4 { [1, 2, 3, 4] } else { [1, 2, 4, longest] };
    let mut random = Random(4711);
    let values: Vec<Vec<u64>> = (0..rows)
        .map(|_| {
            // As many values of each length.
            let mut value = || {
                let bits = (8 * (1 + random.below(longest.into()))).min(63);
                random.below(1 << bits)
            };
            (0..fields).map(|_| value()).collect()
        })
        .collect();
    let own = Tuples::encode(fields, lengths, &values);
    let (engine, metas) = engine(fields, longest, &values);
    let (places, totals) = own.tables();
    let mut out = vec![vec![0; CHUNK_ROWS]; fields];
    let codes = fields.div_ceil(CODES);
    println!(
        "{fields} fields of up to {longest} bytes, {rows} rows, {:.1} bytes each; engine's {:.1}",
        own.bytes.len() as f64 / rows as f64,
        engine.bytes() as f64 / rows as f64
    );
    for wanted in [fields - 1..fields, 0..fields] {
        let count = rows * wanted.len();
        let mut shown = Vec::new();
        let mut digests = Vec::new();
        let mut by = |name: &str, chunk: Decoder| {
            let (time, sum) = best(count, || {
                let mut sum = 0;
                for first in (0..rows).step_by(CHUNK_ROWS) {
                    let part = first..rows.min(first + CHUNK_ROWS);
                    let length = part.len();
                    chunk(part, &mut out);
                    sum = out[wanted.clone()].iter().fold(sum, |sum, out| digest(sum, &out[..length]));
                }
                sum
            });
            shown.push(format!("{name} {time:.2}"));
            digests.push(sum);
        };
        by("naive", &mut |part, out| {
            for (at, row) in part.enumerate() {
                wanted.clone().for_each(|field| out[field][at] = own.naive(row, field));
            }
        });
        if wanted.len() > 1 {
            by("running", &mut |part, out| {
                for (at, row) in part.enumerate() {
                    own.running(row, |field, value| out[field][at] = value);
                }
            });
        }
        by("tables", &mut |part, out| {
            for (at, row) in part.enumerate() {
                let tuple = own.tuple(row);
                for field in wanted.clone() {
                    let byte = field / CODES;
                    let earlier: usize =
                        tuple[..byte].iter().map(|&codes| usize::from(totals[usize::from(codes)])).sum();
                    let place = places[field % CODES][usize::from(tuple[byte])];
                    out[field][at] =
                        load(tuple, codes + earlier + usize::from(place.offset), place.length.into());
                }
            }
        });
        let columns: Vec<usize> = wanted.clone().collect();
        let mut vectors: Vec<Vector> =
            columns.iter().map(|&field| Vector::new(metas[field].physical)).collect();
        let ids: Vec<u32> = engine.ids().collect();
        let (time, sum) = best(count, || {
            let mut sum = 0;
            for ids in ids.chunks(CHUNK_ROWS) {
                engine.gather_all(&columns, ids, &mut vectors);
                sum = vectors.iter().fold(sum, |sum, out| digest(sum, &out.values::<u64>()[..ids.len()]));
            }
            sum
        });
        shown.push(format!("engine {time:.2}"));
        digests.push(sum);
        assert!(digests.iter().all(|sum| *sum == digests[0]), "{digests:?}");
        let what = if wanted.len() == 1 { "last field" } else { "all fields" };
        println!("  {what}, ns a value: {}", shown.join(", "));
    }
}

/// The same rows as the engine keeps them.
fn engine(fields: usize, longest: u8, rows: &[Vec<u64>]) -> (Materialized, Vec<ColumnMeta>) {
    let most = (1_i128 << (8 * u32::from(longest)).min(63)) - 1;
    let ty = DataType::Int64;
    let meta = || ColumnMeta { nullable: false, range: Some((0, most)), ..column_of(ty) };
    let metas: Vec<ColumnMeta> = (0..fields).map(|_| meta()).collect();
    let layout = Arc::new(TupleLayout::new(&metas, &vec![false; fields]).expect("they fit a tuple"));
    let mut kept = Materialized::new(&metas);
    for rows in rows.chunks(CHUNK_ROWS) {
        let vectors: Vec<Vector> = (0..fields)
            .map(|field| {
                let mut vector = Vector::new(ty.physical());
                vector.begin(rows.len());
                let values = vector.values_mut::<u64>();
                values.iter_mut().zip(rows).for_each(|(value, row)| *value = row[field]);
                vector
            })
            .collect();
        let vectors: Vec<(&Vector, Option<&[u16]>)> = vectors.iter().map(|vector| (vector, None)).collect();
        kept.append_vectors(&vectors, rows.len());
    }
    (0..kept.segments()).for_each(|segment| kept.compress(segment, &layout));
    (kept, metas)
}

fn main() {
    let rows = std::env::args().nth(1).map_or(1 << 20, |rows| rows.parse().expect("rows are a number"));
    measure(4, 4, rows);
    measure(8, 4, rows);
    measure(16, 4, rows);
    measure(8, 8, rows);
    measure(16, 8, rows);
}
