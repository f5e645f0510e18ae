//! The command line.

use crate::render::Mode;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

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
    entasis --mode csv -c \"SELECT * FROM 'a.parquet' LIMIT 9\" | head
    echo 'SELECT 42' | entasis --mode json
  See what a table's layout costs a workload, without running it
    entasis layout my.db --table orders --workload ops.sql --plot orders.svg
  Look around
    entasis                    opens a prompt; .help lists its commands
    entasis demo               shows what it can do on generated and shipped data

The exit code is 1 if a statement fails; the statements after it do not run.";

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
        assert!(Args::try_parse_from(["entasis", "--readonly"]).is_err());
    }
}
