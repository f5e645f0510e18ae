//! I/O threads: a few threads of the process that make reads for others, so that a disk has several at once.
//!
//! [`IoThreads::read_many`] makes the reads of a batch's [`plan`]. The calling thread takes one after the
//! other, and I/O threads take others meanwhile, [`READS_AT_ONCE`] threads in all. So a batch that is one
//! read wakes nobody, one that finds all I/O threads busy is read nevertheless, and what none of them has
//! begun is not waited for. The threads are those of all files of a process: they are started when they are
//! first wanted, and end with the last of these files.
//!
//! - **Nothing is borrowed.** Buffers move into the [`Batch`] and back; several requests of one read are
//!   copied from where that has put them. When the call returns, no I/O thread has the file any more.
//! - **The error of a batch** is that of its first request by offset, as if it was read in order: reads begin
//!   in this order, none begins after one has failed, and those that have begun are waited for.
//! - **A read of several requests that fails is made again**, one request at a time: so the error names the
//!   request, and what lies in a gap harms nobody.
//! - **A forked process** has none of these threads, and the lock by which they are asked may be held for
//!   ever: it starts threads of its own, which its own files use.
//!
//! Not here: reading ahead, an order among batches, a limit of memory. A batch keeps its buffers, and up to
//! 4 MB for each thread while requests are merged.

use super::process::Process;
use super::reads::{ReadAt, ReadRequest, failed, plan, read_whole};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::{fmt, io, iter, mem, thread};

/// Reads of one batch that a disk has at once, at the most: by the caller, and by I/O threads.
pub const READS_AT_ONCE: usize = 8;
/// Forks that lead from one process that reads to another, at the most, without one of them asking for the
/// threads where an ancestor did.
const FORKS: usize = 64;

/// The threads of this process, and where its ancestors and children have theirs.
static OF_PROCESSES: [Mutex<Weak<IoThreads>>; FORKS] = [const { Mutex::new(Weak::new()) }; FORKS];

/// See the module.
pub(super) struct IoThreads {
    shared: Arc<Shared>,
    /// The process that starts them.
    process: Process,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    /// Batches that want a thread; those that want several, as often.
    wanted: VecDeque<Arc<Batch>>,
    /// Threads that were started.
    started: usize,
    /// Those of them that read for no batch.
    idle: usize,
    has_ended: bool,
}

/// The reads of one call of [`IoThreads::read_many`].
struct Batch {
    state: Mutex<BatchState>,
    /// No thread is reading.
    left: Condvar,
}

struct BatchState {
    /// `None` once the call returns.
    source: Option<Arc<dyn ReadAt>>,
    /// In the order in which they begin.
    waiting: VecDeque<BatchRead>,
    done: Vec<BatchRead>,
    /// Reads that have begun and not ended.
    running: usize,
    /// The number of the first read that has failed, and why.
    failure: Option<(usize, io::Error)>,
    /// Where reads of several requests put their bytes: those that no thread uses now.
    buffers: Vec<Vec<u8>>,
}

