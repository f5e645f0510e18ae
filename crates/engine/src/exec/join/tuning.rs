//! Thresholds of joins: when a strategy or a table is chosen, and how much memory each may have.
//!
//! Each states its unit and its origin: a measurement (two virtual cores at 2.5 GHz with AVX-512; tables in
//! `docs/design/joins-measured.md`, runs in `bench/record/`), the size of what it bounds, or judgement that
//! no measurement contradicts. Not here: what the structure of a table fixes (bits of a word, numbers of
//! partitions), and the costs of tables in nanoseconds, which are one fitted table (`table/cost.rs`).

// ---- keys and memory --------------------------------------------------------------------------------------

/// Average rows per key up to which keys count as distinct. Rows; judgement: few rows of a concise hash table
/// overflow then.
pub(crate) const DISTINCT_PER_KEY: f64 = 1.05;

// ---- in memory, two passes --------------------------------------------------------------------------------

/// Expected build rows from which an input is read twice: fewer are cheap to move. Rows; judgement, with
/// decision 16.
pub(crate) const TWO_PASS_ROWS: f64 = 65_536.0;
/// Scanned rows per kept row up to which a second reading is worthwhile. Rows; judgement.
pub(crate) const LOOKED_AT: f64 = 4.0;
/// Bytes of all workers' counters per row up to which they are small. Bytes; judgement: about the size of a
/// key.
pub(crate) const COUNTED_BYTES: f64 = 8.0;
/// Bytes of all workers' counters that are always acceptable, even for few rows. Bytes: 4 MB; judgement.
pub(crate) const FEW_COUNTED_BYTES: f64 = 4194304.0;

// ---- partitioned in memory --------------------------------------------------------------------------------

/// The least size of the build rows and their table, in partitions of full size: for distinct keys, and for
/// repeated ones, whose further matches cost a table without partitions an access each. Measured; 16 times
/// the third-level cache with partitions of 1 MB, and half of it.
// PERF: in cells by which the old gates were not found, distinct keys and rows of 8 to 24 bytes, partitions
// that `auto` chooses take 1.0 to 1.45 of the time of a concise hash table with 6 million build rows, 0.95 to
// 1.17 with 13, 0.95 with 22, 0.82 with 32; with 3 to 12 rows of a key, 2.5 and 6 million rows, 0.52 to 0.72
// of the time of an unchained table.
pub(crate) const LARGE: (usize, usize) = (512, 16);
/// The most bytes of a build row, and of a probe row: a key and a payload of 16 and 24 bytes. Bandle et al.,
/// Table 4: at most 32, better 16.
pub(crate) const NARROW: (usize, usize) = (24, 32);
/// How many times as many rows one side may have as the other. Bandle et al., Table 4.
pub(crate) const MOST_TIMES: f64 = 10.0;
/// The largest exponent of the probe keys' Zipf distribution: beyond it, one worker has too much of the work.
/// Measured.
// PERF: 10 million build and 40 million probe rows of 16 bytes: see `is_skewed` in `strategy/partitions.rs`.
pub(crate) const MOST_SKEW: f64 = 1.35;
/// Bytes that a text counts as where rows must be narrow. Bytes; by size: more than such a row may have,
/// since its own bytes may be copied, too.
pub(crate) const TEXT_WIDTH: usize = NARROW.1 + 8;
/// The share of the free memory that both sides of a radix join may take, as a divisor. Judgement.
pub(crate) const RADIX_MEMORY_PART: usize = 4;

// ---- keys in dictionaries ---------------------------------------------------------------------------------

/// Dictionaries whose entries' matches a worker keeps. Dictionaries; judgement: a scan has one at a time, and
/// rows of several scans may take turns.
pub(crate) const KEPT_DICTIONARIES: usize = 4;
/// The most matches of all entries of a dictionary that are kept. Row ids; by size: 512 KB.
pub(crate) const MOST_ENTRY_MATCHES: usize = 128 << 10;

// ---- partitioned in files ---------------------------------------------------------------------------------

