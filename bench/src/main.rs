//! `entasis-bench`: what the comparison benchmarks need besides the engines: their data, and measurements
//! without Python.

mod binding;
mod compaction_sim;
mod hap;
mod random;
mod threads;

use clap::{Parser, Subcommand};
use entasis::tpch;
use indicatif::{ProgressBar, ProgressStyle};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Data and figures for the comparison benchmarks of Entasis.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the eight TPC-H tables as Parquet files.
    TpchData {
        /// Scale factor; 1 is about 1 GB of text.
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// Directory to write to.
        #[arg(long)]
        out: PathBuf,
    },
    /// Single rows of the HAP table from Rust: median microseconds per operation, as JSON.
    Hap {
        /// Rows.
        #[arg(long, default_value_t = 10_000_000)]
        rows: u64,
        /// Load the rows in random order of their keys.
        #[arg(long)]
        random: bool,
        /// Keep the table in this file, which is created, instead of in memory.
        #[arg(long)]
        file: Option<PathBuf>,
        /// The table's option `compression`: `plain` has no packed codes.
        #[arg(long, default_value = "auto")]
        compression: String,
    },
    /// Times of parsing, binding and optimizing, in microseconds: a line of JSON for each statement.
    Binding {
        /// Only statements whose names have this in them.
        #[arg(long, default_value = "")]
        only: String,
        /// Times that each short statement is measured; the median counts.
        #[arg(long, default_value_t = 301)]
        rounds: usize,
    },
    /// Costs of strategies of chunk compaction by the model of the paper: its Figure 5.
    CompactionSim,
    /// Writers in several threads on one database: a line of JSON for each measurement.
    Threads {
        /// Rows of each table.
        #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
        rows: u64,
        /// Numbers of threads, measured in turns.
        #[arg(long, value_delimiter = ',', default_values_t = [1_u64, 2, 8])]
        #[arg(value_parser = clap::value_parser!(u64).range(1..=256))]
        threads: Vec<u64>,
        /// Number of measured rounds.
        #[arg(long, default_value_t = 5)]
        rounds: u64,
        /// Seconds per measurement.
        #[arg(long, default_value_t = 1.0)]
        seconds: f64,
        /// Only workloads of which the name contains this
        #[arg(long, default_value = "")]
        only: String,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().command {
        Command::TpchData { scale, out } => tpch_data(scale, &out),
        Command::Hap { rows, random, file, compression } => {
            hap::run(rows, random, file.as_deref(), &compression)
        }
        Command::Binding { only, rounds } => binding::run(&only, rounds),
        Command::CompactionSim => {
            compaction_sim::run();
            Ok(())
        }
        Command::Threads { rows, threads, rounds, seconds, only } => {
            threads::run(rows, &threads, rounds, Duration::try_from_secs_f64(seconds)?, &only)
        }
    }
}

/// Rows per part, the unit in which the generator works.
const PART_ROWS: f64 = 500_000.0;

/// A table gets its final name only when it is complete, so an interrupted run leaves nothing that looks
/// finished.
fn tpch_data(scale: f64, out: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    let total: f64 = tpch::TABLES.iter().map(|(_, rows)| rows * scale).sum();
    let style = ProgressStyle::with_template("TPC-H data {msg:10} {bar:40} {percent:>3}%  {eta} left")?;
    let bar = ProgressBar::new(total as u64).with_style(style);
    for (table, rows_at_one) in tpch::TABLES {
        bar.set_message(table);
        let unfinished = out.join(format!("{table}.parquet.unfinished"));
        let parts =
            if rows_at_one < 100.0 { 1 } else { (rows_at_one * scale / PART_ROWS).ceil().max(1.0) as i32 };
        let mut writer: Option<ArrowWriter<File>> = None;
        for part in 1..=parts {
            for batch in tpch::batches(table, scale, part, parts) {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => {
                        let properties =
                            WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                        let file = File::create(&unfinished)?;
                        writer.insert(ArrowWriter::try_new(file, batch.schema(), Some(properties))?)
                    }
                };
                writer.write(&batch)?;
                bar.inc(batch.num_rows() as u64);
            }
        }
        if let Some(writer) = writer {
            writer.close()?;
        }
        fs::rename(&unfinished, out.join(format!("{table}.parquet")))?;
    }
    bar.finish_and_clear();
    Ok(())
}