/// One read, with its requests.
struct BatchRead {
    /// Its place in the order in which reads begin.
    number: usize,
    offset: u64,
    bytes: usize,
    /// Each with its place in the batch.
    requests: Vec<(usize, ReadRequest)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IoThreads {
    fn new() -> IoThreads {
        IoThreads { shared: Arc::default(), process: Process::current() }
    }

    /// Those of this process.
    pub(super) fn of_this_process() -> Arc<IoThreads> {
        let mut known = lock(&OF_PROCESSES[Process::generation() % FORKS]);
        if let Some(threads) = known.upgrade().filter(|threads| threads.process.is_current()) {
            return threads;
        }
        let threads = Arc::new(IoThreads::new());
        *known = Arc::downgrade(&threads);
        threads
    }

    /// Makes all reads of a batch.
    ///
    /// # Errors
    /// That of the first request, by offset, that cannot be read. The contents of all buffers are undefined
    /// then.
    pub(super) fn read_many(&self, source: Arc<dyn ReadAt>, reads: &mut [ReadRequest]) -> io::Result<()> {
        if let [only] = reads {
            return only.fill_from(&*source);
        }
        let planned = plan(reads).into_iter().enumerate();
        let waiting: VecDeque<BatchRead> = planned
            .map(|(number, read)| {
                let requests = read.requests.iter().map(|&place| (place, mem::take(&mut reads[place])));
                let requests = requests.collect();
                BatchRead { number, offset: read.offset, bytes: read.bytes, requests }
            })
            .collect();
        let helpers = waiting.len().clamp(1, READS_AT_ONCE) - 1;
        let batch = Arc::new(Batch::new(source, waiting));
        if helpers > 0 {
            self.ask(&batch, helpers);
        }
        batch.take_part();
        if helpers > 0 {
            lock(&self.shared.state).wanted.retain(|other| !Arc::ptr_eq(other, &batch));
        }
        let (done, failure) = batch.end();
        for (place, request) in done.into_iter().flat_map(|read| read.requests) {
            reads[place] = request;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Asks some threads to take part in a batch, and starts those that are missing.
    fn ask(&self, batch: &Arc<Batch>, helpers: usize) {
        let mut state = lock(&self.shared.state);
        state.wanted.extend(iter::repeat_n(batch.clone(), helpers));
        while state.idle < state.wanted.len() && state.started < READS_AT_ONCE - 1 {
            let shared = self.shared.clone();
            let name = format!("entasis-io-{}", state.started + 1);
            if thread::Builder::new().name(name).spawn(move || shared.serve()).is_err() {
                break; // The caller reads with those that there are, or alone.
            }
            state.started += 1;
            state.idle += 1;
        }
        drop(state);
        (0..helpers).for_each(|_| self.shared.wake.notify_one());
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        if self.process.is_current() {
            lock(&self.shared.state).has_ended = true;
            self.shared.wake.notify_all();
        }
    }
}

impl fmt::Debug for IoThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IoThreads")
    }
}

impl Shared {
    /// The life of a thread.
    fn serve(&self) {
        let mut state = lock(&self.state);
        while !state.has_ended {
            let Some(batch) = state.wanted.pop_front() else {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.idle -= 1;
            drop(state);
            batch.take_part();
            drop(batch);
            state = lock(&self.state);
            state.idle += 1;
        }
    }
}

impl Batch {
    fn new(source: Arc<dyn ReadAt>, waiting: VecDeque<BatchRead>) -> Batch {
        let state = BatchState {
            source: Some(source),
            waiting,
            done: Vec::new(),
            running: 0,
            failure: None,
            buffers: Vec::new(),
        };
        Batch { state: Mutex::new(state), left: Condvar::new() }
    }

    /// Makes reads until none is left to begin.
    fn take_part(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some((source, mut read, mut buffer)) = state.begin() else { return };
            drop(state);
            let outcome = catch_unwind(AssertUnwindSafe(|| read.run(&*source, &mut buffer)));
            let panicked = || failed(&io::Error::other("the thread has panicked"), read.offset, read.bytes);
            let outcome = outcome.unwrap_or_else(|_| Err(panicked()));
            // Before the caller can know that this read has ended.
            drop(source);
            state = lock(&self.state);
            state.end(read, buffer, outcome);
            if state.running == 0 {
                self.left.notify_one();
            }
        }
    }

    /// Waits for the reads that have begun. Returns all reads, begun or not, and the error.
    fn end(&self) -> (Vec<BatchRead>, Option<io::Error>) {
        let mut state = lock(&self.state);
        while state.running > 0 {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.source = None;
        state.buffers = Vec::new();
        let mut reads = mem::take(&mut state.done);
        reads.extend(mem::take(&mut state.waiting));
        (reads, state.failure.take().map(|(_, error)| error))
    }
}

impl BatchState {
    /// The next read, what it reads, and a buffer for it.
    fn begin(&mut self) -> Option<(Arc<dyn ReadAt>, BatchRead, Vec<u8>)> {
        if self.failure.is_some() {
            return None;
        }
        let source = self.source.clone()?;
        let read = self.waiting.pop_front()?;
        self.running += 1;
        Some((source, read, self.buffers.pop().unwrap_or_default()))
    }

