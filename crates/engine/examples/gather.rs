//! How fast entries of a table are looked up at random places: what no probe of a join can be faster than.
//!
//! `make bench-gather`, or `cargo run --release -p entasis-engine --example gather [ENTRIES …]`
//!
//! The experiment of Barber et al., *Memory-Efficient Hash Joins*, Figure 1: each thread walks over random
//! places of its own and copies the entry at each, of 8, 16 or 32 bytes, from one table that all threads
//! read. Other than there, the copies of 2048 lookups overwrite those of the last 2048, as a pipeline's
//! chunks do. Places are read as 8-byte numbers in the order in which they lie. The loop is plain: the
//! processor looks as far ahead as it can by itself.
//!
//! A line for each table: entries, bytes of an entry, nanoseconds of wall time a lookup of all threads
//! together, the least of several rounds.

mod random;

use random::Random;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 3;
const LOOKUPS: usize = 1 << 23;
const CHUNK: usize = 2048;
/// The largest table.
const MOST_BYTES: usize = 4 << 30;

/// Measures a table of so many entries at the places of each thread.
type Measure = fn(usize, &[Vec<u64>]) -> f64;

/// Nanoseconds a lookup.
fn measure<const WORDS: usize>(entries: usize, places: &[Vec<u64>]) -> f64 {
    let table: Vec<[u64; WORDS]> = (0..entries as u64).map(|i| [i; WORDS]).collect();
    let table = &table[..];
    let walk = |places: &[u64]| {
        let mut out = vec![[0; WORDS]; CHUNK];
        for places in places.chunks(CHUNK) {
            out.iter_mut().zip(places).for_each(|(to, &place)| *to = table[place as usize]);
            black_box(&mut out);
        }
    };
    let round = || {
        let start = Instant::now();
        std::thread::scope(|scope| places.iter().for_each(|own| drop(scope.spawn(|| walk(own)))));
        start.elapsed().as_nanos() as f64 / (places.len() * LOOKUPS) as f64
    };
    (0..=ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() { (2..=8).map(|digits| 10usize.pow(digits)).collect() } else { sizes };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("entries bytes nanoseconds ({threads} threads)");
    for entries in sizes {
        let draw = |thread: usize| {
            let mut random = Random(4711 + thread as u64);
            (0..LOOKUPS).map(|_| random.below(entries as u64)).collect()
        };
        let places: Vec<Vec<u64>> = (0..threads).map(draw).collect();
        let tables: [(usize, Measure); 3] = [(8, measure::<1>), (16, measure::<2>), (32, measure::<4>)];
        for (bytes, measure) in tables {
            if entries * bytes <= MOST_BYTES {
                println!("{entries} {bytes} {:.2}", measure(entries, &places));
            }
        }
    }
}
