//! Databases on a disk that stops at each of its operations ([`entasis_testkit::crashes`]). `make crash` runs
//! longer.

use entasis_storage::wal::Synchronous;
use entasis_testkit::crashes::{Found, run};

/// Crashes per seed.
const CRASHES: u64 = 1000;
/// Number of seeds, each with another script.
const SEEDS: u64 = 20;

#[test]
fn what_was_answered_is_there_wherever_the_machine_stops() {
    let mut all = Found::default();
    for seed in 1..=SEEDS {
        let found = run(seed, CRASHES, 2, Synchronous::Full).unwrap_or_else(|what| panic!("{what}"));
        all.crashes += found.crashes;
        all.commits += found.commits;
        all.ahead += found.ahead;
    }
    assert!(all.crashes >= SEEDS * CRASHES);
    // A log that is synced before the acknowledgement is sometimes found before it.
    assert!(all.ahead > 0 && all.commits > SEEDS, "{all:?}");
}

/// The test above finds what it is meant to find: commits acknowledged before they are on the disk.
#[test]
fn commits_that_do_not_wait_are_found_missing() {
    for synchronous in [Synchronous::Normal, Synchronous::Off] {
        let found = run(1, CRASHES, 2, synchronous).expect_err("some that were answered are not there");
        assert!(found.contains("commits had been answered, and there is the state after"), "{found}");
    }
}
