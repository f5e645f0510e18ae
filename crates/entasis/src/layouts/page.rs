//! `EXPLAIN LAYOUT`: one page about the layout of a table.

use super::chosen::Chosen;
use super::column::Column;
use super::looked::{Binding, Looked};
use super::machine::engine;
use super::words::{count, counted, percent, time};
use super::workload::{Workload, WorkloadOrigin};
use super::{advice, worth};
use entasis_layout::cost::Engine;
use entasis_layout::outlook::{Expected, OperationKind, best, expected, total};
use entasis_layout::partitioning::Partitioning;
use entasis_storage::Layout;
use entasis_storage::latencies::Latency;
use entasis_vector::{Error, Result};
use std::fmt::Write;

/// The least number of timed operations that a bound is judged by.
const ENOUGH: u64 = 100;
/// The width of the names at the left.
const LEFT: usize = 14;

/// The lines of the page. Without a `workload` it is about what was counted.
///
/// # Errors
/// Those of reading a sample; interrupted.
pub(crate) fn page(looked: &Looked<'_>, binding: &Binding<'_>, given: Option<&str>) -> Result<String> {
    let column = Column::present(looked.snapshot, &looked.interrupt)?;
    let sample = looked.sample(binding, given)?;
    let advised = match &sample {
        Some(sample) => Some(advice::advise(looked, &column, Some(sample))?),
        None => None,
    };
    let workload = match sample {
        Some(sample) => Workload::sampled(&column, looked.snapshot.schema(), sample),
        None => Workload::recorded(&column),
    };
    let engine = engine(&looked.costs, looked.snapshot);
    let mut page = Page(String::new());
    page.line("table", &format!("{}: {}", looked.name, counted(looked.snapshot.rows() as usize, "row")));
    page.line("layout", &Chosen::of(&looked.definition, looked.snapshot).text());
    if column.key.is_empty() {
        page.heap(&engine, &column);
    } else {
        page.partitions(looked, &column);
        page.sla_bounds(looked, &engine, &column);
    }
    page.workload(&workload, looked.record.is_some());
    if !column.key.is_empty() {
        page.costs(looked, &engine, &column, &workload)?;
    }
    if let Some(advice) = advised {
        page.line("layout key", &advice.line(looked));
        if let Some(record) = &looked.record
            && given.is_none()
        {
            page.line("", &worth::line(looked, record, &advice));
        }
    }
    Ok(page.0)
}

struct Page(String);

impl Page {
    /// Adds a line; a name that the line before has is left out.
    fn line(&mut self, name: &str, text: &str) {
        writeln!(self.0, "{name:LEFT$}{text}").expect("writing to memory does not fail");
    }

    fn heap(&mut self, engine: &Engine, column: &Column) {
        let slices = column.slices();
        self.line(
            "costs",
            &format!(
                "a row is added at the end; to find one, {} are read: {} at most",
                counted(slices, "slice"),
                time(engine.filter * slices as f64)
            ),
        );
    }

    fn partitions(&mut self, looked: &Looked<'_>, column: &Column) {
        let options = looked.snapshot.table().options();
        let (narrowest, widest) = widths(column);
        let width = match (narrowest, widest) {
            (narrow, wide) if narrow == wide => counted(wide, "slice"),
            (narrow, wide) => format!("{} to {}", count(narrow), counted(wide, "slice")),
        };
        let slots = options.block_slots;
        self.line(
            "partitions",
            &format!(
                "{} of {width} ({} slots a slice); declared for {} in a full row group",
                count(column.parts.len()),
                count(slots),
                count(options.partitions)
            ),
        );
        let ghosts: usize = column.parts.iter().map(|part| part.ghosts).sum();
        let all: usize = column.parts.iter().map(|part| part.slots).sum();
        let present = ghosts as f64 / all.max(1) as f64;
        self.line(
            "ghosts",
            &format!(
                "{} asked for, {} present ({} of the slots)",
                percent(if options.layout == Layout::Equi { 0.0 } else { options.ghost }),
                count(ghosts),
                percent(present)
            ),
        );
    }

    fn sla_bounds(&mut self, looked: &Looked<'_>, engine: &Engine, column: &Column) {
        let bounds = looked.definition.layout.sla_bounds();
        let (_, widest) = widths(column);
        if let Some(bound) = bounds.read {
            let least = engine.point_query(1);
            let model = Model { expected: engine.point_query(widest), least, widest, how: "at worst" };
            let measured = looked.measured(OperationKind::PointQuery);
            self.line("read_sla", &judged(bound, "a point query", &model, measured, |own| own.p999));
        }
        if let Some(bound) = bounds.update {
            let worst = time(engine.insert_at_worst(widest));
            let how = format!("on average ({worst} for one that lays its partition anew)");
            let (expected, least) = (engine.insert(widest), engine.insert(1));
            let model = Model { expected, least, widest, how: &how };
            let measured = looked.measured(OperationKind::Insert);
            self.line("update_sla", &judged(bound, "an insert", &model, measured, |own| own.mean));
        }
    }