    /// A read has ended.
    fn end(&mut self, read: BatchRead, buffer: Vec<u8>, outcome: io::Result<()>) {
        self.running -= 1;
        if !buffer.is_empty() {
            self.buffers.push(buffer);
        }
        if let Err(error) = outcome
            && self.failure.as_ref().is_none_or(|(number, _)| read.number < *number)
        {
            self.failure = Some((read.number, error));
        }
        self.done.push(read);
    }
}

impl BatchRead {
    fn run(&mut self, source: &dyn ReadAt, buffer: &mut Vec<u8>) -> io::Result<()> {
        if self.requests.len() > 1 {
            if buffer.len() < self.bytes {
                *buffer = vec![0; self.bytes];
            }
            let all = &mut buffer[..self.bytes];
            if read_whole(source, self.offset, all).is_ok() {
                for (_, request) in &mut self.requests {
                    let start = (request.offset - self.offset) as usize;
                    let end = start + request.bytes.len();
                    request.bytes.copy_from_slice(&all[start..end]);
                }
                return Ok(());
            }
        }
        self.requests.iter_mut().try_for_each(|(_, request)| request.fill_from(source))
    }
}

#[cfg(test)]
mod tests {
    use super::super::process::holds_in_a_child;
    use super::super::reads::MERGED_BYTES;
    use super::super::reads::tests::{batch, compare};
    use super::super::{Backend, FaultyDisk, Operation, ReadFaults};
    use super::*;
    use crate::tests::random::Random;
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread::ThreadId;
    use std::time::Duration;

    /// Requests that are reads of their own.
    fn apart(count: u64) -> Vec<ReadRequest> {
        (0..count).map(|number| ReadRequest::new(number * MERGED_BYTES as u64, 1)).collect()
    }

    /// Reads that wait for one another, each time as many as can be made at once.
    struct Meeting {
        barrier: Barrier,
        seen: Mutex<HashSet<ThreadId>>,
    }

    impl Meeting {
        fn new(reads: usize) -> Meeting {
            Meeting { barrier: Barrier::new(reads), seen: Mutex::default() }
        }
    }

    impl ReadAt for Meeting {
        fn read_at(&self, _: u64, out: &mut [u8]) -> io::Result<usize> {
            lock(&self.seen).insert(thread::current().id());
            self.barrier.wait();
            out.fill(1);
            Ok(out.len())
        }
    }

    #[test]
    fn a_batch_by_threads_is_one_in_order() {
        let threads = IoThreads::new();
        let (mut failures, mut successes) = (0, 0);
        for seed in 1..=30 {
            let mut random = Random(seed * 7919);
            let disk = FaultyDisk::new(seed);
            let file = disk.file("data");
            let content: Vec<u8> = (0..700_000).map(|_| random.next() as u8).collect();
            file.write(0, &content).expect("no faults");
            disk.disturb_reads(ReadFaults {
                seed,
                bad_sectors: [0, 50, 1000][random.below(3) as usize],
                short: random.below(3),
                delay: Duration::from_micros(random.below(2) * 30),
                ..ReadFaults::default()
            });
            for _ in 0..8 {
                let reads = batch(&mut random, content.len() as u64);
                let read_many = |reads: &mut [ReadRequest]| threads.read_many(Arc::new(file.clone()), reads);
                match compare(&reads, |offset, out| file.read(offset, out), read_many) {
                    Some(_) => failures += 1,
                    None => successes += 1,
                }
            }
        }
        assert!(failures > 20 && successes > 20, "{failures} failures, {successes} successes");
    }

    #[test]
    fn eight_reads_are_made_at_once() {
        let threads = IoThreads::new();
        let meeting = Arc::new(Meeting::new(READS_AT_ONCE));
        for _ in 0..20 {
            let mut reads = apart(3 * READS_AT_ONCE as u64);
            threads.read_many(meeting.clone(), &mut reads).expect("no faults");
            assert!(reads.iter().all(|read| read.bytes == [1]));
            assert_eq!(Arc::strong_count(&meeting), 1, "no thread keeps what was read from");
        }
        assert_eq!(lock(&meeting.seen).len(), READS_AT_ONCE);
    }

