//! The command line.

use crate::render::Mode;
use crate::report::ErrorFormat;
use crate::variables;
use crate::words::{parse_duration, parse_rows};
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;
use std::time::Duration;

const ABOUT: &str = "SQL on files and tables, in your process.

Without -c and -f, entasis opens a prompt, or runs the script on its standard input. With DATABASE,
a file that is created if there is none, tables are kept; without it they live in memory and are
gone at the end. Files are read in place either way.";

const EXAMPLES: &str = "Examples:
  Ask a file
    entasis -c \"SELECT carrier, count(*) FROM 'flights.parquet' GROUP BY carrier\"
  Convert CSV to Parquet
    entasis -c \"COPY (SELECT * FROM 'logs/*.csv') TO 'logs.parquet'\"
  Use it in a pipe
    entasis --mode csv -c \"SELECT * FROM 'a.parquet'\" | head
    echo 'SELECT 42' | entasis --mode json
  Pass values, which never become part of the statement's text
    entasis -v carrier=UA -c \"SELECT count(*) FROM 'flights.parquet' WHERE carrier = \\$carrier\"
  Use it in a program
    entasis --errors json --timeout 5s --stats -m jsonl -c \"SELECT 42 AS answer\"
  Run a script as a whole or not at all
    entasis my.db -1 -f changes.sql
  See what a table's layout costs a workload, without running it
    entasis layout my.db --table orders --workload ops.sql --plot orders.svg
  Look around
    entasis                    opens a prompt; .help lists its commands
    entasis demo               shows what it can do on generated and shipped data

Exit codes
  0  everything ran
  1  a statement or a command failed; those after it did not run, unless --continue is given
  2  the command line is wrong
  3  the database cannot be opened
  4  a statement took longer than --timeout
  130  Ctrl-C";

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(name = "entasis", version, about = "SQL on files and tables, in your process.", long_about = ABOUT)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// A task other than SQL.
    #[command(subcommand)]
    pub task: Option<Task>,

    /// The database file, created if it does not exist; without it, tables are kept in memory
    pub database: Option<PathBuf>,

    /// Statements to run on the database before the shell exits, as -c does
    #[arg(value_name = "SQL")]
    pub statements: Vec<String>,

    /// Open the database read-only; it must exist, and another process may write to it meanwhile
    #[arg(long, alias = "read-only", requires = "database")]
    pub readonly: bool,

    /// Run these statements and exit; may be given more than once
    #[arg(short, long = "command", value_name = "SQL")]
    pub commands: Vec<String>,

    /// Run the statements in this file and exit, before those of -c; - is standard input
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Output format of results
    #[arg(short, long, value_enum, default_value = "table")]
    pub mode: Mode,

    /// Write results without the names of columns (csv, tsv, list, html, table)
    #[arg(long)]
    pub no_header: bool,

    /// Write NULL as this text
    #[arg(long, value_name = "TEXT")]
    pub null: Option<String>,

    /// Show at most this many rows of a table, or all [default: 40 on a terminal, all elsewhere]
    #[arg(long, value_name = "N", value_parser = parse_rows)]
    pub maxrows: Option<usize>,

    /// Write results to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write errors, notes and statistics as text or as JSON, one object per line
    #[arg(long, value_enum, default_value = "text")]
    pub errors: ErrorFormat,

    /// Say after each statement how many rows it had, how long it took, and how much memory was used
    #[arg(long)]
    pub stats: bool,

    /// Cancel a statement that takes longer than this, such as 500ms, 5s or 2min
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,

    /// Give the parameter $NAME of statements a value; may be given more than once
    #[arg(short, long = "variable", value_name = "NAME=VALUE", value_parser = variables::parse)]
    pub variables: Vec<(String, String)>,

    /// Go on after a statement that fails; the exit code is 1 in the end
    #[arg(long = "continue")]
    pub goes_on: bool,

    /// Run everything in one transaction, which is rolled back if a statement fails
    #[arg(short = '1', long, conflicts_with = "goes_on")]
    pub single_transaction: bool,

    /// Run the statements in this file first [default: init.sql in the directory of settings, at the prompt]
    #[arg(long, value_name = "FILE")]
    pub init: Option<PathBuf>,

    /// Do not run the init.sql of the directory of settings
    #[arg(long, conflicts_with = "init")]
    pub no_init: bool,

    /// Threads that a statement may use [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,

    /// Memory that tables, statements and results may use together, such as 2GB [default: 80% of the
    /// machine's memory]
    #[arg(long, value_name = "SIZE")]
    pub memory_limit: Option<String>,
}

/// Tasks other than SQL.
#[derive(Debug, Clone, Subcommand)]
pub enum Task {
    /// Show what Entasis does: the TPC-H queries, then three questions about real flights
    Demo,
    /// Show the layout of a table, what a workload costs on it, and which layout key would suit
    Layout(LayoutArgs),
    /// Write what completes the options of entasis in a command shell
    Completions {
        /// The command shell
        shell: Shell,
    },
    /// Write the manual page
    Man,
}

impl Task {
    /// The names of all tasks, and of what may be meant as one.
    pub const NAMES: [&str; 5] = ["demo", "layout", "completions", "man", "help"];
}

/// The arguments of `entasis layout`.
#[derive(Debug, Clone, clap::Args)]
pub struct LayoutArgs {
    /// The database file; it is opened read-only
    pub database: PathBuf,

    /// The table
    #[arg(short, long, value_name = "NAME")]
    pub table: String,

    /// A file of SQL statements, whose name ends in .sql; they are read, not run
    #[arg(short, long, value_name = "FILE")]
    pub workload: Option<PathBuf>,

    /// Draws the table's partitions, and what the workload does to them, into this file
    #[arg(short, long, value_name = "SVG")]
    pub plot: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn statements_and_options_go_together() {
        let args =
            Args::parse_from(["entasis", "--mode", "csv", "-c", "SELECT 1", "-c", "SELECT 2", ":memory:"]);
        assert_eq!((args.commands.len(), args.mode), (2, Mode::Csv));
        assert_eq!(args.database, Some(PathBuf::from(":memory:")));
        assert!(Args::parse_from(["entasis", "demo"]).task.is_some());
        let args = Args::parse_from(["entasis", "layout", "my.db", "--table", "t", "--plot", "t.svg"]);
        let Some(Task::Layout(layout)) = args.task else { panic!("another task") };
        assert_eq!((layout.table.as_str(), layout.workload), ("t", None));
        assert!(Args::try_parse_from(["entasis", "layout", "my.db"]).is_err());
        assert!(Args::parse_from(["entasis", "--readonly", "my.db"]).readonly);
        let args =
            Args::parse_from(["entasis", "-1", "-v", "a=b=c", "--timeout", "1.5s", "--maxrows", "all"]);
        assert_eq!(args.variables, [("a".to_owned(), "b=c".to_owned())]);
        assert_eq!((args.timeout, args.maxrows), (Some(Duration::from_millis(1500)), Some(0)));
        for wrong in ["--timeout=5", "--maxrows=x", "-v1=2", "--errors=xml", "--mode=xml"] {
            assert!(Args::try_parse_from(["entasis", wrong]).is_err(), "{wrong}");
        }
        assert!(Args::try_parse_from(["entasis", "-1", "--continue"]).is_err());
        assert!(Args::try_parse_from(["entasis", "--readonly"]).is_err());
    }
}
