//! Batches of reads: what is asked for, and which reads that takes.
//!
//! A disk makes several reads at once in little more time than one, and one long read in less time than
//! several short ones. So who needs bytes from several places asks for all of them by one call of
//! [`Backend::read_many`](super::Backend::read_many).
//!
//! - **Requests own their buffers.** These move to the threads that read ([`super::io_threads`]) and come
//!   back, so that nothing borrows from a thread that might end earlier.
//! - **Their order is that of their offsets**, and of the batch where these are equal: whatever the order in
//!   a batch. If some cannot be read, the error is that of the first one in this order, however many threads
//!   read, and names its place.
//! - **Requests are merged** ([`plan`]) if at most [`GAP_BYTES`] lie between them, into reads of up to
//!   [`MERGED_BYTES`]: a disk gives a gap in less time than it takes to begin another read. A longer request
//!   is a read by itself.
//!
//! [`read_in_order`] reads without threads and merges nothing: what a backend does unless it knows better,
//! and the slow twin of what files do. Not here: caching, reading ahead, a second attempt.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes between two requests of one read at the most.
pub(super) const GAP_BYTES: usize = 64 << 10;
/// Bytes of a read of several requests at the most.
pub(super) const MERGED_BYTES: usize = 4 << 20;

/// Bytes that are asked for by their place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// Where they begin.
    pub offset: u64,
    /// The buffer that takes them. Its length is their number.
    pub bytes: Vec<u8>,
}

impl ReadRequest {
    /// Asks for so many bytes from `offset` on.
    pub fn new(offset: u64, bytes: usize) -> ReadRequest {
        ReadRequest { offset, bytes: vec![0; bytes] }
    }

    /// Reads them.
    ///
    /// # Errors
    /// As [`read_whole`], with the place.
    pub(super) fn fill_from(&mut self, source: &dyn ReadAt) -> io::Result<()> {
        let read = read_whole(source, self.offset, &mut self.bytes);
        read.map_err(|error| failed(&error, self.offset, self.bytes.len()))
    }
}

/// What can be read by position, as the operating system reads a file: perhaps fewer bytes than there are.
pub(super) trait ReadAt: Send + Sync {
    /// Reads some bytes from `offset` on; returns how many, which is 0 only at the end.
    ///
    /// # Errors
    /// Those of the medium. `Interrupted` asks for another try.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, out, offset)
    }
}

/// Fills `out` with the bytes from `offset` on.
///
/// # Errors
/// `UnexpectedEof` if there are fewer bytes; those of the medium.
pub(super) fn read_whole(source: &dyn ReadAt, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        match source.read_at(offset, out) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                out = &mut out[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The error of a read, with its place.
pub(super) fn failed(error: &io::Error, offset: u64, bytes: usize) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read {bytes} bytes at byte {offset}: {error}"))
}

/// Reads one request after the other by `read`.
///
/// # Errors
/// That of the first request, by offset, that cannot be read.
pub(super) fn read_in_order(
    reads: &mut [ReadRequest],
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    for place in in_order(reads) {
        let ReadRequest { offset, bytes } = &mut reads[place];
        read(*offset, bytes).map_err(|error| failed(&error, *offset, bytes.len()))?;
    }
    Ok(())
}

/// The places in a batch of the requests for any bytes, in the order of their offsets.
fn in_order(reads: &[ReadRequest]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..reads.len()).filter(|&place| !reads[place].bytes.is_empty()).collect();
    order.sort_by_key(|&place| reads[place].offset);
    order
}

/// A read of one request, or of several.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedRead {
    pub(super) offset: u64,
    pub(super) bytes: usize,
    /// The places of the requests in their batch, in the order of their offsets.
    pub(super) requests: Vec<usize>,
}

impl PlannedRead {
    /// Its bytes if it also reads a request that begins no earlier; `None` if that is to be another read.
    fn bytes_with(&self, request: &ReadRequest) -> Option<usize> {
        let begin = usize::try_from(request.offset - self.offset).ok()?;
        let end = begin.checked_add(request.bytes.len())?.max(self.bytes);
        let gap = begin.saturating_sub(self.bytes);
        (gap <= GAP_BYTES && end <= MERGED_BYTES).then_some(end)
    }
}