/// Rows that count as a full memory if a setting makes partitions deep. Rows; for tests.
pub(crate) const DEEP_ROWS: usize = 8;
/// The share of the free memory that all workers' probe rows may take before they are written, as a divisor.
/// Judgement.
pub(crate) const PROBE_PART: usize = 4;
/// The most memory of one worker's probe rows before they are written. Bytes: 32 MB; judgement.
pub(crate) const MOST_PROBE: usize = 32 << 20;
/// Rows with less memory than this are written only if nothing else is left. Bytes: 256 KB; judgement.
pub(crate) const LITTLE: usize = 256 << 10;
/// The most times that a partition is split. Times; by size: the bits of a hash are used up then.
pub(crate) const DEEPEST: u32 = 6;
/// A partition with more than this fraction of the rows that were split is not split again: one key has most
/// of them. Judgement.
pub(crate) const HARDLY_SMALLER: (usize, usize) = (7, 8);
/// The fraction of the free memory that one partition may take while it is joined. Judgement.
pub(crate) const ALONE_PART: (usize, usize) = (3, 4);

// ---- sides that are swapped -------------------------------------------------------------------------------

/// How many times the expected rows count as far more. Judgement.
pub(crate) const FAR_MORE: f64 = 2.0;
/// How many times cheaper swapping must be, since the other side's cost is uncertain. Measured.
// PERF: with 5 million rows where ten were expected, and 2, 3 and 4 million others, swapping takes 0.55, 0.67
// and 0.90 of the time (tables of places) where the formula says 0.69, 0.80 and 0.88, and 0.53, 0.7 and 1.0
// (tables by hash; 0.87 of 2 million).
pub(crate) const DEARER: f64 = 1.1;
/// A table of this many rows is built quickly; planning the other way would take longer than it saves. Rows;
/// judgement.
pub(crate) const SWAP_ROWS: f64 = 65_536.0;

// ---- tables -----------------------------------------------------------------------------------------------

/// Places per row that the directory of a concise array table may have. Places; by size: 32 bytes per row.
pub(crate) const CAT_PLACES: u64 = 128;
/// Places that a directory may always have, even for few rows. Places; by size: 1 MB.
pub(crate) const FEW_CAT_PLACES: u64 = 4 << 20;
/// Places per row in the window of a concise array table. Places; judgement.
pub(crate) const WINDOW_PLACES: u64 = 64;
/// Places per row that a bitmap may have. Places; by size: 16 bytes per row.
pub(crate) const BITMAP_PLACES: u64 = 128;
/// Places per row that an array may have. Places; by size: 16 bytes per row.
pub(crate) const ARRAY_PLACES: u64 = 4;
/// Places that an array may always have, even for few rows. Places; by size: 1 MB.
pub(crate) const FEW_ARRAY_PLACES: u64 = 256 << 10;
/// Places per row that a forced array may have. Places; by size: 256 bytes per row.
pub(crate) const FORCED_PLACES: u64 = 64;
/// Places that other tables may always have, even for few rows. Places; judgement.
pub(crate) const FEW_OTHER_PLACES: u64 = 4096;
/// The least share of a sample of keys that must be inside a window. Judgement.
pub(crate) const WINDOW_SHARE: f64 = 0.95;
/// The share of the remaining memory beyond which chains are large, as a divisor. Judgement.
pub(crate) const LARGE_CHAINS_PART: usize = 4;
/// The share of the rows of a concise hash table that may overflow, as a divisor. Judgement.
pub(crate) const OVERFLOW_PART: usize = 16;
/// Nanoseconds that a probe row saves if every place of a concise array table is taken, so that it has no
/// directory. Fitted.
pub(crate) const FULL_PROBE: f64 = 0.5;
/// Nanoseconds to move a column, and the factor of accessing it compared with a column alone. Fitted.
pub(crate) const MOVED_COLUMN: (f64, f64) = (1.8, 1.2);
/// Nanoseconds for each byte of a table in memory that the process has, and in a table so large that the
/// system must provide its memory first. Fitted.
pub(crate) const TABLE_BYTE: (f64, f64) = (0.18, 0.35);
/// The size from which tables count as so large. Bytes: 4 MB; fitted.
pub(crate) const LARGE_TABLE: f64 = 4.0 * 1048576.0;
