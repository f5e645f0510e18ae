//! Random workloads as text, for `tests/compare` and for reading:
//!
//! ```text
//! cargo run -p entasis-testkit --example workloads -- --seed 1 --seeds 10 --queries 100 --dialect common
//! ```
//!
//! Each statement is one line that ends with a semicolon. The line before it gives its kind: `-- setup`, `--
//! query`, or `-- ordered query`, if the order of its rows is defined. A workload begins with `-- seed N`.

use entasis_testkit::generator::{Dialect, Shape, workload};
use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;

struct Options {
    seed: u64,
    seeds: u64,
    queries: usize,
    dialect: Dialect,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}\nusage: workloads [--seed N] [--seeds N] [--queries N] [--dialect own|common]");
            return ExitCode::from(2);
        }
    };
    // The reader may have closed the pipe.
    match print(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn print(options: &Options) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    for seed in options.seed..options.seed + options.seeds {
        let workload = workload(seed, Shape::Small, options.dialect, options.queries);
        writeln!(out, "-- seed {seed}")?;
        for statement in &workload.setup {
            writeln!(out, "-- setup\n{statement};")?;
        }
        for query in &workload.queries {
            let kind = if query.ordered { "ordered query" } else { "query" };
            writeln!(out, "-- {kind}\n{};", query.sql)?;
        }
    }
    out.flush()
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { seed: 1, seeds: 1, queries: 100, dialect: Dialect::Common };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} takes a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} takes a number, not {value}"));
        match name.as_str() {
            "--seed" => options.seed = number()?,
            "--seeds" => options.seeds = number()?,
            "--queries" => options.queries = number()? as usize,
            "--dialect" => {
                options.dialect = match value.as_str() {
                    "own" => Dialect::Own,
                    "common" => Dialect::Common,
                    _ => return Err(format!("there is no dialect {value}")),
                }
            }
            _ => return Err(format!("there is no option {name}")),
        }
    }
    Ok(options)
}