    fn workload(&mut self, workload: &Workload, follows: bool) {
        let operations: f64 =
            OperationKind::ALL.iter().map(|operation| operation.count(&workload.frequency)).sum();
        let operations = counted(operations.round() as usize, "operation");
        let text = match workload.origin {
            WorkloadOrigin::Nothing if follows => {
                "nothing was asked since the database was opened, or the table laid anew".to_owned()
            }
            WorkloadOrigin::Nothing => {
                "nothing was counted; layout 'casper' counts, and FOR '…' takes a sample".to_owned()
            }
            WorkloadOrigin::Recorded => {
                format!("{operations} were counted, about; a change counts as a point query as well")
            }
            WorkloadOrigin::Sample => {
                format!("a sample of {}: {operations}", counted(workload.statements as usize, "statement"))
            }
            WorkloadOrigin::Asked => {
                format!("{} with conditions were recorded", counted(workload.statements as usize, "scan"))
            }
        };
        self.line("workload", &text);
        if workload.whole > 0 {
            self.line("", &format!("{} read all rows, in any partitions", count(workload.whole)));
        }
        for (why, number) in &workload.skipped {
            self.line("", &format!("{} skipped: {why}", count(*number)));
        }
    }

    fn costs(
        &mut self,
        looked: &Looked<'_>,
        engine: &Engine,
        column: &Column,
        workload: &Workload,
    ) -> Result<()> {
        let frequency = workload.by_slice(column);
        let now = column.partitioning();
        let widest = engine.widest(&looked.definition.layout.sla_bounds());
        let solution = best(engine, &frequency, widest)
            .map_err(|error| Error::internal(format!("no layout was found: {error}")))?;
        let (costs, then) = (expected(engine, &frequency, &now), expected(engine, &frequency, &solution));
        self.0.push('\n');
        let row = |page: &mut Page, name: &str, count: &str, now: &str, then: &str, measured: &str| {
            let line = format!("{name:20}{count:>10}{now:>12}{then:>12}{measured}");
            writeln!(page.0, "{}", line.trim_end()).expect("as above");
        };
        let measured = OperationKind::ALL.map(|operation| looked.measured(operation));
        let columns = |mean: &str, p999: &str| match measured.iter().any(Option::is_some) {
            true => format!("{mean:>12}{p999:>12}"),
            false => String::new(),
        };
        row(self, "operation", "count", "now", "optimized", &columns("measured", "99.9 %"));
        for (number, operation) in OperationKind::ALL.into_iter().enumerate() {
            let (now, then) = (&costs[number], &then[number]);
            let (mean, p999) =
                measured[number].map_or_else(Default::default, |own| (time(own.mean), time(own.p999)));
            let all = count(now.count.round() as usize);
            row(self, operation.name(), &all, &time(now.each), &time(then.each), &columns(&mean, &p999));
        }
        let all = |expected: &[Expected]| expected.iter().map(|own| own.count).sum::<f64>().round() as usize;
        if all(&costs) > 0 {
            let (now, then) = (time(total(&costs)), time(total(&then)));
            row(self, "together", &count(all(&costs)), &now, &then, "");
        }
        self.0.push('\n');
        self.line("optimizer", &choice(&now, &solution, total(&costs), total(&then)));
        Ok(())
    }
}

/// What the cost model says of an operation that a bound is about.
struct Model<'a> {
    /// Nanoseconds in the table as it is, and in any layout at least.
    expected: f64,
    least: f64,
    /// Slices of the widest partition.
    widest: usize,
    how: &'a str,
}

/// Whether a bound is kept: by what was measured, if that was often enough, or else by the model. `judge`
/// is the number of a measurement that must not exceed it.
fn judged(
    bound: f64,
    operation: &str,
    model: &Model<'_>,
    measured: Option<Latency>,
    judge: impl Fn(&Latency) -> f64,
) -> String {
    let (shown, expected) = (time(bound), time(model.expected));
    let by_model = format!("{expected} for {operation} {} by the model", model.how);
    let measured = measured.filter(|own| own.timed >= ENOUGH);
    let found = measured.as_ref().map_or(model.expected, judge);
    let reason = match bound < model.least {
        true => format!("no layout takes less than {}", time(model.least)),
        false => format!("its widest partition has {}", counted(model.widest, "slice")),
    };
    let over = || time(found - bound);
    match &measured {
        Some(own) => {
            let seen = format!(
                "{} on average and {} {}, measured {} times",
                time(own.mean),
                time(own.p999),
                if own.timed < 1000 { "at most" } else { "for 999 of 1,000" },
                count(own.timed as usize)
            );
            match found <= bound {
                true => format!("{shown}: met, {seen}; {by_model}"),
                false => format!("{shown}: missed by {}, {seen}; {by_model}; {reason}", over()),
            }
        }
        None if found <= bound => format!("{shown}: to be met, {by_model}; not measured yet"),
        None => format!("{shown}: to be missed by {}, {by_model}; {reason}", over()),
    }
}

/// What the optimizer has chosen, and why.
fn choice(now: &Partitioning, solution: &Partitioning, cost: f64, then: f64) -> String {
    let is_finest = solution.partitions() == solution.blocks();
    let what = match now == solution {
        true => "as it is".to_owned(),
        false if cost > 0.0 => {
            format!(
                "{} instead of {}, which saves {}",
                counted(solution.partitions(), "partition"),
                count(now.partitions()),
                percent(1.0 - then / cost)
            )
        }
        false => {
            format!("{} instead of {}", counted(solution.partitions(), "partition"), count(now.partitions()))
        }
    };
    let why = match is_finest {
        true => "the finest partitions are optimal, since no operation pays for their number",
        false => "boundaries are where they save most",
    };
    format!("{what}: {why}")
}

fn widths(column: &Column) -> (usize, usize) {
    let widths = column.widths();
    let least = widths.iter().copied().min().unwrap_or(1);
    (least, widths.into_iter().max().unwrap_or(1))
}
