//! The physical plan as text: a block for each pipeline, from its source to its sink, in the order in which
//! they run.
//!
//! ```text
//! Pipeline 1
//!   Scan u [u0, u1, u2] where (u1 < 10)  ~10 rows
//!     reads u0, u1 as I32, u2; outputs u0, u2
//!   into the build side of join 1: HashJoin inner on t0 = u0
//!     the right input, ~10 rows, may be partitioned; keeps u0, u2
//!     tells join filter 1
//! Pipeline 2
//!   Scan t [t0, t1, t2]  ~3000 rows
//!     reads t0, t1
//!     tests join filter 1 on t0
//!   …
//! ```
//! Lines that begin deeper say more of the line above. A column stands with its physical type where that is
//! not the default one of its type.

use super::physical_plan::{
    OperatorKind, PhysicalPlan, PlannedOperator, PlannedPart, PlannedSink, PlannedSource, SinkKind,
    SourceKind,
};
use super::planned_join::{PlannedJoin, PlannedWay};
use super::planned_work::PlannedWork;
use crate::exec::join::BuildTail;
use crate::exec::key_filter::PlannedFilter;
use crate::plan::Node;
use crate::plan::display::Names;
use entasis_vector::ColumnId;
use entasis_vector::expr::ColumnMeta;
use std::fmt;

impl fmt::Display for PhysicalPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = PlanText { plan: self, names: Names::of_columns(self.columns) };
        for (number, pipeline) in self.pipelines.iter().enumerate() {
            writeln!(f, "Pipeline {}{}", number + 1, text.conditions(&pipeline.part))?;
            text.part(f, &pipeline.part)?;
            text.sink(f, &self.sinks[pipeline.sink], pipeline.completes_sink)?;
        }
        Ok(())
    }
}

/// A plan that is written.
struct PlanText<'a, 'p> {
    plan: &'a PhysicalPlan<'p>,
    names: Names<'p>,
}

impl PlanText<'_, '_> {
    /// How a pipeline runs, and when.
    fn conditions(&self, part: &PlannedPart) -> String {
        let mut text = String::new();
        if part.ordered {
            text += ", in order";
        }
        for &(join, is_swapped) in &part.only_if {
            let number = self.plan.joins[join].number;
            text += &format!(", if join {number} is {}swapped", if is_swapped { "" } else { "not " });
        }
        text
    }

    fn part(&self, f: &mut fmt::Formatter<'_>, part: &PlannedPart) -> fmt::Result {
        self.source(f, &self.plan.sources[part.source])?;
        if part.stops_early {
            writeln!(f, "    stops early")?;
        }
        if part.leaves_stored {
            writeln!(f, "    may leave rows where they are stored")?;
        }
        part.operators.iter().try_for_each(|&number| self.operator(f, &self.plan.operators[number]))
    }

    fn source(&self, f: &mut fmt::Formatter<'_>, source: &PlannedSource<'_>) -> fmt::Result {
        let (node, columns) = (&self.plan.nodes[source.node], self.plan.columns);
        let title = || node.work.title(columns);
        match &source.kind {
            SourceKind::Table { metas, outputs, filters, .. } => {
                writeln!(f, "  {}  ~{:.0} rows", title(), node.work.expected(columns))?;
                write!(f, "    reads {}", self.columns(metas))?;
                if outputs.contains(&false) {
                    let given = metas.iter().zip(outputs).filter(|(_, is_given)| **is_given);
                    write!(f, "; outputs {}", self.list(given.map(|(meta, _)| self.name(meta.id))))?;
                }
                writeln!(f)?;
                filters.iter().try_for_each(|filter| writeln!(f, "    tests {}", self.filter(filter)))
            }
            SourceKind::Relation { metas, thresholds, .. } => {
                writeln!(f, "  {}  ~{:.0} rows", title(), node.work.expected(columns))?;
                writeln!(f, "    reads {}", self.columns(metas))?;
                let hint = |(id, number): &(ColumnId, usize)| {
                    writeln!(f, "    may test {} on {}", self.test(*number), self.name(*id))
                };
                thresholds.iter().try_for_each(hint)
            }
            SourceKind::Values { metas, .. } => {
                writeln!(f, "  {}\n    gives {}", title(), self.columns(metas))
            }
            SourceKind::Output { sink, rows } => {
                writeln!(f, "  Output of pipeline {}: {}  ~{rows:.0} rows", self.pipeline(*sink), title())
            }
            SourceKind::Fetched { sink, columns, .. } => {
                let read = self.list(columns.iter().map(|(id, _)| self.name(*id)));
                writeln!(f, "  {}", title())?;
                writeln!(f, "    reads {read} of the rows that pipeline {} gives", self.pipeline(*sink))
            }
            SourceKind::KeptRows { join } => {
                let PlannedJoin { number, kept, .. } = &self.plan.joins[*join];
                writeln!(f, "  Rows of the build side of join {number}\n    gives {}", self.columns(kept))
            }
            SourceKind::BuildTail { join } => {
                let which = match self.plan.joins[*join].spec.shape.tail {
                    BuildTail::Matched => "that matched",
                    _ => "without a match",
                };
                writeln!(f, "  Build rows {which} of {}", self.join(*join))
            }
            SourceKind::Partitions { join } => {
                writeln!(f, "  Partitions that had to wait of {}", self.join(*join))
            }
        }
    }

