//! Layouts for people: what a table's layout is, what its workload costs by the engine's cost model, what the
//! optimizer would choose and why, and which layout key would suit it.
//!
//! The workload is what the table has counted (layout `casper`), what was asked of it (a table that follows
//! its workload), or a *sample*: SQL statements that are parsed, bound and optimized, but not run. Costs are
//! those of `entasis_layout::cost::Engine` ([`machine`]): a model. Beside them stands what keyed statements
//! have taken, and SLA bounds are judged by that (`entasis_storage::latencies`).
//!
//! ```text
//! page    advice   profile   EXPLAIN LAYOUT; which key; partition by partition
//! tables                     all tables, and what was chosen for them
//! workload                   how often each partition is touched, and where that is known from
//! sample                     statements as acts on the rows of one table
//! column   literals          a layout key in partitions; rows that stand in a plan
//! skipped                    blocks that zone maps leave of the table
//! worth                      whether a table that follows its workload is to be laid anew
//! chosen                     which layout a table has, and why
//! machine  words             the cost model of this machine; numbers as people read them
//! ```

mod advice;
mod chosen;
mod column;
mod literals;
mod looked;
mod machine;
mod page;
mod profile;
mod sample;
mod skipped;
mod tables;
#[cfg(test)]
mod tests;
mod words;
mod workload;
mod worth;

pub(crate) use advice::advice;

pub(crate) use machine::sla_note;
pub(crate) use page::page;
pub(crate) use profile::profile;
pub(crate) use tables::{NamedTable, tables};
pub(crate) use worth::better_key;

pub(crate) use self::looked::{Binding, Looked};
use self::sample::{Act, Sample};
use crate::state::workload_stats::Batch;
use entasis_layout::outlook::OperationKind;
use entasis_storage::latencies::Latency;
use entasis_vector::Result;

impl Looked<'_> {
    /// How long operations of a kind have taken of late.
    fn measured(&self, operation: OperationKind) -> Option<Latency> {
        self.snapshot.table().latencies().of(operation)
    }

    /// The statements of `workload`, or what was recorded; `None` if there is neither.
    fn sample(&self, binding: &Binding<'_>, workload: Option<&str>) -> Result<Option<Sample>> {
        match workload {
            Some(text) => Sample::read(self, binding, text).map(Some),
            None => Ok(self.recorded()),
        }
    }

    /// What was asked of the table of late, if it follows its workload; `None` if nothing was.
    fn recorded(&self) -> Option<Sample> {
        self.record.as_ref().and_then(|record| self.asked(&record.latest().0))
    }

    /// What was asked of the table, as a sample; `None` if nothing was.
    fn asked(&self, batch: &Batch) -> Option<Sample> {
        let questions = batch.questions();
        (!questions.is_empty()).then(|| Sample {
            weight: batch.count() as f64 / questions.len() as f64,
            acts: questions.iter().cloned().map(Act::Read).collect(),
            added: self.snapshot.rows().saturating_sub(batch.rows()),
            is_recorded: true,
            statements: batch.count(),
            skipped: Vec::new(),
        })
    }
}