    #[test]
    fn a_single_read_is_made_by_the_caller() {
        let threads = IoThreads::new();
        let own = HashSet::from([thread::current().id()]);
        let side_by_side = (0..9).map(|number| ReadRequest::new(number, 1)).collect();
        for mut reads in [apart(0), apart(1), side_by_side] {
            let meeting = Arc::new(Meeting::new(1));
            threads.read_many(meeting.clone(), &mut reads).expect("no faults");
            assert!(reads.iter().all(|read| read.bytes == [1]));
            assert!(lock(&meeting.seen).is_subset(&own));
        }
        assert_eq!(lock(&threads.shared.state).started, 0);
    }

    #[test]
    fn threads_are_shared_and_end_with_their_files() {
        let threads = IoThreads::new();
        thread::scope(|scope| {
            for seed in 1..=6 {
                let threads = &threads;
                scope.spawn(move || {
                    let disk = FaultyDisk::new(seed);
                    let file = disk.file("data");
                    file.write(0, &vec![seed as u8; 300_000]).expect("no faults");
                    disk.disturb_reads(ReadFaults {
                        seed,
                        delay: Duration::from_micros(20),
                        ..ReadFaults::default()
                    });
                    let mut random = Random(seed);
                    for _ in 0..20 {
                        let reads = batch(&mut random, 300_000);
                        let read_many =
                            |reads: &mut [ReadRequest]| threads.read_many(Arc::new(file.clone()), reads);
                        compare(&reads, |offset, out| file.read(offset, out), read_many);
                    }
                });
            }
        });
        assert!(lock(&threads.shared.state).started < READS_AT_ONCE);
        assert!(lock(&threads.shared.state).wanted.is_empty());
        let shared = threads.shared.clone();
        drop(threads);
        while Arc::strong_count(&shared) > 1 {
            thread::yield_now();
        }
        let known = IoThreads::of_this_process();
        assert!(Arc::ptr_eq(&known, &IoThreads::of_this_process()));
    }

    #[test]
    fn a_transient_error_is_of_one_request_at_a_time() {
        let threads = IoThreads::new();
        let disk = FaultyDisk::new(1);
        let file = disk.file("data");
        file.write(0, &[5; 100]).expect("no faults");
        let mut reads: Vec<ReadRequest> = (0..3).map(|number| ReadRequest::new(number * 10, 10)).collect();
        // The read of all three fails, and each of them succeeds.
        disk.refuse(Operation::Read, 1, io::ErrorKind::Other);
        threads.read_many(Arc::new(file.clone()), &mut reads).expect("the second attempt");
        assert!(reads.iter().all(|read| read.bytes == [5; 10]));
        // So does the second of them.
        disk.refuse(Operation::Read, 1, io::ErrorKind::Other);
        disk.refuse(Operation::Read, 3, io::ErrorKind::TimedOut);
        let error = threads.read_many(Arc::new(file), &mut reads).expect_err("it is refused twice");
        assert_eq!(error.to_string(), "cannot read 10 bytes at byte 10: timed out");
        assert!(reads.iter().all(|read| read.bytes.len() == 10));
    }

    #[test]
    fn a_panic_is_an_error_and_ends_no_thread() {
        struct Panics;
        impl ReadAt for Panics {
            fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
                assert!(offset == 0, "a panic for the test");
                Ok(out.len())
            }
        }
        let threads = IoThreads::new();
        let error = threads.read_many(Arc::new(Panics), &mut apart(3)).expect_err("it panics");
        let place = format!("cannot read 1 bytes at byte {MERGED_BYTES}: the thread has panicked");
        assert_eq!(error.to_string(), place);
        let meeting = Arc::new(Meeting::new(READS_AT_ONCE));
        threads.read_many(meeting, &mut apart(READS_AT_ONCE as u64)).expect("all threads live");
    }

    #[test]
    fn a_forked_process_has_threads_of_its_own() {
        let threads = IoThreads::of_this_process();
        // They are started here.
        threads.read_many(Arc::new(Meeting::new(1)), &mut apart(9)).expect("no faults");
        let forked = holds_in_a_child(|| {
            let own = IoThreads::of_this_process();
            let mut reads = apart(READS_AT_ONCE as u64);
            let read = own.read_many(Arc::new(Meeting::new(READS_AT_ONCE)), &mut reads);
            read.is_ok() && !Arc::ptr_eq(&own, &threads)
        });
        assert!(forked, "all of them read at once");
        threads.read_many(Arc::new(Meeting::new(1)), &mut apart(9)).expect("no faults");
    }
}
