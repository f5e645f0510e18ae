//! `entasis layout my.db --table t --workload ops.sql --plot t.svg`: what a table's layout is, what a
//! workload costs on it, and which layout key would suit. Nothing of the workload is run, and the database is
//! opened read-only.

use crate::args::LayoutArgs;
use crate::literal::text_literal;
use crate::plot::{Part, Plot};
use crate::session::{Fault, Outcome, Session};
use entasis::{DataType, Result, Rows, Value};
use std::io;

/// Runs the command.
///
/// # Errors
/// Those of the output, and of the file of the plot.
pub fn run(session: &mut Session, args: &LayoutArgs) -> io::Result<Outcome> {
    let workload = args.workload.as_ref().map(|path| text_literal(&path.display().to_string()));
    let suffix = workload.as_ref().map_or(String::new(), |workload| format!(" FOR {workload}"));
    let explain = format!("EXPLAIN LAYOUT {}{suffix}", args.table);
    let page = match session.ask(&explain)? {
        Ok(rows) => rows,
        Err(outcome) => return Ok(outcome),
    };
    for row in page.row_values() {
        writeln!(session.out(), "{}", text(&row[0]))?;
    }
    writeln!(session.out())?;
    let arguments = match &workload {
        Some(workload) => format!("{}, {workload}", text_literal(&args.table)),
        None => text_literal(&args.table),
    };
    let advice = session.run(&format!("SELECT * FROM entasis_layout_advice({arguments})"))?;
    let (Some(path), Outcome::Done) = (&args.plot, advice) else { return Ok(advice) };
    let profile = match session.ask(&format!("SELECT * FROM entasis_layout_profile({arguments})"))? {
        Ok(rows) => rows,
        Err(outcome) => return Ok(outcome),
    };
    let parts = parts(&profile);
    let subtitle = page.row_values().map(|row| text(&row[0])).find(|line| line.starts_with("layout "));
    let plot = Plot {
        title: args.table.clone(),
        subtitle: subtitle.map_or(String::new(), |line| line.trim_start_matches("layout").trim().to_owned()),
        parts: &parts,
    };
    entasis::refuse_database(path).map_err(|error| io::Error::other(error.to_string()))?;
    std::fs::write(path, plot.svg())?;
    writeln!(session.out(), "The plot is in {}.", path.display())?;
    session.out().flush()?;
    Ok(Outcome::Done)
}

fn text(value: &Value) -> String {
    if value.is_null() { String::new() } else { value.display(DataType::Varchar).to_string() }
}

/// The partitions of a profile.
fn parts(profile: &Rows) -> Vec<Part> {
    let number = |value: &Value| match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => 0.0,
    };
    let part = |row: Vec<Value>| Part {
        first_key: text(&row[1]),
        rows: number(&row[2]),
        slots: number(&row[3]),
        ghosts: number(&row[5]),
        wanted: number(&row[6]),
        reads: number(&row[7]),
        writes: number(&row[8]),
    };
    profile.row_values().map(part).collect()
}

/// The rows of a statement, or how the session goes on without them.
type Asked = io::Result<std::result::Result<Rows, Outcome>>;

impl Session {
    /// Runs a statement for its rows.
    fn ask(&mut self, sql: &str) -> Asked {
        let rows: Result<Rows> = self.connection().execute(sql);
        match rows {
            Ok(rows) => Ok(Ok(rows)),
            Err(error) => self.ended(Err(Fault::Error(error)), sql, 1).map(Err),
        }
    }
}
