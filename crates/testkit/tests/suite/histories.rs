//! Random transactions from several threads, and the check of what they did and saw (`testkit::histories`).
//!
//! `ENTASIS_SEED=n` changes the statements of all sessions; `ENTASIS_HISTORIES=n` sets the approximate number
//! of transactions.

use entasis_testkit::histories::run::{Options, run};

/// Takes about a minute.
const TRANSACTIONS: u64 = 25_000;

fn environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[test]
fn concurrent_transactions_are_isolated() {
    let seed = environment("ENTASIS_SEED").unwrap_or(1);
    let transactions = environment("ENTASIS_HISTORIES").unwrap_or(TRANSACTIONS);
    let options = Options { seed, threads: 4, window: 1_000, transactions, time: None, without: Vec::new() };
    println!("seed {seed}");
    match run(&options, |_| ()) {
        Ok(report) => println!("{report}"),
        Err(failure) => panic!("{failure}"),
    }
}
