//! Reads of a file: the time of one, and how many are made a second if several are asked for at once.
//!
//! `make bench-read` (`bench/reads.py`) makes the file, drops it from the page cache before each measurement,
//! and keeps the record; or
//! `cargo run --release -p entasis-storage --example reads -- FILE KIND BYTES SECONDS SEED`
//!
//! | kind | |
//! |---|---|
//! | `one` | `Backend::read` at random places, one after the other |
//! | `many` | `Backend::read_many` at random places, 128 in a batch |
//! | `in-order` | `Backend::read` from the beginning on |
//! | `in-order-many` | `Backend::read_many` from the beginning on, 16 in a batch |
//!
//! A read is of BYTES bytes at a multiple of BYTES; no place is read twice, so that none is in the page cache
//! because of an earlier read. A measurement ends after SECONDS, or when all places have been read. It
//! prints a line of JSON; times of single reads are those that the caller waits for.

// As the programs have it.
use entasis_allocator as _;
use entasis_storage::backend::{Backend, FileBackend, READS_AT_ONCE, ReadRequest};
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// Requests of a batch at random places: sixteen for each thread, so that few of them wait for the last one.
const BATCH: usize = 16 * READS_AT_ONCE;
/// Requests of a batch in order: of 1 MB they are four reads.
const IN_ORDER: usize = 16;

/// Puts places into another order, the same for each seed (xorshift).
fn shuffle(places: &mut [u64], seed: u64) {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for i in (1..places.len()).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        places.swap(i, (random % (i as u64 + 1)) as usize);
    }
}

/// Reads one place after the other. Returns the nanoseconds of each read.
fn one(file: &FileBackend, places: &[u64], bytes: usize, limit: Duration) -> std::io::Result<Vec<u64>> {
    let (mut buffer, mut times, began) = (vec![0; bytes], Vec::new(), Instant::now());
    for &place in places {
        let start = Instant::now();
        if start - began > limit {
            break;
        }
        file.read(place, &mut buffer)?;
        black_box(&buffer);
        times.push(start.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// Reads places in batches. Returns how many were read.
fn many(
    file: &FileBackend,
    places: &[u64],
    bytes: usize,
    batch: usize,
    limit: Duration,
) -> std::io::Result<usize> {
    let mut reads: Vec<ReadRequest> = (0..batch).map(|_| ReadRequest::new(0, bytes)).collect();
    let (mut count, began) = (0, Instant::now());
    for places in places.chunks_exact(batch) {
        if began.elapsed() > limit {
            break;
        }
        reads.iter_mut().zip(places).for_each(|(read, &place)| read.offset = place);
        file.read_many(&mut reads)?;
        black_box(&reads);
        count += batch;
    }
    Ok(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, kind, bytes, seconds, seed] = &arguments[..] else {
        return Err("usage: reads FILE KIND BYTES SECONDS SEED".into());
    };
    let (bytes, seed): (u64, u64) = (bytes.parse()?, seed.parse()?);
    let limit = Duration::try_from_secs_f64(seconds.parse()?)?;
    let file = FileBackend::open(Path::new(path), false)?;
    let count = file.length()? / bytes.max(1);
    let mut places: Vec<u64> = (0..count).map(|number| number * bytes).collect();
    if kind == "one" || kind == "many" {
        shuffle(&mut places, seed);
    }
    let size = usize::try_from(bytes)?;
    let start = Instant::now();
    let (reads, mut times) = match kind.as_str() {
        "one" | "in-order" => {
            let times = one(&file, &places, size, limit)?;
            (times.len(), times)
        }
        "many" => (many(&file, &places, size, BATCH, limit)?, Vec::new()),
        "in-order-many" => (many(&file, &places, size, IN_ORDER, limit)?, Vec::new()),
        other => return Err(format!("there is no kind '{other}': one, many, in-order, in-order-many").into()),
    };
    let seconds = start.elapsed().as_secs_f64();
    if reads == 0 {
        return Err(format!("{path} has too few bytes for reads of {bytes}").into());
    }
    times.sort_unstable();
    let at = |share: f64| match times.get((times.len() as f64 * share) as usize) {
        Some(&nanoseconds) => format!("{:.1}", nanoseconds as f64 / 1000.0),
        None => "null".to_owned(),
    };
    let per_second = reads as f64 / seconds;
    println!(
        "{{\"kind\": \"{kind}\", \"bytes\": {bytes}, \"reads\": {reads}, \"seconds\": {seconds:.3}, \
         \"per_second\": {per_second:.1}, \"mb_per_second\": {:.1}, \"p50_us\": {}, \"p99_us\": {}}}",
        per_second * bytes as f64 / 1e6,
        at(0.5),
        at(0.99)
    );
    Ok(())
}
