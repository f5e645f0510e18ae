//! Runs a target on bytes that are changed at random: a seed, and nothing but Rust.
//!
//! ```text
//! mutate TARGET|all [--seconds 60] [--seed 1] [--most 65536] [--kept DIRECTORY] [--out DIRECTORY]
//! mutate TARGET --replay FILE
//! mutate TARGET|all --seeds DIRECTORY        what it begins with, as files for other programs
//! ```
//! Inputs begin with those of `samples`, and with the database files below `--kept`. One whose answer was not
//! seen before is kept to be changed further: a poor man's coverage. The run ends with exit code 1, and the
//! input in `--out`, if a target panics, takes longer than [`PATIENCE`], or takes more memory than
//! [`MEMORY`]; if it ends the process itself (a stack that is full, an allocation that is too large), the
//! input is in `--out` as well, as it is written there before it is tried.

use entasis_fuzz::mutate::{Random, mutate};
use entasis_fuzz::{TARGETS, Target, samples, seal};
use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a target may take for an input.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many bytes the peak of memory may rise by one input.
const MEMORY: u64 = 512 << 20;
/// Inputs that are kept.
const POOL: usize = 4000;

/// What the command line says.
struct Arguments {
    target: String,
    seconds: u64,
    seed: u64,
    most: usize,
    kept: PathBuf,
    out: PathBuf,
    replay: Option<PathBuf>,
    seeds: Option<PathBuf>,
}

impl Arguments {
    fn read() -> Result<Arguments, String> {
        let mut words = std::env::args().skip(1);
        let target = words.next().ok_or("which target? file, wal, recover, block or all")?;
        let mut read = Arguments {
            target,
            seconds: 60,
            seed: 1,
            most: 1 << 16,
            kept: PathBuf::from("../tests/formats"),
            out: PathBuf::from("artifacts"),
            replay: None,
            seeds: None,
        };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{value} is no number"));
            match word.as_str() {
                "--seconds" => read.seconds = number()?,
                "--seed" => read.seed = number()?,
                "--most" => read.most = number()? as usize,
                "--kept" => read.kept = value.into(),
                "--out" => read.out = value.into(),
                "--replay" => read.replay = Some(value.into()),
                "--seeds" => read.seeds = Some(value.into()),
                _ => return Err(format!("{word} is not known")),
            }
        }
        Ok(read)
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<&Target> =
        TARGETS.iter().filter(|target| ["all", target.name].contains(&&*arguments.target)).collect();
    if chosen.is_empty() {
        eprintln!("there is no target {}: file, wal, block or all", arguments.target);
        return ExitCode::from(2);
    }
    if let Some(file) = &arguments.replay {
        let bytes = fs::read(file).expect("the file can be read");
        chosen.iter().for_each(|target| println!("{}: {}", target.name, (target.run)(&bytes)));
        return ExitCode::SUCCESS;
    }
    let mut samples = samples::made();
    let made = samples.len();
    samples.extend(samples::kept(&arguments.kept));
    println!("{made} samples, and {} files of {}", samples.len() - made, arguments.kept.display());
    for (number, sample) in samples.iter().take(made).enumerate() {
        assert!(seal::file(&sample.file) == sample.file, "sample {number}: seal.rs knows another format");
        assert!(number == 0 || !seal::blocks(&sample.file).is_empty(), "sample {number}: no blocks");
    }
    if let Some(directory) = &arguments.seeds {
        for target in chosen {
            let directory = directory.join(target.name);
            fs::create_dir_all(&directory).expect("a directory for seeds");
            for (number, seed) in (target.seeds)(&samples).into_iter().enumerate() {
                fs::write(directory.join(format!("seed-{number}")), seed).expect("a seed can be written");
            }
        }
        return ExitCode::SUCCESS;
    }
    let started = started_clock();
    let is_clean = chosen.iter().all(|target| fuzz(target, &samples, &arguments, &started));
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// When the input that is tried was begun, in milliseconds since the start, or 0. A thread ends the process
/// if that is too long ago.
fn started_clock() -> Arc<(Instant, AtomicU64)> {
    let clock = Arc::new((Instant::now(), AtomicU64::new(0)));
    let watched = clock.clone();
    thread::spawn(move || {
        loop {
            thread::sleep(PATIENCE / 10);
            let (begin, started) = &*watched;
            let at = started.load(Ordering::Relaxed);
            if at > 0 && begin.elapsed() > Duration::from_millis(at) + PATIENCE {
                eprintln!("the input took more than {PATIENCE:?}: it is the one called current");
                std::process::exit(1);
            }
        }
    });
    clock
}

/// Runs a target until the time is over. False if it failed.
fn fuzz(
    target: &Target,
    samples: &[samples::Sample],
    arguments: &Arguments,
    clock: &(Instant, AtomicU64),
) -> bool {
    let directory = arguments.out.join(target.name);
    fs::create_dir_all(&directory).expect("a directory for inputs that fail");
    let current = directory.join("current");
    let mut random = Random::new(arguments.seed);
    let mut pool = (target.seeds)(samples);
    let (mut answers, begin, mut tried, mut said) = (HashSet::new(), Instant::now(), 0u64, Instant::now());
    let seeds = pool.len();
    println!("{}: {seeds} inputs to begin with, seed {}", target.name, arguments.seed);
    let mut peak = peak_bytes();
    while begin.elapsed() < Duration::from_secs(arguments.seconds) {
        // First the seeds as they are.
        let input = match pool.get(tried as usize).filter(|_| tried < seeds as u64) {
            Some(seed) => seed.clone(),
            None => {
                let (mut input, other) = (pool[random.below(pool.len())].clone(), random.below(pool.len()));
                mutate(&mut input, &pool[other], arguments.most, &mut random);
                input
            }
        };
        tried += 1;
        fs::write(&current, &input).expect("the input can be kept");
        clock.1.store(clock.0.elapsed().as_millis().max(1) as u64, Ordering::Relaxed);
        let answer = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        clock.1.store(0, Ordering::Relaxed);
        let now = peak_bytes();
        let answer = match answer {
            Ok(answer) if now - peak < MEMORY => answer,
            Ok(_) => return failed(target, &directory, &input, &format!("took {} MB", (now - peak) >> 20)),
            Err(_) => return failed(target, &directory, &input, "panicked"),
        };
        peak = now;
        if answers.insert(answer) && pool.len() < POOL {
            pool.push(input);
        }
        if said.elapsed() > Duration::from_secs(30) {
            said = Instant::now();
            println!("  {:4} s: {tried} inputs, {} answers", begin.elapsed().as_secs(), answers.len());
        }
    }
    let _ = fs::remove_file(&current);
    println!(
        "{}: {tried} inputs in {} s, {} different answers, {} MB at most; no panic, no hang",
        target.name,
        begin.elapsed().as_secs(),
        answers.len(),
        peak >> 20
    );
    true
}

/// Keeps an input that a target failed on.
fn failed(target: &Target, directory: &Path, input: &[u8], what: &str) -> bool {
    let number = (0..).find(|number| !directory.join(format!("failure-{number}")).exists()).unwrap_or(0);
    let path = directory.join(format!("failure-{number}"));
    fs::write(&path, input).expect("the input can be kept");
    eprintln!("{} {what}; again: mutate {} --replay {}", target.name, target.name, path.display());
    false
}

/// The peak of this process's memory, where the system tells.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}
