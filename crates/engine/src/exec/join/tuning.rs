//! Figures by which joins choose: when a strategy or a table is taken, and how much memory each may have.
//!
//! Each says its unit and where it comes from: a measurement (two virtual cores at 2.5 GHz with AVX-512;
//! tables in `docs/design/joins-measured.md`, runs in `bench/record/`), the size of what it bounds, or
//! judgement, which no measurement contradicts. Not here: what the structure of a table fixes (bits of a
//! word, numbers of partitions), and what tables cost in nanoseconds, which is one fitted table
//! (`table/cost.rs`).

// ---- keys and memory --------------------------------------------------------------------------------------

/// Average rows of a key up to which keys are taken for distinct. Rows; judgement: few rows of a concise hash
/// table overflow then.
pub(crate) const DISTINCT_PER_KEY: f64 = 1.05;
/// One part in so many of the memory that a build side found free is left to others. Judgement.
pub(crate) const LEFT_PART: usize = 4;

// ---- in memory, two passes --------------------------------------------------------------------------------

/// Expected build rows from which on an input is read twice: fewer are soon moved. Rows; judgement, with
/// decision 16.
pub(crate) const TWO_PASS_ROWS: f64 = 65_536.0;
/// Rows that may be looked at for each that is kept, if they are looked at twice. Rows; judgement.
pub(crate) const LOOKED_AT: f64 = 4.0;
/// Bytes of all workers' counts for each row up to which they are few. Bytes; judgement: about those of a
/// key.
pub(crate) const COUNTED_BYTES: f64 = 8.0;
/// Bytes of all workers' counts up to which they are few, however few rows there are. Bytes: 4 MB; judgement.
pub(crate) const FEW_COUNTED_BYTES: f64 = 4194304.0;

// ---- partitioned in memory --------------------------------------------------------------------------------

/// What must hold of both sides, so that partitions in memory pay.
pub(crate) struct Gates {
    /// Rows of a key, or more.
    pub per_key: f64,
    /// Partitions of full size that the build rows and their table have, or more.
    pub large: usize,
    /// The most bytes of a row of the build side, and of the probe side.
    pub narrow: (usize, usize),
    /// Probe rows for each build row: as many or more, fewer.
    pub ratio: (f64, f64),
    /// The least share of the probe rows that match.
    pub matching: f64,
}

/// Where keys are hardly repeated: a key and a number, of four bytes each, and a key and two numbers.
/// Measured.
// PERF: 10 to 40 million build rows, ratios of 1 to 10: rows of 4 and 4 bytes take 0.79 to 0.90 of what a
// concise hash table takes, those of 8 and 8 bytes 0.8 to 1.26, for three times the memory, and more where
// all of it is new to the process.
pub(crate) const DISTINCT_KEYS: Gates =
    Gates { per_key: 0.0, large: 128, narrow: (8, 12), ratio: (1.0, 10.0), matching: 0.5 };
/// Where they are repeated so often that finding further rows is most of the work: an unchained table gives
/// them one by one. Measured.
// PERF: 1 and 4 million build rows of 16 bytes with 30 for a key, half a probe row to four for each: 0.55 to
// 0.71 of what an unchained table takes; with 2 and 4 for a key 0.91 to 1.18, for up to three times the
// memory.
pub(crate) const REPEATED_KEYS: Gates =
    Gates { per_key: 8.0, large: 16, narrow: (16, 24), ratio: (0.25, 10.0), matching: 0.25 };
/// Build rows that could be read twice from which on partitions are worth as many probe rows; fewer ask for
/// twice as many. Rows; measured with the figures above.
pub(crate) const RADIX_ROWS: usize = 24 << 20;
/// The largest exponent of Zipf's law by which keys of the probe side may be: beyond, one worker has too much
/// of the work. Measured.
// PERF: 10 million build and 40 million probe rows of 16 bytes: see `is_skewed` in `strategy/partitions.rs`.
pub(crate) const MOST_SKEW: f64 = 1.35;
/// Bytes of payload of a probe row from which on a second pass may leave it where it is. Bytes; measured: see
/// `leaves_payload`.
pub(crate) const WIDE_PAYLOAD: usize = 32;
/// The largest share of the probe rows that may come out, if their payload is left where it is. Measured: see
/// `leaves_payload`.
pub(crate) const FEW_COME_OUT: f64 = 0.1;
/// One part in so many of the free memory may be taken by both sides of a radix join. Judgement.
pub(crate) const RADIX_MEMORY_PART: usize = 4;

// ---- partitioned in files ---------------------------------------------------------------------------------

