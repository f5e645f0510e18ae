//! The bytes of a row group as the Parquet library asks for them, and the memory for these and for what it
//! makes of them.
//!
//! The library reads page by page and says nothing of what it allocates. A page of ordinary size is free. For
//! a larger one, the bytes in the file are reserved as long as they are there, and those that they are
//! decompressed to until the batch of their rows is complete; its owner reserves what is left of them then.
//! How many these are is known of the column's bytes in the row group as a whole, so it is expected of each
//! page alike.

use bytes::Bytes;
use entasis_engine::exec::{MemoryBudget, Reservation};
use entasis_vector::{Error, Result};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of pages that are free.
pub(super) const FREE: usize = 4 << 20;

/// A file from which a row group is read. Clones share the memory.
#[derive(Clone)]
pub(super) struct Pages {
    file: Arc<File>,
    /// Where the row group's columns are in the file, and their bytes when they are decompressed.
    columns: Arc<[(Range<u64>, u64)]>,
    memory: Arc<MemoryBudget>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// For pages that were decompressed since the last batch.
    unpacked: Reservation,
    /// Why a page was not read.
    failed: Option<Error>,
}

/// The bytes of a large page.
struct Owned {
    bytes: Vec<u8>,
    _memory: Reservation,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Pages {
    /// The row group `group` of `file`, in memory of `memory`.
    pub(super) fn new(file: File, group: &RowGroupMetaData, memory: &Arc<MemoryBudget>) -> Pages {
        let column = |chunk: &parquet::file::metadata::ColumnChunkMetaData| {
            let (start, length) = chunk.byte_range();
            (start..start.saturating_add(length), chunk.uncompressed_size().max(0) as u64)
        };
        Pages {
            file: Arc::new(file),
            columns: group.columns().iter().map(column).collect(),
            memory: memory.clone(),
            state: Arc::new(Mutex::new(State { unpacked: Reservation::new(memory), failed: None })),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the library could not read a page, if it is for lack of memory.
    pub(super) fn failed(&self) -> Option<Error> {
        self.state().failed.take()
    }

    /// Gives back the memory of pages whose rows are in a batch.
    pub(super) fn end_batch(&self) {
        self.state().unpacked = Reservation::new(&self.memory);
    }

    /// The bytes of a page at `start`, decompressed, as far as is known.
    fn unpacked(&self, start: u64, length: usize) -> usize {
        let own = self.columns.iter().find(|(range, _)| range.contains(&start));
        own.map_or(0, |(range, unpacked)| {
            let share = u128::from(*unpacked) * length as u128 / u128::from((range.end - range.start).max(1));
            usize::try_from(share).unwrap_or(usize::MAX)
        })
    }

    /// Reserves memory for a page, if it is large: that of its bytes is returned.
    fn reserve(&self, start: u64, length: usize) -> Result<Reservation> {
        let mut packed = Reservation::new(&self.memory);
        let unpacked = self.unpacked(start, length);
        if unpacked.max(length) > FREE {
            packed.resize(length)?;
            let mut state = self.state();
            let all = state.unpacked.bytes().saturating_add(unpacked);
            state.unpacked.resize(all)?;
        }
        Ok(packed)
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Pages {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> ParquetResult<BufReader<File>> {
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let memory = self.reserve(start, length).map_err(|error| {
            let text = error.message().to_owned();
            self.state().failed = Some(error);
            ParquetError::General(text)
        })?;
        if memory.bytes() == 0 {
            return self.file.get_bytes(start, length);
        }
        let mut bytes = Vec::with_capacity(length);
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        file.take(length as u64).read_to_end(&mut bytes)?;
        match bytes.len() == length {
            true => Ok(Bytes::from_owner(Owned { bytes, _memory: memory })),
            false => Err(ParquetError::EOF(format!("{length} bytes are not there"))),
        }
    }
}
