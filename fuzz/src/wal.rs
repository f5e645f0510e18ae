//! Any bytes as the log beside a small data file: it is read to its end, gone on with, and read again.
//!
//! What must hold of a log that was not refused: after a commit was appended behind its end and synced, the
//! log holds the same commits, and that one behind them.

use crate::samples::{LOG_SEGMENT, Sample, small};
use crate::{seal, without_numbers};
use entasis_storage::backend::MemoryBackend;
use entasis_storage::checkpoint;
use entasis_storage::file::{Access, DataFile, Header};
use entasis_storage::wal::{Commit, Kind, Log, LogReader, SegmentBytes, Synchronous, Tail};
use entasis_vector::Result;
use std::sync::{Arc, LazyLock};

/// The data file that the log belongs to.
static DATA: LazyLock<Sample> = LazyLock::new(small);

/// The target: see the module.
pub fn run(bytes: &[u8]) -> String {
    match log(bytes.to_vec()) {
        Ok(read) => read,
        Err(error) => {
            let sealed = log(seal::log(bytes, LOG_SEGMENT, DATA.id.0));
            let sealed = sealed.unwrap_or_else(|error| error.message().to_owned());
            without_numbers(&format!("{} / {sealed}", error.message()))
        }
    }
}

fn log(bytes: Vec<u8>) -> Result<String> {
    let data = DataFile::open(Arc::new(MemoryBackend::of("data", DATA.file.clone())), Access::Read)?;
    let (_catalog, _) = checkpoint::open(&data)?;
    let backend = MemoryBackend::of("fuzzed", bytes);
    let (before, tail) = commits(&backend, data.header())?;
    let (position, is_closed) = (tail.position(), tail.is_closed());
    let resumed = Log::resume(Arc::new(backend.clone()), tail)?;
    let frame = resumed.frame(Kind::Commit, 0, b"one more")?;
    let end = resumed.append(&frame)?;
    resumed.wait(end, Synchronous::Full)?;
    let (after, tail) = commits(&backend, data.header()).expect("a log that was gone on with is whole");
    assert_eq!(after[..before.len()], before[..], "commits that were there");
    assert_eq!(after.len(), before.len() + 1, "and one more");
    assert_eq!(after[before.len()].records, b"one more");
    assert!(tail.position() >= end && end > position, "the end");
    let records: usize = before.iter().map(|commit| commit.records.len()).sum();
    Ok(format!("{} commits, {} bytes, closed: {is_closed}", before.len().min(20), records.min(1) * 100))
}

/// All commits of a log, and its end.
fn commits(backend: &MemoryBackend, header: Header) -> Result<(Vec<Commit>, Tail)> {
    let segment = SegmentBytes::new(header.segment_bytes).unwrap_or_default();
    let backend = Arc::new(backend.clone());
    let mut reader = LogReader::open(backend, DATA.id, segment, header.log_position, header.state)?;
    let mut found = Vec::new();
    while let Some(commit) = reader.next_commit()? {
        found.push(commit);
    }
    Ok((found, reader.end()?))
}

/// Logs of one run and of several, with parts, with what fills segments, closed and torn.
pub fn seeds(_: &[Sample]) -> Vec<Vec<u8>> {
    let written = |runs: &[&[usize]], closes: bool| -> Vec<u8> {
        let backend = MemoryBackend::new("log");
        let segment = SegmentBytes::new(LOG_SEGMENT).unwrap_or_default();
        let mut log = Log::create(Arc::new(backend.clone()), DATA.id, segment).expect("memory does not fail");
        for (number, sizes) in runs.iter().enumerate() {
            for (n, &size) in sizes.iter().enumerate() {
                let records: Vec<u8> = (0..size).map(|i| (i * 7 + n) as u8).collect();
                let transaction = if n % 3 == 2 { log.transaction() } else { 0 };
                if transaction > 0 {
                    let part = log.frame(Kind::Part, transaction, &records).expect("it is short");
                    log.append(&part).expect("memory does not fail");
                }
                let frame = log.frame(Kind::Commit, transaction, &records).expect("it is short");
                let end = log.append(&frame).expect("memory does not fail");
                if n % 2 == 0 {
                    log.wait(end, Synchronous::Full).expect("memory does not fail");
                }
            }
            let end = log.position();
            log.wait(end, Synchronous::Full).expect("memory does not fail");
            if number + 1 < runs.len() {
                let header =
                    DataFile::open(Arc::new(MemoryBackend::of("data", DATA.file.clone())), Access::Read);
                let header = header.expect("it is whole").header();
                let (_, tail) = commits(&backend, header).expect("it is whole");
                log = Log::resume(Arc::new(backend.clone()), tail).expect("memory does not fail");
            }
        }
        if closes {
            log.close().expect("memory does not fail");
        }
        backend.bytes()
    };
    let mut seeds = vec![
        written(&[&[]], false),
        written(&[&[10, 20, 30, 40]], true),
        written(&[&[100, 900, 1, 0, 3000], &[5, 5]], true),
        written(&[&[40; 30], &[7, 8, 9], &[300, 2]], false),
    ];
    let torn = seeds[3][..seeds[3].len() / 2].to_vec();
    seeds.push(torn);
    seeds.push(Vec::new());
    seeds
}
