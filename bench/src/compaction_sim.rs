//! The cost of strategies of chunk compaction by the model of *Data Chunk Compaction in Vectorized Execution*
//! (SIGMOD 2025, sections 3.2 to 3.4): its Figure 5, with the paper's constants and with this engine's.
//!
//! A pipeline of k operators, each of which cuts a chunk into r (the chunk-reducing factor) and keeps the
//! number of rows. The input is 20 million rows in full chunks of 2048; each row goes to a random one of the
//! r chunks. An operator takes C3 + d C4 for a chunk of d rows, and copying d rows takes C1 + d C2. Between
//! two operators a strategy merges chunks by copying. *Sort* looks at all chunks at once, from the smallest
//! to the largest, and copies as long as it gains: nearly optimal, and impossible while rows are still
//! arriving.

use crate::random::Random;
use entasis_engine::cost::Costs;
use entasis_engine::exec::{Behind, ChunkCosts};

const FULL: usize = 2048;
const ROWS: usize = 20_000_000;
/// Rows that are simulated; times are scaled to all rows.
const SIMULATED: usize = 2_000_000;
const STRATEGIES: [&str; 5] = ["none", "full", "binary", "dynamic", "sort"];

/// Prints the tables.
pub fn run() {
    let paper = ChunkCosts { copy_chunk: 250.0, copy_row: 40.0, chunk: 2400.0, row: 80.0 };
    let long = ChunkCosts { copy_row: 400.0, ..paper };
    let measured = Costs::measure().expect("nobody interrupts it");
    let own = ChunkCosts::of_rows(&measured, 4, 32);
    let long_own = ChunkCosts::of_rows(&measured, 75, 600);
    println!("C1 to C4 in nanoseconds: {paper:?} (the paper's), {own:?} (ours, rows of 4 columns)\n");
    for (title, costs) in [
        ("The paper's constants", paper),
        ("The paper's constants, long rows (C2 ten times as much)", long),
        ("Ours, rows of 32 bytes", own),
        ("Ours, rows of 600 bytes", long_own),
    ] {
        println!("{title}: seconds for {ROWS} rows");
        print!("{:>3}{:>5}", "k", "r");
        STRATEGIES.iter().for_each(|strategy| print!("{strategy:>10}"));
        println!("   thresholds of dynamic");
        for operators in [3, 4, 5] {
            for reduces in [2, 4, 16, 256] {
                let times = STRATEGIES.map(|strategy| seconds(strategy, &costs, operators, reduces));
                print!("{operators:>3}{reduces:>5}");
                times.iter().for_each(|seconds| print!("{seconds:>10.2}"));
                let thresholds: Vec<usize> =
                    (1..=operators).map(|done| threshold(&costs, operators - done, reduces)).collect();
                println!("   {thresholds:?}");
            }
        }
        println!();
    }
}

fn behind(operators: usize, reduces: usize) -> Behind {
    Behind { operators, reduces: reduces as f64, multiplies: 1.0 }
}

fn threshold(costs: &ChunkCosts, operators: usize, reduces: usize) -> usize {
    costs.threshold(&behind(operators, reduces), FULL)
}

/// The time that the pipeline takes.
fn seconds(strategy: &str, costs: &ChunkCosts, operators: usize, reduces: usize) -> f64 {
    let mut random = Random::new(1);
    let mut chunks = vec![FULL; SIMULATED / FULL];
    let mut nanoseconds = 0.0;
    for done in 1..=operators {
        nanoseconds += chunks.iter().map(|&rows| costs.chunk + costs.row * rows as f64).sum::<f64>();
        chunks = chunks.iter().flat_map(|&rows| cut(rows, reduces, &mut random)).collect();
        let left = operators - done;
        // After the last operator, compaction gains nothing.
        if left > 0 {
            nanoseconds += match strategy {
                "none" => 0.0,
                "sort" => sorted(&mut chunks, costs, &behind(left, reduces)),
                "full" => buffered(&mut chunks, costs, FULL),
                "binary" => buffered(&mut chunks, costs, 128),
                _ => buffered(&mut chunks, costs, threshold(costs, left, reduces)),
            };
        }
    }
    nanoseconds / 1e9 * ROWS as f64 / SIMULATED as f64
}

/// A chunk cut at random.
fn cut(rows: usize, into: usize, random: &mut Random) -> Vec<usize> {
    let mut sizes = vec![0; into];
    (0..rows).for_each(|_| sizes[random.below(into as u64) as usize] += 1);
    sizes.retain(|&size| size > 0);
    sizes
}

/// Copies chunks of at most `threshold` rows to a buffer. Returns the time.
fn buffered(chunks: &mut Vec<usize>, costs: &ChunkCosts, threshold: usize) -> f64 {
    let (mut nanoseconds, mut buffer, mut after) = (0.0, 0, Vec::new());
    let spare = if threshold <= FULL / 2 { threshold } else { 0 };
    for &rows in chunks.iter() {
        if rows > threshold || rows == FULL {
            after.push(rows);
            continue;
        }
        if buffer + rows > FULL {
            after.push(std::mem::take(&mut buffer));
        }
        nanoseconds += costs.copy_chunk + costs.copy_row * rows as f64;
        buffer += rows;
        if buffer + spare >= FULL {
            after.push(std::mem::take(&mut buffer));
        }
    }
    after.extend((buffer > 0).then_some(buffer));
    *chunks = after;
    nanoseconds
}

/// Sort compaction (section 3.3). Returns the time.
fn sorted(chunks: &mut Vec<usize>, costs: &ChunkCosts, behind: &Behind) -> f64 {
    chunks.sort_unstable();
    let (mut nanoseconds, mut after) = (0.0, Vec::new());
    let mut sizes = chunks.iter().copied();
    let Some(mut buffer) = sizes.next() else { return 0.0 };
    let mut is_alone = true;
    for rows in sizes.by_ref() {
        if buffer + rows > FULL {
            after.push(std::mem::replace(&mut buffer, rows));
            is_alone = true;
            continue;
        }
        if costs.gains(behind, buffer as f64, rows as f64) < 0.0 {
            after.push(rows);
            break;
        }
        // The first chunk of a buffer is not copied until a second one arrives.
        let copied = if std::mem::take(&mut is_alone) { buffer + rows } else { rows };
        nanoseconds += costs.copy_chunk + costs.copy_row * copied as f64;
        buffer += rows;
    }
    after.push(buffer);
    after.extend(sizes);
    *chunks = after;
    nanoseconds
}