/// The reads of a batch, in the order of their offsets.
pub(super) fn plan(reads: &[ReadRequest]) -> Vec<PlannedRead> {
    let mut planned: Vec<PlannedRead> = Vec::new();
    for place in in_order(reads) {
        let request = &reads[place];
        let merged = planned.last_mut().and_then(|last| Some((last.bytes_with(request)?, last)));
        match merged {
            Some((bytes, last)) => {
                last.bytes = bytes;
                last.requests.push(place);
            }
            None => {
                let (offset, bytes) = (request.offset, request.bytes.len());
                planned.push(PlannedRead { offset, bytes, requests: vec![place] });
            }
        }
    }
    planned
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::tests::random::Random;

    const KB: usize = 1 << 10;
    const MB: usize = 1 << 20;

    /// A random batch of requests of a file of so many bytes: side by side, apart, over one another, for
    /// nothing; sometimes also behind its end.
    pub(in crate::backend) fn batch(random: &mut Random, length: u64) -> Vec<ReadRequest> {
        let mut at = random.below(length);
        let mut reads = Vec::new();
        for _ in 0..random.below(24) {
            let bytes = match random.below(12) {
                0 => 0,
                1 => 1,
                2 => random.below(MB as u64),
                _ => random.below(5000),
            };
            at = match random.below(8) {
                0 | 1 => random.below(length),
                2 => at - random.below(at.min(4000) + 1),
                3 | 4 => at,
                _ => at + random.below(2 * GAP_BYTES as u64),
            };
            reads.push(ReadRequest::new(at, bytes as usize));
            at += bytes;
        }
        match random.below(3) {
            0 => reads.push(ReadRequest::new(length - random.below(length.min(3000)), 1500)),
            _ => reads.retain(|read| read.offset + read.bytes.len() as u64 <= length),
        }
        random.shuffle(&mut reads);
        reads
    }

    /// Reads a batch by `read_many`, which must do as its twin, [`read_in_order`]. Returns the error.
    pub(in crate::backend) fn compare(
        reads: &[ReadRequest],
        read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
        read_many: impl FnOnce(&mut [ReadRequest]) -> io::Result<()>,
    ) -> Option<io::Error> {
        let (mut found, mut expected) = (reads.to_vec(), reads.to_vec());
        match (read_many(&mut found), read_in_order(&mut expected, read)) {
            (Ok(()), Ok(())) => {
                assert!(found == expected, "other bytes");
                None
            }
            (found_error, expected_error) => {
                let text = |result: &io::Result<()>| result.as_ref().map_err(|error| error.to_string()).err();
                assert_eq!(text(&found_error), text(&expected_error));
                let kind = |result: &io::Result<()>| result.as_ref().map_err(io::Error::kind).err();
                assert_eq!(kind(&found_error), kind(&expected_error));
                let shape = |reads: &[ReadRequest]| -> Vec<(u64, usize)> {
                    reads.iter().map(|read| (read.offset, read.bytes.len())).collect()
                };
                assert_eq!(shape(&found), shape(reads), "buffers come back");
                found_error.err()
            }
        }
    }

    /// The plan of requests, given by offset and bytes: for each read its offset, bytes and requests.
    fn planned(requests: &[(u64, usize)]) -> Vec<(u64, usize, Vec<usize>)> {
        let reads: Vec<ReadRequest> =
            requests.iter().map(|&(offset, bytes)| ReadRequest::new(offset, bytes)).collect();
        plan(&reads).into_iter().map(|read| (read.offset, read.bytes, read.requests)).collect()
    }

    #[test]
    fn requests_are_merged_as_in_examples() {
        assert_eq!(planned(&[]), []);
        assert_eq!(planned(&[(0, 0), (5, 0)]), [], "nothing is asked for");
        assert_eq!(planned(&[(100, 10)]), [(100, 10, vec![0])]);
        assert_eq!(planned(&[(110, 10), (200, 0), (100, 10)]), [(100, 20, vec![2, 0])]);
        // A gap of 64 KB is read, a longer one is not.
        let gap = (10 + GAP_BYTES) as u64;
        assert_eq!(planned(&[(0, 10), (gap, 10)]), [(0, 20 + GAP_BYTES, vec![0, 1])]);
        assert_eq!(planned(&[(0, 10), (gap + 1, 10)]), [(0, 10, vec![0]), (gap + 1, 10, vec![1])]);
        // Requests over one another. A gap begins where the last byte was, not where the last request ends.
        assert_eq!(planned(&[(0, 100), (50, 10), (0, 20)]), [(0, 100, vec![0, 2, 1])]);
        let far = (150 * KB) as u64;
        assert_eq!(planned(&[(0, 100 * KB), (10, 10), (far, 10)]), [(0, 150 * KB + 10, vec![0, 1, 2])]);
        // Four megabytes, then the next read.
        let megabytes: Vec<(u64, usize)> = (0..5).map(|number| ((number * MB) as u64, MB)).collect();
        let expected = [(0, 4 * MB, vec![0, 1, 2, 3]), ((4 * MB) as u64, MB, vec![4])];
        assert_eq!(planned(&megabytes), expected);
        // A request that is longer is read by itself.
        let long = 5 * MB;
        assert_eq!(planned(&[(0, long), (10, 10)]), [(0, long, vec![0]), (10, 10, vec![1])]);
        let behind = long as u64;
        assert_eq!(planned(&[(behind, 10), (0, long)]), [(0, long, vec![1]), (behind, 10, vec![0])]);
        // The end of all offsets.
        let last = u64::MAX - 10;
        assert_eq!(planned(&[(last, 100), (last + 5, 3)]), [(last, 100, vec![0, 1])]);
    }

    #[test]
    fn each_request_is_part_of_one_read() {
        let mut merged = 0;
        for seed in 1..200 {
            let reads = batch(&mut Random(seed), 20 * MB as u64);
            let planned = plan(&reads);
            let mut places: Vec<usize> = planned.iter().flat_map(|read| read.requests.clone()).collect();
            assert!(places.windows(2).all(|pair| reads[pair[0]].offset <= reads[pair[1]].offset));
            places.sort_unstable();
            let asked = (0..reads.len()).filter(|&place| !reads[place].bytes.is_empty());
            assert!(places.iter().copied().eq(asked));
            for read in &planned {
                let end = read.offset + read.bytes as u64;
                let end_of = |read: &ReadRequest| read.offset + read.bytes.len() as u64;
                let ends = read.requests.iter().map(|&place| end_of(&reads[place]));
                assert_eq!(ends.max(), Some(end), "it ends with a request");
                assert_eq!(reads[read.requests[0]].offset, read.offset, "it begins with a request");
                assert!(read.bytes <= MERGED_BYTES);
                merged += read.requests.len() - 1;
            }
        }
        assert!(merged > 100, "{merged} requests were merged");
    }

    #[test]
    fn requests_are_read_in_the_order_of_their_offsets() {
        let requests = [(300, 3), (100, 2), (200, 0), (100, 1)];
        let mut reads = requests.map(|(offset, bytes)| ReadRequest::new(offset, bytes));
        let seen = std::cell::RefCell::new(Vec::new());
        let read = |offset: u64, out: &mut [u8]| -> io::Result<()> {
            out.fill(7);
            seen.borrow_mut().push((offset, out.len()));
            if offset == 300 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
        };
        let error = read_in_order(&mut reads, read).expect_err("the last one fails");
        assert_eq!(seen.into_inner(), [(100, 2), (100, 1), (300, 3)]);
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "cannot read 3 bytes at byte 300: timed out");
        assert_eq!(reads[1].bytes, [7, 7]);
    }
}
