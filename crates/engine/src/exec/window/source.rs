//! Where the rows of a window come out: morsel by morsel, with the results of their calls.

use super::morsels::{Ready, Shared, Taken};
use super::prepared::Scratch;
use super::stream::is_lack;
use crate::exec::operator::Alone;
use crate::relation::{Source, SourceWorker};
use crate::sync::Ordering;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffer, Chunk, PhysicalType, Result, Selection, Vector};
use std::sync::Arc;

/// Bytes of lists and texts that the results of a chunk should have at most.
const RESULT_BYTES: usize = 4 << 20;
/// Rows of the first chunk if there are lists and texts among its results: nothing tells how long they are.
const FIRST_ROWS: usize = 64;

/// See the module.
pub struct WindowSource {
    /// What all workers share.
    pub shared: Arc<Shared>,
}

impl Source for WindowSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let layout = &self.shared.layout;
        let vectors = |metas: &[ColumnMeta]| metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        let most = self.shared.context.settings.chunk_rows;
        let has_long = layout.output[layout.passed..].iter().any(|meta| meta.physical == PhysicalType::Str);
        Ok(Box::new(WindowReader {
            columns: (0..layout.passed).collect(),
            passed: vectors(&layout.output[..layout.passed]),
            results: vectors(&layout.output[layout.passed..]),
            scratch: Scratch::default(),
            picks: Vec::new(),
            spares: Vec::new(),
            taken: None,
            most: if has_long { most.min(FIRST_ROWS) } else { most },
            number: 0,
            shared: self.shared.clone(),
        }))
    }

    fn progress(&self) -> Option<f64> {
        match self.shared.ready.get()? {
            Ready::InMemory { morsels, next, .. } => {
                Some(next.load(Ordering::Relaxed).min(morsels.len()) as f64 / morsels.len().max(1) as f64)
            }
            Ready::Streamed(_) => None,
        }
    }

    fn pieces(&self) -> Option<usize> {
        match self.shared.ready.get()? {
            Ready::InMemory { morsels, .. } => Some(morsels.len()),
            Ready::Streamed(_) => None,
        }
    }

    fn end(&self) {
        self.shared.sort.note_files();
    }
}

/// One worker, which outputs the rows of a morsel chunk by chunk.
struct WindowReader {
    shared: Arc<Shared>,
    /// 0, 1, 2, …: the columns that come out.
    columns: Vec<usize>,
    passed: Vec<Vector>,
    results: Vec<Vector>,
    scratch: Scratch,
    picks: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
    taken: Option<Taken>,
    /// The most rows of the next chunk: fewer than usual, if their results are long.
    most: usize,
    number: u64,
}

impl SourceWorker for WindowReader {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let shared = &self.shared;
        let layout = &shared.layout;
        if self.taken.as_ref().is_none_or(|taken| taken.left.is_empty()) {
            // Its memory first, then the next one's.
            self.taken = None;
            let vectors = self.passed.iter_mut().chain(&mut self.results);
            vectors.for_each(|vector| *vector = Vector::new(vector.physical()));
            self.taken = shared.take(&Alone(&shared.context))?;
        }
        let Some(taken) = &mut self.taken else { return Ok(false) };
        self.number = taken.number;
        let rows = loop {
            let rows = taken.left.start..taken.left.end.min(taken.left.start + self.most);
            let (scratch, results) = (&mut self.scratch, &mut self.results);
            match taken.prepared.write(layout, rows.clone(), scratch, &shared.context, results) {
                // Lists and texts of fewer rows take less.
                Err(error) if is_lack(&error) && rows.len() > 1 => {
                    results.iter_mut().for_each(|vector| *vector = Vector::new(vector.physical()));
                    self.most = rows.len() / 2;
                }
                written => break written.map(|()| rows)?,
            }
        };
        taken.left.start = rows.end;
        let bytes: usize = self.results.iter().filter_map(Vector::heap).map(|heap| heap.bytes()).sum();
        self.most = match bytes > RESULT_BYTES {
            true => (rows.len() * RESULT_BYTES / bytes).max(1),
            false => (2 * self.most).min(shared.context.settings.chunk_rows),
        };
        taken.prepared.section.read_all(&self.columns, rows.clone(), &mut self.passed);
        chunk.reset(rows.len());
        let dense = chunk.push_group(Selection::ALL);
        self.passed.iter().chain(&self.results).for_each(|vector| chunk.push_column(vector.clone(), dense));
        if let Some(top) = layout.top {
            let places = &self.scratch.places;
            self.picks.clear();
            for (row, position) in rows.clone().enumerate() {
                let before = if top.with_peers { places.peers_start[row] } else { position as u32 };
                let before = taken.prepared.section.rows_between(places.partition_start[row], before);
                if (before as usize) < top.rows {
                    self.picks.push(row as u16);
                }
            }
            if self.picks.len() < rows.len() {
                chunk.select(&self.picks, &mut self.spares);
            }
        }
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.number
    }
}
