//! How long a program takes for a chunk: shared by the examples.

use entasis_vector::expr::{Machine, Program};
use entasis_vector::{CHUNK_ROWS, Chunk};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Nanoseconds a row of one thread, the least of some rounds. A program that `selects` is conditions, which
/// narrow the chunk; any other is computed for all of its rows.
pub fn least(program: Arc<Program>, selects: bool, chunk: &Chunk, rounds: usize) -> f64 {
    let mut machine = Machine::new(program);
    let mut output = Chunk::new();
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..10 {
            if selects {
                black_box(machine.select(black_box(chunk)).expect("nothing fails"));
            } else {
                output.reset(CHUNK_ROWS);
                machine.project(black_box(chunk), &mut output).expect("nothing fails");
                black_box(&output);
                output.reset(0);
            }
        }
        least = least.min(start.elapsed().as_nanos() as f64 / (10 * CHUNK_ROWS) as f64);
    }
    least
}
