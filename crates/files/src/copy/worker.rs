//! A worker of a file: turns its chunks into parts and hands them over when a morsel ends.

use super::batch::{Batch, split};
use super::parts::{FilePart, RowFormat, parts_of};
use super::turns::SharedFile;
use crate::Format;
use crate::csv::text::Text;
use entasis_engine::exec::ResultWorker;
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// Turns chunks into parts.
pub(super) struct FileWorker {
    shared: Arc<SharedFile>,
    number: usize,
    /// The morsel of the rows that have not been handed over.
    morsel: u64,
    /// A later morsel, which has begun since.
    begun: Option<u64>,
    text: Text,
    /// Rows that are in no part yet, their number and their bytes.
    batches: Vec<Batch>,
    kept_rows: usize,
    kept_bytes: usize,
    parts: Vec<FilePart>,
    /// Rows that have not been counted in the file.
    rows: u64,
}

impl FileWorker {
    /// One more worker.
    pub(super) fn new(shared: &Arc<SharedFile>) -> FileWorker {
        let mut state = shared.lock();
        state.current.push(Some(0));
        FileWorker {
            shared: shared.clone(),
            number: state.current.len() - 1,
            morsel: 0,
            begun: None,
            text: Text::default(),
            batches: Vec::new(),
            kept_rows: 0,
            kept_bytes: 0,
            parts: Vec::new(),
            rows: 0,
        }
    }

    /// Ends the current morsel: hands its rows over, and goes on with morsel `next`.
    fn end_morsel(&mut self, next: Option<u64>) -> Result<()> {
        let RowFormat { settings, most_bytes, .. } = &self.shared.format;
        let most_rows = settings.row_group_rows;
        if self.kept_rows >= most_rows.div_ceil(2) || self.kept_bytes >= most_bytes.div_ceil(2) {
            let share = self.kept_rows.div_ceil(self.kept_rows.div_ceil(most_rows));
            while self.kept_rows > 0 {
                self.encode(share.min(self.kept_rows))?;
            }
        }
        (self.kept_rows, self.kept_bytes) = (0, 0);
        self.parts.extend(self.batches.drain(..).map(FilePart::Batch));
        self.hand_over(next)
    }

    /// Hands over what has become parts or text, and writes what can be written.
    fn hand_over(&mut self, next: Option<u64>) -> Result<()> {
        if self.text.len() > 0 {
            self.parts.push(FilePart::Text(std::mem::take(&mut self.text), None));
        }
        let shared = self.shared.clone();
        shared.context.check()?;
        {
            let mut state = shared.wait_for_room(shared.lock(), self.morsel, &mut self.parts)?;
            if !self.parts.is_empty() {
                state.waiting_bytes += self.parts.iter().map(FilePart::bytes).sum::<usize>();
                state.waiting.entry(self.morsel).or_default().append(&mut self.parts);
            }
            state.rows += std::mem::take(&mut self.rows);
            state.current[self.number] = next;
            shared.write_ready(&mut state)?;
            shared.turn.notify_all();
            if let Some(spare) = state.spare.pop() {
                self.text = spare;
                self.text.clear();
            }
        }
        shared.encode_complete()
    }

    /// Makes a row group of the first `rows` rows that are kept.
    fn encode(&mut self, rows: usize) -> Result<()> {
        let first = split(&mut self.batches, rows);
        self.kept_rows -= rows;
        self.kept_bytes = self.batches.iter().map(Batch::bytes).sum();
        self.parts.push(self.shared.encode(first)?);
        Ok(())
    }

    /// Writes the rows of a chunk as text.
    fn write_text(&mut self, chunk: &Chunk) -> Result<()> {
        let shared = self.shared.clone();
        let (schema, settings) = (&shared.format.schema, &shared.format.settings);
        let mut text = std::mem::take(&mut self.text);
        let mut take = |text: &mut Text| {
            self.text = std::mem::take(text);
            self.hand_over(Some(self.morsel))?;
            *text = std::mem::take(&mut self.text);
            Ok(())
        };
        match settings.format {
            Format::Json => settings.json.rows(chunk, schema, &mut text, &mut take)?,
            _ => settings.csv.rows(chunk, schema, &mut text, &mut take)?,
        }
        self.text = text;
        Ok(())
    }

    /// Keeps the rows of a chunk as record batches, and encodes row groups.
    fn keep(&mut self, chunk: &Chunk) -> Result<()> {
        let shared = self.shared.clone();
        let RowFormat { settings, most_bytes, .. } = &shared.format;
        let most_rows = settings.row_group_rows;
        for rows in parts_of(chunk) {
            let batch = shared.format.batch(chunk, rows, &shared.memory)?;
            self.kept_rows += batch.rows();
            self.kept_bytes += batch.bytes();
            self.batches.push(batch);
            // What is left is enough for a row group, too.
            while self.kept_rows >= most_rows + most_rows.div_ceil(2) {
                self.encode(most_rows)?;
                self.hand_over(Some(self.morsel))?;
            }
            if self.kept_bytes >= *most_bytes {
                self.encode(self.kept_rows)?;
                self.hand_over(Some(self.morsel))?;
            }
        }
        Ok(())
    }
}

impl ResultWorker for FileWorker {
    fn start_morsel(&mut self, morsel: u64) {
        // The rest is left to the next push: encoding and writing can fail, and this call cannot.
        if morsel != self.morsel {
            self.begun = Some(morsel);
        }
    }

    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let shared = self.shared.clone();
        shared.interruptible(|| {
            if let Some(morsel) = self.begun.take() {
                self.end_morsel(Some(morsel))?;
                self.morsel = morsel;
            }
            self.rows += chunk.len() as u64;
            match shared.format.settings.format {
                Format::Csv | Format::Json => self.write_text(chunk),
                Format::Parquet => self.keep(chunk),
            }
        })
    }

    fn finish(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        shared.interruptible(|| self.end_morsel(None))
    }
}

impl Drop for FileWorker {
    fn drop(&mut self) {
        // A worker that stops early, after an error elsewhere, must not hold up the others' parts.
        self.shared.lock().current[self.number] = None;
        self.shared.turn.notify_all();
    }
}
