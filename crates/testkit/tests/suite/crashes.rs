//! Databases on a disk that stops at each of its operations ([`entasis_testkit::crashes`]). `make crash` runs
//! longer.

use entasis_storage::wal::Synchronous;
use entasis_testkit::crashes::{Faults, Found, run};

/// Crashes per seed.
const CRASHES: u64 = 1000;
/// Number of seeds, each with another script.
const SEEDS: u64 = 8;

#[test]
fn what_was_answered_is_there_wherever_the_machine_stops() {
    let mut all = Found::default();
    for seed in 1..=SEEDS {
        let found =
            run(seed, CRASHES, 2, Synchronous::Full, Faults::None).unwrap_or_else(|what| panic!("{what}"));
        all.crashes += found.crashes;
        all.commits += found.commits;
        all.ahead += found.ahead;
    }
    assert!(all.crashes >= SEEDS * CRASHES);
    // A log that is synced before the acknowledgement is sometimes found before it.
    assert!(all.ahead > 0 && all.commits > SEEDS, "{all:?}");
}

/// After a sync that failed, nothing is acknowledged that relies on what is in the system's cache only.
#[test]
fn what_was_answered_after_a_failed_sync_is_there() {
    let mut reopened = 0;
    for seed in 1..=SEEDS / 2 {
        let found = run(seed, CRASHES, 2, Synchronous::Full, Faults::Syncs);
        reopened += found.unwrap_or_else(|what| panic!("{what}")).reopened;
    }
    assert!(reopened >= SEEDS, "{reopened} failures");
}

/// The test above finds what it is meant to find: commits acknowledged before they are on the disk.
#[test]
fn commits_that_do_not_wait_are_found_missing() {
    for synchronous in [Synchronous::Normal, Synchronous::Off] {
        let found =
            run(1, CRASHES, 2, synchronous, Faults::None).expect_err("some that were answered are not there");
        assert!(found.contains("commits had been answered, and there is the state after"), "{found}");
    }
}
