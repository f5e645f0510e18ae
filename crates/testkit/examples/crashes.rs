//! Stops a machine at each operation of random transactions, and reopens what is on its disk: `make crash`.
//!
//! ```sh
//! cargo run --release -p entasis-testkit --example crashes -- 300000 [first seed]
//! ```

use entasis_storage::wal::Synchronous;
use entasis_testkit::crashes::{Faults, run};
use std::time::Instant;

/// Number of crashes per seed.
const CRASHES: u64 = 2000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut number = |default| arguments.next().and_then(Result::ok).unwrap_or(default);
    let (wanted, mut seed) = (number(20_000), number(1));
    let (start, mut crashes, mut commits, mut ahead, mut reopened) = (Instant::now(), 0, 0, 0, 0);
    let checkers = std::thread::available_parallelism().map_or(1, usize::from);
    while crashes < wanted {
        let faults = if seed.is_multiple_of(2) { Faults::Syncs } else { Faults::None };
        match run(seed, CRASHES.min(wanted - crashes), checkers, Synchronous::Full, faults) {
            Ok(found) => {
                crashes += found.crashes;
                commits += found.commits;
                ahead += found.ahead;
                reopened += found.reopened;
            }
            Err(what) => {
                eprintln!("\n{what}");
                std::process::exit(1);
            }
        }
        seed += 1;
        eprint!("\r{crashes} of {wanted} crashes, {commits} commits, {:.0} s", start.elapsed().as_secs_f64());
    }
    eprintln!();
    println!(
        "{crashes} crashes at as many operations, {commits} commits answered, {ahead} times the one under way was there, \
         {reopened} times a sync had failed before: nothing else was found ({:.0} s)",
        start.elapsed().as_secs_f64()
    );
}