    fn operator(&self, f: &mut fmt::Formatter<'_>, operator: &PlannedOperator<'_>) -> fmt::Result {
        let title = || self.plan.nodes[operator.node].work.title(self.plan.columns);
        match &operator.kind {
            OperatorKind::Filter { predicates, .. } => {
                writeln!(f, "  Filter {}", self.names.conjunction(predicates))
            }
            OperatorKind::Project(project) => {
                let work = &self.plan.nodes[operator.node].work;
                let is_own = matches!(work, PlannedWork::Node(Node::Project(_)));
                let title = if is_own { title() } else { "Project".to_owned() };
                writeln!(f, "  {title}\n    gives {}", self.columns(project.output()))
            }
            OperatorKind::Align { output, .. } => {
                writeln!(f, "  Align\n    gives {}", self.columns(output))
            }
            OperatorKind::Unnest(unnest) => {
                writeln!(f, "  {}\n    gives {}", title(), self.columns(unnest.output()))
            }
            OperatorKind::Limit { count: None, offset } => writeln!(f, "  Limit all offset {offset}"),
            OperatorKind::Limit { count: Some(count), offset: 0 } => writeln!(f, "  Limit {count}"),
            OperatorKind::Limit { count: Some(count), offset } => {
                writeln!(f, "  Limit {count} offset {offset}")
            }
            OperatorKind::EarlyFilters(filters) => {
                writeln!(f, "  Test {}", self.list(filters.iter().map(|filter| self.filter(filter))))
            }
            OperatorKind::Compact { operators, .. } => {
                writeln!(f, "  Compact small chunks; operators behind: {operators}")
            }
            OperatorKind::DropRepeats { .. } => writeln!(f, "  {}", title()),
            OperatorKind::Copies(_) => writeln!(f, "  Repeat counted rows for {}", title()),
            OperatorKind::Route { join } => {
                writeln!(f, "  Route rows to partitions that wait of {}", self.join(*join))
            }
            OperatorKind::BufferedProbe { join } => {
                writeln!(f, "  Buffer rows by the hashes of {}", self.join(*join))
            }
            OperatorKind::Probe { join } => {
                writeln!(f, "  Probe {}: {}", self.join(*join), title())?;
                self.probe(f, *join)
            }
            OperatorKind::JoinPhase { join } => {
                writeln!(f, "  Probe each partition of {}: {}", self.join(*join), title())?;
                self.probe(f, *join)
            }
        }
    }

    fn probe(&self, f: &mut fmt::Formatter<'_>, join: usize) -> fmt::Result {
        match &self.plan.joins[join].probe {
            Some(probe) => writeln!(f, "    gives {}", self.columns(&probe.output)),
            None => Ok(()),
        }
    }

