//! A long run of the checker of histories, with a line of progress every few seconds:
//!
//! ```text
//! cargo run --profile dev -p entasis-testkit --example histories -- --seconds 600 --threads 4 --seed 1
//! ```

use entasis_testkit::histories::run::{NAMES, Options, run};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(what) => {
            eprintln!(
                "{what}\nusage: histories [--seconds N] [--transactions N] [--threads N] [--seed N] [--window N] [--without NAME]"
            );
            return ExitCode::from(2);
        }
    };
    println!("seed {}, {} threads", options.seed, options.threads);
    let (began, mut said) = (Instant::now(), Instant::now());
    let result = run(&options, |report| {
        if said.elapsed() >= PROGRESS {
            said = Instant::now();
            println!(
                "{:5} s: {} transactions committed, {} conflicts, {} statements, {} windows clean",
                began.elapsed().as_secs(),
                report.committed,
                report.conflicts,
                report.statements,
                report.windows
            );
        }
    });
    match result {
        Ok(report) => {
            println!("clean after {} s\n{report}", began.elapsed().as_secs());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        seed: 1,
        threads: 4,
        window: 2_000,
        transactions: u64::MAX,
        time: None,
        without: Vec::new(),
    };
    while let Some(name) = arguments.next() {
        if name == "--without" {
            let what = arguments.next().filter(|what| NAMES.contains(&what.as_str()));
            options.without.push(what.ok_or_else(|| format!("--without takes one of {}", NAMES.join(", ")))?);
            continue;
        }
        let value = arguments.next().and_then(|text| text.parse::<u64>().ok());
        let value = value.ok_or_else(|| format!("{name} takes a number"))?;
        match name.as_str() {
            "--seconds" => options.time = Some(Duration::from_secs(value)),
            "--transactions" => options.transactions = value,
            "--threads" => options.threads = value as usize,
            "--seed" => options.seed = value,
            "--window" => options.window = value,
            _ => return Err(format!("there is no option {name}")),
        }
    }
    if options.time.is_none() && options.transactions == u64::MAX {
        options.time = Some(Duration::from_secs(60));
    }
    Ok(options)
}