/// The most memory that build rows of a worker may have, whatever is left to others. Bytes: 4 MB; judgement.
pub(crate) const MOST_LEAST: usize = 4 << 20;
/// The same as one part in so many of what is left to others. Judgement.
pub(crate) const LEAST_PART: usize = 4;
/// Rows that are taken to fit into memory where partitions are to be deep. Rows; for tests.
pub(crate) const DEEP_ROWS: usize = 8;
/// One part in so many of the free memory may be taken by probe rows of all workers before they are written.
/// Judgement.
pub(crate) const PROBE_PART: usize = 4;
/// The most memory of one worker's probe rows before they are written. Bytes: 32 MB; judgement.
pub(crate) const MOST_PROBE: usize = 32 << 20;
/// Rows of less memory than this are written only if nothing else is left. Bytes: 256 KB; judgement.
pub(crate) const LITTLE: usize = 256 << 10;
/// How often a partition is split at most. Times: as often as the bits of a hash last.
pub(crate) const DEEPEST: u32 = 6;
/// Partitions that have more than this part of what was split are not split again: one key has most of the
/// rows. Judgement.
pub(crate) const HARDLY_SMALLER: (usize, usize) = (7, 8);
/// The part of the free memory that one partition may take while it is joined. Judgement.
pub(crate) const ALONE_PART: (usize, usize) = (3, 4);

// ---- sides that are swapped -------------------------------------------------------------------------------

/// How many times the rows that were expected are far more. Judgement.
pub(crate) const FAR_MORE: f64 = 2.0;
/// How many times what it costs otherwise makes up for what is not known of the other side. Measured.
// PERF: with 5 million rows where ten were expected, and 2, 3 and 4 million others, swapping takes 0.55, 0.67
// and 0.90 of the time (tables of places) where the formula says 0.69, 0.80 and 0.88, and 0.53, 0.7 and 1.0
// (tables by hash; 0.87 of 2 million).
pub(crate) const DEARER: f64 = 1.1;
/// A table of so few rows is soon made; to plan the other way takes longer than it would save. Rows;
/// judgement.
pub(crate) const SWAP_ROWS: f64 = 65_536.0;

// ---- tables -----------------------------------------------------------------------------------------------

/// Places for each row that the directory of a concise array table may have. Places; by size: 32 bytes a row.
pub(crate) const CAT_PLACES: u64 = 128;
/// Places that a directory may always have, even for few rows. Places; by size: 1 MB.
pub(crate) const FEW_CAT_PLACES: u64 = 4 << 20;
/// Places for each row that a window of a concise array table has. Places; judgement.
pub(crate) const WINDOW_PLACES: u64 = 64;
/// Places for each row that bits may have. Places; by size: 16 bytes a row.
pub(crate) const BITMAP_PLACES: u64 = 128;
/// Places for each row that an array may have. Places; by size: 16 bytes a row.
pub(crate) const ARRAY_PLACES: u64 = 4;
/// Places that an array may always have, even for few rows. Places; by size: 1 MB.
pub(crate) const FEW_ARRAY_PLACES: u64 = 256 << 10;
/// Places for each row that an array may have if it is forced. Places; by size: 256 bytes a row.
pub(crate) const FORCED_PLACES: u64 = 64;
/// Places that other tables may always have, even for few rows. Places; judgement.
pub(crate) const FEW_OTHER_PLACES: u64 = 4096;
/// Share of a sample of keys that must be inside of a window. Judgement.
pub(crate) const WINDOW_SHARE: f64 = 0.95;
/// Chains are large once they are more than one part in so many of the memory that is left. Judgement.
pub(crate) const LARGE_CHAINS_PART: usize = 4;
/// One part in so many of the rows of a concise hash table may overflow. Judgement.
pub(crate) const OVERFLOW_PART: usize = 16;
/// What a probe row takes less where every place of a concise array table is taken, so that there is no
/// directory. Nanoseconds; fitted.
pub(crate) const FULL_PROBE: f64 = 0.5;
/// A column that is moved, in nanoseconds, and the access to it as a multiple of one alone; fitted.
pub(crate) const MOVED_COLUMN: (f64, f64) = (1.8, 1.2);
/// A byte of a table that memory is there for, and one of a table so large that the system has to give it
/// first. Nanoseconds; fitted.
pub(crate) const TABLE_BYTE: (f64, f64) = (0.18, 0.35);
/// Bytes from which on a table is so large. Bytes: 4 MB; fitted.
pub(crate) const LARGE_TABLE: f64 = 4.0 * 1048576.0;