    /// The sink, and what is planned for it where it is completed.
    fn sink(&self, f: &mut fmt::Formatter<'_>, sink: &PlannedSink<'_>, is_complete: bool) -> fmt::Result {
        let title = self.plan.nodes[sink.node].work.title(self.plan.columns);
        match &sink.kind {
            SinkKind::Result { .. } => write!(f, "  into the result")?,
            SinkKind::Build { join } => write!(f, "  into the build side of {}: {title}", self.join(*join))?,
            SinkKind::CountKeys { join, .. } => {
                write!(f, "  into the count of keys of {}", self.join(*join))?
            }
            SinkKind::Aggregate { .. } | SinkKind::Sort { .. } | SinkKind::Window(_) => {
                write!(f, "  into {title}")?;
            }
        }
        if !is_complete {
            return writeln!(f, ", with the rows of the next pipeline");
        }
        writeln!(f)?;
        match &sink.kind {
            SinkKind::Result { columns } => writeln!(f, "    of {}", self.columns(columns)),
            SinkKind::Build { join } => self.build(f, &self.plan.joins[*join]),
            SinkKind::CountKeys { .. } => Ok(()),
            SinkKind::Aggregate { layout, groups } => {
                writeln!(f, "    ~{groups:.0} groups of {}", self.columns(&layout.output))
            }
            SinkKind::Sort { columns, threshold, .. } => {
                writeln!(f, "    keeps {}", self.columns(columns))?;
                let tells = |number: &usize| writeln!(f, "    tells {}", self.test(*number));
                threshold.iter().try_for_each(tells)
            }
            SinkKind::Window(layout) => writeln!(f, "    keeps {}", self.columns(&layout.stored)),
        }
    }

    /// What is planned for the build side of a join.
    fn build(&self, f: &mut fmt::Formatter<'_>, join: &PlannedJoin) -> fmt::Result {
        let side = if join.keeps_left { "left" } else { "right" };
        write!(f, "    the {side} input, ~{:.0} rows", join.rows)?;
        if join.readings.is_some() {
            write!(f, ", read twice")?;
        }
        if join.partitions.is_some() {
            write!(f, ", may be partitioned")?;
        }
        if matches!(join.way, PlannedWay::AsPlanned(_)) {
            write!(f, ", may be swapped")?;
        }
        writeln!(f, "; keeps {}", self.columns(&join.kept))?;
        let limits = join.limits.iter().map(|(_, number)| *number);
        join.filter
            .into_iter()
            .chain(limits)
            .try_for_each(|number| writeln!(f, "    tells {}", self.test(number)))
    }

    /// What a join is called.
    fn join(&self, join: usize) -> String {
        let PlannedJoin { number, way, .. } = &self.plan.joins[join];
        let swapped = if matches!(way, PlannedWay::Swapped(_)) { ", swapped" } else { "" };
        format!("join {number}{swapped}")
    }

    /// The pipeline that completes a sink.
    fn pipeline(&self, sink: usize) -> usize {
        let last = self.plan.pipelines.iter().rposition(|pipeline| pipeline.sink == sink);
        last.map_or(0, |place| place + 1)
    }

    /// What a test is called.
    fn test(&self, number: usize) -> String {
        format!("{} {}", self.plan.tests[number].name(), number + 1)
    }

    fn filter(&self, filter: &PlannedFilter) -> String {
        let columns = self.list(filter.metas.iter().map(|meta| self.name(meta.id)));
        format!("{} on {columns}", self.test(filter.number))
    }

    /// The name of a column. Those that operators add for themselves have none.
    fn name(&self, id: ColumnId) -> String {
        if (id.0 as usize) < self.plan.columns.len() { self.names.name(id) } else { "(internal)".to_owned() }
    }

    fn columns(&self, metas: &[ColumnMeta]) -> String {
        if metas.is_empty() {
            return "no columns".to_owned();
        }
        self.list(metas.iter().map(|meta| match meta.physical == meta.ty.physical() {
            true => self.name(meta.id),
            false => format!("{} as {:?}", self.name(meta.id), meta.physical),
        }))
    }

    fn list(&self, items: impl Iterator<Item = String>) -> String {
        items.collect::<Vec<_>>().join(", ")
    }
}
